"""Metrics of how well scores order the items of a user, or the documents of a query.

All take ``(relevance, scores, *, groups=None)``: the relevance of each row, the score by which
rows are ranked, highest first, and the user or query each row belongs to (without groups
all rows are one query). The result is the mean over the groups where the metric is
defined. Rows with equal scores are ranked in a random order that is the same in every
run, so that no model gains from the order of the file; only `fcp` does not need this.

In the formulas ``rel_t`` is the relevance of the row at rank ``t = 1, 2, ...``
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics.averaging import by_group, segment_of_rows, segment_sums

__all__ = [
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
    _check_k(k)
    if (relevance < 0).any():
        raise ArgumentError("ndcg: relevance must not be negative")
    if gain not in ("exponential", "linear"):
        raise ArgumentError(f'gain must be "exponential" or "linear", got {gain!r}')
    if discount not in ("log2", "letor"):
        raise ArgumentError(f'discount must be "log2" or "letor", got {discount!r}')
    gains = 2.0**relevance - 1.0 if gain == "exponential" else relevance
    rank = ranks_in(start)
    weight = 1.0 / np.log2(rank + 1.0 if discount == "log2" else np.maximum(rank, 2.0))
    if k is not None:
        weight[rank > k] = 0.0
    reached = segment_sums(gains[best_first(scores, start)] * weight, start)
    ideal = segment_sums(gains[best_first(relevance, start)] * weight, start)
    return np.divide(reached, ideal, out=np.full(ideal.size, np.nan), where=ideal > 0)


@by_group
def mean_average_precision(
    relevance: np.ndarray, scores: np.ndarray, start: np.ndarray, *, relevant_from: float = 1.0
) -> np.ndarray:
    """Return the mean average precision, ``1/R sum_{t relevant} (relevant among the first t) / t``.

    ``R`` is the number of relevant rows, those with relevance of at least ``relevant_from``;
    undefined for a group without any. Computed by ir-measures, like the three metrics below.

    Examples
    --------
    >>> mean_average_precision([1, 0, 1, 0], [4, 3, 2, 1])
    0.8333333333333333
    """
    return _by_ir_measures("AP", relevance >= relevant_from, scores, start)


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
    _check_k(k)
    return _by_ir_measures(f"P@{k}", relevance >= relevant_from, scores, start)


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
    _check_k(k)
    return _by_ir_measures(f"R@{k}", relevance >= relevant_from, scores, start)


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
    return _by_ir_measures("RR", relevance >= relevant_from, scores, start)


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


# ---- rankings within segments ------------------------------------------------------------


def _check_k(k: int | None) -> None:
    if k is not None and k < 1:
        raise ArgumentError(f"k must be at least 1, got {k}")


def ranks_in(start: np.ndarray) -> np.ndarray:
    """Return the ranks 1, 2, ... within each segment."""
    return np.arange(start[-1]) - start[:-1][segment_of_rows(start)] + 1.0


def best_first(scores: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return rows by falling score within each segment, ties in a fixed random order."""
    rows = np.random.default_rng(0).permutation(scores.size)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    rank = np.empty(rows.size, dtype=np.int64)
    rank[rows] = np.arange(rows.size)
    # One distinct whole number per row: much faster to sort than two columns.
    return np.argsort(segment_of_rows(start) << 32 | rank)


def _by_ir_measures(
    measure: str, relevant: np.ndarray, scores: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return a measure of ir-measures for each segment, NaN without relevant rows."""
    import ir_measures

    # Ranks are passed instead of scores because trec_eval would order ties by name.
    order = best_first(scores, start)
    names = [str(row) for row in order]
    wanted: dict[str, dict[str, int]] = {}
    found: dict[str, dict[str, float]] = {}
    for group, (low, high) in enumerate(pairwise(start.tolist())):
        flags = relevant[order[low:high]]
        if flags.any():
            rows = names[low:high]
            wanted[str(group)] = dict(zip(rows, flags.astype(int).tolist(), strict=True))
            found[str(group)] = dict(
                zip(rows, np.arange(high - low, 0, -1.0).tolist(), strict=True)
            )
    values = np.full(start.size - 1, np.nan)
    if wanted:
        evaluator = ir_measures.evaluator([ir_measures.parse_measure(measure)], wanted)
        for result in evaluator.iter_calc(found):
            values[int(result.query_id)] = result.value
    return values
