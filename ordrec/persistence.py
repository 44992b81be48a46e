"""Models in files, without pickle.

A model file is a zip archive of numpy's ``.npy`` members, none of them compressed, and one
``ordrec.json``: format, version, kind of model, the sha256 of each member, and the model's own
metadata. ``numpy.load`` reads the arrays too. Loading a stranger's file runs no code of his:
there are no pickles, the kind must be one of a fixed table, nothing is unpacked to disk, and
reading takes no more memory than the file is long. (A `RatingPredictor` then sums up its Grams
again, which take as much memory as they did in training.)

To make a class storable, give it two methods and a name:

* ``to_state(self)`` returns ``(arrays, metadata)``: a dict of numpy arrays (numbers, booleans),
  and a dict of what json can hold;
* ``from_state(cls, arrays, metadata)``, a class method, makes the model again. It must trust
  nothing: `take` checks type, shape and range of an array, since compiled loops do not;
* a line in the table of models, `ordrec.recommend.registry`, or a call of
  ``register("Name", "package.module:Class")``.

`ids_to_arrays` and `ids_from_arrays` do this for user and item ids, `texts_to_arrays` for any
strings, `state_of` and `model_of` for a model inside another, `take_rows` for rows of a table.
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
LARGEST = 1e100  # of stored floats: sums of their products must stay finite
LEAST_VARIANCE = 1e-14  # of the largest in a covariance matrix
PLAIN_KINDS = "biuf"  # booleans, integers, floats
REMEDY = "get the file again, or fit and save the model anew"

# Modules whose ``storable_kinds`` lists classes; imported by name, as they lie to the right.
_TABLES = ("ordrec.recommend.registry",)
_REGISTERED: dict[str, str] = {}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal models make equal files
_BROKEN = (zipfile.BadZipFile, struct.error, OSError, EOFError, ValueError, KeyError, IndexError,
           NotImplementedError, RuntimeError, OverflowError, SyntaxError, TypeError)  # fmt: skip
_UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError,
          MemoryError)  # fmt: skip


# ---- models ----------------------------------------------------------------------------


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to a file, replacing it in one step.

    Parameters
    ----------
    model : object
        Of a registered class.
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
    """Read a model that `save` wrote.

    Raises
    ------
    ModelFileError
        If the file is damaged, altered, of an unknown version, or no model at all.
    """
    arrays, metadata = load_arrays(path)
    try:
        return model_of(arrays, metadata)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}; {REMEDY}") from None
    except _UNFIT as error:
        kind = str(metadata.get("kind"))[:50]
        raise ModelFileError(
            f"{path}: its contents do not make a {kind}: {error!r}; {REMEDY}"
        ) from error


def state_of(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays of a model of a registered class, and metadata that say which class it is."""
    kind, homes = type(model).__name__, _homes()
    if homes.get(kind) != f"{type(model).__module__}:{kind}":
        raise ArgumentError(f"a {kind} cannot be saved: only {', '.join(homes)} can")
    arrays, metadata = model.to_state()
    return arrays, {"kind": kind, "state": metadata}


