"""Read delimited text files: fast for plain numbers, and as strings for other tables.

Rating files are long and simple: unsigned integers, one decimal number, a separator. A compiled
loop parses their bytes at the speed of the disk, in pieces of a few megabytes, reports the line
of the first fault, and never holds the text of the whole file.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, Literal

import numpy as np
import pandas as pd

from ordrec.data.formats.archives import Source
from ordrec.errors import DataError
from ordrec.runtime.compiling import compiled

__all__ = [
    "MAX_DIGITS",
    "Kind",
    "is_whole_number",
    "numbers",
    "read_columns",
    "read_text_table",
    "whole_numbers",
]

PIECE_BYTES = 8 * 1024**2
MAX_DIGITS = 18  # any number of 18 digits fits into int64

Kind = Literal["whole", "decimal"]

_FAULTS = {
    1: "is not a whole number of at most 18 digits",
    2: "is not a decimal number of at most 18 digits",
    3: "has the wrong number of fields",
}


def read_columns(
    source: Source,
    member: str,
    columns: Mapping[str, Kind],
    separator: str,
    *,
    header: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Return the columns of a text file of numbers, by name.

    Parameters
    ----------
    source : Source
    member : str
        The file; ``.gz`` is decompressed.
    columns : mapping of str to {"whole", "decimal"}
        Names and kinds of all fields of a line, in order. Whole numbers have no sign.
    separator : str
        One character, or the same one twice (``::``).
    header : sequence of str, optional
        The names that the first line must have; by default there is no header.

    Raises
    ------
    DataError
        Naming the file and the first line that is not as declared.
    """
    place = source.place(member)
    decimal = np.array([kind == "decimal" for kind in columns.values()])
    pieces: dict[str, list[np.ndarray]] = {name: [] for name in columns}
    line = 1
    with source.open(member) as stream:
        if header is not None:
            _check_header(stream, place, header, separator)
            line += 1
        for text in _whole_lines(stream, place):
            rows, line = _parse_piece(text, decimal, columns, separator, place, line)
            for name, part in zip(columns, rows, strict=True):
                pieces[name].append(part)
    return {name: _joined(pieces.pop(name)) for name in columns}


def _check_header(stream: BinaryIO, place: str, header: Sequence[str], separator: str) -> None:
    first = stream.readline(1 << 16).decode("utf-8-sig", "replace").strip()
    if [name.strip().strip('"') for name in first.split(separator)] != list(header):
        raise DataError(
            f"{place}, line 1: expected the header {separator.join(header)!r}, found {first[:80]!r}"
        )


def _whole_lines(stream: BinaryIO, place: str) -> Iterator[np.ndarray]:
    """Yield pieces of the file, each ending at a line end, as arrays of bytes."""
    buffer = np.empty(PIECE_BYTES, dtype=np.uint8)
    carried_over = 0
    while True:
        got = _fill(stream, memoryview(buffer)[carried_over:])  # type: ignore[arg-type]
        filled = carried_over + got
        if filled == 0:
            return
        if filled < buffer.size:  # the end of the file: its last line may lack "\n"
            yield buffer[:filled]
            return
        end = bytes(buffer[-(1 << 16) :]).rfind(b"\n")
        if end < 0:
            raise DataError(f"{place}: a line is longer than 65536 bytes: not a rating file")
        end += buffer.size - (1 << 16) + 1
        yield buffer[:end]
        carried_over = buffer.size - end
        buffer[:carried_over] = buffer[end:].copy()


def _fill(stream: BinaryIO, view: memoryview) -> int:
    """Read until the view is full or the file ends; return the number of bytes read."""
    total = 0
    while total < len(view):
        got = stream.readinto(view[total:])  # type: ignore[attr-defined]
        if not got:
            break
        total += got
    return total


def _parse_piece(
    text: np.ndarray,
    decimal: np.ndarray,
    columns: Mapping[str, Kind],
    separator: str,
    place: str,
    line: int,
) -> tuple[list[np.ndarray], int]:
    """Return the columns of one piece, and the number of the line after it."""
    n_rows = text.size // (2 * len(columns)) + 1  # an upper bound; untouched pages cost nothing
    integers = np.empty((int((~decimal).sum()), n_rows), dtype=np.int64)
    floats = np.empty((int(decimal.sum()), n_rows), dtype=np.float64)
    rows, lines, fault, column, start = _parse(
        text, decimal, ord(separator[0]), len(separator), integers, floats
    )
    if fault:
        raise DataError(_fault_message(text, place, line + lines, fault, column, start, columns))
    next_integers, next_floats = iter(integers), iter(floats)
    parts = [
        _compact(next(next_floats if is_decimal else next_integers)[:rows])
        for is_decimal in decimal
    ]
    return parts, line + lines


def _compact(part: np.ndarray) -> np.ndarray:
    """Return a copy, as int32 if the numbers fit."""
    if part.dtype == np.int64 and part.size and part.max() < 2**31:
        return part.astype(np.int32)
    return part.copy()


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0)])


