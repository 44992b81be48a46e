"""Arrays and metadata in one file: writing it, and reading it without trusting it.

Equal arrays are written once; the header has a checksum for each name. Members may be deflated: how
much memory reading a file takes is what its directory claims, which is held to the limit of
`ordrec.storage.limits` before anything is read, and no more is unpacked than was claimed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.runtime.files import replace_file
from ordrec.storage.limits import TooLarge, claim_memory

__all__ = ["HEADER", "REMEDY", "load_arrays", "save_arrays"]

FORMAT = "ordrec model"
VERSION = 1
HEADER = "ordrec.json"
MAX_MEMBERS = 4096
MAX_HEADER_BYTES = 1 << 24
MAX_NPY_HEADER = 4096
LEVEL, SAMPLE, WORTH = 4, 1 << 16, 0.95  # of deflating; what a sample must shrink to
MOST_EXPANDED = 1100  # deflated data are never more than 1032 times smaller
PLAIN_KINDS = "biuf"  # booleans, integers, floats
REMEDY = "get the file again, or fit and save the model again"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal models give equal files
# Raised while reading a damaged archive.
_READING_ERRORS = (zipfile.BadZipFile, struct.error, OSError, EOFError, ValueError, KeyError,
                   IndexError, NotImplementedError, RuntimeError, OverflowError, SyntaxError,
                   TypeError, zlib.error)  # fmt: skip


def save_arrays(
    path: str | Path,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    deflated: bool = False,
) -> None:
    """Save arrays of numbers and json metadata to a file, which is replaced in one atomic step.

    Parameters
    ----------
    path : str or Path
    arrays : mapping of str to ndarray
        The names consist of letters, digits, dots, hyphens and underscores.
    metadata : mapping
        Strings, finite numbers, booleans, None, and lists and mappings of these.
    deflated : bool
        Whether members that shrink are deflated: less space for some more time.
    """
    members = {name: _npy_bytes(name, array) for name, array in arrays.items()}
    if len(members) >= MAX_MEMBERS:
        raise ArgumentError(f"a file holds at most {MAX_MEMBERS - 1} arrays, got {len(members)}")
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "sha256": sums,
        "metadata": dict(metadata),
    }
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"metadata must be representable as json: {error}") from None
    if len(text) > MAX_HEADER_BYTES:
        raise ArgumentError(f"metadata takes {len(text)} bytes: move long parts into arrays")
    with (
        replace_file(path) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(HEADER, _EPOCH), text)
        for name in _first_names(sums).values():
            member, data = zipfile.ZipInfo(f"{name}.npy", _EPOCH), members[name]
            shrinks = deflated and _shrinks(data)
            archive.writestr(
                member, data, zipfile.ZIP_DEFLATED if shrinks else zipfile.ZIP_STORED, LEVEL
            )


def _first_names(sums: Mapping[str, str]) -> dict[str, str]:
    """The first name of each checksum."""
    return {own: name for name, own in reversed(list(sums.items()))}


def _shrinks(data: bytes) -> bool:
    """Whether a sample from the middle says that deflating is worth its time."""
    middle = len(data) // 2
    sample = data[max(middle - SAMPLE // 2, 0) : middle + SAMPLE // 2]
    return len(zlib.compress(sample, 1)) < WORTH * len(sample)


def load_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Load the arrays and the metadata from a file that `save_arrays` wrote.

    Raises
    ------
    ModelFileError
        Naming the file and the faulty place in it.
    """
    if not Path(path).is_file():
        raise ModelFileError(f"{path}: no such file: check the name")
    place = "archive"
    try:
        with Path(path).open("rb") as stream:
            if stream.read(2) != b"PK" and not zipfile.is_zipfile(path):  # a table, say
                raise ModelFileError(f"{path}: not a model file")
        with zipfile.ZipFile(path) as archive:
            members = _checked_members(path, archive)
            place = HEADER
            text = _content(archive, members.pop(HEADER))
            header = _checked_header(path, text, set(members))
            sums, arrays = header["sha256"], {}
            there = {sums[name]: member for name, member in members.items()}
            claim_memory(sum(there[own].file_size for own in sums.values()), "its arrays")
            for name, member in members.items():
                place = member.filename
                data = _content(archive, member)
                if hashlib.sha256(data).hexdigest() != sums[name]:
                    raise ModelFileError(f"{path}: {place} is not what was saved (sha256 differs)")
                arrays[name] = _array_of(f"{path}: {place}", data)
            first = _first_names({name: sums[name] for name in members})
            for name in sums.keys() - members.keys():
                arrays[name] = arrays[first[sums[name]]].copy()
            return {name: arrays[name] for name in sums}, header["metadata"]
    except TooLarge:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{error}; {REMEDY}") from None
    except (*_READING_ERRORS, RecursionError, MemoryError) as error:
        raise ModelFileError(f"{path}: {place} is damaged: {str(error)[:200]}; {REMEDY}") from error


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of a member, no more than its directory entry claims."""
    with archive.open(member) as stream:
        return stream.read(member.file_size)


def _npy_bytes(name: str, array: np.ndarray) -> bytes:
    if not _NAME.fullmatch(name):
        raise ArgumentError(f"array name {name!r} must be letters, digits, dots, hyphens or _")
    array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
    if array.dtype.kind not in PLAIN_KINDS:
        raise ArgumentError(f"array {name!r} has the type {array.dtype}: only numbers are stored")
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def _checked_members(path: Any, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Members by array name; anything that `save_arrays` would not write is refused."""
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise ModelFileError(f"{path}: {len(entries)} members, more than {MAX_MEMBERS}")
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = HEADER if entry.filename == HEADER else entry.filename.removesuffix(".npy")
        if name != HEADER and not (_NAME.fullmatch(name) and entry.filename == f"{name}.npy"):
            raise ModelFileError(f"{path}: {entry.filename[:100]!r} is not a name of this format")
        if name in members:
            raise ModelFileError(f"{path}: {entry.filename} occurs twice")
        stored = entry.compress_type == zipfile.ZIP_STORED
        if not stored and (entry.compress_type != zipfile.ZIP_DEFLATED or name == HEADER):
            raise ModelFileError(f"{path}: {entry.filename} is compressed as ordrec never does")
        if entry.file_size > MOST_EXPANDED * entry.compress_size or (
            stored and entry.file_size != entry.compress_size
        ):
            raise ModelFileError(f"{path}: {entry.filename} claims a size that it cannot have")
        members[name] = entry
    if HEADER not in members:
        raise ModelFileError(f"{path}: contains no {HEADER}, so it is not an ordrec model")
    if members[HEADER].file_size > MAX_HEADER_BYTES:
        raise ModelFileError(f"{path}: {HEADER} is longer than {MAX_HEADER_BYTES} bytes")
    if sum(entry.compress_size for entry in entries) > os.path.getsize(path):
        raise ModelFileError(f"{path}: its members claim to be larger than the file")
    return members


