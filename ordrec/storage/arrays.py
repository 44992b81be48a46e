"""The arrays of a file: numbers after checks, and ids and other texts as numbers and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LARGEST",
    "as_in_half",
    "few_values",
    "ids_from_arrays",
    "ids_to_arrays",
    "narrowed",
    "round_to_bytes",
    "take",
    "take_covariance",
    "take_rows",
    "take_starts",
    "texts_from_arrays",
    "texts_to_arrays",
]

LARGEST = 1e100  # magnitude of a stored float: sums of products must stay finite
LARGEST_SINGLE = 1e15  # the same, where the numbers are used in single precision
HALF = float(np.finfo(np.float16).max)
VALUES_OF_A_SIGN, RANGE_IN_BYTES = 127, 4096.0  # of numbers in a byte each
MOST_CODED, SEEN_FIRST = 256, 1 << 14  # values of an array, and among how many entries they are
LEAST_CODED = 1024  # entries, below which an array is short enough
LEAST_VARIANCE = 1e-14  # smallest eigenvalue of a covariance, relative to the largest


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
    if wanted.kind == "f":
        largest = LARGEST if wanted.itemsize > 4 else LARGEST_SINGLE
        if not (np.abs(array, dtype=np.float64) <= largest).all():
            raise ModelFileError(
                f"array {name!r} holds NaN, infinity, or numbers beyond {largest:g}"
            )
    if array.size and (
        (low is not None and array.min().item() < low)
        or (high is not None and array.max().item() > high)
    ):
        raise ModelFileError(f"array {name!r} has entries outside {low}..{high}")
    return np.ascontiguousarray(array, dtype=wanted)


def narrowed(array: np.ndarray) -> np.ndarray:
    """Return integers in two, four or eight bytes, and numbers in half precision if they fit it.

    Examples
    --------
    >>> narrowed(np.array([0, 7, 300])).dtype, narrowed(np.array([0.5, 0.25])).dtype
    (dtype('int16'), dtype('float16'))
    >>> narrowed(np.array([0.5, 0.2])).dtype
    dtype('float64')
    """
    if array.dtype.kind == "f" and array.size:
        with np.errstate(over="ignore"):
            half = array.astype(np.float16)
        return half if np.array_equal(half, array) else array
    if array.dtype.kind != "i" or not array.size:
        return array
    most = max(int(array.max()), -1 - int(array.min()))
    size = next(size for size in (2, 4, 8) if most < 1 << (8 * size - 1))
    return array if size >= array.itemsize else array.astype(f"i{size}")


def as_in_half(array: np.ndarray) -> np.ndarray:
    """Return numbers rounded to half precision, in their own type."""
    return np.clip(array, -HALF, HALF).astype(np.float16).astype(array.dtype)


def round_to_bytes(table: np.ndarray) -> None:
    """Round the numbers of an array, where they are, to few values, whose codes take a byte each.

    The values are 0 and 127 of each sign, in equal ratios from the largest magnitude down to
    1/4096 of it, all of them in half precision. A number is thus changed by at most 3.4 %, and by
    a fiftieth in the mean; one below half of the smallest value becomes 0.

    Examples
    --------
    >>> table = np.array([[1.0, 0.5, -0.01, 1e-5]], dtype=np.float32)
    >>> round_to_bytes(table)
    >>> table.tolist()
    [[1.0, 0.48388671875, -0.0098419189453125, 0.0]]
    """
    rows = np.atleast_2d(table)
    largest = max((float(np.abs(row).max(initial=0.0)) for row in rows), default=0.0)
    magnitudes = float(np.float16(min(largest, HALF))) * RANGE_IN_BYTES ** -np.linspace(
        0.0, 1.0, VALUES_OF_A_SIGN
    )
    values = np.unique(np.concatenate([-magnitudes, [0.0], magnitudes]).astype(np.float16))
    # the value next to each number of half precision, by the bits of that number
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (values[1:].astype(np.float64) + values[:-1]) / 2
    nearest = values[np.searchsorted(middles, np.nan_to_num(numbers))].astype(table.dtype)
    for row in rows:
        row[:] = nearest[np.clip(row, -HALF, HALF).astype(np.float16).view(np.uint16)]


def few_values(array: np.ndarray) -> np.ndarray | None:
    """Return the values that an array of floats takes, if a byte tells which, and that is shorter.

    Examples
    --------
    >>> few_values(np.tile([0.5, 0.25], 1000)).tolist()
    [0.25, 0.5]
    >>> few_values(np.linspace(0, 1, 1000)) is None
    True
    """
    if array.dtype.kind != "f" or array.size < LEAST_CODED:
        return None
    flat = array.reshape(-1)
    some = np.unique(flat[:SEEN_FIRST])
    if some.size > MOST_CODED:
        return None
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    if np.array_equal(half, array):  # as many numbers as there are bits of half precision
        there = np.bincount(half.reshape(-1).view(np.uint16), minlength=1 << 16) > 0
        some = np.unique(np.flatnonzero(there).astype(np.uint16).view(np.float16))
        return some if some.size <= MOST_CODED else None
    codes = np.minimum(np.searchsorted(some, flat), some.size - 1)
    return some if np.array_equal(some[codes], flat) else None


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
    if not (np.diff(cells) > 0).all():  # columns need not ascend
        cells.sort()
        if (np.diff(cells) == 0).any():
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
