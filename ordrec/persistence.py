"""Save models to files and load them, without pickle.

A model file is a zip archive of numpy's ``.npy`` members, none of them compressed, and one
``ordrec.json``: format, version, kind of model, the sha256 of each member, and the model's own
metadata. ``numpy.load`` can read the arrays too. Loading a file from an untrusted source runs no
code from it: there are no pickles, the kind must be in a fixed table, nothing is unpacked to
disk, and reading needs no more memory than the size of the file. (A `RatingPredictor` then
recomputes its Gram matrices, which need as much memory as they did in training.)

To make a class storable, give it two methods and a name:

* ``to_state(self)`` returns ``(arrays, metadata)``: a dict of numpy arrays (numbers or
  booleans), and a dict of values that json can represent;
* ``from_state(cls, arrays, metadata)``, a class method, rebuilds the model. It must not trust its
  input: use `take` to check the type, shape and range of an array, since compiled loops do not;
* a line in the table of models, `ordrec.recommend.registry`, or a call of
  ``register("Name", "package.module:Class")``.

`ids_to_arrays` and `ids_from_arrays` convert user and item ids, `texts_to_arrays` and
`texts_from_arrays` strings in general, `state_of` and `model_of` a model inside another model;
`take_rows` checks the rows of a sparse table.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.files import replace_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ids_from_arrays",
    "ids_to_arrays",
    "load",
    "load_arrays",
    "model_of",
    "register",
    "save",
    "save_arrays",
    "state_of",
    "take",
    "take_covariance",
    "take_rows",
    "take_starts",
    "texts_from_arrays",
    "texts_to_arrays",
]

FORMAT = "ordrec model"
VERSION = 1
HEADER = "ordrec.json"
MAX_MEMBERS = 4096
MAX_HEADER_BYTES = 1 << 24
MAX_NPY_HEADER = 4096
LARGEST = 1e100  # magnitude of a stored float: sums of products must stay finite
LEAST_VARIANCE = 1e-14  # smallest eigenvalue of a covariance, relative to the largest
PLAIN_KINDS = "biuf"  # booleans, integers, floats
REMEDY = "get the file again, or fit and save the model again"

# Modules whose ``storable_kinds`` lists storable classes. They are imported by name when needed,
# because this module may not import from rooms to its right.
_TABLES = ("ordrec.recommend.registry",)
_REGISTERED: dict[str, str] = {}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal models give equal files
# Raised while reading a damaged archive, and while rebuilding a model from wrong contents.
_READING_ERRORS = (zipfile.BadZipFile, struct.error, OSError, EOFError, ValueError, KeyError,
                   IndexError, NotImplementedError, RuntimeError, OverflowError, SyntaxError,
                   TypeError)  # fmt: skip
_REBUILDING_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
                      RecursionError, MemoryError)  # fmt: skip


# ---- models ----------------------------------------------------------------------------


def save(model: Any, path: str | Path) -> None:
    """Save a fitted model to a file, which is replaced in one atomic step.

    Parameters
    ----------
    model : object
        A fitted model of a registered class.
    path : str or Path

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from ordrec.ratings import Ratings
    >>> from ordrec.recommend import BiasModel
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rating": [5, 3, 4]})
    >>> model = BiasModel().fit(Ratings.from_frame(frame))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/biases.ordrec")
    ...     again = load(f"{folder}/biases.ordrec")
    >>> bool((again.predict([1], ["b"]) == model.predict([1], ["b"])).all())
    True
    """
    save_arrays(path, *state_of(model))


def load(path: str | Path) -> Any:
    """Load a model from a file that `save` wrote.

    Raises
    ------
    ModelFileError
        If the file is damaged, was altered, has an unknown version, or is not a model file.
    """
    arrays, metadata = load_arrays(path)
    try:
        return model_of(arrays, metadata)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}; {REMEDY}") from None
    except _REBUILDING_ERRORS as error:
        kind = str(metadata.get("kind"))[:50]
        raise ModelFileError(
            f"{path}: its contents are not those of a {kind}: {error!r}; {REMEDY}"
        ) from error


def state_of(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of a model, and metadata that say which registered class it has."""
    kind, homes = type(model).__name__, _homes()
    if homes.get(kind) != f"{type(model).__module__}:{kind}":
        raise ArgumentError(f"a {kind} cannot be saved: only {', '.join(sorted(homes))} can")
    arrays, metadata = model.to_state()
    return arrays, {"kind": kind, "state": metadata}


