"""Load ratings, and tables of users or items, from any csv or parquet file with a header."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ordrec.datasets.archives import Source, open_source, prefix_errors
from ordrec.errors import ArgumentError, DataError
from ordrec.ratings import Duplicates, Ratings, Scale
from ordrec.ratings.partitions import parquet_engine

__all__ = ["load_ratings", "load_side_table"]


def load_ratings(
    path: str | Path,
    *,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    timestamp: str | None = "timestamp",
    scale: Scale | Iterable[float] | None = None,
    separator: str = ",",
    duplicates: Duplicates = "error",
    name: str | None = None,
) -> Ratings:
    """Load ratings from a csv (possibly gzipped) or parquet file with a header.

    Parameters
    ----------
    path : path
        The file, or a folder or archive that contains one such file.
    user, item, rating, timestamp : str
        Column names. A timestamp (seconds since 1970, or dates such as 2020-12-31) under its
        default name may be absent. Other columns are ignored.
    scale : Scale or iterable of float, optional
        The declared rating values; inferred from the data when omitted.
    separator : str
        The character between the fields of a csv.
    duplicates : {"error", "last", "mean"}
        See `Ratings.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("who,what,stars\\nann,tea,5\\nann,soup,2\\nbob,tea,4\\n")
    >>> load_ratings(file, user="who", item="what", rating="stars", scale=range(1, 6))
    <Ratings mine: 2 users x 2 items, 3 ratings (75.00%), Scale(1..5 by 1) | █ ██|>
    """
    if len(separator) != 1:
        raise ArgumentError(f"separator must be one character, got {separator!r}")
    with open_source(path) as source:
        file = _only_table(source)
        columns = [user, item, rating] + ([timestamp] if timestamp is not None else [])
        frame = _read_table(source, file, separator, columns)
        if timestamp is not None and timestamp in frame.columns:
            times = _read_dates(frame[timestamp], source.place(file))
            frame = frame.assign(**{timestamp: times})
        with prefix_errors(source.place(file)):
            return Ratings.from_frame(
                frame,
                user=user,
                item=item,
                rating=rating,
                timestamp=timestamp,
                scale=scale,
                duplicates=duplicates,
                name=name or source.stem,
            )


def load_side_table(path: str | Path, *, separator: str = ",") -> pd.DataFrame:
    """Load a table that describes users or items, one per row, with a column of ids.

    It can be given to `Ratings.from_frame` or `Ratings.with_side_tables`.

    Parameters
    ----------
    path : path
        A csv (possibly gzipped) or parquet file with a header, or a folder or archive that
        contains one such file.
    separator : str
        The character between the fields of a csv.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = file.write_text("item,price\\ntea,2.5\\nsoup,\\n")
    >>> load_side_table(file)["price"].tolist()
    [2.5, nan]
    """
    with open_source(path) as source:
        table = _read_table(source, _only_table(source), separator, None)
        if not len(table):
            raise DataError(f"{source.path}: the table has no rows")
        return table


def _only_table(source: Source) -> str:
    files = source.matching(r".*\.(csv|tsv|txt|parquet)")
    if source.single:
        files = list(source.members)
    if len(files) != 1:
        raise DataError(f"{source.path}: contains {len(files)} tables: name one file")
    return files[0]


def _read_table(
    source: Source, member: str, separator: str, columns: list[str] | None
) -> pd.DataFrame:
    """These columns, where present, of a csv or parquet file; all without ``columns``."""
    if member.lower().endswith(".parquet"):
        return _read_parquet(source, member, columns)
    frame = _read_csv(source, member, separator)
    present = [column for column in columns or () if column in frame.columns]
    return frame[present] if present and len(present) == len(columns or ()) else frame


def _read_csv(source: Source, member: str, separator: str) -> pd.DataFrame:
    place = source.place(member)
    try:
        with source.open(member) as stream:
            frame = pd.read_csv(stream, sep=separator, encoding="utf-8-sig", low_memory=False)
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: not UTF-8 ({error.reason}): convert the file") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{place}: not a csv table ({str(error).strip()})") from None
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes surplus fields for row names
        raise DataError(f"{place}: not a csv table: the rows have more fields than the header")
    return frame


def _read_dates(column: pd.Series, place: str) -> pd.Series:
    """Parse times written as text (ISO 8601); numbers stay as they are."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    try:
        times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    except (ValueError, OverflowError, TypeError) as error:
        raise DataError(f"{place}: unreadable times ({error})") from None
    bad = times.isna()
    if bad.any():
        raise DataError(
            f"{place}: row {column.index[bad][0]}: {column.name} {column[bad].iloc[0]!r} is "
            "neither seconds since 1970 nor a date like 2020-12-31"
        )
    return times


def _read_parquet(source: Source, member: str, columns: list[str] | None) -> pd.DataFrame:
    place = source.place(member)
    _, parquet = parquet_engine(place)
    try:
        file = parquet.ParquetFile(io.BytesIO(source.read(member)))
        names = file.schema_arrow.names
        present = names if columns is None else [column for column in columns if column in names]
        return file.read(columns=present).to_pandas()
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{place}: not a parquet table ({str(error)[:200]})") from None
