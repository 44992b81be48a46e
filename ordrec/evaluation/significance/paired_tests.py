"""Tests and effect sizes for two models, from their values on folds, users or queries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ordrec.errors import ArgumentError

__all__ = [
    "Comparison",
    "checked_pair",
    "checked_sample",
    "cliffs_delta",
    "corrected_t",
    "paired_effect",
    "rank_sum",
    "signed_rank",
]


class Comparison(NamedTuple):
    """The statistic and the p-value of a test of two models."""

    statistic: float
    p: float


def signed_rank(a: Any, b: Any) -> Comparison:
    """Perform Wilcoxon's signed-rank test of values measured on the same folds.

    Equal values count half on each side (Pratt's zeros split in two); if all are equal, p is 1.

    Examples
    --------
    >>> signed_rank([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.4, 0.6, 0.8, 1.0, 1.2]).p
    0.03125
    """
    a, b = checked_pair(a, b)
    if np.array_equal(a, b):
        return Comparison(0.0, 1.0)
    found = stats.wilcoxon(a, b, zero_method="zsplit")
    return Comparison(float(found.statistic), float(found.pvalue))


def rank_sum(a: Any, b: Any) -> Comparison:
    """Perform Wilcoxon's rank-sum test (Mann and Whitney's U) of values on different folds.

    Examples
    --------
    >>> round(rank_sum([1, 2, 3, 4], [5, 6, 7, 8]).p, 4)
    0.0286
    """
    a, b = checked_sample(a), checked_sample(b)
    found = stats.mannwhitneyu(a, b, alternative="two-sided")
    return Comparison(float(found.statistic), float(found.pvalue))


def corrected_t(a: Any, b: Any, *, n_train: int, n_test: int) -> Comparison:
    """Perform a paired t-test whose variance accounts for overlapping training parts.

    With differences ``d`` of J resampled folds, ``t = mean(d) / sqrt((1/J + n_test/n_train)
    var(d))`` with J - 1 degrees of freedom (Nadeau and Bengio): the plain test
    assumes independent folds and finds differences that do not exist.

    Parameters
    ----------
    a, b : array of float
        Values on the same folds.
    n_train, n_test : int
        Sizes of the two parts of a fold.

    Examples
    --------
    >>> a, b = [0.30, 0.28, 0.31, 0.29], [0.33, 0.32, 0.33, 0.33]
    >>> round(corrected_t(a, b, n_train=75, n_test=25).p, 3)
    0.021
    """
    a, b = checked_pair(a, b)
    if n_train < 1 or n_test < 1:
        raise ArgumentError(f"a fold has rows in both parts, got {n_train} and {n_test}")
    difference = a - b
    if not difference.any():
        return Comparison(0.0, 1.0)
    variance = difference.var(ddof=1) * (1 / difference.size + n_test / n_train)
    if variance == 0.0:
        return Comparison(float(np.copysign(np.inf, difference.mean())), 0.0)
    t = float(difference.mean() / np.sqrt(variance))
    return Comparison(t, float(2 * stats.t.sf(abs(t), difference.size - 1)))


def paired_effect(a: Any, b: Any) -> float:
    """Return Cohen's d of paired values, ``mean(a - b) / std(a - b)``.

    Examples
    --------
    >>> round(paired_effect([3.0, 4.0, 6.0], [1.0, 3.0, 3.0]), 4)
    2.0
    """
    a, b = checked_pair(a, b)
    difference = a - b
    deviation = difference.std(ddof=1)
    if deviation == 0.0:
        return 0.0 if not difference.any() else float(np.copysign(np.inf, difference.mean()))
    return float(difference.mean() / deviation)


def cliffs_delta(a: Any, b: Any) -> float:
    """Return Cliff's delta, ``P(a > b) - P(a < b)``: between -1 and 1, 0 for no tendency.

    Examples
    --------
    >>> round(cliffs_delta([1, 2, 3], [0, 2, 2]), 4)
    0.3333
    """
    a, b = checked_sample(a), checked_sample(b)
    u = stats.mannwhitneyu(a, b, alternative="two-sided").statistic
    return float(2 * u / (a.size * b.size) - 1)


def checked_sample(values: Any) -> np.ndarray:
    """Return the values as an array of at least two finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < 2 or not np.isfinite(array).all():
        raise ArgumentError("a test needs at least two finite values of each model")
    return array


def checked_pair(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples of equal size as arrays."""
    first, second = checked_sample(a), checked_sample(b)
    if first.shape != second.shape:
        raise ArgumentError(
            f"paired values must be equal in number: {first.size} and {second.size}"
        )
    return first, second