def model_of(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> Any:
    """Rebuild a model from the result of `state_of`; errors of ``from_state`` are passed on."""
    kind, state, homes = metadata.get("kind"), metadata.get("state"), _homes()
    if not isinstance(kind, str) or kind not in homes or not isinstance(state, dict):
        raise ModelFileError(f"holds a {str(kind)[:50]!r}, not one of {', '.join(sorted(homes))}")
    module, _, name = homes[kind].partition(":")
    return getattr(import_module(module), name).from_state(arrays, state)


def register(kind: str, home: str) -> None:
    """Make a class known to `save` and `load`: its name, and ``"package.module:Class"``."""
    taken = _homes().get(kind, home)
    if taken != home:
        raise ArgumentError(f"the kind {kind!r} is taken by {taken}: choose another name")
    _REGISTERED[kind] = home


def _homes() -> dict[str, str]:
    """``"package.module:Class"`` of each storable class; a file can only name one of these."""
    tables = [import_module(module).storable_kinds() for module in _TABLES]
    return dict(itertools.chain.from_iterable(table.items() for table in (*tables, _REGISTERED)))


# ---- arrays and metadata -----------------------------------------------------------------


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
    header = json.loads(data)
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


# ---- checks for from_state -----------------------------------------------------------------


def take(
    arrays: Mapping[str, np.ndarray],
    name: str,
    dtype: Any,
    shape: tuple[int | None, ...],
    *,
    low: float | None = None,
    high: float | None = None,
) -> np.ndarray:
    """Return an array of a loaded file after checking its type, shape and range.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    name : str
    dtype : data type
        Data type of the result; the stored one must be of the same kind, and no wider.
    shape : tuple
        None means any length.
    low, high : float, optional
        Bounds of the entries, both inclusive. Floats must always be finite, and so small that
        the product of two of them is finite too.

    Examples
    --------
    >>> take({"start": np.array([0, 2, 5])}, "start", np.int64, (3,), low=0, high=5)
    array([0, 2, 5])
    """
    if name not in arrays:
        raise ModelFileError(f"array {name!r} is missing")
    array, wanted = arrays[name], np.dtype(dtype)
    fits = len(array.shape) == len(shape) and all(
        want is None or side == want for side, want in zip(array.shape, shape, strict=True)
    )
    if array.dtype.kind != wanted.kind or array.dtype.itemsize > wanted.itemsize or not fits:
        raise ModelFileError(
            f"array {name!r} has type {array.dtype} and shape {array.shape}, not {wanted} and "
            f"{str(shape).replace('None', 'any')}"
        )
    if wanted.kind == "f" and not (np.abs(array, dtype=np.float64) <= LARGEST).all():
        raise ModelFileError(f"array {name!r} holds NaN, infinity, or numbers beyond {LARGEST:g}")
    if array.size and (
        (low is not None and array.min() < low) or (high is not None and array.max() > high)
    ):
        raise ModelFileError(f"array {name!r} has entries outside {low}..{high}")
    return np.ascontiguousarray(array, dtype=wanted)


def take_covariance(arrays: Mapping[str, np.ndarray], name: str, n: int) -> np.ndarray:
    """Return a symmetric n x n matrix after checking that it can safely be inverted."""
    matrix = take(arrays, name, np.float64, (n, n))
    variances = np.linalg.eigvalsh(matrix)
    singular = n > 0 and variances[0] <= LEAST_VARIANCE * max(variances[-1], LEAST_VARIANCE)
    if singular or not np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0):
        raise ModelFileError(f"array {name!r} is not a covariance matrix")
    return matrix


def take_starts(
    arrays: Mapping[str, np.ndarray], name: str, n_rows: int, n_entries: int
) -> np.ndarray:
    """Return the checked row pointer of a CSR matrix of n_rows rows and n_entries entries."""
    start = take(arrays, name, np.int64, (n_rows + 1,), low=0, high=n_entries)
    if start[0] != 0 or start[-1] != n_entries or (np.diff(start) < 0).any():
        raise ModelFileError(f"array {name!r} does not divide {n_entries} entries into rows")
    return start


def take_rows(
    arrays: Mapping[str, np.ndarray],
    start: str,
    columns: str,
    n_rows: int,
    n_columns: int,
    dtype: Any = np.int64,
) -> tuple[np.ndarray, np.ndarray]:
    """Return row pointer and column numbers of a CSR matrix: within bounds, none twice in a row."""
    held = take(arrays, columns, dtype, (None,), low=0, high=n_columns - 1)
    starts = take_starts(arrays, start, n_rows, held.size)
    cells = np.repeat(np.arange(n_rows), np.diff(starts)) * n_columns + held
    if np.unique(cells).size < cells.size:
        raise ModelFileError(f"array {columns!r} names a column twice in a row")
    return starts, held


def ids_to_arrays(name: str, ids: pd.Index) -> dict[str, np.ndarray]:
    """Turn original ids (integers or strings) into arrays that can be stored."""
    if ids.dtype.kind in "iu":
        return {name: ids.to_numpy()}
    strings = ids.tolist()
    if not all(isinstance(key, str) for key in strings):
        raise ArgumentError(
            f"{name} of type {ids.dtype} cannot be saved: ids must be integers or strings"
        )
    return texts_to_arrays(name, strings)


def ids_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> pd.Index:
    """Return the ids that `ids_to_arrays` stored."""
    import pandas as pd

    if name in arrays:
        if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
            raise ModelFileError(f"array {name!r} does not hold ids")
        ids = pd.Index(arrays[name])
    else:
        ids = pd.Index(texts_from_arrays(name, arrays))
    if not ids.is_unique:
        raise ModelFileError(f"{name} holds an id twice")
    return ids


def texts_to_arrays(name: str, texts: Iterable[str]) -> dict[str, np.ndarray]:
    """Turn strings into two arrays: their joint UTF-8 bytes, and where each string ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {
        f"{name}.text": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}.ends": ends.reshape(-1),
    }


def texts_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Return the strings that `texts_to_arrays` stored."""
    text = take(arrays, f"{name}.text", np.uint8, (None,)).tobytes()
    ends = take(arrays, f"{name}.ends", np.int64, (None,), low=0, high=len(text))
    starts = np.concatenate([[0], ends])[:-1]
    if (starts > ends).any() or (ends[-1] if ends.size else 0) != len(text):
        raise ModelFileError(f"array '{name}.ends' does not divide the text into strings")
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairs]
