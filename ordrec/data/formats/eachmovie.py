"""EachMovie (DEC Systems Research Center, 1996-97), in three file formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.data import Duplicates, Ratings, Scale
from ordrec.data.formats.archives import Source, open_source, prefix_errors
from ordrec.data.formats.delimited import numbers, read_text_table, whole_numbers
from ordrec.data.formats.movielens import item_frame, title_year
from ordrec.errors import DataError

__all__ = ["load_eachmovie"]

STARS = Scale.regular(0, 5)

_VOTE_FIELDS = ("user", "item", "score", "weight", "modified")
_MOVIE_FIELDS = (
    "id", "name", "pr_url", "imdb_url", "theater_status", "theater_release", "video_status",
    "video_release", "Action", "Animation", "Art_Foreign", "Classic", "Comedy", "Drama",
    "Family", "Horror", "Romance", "Thriller",
)  # fmt: skip
_PERSON_FIELDS = ("id", "age", "gender", "zip")
_CSV_PARTS = ("votes_5055users.csv", "votes_324movies.csv")


def load_eachmovie(
    path: str | Path | Source,
    *,
    min_weight: float = 1.0,
    duplicates: Duplicates = "error",
    name: str | None = None,
) -> Ratings:
    """Load EachMovie votes as zero to five stars.

    Parameters
    ----------
    path : path
        Folder, archive or single file. The formats are the original ``Vote.txt`` (with
        ``Movie.txt`` and ``Person.txt`` as side tables if present), csv files with the
        header ``user,movie,score`` or ``user,movie,score,set``, and the cleaned file of
        triples ``movie user score``, the movie first. In a folder with several of them,
        ``Vote.txt`` is read, else ``votes_5055users.csv``, ``votes_324movies.csv``, or a
        file with "triple" in its name.
    min_weight : float
        Votes of smaller weight are left out; in the original file a weight below 1 marks
        a film that the person had not seen. A missing weight counts as 1. The other
        formats have no weights. Below 1, the ratings have ``weights``.
    duplicates : {"error", "last", "mean"}
        See `Ratings.from_frame`.

    Returns
    -------
    Ratings
        On the scale 0..5 in every format: five times the original score, or the score
        1..6 of the cleaned files minus one, so that ``ranks`` are these 1..6. ``folds``
        has ``set`` (True for test) if the csv has that column.
    """
    with open_source(path) as source:
        member, file_format = _vote_file(source)
        read = {"vote": _read_votes, "csv": _read_csv, "triple": _read_triples}[file_format]
        frame = read(source, member)
        if file_format == "vote":
            frame = frame[frame["weight"] >= min_weight]
        folds = {"set": frame.pop("test").to_numpy()} if "test" in frame else None
        with prefix_errors(source.place(member)):
            return Ratings.from_frame(
                frame.reset_index(drop=True),
                scale=STARS,
                duplicates=duplicates,
                folds=folds,
                item_table=_movies(source),
                user_table=_persons(source),
                name=name or source.stem,
                weight="weight" if file_format == "vote" and min_weight < 1 else None,
            )


def _vote_file(source: Source) -> tuple[str, str]:
    """The member with the votes, and the name of its format."""
    if not source.single:
        member = source.find("Vote.txt")
        if member is not None:
            return member, "vote"
        member = source.find(*_CSV_PARTS)
        if member is not None:
            return member, "csv"
        triples = source.matching(".*triple.*")
        if len(triples) == 1:
            return triples[0], "triple"
        raise DataError(f"{source.path}: contains no Vote.txt, votes_*.csv or file of triples")
    member = next(iter(source.members))
    with source.open(member) as stream:
        start = stream.readline(1 << 12)
    if start.startswith(b"user,movie,score"):
        return member, "csv"
    fields = start.split()
    is_triple = len(fields) == 3 and _is_rank(fields[2])
    return member, "triple" if is_triple else "vote"


def _is_rank(text: bytes) -> bool:
    """Whether a score is one of 1..6, as in the cleaned files, rather than a fifth in 0..1."""
    try:
        return float(text) > 1
    except ValueError:
        return False


# ---- votes -----------------------------------------------------------------------------


def _read_votes(source: Source, member: str) -> pd.DataFrame:
    place = source.place(member)
    table = read_text_table(
        source, member, "\t", names=_VOTE_FIELDS, encodings=("latin-1",), quoted=False
    )
    return pd.DataFrame(
        {
            "user": whole_numbers(table["user"], place),
            "item": whole_numbers(table["item"], place),
            "rating": _stars(numbers(table["score"], place) * 5, table["score"], place),
            "weight": numbers(table["weight"], place, absent=1.0),
            "timestamp": _seconds(table["modified"], place),
        },
        index=table.index,
    )


def _read_csv(source: Source, member: str) -> pd.DataFrame:
    place = source.place(member)
    table = read_text_table(source, member, ",")
    header = list(table.columns)
    if header[:3] != ["user", "movie", "score"] or header[3:] not in ([], ["set"]):
        raise DataError(
            f"{place}, line 1: expected the header 'user,movie,score' or 'user,movie,score,set'"
        )
    frame = _cleaned_frame(table, place)
    if "set" in table:
        invalid = ~table["set"].isin(["train", "test"])
        if invalid.any():
            raise DataError(
                f"{place}, line {table.index[invalid][0]}: set {table['set'][invalid].iloc[0]!r} "
                "is neither train nor test"
            )
        frame["test"] = (table["set"] == "test").to_numpy()
    return frame


def _read_triples(source: Source, member: str) -> pd.DataFrame:
    table = read_text_table(source, member, r"\s+", names=("movie", "user", "score"))
    return _cleaned_frame(table, source.place(member))


def _cleaned_frame(table: pd.DataFrame, place: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "user": whole_numbers(table["user"], place),
            "item": whole_numbers(table["movie"], place),
            "rating": _stars(numbers(table["score"], place) - 1, table["score"], place),
        },
        index=table.index,
    )


def _stars(stars: np.ndarray, score: pd.Series, place: str) -> np.ndarray:
    whole = np.round(stars)
    bad = np.flatnonzero((np.abs(stars - whole) > 1e-3) | (whole < 0) | (whole > 5))
    if bad.size:
        raise DataError(
            f"{place}, line {score.index[bad[0]]}: score {score.iloc[bad[0]]} is not zero to five "
            f"stars ({bad.size} such lines)"
        )
    return whole


def _seconds(column: pd.Series, place: str) -> np.ndarray:
    """Seconds since 1970 of times such as ``3/9/96 0:00:00``; 0 where the time is missing."""
    given = column.str.strip() != ""
    try:
        times = pd.to_datetime(column[given], format="%m/%d/%y %H:%M:%S", errors="coerce")
    except (ValueError, OverflowError) as error:
        raise DataError(f"{place}: unreadable times ({error})") from None
    if times.isna().any():
        line = times.index[times.isna()][0]
        raise DataError(f"{place}, line {line}: time {column[line]!r} is not m/d/yy H:M:S")
    seconds = np.zeros(len(column), dtype=np.int64)
    seconds[given.to_numpy()] = times.to_numpy("datetime64[s]").astype(np.int64)
    return seconds


# ---- side tables -----------------------------------------------------------------------


def _movies(source: Source) -> pd.DataFrame | None:
    member = source.side_file("Movie.txt")
    if member is None:
        return None
    table = read_text_table(
        source, member, "\t", names=_MOVIE_FIELDS, encodings=("latin-1",), quoted=False
    )
    ids = whole_numbers(table["id"], source.place(member))
    genres = [
        "|".join(genre for genre in _MOVIE_FIELDS[8:] if getattr(row, genre) not in ("", "0"))
        for row in table.itertuples()
    ]
    names = table["name"].tolist()
    return item_frame(
        list(zip(ids.tolist(), names, (title_year(n) for n in names), genres, strict=True))
    )


def _persons(source: Source) -> pd.DataFrame | None:
    member = source.side_file("Person.txt")
    if member is None:
        return None
    table = read_text_table(
        source, member, "\t", names=_PERSON_FIELDS, encodings=("latin-1",), quoted=False
    )
    ids = whole_numbers(table["id"], source.place(member))
    ages = pd.to_numeric(table["age"], errors="coerce").to_numpy(dtype=np.float64)
    return pd.DataFrame(
        {"age": ages, "gender": table["gender"].to_numpy(), "zip": table["zip"].to_numpy()},
        index=pd.Index(ids, name="user"),
    )
