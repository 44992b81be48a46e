"""Hostile and damaged archives."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from ordrec.data.formats import archives
from ordrec.data.formats.archives import open_source, unpack
from ordrec.errors import DataError, DatasetMissing


def make_zip(path, members, mode=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if mode is not None:
                info.external_attr = mode << 16
            out.writestr(info, content)
    return path


def make_tar(path, name, kind=tarfile.REGTYPE, content=b"", link=""):
    with tarfile.open(path, "w:gz") as out:
        info = tarfile.TarInfo(name)
        info.type, info.size, info.linkname = kind, len(content), link
        out.addfile(info, io.BytesIO(content))
    return path


def files_below(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_unpack_writes_what_was_packed(tmp_path, ending):
    archive = tmp_path / f"good.{ending}"
    if ending == "zip":
        make_zip(archive, {"set/a.txt": b"one"})
    else:
        make_tar(archive, "set/a.txt", content=b"one")
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "set" / "a.txt").read_bytes() == b"one"
    with open_source(archive) as source:
        assert source.read(source.find("a.txt")) == b"one"


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "a/../../evil", "..\\evil", "C:/evil", "C:\\evil", "\\evil"]
)
@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_members_stay_inside(tmp_path, name, ending):
    archive = tmp_path / f"bad.{ending}"
    if ending == "zip":
        make_zip(archive, {"good": b"x", name: b"evil"})
    else:
        make_tar(archive, name, content=b"evil")
    with pytest.raises(DataError, match=r"evil.*outside the folder"):
        unpack(archive, tmp_path / "out")
    assert files_below(tmp_path) == [archive.name]  # not even the good member


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o060666, 0o010644])
def test_no_links_or_devices_in_a_zip(tmp_path, mode):
    archive = make_zip(tmp_path / "bad.zip", {"link": b"/etc/passwd"}, mode)
    with pytest.raises(DataError, match="'link' is a link or device"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_no_links_or_devices_in_a_tar(tmp_path, kind):
    archive = make_tar(tmp_path / "bad.tar.gz", "link", kind, link="/etc/passwd")
    with pytest.raises(DataError, match="'link' is a link or device"):
        unpack(archive, tmp_path / "out")


def test_a_bomb_is_refused_by_ratio(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "RATIO_APPLIES_ABOVE", 1 << 16)
    zeros = bytes(1 << 22)
    archive = make_zip(tmp_path / "bomb.zip", {"zeros": zeros})
    with pytest.raises(DataError, match=r"'zeros' expands \d+-fold"):
        unpack(archive, tmp_path / "out")
    with gzip.open(tmp_path / "bomb.gz", "wb") as out:
        out.write(zeros)
    with open_source(tmp_path / "bomb.gz") as source, pytest.raises(DataError, match="bomb"):
        source.read("bomb.gz")
    packed = make_tar(tmp_path / "bomb.tar.gz", "zeros", content=zeros)
    with pytest.raises(DataError, match=r"'zeros' brings the contents to .* bomb"):
        unpack(packed, tmp_path / "out")


def test_a_bomb_is_refused_by_size(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 1000)
    archive = make_zip(tmp_path / "large.zip", {"a": b"x" * 600, "b": b"y" * 600})
    with pytest.raises(DataError, match="would expand to 1200 bytes"):
        unpack(archive, tmp_path / "out")


def test_a_zip_that_lies_about_its_size_is_caught(tmp_path, monkeypatch):
    archive = make_zip(tmp_path / "liar.zip", {"a": b"x" * 5000})
    raw = bytearray(archive.read_bytes())
    size = (5000).to_bytes(4, "little")
    for at in [i for i in range(len(raw)) if raw[i : i + 4] == size]:
        raw[at : at + 4] = (10).to_bytes(4, "little")
    archive.write_bytes(bytes(raw))
    with pytest.raises(DataError):
        unpack(archive, tmp_path / "out")


def test_too_many_members(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    archive = make_zip(tmp_path / "many.zip", {str(i): b"" for i in range(4)})
    with pytest.raises(DataError, match="4 members are too many"):
        open_source(archive)


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tar"])
def test_damaged_archives(tmp_path, name):
    (tmp_path / name).write_bytes(b"this is no archive")
    with pytest.raises(DataError, match=r"not a zip archive|damaged archive"):
        open_source(tmp_path / name)


def test_truncated_gz_says_so(tmp_path):
    packed = gzip.compress(b"1\t2\t3\t4\n" * 10_000)
    (tmp_path / "u.data.gz").write_bytes(packed[: len(packed) // 2])
    with open_source(tmp_path) as source, pytest.raises(DataError, match=r"damaged after .* again"):
        source.read("u.data.gz")


def test_corrupt_zip_member_says_so(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"a": bytes(range(256)) * 50})
    raw = bytearray(archive.read_bytes())
    raw[60] ^= 0xFF
    archive.write_bytes(bytes(raw))
    with open_source(archive) as source, pytest.raises(DataError, match=r"x.zip: a"):
        source.read("a")


def test_find_prefers_the_top_and_refuses_to_guess(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "u.data").write_text("")
    with open_source(tmp_path) as source, pytest.raises(DataError, match=r"more than one u.data"):
        source.find("u.data")
    (tmp_path / "U.DATA").write_text("")
    with open_source(tmp_path) as source:
        assert source.find("u.data") == "U.DATA"
        assert source.find("nothing") is None


def test_missing_path(tmp_path):
    with pytest.raises(DatasetMissing, match="no such file or folder"):
        open_source(tmp_path / "nothing")


def test_decode_names_line_and_byte():
    with pytest.raises(DataError, match="f, line 2: byte 0xff is not utf-8"):
        archives.decode(b"good\n\xff", "f")
    with pytest.raises(DataError, match=r"f, line 1: NUL byte.*UTF-16"):
        archives.decode("a\n".encode("utf-16-le"), "f")
    assert archives.decode(b"\xef\xbb\xbfa", "f") == "a"
    assert archives.decode(b"\xe9", "f", ("utf-8", "latin-1")) == "é"


def test_a_packed_file_is_closed_with_the_stream_that_reads_it(tmp_path, monkeypatch):
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(b"user,item,rating\n"))
    opened = []
    monkeypatch.setattr(
        archives, "_opener", lambda path: lambda: opened.append(path.open("rb")) or opened[-1]
    )
    with open_source(path) as source:
        assert source.read("ratings.csv.gz") == b"user,item,rating\n"
    assert [stream.closed for stream in opened] == [True]
