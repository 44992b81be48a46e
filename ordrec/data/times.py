"""Read times: seconds or parts of seconds since 1970, dates, or texts of either."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.columns import as_numbers, shown
from ordrec.errors import DataError, callers_level

__all__ = ["as_seconds", "in_seconds", "seconds_of"]

UNITS = ("seconds", "milliseconds", "microseconds", "nanoseconds")
UNIT_LIMITS = (1e11, 1e14, 1e17, 1e20)  # in every unit about the year 5138


def as_seconds(column: pd.Series, name: str) -> np.ndarray:
    """Return a column of times, all of which are known, as whole seconds since 1970.

    Examples
    --------
    >>> as_seconds(pd.Series(["1970-01-02", "1970-01-01T00:01:00Z"]), "when").tolist()
    [86400, 60]
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        missing = np.flatnonzero(column.isna())
        if missing.size:
            raise DataError(
                f"row {missing[0]}: no {name}: fill it in, or pass timestamp=None",
                parameter="timestamp",
            )
        stamps = pd.DatetimeIndex(column)
        if stamps.tz is not None:
            stamps = stamps.tz_convert("UTC").tz_localize(None)
        return stamps.to_numpy("datetime64[s]").astype(np.int64)
    if pd.api.types.is_integer_dtype(column) and not column.hasnans:
        # a copy, since the frame may change later
        return in_seconds(column.to_numpy(np.int64, copy=True), name)
    if _may_be_texts(column):
        missing = np.flatnonzero(column.isna() | (column == ""))
        if missing.size:
            raise DataError(
                f"row {missing[0]}: no {name} ({missing.size} such rows): fill it in, or pass "
                "timestamp=None",
                parameter="timestamp",
            )
        return seconds_of(column, name)
    return in_seconds(as_numbers(column, name), name).astype(np.int64)


def seconds_of(times: Any, name: str = "timestamp") -> np.ndarray:
    """Return times as whole seconds since 1970, 0 for those that are missing or empty.

    Parameters
    ----------
    times : sequence
        Numbers, which may also count parts of a second (see `in_seconds`), dates, or texts of
        either.
    name : str
        For errors.

    Examples
    --------
    >>> seconds_of(["86400", "1970-01-03", ""]).tolist()
    [86400, 172800, 0]
    """
    column = pd.Series(times).reset_index(drop=True)
    known = column.notna().to_numpy(bool)
    if _may_be_texts(column):
        column = column.map(lambda time: time.strip() if isinstance(time, str) else time)
        known = known & (column != "").to_numpy(bool)
        numbers = pd.to_numeric(column.where(known), errors="coerce").to_numpy(np.float64)
        dated = known & ~np.isfinite(numbers)
        dates = pd.to_datetime(column[dated], format="ISO8601", errors="coerce", utc=True)
        _refuse(column, dates.index[dates.isna()].to_numpy(), name)
    elif pd.api.types.is_datetime64_any_dtype(column):
        dated, dates = known, column[known]
        numbers = np.zeros(len(column))
    else:
        dated, dates = np.zeros(len(column), np.bool_), column[:0]
        numbers = column.to_numpy(np.float64, na_value=np.nan)
    seconds = in_seconds(np.where(known & ~dated, numbers, 0.0), name).astype(np.int64)
    if dated.any():
        seconds[dated] = as_seconds(dates, name)
    return seconds


def _may_be_texts(column: pd.Series) -> bool:
    """Whether the values are texts, or Python objects that may be."""
    return not (
        pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)
    )


def _refuse(column: pd.Series, rows: np.ndarray, name: str) -> None:
    if rows.size:
        raise DataError(
            f"row {rows[0]}: {name} {shown(column.iloc[rows[0]])} is neither seconds since 1970 "
            f"nor a date like 2020-12-31 ({rows.size} such rows)"
        )


def in_seconds(times: np.ndarray, name: str = "timestamp") -> np.ndarray:
    """Return times since 1970 in seconds, whether they count seconds or parts of a second.

    Taken for seconds, times in milliseconds would lie in the year 5138 and later. They are
    recognised by that, as are micro- and nanoseconds, and converted with a warning.

    Raises
    ------
    DataError
        If some of the times are in one unit and some in another, or in none.

    Examples
    --------
    >>> in_seconds(np.array([978_300_760, 0])).tolist()
    [978300760, 0]
    """
    size = np.abs(times.astype(np.float64))
    powers = np.searchsorted(UNIT_LIMITS, size, side="right")
    counts = np.bincount(powers[size > 0], minlength=len(UNITS) + 1)
    if not counts[1:].any():
        return times
    usual = int(np.argmax(counts[: len(UNITS)]))
    odd = np.flatnonzero((powers != usual) & (size > 0))
    if odd.size:
        raise DataError(
            f"row {odd[0]}: {name} {times[odd[0]]:g} is not a time in {UNITS[usual]}, as the "
            "others are: correct it, or set it to 0 for unknown"
        )
    warnings.warn(
        f"{name}: read as {UNITS[usual]} since 1970, such as {times[size > 0][0]:.0f}, and "
        "converted to seconds",
        stacklevel=callers_level(),
    )
    return times // 1000**usual
