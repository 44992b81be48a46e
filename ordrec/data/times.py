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
DIGITS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # ways to write a date as a number
YEARS = (1900, 2100)
SPREADSHEET_DAYS = (30_000, 60_000)  # since 1900: the years 1982 to 2064


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
        return _since_1970(stamps.to_numpy("datetime64[s]").astype(np.int64), name)
    if pd.api.types.is_integer_dtype(column) and not column.hasnans:
        # a copy, since the frame may change later
        return in_seconds(column.to_numpy(np.int64, copy=True), name)
    if _may_be_texts(column):
        missing = np.flatnonzero(column.isna().to_numpy(bool) | _is_empty(column))
        if missing.size:
            raise DataError(
                f"row {missing[0]}: no {name} ({missing.size} in all): fill it in, or pass "
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
    if isinstance(times, np.ndarray) and times.dtype == np.float64 and np.isfinite(times).all():
        return in_seconds(times, name).astype(np.int64)  # as models pass them on to each other
    column = pd.Series(times).reset_index(drop=True)
    known = column.notna().to_numpy(bool)
    if _may_be_texts(column):
        column = column.map(_stripped)
        known = known & ~_is_empty(column)
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


def _stripped(time: Any) -> Any:
    """A text without blanks at its ends; integers beyond 64 bits are texts, as pandas has them."""
    if isinstance(time, int) and not -(1 << 63) <= time < 1 << 63:
        return str(time)[:40]
    return time.strip() if isinstance(time, str) else time


def _is_empty(column: pd.Series) -> np.ndarray:
    """Which cells are empty texts; others may be objects that are not compared with texts."""
    return np.array([isinstance(cell, str) and not cell for cell in column], dtype=np.bool_)


def _may_be_texts(column: pd.Series) -> bool:
    """Whether the values are texts, or Python objects that may be."""
    return not (
        pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)
    )


def _refuse(column: pd.Series, rows: np.ndarray, name: str) -> None:
    if rows.size:
        raise DataError(
            f"row {rows[0]}: {name} {shown(column.iloc[rows[0]])} is neither seconds since 1970 "
            f"nor a date like 2020-12-31 ({rows.size} in all)"
        )


def in_seconds(times: np.ndarray, name: str = "timestamp") -> np.ndarray:
    """Return times since 1970 in seconds, whether they count seconds or parts of a second.

    Taken for seconds, times in milliseconds would lie in the year 5138 and later. They are
    recognised by that, as are micro- and nanoseconds, and converted with a warning. So are numbers
    all of which write a date, such as 20201231 or 20201231235959.

    Raises
    ------
    DataError
        If some of the times are in one unit and some in another, or in none; if all are years, or
        days as spreadsheets count them; if one is before 1970.

    Examples
    --------
    >>> in_seconds(np.array([978_300_760, 0])).tolist()
    [978300760, 0]
    """
    _since_1970(times, name)
    size = times.astype(np.float64)
    written = _dates_in_digits(times, size > 0, name)
    if written is not None:
        return written
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


def _since_1970(times: np.ndarray, name: str) -> np.ndarray:
    """Return the times, none of which may be before 1970: for models 0 is no time, nor is less."""
    early = np.flatnonzero(times < 0)
    if early.size:
        raise DataError(
            f"row {early[0]}: {name} {times[early[0]]:.0f} is before 1970 ({early.size} such "
            "rows): set it to 0 if it is unknown, add as many seconds to all times, or pass "
            "timestamp=None to leave times out",
            parameter="timestamp",
        )
    return times


def _dates_in_digits(times: np.ndarray, known: np.ndarray, name: str) -> np.ndarray | None:
    """The seconds of times all of which write a date in digits, such as 20201231; else None."""
    if not known.any():
        return None
    distinct = np.unique(times[known])
    low, high = float(distinct[0]), float(distinct[-1])
    first = f"row {int(np.argmax(known))}: {name} {times[np.argmax(known)]:g}"
    remedy = "write dates like 2020-12-31, or pass timestamp=None to leave times out"
    if YEARS[0] <= low and high <= YEARS[1]:
        raise DataError(
            f"{first}: all times are between {low:g} and {high:g}, which are years rather than "
            f"seconds since 1970: {remedy}",
            parameter="timestamp",
        )
    if SPREADSHEET_DAYS[0] <= low and high <= SPREADSHEET_DAYS[1]:
        raise DataError(
            f"{first}: all times are between {low:g} and {high:g}, which are days of a spreadsheet "
            f"rather than seconds since 1970: {remedy}",
            parameter="timestamp",
        )
    n_digits = len(f"{low:.0f}")
    scale = 10.0 ** (n_digits - 4)
    if n_digits not in DIGITS or not YEARS[0] <= low / scale <= high / scale < YEARS[1] + 1:
        return None
    texts = [f"{time:.0f}" for time in distinct.tolist()]
    dates = pd.to_datetime(pd.Series(texts), format=DIGITS[n_digits], errors="coerce")
    if dates.isna().any():
        return None
    warnings.warn(
        f"{name}: read as dates that are written in digits, such as {texts[0]} for {dates[0]}",
        stacklevel=callers_level(),
    )
    seconds = np.zeros(times.size, dtype=np.int64)
    at = np.searchsorted(distinct, times[known])
    seconds[known] = dates.to_numpy("datetime64[s]").astype(np.int64)[at]
    return seconds
