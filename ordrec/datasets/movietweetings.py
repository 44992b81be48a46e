"""MovieTweetings: film ratings parsed from public posts (Dooms et al., 2013)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ordrec.datasets.archives import naming, open_source
from ordrec.datasets.delimited import Kind, read_columns
from ordrec.datasets.movielens import dat_items
from ordrec.errors import DataError
from ordrec.ratings import Duplicates, Ratings, Scale

__all__ = ["load_movietweetings"]

_COLUMNS: dict[str, Kind] = {
    "user": "whole",
    "item": "whole",
    "rating": "decimal",
    "timestamp": "whole",
}


def load_movietweetings(
    path: str | Path, *, duplicates: Duplicates = "error", name: str | None = None
) -> Ratings:
    """Load MovieTweetings: folder, archive, or ``ratings.dat`` alone.

    Item ids are IMDb numbers without their leading zeros; the scale is 0..10. The item
    table has title, year and genres (``"a|b"``) where ``movies.dat`` is there.
    """
    with open_source(path) as source:
        member = next(iter(source.members)) if source.single else source.find("ratings.dat")
        if member is None:
            raise DataError(f"{source.path}: no ratings.dat in it: name the MovieTweetings folder")
        with naming(source.place(member)):
            return Ratings.from_frame(
                pd.DataFrame(read_columns(source, member, _COLUMNS, "::"), copy=False),
                scale=Scale.regular(0, 10),
                duplicates=duplicates,
                item_table=dat_items(source),
                name=name or source.path.name.split(".")[0],
            )
