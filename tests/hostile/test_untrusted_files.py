"""Untrusted files: no code is run, nothing is written elsewhere, nothing expands without limit.

Model files (`ordrec.storage`) and archives of data sets (`ordrec.data.formats.archives`), whose
own tests try one fault each; here are deliberate attacks.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from ordrec import load
from ordrec.data.formats import archives
from ordrec.data.formats.archives import open_source, unpack
from ordrec.data.read import load_path
from ordrec.datasets import load_movielens, load_ratings, load_table
from ordrec.errors import DataError, ModelFileError, OrdrecError
from ordrec.storage.archive import load_arrays, save_arrays

RATINGS = b"user,item,rating\n" + b"".join(
    b"%d,%d,%d\n" % (u, i, 1 + (u * i) % 5) for u in range(6) for i in range(5)
)


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return (open, (self.place, "w"))


@pytest.fixture
def sprung(tmp_path):
    """The file that would appear if code from the file had run."""
    return tmp_path / "sprung"


def zipped(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def everything_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# ---- nothing is run ----------------------------------------------------------------------------


def test_pickles_in_every_disguise_are_not_opened(tmp_path, sprung):
    trap = Trap(sprung)
    np.save(tmp_path / "trap.npy", np.array([trap], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "trap.npz", x=np.array([trap], dtype=object))
    plain = pickle.dumps(trap)
    files = {
        "npy alone": (tmp_path / "trap.npy").read_bytes(),
        "npz": (tmp_path / "trap.npz").read_bytes(),
        "pickle": plain,
        "gzipped pickle": gzip.compress(plain),
        "zip of a pickle": zipped(tmp_path / "p.zip", {"ordrec.json": plain}).read_bytes(),
        "joblib's way": zipped(tmp_path / "j.zip", {"model.pkl": plain}).read_bytes(),
    }
    for name, data in files.items():
        path = tmp_path / "model.ordrec"
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"model\.ordrec"):
            load(path)
        for ending in (".csv", ".npy", ".zip", ".parquet", ".csv.gz", ".tar.gz"):
            target = tmp_path / f"ratings{ending}"
            target.write_bytes(data)
            for loader in (load_path, load_ratings, load_table, load_movielens):
                with pytest.raises(OrdrecError):
                    loader(target)
        assert not sprung.exists(), name


def test_a_model_may_only_be_of_a_known_kind(tmp_path):
    for kind in ("os:system", "builtins:eval", "ordrec.cli:main", "__import__", "", "\0"):
        save_arrays(tmp_path / "m", {}, {"kind": kind, "state": {"command": "id"}})
        with pytest.raises(ModelFileError, match="not one of"):
            load(tmp_path / "m")


# ---- nothing is written outside --------------------------------------------------------------

SLIPS = [
    "../evil", "a/../../evil", "/evil", "//evil", "..\\evil", "a\\..\\..\\evil", "\\\\server\\evil",
    "C:\\evil", "c:evil", "./../evil", "a/./../../evil", "..",
]  # fmt: skip


@pytest.mark.parametrize("name", SLIPS)
def test_slipping_names(tmp_path, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    archive = zipped(tmp_path / "a.zip", {"good.csv": RATINGS, name: RATINGS})
    packed = tmp_path / "a.tar"
    with tarfile.open(packed, "w") as out:
        info = tarfile.TarInfo(name)
        info.size = len(RATINGS)
        out.addfile(info, io.BytesIO(RATINGS))
    before = everything_below(tmp_path)
    for file in (archive, packed):
        with pytest.raises(DataError, match="outside the folder"):
            unpack(file, inside)
        with pytest.raises(DataError, match="outside the folder"):
            load_ratings(file)
    assert everything_below(tmp_path) == before
    with zipfile.ZipFile(tmp_path / "m.ordrec", "w") as out:
        out.writestr("ordrec.json", "{}")
        out.writestr(f"{name}.npy", b"")
    with pytest.raises(ModelFileError, match="not a name of this format"):
        load_arrays(tmp_path / "m.ordrec")


def test_a_link_planted_first_is_not_followed(tmp_path):
    """A link out of the folder, then a file below it: neither zip nor tar writes either."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    packed = tmp_path / "link.tar"
    with tarfile.open(packed, "w") as out:
        link = tarfile.TarInfo("door")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        out.addfile(link)
        file = tarfile.TarInfo("door/evil")
        file.size = 4
        out.addfile(file, io.BytesIO(b"evil"))
    archive = tmp_path / "link.zip"
    with zipfile.ZipFile(archive, "w") as out:
        link = zipfile.ZipInfo("door")
        link.external_attr = 0o120777 << 16
        out.writestr(link, str(outside))
        out.writestr("door/evil", b"evil")
    for source in (packed, archive):
        with pytest.raises(DataError, match="link or device"):
            unpack(source, inside)
    assert everything_below(outside) == []
    assert everything_below(inside) == []


