"""Take a data frame where ratings are asked for."""

from __future__ import annotations

from typing import Any

from ordrec.data.columns import as_pandas
from ordrec.data.ratings import Ratings
from ordrec.data.scale import Scale
from ordrec.errors import ArgumentError

__all__ = ["as_ratings"]


def as_ratings(table: Any, scale: Scale | None = None) -> Ratings:
    """Return ratings, or those of a data frame as `Ratings.from_frame` reads them.

    Parameters
    ----------
    table : Ratings or DataFrame
        A frame has the columns user, item and rating, under these or other usual names, and
        possibly timestamp.
    scale : Scale, optional
        The scale of the ratings in a frame; inferred when omitted.

    Examples
    --------
    >>> import pandas as pd
    >>> as_ratings(pd.DataFrame({"user_id": [1, 1], "movieId": [3, 4], "stars": [5, 2]})).n_ratings
    2
    """
    if isinstance(table, Ratings):
        return table
    try:
        frame = as_pandas(table)
    except ArgumentError:
        raise ArgumentError(
            "ratings must be Ratings or a data frame with the columns user, item and rating, got "
            f"{type(table).__name__}: see Ratings.from_frame and load_ratings"
        ) from None
    return Ratings.from_frame(frame, scale=scale)
