"""Malformed files give a clear error or load; never anything else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec.datasets import (
    load_eachmovie,
    load_jester,
    load_letor,
    load_movielens,
    load_movietweetings,
    load_ohsumed,
    load_ratings,
    load_table,
)
from ordrec.errors import OrdrecError

SAMPLES = Path(__file__).parent.parent.parent / "data" / "samples"


def my_ratings(path):
    return load_ratings(
        path / "mine.csv", user="who", item="what", rating="stars", timestamp="when"
    )


def my_table(path):
    return load_table(path / "invented.csv", label="y5")


LOADERS = {
    "ml-100k": load_movielens,
    "ml-1m": load_movielens,
    "ml-10m": load_movielens,
    "ml-latest": load_movielens,
    "eachmovie": load_eachmovie,
    "eachmovie-triple": load_eachmovie,
    "eachmovie-csv": load_eachmovie,
    "ohsumed": load_ohsumed,
    "ohsumed-original": load_ohsumed,
    "letor": load_letor,
    "movietweetings": load_movietweetings,
    "jester": load_jester,
    "jester-matrix": load_jester,
    "ordinal": my_table,
    "ratings": my_ratings,
}
NOT_READ = (".base", ".genre", "train-rows-10.txt", "grades.csv", "grades.train-rows.txt")
FILES = [
    (folder, file.name)
    for folder in LOADERS
    for file in sorted((SAMPLES / folder).iterdir())
    if not file.name.endswith(NOT_READ) and file.name not in ("u2.test", "u3.test", "u4.test")
]

JUNK = [
    b"\0", b"\xff\xfe", b"\x80", b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n", b"\t", b",", b"::", b":",
    b"|", b'"', b"-", b"+", b".", b"e", b"nan", b"inf", b"-inf", b"NULL", b"1e999", b"9" * 30,
    b"9" * 400, b"0x1F", b"-1", b"1.5", b" ", b".I", b".U", b"<top>", b"</top>", b"qid:", b"#",
    "٣".encode(), "é".encode("latin-1"), "😀".encode(), b"12/31/99 23:59:59", b"2/30/96 0:00:00",
    b"99999-01-01", b"A" * 70_000,
]  # fmt: skip


@st.composite
def mutated(draw, content):
    """Bytes of a file after a few cuts, doublings, flips and insertions."""
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


def check(data, tmp_path_factory, folder, file):
    content = data.draw(mutated((SAMPLES / folder / file).read_bytes()))
    target = tmp_path_factory.mktemp("fuzz", numbered=True)
    try:
        for other in (SAMPLES / folder).iterdir():
            shutil.copy(other, target)
        (target / file).write_bytes(content)
        for path in (target, target / file) if folder not in ("ordinal", "ratings") else (target,):
            message = "loaded"
            try:
                repr(LOADERS[folder](path))
            except OrdrecError as error:
                message = str(error)
            assert message
            assert "\n" not in message
    finally:
        shutil.rmtree(target)


@pytest.mark.parametrize(("folder", "file"), FILES, ids=["-".join(f) for f in FILES])
@given(data=st.data())
@settings(max_examples=6)
def test_mutated_samples(data, tmp_path_factory, folder, file):
    check(data, tmp_path_factory, folder, file)


@pytest.mark.fuzz
@pytest.mark.parametrize(("folder", "file"), FILES, ids=["-".join(f) for f in FILES])
@given(data=st.data())
@settings(max_examples=400, derandomize=False)
def test_mutated_samples_at_length(data, tmp_path_factory, folder, file):
    check(data, tmp_path_factory, folder, file)


@pytest.mark.parametrize("folder", sorted(LOADERS))
@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\0" * 100, b"\xff" * 100, b"PK\x03\x04garbage", b"\x1f\x8bgarbage",
     "user,item\n1,2\n".encode("utf-16")],
)  # fmt: skip
def test_files_of_another_kind(tmp_path, folder, content):
    for file in (SAMPLES / folder).iterdir():
        (tmp_path / file.name).write_bytes(content)
    with pytest.raises(OrdrecError):
        LOADERS[folder](tmp_path)