@pytest.mark.parametrize(
    "kind", [tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_not_read_either(tmp_path, kind):
    packed = tmp_path / "odd.tar.gz"
    with tarfile.open(packed, "w:gz") as out:
        info = tarfile.TarInfo("ratings.csv")
        info.type, info.linkname, info.devmajor, info.devminor = kind, "/etc/passwd", 1, 5
        out.addfile(info)
    with pytest.raises(DataError, match="link or device"):
        load_ratings(packed)


def test_a_member_that_is_there_twice_or_clashes_with_a_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "clash.zip", "w") as out:
        out.writestr("a", b"file")
        out.writestr("a/b", b"below a file")
    with pytest.raises(OrdrecError, match=r"clash\.zip|out.a"):
        unpack(tmp_path / "clash.zip", tmp_path / "out")


def test_a_folder_of_data_may_hold_pipes_and_dangling_links(tmp_path):
    os.mkfifo(tmp_path / "u.data")  # reading it would wait for ever
    (tmp_path / "u.item").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path)
    with pytest.raises(OrdrecError):
        load_movielens(tmp_path)
    with pytest.raises(OrdrecError):
        load_ratings(tmp_path / "u.data")
    with pytest.raises(ModelFileError):
        load(tmp_path / "u.data")


def test_device_files_are_no_files(tmp_path):
    for device in ("/dev/zero", "/dev/null", "/dev/stdin"):
        for reader in (load, load_ratings, load_path, load_table):
            with pytest.raises(OrdrecError):
                reader(device)


# ---- nothing expands ---------------------------------------------------------------------------


def test_nested_archives_stay_packed(tmp_path):
    """A zip of zips of zips: the inner ones are members like any other, never opened."""
    data = zipped(tmp_path / "0.zip", {"zeros": bytes(1 << 20)}).read_bytes()
    for depth in range(1, 4):
        inner = {f"{k}.zip": data for k in range(8)}
        data = zipped(tmp_path / f"{depth}.zip", inner).read_bytes()
    unpack(tmp_path / "3.zip", tmp_path / "out")
    assert sum(p.stat().st_size for p in (tmp_path / "out").iterdir()) < 1 << 20
    with pytest.raises(DataError):
        load_ratings(tmp_path / "3.zip")


