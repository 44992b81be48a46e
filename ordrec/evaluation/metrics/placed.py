"""Ranking metrics of the places that relevant items take in a list.

A recommender chooses among everything a user has not rated yet, so all items of the data except
those the user rated in training compete for the first places (see
`ordrec.evaluation.problems.catalogue`). Only the places of the items in the test part matter,
because no other item has any relevance. The functions take ``(relevance, places, *, groups=None)``;
those of `ordrec.evaluation.metrics.ranking` find the places by scores. `placed_gain` takes gains
in place of relevance, and `placed_disliked` the ranks of the ratings relative to the middle of the
scale.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics.averaging import by_group, segment_of_rows, segment_sums, segments

__all__ = [
    "best_first",
    "placed_average_precision",
    "placed_capped_recall",
    "placed_disliked",
    "placed_gain",
    "placed_hit",
    "placed_ndcg",
    "placed_precision",
    "placed_recall",
    "placed_reciprocal_rank",
    "places_among_rated",
    "places_by_score",
    "ranks_in",
]


@by_group
def placed_ndcg(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int | None = 10,
    gain: Literal["exponential", "linear"] = "exponential",
    discount: Literal["log2", "letor"] = "log2",
) -> np.ndarray:
    """Return the NDCG of the first ``k`` places, see `ordrec.evaluation.ndcg`.

    Examples
    --------
    >>> placed_ndcg([4, 1], [1, 7], k=5) < 1.0 == placed_ndcg([4, 1], [1, 2], k=5)
    True
    """
    if (relevance < 0).any():
        raise ArgumentError("ndcg: relevance must not be negative")
    if gain not in ("exponential", "linear"):
        raise ArgumentError(f'gain must be "exponential" or "linear", got {gain!r}')
    if discount not in ("log2", "letor"):
        raise ArgumentError(f'discount must be "log2" or "letor", got {discount!r}')
    gains = 2.0**relevance - 1.0 if gain == "exponential" else relevance
    return _normalised_gain(gains, places, start, k, letor=discount == "letor")


@by_group
def placed_gain(
    gains: np.ndarray, places: np.ndarray, start: np.ndarray, *, k: int = 10
) -> np.ndarray:
    """Return the discounted gain of the first ``k`` places over that of the best list.

    The discount is ``1 / log2(place + 1)``. A gain may be negative: an item that is better not
    listed. The best list has the items of positive gain only; undefined for a group without any.

    Examples
    --------
    >>> placed_gain([3, 1], [1, 2]), placed_gain([2, -2], [9, 1]) < 0
    (1.0, True)
    """
    return _normalised_gain(gains, places, start, k)


@by_group
def placed_hit(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Return 1 where a relevant item is in the first ``k`` places, 0 where there is none.

    Undefined for a group without a relevant item, as are all metrics with ``relevant_from``.

    Examples
    --------
    >>> placed_hit([1, 1, 1], [2, 30, 12], groups=["ann", "ann", "bob"])
    0.5
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    return np.where(relevant > 0, (found > 0) * 1.0, np.nan)


@by_group
def placed_disliked(
    above_middle: np.ndarray, places: np.ndarray, start: np.ndarray, *, k: int = 10
) -> np.ndarray:
    """Return the numbers of disliked items and of all items in the first ``k`` places.

    One row per segment. An item is disliked if its rank, less the middle of the ranks, is
    negative.
    """
    found = places <= k
    return np.column_stack(
        [
            segment_sums((found & (above_middle < 0)).astype(np.float64), start),
            segment_sums(found.astype(np.float64), start),
        ]
    )


@by_group
def placed_precision(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Return the share of relevant items among the first ``k`` places.

    Examples
    --------
    >>> placed_precision([1, 1, 0], [2, 30, 1], k=10)
    0.1
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    return np.where(relevant > 0, found / k, np.nan)


@by_group
def placed_recall(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Return the share of the relevant items that are in the first ``k`` places.

    Examples
    --------
    >>> placed_recall([1, 1, 0], [2, 30, 1], k=10)
    0.5
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    return np.divide(found, relevant, out=np.full(relevant.size, np.nan), where=relevant > 0)


@by_group
def placed_capped_recall(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Return the relevant items in the first ``k`` places over the most there could be.

    This is `placed_recall` with ``min(k, number of relevant items)`` as the divisor, so that the
    best list has 1 also where there are more than ``k`` relevant items.

    Examples
    --------
    >>> placed_capped_recall([1, 1, 1], [2, 1, 30], k=2)
    1.0
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    most = np.minimum(relevant, k)
    return np.divide(found, most, out=np.full(most.size, np.nan), where=most > 0)


@by_group
def placed_reciprocal_rank(
    relevance: np.ndarray, places: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """Return ``1 / place`` of the first relevant item.

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
    """Return the mean over the relevant items of the precision at their places.

    Examples
    --------
    >>> placed_average_precision([1, 0, 1], [1, 2, 4])
    0.75
    """
    relevant = relevance >= relevant_from
    # Sorted by place with relevant items first, the position of a relevant item is the number
    # of relevant items up to its place.
    order = np.lexsort((places, ~relevant, segment_of_rows(start)))
    found = segment_sums(np.where(relevant[order], ranks_in(start) / places[order], 0.0), start)
    count = segment_sums(relevant.astype(np.float64), start)
    return np.divide(found, count, out=np.full(count.size, np.nan), where=count > 0)


