"""Load ratings, and tables of users or items, from any csv or parquet file with a header."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ordrec.data import Duplicates, Ratings, Scale
from ordrec.data.columns import find_columns
from ordrec.data.formats.archives import Source, open_source, prefix_errors
from ordrec.data.on_disk.partitions import parquet_engine
from ordrec.data.separators import check_separator, header_of, separator_of
from ordrec.data.weights import check_weight_column
from ordrec.errors import ArgumentError, DataError

__all__ = ["load_ratings", "load_side_table", "load_texts"]

LONGEST_HEADER = 1 << 16  # bytes
PARQUET_ERRORS = (OSError, ValueError, KeyError, NotImplementedError)


def load_ratings(
    path: str | Path,
    *,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    timestamp: str | None = "timestamp",
    weight: str | None = None,
    scale: Scale | Iterable[float] | None = None,
    separator: str | None = None,
    duplicates: Duplicates = "error",
    ids: Literal["auto", "text"] = "auto",
    name: str | None = None,
) -> Ratings:
    """Load ratings from a csv (possibly gzipped) or parquet file with a header.

    Parameters
    ----------
    path : path
        The file, or a folder or archive that contains one such file.
    user, item, rating, timestamp : str
        Column names. A timestamp (seconds since 1970, or dates such as 2020-12-31) under its
        default name may be absent; users, items and ratings are also found under other usual
        names, such as user_id, movieId and stars. Other columns are ignored, as are blanks around
        ids.
    weight : str, optional
        The column that says how much each rating counts, in 0..1; see `Ratings`.
    scale : Scale or iterable of float, optional
        The declared rating values; inferred from the data when omitted.
    separator : str, optional
        The character between the fields of a csv; by default a comma, a semicolon, a tab or "|",
        whichever cuts the header into most fields.
    duplicates : {"error", "last", "mean"}
        See `Ratings.from_frame`.
    ids : {"auto", "text"}
        Whether ids in a csv that are all digits become numbers, or stay texts with their leading
        zeros.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("who,what,stars\\nann,tea,5\\nann,soup,2\\nbob,tea,4\\n")
    >>> load_ratings(file, user="who", item="what", rating="stars", scale=range(1, 6))
    <Ratings mine: 2 users x 2 items, 3 ratings (75.00%), Scale(1..5 by 1) | █ ██|>
    """
    check_separator(separator)
    if ids not in ("auto", "text"):
        raise ArgumentError(f'ids must be "auto" or "text", got {ids!r}')
    with open_source(path) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            names, separator = _names(source, file, separator)
            found = find_columns(pd.DataFrame(columns=names), user, item, rating, timestamp)
            if weight is not None:
                check_weight_column(weight, names)
        columns = [name for name in dict.fromkeys((*found, weight)) if name is not None]
        texts = found[:2] if ids == "text" else ()
        frame = _without_blanks(_read_table(source, file, separator, columns, texts), found[:2])
        with _naming_lines(source, file, len(frame)):
            if separator != ",":
                frame = _with_decimal_points(frame, [found[2], weight])
            return Ratings.from_frame(
                frame,
                user=found[0],
                item=found[1],
                rating=found[2],
                timestamp=found[3],
                scale=scale,
                duplicates=duplicates,
                name=name or source.stem,
                weight=weight,
            )


def load_side_table(path: str | Path, *, separator: str | None = None) -> pd.DataFrame:
    """Load a table that describes users or items, one per row, with a column of ids.

    It can be given to `Ratings.from_frame` or `Ratings.with_side_tables`.

    Parameters
    ----------
    path : path
        A csv (possibly gzipped) or parquet file with a header, or a folder or archive that
        contains one such file.
    separator : str, optional
        The character between the fields of a csv; found by itself if omitted.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = file.write_text("item,price\\ntea,2.5\\nsoup,\\n")
    >>> load_side_table(file)["price"].tolist()
    [2.5, nan]
    """
    check_separator(separator)
    with open_source(path) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            _, separator = _names(source, file, separator)
        table = _read_table(source, file, separator)
        if not len(table):
            raise DataError(f"{source.path}: the table has no rows")
        return table


def load_texts(path: str | Path, *, separator: str | None = None) -> pd.DataFrame:
    """Load all columns of a csv file with a header as texts, empty ones as ""."""
    check_separator(separator)
    with open_source(path) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            _, separator = _names(source, file, separator)
        return _read_csv(source, file, separator, dtype=str, keep_default_na=False)


def _only_table(source: Source) -> str:
    files = source.matching(r".*\.(csv|tsv|txt|parquet)")
    if source.single:
        files = list(source.members)
    if len(files) != 1:
        raise DataError(f"{source.path}: contains {len(files)} tables: name one file")
    return files[0]


def _names(source: Source, member: str, separator: str | None) -> tuple[list[str], str]:
    """The names of the columns of a csv or parquet file, and the separator of a csv."""
    if member.lower().endswith(".parquet"):
        return _parquet_names(source, member), separator or ","
    with source.open(member) as stream:
        start = stream.readline(LONGEST_HEADER)
    if len(start) == LONGEST_HEADER:  # hardly a header: pandas says what it is
        return list(_read_csv(source, member, separator or ",").columns), separator or ","
    line = start.decode("utf-8-sig", "replace").rstrip("\r\n")
    if not line:
        raise DataError("not a csv table: its first line is empty")
    separator = separator or separator_of(line)
    names = header_of(line, separator)
    if len(names) > 2 and all(map(_is_number, names)):
        raise DataError(
            f"the first line, {line[:60]!r}, holds numbers and no names: put a line with the names "
            f"of the columns before it, such as {separator.join(('user', 'item', 'rating'))!r}"
        )
    return names, separator


@contextmanager
def _naming_lines(source: Source, member: str, n_rows: int) -> Iterator[None]:
    """Put the file in front of errors, and the line if the error is about a row of a csv."""
    try:
        yield
    except DataError as error:
        place = source.place(member)
        row = re.match(r"row (\d+)\b", str(error))
        if row and not member.lower().endswith(".parquet"):
            with source.open(member) as stream:
                n_lines = sum(1 for line in stream)
            if n_lines == n_rows + 1:  # no empty lines, and no fields of several lines
                place = f"{place}, line {int(row[1]) + 2}"
        raise DataError(f"{place}: {error}") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _without_blanks(frame: pd.DataFrame, ids: Iterable[str]) -> pd.DataFrame:
    """The table without blanks around ids, which would make two of "tea" and "tea "."""
    for name in ids:
        column = frame[name]
        if isinstance(column, pd.Series) and not pd.api.types.is_numeric_dtype(column):
            texts = column.map(lambda key: key.strip() if isinstance(key, str) else key)
            frame = frame.assign(**{name: texts.mask(texts == "")})
    return frame


def _with_decimal_points(frame: pd.DataFrame, names: Iterable[str | None]) -> pd.DataFrame:
    """The table with numbers such as "4,5" in these columns, where commas do not separate fields.

    None is no column.
    """
    for name in names:
        if name is not None and not pd.api.types.is_numeric_dtype(frame[name]):
            texts = frame[name].astype(str).str.replace(",", ".")
            frame = frame.assign(**{name: texts.where(frame[name].notna())})
    return frame


def _read_table(
    source: Source,
    member: str,
    separator: str,
    columns: list[str] | None = None,
    texts: Iterable[str] = (),
) -> pd.DataFrame:
    """These columns of a csv or parquet file, all by default; ``texts`` are not made numbers."""
    if member.lower().endswith(".parquet"):
        return _read_parquet(source, member, columns)
    frame = _read_csv(source, member, separator, dtype=dict.fromkeys(texts, str))
    return frame if columns is None else frame[columns]


def _read_csv(source: Source, member: str, separator: str, **options: Any) -> pd.DataFrame:
    place = source.place(member)
    try:
        with source.open(member) as stream:
            frame = pd.read_csv(
                stream, sep=separator, encoding="utf-8-sig", low_memory=False, **options
            )
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: not UTF-8 ({error.reason}): convert the file") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{place}: not a csv table ({str(error).strip()})") from None
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes surplus fields for row names
        raise DataError(f"{place}: not a csv table: the rows have more fields than the header")
    return frame


def _parquet_names(source: Source, member: str) -> list[str]:
    return _parquet_file(source, member).schema_arrow.names


def _read_parquet(source: Source, member: str, columns: list[str] | None) -> pd.DataFrame:
    file = _parquet_file(source, member)
    try:
        return file.read(columns=columns).to_pandas()
    except PARQUET_ERRORS as error:
        raise _not_parquet(source, member, error) from None


def _parquet_file(source: Source, member: str) -> Any:
    _, parquet = parquet_engine(source.place(member))
    try:
        return parquet.ParquetFile(io.BytesIO(source.read(member)))
    except PARQUET_ERRORS as error:
        raise _not_parquet(source, member, error) from None


def _not_parquet(source: Source, member: str, error: Exception) -> DataError:
    if isinstance(error, DataError):
        return error
    return DataError(f"{source.place(member)}: not a parquet table ({str(error)[:200]})")
