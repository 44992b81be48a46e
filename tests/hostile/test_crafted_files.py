"""Model files made to deceive: archives and headers that two readers would read differently."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ordrec import load, save
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ModelFileError
from ordrec.recommend import BiasModel
from ordrec.storage.archive import load_arrays

HEADER = "ordrec.json"


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
    return stream.getvalue()


def header(sums: dict[str, Any], metadata: str = "{}") -> str:
    """The text of a header, with metadata that need not be valid json."""
    return (
        f'{{"format": "ordrec model", "version": 1, "sha256": {json.dumps(sums)}, '
        f'"metadata": {metadata}}}'
    )


DATA = npy(np.arange(3.0))
GOOD = header({"x": hashlib.sha256(DATA).hexdigest()})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "crafted.ordrec"


def write(path: Path, members: list[tuple[str | zipfile.ZipInfo, Any]], **options: Any) -> None:
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, data in members:
            archive.writestr(name, data)


def refused(path: Path, says: str) -> None:
    with pytest.raises(ModelFileError, match=says) as caught:
        load_arrays(path)
    assert "\n" not in str(caught.value)


def test_the_file_that_the_others_are_made_from_is_good(path: Path) -> None:
    write(path, [(HEADER, GOOD), ("x.npy", DATA)])
    assert load_arrays(path)[0]["x"].tolist() == [0.0, 1.0, 2.0]


# ---- archives ------------------------------------------------------------------------------


def test_zip64_is_read_like_any_other(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in ((HEADER, GOOD.encode()), ("x.npy", DATA)):
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(data)
    assert load_arrays(path)[0]["x"].tolist() == [0.0, 1.0, 2.0]


def test_sizes_in_zip64_are_not_believed(path: Path) -> None:
    """The central directory claims a quintillion bytes, in the field that zip64 adds."""
    info = zipfile.ZipInfo("x.npy")
    write(path, [(HEADER, GOOD), (info, DATA)])
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")  # that of x.npy
    name_length = struct.unpack_from("<H", content, entry + 28)[0]
    struct.pack_into("<II", content, entry + 20, 0xFFFFFFFF, 0xFFFFFFFF)
    extra = struct.pack("<HHQQ", 1, 16, 10**18, 10**18)
    struct.pack_into("<H", content, entry + 30, len(extra))
    content[entry + 46 + name_length : entry + 46 + name_length] = extra
    end = content.rindex(b"PK\x05\x06")
    size = struct.unpack_from("<I", content, end + 12)[0]
    struct.pack_into("<I", content, end + 12, size + len(extra))
    path.write_bytes(content)
    assert zipfile.ZipFile(path).getinfo("x.npy").file_size == 10**18
    refused(path, "claim to be larger than the file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_second_header_is_refused(path: Path) -> None:
    other = GOOD.replace('"metadata": {}', '"metadata": {"kind": "other"}')
    write(path, [(HEADER, GOOD), ("x.npy", DATA), (HEADER, other)])
    refused(path, r"ordrec\.json occurs twice")


def test_a_name_that_ends_early_is_the_same_name(path: Path) -> None:
    """Some readers end a name at the first NUL, others go on."""
    write(path, [(HEADER, GOOD), ("x.npy", DATA), ("x.npyZ.npy", DATA)])
    path.write_bytes(path.read_bytes().replace(b"x.npyZ.npy", b"x.npy\0.npy"))
    refused(path, r"occurs twice|is damaged|not a name")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFCHR])
def test_links_lead_nowhere(path: Path, tmp_path: Path, kind: int) -> None:
    """A link is bytes like any other, and its target is never opened."""
    secret = tmp_path / "secret.npy"
    secret.write_bytes(DATA)
    link = zipfile.ZipInfo("x.npy")
    link.external_attr = (kind | 0o777) << 16
    target = str(secret).encode()
    write(path, [(HEADER, header({"x": hashlib.sha256(target).hexdigest()})), (link, target)])
    refused(path, r"x\.npy is damaged")


def test_the_two_names_of_a_member_must_agree(path: Path) -> None:
    write(path, [(HEADER, GOOD), ("x.npy", DATA)])
    content = path.read_bytes()
    path.write_bytes(content.replace(b"x.npy", b"y.npy", 1))  # in front of the data alone
    refused(path, r"x\.npy is damaged")


def test_encrypted_members_are_refused(path: Path) -> None:
    write(path, [(HEADER, GOOD), ("x.npy", DATA)])
    content = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.rindex(mark) + flags] |= 1
    path.write_bytes(content)
    refused(path, r"x\.npy is damaged")


def test_what_stands_before_or_after_the_archive_changes_nothing(path: Path) -> None:
    write(path, [(HEADER, GOOD), ("x.npy", DATA)])
    content = path.read_bytes()
    path.write_bytes(b"#!/bin/sh\nexit 1\n" + content)
    assert load_arrays(path)[0]["x"].tolist() == [0.0, 1.0, 2.0]
    write(path, [(HEADER, GOOD.replace("ordrec model", "other model")), ("x.npy", DATA)])
    path.write_bytes(content + path.read_bytes())  # of two archives, the last one counts
    refused(path, "does not say 'ordrec model'")


# ---- headers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace('"version": 1', '"version": 2, "version": 1'),
        GOOD.replace('"metadata": {}', '"metadata": {"kind": "a"}, "metadata": {}'),
        header({"x": "0"}, '{"state": {"a": [{"b": 1, "b": 1}]}}'),
    ],
)
def test_keys_that_occur_twice_are_refused(path: Path, text: str) -> None:
    write(path, [(HEADER, text), ("x.npy", DATA)])
    refused(path, r"ordrec\.json is damaged: '\w+' occurs twice")


@pytest.mark.parametrize(
    "nested", ['{"a": ' * 10**5 + "1" + "}" * 10**5, "[" * 10**5 + "]" * 10**5]
)
def test_metadata_nested_without_end_are_refused(path: Path, nested: str) -> None:
    write(path, [(HEADER, header({"x": "0"}, f'{{"state": {nested}}}')), ("x.npy", DATA)])
    refused(path, r"ordrec\.json is damaged")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "9" * 5000])
def test_what_json_does_not_call_a_number_is_refused(path: Path, number: str) -> None:
    write(path, [(HEADER, header({"x": "0"}, f'{{"mean": {number}}}')), ("x.npy", DATA)])
    refused(path, r"ordrec\.json is damaged")


def test_numbers_beyond_the_floats_are_refused_by_the_model(path: Path) -> None:
    save(BiasModel().fit(synthetic_ratings(9, 8, n_ratings=40)), path)
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    mean = json.loads(members[0][1])["metadata"]["state"]["mean"]
    text = members[0][1].replace(json.dumps(mean).encode(), b"1e999")
    assert text != members[0][1]
    write(path, [(HEADER, text), *members[1:]])
    with pytest.raises(ModelFileError, match=r"crafted\.ordrec"):
        load(path)


@pytest.mark.parametrize(
    "wrong",
    [
        "0" * 64,
        hashlib.sha256(DATA).hexdigest().upper(),
        hashlib.sha256(DATA).hexdigest()[:32],
        hashlib.md5(DATA).hexdigest(),
        "",
        None,
        0,
        [hashlib.sha256(DATA).hexdigest()],
        {"sha256": hashlib.sha256(DATA).hexdigest()},
    ],
)
def test_wrong_sums_are_refused(path: Path, wrong: Any) -> None:
    write(path, [(HEADER, header({"x": wrong})), ("x.npy", DATA)])
    refused(path, r"x\.npy is not what was saved")