def _fault_message(
    text: np.ndarray,
    place: str,
    line: int,
    fault: int,
    column: int,
    start: int,
    columns: Mapping[str, Kind],
) -> str:
    shown = bytes(text[start : start + 200]).split(b"\n")[0].decode("utf-8", "replace").strip()
    where = f"{place}, line {line}: {shown[:80]!r}"
    if fault == 3:
        return (
            f"{where} {_FAULTS[3]} (expected {len(columns)}: {', '.join(columns)}): "
            "correct or remove the line"
        )
    name = list(columns)[column]
    return f"{where}: the {name} {_FAULTS[fault]}: correct or remove the line"


# ---- tables of text --------------------------------------------------------------------


def read_text_table(
    source: Source,
    member: str,
    separator: str,
    *,
    names: Sequence[str] | None = None,
    encodings: Sequence[str] = ("utf-8",),
    quoted: bool = True,
) -> pd.DataFrame:
    """Return a delimited file as a frame of strings, indexed by line number.

    Without ``names`` the first line is the header. Short rows are filled up with "", long rows
    are an error. Meant for files that do not consist of numbers alone; slower than
    `read_columns`.
    """
    place = source.place(member)
    text = source.text(member, encodings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "error", pd.errors.ParserWarning
            )  # pandas would truncate long rows
            frame = pd.read_csv(
                io.StringIO(text),
                sep=separator,
                header=None,
                names=None if names is None else list(names),
                dtype=str,
                keep_default_na=False,
                na_values=[],
                skip_blank_lines=False,
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                index_col=False,
                engine="c",
                on_bad_lines="error",
            ).fillna("")
    except pd.errors.ParserWarning:
        raise DataError(
            f"{place}: rows have more fields than {', '.join(names or ())}: correct the file"
        ) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        reason = str(error).strip().replace("\n", " ")
        raise DataError(f"{place}: not a table ({reason}): correct or remove the line") from None
    frame.index += 1
    if names is None:
        header = [str(name).strip() for name in frame.iloc[0]]
        if len(set(header)) < len(header):
            raise DataError(f"{place}, line 1: two columns have the same name: {header}")
        frame = frame.iloc[1:].set_axis(header, axis=1)
    return frame[(frame != "").any(axis=1)]


def numbers(column: pd.Series, place: str, *, absent: float | None = None) -> np.ndarray:
    """Parse strings as finite numbers; empty ones become ``absent``, or are an error if None."""
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, copy=True)
    if absent is not None:
        values[(column == "").to_numpy()] = absent
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        at = bad[0]
        raise DataError(
            f"{place}, line {column.index[at]}: {column.name} {column.iloc[at][:40]!r} is not a "
            f"number ({bad.size} such lines): correct or remove the line"
        )
    return values


def whole_numbers(column: pd.Series, place: str) -> np.ndarray:
    """Parse strings as non-negative whole numbers below 2**53."""
    values = numbers(column, place)
    bad = np.flatnonzero((values != np.floor(values)) | (values < 0) | (values >= 2.0**53))
    if bad.size:
        at = bad[0]
        raise DataError(
            f"{place}, line {column.index[at]}: {column.name} {column.iloc[at][:40]!r} is not a "
            "whole number from 0 up: correct or remove the line"
        )
    return values.astype(np.int64)


def is_whole_number(text: str) -> bool:
    """Whether the text consists of at most 18 decimal digits, without a sign.

    Examples
    --------
    >>> is_whole_number("17"), is_whole_number("-17"), is_whole_number("")
    (True, False, False)
    """
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


# ---- the compiled loop --------------------------------------------------------------------------


@compiled
def _parse(text, decimal, separator, width, integers, floats):  # type: ignore[no-untyped-def]
    """Fill the columns; return rows, lines, fault, and column and start of the faulty line."""
    n, n_fields = text.size, decimal.size
    i = rows = lines = 0
    while i < n:
        start = i
        if text[i] == 10 or (text[i] == 13 and (i + 1 == n or text[i + 1] == 10)):
            i += 1 if text[i] == 10 else 2  # an empty line
            lines += 1
            continue
        at_integer = at_float = 0
        for column in range(n_fields):
            is_decimal = decimal[column]
            negative = is_decimal and text[i] == 45 if i < n else False
            if negative:
                i += 1
            first, number = i, 0
            while i < n and 48 <= text[i] <= 57:
                number = number * 10 + (int(text[i]) - 48)
                i += 1
            digits, places = i - first, 0
            if is_decimal and i < n and text[i] == 46:
                i += 1
                first = i
                while i < n and 48 <= text[i] <= 57:
                    number = number * 10 + (int(text[i]) - 48)
                    i += 1
                places = i - first
                digits += places
            if i < n and text[i] == 13 and (i + 1 == n or text[i + 1] == 10):
                i += 1
            ended = i >= n or text[i] == 10
            if digits == 0 or digits > MAX_DIGITS or not (ended or text[i] == separator):
                return rows, lines, 2 if is_decimal else 1, column, start
            if is_decimal:
                value = float(number) / 10.0**places if places else float(number)
                floats[at_float, rows] = -value if negative else value
                at_float += 1
            else:
                integers[at_integer, rows] = number
                at_integer += 1
            if ended != (column == n_fields - 1):
                return rows, lines, 3, column, start
            if not ended:
                for _ in range(width):
                    if i >= n or text[i] != separator:
                        return rows, lines, 3, column, start
                    i += 1
        i += 1
        rows += 1
        lines += 1
    return rows, lines, 0, 0, 0