def model_of(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> Any:
    """The model that `state_of` took apart; raises what ``from_state`` does."""
    kind, state, homes = metadata.get("kind"), metadata.get("state"), _homes()
    if not isinstance(kind, str) or kind not in homes or not isinstance(state, dict):
        raise ModelFileError(f"holds a {str(kind)[:50]!r}, which is none of {', '.join(homes)}")
    module, _, name = homes[kind].partition(":")
    return getattr(import_module(module), name).from_state(arrays, state)


def register(kind: str, home: str) -> None:
    """Let `save` and `load` know a class: its name, and ``"package.module:Class"``."""
    taken = _homes().get(kind, home)
    if taken != home:
        raise ArgumentError(f"the kind {kind!r} is taken by {taken}: choose another name")
    _REGISTERED[kind] = home


def _homes() -> dict[str, str]:
    """Where each storable class lives: a file can only ask for one of these."""
    tables = [import_module(module).storable_kinds() for module in _TABLES]
    return dict(itertools.chain.from_iterable(table.items() for table in (*tables, _REGISTERED)))


# ---- arrays and metadata -----------------------------------------------------------------


def save_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> None:
    """Write arrays of numbers and what json can hold to a file, replacing it in one step.

    Parameters
    ----------
    path : str or Path
    arrays : mapping of str to ndarray
        Names of letters, digits, dots, hyphens and underscores.
    metadata : mapping
        Strings, finite numbers, booleans, None, lists and mappings of them.
    """
    members = {name: _npy_bytes(name, array) for name, array in arrays.items()}
    if len(members) >= MAX_MEMBERS:
        raise ArgumentError(f"at most {MAX_MEMBERS - 1} arrays go in a file, got {len(members)}")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        "metadata": dict(metadata),
    }
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"metadata must be what json can hold: {error}") from None
    if len(text) > MAX_HEADER_BYTES:
        raise ArgumentError(f"metadata takes {len(text)} bytes: put what is long into arrays")
    with (
        replace_file(path) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(HEADER, _EPOCH), text)
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), data)


def load_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `save_arrays` wrote: the arrays and the metadata.

    Raises
    ------
    ModelFileError
        Naming the file and the place in it where something is wrong.
    """
    if not Path(path).is_file():
        raise ModelFileError(f"{path}: there is no such file: check the name")
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
    except (*_BROKEN, RecursionError, MemoryError) as error:
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
    """Members by array name, nothing else than what `save_arrays` would write."""
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise ModelFileError(f"{path}: {len(entries)} members, more than {MAX_MEMBERS}")
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = HEADER if entry.filename == HEADER else entry.filename.removesuffix(".npy")
        if name != HEADER and not (_NAME.fullmatch(name) and entry.filename == f"{name}.npy"):
            raise ModelFileError(f"{path}: {entry.filename[:100]!r} is not a name of this format")
        if name in members:
            raise ModelFileError(f"{path}: {entry.filename} is there twice")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ModelFileError(f"{path}: {entry.filename} is compressed, which ordrec never does")
        members[name] = entry
    if HEADER not in members:
        raise ModelFileError(f"{path}: no {HEADER} in it, so it is not a model of ordrec")
    if members[HEADER].file_size > MAX_HEADER_BYTES:
        raise ModelFileError(f"{path}: {HEADER} is longer than {MAX_HEADER_BYTES} bytes")
    if sum(entry.file_size for entry in entries) > os.path.getsize(path):
        raise ModelFileError(f"{path}: its members claim more bytes than the file has")
    return members


def _checked_header(path: Any, data: bytes, names: set[str]) -> dict[str, Any]:
    header = json.loads(data)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path}: {HEADER} does not say {FORMAT!r}")
    if header.get("version") != VERSION:
        raise ModelFileError(
            f"{path}: has version {str(header.get('version'))[:20]} of the format and this ordrec "
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
    """The array of an npy member whose header and length agree; allocates nothing before."""
    stream = io.BytesIO(data)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(stream)
    if version not in readers:
        raise ModelFileError(f"{place}: npy version {version} is not in use here")
    shape, fortran, dtype = readers[version](stream, max_header_size=MAX_NPY_HEADER)
    if dtype.kind not in PLAIN_KINDS or dtype.hasobject or dtype.shape:
        raise ModelFileError(f"{place}: has the type {dtype}; only plain numbers may be stored")
    size = dtype.itemsize
    for side in shape:
        size *= side
    start = stream.tell()
    if min(shape, default=0) < 0 or size != len(data) - start:
        raise ModelFileError(f"{place}: header says {size} bytes, {len(data) - start} are there")
    array = np.frombuffer(bytearray(memoryview(data)[start:]), dtype=dtype)
    return array.reshape(shape, order="F" if fortran else "C")


# ---- what from_state needs -----------------------------------------------------------------


def take(
    arrays: Mapping[str, np.ndarray],
    name: str,
    dtype: Any,
    shape: tuple[int | None, ...],
    *,
    low: float | None = None,
    high: float | None = None,
) -> np.ndarray:
    """An array of a loaded file, after checking it.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    name : str
    dtype : data type
        What the result has; the stored one must be of the same kind.
    shape : tuple
        None stands for any length.
    low, high : float, optional
        Bounds of the entries, both included. Floats must be finite in any case, and so small
        that no product of two of them is infinite.

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
        raise ModelFileError(f"array {name!r} holds NaN or infinite numbers, or beyond {LARGEST:g}")
    if array.size and (
        (low is not None and array.min() < low) or (high is not None and array.max() > high)
    ):
        raise ModelFileError(f"array {name!r} has entries outside {low}..{high}")
    return np.ascontiguousarray(array, dtype=wanted)


