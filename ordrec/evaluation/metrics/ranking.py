"""Metrics of how well a list is ordered: items for a user, or documents for a query.

All take ``(relevance, scores, *, groups=None)``: the relevance of each row, the score by which
rows are ranked, highest first, and the user or query each row belongs to (without groups
all rows are one query). The result is the mean over the groups where the metric is
defined. Rows with equal scores are ranked in a random order that is the same in every
run, so that no model gains from the order of the file; only `fcp` does not need this.

A metric is written once, for the places that the rows take in a list (`by_place`).
``metric.of_places(relevance, places, groups=None)`` is for places that are known already: a
recommender chooses among everything a user has not rated yet, so all items of the data except
those the user rated in training compete for the first places (see
`ordrec.evaluation.problems.catalogue`), and only the places of the items in the test part matter,
because no other item has any relevance.

In the formulas ``rel_t`` is the relevance of the row at rank ``t = 1, 2, ...``
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics.averaging import (
    Metric,
    by_group,
    segment_of_rows,
    segment_sums,
    segments,
)

__all__ = [
    "PlaceMetric",
    "best_first",
    "by_place",
    "capped_recall_at",
    "disliked_counts",
    "expected_reciprocal_rank",
    "fcp",
    "hit_rate_at",
    "mean_average_precision",
    "mean_reciprocal_rank",
    "ndcg",
    "normalised_gain_at",
    "pair_counts",
    "places_among_rated",
    "pooled_fcp",
    "precision_at",
    "ranks_in",
    "recall_at",
]


class PlaceMetric(Metric, Protocol):
    """The type of a metric made by `by_place`.

    Attributes
    ----------
    of_places : Metric
        The same metric of rows whose places are known.
    """

    of_places: Metric


def by_place(segment_values: Callable[..., np.ndarray]) -> PlaceMetric:
    """Turn a function ``(relevance, places, start, **options) -> values`` into a metric of scores.

    See `ordrec.evaluation.metrics.averaging.by_group` for ``start``.
    """

    @functools.wraps(segment_values)
    def of_scores(
        relevance: np.ndarray, scores: np.ndarray, start: np.ndarray, **options: Any
    ) -> np.ndarray:
        return segment_values(relevance, places_by_score(scores, start), start, **options)

    signature = inspect.signature(segment_values)
    relevance, places, *options = signature.parameters.values()
    of_scores.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[relevance, places.replace(name="scores"), *options]
    )
    metric: Any = by_group(of_scores)
    metric.of_places = by_group(segment_values)
    return metric


@by_place
def ndcg(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int | None = 10,
    gain: Literal["exponential", "linear"] = "exponential",
    discount: Literal["log2", "letor"] = "log2",
) -> np.ndarray:
    """Return the normalised discounted cumulative gain of the first ``k`` rows.

    ``DCG = sum_{t <= k} gain(rel_t) * discount(t)``, divided by the DCG of the best order.
    Gain: ``2^rel - 1`` or ``rel``. Discount: ``1 / log2(t + 1)``, or LETOR's (needed to compare
    with its tables), which is 1 for ``t = 1, 2`` and then ``1 / log2(t)``. Undefined for a group
    in which no row has any gain.

    Parameters
    ----------
    relevance : array of non-negative float
    scores : array of float
    groups : array, optional
    k : int or None
        None for all rows.
    gain : {"exponential", "linear"}
    discount : {"log2", "letor"}

    Examples
    --------
    >>> ndcg([2, 0, 1], [0.9, 0.1, 0.5])
    1.0
    >>> round(ndcg([0, 0, 1], [0.9, 0.5, 0.1]), 4)
    0.5
    """
    if (relevance < 0).any():
        raise ArgumentError("ndcg: relevance must not be negative")
    if gain not in ("exponential", "linear"):
        raise ArgumentError(f'gain must be "exponential" or "linear", got {gain!r}')
    if discount not in ("log2", "letor"):
        raise ArgumentError(f'discount must be "log2" or "letor", got {discount!r}')
    gains = 2.0**relevance - 1.0 if gain == "exponential" else relevance
    return _normalised_gain(gains, places, start, k, letor=discount == "letor")


@by_place
def normalised_gain_at(
    gains: np.ndarray, places: np.ndarray, start: np.ndarray, *, k: int = 10
) -> np.ndarray:
    """Return the discounted gain of the first ``k`` places over that of the best list.

    The discount is ``1 / log2(place + 1)``. A gain may be negative: an item that is better not
    listed. The best list has the items of positive gain only; undefined for a group without any.

    Examples
    --------
    >>> normalised_gain_at.of_places([3, 1], [1, 2])
    1.0
    >>> normalised_gain_at.of_places([2, -2], [9, 1]) < 0
    True
    """
    return _normalised_gain(gains, places, start, k)


@by_place
def mean_average_precision(
    relevance: np.ndarray, places: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """Return the mean average precision, ``1/R sum_{t relevant} (relevant among the first t) / t``.

    ``R`` is the number of relevant rows, those with relevance of at least ``relevant_from``;
    undefined for a group without any.

    Examples
    --------
    >>> mean_average_precision([1, 0, 1, 0], [4, 3, 2, 1])
    0.8333333333333333
    """
    relevant = relevance >= relevant_from
    # Sorted by place with relevant items first, the position of a relevant item is the number
    # of relevant items up to its place.
    order = np.lexsort((places, ~relevant, segment_of_rows(start)))
    found = segment_sums(np.where(relevant[order], ranks_in(start) / places[order], 0.0), start)
    count = segment_sums(relevant.astype(np.float64), start)
    return np.divide(found, count, out=np.full(count.size, np.nan), where=count > 0)


@by_place
def precision_at(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Return the precision of the first k rows, ``(relevant among the first k) / k``.

    Divided by ``k`` also where a group has fewer rows; undefined for a group without a
    relevant row.

    Examples
    --------
    >>> precision_at([1, 0, 1, 0], [4, 3, 2, 1], k=2)
    0.5
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    return np.where(relevant > 0, found / k, np.nan)


@by_place
def recall_at(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Return the recall of the first k rows, ``(relevant among the first k) / relevant``.

    Undefined for a group without a relevant row.

    Examples
    --------
    >>> recall_at([1, 0, 1, 0], [4, 3, 2, 1], k=1)
    0.5
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    return np.divide(found, relevant, out=np.full(relevant.size, np.nan), where=relevant > 0)


@by_place
def capped_recall_at(
    relevance: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    *,
    k: int = 10,
    relevant_from: float = 1.0,
) -> np.ndarray:
    """Return the relevant items in the first ``k`` places over the most there could be.

    This is `recall_at` with ``min(k, number of relevant items)`` as the divisor, so that the
    best list has 1 also where there are more than ``k`` relevant items.

    Examples
    --------
    >>> capped_recall_at.of_places([1, 1, 1], [2, 1, 30], k=2)
    1.0
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    most = np.minimum(relevant, k)
    return np.divide(found, most, out=np.full(most.size, np.nan), where=most > 0)


