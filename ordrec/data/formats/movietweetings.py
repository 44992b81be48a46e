"""MovieTweetings: film ratings parsed from public posts (Dooms et al., 2013)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ordrec.data import Duplicates, Ratings, Scale
from ordrec.data.formats.archives import Source, open_source, prefix_errors
from ordrec.data.formats.delimited import read_columns
from ordrec.data.formats.movielens import RATING_COLUMNS, dat_items
from ordrec.errors import DataError

__all__ = ["load_movietweetings"]


def load_movietweetings(
    path: str | Path | Source, *, duplicates: Duplicates = "error", name: str | None = None
) -> Ratings:
    """Load MovieTweetings from its folder, an archive, or ``ratings.dat`` alone.

    Item ids are IMDb numbers without leading zeros; the scale is 0..10. The item table has
    title, year and genres (``"a|b"``) if ``movies.dat`` is present.
    """
    with open_source(path) as source:
        member = next(iter(source.members)) if source.single else source.find("ratings.dat")
        if member is None:
            raise DataError(
                f"{source.path}: contains no ratings.dat: name the MovieTweetings folder"
            )
        with prefix_errors(source.place(member)):
            return Ratings.from_frame(
                pd.DataFrame(read_columns(source, member, RATING_COLUMNS, "::"), copy=False),
                scale=Scale.regular(0, 10),
                duplicates=duplicates,
                item_table=dat_items(source),
                name=name or source.stem,
            )
