"""Ranking metrics of the places that the test items take in a list of the whole catalogue.

A recommender chooses among everything a user has not rated yet, so all items of the data except
those the user rated in training compete for the first places (see
`ordrec.evaluation.full_catalogue`). Only the places of the items in the test part matter,
because no other item has any relevance. The functions take ``(relevance, places, *, groups=None)``
and equal those of `ordrec.evaluation.metrics.ranking` on the whole list with a relevance of 0 for
all other items. `placed_gain` takes gains in place of relevance, and `placed_disliked`
the ranks of the ratings relative to the middle of the scale.
"""

from __future__ import annotations

import numpy as np

from ordrec.evaluation.metrics.averaging import by_group, segment_of_rows, segment_sums, segments
from ordrec.evaluation.metrics.ranking import best_first, ranks_in

__all__ = [
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
]


@by_group
def placed_ndcg(
    relevance: np.ndarray, places: np.ndarray, start: np.ndarray, *, k: int = 10
) -> np.ndarray:
    """Return the NDCG of the first ``k`` places.

    The gain is ``2^rel - 1``, the discount ``1 / log2(place + 1)``.

    Examples
    --------
    >>> placed_ndcg([4, 1], [1, 7], k=5) < 1.0 == placed_ndcg([4, 1], [1, 2], k=5)
    True
    """
    return _normalised_gain(2.0**relevance - 1.0, places, start, k)


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

    Undefined for a group without a relevant item.

    Examples
    --------
    >>> placed_hit([1, 1, 1], [2, 30, 12], groups=["ann", "ann", "bob"])
    0.5
    """
    relevant = relevance >= relevant_from
    found = segment_sums((relevant & (places <= k)).astype(np.int64), start) > 0
    return np.where(segment_sums(relevant.astype(np.int64), start) > 0, found * 1.0, np.nan)


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
    """Return the share of the relevant items that are in the first ``k`` places.

    Examples
    --------
    >>> placed_recall([1, 1, 0], [2, 30, 1], k=10)
    0.5
    """
    relevant = relevance >= relevant_from
    found = segment_sums((relevant & (places <= k)).astype(np.float64), start)
    return _over_relevant(found, relevant, start)


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
    relevant = relevance >= relevant_from
    found = segment_sums((relevant & (places <= k)).astype(np.float64), start)
    most = np.minimum(segment_sums(relevant.astype(np.float64), start), k)
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
    return _over_relevant(found, relevant, start)


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
    places[order[best_first(scores[order], start)]] = ranks_in(start)
    return places


def _normalised_gain(
    gains: np.ndarray, places: np.ndarray, start: np.ndarray, k: int
) -> np.ndarray:
    """Return discounted gains over those of the best list; NaN without positive gains."""
    reached = segment_sums(gains / np.log2(places + 1.0) * (places <= k), start)
    best = np.lexsort((-gains, segment_of_rows(start)))
    rank = ranks_in(start)
    positive = np.maximum(gains[best], 0.0)
    ideal = segment_sums(positive / np.log2(rank + 1.0) * (rank <= k), start)
    return np.divide(reached, ideal, out=np.full(ideal.size, np.nan), where=ideal > 0)


def _over_relevant(found: np.ndarray, relevant: np.ndarray, start: np.ndarray) -> np.ndarray:
    count = segment_sums(relevant.astype(np.float64), start)
    return np.divide(found, count, out=np.full(count.size, np.nan), where=count > 0)
