"""The ratings of some users with further ones, for `update`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.data.times import seconds_of
from ordrec.errors import ArgumentError

__all__ = ["paired_lists", "with_further_ratings"]


def with_further_ratings(
    known_of: Callable[[pd.Index], pd.DataFrame],
    user: Any,
    item: Any,
    rating: Any,
    timestamp: Any,
    scale: Scale,
) -> Ratings:
    """All ratings of these users: the known ones, then the given ones, which replace them.

    Parameters
    ----------
    known_of : callable
        The known ratings of users by id: user, item, rating and, if there are any, timestamp and
        weight; those given have the weight 1.
    user, item, rating, timestamp
        Further ratings: single values or sequences; see `paired_lists`. Picks are added to those
        that are known.
    scale : Scale
        Of the known ratings; the given ones are read by value on it.
    """
    columns = "user", "item", "rating", "timestamp"
    lists = paired_lists(user, item, rating, timestamp, scale)
    new = pd.DataFrame(dict(zip(columns, lists, strict=True)))
    old = known_of(pd.Index(new["user"].unique()))
    if timestamp is None and "timestamp" not in old:
        new = new.drop(columns="timestamp")
    if scale.only_picks:
        new = new.rename(columns={"rating": "count"})
        return Ratings.from_frame(_dated(_below(old, new)), rating=None)
    new["rating"] = scale.values_of(scale.ranks_of(new["rating"].to_numpy()))
    both = _dated(_below(old, new).drop_duplicates(["user", "item"], keep="last"))
    if "weight" not in both:
        return Ratings.from_frame(both, scale=scale)
    return Ratings.from_frame(both.fillna({"weight": 1.0}), scale=scale, weight="weight")


def _below(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """The rows of both tables; none of an empty one, whose columns may have no types."""
    return pd.concat([part for part in (old, new) if len(part)] or [new])


def _dated(table: pd.DataFrame) -> pd.DataFrame:
    """The table with time 0, which stands for unknown, where it has times but a row has none."""
    if "timestamp" in table:
        table["timestamp"] = table["timestamp"].fillna(0).astype(np.int64)
    return table


def paired_lists(
    user: Any, item: Any, rating: Any, timestamp: Any, scale: Scale | None = None
) -> tuple[list[Any], ...]:
    """One or more ratings as lists of users, items, ratings and times, 0 where unknown.

    On a scale of picks, None stands for one pick each.

    Examples
    --------
    >>> paired_lists("ann", 3, 4.5, None)
    (['ann'], [3], [4.5], [0])
    >>> paired_lists("ann", 3, None, None, Scale.of_picks())
    (['ann'], [3], [1.0], [0])
    """
    users, items = _as_list(user), _as_list(item)
    if rating is None and not (scale is not None and scale.only_picks):
        raise ArgumentError("rating must be given: only a model of picks does without")
    ratings = [1.0] * len(users) if rating is None else _as_list(rating)
    times = [0] * len(users)
    if timestamp is not None:
        times = seconds_of(_as_list(timestamp)).tolist()
    if not len(users) == len(items) == len(ratings) == len(times):
        raise ArgumentError(
            f"users, items, ratings and times must pair up, got {len(users)}, {len(items)}, "
            f"{len(ratings)} and {len(times)}"
        )
    return users, items, ratings, times


def _as_list(value: Any) -> list[Any]:
    """A sequence as a list; anything else alone."""
    alone = isinstance(value, str) or not hasattr(value, "__len__")
    return [value] if alone else list(value)
