"""The MovieLens releases: 100K, 1M, 10M, 20M, 25M, 32M and the "latest" ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from ordrec.data import Duplicates, Ratings, Scale
from ordrec.data.formats.archives import Source, open_source, prefix_errors
from ordrec.data.formats.delimited import Kind, is_whole_number, read_columns
from ordrec.errors import DataError

__all__ = ["genre_flags", "load_movielens"]

STARS = Scale.regular(1, 5)
HALF_STARS = Scale.regular(0.5, 5, 0.5)

RATING_COLUMNS: dict[str, Kind] = {
    "user": "whole",
    "item": "whole",
    "rating": "decimal",
    "timestamp": "whole",
}
_CSV_HEADER = ("userId", "movieId", "rating", "timestamp")
_FOLDS_100K = ("u1", "u2", "u3", "u4", "u5", "ua", "ub")
_GENRES_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime",
    "Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery",
    "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
_OCCUPATIONS_1M = (
    "other", "academic/educator", "artist", "clerical/admin", "college/grad student",
    "customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker",
    "K-12 student", "lawyer", "programmer", "retired", "sales/marketing", "scientist",
    "self-employed", "technician/engineer", "tradesman/craftsman", "unemployed", "writer",
)  # fmt: skip


def load_movielens(
    path: str | Path | Source,
    *,
    scale: Scale | Iterable[float] | None = None,
    duplicates: Duplicates = "error",
    name: str | None = None,
) -> Ratings:
    """Load any MovieLens release.

    Parameters
    ----------
    path : path
        The folder of the release, its zip, or its rating file alone (``u.data``,
        ``ratings.dat``, ``ratings.csv``, each also with ``.gz``).
    scale : Scale, optional
        By default 1..5 for ``u.data``, 0.5..5 for ``ratings.csv``, and for
        ``ratings.dat`` 0.5..5 if any rating is a half star (10M), else 1..5 (1M).
    duplicates : {"error", "last", "mean"}
        See `Ratings.from_frame`.
    name : str, optional
        By default the name of the folder or file.

    Returns
    -------
    Ratings
        With ``item_table`` (title, year as float, genres as ``"a|b"``) and, for 100K
        and 1M, ``user_table`` (age, gender, occupation, zip). The 1M ages are the lower
        ends of age bands, with 1 for under 18. ``folds`` holds the official parts of
        100K (``u1`` .. ``u5``, ``ua``, ``ub``) and, for 1M, ``pmf_probe`` if
        ``pmf_probe.csv`` is present.

    Examples
    --------
    >>> from ordrec.datasets import load_dataset
    >>> load_dataset("ml-latest-small-2016").n_ratings
    100004
    """
    with open_source(path) as source:
        member, file_format = _rating_file(source)
        columns, tables, default = _READERS[file_format](source, member)
        folds = _published_folds(source, file_format, columns)
        with prefix_errors(source.place(member)):
            return Ratings.from_frame(
                pd.DataFrame(columns, copy=False),
                scale=default if scale is None else scale,
                duplicates=duplicates,
                folds=folds,
                item_table=tables.get("item_table"),
                user_table=tables.get("user_table"),
                name=name or source.stem,
            )


def genre_flags(item_table: pd.DataFrame) -> pd.DataFrame:
    """Return one 0/1 column per genre in the ``genres`` column of an item table.

    Examples
    --------
    >>> genre_flags(pd.DataFrame({"genres": ["Comedy|War", "War", ""]})).to_numpy().tolist()
    [[1, 1], [0, 1], [0, 0]]
    """
    flags = item_table["genres"].fillna("").astype(str).str.get_dummies("|").astype(np.int8)
    return flags.drop(columns="", errors="ignore")


def _rating_file(source: Source) -> tuple[str, str]:
    """The member with the ratings, and the name of its format."""
    if source.single:
        member = next(iter(source.members))
        with source.open(member) as stream:
            start = stream.readline(1 << 12)
        if b"::" in start:
            return member, "ratings.dat"
        return member, "u.data" if b"\t" in start else "ratings.csv"
    found = {name: at for name in _READERS if (at := source.find(name)) is not None}
    if not found:
        raise DataError(
            f"{source.path}: contains no u.data, ratings.dat or ratings.csv: "
            "name the folder or the zip of a MovieLens release"
        )
    if len({PurePosixPath(at).parent for at in found.values()}) > 1:
        raise DataError(
            f"{source.path}: holds more than one release ({', '.join(found.values())}): "
            "name the folder of one"
        )
    file_format = next(iter(found))
    return found[file_format], file_format


# ---- the three formats -----------------------------------------------------------------

Tables = dict[str, pd.DataFrame | None]


def _read_100k(source: Source, member: str) -> tuple[dict[str, np.ndarray], Tables, Scale]:
    columns = read_columns(source, member, RATING_COLUMNS, "\t")
    return columns, {"item_table": _items_100k(source), "user_table": _users_100k(source)}, STARS


def _read_dat(source: Source, member: str) -> tuple[dict[str, np.ndarray], Tables, Scale]:
    columns = read_columns(source, member, RATING_COLUMNS, "::")
    rating = columns["rating"]
    scale = STARS if (rating == np.floor(rating)).all() else HALF_STARS
    tables = {"item_table": dat_items(source), "user_table": _users_1m(source)}
    return columns, tables, scale


def _read_csv(source: Source, member: str) -> tuple[dict[str, np.ndarray], Tables, Scale]:
    columns = read_columns(source, member, RATING_COLUMNS, ",", header=_CSV_HEADER)
    return columns, {"item_table": _items_csv(source)}, HALF_STARS


_READERS = {"u.data": _read_100k, "ratings.dat": _read_dat, "ratings.csv": _read_csv}


# ---- movies ----------------------------------------------------------------------------


def _items_100k(source: Source) -> pd.DataFrame | None:
    member = source.side_file("u.item")
    if member is None:
        return None
    rows = []
    for line, fields in _split_lines(source, member, "|", ("latin-1",), 24):
        flags = fields[5:]
        if not set(flags) <= {"0", "1"}:
            raise DataError(f"{source.place(member)}, line {line}: genre flags must be 0 or 1")
        genres = [g for g, flag in zip(_GENRES_100K, flags, strict=True) if flag == "1"]
        year = title_year(fields[1])
        if np.isnan(year) and fields[2][-4:].isdecimal():  # such as 01-Jan-1995
            year = float(fields[2][-4:])
        rows.append((_id(fields[0], source, member, line), fields[1], year, "|".join(genres)))
    return item_frame(rows)


def dat_items(source: Source) -> pd.DataFrame | None:
    """Return the items in ``movies.dat`` of MovieLens 1M, 10M and MovieTweetings, or None.

    1M is latin-1, the others are UTF-8; text that is valid UTF-8 is read as such.
    """
    member = source.side_file("movies.dat")
    if member is None:
        return None
    rows = []
    for line, fields in _split_lines(source, member, "::", ("utf-8", "latin-1"), 3):
        key = _id(fields[0], source, member, line)
        rows.append((key, fields[1], title_year(fields[1]), _genres(fields[2])))
    return item_frame(rows)


def _items_csv(source: Source) -> pd.DataFrame | None:
    member = source.side_file("movies.csv")
    if member is None:
        return None
    place, rows = source.place(member), []
    reader = csv.reader(io.StringIO(source.text(member), newline=""), strict=True)
    try:
        if next(reader, None) != ["movieId", "title", "genres"]:
            raise DataError(f"{place}, line 1: expected the header 'movieId,title,genres'")
        for fields in reader:
            if len(fields) != 3:
                raise DataError(f"{place}, line {reader.line_num}: expected 3 fields")
            key = _id(fields[0], source, member, reader.line_num)
            rows.append((key, fields[1], title_year(fields[1]), _genres(fields[2])))
    except csv.Error as error:
        raise DataError(f"{place}, line {reader.line_num}: {error}") from None
    return item_frame(rows)


def item_frame(rows: Sequence[tuple[object, str, float, str]]) -> pd.DataFrame:
    """Make an item table, with title, year and genres, indexed by id."""
    ids, titles, years, genres = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pd.DataFrame(
        {
            "title": pd.array(titles, dtype=object),
            "year": np.array(years, dtype=np.float64),
            "genres": pd.array(genres, dtype=object),
        },
        index=pd.Index(ids, name="item"),
    )


def title_year(title: str) -> float:
    """Return the year in brackets at the end of a title, or NaN.

    Examples
    --------
    >>> title_year("Heat (1995)"), title_year("Fawlty Towers (1975-1979)")
    (1995.0, 1975.0)
    """
    end = title.rstrip()
    start = end.rfind("(")
    if start >= 0 and end.endswith(")") and end[start + 1 : start + 5].isdecimal():
        return float(end[start + 1 : start + 5])
    return float("nan")


def _genres(text: str) -> str:
    return "" if text == "(no genres listed)" else text


# ---- users -----------------------------------------------------------------------------


def _users_100k(source: Source) -> pd.DataFrame | None:
    member = source.side_file("u.user")
    if member is None:
        return None
    rows = [
        (
            _id(fields[0], source, member, line),
            _id(fields[1], source, member, line),
            *fields[2:],
        )
        for line, fields in _split_lines(source, member, "|", ("latin-1",), 5)
    ]
    frame = pd.DataFrame(rows, columns=["user", "age", "gender", "occupation", "zip"])
    return frame.set_index("user")


def _users_1m(source: Source) -> pd.DataFrame | None:
    member = source.side_file("users.dat")
    if member is None:
        return None
    rows = []
    for line, fields in _split_lines(source, member, "::", ("latin-1",), 5):
        user, age, job = (_id(fields[at], source, member, line) for at in (0, 2, 3))
        if job >= len(_OCCUPATIONS_1M):
            raise DataError(f"{source.place(member)}, line {line}: no occupation {job} (0..20)")
        rows.append((user, age, fields[1], _OCCUPATIONS_1M[job], fields[4]))
    frame = pd.DataFrame(rows, columns=["user", "age", "gender", "occupation", "zip"])
    return frame.set_index("user")


def _split_lines(
    source: Source, member: str, separator: str, encodings: tuple[str, ...], n_fields: int
) -> list[tuple[int, list[str]]]:
    """Return line numbers and fields of the lines that are not empty."""
    parsed = []
    for line, text in enumerate(source.text(member, encodings).split("\n"), start=1):
        fields = text.rstrip("\r").split(separator)
        if len(fields) == n_fields:
            parsed.append((line, fields))
        elif text.strip():
            raise DataError(
                f"{source.place(member)}, line {line}: expected {n_fields} fields between "
                f"{separator!r}, found {len(fields)}: correct the line"
            )
    return parsed


def _id(text: str, source: Source, member: str, line: int) -> int:
    if not is_whole_number(text):
        raise DataError(f"{source.place(member)}, line {line}: {text[:40]!r} is not a whole number")
    return int(text)


# ---- published partitions --------------------------------------------------------------


def _published_folds(
    source: Source, file_format: str, columns: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    folds: dict[str, np.ndarray] = {}
    if source.single:
        return folds
    if file_format == "u.data":
        for fold in _FOLDS_100K:
            member = source.find(f"{fold}.test")
            if member is not None:
                part = read_columns(source, member, RATING_COLUMNS, "\t")
                folds[fold] = rows_in(columns, part, source.place(member))
    if file_format == "ratings.dat":
        member = source.find("pmf_probe.csv")
        if member is not None:
            pairs: dict[str, Kind] = {"user": "whole", "item": "whole"}
            part = read_columns(source, member, pairs, ",", header=("user", "movie"))
            folds["pmf_probe"] = rows_in(columns, part, source.place(member))
    return folds


def rows_in(columns: dict[str, np.ndarray], part: dict[str, np.ndarray], place: str) -> np.ndarray:
    """Return the mask of the rows whose (user, item) pair is in ``part``.

    Every pair of ``part`` must occur among the rows.
    """
    span = int(max(columns["item"].max(initial=0), part["item"].max(initial=0))) + 1
    whole = columns["user"].astype(np.int64) * span + columns["item"]
    pairs = part["user"].astype(np.int64) * span + part["item"]
    ordered = np.sort(pairs)
    inside = np.zeros(whole.size, dtype=np.bool_)
    if ordered.size:  # look-ups in a sorted array: np.isin takes seconds for a million keys
        at = np.minimum(np.searchsorted(ordered, whole), ordered.size - 1)
        inside = ordered[at] == whole
    if inside.sum() != pairs.size:
        absent = np.flatnonzero(~np.isin(pairs, whole))
        if absent.size == 0:
            raise DataError(f"{place}: a pair of user and item occurs twice: keep one of the lines")
        at = absent[0]
        raise DataError(
            f"{place}: user {part['user'][at]} and item {part['item'][at]} are in this part but "
            f"not among the ratings ({absent.size} in all): the files do not belong together"
        )
    return inside
