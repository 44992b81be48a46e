"""What the columns of a side table hold: numbers, categories, labels, text, vectors, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.columns import shown
from ordrec.errors import DataError

__all__ = [
    "KINDS",
    "as_numbers",
    "as_vectors",
    "infer_kind",
    "is_missing",
    "labels_of",
    "numbered_columns",
    "separator_of",
    "text_of",
]

KINDS = ("numeric", "categorical", "labels", "text", "vector", "ignore")
LOOKED_AT = 20_000  # rows, evenly spaced, are enough to see what a column holds
FEW_VALUES = 5  # up to this many different numbers are categories, not points on a line
TEXT_WORDS = 8.0  # on average, from which on strings are text
COMMON = 3  # rows that have a value, from which on it is common
COMMON_SHARE = 0.5  # of the rows must have a common value, or the column says who, not what
PARTS_PER_LABEL = 3.0  # occurrences of a label, on average, for "," or ";" to separate labels
NUMBERING = 1.2  # times the number of rows: whole numbers from 0 or 1 up to it number the rows
LEAST_NUMBERED = 8  # columns emb_0, emb_1, ..., from which on they are one vector
SEPARATORS = "|;,"
LARGEST = 1e100  # magnitude of a number: squares must stay finite
SECONDS_PER_YEAR = 365.25 * 86_400


def infer_kind(values: pd.Series) -> tuple[str, str]:
    """The kind of a column, and why it is ignored if it is; "flag" stands for zeros and ones.

    Examples
    --------
    >>> infer_kind(pd.Series(["Comedy|War", "War", None]))
    ('labels', '')
    >>> infer_kind(pd.Series(["Alien", "Heat", "Solaris", "Stalker", "Tenet", "Up"]))
    ('ignore', 'nearly every value is different')
    """
    values = values.iloc[:: 1 + len(values) // LOOKED_AT]
    known = values[~is_missing(values)]
    if known.empty:
        return "ignore", "no values"
    if isinstance(known.dtype, pd.CategoricalDtype):
        return "categorical", ""
    if known.dtype == object and any(map(_is_list, known)):
        return ("vector" if _are_vectors(known) else "labels"), ""
    numbers = as_numbers(known)
    if np.isfinite(numbers).all():
        return _kind_of_numbers(numbers, len(values), str(values.name))
    texts = pd.Series([text_of(value) for value in known], dtype=object)
    counts = texts.value_counts()
    if len(counts) == 1 and len(known) == len(values):
        return "ignore", "the same value everywhere"
    if separator_of(known):
        return "labels", ""
    if np.mean([len(text.split()) for text in texts]) >= TEXT_WORDS:
        return "text", ""
    common = counts[counts >= (2 if len(counts) <= FEW_VALUES else COMMON)].sum()
    if common < COMMON_SHARE * len(known):
        return "ignore", "nearly every value is different"
    return "categorical", ""


def _kind_of_numbers(numbers: np.ndarray, n_rows: int, name: str) -> tuple[str, str]:
    distinct = np.unique(numbers)
    if distinct.size == 1 and numbers.size == n_rows:
        return "ignore", "the same value everywhere"
    if set(distinct) <= {0.0, 1.0}:
        return "flag", ""
    if distinct.size <= FEW_VALUES:
        return "categorical", ""
    whole = bool((distinct == np.floor(distinct)).all())
    if whole and distinct.size == numbers.size:
        numbering = distinct[0] in (0, 1) and distinct[-1] <= NUMBERING * distinct.size
        if numbering or name.lower() == "id" or name.endswith(("_id", "Id", "ID", " id")):
            return "ignore", "an id"
    return "numeric", ""


def is_missing(values: pd.Series) -> np.ndarray:
    """Mask of the values that are missing: null, a blank string, or not a finite number."""
    if pd.api.types.is_numeric_dtype(values):
        return ~np.isfinite(as_numbers(values))
    blank = [isinstance(value, str) and not value.strip() for value in values]
    return values.isna().to_numpy(bool) | np.array(blank, dtype=bool)


def as_numbers(values: pd.Series) -> np.ndarray:
    """The values as floats, dates (also as ISO 8601 strings) in years; NaN where neither."""
    if not pd.api.types.is_datetime64_any_dtype(values):
        numbers = np.full(len(values), np.nan)
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_complex_dtype(values):
            numbers = values.to_numpy(np.float64, na_value=np.nan)
        elif not pd.api.types.is_numeric_dtype(values):
            numbers = np.array([_float(value) for value in values], dtype=np.float64)
        numbers = np.where(np.abs(numbers) <= LARGEST, numbers, np.nan)
        dates = [value if isinstance(value, str | date) else None for value in values]
        if np.isfinite(numbers).any() or not any(map(_like_a_date, dates)):
            return numbers
        values = pd.to_datetime(
            pd.Series(dates, dtype=object), errors="coerce", format="ISO8601", utc=True
        )
    stamps = pd.DatetimeIndex(values)
    if stamps.tz is not None:
        stamps = stamps.tz_convert("UTC").tz_localize(None)
    seconds = (stamps - pd.Timestamp("1970-01-01")).total_seconds()
    return 1970.0 + seconds.to_numpy(np.float64) / SECONDS_PER_YEAR


def _float(value: Any) -> float:
    try:
        return float(value) if isinstance(value, str | Number) else np.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _like_a_date(value: Any) -> bool:
    return isinstance(value, date) or (isinstance(value, str) and value.strip()[:4].isdecimal())


def text_of(value: Any) -> str:
    """The value as text: 3 for 3.0, which a gap in a column makes of 3, and 1 for True."""
    if isinstance(value, str):
        return value
    try:
        return str(int(value)) if _float(value).is_integer() else str(value)
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        return type(value).__name__


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | set | np.ndarray)


def _are_vectors(cells: Iterable[Any]) -> bool:
    """Whether cells are sequences of two or more numbers, some of which are fractions."""
    fractions = False
    for cell in cells:
        if not isinstance(cell, list | tuple | np.ndarray) or len(cell) < 2:
            return False
        numbers = [entry for entry in cell if isinstance(entry, float | np.floating)]
        if any(isinstance(entry, str) for entry in cell):
            return False
        fractions = fractions or bool(numbers)
    return fractions


def as_vectors(values: pd.Series, size: int | None = None) -> np.ndarray:
    """The sequences of numbers in a column as rows; NaN where there is none.

    Parameters
    ----------
    values : Series
        Indexed by id. Missing values are null.
    size : int, optional
        How many numbers there must be in each; by default as many as in the first.

    Raises
    ------
    DataError
        Naming the id whose vector has another length, or a value that is no number.

    Examples
    --------
    >>> as_vectors(pd.Series([[1.0, 2.5], None], index=["tea", "soup"]))
    array([[1. , 2.5],
           [nan, nan]])
    """
    rows: dict[int, np.ndarray] = {}
    like = "in training" if size is not None else ""
    for place, (key, cell) in enumerate(zip(values.index, values, strict=True)):
        if not _is_list(cell):
            if cell is None or cell is pd.NA or cell != cell:
                continue
            raise DataError(
                f"side table: {values.name!r} of {shown(key)} is {shown(cell)}, not a vector: "
                "give a sequence of numbers, or nothing"
            )
        try:
            vector = np.asarray(cell, dtype=np.float64)
        except (TypeError, ValueError):
            vector = np.full(len(cell), np.nan)
        if vector.ndim != 1 or not (np.abs(vector) <= LARGEST).all():
            raise DataError(
                f"side table: the vector {values.name!r} of {shown(key)} holds something that is "
                "no number: fill it in, or leave the whole vector out"
            )
        if size is None:
            size, like = vector.size, f"as that of {shown(key)}"
        if vector.size != size:
            raise DataError(
                f"side table: the vector {values.name!r} of {shown(key)} has {vector.size} "
                f"numbers, not {size} {like}: all must have the same length"
            )
        rows[place] = vector
    result = np.full((len(values), size or 0), np.nan)
    for place, vector in rows.items():
        result[place] = vector
    return result


def numbered_columns(kinds: Mapping[str, str]) -> list[list[str]]:
    """Groups of numeric columns that are numbered without gaps, as ``emb_0`` to ``emb_383``.

    Parameters
    ----------
    kinds : mapping of str to str
        The kind of each column.

    Examples
    --------
    >>> numbered_columns({"year": "numeric"} | {f"emb_{k}": "numeric" for k in range(8)})[0][-1]
    'emb_7'
    """
    stems: dict[str, dict[int, str]] = {}
    for name, kind in kinds.items():
        found = re.fullmatch(r"(.*?\D)(\d{1,6})", name)
        if found and kind == "numeric":
            stems.setdefault(found[1], {})[int(found[2])] = name
    groups = []
    for members in stems.values():
        numbers = sorted(members)
        whole = numbers[-1] - numbers[0] + 1 == len(numbers) and numbers[0] in (0, 1)
        if whole and len(numbers) >= LEAST_NUMBERED:
            groups.append([members[number] for number in numbers])
    return groups


def separator_of(values: Iterable[Any]) -> str:
    """The character that separates labels, "" if the strings are not lists of labels."""
    texts = [value for value in values if isinstance(value, str)]
    texts = texts[:: 1 + len(texts) // LOOKED_AT]
    for separator in SEPARATORS:
        parts = [part for text in texts for part in labels_of(text, separator)]
        if len(parts) <= len(texts):
            continue
        words = np.mean([len(part.split()) for part in parts])
        repeated = len(parts) >= PARTS_PER_LABEL * len(set(parts)) and words < TEXT_WORDS / 2
        if separator == "|" or repeated:
            return separator
    return ""


def labels_of(value: Any, separator: str) -> list[str]:
    """The labels in a cell: a list, or a string divided by the separator ("" for the whole).

    Examples
    --------
    >>> labels_of(" Comedy| War|", "|"), labels_of(3.0, ""), labels_of(None, "")
    (['Comedy', 'War'], ['3'], [])
    """
    if _is_list(value):
        cells = sorted(value, key=str) if isinstance(value, set) else list(value)
        return [label for cell in cells for label in labels_of(cell, "")]
    if isinstance(value, str):
        parts = value.split(separator) if separator else [value]
        return [part.strip() for part in parts if part.strip()]
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return []
    return [text_of(value)]