def test_members_that_overlap_are_held_to_the_budget(tmp_path, monkeypatch):
    """Many names in the directory for the same packed bytes (a bomb without nesting)."""
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "overlap.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kernel", bytes(1 << 18))
        original = archive.getinfo("kernel")
        for k in range(50):
            twin = zipfile.ZipInfo(f"twin{k}")
            twin.compress_type = zipfile.ZIP_DEFLATED
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(twin, field, getattr(original, field))
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
    with pytest.raises(DataError, match="would expand to"):
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_sizes_that_are_claimed_too_small_do_not_let_more_through(tmp_path):
    """The directory says ten bytes, a megabyte is packed: no more than ten come out."""
    path = zipped(tmp_path / "liar.zip", {"ratings.csv": b"x" * (1 << 20)})
    raw = bytearray(path.read_bytes())
    true = struct.pack("<I", 1 << 20)
    at = raw.find(true)
    while at >= 0:
        raw[at : at + 4] = struct.pack("<I", 10)
        at = raw.find(true)
    path.write_bytes(bytes(raw))
    with pytest.raises(DataError, match=r"liar\.zip"):
        unpack(path, tmp_path / "out")
    written = [p.stat().st_size for p in (tmp_path / "out").rglob("*")]
    assert sum(written) <= 10


def test_a_gzip_in_a_zip_is_held_to_the_ratio(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "RATIO_APPLIES_ABOVE", 1 << 16)
    twice = gzip.compress(bytes(1 << 24))
    zipped(tmp_path / "two.zip", {"ratings.csv.gz": twice}, zipfile.ZIP_STORED)
    with pytest.raises(DataError, match="bomb"):
        load_ratings(tmp_path / "two.zip")


def test_a_tar_with_endless_members_or_names(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 100)
    packed = tmp_path / "many.tar.gz"
    with tarfile.open(packed, "w:gz", format=tarfile.PAX_FORMAT) as out:
        for k in range(300):
            out.addfile(tarfile.TarInfo(f"{k}" + "n" * 300))
    with pytest.raises(DataError, match="too many"):
        open_source(packed)


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"format": "ordrec model", "version": ' + b"9" * 10_000 + b"}",
        b'"' + b"x" * (1 << 20) + b'"',
        b"{}" + b" " * (1 << 20),
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"",
        b"NaN",
        json.dumps(
            {"format": "ordrec model", "version": 1, "sha256": {"x": 1}, "metadata": {}}
        ).encode(),
    ],
)
def test_deep_long_and_odd_headers(tmp_path, header):
    zipped(tmp_path / "m", {"ordrec.json": header}, zipfile.ZIP_STORED)
    with pytest.raises(ModelFileError, match=r"ordrec\.json|not a model"):
        load_arrays(tmp_path / "m")


def test_a_header_longer_than_the_bound_is_not_read(tmp_path):
    from ordrec.storage.archive import MAX_HEADER_BYTES

    zipped(tmp_path / "m", {"ordrec.json": b" " * (MAX_HEADER_BYTES + 1)}, zipfile.ZIP_STORED)
    with pytest.raises(ModelFileError, match="is longer than"):
        load_arrays(tmp_path / "m")


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" + " " * 60_000,
        "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 500 + ")" * 500 + "}",
        "__import__('os').system('id')",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 1.0)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 'x'}",
        "{'descr': '<f99999999', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<V8', 'fortran_order': False, 'shape': (1,)}",
    ],
)
def test_odd_headers_of_arrays(tmp_path, text):
    import hashlib

    length = struct.pack("<H", len(text) + 1)
    data = b"\x93NUMPY\x01\x00" + length + text.encode() + b"\n" + bytes(8)
    sums = {"x": hashlib.sha256(data).hexdigest()}
    header = {"format": "ordrec model", "version": 1, "sha256": sums, "metadata": {}}
    members = {"ordrec.json": json.dumps(header), "x.npy": data}
    zipped(tmp_path / "m", members, zipfile.ZIP_STORED)
    with pytest.raises(ModelFileError, match=r"x\.npy"):
        load_arrays(tmp_path / "m")


def test_encrypted_and_odd_compression_is_reported(tmp_path):
    path = zipped(tmp_path / "locked.zip", {"ratings.csv": RATINGS}, zipfile.ZIP_STORED)
    raw = bytearray(path.read_bytes())
    raw[6] |= 1  # the local header says encrypted
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(raw))
    with pytest.raises(DataError, match=r"locked\.zip"):
        load_ratings(path)
