"""Bytes of a file after a few cuts, doublings, flips and insertions."""

from __future__ import annotations

from hypothesis import strategies as st

JUNK = [
    b"\0", b"\xff\xfe", b"\x80", b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n", b"\t", b",", b"::", b":",
    b"|", b'"', b"-", b"+", b".", b"e", b"nan", b"inf", b"-inf", b"NULL", b"1e999", b"9" * 30,
    b"9" * 400, b"0x1F", b"-1", b"1.5", b" ", b".I", b".U", b"<top>", b"</top>", b"qid:", b"#",
    "٣".encode(), "é".encode("latin-1"), "😀".encode(), b"12/31/99 23:59:59", b"2/30/96 0:00:00",
    b"99999-01-01", b"A" * 70_000, b"[", b"]", b"{", b"}", b"null", b"true", b"[" * 20_000,
    b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b",
]  # fmt: skip


@st.composite
def mutated(draw, content):
    """One to three changes somewhere in the content."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        upto = draw(st.integers(at, min(len(content), at + 12)))
        what = draw(st.sampled_from(["insert", "replace", "cut", "truncate", "double", "noise"]))
        if what == "insert":
            content = content[:at] + draw(st.sampled_from(JUNK)) + content[at:]
        elif what == "replace":
            content = content[:at] + draw(st.sampled_from(JUNK)) + content[upto:]
        elif what == "cut":
            content = content[:at] + content[upto:]
        elif what == "truncate":
            content = content[:at]
        elif what == "double":
            content = content[:upto] + content[at:]
        else:
            content = content[:at] + draw(st.binary(min_size=1, max_size=8)) + content[upto:]
    return content
