"""Read ratings by the name of a data set or by path: one reader for Python and the command line.

`read_ratings` takes a name, a folder of partitions, or a path. `load_path` recognises the format of
a path by the names of its files, and `load_ratings` reads any csv or parquet table with a header.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pandas as pd

from ordrec.data import Duplicates, Ratings, Scale
from ordrec.data.catalogue import describe_dataset, list_datasets, load_dataset
from ordrec.data.columns import (
    USUAL_NAMES,
    Missing,
    find_columns,
    is_usual_name,
    means_no_rating,
    rated_rows,
)
from ordrec.data.events import KIND, checked_events, kind_column
from ordrec.data.formats.archives import Source, open_source, prefix_errors
from ordrec.data.formats.eachmovie import load_eachmovie
from ordrec.data.formats.jester import load_jester
from ordrec.data.formats.movielens import load_movielens
from ordrec.data.formats.movietweetings import load_movietweetings
from ordrec.data.ids import ids_of_texts
from ordrec.data.on_disk.partitions import MANIFEST, parquet_engine
from ordrec.errors import ArgumentError, DataError, DatasetMissing

__all__ = [
    "is_own_table",
    "load_column_names",
    "load_events",
    "load_frame",
    "load_path",
    "load_ratings",
    "load_side_table",
    "load_texts",
    "read_ratings",
]

SEPARATORS = (",", ";", "\t", "|")
BLANK = " "  # any number of blanks
LONGEST_HEADER = 1 << 16  # bytes
PARQUET_ERRORS = (OSError, ValueError, KeyError, NotImplementedError)

# What stands for a missing value in a csv, as pandas has it; but in a column of ids it is an id.
MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
           "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]  # fmt: skip

# Files of which a folder or archive of the format has at least one set.
MOVIELENS = ({"u.data"}, {"ratings.dat", "movies.dat"}, {"ratings.csv", "movies.csv"})
EACHMOVIE = ({"vote.txt"}, {"votes_5055users.csv"}, {"votes_324movies.csv"}, {"eachmovie_triple"})
JOKES = "user,joke,rating"  # the header of Jester's ratings
IMDB_DIGITS = 7  # at least; no MovieLens release has item ids of more than six digits


# ---- names and paths ---------------------------------------------------------------------


def read_ratings(
    data: str | Path, *, folder: str | Path | None = None, offline: bool = False, **options: Any
) -> Ratings:
    """Load ratings by the name of a data set or by path, as every command does.

    Parameters
    ----------
    data : str or path
        One of `list_datasets`; or a folder or file for `load_path`, or a folder of partitions.
    folder : path, optional
        A folder of data sets, where names are searched for first.
    offline : bool
        Whether to stay off the network.
    **options
        For a table of your own: how `load_ratings` reads it, such as ``user="who"``.

    Examples
    --------
    >>> read_ratings("ml-latest-small-2016", offline=True).n_users
    671
    """
    name = str(data)
    if is_own_table(data):
        return load_ratings(data, **options) if options else load_path(data)
    is_known, is_partitioned = name in list_datasets(), (Path(data) / MANIFEST).is_file()
    if not is_known and not is_partitioned:
        if any(mark in name for mark in "/\\.") or not name:
            raise DatasetMissing(f"{name!r}: no such file or folder")
        describe_dataset(name)  # raises an error with the nearest names
    for option in options:
        raise ArgumentError(
            f"{option}= is for tables of your own; how to read {name!r} is known", parameter=option
        )
    if not is_known:
        return Ratings.scan(data).collect()
    loaded = load_dataset(name, folder=folder, offline=offline)
    if not isinstance(loaded, Ratings):
        raise DataError(f"{data} holds a {type(loaded).__name__}, not ratings")
    return loaded


def is_own_table(data: str | Path) -> bool:
    """Whether this is a path, and neither a name of `list_datasets` nor a folder of partitions."""
    path = Path(data)
    return str(data) not in list_datasets() and path.exists() and not (path / MANIFEST).is_file()


def load_path(path: str | Path) -> Ratings:
    """Load a folder or archive of a known format, or any csv or parquet file.

    The formats are MovieLens, MovieTweetings, EachMovie and Jester. Files without characteristic
    names (a csv with the columns user, item, rating) are read by `load_ratings`; call that, or the
    loader of the format, if columns or options differ.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("user,item,rating\\n1,1,5\\n1,2,4\\n2,1,3\\n")
    >>> load_path(file).n_ratings
    3
    """
    with open_source(path) as source:
        names = {
            PurePosixPath(member).name.lower().removesuffix(".gz") for member in source.members
        }
        if _has_imdb_numbers(source):
            return load_movietweetings(source)
        if any(marker_files <= names for marker_files in MOVIELENS):
            return load_movielens(source)
        if any(marker_files <= names for marker_files in EACHMOVIE):
            return load_eachmovie(source)
        return load_jester(source) if _has_jokes(source) else load_ratings(source)


def _has_imdb_numbers(source: Source) -> bool:
    """Whether the items in ratings.dat have IMDb numbers: MovieTweetings, not MovieLens."""
    member = source.find("ratings.dat")
    fields = [] if member is None else _first_line(source, member).split("::")
    return len(fields) == 4 and fields[1].isdecimal() and len(fields[1]) >= IMDB_DIGITS


def _has_jokes(source: Source) -> bool:
    """Whether the only table has the columns of Jester's ratings."""
    tables = [name for name in source.members if name.lower().endswith((".csv", ".csv.gz"))]
    return len(tables) == 1 and _first_line(source, tables[0]).lower().startswith(JOKES)


