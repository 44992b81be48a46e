"""Ranking metrics over the whole catalogue, by the place of every item that was rated.

A recommender chooses among everything a user has not rated yet, so that is what it is measured
on: all items of the data but those the user rated in training compete for the first
places. Only the places of the items in the test part matter, since no other has any
relevance; the functions take ``(relevance, places, *, groups=None)`` and equal those of
`ordrec.evaluation.metrics.ranking` on the whole list with a relevance of 0 for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ordrec.evaluation.metrics.averaging import by_group, segment_of_rows, segment_sums
from ordrec.evaluation.metrics.ranking import ranks_in
from ordrec.evaluation.splits.base import Split

__all__ = [
    "catalogue_places",
    "placed_average_precision",
    "placed_ndcg",
    "placed_precision",
    "placed_recall",
    "placed_reciprocal_rank",
    "ranked_users",
]

PAIRS_AT_ONCE = 50_000  # few enough for what a model makes of them to stay in the cache
AUTO_PAIRS, AUTO_USERS = 1_000_000, 100


def ranked_users(split: Split, wanted: int | Literal["auto", "all"], seed: int) -> np.ndarray:
    """Codes of the test users that the catalogue is ranked for, ascending.

    Parameters
    ----------
    split : Split
    wanted : int, "auto" or "all"
        At most so many, drawn at random; "auto" as many as make a million pairs with the
        catalogue, but a hundred at least.
    seed : int
    """
    users = np.unique(split.test.users)
    if wanted == "all":
        return users
    fitting = max(AUTO_USERS, AUTO_PAIRS // len(split.test.item_ids))
    size = fitting if wanted == "auto" else wanted
    if size >= users.size:
        return users
    return np.sort(np.random.default_rng(seed).choice(users, size, replace=False))


def catalogue_places(
    score: Callable[[Any, Any], np.ndarray], split: Split, users: np.ndarray
) -> np.ndarray:
    """The place, from 1 up, of each test rating's item in its user's list of the catalogue.

    Parameters
    ----------
    score : callable
        Takes the original ids of users and items, of equal length, and returns what pairs are
        ranked by. It is asked about all items of one user after the other.
    split : Split
        Items that a user rated in training, or that are given for fold-in, are not on his
        list. Equal scores are put in an order that is random but the same in every run.
    users : array of int
        Codes of the users to rank for.

    Returns
    -------
    ndarray of int
        One a row of ``split.test``; 0 for the ratings of other users.
    """
    known, test = split.train_and_given(), split.test
    n_items = len(test.item_ids)
    shuffled = np.random.default_rng(0).permutation(n_items)
    places = np.zeros(test.n_ratings, dtype=np.int64)
    at_once = max(1, PAIRS_AT_ONCE // n_items)
    for first in range(0, users.size, at_once):
        block = users[first : first + at_once]
        asked = test.user_ids.take(np.repeat(block, n_items))
        about = test.item_ids.take(np.tile(np.arange(n_items), block.size))
        scores = score(asked, about).reshape(block.size, n_items)
        for user, row in zip(block.tolist(), scores, strict=True):
            row[known.items[known.rows_of_user(user)]] = -np.inf
            place = np.empty(n_items, dtype=np.int64)
            place[shuffled[np.argsort(-row[shuffled], kind="stable")]] = np.arange(1, n_items + 1)
            rows = test.rows_of_user(user)
            places[rows] = place[test.items[rows]]
    return places


@by_group
def placed_ndcg(
    relevance: np.ndarray, places: np.ndarray, start: np.ndarray, *, k: int = 10
) -> np.ndarray:
    """NDCG of the first ``k`` places, gain ``2^rel - 1``, discount ``1 / log2(place + 1)``.

    Examples
    --------
    >>> placed_ndcg([4, 1], [1, 7], k=5) < 1.0 == placed_ndcg([4, 1], [1, 2], k=5)
    True
    """
    gains = 2.0**relevance - 1.0
    reached = segment_sums(gains / np.log2(places + 1.0) * (places <= k), start)
    best = np.lexsort((-gains, segment_of_rows(start)))
    rank = ranks_in(start)
    ideal = segment_sums(gains[best] / np.log2(rank + 1.0) * (rank <= k), start)
    return np.divide(reached, ideal, out=np.full(ideal.size, np.nan), where=ideal > 0)


@by_group
def placed_precision(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Share of relevant items in the first ``k`` places.

    Examples
    --------
    >>> placed_precision([1, 1, 0], [2, 30, 1], k=10)
    0.1
    """
    relevant = relevance >= relevant_from
    found = segment_sums((relevant & (places <= k)).astype(np.float64), start)
    return np.where(segment_sums(relevant.astype(np.int64), start) > 0, found / k, np.nan)


@by_group
def placed_recall(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Share of the relevant items that are in the first ``k`` places.

    Examples
    --------
    >>> placed_recall([1, 1, 0], [2, 30, 1], k=10)
    0.5
    """
    relevant = relevance >= relevant_from
    found = segment_sums((relevant & (places <= k)).astype(np.float64), start)
    return _over_relevant(found, relevant, start)


@by_group
def placed_reciprocal_rank(
    relevance: np.ndarray, places: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """``1 / place`` of the first relevant item.

    Examples
    --------
    >>> placed_reciprocal_rank([0, 1, 1], [1, 4, 9])
    0.25
    """
    relevant = relevance >= relevant_from
    first = np.minimum.reduceat(np.where(relevant, places, np.inf), start[:-1])
    return np.where(np.isfinite(first), 1.0 / first, np.nan)


@by_group
def placed_average_precision(
    relevance: np.ndarray, places: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """Mean over the relevant items of the precision at their places.

    Examples
    --------
    >>> placed_average_precision([1, 0, 1], [1, 2, 4])
    0.75
    """
    relevant = relevance >= relevant_from
    # By place, relevant items first: each then knows how many of them stand no lower.
    order = np.lexsort((places, ~relevant, segment_of_rows(start)))
    found = segment_sums(np.where(relevant[order], ranks_in(start) / places[order], 0.0), start)
    return _over_relevant(found, relevant, start)


def _over_relevant(found: np.ndarray, relevant: np.ndarray, start: np.ndarray) -> np.ndarray:
    count = segment_sums(relevant.astype(np.float64), start)
    return np.divide(found, count, out=np.full(count.size, np.nan), where=count > 0)
