"""Metrics of how well scores order the items of a user, or the documents of a query.

All take ``(relevance, scores, *, groups=None)``: the relevance of each row, the score by which
rows are ranked, highest first, and the user or query each row belongs to (without groups
all rows are one query). The result is the mean over the groups where the metric is
defined. Rows with equal scores are ranked in a random order that is the same in every
run, so that no model gains from the order of the file; only `fcp` does not need this. What is
computed from the places is in `ordrec.evaluation.metrics.placed`.

In the formulas ``rel_t`` is the relevance of the row at rank ``t = 1, 2, ...``
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ordrec.evaluation.metrics import placed
from ordrec.evaluation.metrics.averaging import by_group

__all__ = [
    "expected_reciprocal_rank",
    "fcp",
    "mean_average_precision",
    "mean_reciprocal_rank",
    "ndcg",
    "pooled_fcp",
    "precision_at",
    "recall_at",
]


@by_group
def ndcg(
    relevance: np.ndarray,
    scores: np.ndarray,
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
    places = placed.places_by_score(scores, start)
    options: Any = {"k": k, "gain": gain, "discount": discount}
    return placed.placed_ndcg.of_segments(relevance, places, start, **options)


@by_group
def mean_average_precision(
    relevance: np.ndarray, scores: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """Return the mean average precision, ``1/R sum_{t relevant} (relevant among the first t) / t``.

    ``R`` is the number of relevant rows, those with relevance of at least ``relevant_from``;
    undefined for a group without any.

    Examples
    --------
    >>> mean_average_precision([1, 0, 1, 0], [4, 3, 2, 1])
    0.8333333333333333
    """
    places = placed.places_by_score(scores, start)
    return placed.placed_average_precision.of_segments(
        relevance, places, start, relevant_from=relevant_from
    )


@by_group
def precision_at(
    relevance: np.ndarray,
    scores: np.ndarray,
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
    places = placed.places_by_score(scores, start)
    return placed.placed_precision.of_segments(
        relevance, places, start, k=k, relevant_from=relevant_from
    )


@by_group
def recall_at(
    relevance: np.ndarray,
    scores: np.ndarray,
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
    places = placed.places_by_score(scores, start)
    return placed.placed_recall.of_segments(
        relevance, places, start, k=k, relevant_from=relevant_from
    )


@by_group
def mean_reciprocal_rank(
    relevance: np.ndarray, scores: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """Return the mean reciprocal rank, ``1 / (rank of the first relevant row)``.

    Undefined for a group without a relevant row.

    Examples
    --------
    >>> mean_reciprocal_rank([0, 1, 1], [3, 2, 1])
    0.5
    """
    places = placed.places_by_score(scores, start)
    return placed.placed_reciprocal_rank.of_segments(
        relevance, places, start, relevant_from=relevant_from
    )


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
    placed.check_k(k)
    top = float(relevance.max()) if highest is None else highest
    satisfied = (2.0**relevance - 1.0) / 2.0**top
    order = placed.best_first(scores, start)
    ranks = placed.ranks_in(start)
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
