"""Jester: real-valued ratings of jokes between -10 and 10 (Goldberg et al., 2001)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.data import Duplicates, Ratings, Scale
from ordrec.data.formats.archives import Source, open_source, prefix_errors
from ordrec.data.formats.delimited import numbers, read_text_table
from ordrec.data.scale_rules import FINE
from ordrec.errors import ArgumentError, DataError

__all__ = ["load_jester"]

LOW, HIGH = -10.0, 10.0
NOT_RATED = 99.0


def load_jester(
    path: str | Path | Source,
    *,
    ranks: int | None = 5,
    duplicates: Duplicates = "error",
    name: str | None = None,
) -> Ratings:
    """Load Jester, and divide its continuous ratings into ranks or bins.

    Parameters
    ----------
    path : path
        Folder, archive or file: ``ratings.csv`` with the columns user, joke, rating, or
        the original matrix as csv (one row per user: the number of rated jokes, then one
        column per joke, 99 where not rated).
    ranks : int or None
        Number of intervals of equal length between -10 and 10, at most 60. The scale consists of
        their midpoints, which also replace the ratings: -8, -4, 0, 4, 8 for five. None keeps the
        ratings, with bins of about equally many of them (see `Scale.binned`).
    duplicates : {"error", "last", "mean"}
        See `Ratings.from_frame`.
    """
    if ranks is not None and not 2 <= ranks <= FINE:
        raise ArgumentError(f"ranks must be 2..{FINE} or None, got {ranks}")
    with open_source(path) as source:
        member = _rating_file(source)
        place = source.place(member)
        with source.open(member) as stream:
            header = stream.readline(1 << 12).decode("utf-8", "replace").strip().lower()
        read = _read_triples if header.startswith("user,") else _read_matrix
        frame = read(source, member)
        values = frame["rating"].to_numpy()
        outside = np.flatnonzero((values < LOW) | (values > HIGH))
        if outside.size:
            raise DataError(
                f"{place}, line {frame.index[outside[0]]}: rating {values[outside[0]]:g} is "
                "outside -10..10"
            )
        if ranks is None:
            scale = Scale.binned(values, low=LOW, high=HIGH)
        else:
            width = (HIGH - LOW) / ranks
            scale = Scale(LOW + width * (np.arange(ranks) + 0.5))
            levels = np.clip(np.ceil((values - LOW) / width).astype(np.int64) - 1, 0, ranks - 1)
            frame = frame.assign(rating=scale.values[levels])
        with prefix_errors(place):
            return Ratings.from_frame(
                frame.reset_index(drop=True),
                scale=scale,
                duplicates=duplicates,
                name=name or source.stem,
            )


def _rating_file(source: Source) -> str:
    if source.single:
        return next(iter(source.members))
    member = source.find("ratings.csv")
    if member is None:
        tables = source.matching(r".*\.csv")
        if len(tables) != 1:
            raise DataError(
                f"{source.path}: contains no ratings.csv: name the file with the ratings"
            )
        member = tables[0]
    return member


def _read_triples(source: Source, member: str) -> pd.DataFrame:
    table = read_text_table(source, member, ",")
    if list(table.columns) != ["user", "joke", "rating"]:
        raise DataError(f"{source.place(member)}, line 1: expected the header 'user,joke,rating'")
    empty = (table[["user", "joke"]] == "").any(axis=1)
    if empty.any():
        raise DataError(f"{source.place(member)}, line {table.index[empty][0]}: no user or joke")
    table["rating"] = numbers(table["rating"], source.place(member))
    return table.rename(columns={"joke": "item"})


def _read_matrix(source: Source, member: str) -> pd.DataFrame:
    with source.open(member) as stream:
        n_fields = stream.readline(1 << 14).count(b",") + 1
    if n_fields < 3:
        raise DataError(
            f"{source.place(member)}, line 1: expected the header 'user,joke,rating', or a row "
            "with the number of ratings and one rating per joke"
        )
    names = ["count", *(str(joke) for joke in range(1, n_fields))]
    table = read_text_table(source, member, ",", names=names)
    matrix = np.column_stack([numbers(table[c], source.place(member)) for c in names[1:]])
    users, jokes = np.nonzero(matrix != NOT_RATED)
    return pd.DataFrame(
        {"user": users + 1, "item": jokes + 1, "rating": matrix[users, jokes]},
        index=table.index.to_numpy()[users],
    )