def _checked_header(path: Any, data: bytes, names: set[str]) -> dict[str, Any]:
    header = json.loads(data, object_pairs_hook=_without_repetition, parse_constant=_no_number)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path}: {HEADER} does not say {FORMAT!r}")
    if header.get("version") != VERSION:
        raise ModelFileError(
            f"{path}: has version {str(header.get('version'))[:20]} of the format, but this ordrec "
            f"reads version {VERSION}"
        )
    sums = header.get("sha256")
    if not isinstance(sums, dict) or not isinstance(header.get("metadata"), dict):
        raise ModelFileError(f"{path}: {HEADER} lacks checksums or metadata")
    for name, own in sums.items():
        if not isinstance(own, str):
            raise ModelFileError(
                f"{path}: {str(name)[:100]}.npy is not what was saved "
                f"(its sha256 in {HEADER} is not a string)"
            )
    known = {own for name, own in sums.items() if name in names}
    odd = (names - set(sums)) | {name for name, own in sums.items() if own not in known}
    if odd or len(sums) > MAX_MEMBERS:
        first = min(map(str, odd), default="")
        raise ModelFileError(f"{path}: {first[:100]!r} is only in one of {HEADER} and the archive")
    if not all(map(_NAME.fullmatch, sums)):
        raise ModelFileError(f"{path}: {HEADER} has a name that is none of this format")
    return header


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a json text; of two values for one key, readers take different ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice[:50]!r} occurs twice")
    return found


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def _array_of(place: str, data: bytes) -> np.ndarray:
    """The array of an npy member; allocated only once its header and length are seen to agree."""
    stream = io.BytesIO(data)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(stream)
    if version not in readers:
        raise ModelFileError(f"{place}: npy version {version} is not supported")
    shape, fortran, dtype = readers[version](stream, max_header_size=MAX_NPY_HEADER)
    if dtype.kind not in PLAIN_KINDS or dtype.hasobject or dtype.shape:
        raise ModelFileError(f"{place}: has the type {dtype}; only plain numbers may be stored")
    size = dtype.itemsize
    for side in shape:
        size *= side
    start = stream.tell()
    if min(shape, default=0) < 0 or size != len(data) - start:
        raise ModelFileError(f"{place}: header says {size} bytes, found {len(data) - start}")
    array = np.frombuffer(bytearray(memoryview(data)[start:]), dtype=dtype)
    return array.reshape(shape, order="F" if fortran else "C")