@by_place
def hit_rate_at(
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
    >>> hit_rate_at.of_places([1, 1, 1], [2, 30, 12], groups=["ann", "ann", "bob"])
    0.5
    """
    found, relevant = _found(relevance >= relevant_from, places, start, k)
    return np.where(relevant > 0, (found > 0) * 1.0, np.nan)


@by_group
def disliked_counts(
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


@by_place
def mean_reciprocal_rank(
    relevance: np.ndarray, places: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """Return the mean reciprocal rank, ``1 / (rank of the first relevant row)``.

    Undefined for a group without a relevant row.

    Examples
    --------
    >>> mean_reciprocal_rank([0, 1, 1], [3, 2, 1])
    0.5
    """
    relevant = relevance >= relevant_from
    first = np.minimum.reduceat(np.where(relevant, places, np.inf), start[:-1])
    return np.where(np.isfinite(first), 1.0 / first, np.nan)


@by_group
def expected_reciprocal_rank(
    relevance: np.ndarray,
    scores: np.ndarray,
    start: np.ndarray,
    *,
    k: int | None = 20,
    highest: float | None = None,
) -> np.ndarray:
    """Return the expected reciprocal rank of the first ``k`` rows (Chapelle et al., 2009).

    A reader goes down the list and is satisfied by a row with probability
    ``R = (2^rel - 1) / 2^highest``; the value is the mean of one over the rank where that
    happens, ``sum_{t <= k} R_t / t * prod_{s < t} (1 - R_s)``.

    Parameters
    ----------
    relevance : array of non-negative float
    scores : array of float
    groups : array, optional
    k : int or None
        None for all rows.
    highest : float, optional
        The highest possible relevance; by default the highest that occurs.

    Examples
    --------
    >>> expected_reciprocal_rank([0, 1], [2, 1]), expected_reciprocal_rank([1, 0], [2, 1])
    (0.25, 0.5)
    """
    check_k(k)
    top = float(relevance.max()) if highest is None else highest
    satisfied = (2.0**relevance - 1.0) / 2.0**top
    order = best_first(scores, start)
    ranks = ranks_in(start)
    out = np.empty(start.size - 1)
    for segment, (first, last) in enumerate(pairwise(start)):
        here = satisfied[order[first:last]]
        reached = np.concatenate([[1.0], np.cumprod(1.0 - here)[:-1]])
        places = ranks[first:last]
        shown = places <= (np.inf if k is None else k)
        out[segment] = np.sum((reached * here / places)[shown])
    return out


@by_group
def fcp(relevance: np.ndarray, scores: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the fraction of concordant pairs, ``(C + T / 2) / (C + D + T)``.

    Of the pairs of rows of one group that differ in relevance, ``C`` are ordered by score as by
    relevance, ``D`` the other way round, and ``T`` have equal scores; a constant score has 0.5
    (Koren and Sill, 2011, leave ties open). Undefined where no pair differs.

    Examples
    --------
    >>> fcp([1, 2, 3], [0.1, 0.5, 0.4])
    0.6666666666666666
    """
    from ordrec.evaluation.metrics.concordance import concordant_pairs

    right, pairs = concordant_pairs(relevance, scores, start)
    return np.divide(right, pairs, out=np.full(pairs.size, np.nan), where=pairs > 0)


def pooled_fcp(relevance: Any, scores: Any, groups: Any) -> float:
    """Return the fraction of concordant pairs with the pairs of all groups counted together.

    This is Koren and Sill's definition: users with many ratings weigh more than in `fcp`. Pairs
    are still formed within groups only.

    Examples
    --------
    >>> pooled_fcp([1, 2, 1, 2, 3], [1, 2, 3, 2, 1], groups=[0, 0, 1, 1, 1])
    0.25
    """
    right, pairs = pair_counts.per_group(relevance, scores, groups).sum(axis=0)
    return float(right / pairs) if pairs else float("nan")


@by_group
def pair_counts(relevance: np.ndarray, scores: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the numbers of correctly ordered and of differing pairs, one row per segment."""
    from ordrec.evaluation.metrics.concordance import concordant_pairs

    return np.column_stack(concordant_pairs(relevance, scores, start))


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
