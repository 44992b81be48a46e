"""Arrays and metadata in one file: writing it, and reading it without trusting it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.runtime.files import replace_file

__all__ = ["HEADER", "REMEDY", "load_arrays", "save_arrays"]

FORMAT = "ordrec model"
VERSION = 1
HEADER = "ordrec.json"
MAX_MEMBERS = 4096
MAX_HEADER_BYTES = 1 << 24
MAX_NPY_HEADER = 4096
PLAIN_KINDS = "biuf"  # booleans, integers, floats
REMEDY = "get the file again, or fit and save the model again"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal models give equal files
# Raised while reading a damaged archive.
_READING_ERRORS = (zipfile.BadZipFile, struct.error, OSError, EOFError, ValueError, KeyError,
                   IndexError, NotImplementedError, RuntimeError, OverflowError, SyntaxError,
                   TypeError)  # fmt: skip


def save_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> None:
    """Save arrays of numbers and json metadata to a file, which is replaced in one atomic step.

    Parameters
    ----------
    path : str or Path
    arrays : mapping of str to ndarray
        The names consist of letters, digits, dots, hyphens and underscores.
    metadata : mapping
        Strings, finite numbers, booleans, None, and lists and mappings of these.
    """
    members = {name: _npy_bytes(name, array) for name, array in arrays.items()}
    if len(members) >= MAX_MEMBERS:
        raise ArgumentError(f"a file holds at most {MAX_MEMBERS - 1} arrays, got {len(members)}")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
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
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), data)


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
            header = _checked_header(path, archive.read(members.pop(HEADER)), set(members))
            arrays = {}
            for name, member in members.items():
                place = member.filename
                data = archive.read(member)
                if hashlib.sha256(data).hexdigest() != header["sha256"][name]:
                    raise ModelFileError(f"{path}: {place} is not what was saved (sha256 differs)")
                arrays[name] = _array_of(f"{path}: {place}", data)
            return arrays, header["metadata"]
    except ModelFileError as error:
        raise ModelFileError(f"{error}; {REMEDY}") from None
    except (*_READING_ERRORS, RecursionError, MemoryError) as error:
        raise ModelFileError(f"{path}: {place} is damaged: {str(error)[:200]}; {REMEDY}") from error


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
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ModelFileError(f"{path}: {entry.filename} is compressed, which ordrec never does")
        members[name] = entry
    if HEADER not in members:
        raise ModelFileError(f"{path}: contains no {HEADER}, so it is not an ordrec model")
    if members[HEADER].file_size > MAX_HEADER_BYTES:
        raise ModelFileError(f"{path}: {HEADER} is longer than {MAX_HEADER_BYTES} bytes")
    if sum(entry.file_size for entry in entries) > os.path.getsize(path):
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
    if set(sums) != names:
        odd = sorted(map(str, set(sums) ^ names))[0]
        raise ModelFileError(f"{path}: {odd[:100]!r} is only in one of {HEADER} and the archive")
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