def take_covariance(arrays: Mapping[str, np.ndarray], name: str, n: int) -> np.ndarray:
    """A symmetric matrix of n rows that is safe to invert: no direction has next to no variance."""
    matrix = take(arrays, name, np.float64, (n, n))
    variances = np.linalg.eigvalsh(matrix)
    singular = n > 0 and variances[0] <= LEAST_VARIANCE * max(variances[-1], LEAST_VARIANCE)
    if singular or not np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0):
        raise ModelFileError(f"array {name!r} is no covariance matrix")
    return matrix


def take_starts(
    arrays: Mapping[str, np.ndarray], name: str, n_rows: int, n_entries: int
) -> np.ndarray:
    """Where each of n_rows rows begins among n_entries, and the end, as in a CSR matrix."""
    start = take(arrays, name, np.int64, (n_rows + 1,), low=0, high=n_entries)
    if start[0] != 0 or start[-1] != n_entries or (np.diff(start) < 0).any():
        raise ModelFileError(f"array {name!r} does not cut {n_entries} entries into rows")
    return start


def take_rows(
    arrays: Mapping[str, np.ndarray],
    start: str,
    columns: str,
    n_rows: int,
    n_columns: int,
    dtype: Any = np.int64,
) -> tuple[np.ndarray, np.ndarray]:
    """Where each row begins, and the columns in it: each within bounds, none twice in a row."""
    held = take(arrays, columns, dtype, (None,), low=0, high=n_columns - 1)
    starts = take_starts(arrays, start, n_rows, held.size)
    cells = np.repeat(np.arange(n_rows), np.diff(starts)) * n_columns + held
    if np.unique(cells).size < cells.size:
        raise ModelFileError(f"array {columns!r} names a column twice in a row")
    return starts, held


def ids_to_arrays(name: str, ids: pd.Index) -> dict[str, np.ndarray]:
    """Arrays that hold original ids: whole numbers, or strings."""
    if ids.dtype.kind in "iu":
        return {name: ids.to_numpy()}
    strings = ids.tolist()
    if not all(isinstance(key, str) for key in strings):
        raise ArgumentError(
            f"{name} of type {ids.dtype} cannot be saved: ids must be integers or strings"
        )
    return texts_to_arrays(name, strings)


def ids_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> pd.Index:
    """The ids that `ids_to_arrays` stored."""
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
    """Arrays that hold strings: all of them as utf-8, and where each ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {
        f"{name}.text": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}.ends": ends.reshape(-1),
    }


def texts_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """The strings that `texts_to_arrays` stored."""
    text = take(arrays, f"{name}.text", np.uint8, (None,)).tobytes()
    ends = take(arrays, f"{name}.ends", np.int64, (None,), low=0, high=len(text))
    starts = np.concatenate([[0], ends])[:-1]
    if (starts > ends).any() or (ends[-1] if ends.size else 0) != len(text):
        raise ModelFileError(f"array '{name}.ends' does not cut the text into strings")
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairs]