# ---- places by score ---------------------------------------------------------------------------


def places_among_rated(scores: np.ndarray, users: np.ndarray) -> np.ndarray:
    """Return the place of each row among the rows of its user, by falling score.

    Equal scores are ordered at random, the same in every run.

    Examples
    --------
    >>> places_among_rated(np.array([0.5, 0.9, 0.1]), np.array([7, 7, 3])).tolist()
    [2, 1, 1]
    """
    order, start = segments(users, scores.size)
    places = np.empty(scores.size, dtype=np.int64)
    places[order] = places_by_score(scores[order], start)
    return places


def places_by_score(scores: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the place of each row within its segment, by falling score."""
    places = np.empty(scores.size)
    places[best_first(scores, start)] = ranks_in(start)
    return places


def best_first(scores: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return rows by falling score within each segment, ties in a fixed random order."""
    rows = np.random.default_rng(0).permutation(scores.size)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    rank = np.empty(rows.size, dtype=np.int64)
    rank[rows] = np.arange(rows.size)
    # One distinct whole number per row: much faster to sort than two columns.
    return np.argsort(segment_of_rows(start) << 32 | rank)


def ranks_in(start: np.ndarray) -> np.ndarray:
    """Return the ranks 1, 2, ... within each segment."""
    return np.arange(start[-1]) - start[:-1][segment_of_rows(start)] + 1.0


# ---- sums over segments ------------------------------------------------------------------------


def _found(
    relevant: np.ndarray, places: np.ndarray, start: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of relevant items in the first ``k`` places, and of all of them."""
    check_k(k)
    found = segment_sums((relevant & (places <= k)).astype(np.float64), start)
    return found, segment_sums(relevant.astype(np.float64), start)


def _normalised_gain(
    gains: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    k: int | None,
    *,
    letor: bool = False,
) -> np.ndarray:
    """Return discounted gains over those of the best list; NaN without positive gains."""
    check_k(k)
    last = np.inf if k is None else k

    def discounted(gains: np.ndarray, places: np.ndarray) -> np.ndarray:
        logarithm = np.log2(np.maximum(places, 2.0) if letor else places + 1.0)
        return segment_sums(gains / logarithm * (places <= last), start)

    best = np.lexsort((-gains, segment_of_rows(start)))
    ideal = discounted(np.maximum(gains[best], 0.0), ranks_in(start))
    reached = discounted(gains, places)
    return np.divide(reached, ideal, out=np.full(ideal.size, np.nan), where=ideal > 0)


def check_k(k: int | None) -> None:
    """Raise unless a list has at least one place."""
    if k is not None and k < 1:
        raise ArgumentError(f"k must be at least 1, got {k}")