def _first_line(source: Source, member: str) -> str:
    with source.open(member) as stream:
        return stream.readline(1 << 12).decode("utf-8-sig", "replace").strip()


# ---- tables with a header ----------------------------------------------------------------


def load_ratings(
    path: str | Path | Source,
    *,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    timestamp: str | None = "timestamp",
    weight: str | None = None,
    count: str | None = "count",
    scale: Scale | Iterable[float] | Iterable[str] | None = None,
    separator: str | None = None,
    duplicates: Duplicates = "error",
    ids: Literal["auto", "text"] | tuple[pd.Index, pd.Index] = "auto",
    name: str | None = None,
    encoding: str | None = None,
    missing: Missing = "error",
    no_rating: float | None = None,
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
        ids. A table without ratings is one of what was picked, see `Ratings.from_frame`;
        ``rating=None`` says so.
    weight : str, optional
        The column that says how much each rating counts, in 0..1; see `Ratings`.
    count : str, optional
        For a table without ratings: the column that says how often the user picked the item.
    scale : Scale or iterable of float or str, optional
        The declared rating values; inferred from the data when omitted. Words from the worst to the
        best, such as ["poor", "fair", "good"], are read as 1, 2, 3.
    separator : str, optional
        The character between the fields of a csv; by default a comma, a semicolon, a tab or "|",
        whichever cuts the header into most fields, or blanks if none of them does.
    duplicates : {"error", "last", "mean"}
        See `Ratings.from_frame`.
    ids : {"auto", "text"} or pair of Index
        Whether ids in a csv become numbers if all ids of the column are written as whole numbers,
        without leading zeros, or always stay texts. Or the known ids of users and of items: those
        of the table are read in their types.
    encoding : str, optional
        How the characters of a csv are written, such as "latin-1"; UTF-8 by default.
    missing : {"error", "drop"}
        What to do with rows without a rating; a warning says how many are dropped.
    no_rating : float, optional
        The number that stands for "no rating"; see `Ratings.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("who,what,stars\\nann,tea,5\\nann,soup,2\\nbob,tea,4\\n")
    >>> load_ratings(file, user="who", item="what", rating="stars", scale=range(1, 6))
    <Ratings mine: 2 users x 2 items, 3 ratings (75.00%), Scale(1..5 by 1) | █ ██|>
    """
    _check_separator(separator)
    if isinstance(ids, str) and ids not in ("auto", "text"):
        raise ArgumentError(f'ids must be "auto" or "text", got {ids!r}')
    with _in_utf8(path, encoding) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            names, separator = _names(source, file, separator)
            columns = find_columns(names, user, item, rating, timestamp, weight, count, scale=scale)
            wanted = list(dict.fromkeys(column for column in columns if column is not None))
            _refuse_twins(names, wanted)
        id_columns = (columns.user, columns.item)
        frame = _read_table(source, file, separator, wanted, id_columns)
        with _naming_lines(source, file, len(frame)):
            if columns.rating is not None:
                rated = rated_rows(frame, columns.rating, missing)
                frame = frame if rated is None else frame[rated].reset_index(drop=True)
            for position, column in enumerate(id_columns):
                known = None if isinstance(ids, str) else ids[position]
                frame = _with_ids(frame, column, known, as_texts=ids == "text")
            if separator != ",":
                frame = _with_decimal_points(
                    frame, [columns.rating, columns.weight, columns.n_picks]
                )
            unrated = None
            if columns.rating is not None and no_rating is not None:
                none = means_no_rating(frame, columns.rating, no_rating)
                frame, unrated = frame[~none].reset_index(drop=True), frame[none]
            ratings = Ratings.from_columns(
                frame, columns, scale=scale, duplicates=duplicates, name=name or source.stem
            )
            return ratings if unrated is None else ratings.with_unrated(unrated, columns)


def load_events(
    path: str | Path,
    ratings: Ratings,
    *,
    user: str = "user",
    item: str = "item",
    kind: str | None = KIND,
    timestamp: str | None = "timestamp",
    count: str | None = "count",
    separator: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Load events beside ratings from a csv or parquet file, for `Ratings.with_events`.

    Parameters
    ----------
    path : path
        As in `load_ratings`.
    ratings : Ratings
        Whose ids give those of the events their type.
    user, item, kind, timestamp, count : str
        Column names, as in `Ratings.with_events`.
    separator, encoding : str, optional
        As in `load_ratings`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "views.csv"
    >>> _ = file.write_text("user,item,what\\nann,tea,view\\nann,tea,view\\nbob,soup,cart\\n")
    >>> ratings = Ratings.from_frame(pd.DataFrame({"user": ["ann"], "item": "soup", "rating": 4}),
    ...                              scale=range(1, 6))
    >>> load_events(file, ratings, kind="what")["kind"].tolist()
    ['view', 'view', 'cart']
    """
    _check_separator(separator)
    with _in_utf8(path, encoding) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            names, separator = _names(source, file, separator)
            kind = kind_column(names, kind)
            columns = find_columns(names, user, item, None, timestamp, None, count)
            wanted = [each for each in (*columns, kind) if each is not None]
            _refuse_twins(names, wanted)
        id_columns = (columns.user, columns.item)
        texts = [*id_columns, *([] if kind is None else [kind])]
        frame = _read_table(source, file, separator, list(dict.fromkeys(wanted)), texts)
        with _naming_lines(source, file, len(frame)):
            for column, known in zip(id_columns, (ratings.user_ids, ratings.item_ids), strict=True):
                frame = _with_ids(frame, column, known)
            return checked_events(
                frame, user=columns.user, item=columns.item, kind=kind,
                timestamp=columns.timestamp, count=columns.n_picks,
            )  # fmt: skip


def load_side_table(
    path: str | Path,
    *,
    separator: str | None = None,
    id_column: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Load a table that describes users or items, one per row, with a column of ids.

    It can be given to `Ratings.from_frame` or `Ratings.with_side_tables`.

    Parameters
    ----------
    path : path
        A csv (possibly gzipped) or parquet file with a header, or a folder or archive that
        contains one such file.
    separator : str, optional
        The character between the fields of a csv; found by itself if omitted.
    id_column : str, optional
        The column of ids, if it is not called as ids usually are. Ids keep their leading zeros.
    encoding : str, optional
        How the characters of a csv are written, such as "latin-1"; UTF-8 by default.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = file.write_text("item,price\\ntea,2.5\\nsoup,\\n")
    >>> load_side_table(file)["price"].tolist()
    [2.5, nan]
    """
    return load_frame(
        path,
        lambda name: name == id_column or _is_id_name(name),
        separator=separator,
        encoding=encoding,
    )


def load_frame(
    path: str | Path,
    holds_ids: Callable[[str], bool],
    *,
    separator: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Load all columns of a csv or parquet file with a header.

    Parameters
    ----------
    path : path
        As in `load_side_table`.
    holds_ids : callable
        Whether a column with this name holds ids, which keep their leading zeros.
    separator, encoding : str, optional
        As in `load_side_table`.
    """
    _check_separator(separator)
    with _in_utf8(path, encoding) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            names, separator = _names(source, file, separator)
            _refuse_twins(names, names)
        id_columns = [name for name in names if holds_ids(name)]
        table = _read_table(source, file, separator, texts=id_columns)
        for column in id_columns:
            table = _with_ids(table, column)
        if not len(table):
            raise DataError(f"{source.path}: the table has no rows")
        return table


def load_column_names(path: str | Path) -> list[str]:
    """Load the names of the columns of a csv or parquet file."""
    with open_source(path) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            return _names(source, file, None)[0]


def load_texts(
    path: str | Path, *, separator: str | None = None, encoding: str | None = None
) -> pd.DataFrame:
    """Load all columns of a csv file with a header as texts, empty ones as ""."""
    _check_separator(separator)
    with _in_utf8(path, encoding) as source:
        file = _only_table(source)
        with prefix_errors(source.place(file)):
            names, separator = _names(source, file, separator)
            _refuse_twins(names, names)
        return _read_csv(source, file, separator, dtype=str, keep_default_na=False)


def _in_utf8(path: str | Path | Source, encoding: str | None) -> Source:
    """Open a source; with another encoding, its only table is turned into UTF-8 in memory."""
    source = open_source(path)
    if encoding is None:
        return source
    with source:
        member = _only_table(source)
        try:
            text = source.read(member).decode(encoding)
        except LookupError:
            raise ArgumentError(
                f"encoding must be one that Python knows, such as latin-1, got {encoding!r}"
            ) from None
        except UnicodeError as error:
            raise DataError(
                f"{source.place(member)}: its characters are not {encoding} "
                f"({getattr(error, 'reason', error)}): pass another encoding=",
                parameter="encoding",
            ) from None
    data = text.removeprefix("\ufeff").encode("utf-8", "replace")
    member = re.sub(r"\.(gz|bz2|xz)$", "", member, flags=re.IGNORECASE)
    return Source(source.path, {member: lambda: io.BytesIO(data)}, source.single)


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
    separator = separator or _separator_of(line)
    names = _fields(line, separator)
    named = any(is_usual_name(name, kind) for name in names for kind in USUAL_NAMES)
    if len(names) > 2 and any(map(_is_number, names)) and not named:
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
        raise error.prefixed(place) from None


def _refuse_twins(names: list[str], wanted: Iterable[str]) -> None:
    """Raise an error if one of these columns occurs twice: pandas would take the first."""
    for name in wanted:
        if name and names.count(name) > 1:
            raise DataError(f"two columns are called {name!r}: rename or remove one of them")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_id_name(name: str) -> bool:
    return name.lower() == "id" or is_usual_name(name, "user") or is_usual_name(name, "item")


def _with_ids(
    frame: pd.DataFrame, name: str, known: pd.Index | None = None, *, as_texts: bool = False
) -> pd.DataFrame:
    """The table with ids in this column; those of parquet files have a type already.

    Blanks around ids would make two of "tea" and "tea ".
    """
    column: Any = frame[name]
    if not isinstance(column, pd.Series):  # two columns of one name
        return frame
    if pd.api.types.is_numeric_dtype(column):
        if known is None or column.hasnans or not pd.api.types.is_integer_dtype(column):
            return frame
        column = column.astype(str)
    if not column.map(lambda key: isinstance(key, str)).where(column.notna(), True).all():
        return frame  # parquet files may hold other objects
    if as_texts:
        texts = column.str.strip()
        return frame.assign(**{name: texts.mask(texts == "")})
    return frame.assign(**{name: ids_of_texts(column, known, name).set_axis(frame.index)})


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
    """These columns of a csv or parquet file, all by default.

    Columns of ``texts`` in a csv are not made numbers, and only what is empty there is missing.
    """
    if member.lower().endswith(".parquet"):
        return _read_parquet(source, member, columns)
    texts = list(texts)
    names = _names(source, member, separator)[0]
    frame = _read_csv(
        source,
        member,
        separator,
        dtype=dict.fromkeys(texts, str),
        keep_default_na=False,  # a user may be called "NA" or "null"
        na_values={name: [""] if name in texts else MISSING for name in names},
    )
    return frame if columns is None else frame[columns]


def _read_csv(source: Source, member: str, separator: str, **options: Any) -> pd.DataFrame:
    place = source.place(member)
    try:
        with source.open(member) as stream:
            frame = pd.read_csv(
                stream,
                sep=r"\s+" if separator == BLANK else separator,
                encoding="utf-8-sig",
                low_memory=False,
                **options,
            )
    except UnicodeDecodeError:
        raise _not_utf8(source, member) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{place}: not a csv table ({str(error).strip()})") from None
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes surplus fields for row names
        raise DataError(f"{place}: not a csv table: the rows have more fields than the header")
    return frame


def _not_utf8(source: Source, member: str) -> DataError:
    data = source.read(member)
    try:
        data.decode()
        line = 1
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    return DataError(
        f'{source.place(member)}, line {line}: not UTF-8: pass encoding="latin-1", or whatever '
        "the file was written in",
        parameter="encoding",
    )


def _parquet_names(source: Source, member: str) -> list[str]:
    return _parquet_file(source, member).schema_arrow.names


def _read_parquet(source: Source, member: str, columns: list[str] | None) -> pd.DataFrame:
    file = _parquet_file(source, member)
    try:
        frame = file.read(columns=columns).to_pandas()
        in_index = [name for name in frame.index.names if name is not None]
        return frame.reset_index(level=in_index) if in_index else frame
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


# ---- separators --------------------------------------------------------------------------


def _separator_of(header: str) -> str:
    """Return the separator that cuts a first line into most fields; a comma if none does.

    Blanks are taken for separators only where there are no others, since names may hold them.

    Examples
    --------
    >>> _separator_of("user;item;rating"), _separator_of('"a, b"\\tc\\td')
    (';', '\\t')
    """
    best = max(SEPARATORS, key=lambda separator: len(_fields(header, separator)))
    return BLANK if len(_fields(header, best)) < 2 and len(header.split()) > 2 else best


def _fields(line: str, separator: str) -> list[str]:
    """Return the fields of a line."""
    if separator == BLANK:
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _check_separator(separator: str | None) -> None:
    """Raise an error unless this is one character, or None for the one that is found."""
    if separator is not None and len(separator) != 1:
        raise ArgumentError(f"separator must be one character, got {separator!r}")
