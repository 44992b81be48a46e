"""Bootstrap intervals of means of clustered values, such as the ratings of users."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ordrec.errors import ArgumentError
from ordrec.evaluation.significance.paired_tests import checked_sample

__all__ = ["Interval", "bootstrap_interval", "resampled_ratios"]

WEIGHTS_AT_ONCE = 4_000_000


class Interval(NamedTuple):
    """An estimate between two bounds."""

    low: float
    estimate: float
    high: float


def bootstrap_interval(
    values: Any,
    clusters: Any = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the percentile interval of a mean of clustered values, such as ratings of users.

    Whole clusters are drawn with replacement and the mean is taken over all their values, so
    that it is the pooled mean, and its interval is wide where the clusters differ.

    Parameters
    ----------
    values : array of float
        Such as the absolute error of each rating, or the difference of two models' errors.
    clusters : array, optional
        The user of each value; if not given, every value is its own cluster.
    level : float
    n_resamples : int
    seed : int

    Examples
    --------
    >>> low, mean, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"])
    >>> low, mean, high
    (1.5, 2.5, 3.5)
    """
    values = checked_sample(values)
    codes = np.arange(values.size) if clusters is None else pd.factorize(np.asarray(clusters))[0]
    if codes.shape != values.shape:
        raise ArgumentError(f"{values.size} values and {codes.size} clusters: one for each value")
    if not 0 < level < 1:
        raise ArgumentError(f"level must lie between 0 and 1, got {level}")
    sums, counts = np.bincount(codes, values), np.bincount(codes).astype(float)
    mean = float(values.mean())
    if sums.size < 2:
        raise ArgumentError("an interval needs values of at least two clusters")
    found = stats.bootstrap(
        (sums, counts),
        lambda s, n, axis: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        confidence_level=level,
        n_resamples=n_resamples,
        batch=max(1, 10_000_000 // sums.size),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(found.low), mean, float(found.high))


def resampled_ratios(
    sums: np.ndarray, counts: np.ndarray, *, n_resamples: int = 2000, seed: int = 0
) -> np.ndarray:
    """Return ``sum(sums) / sum(counts)`` of many columns over the same draws of clusters.

    This is the resampling of `bootstrap_interval` for all columns at once: each row of the
    result is one draw of the clusters, so that the differences of columns are paired.

    Parameters
    ----------
    sums, counts : array of shape (n_clusters, n_columns)
    n_resamples : int
    seed : int

    Returns
    -------
    ndarray of shape (n_resamples, n_columns)
        NaN where a draw has no counts.

    Examples
    --------
    >>> drawn = resampled_ratios(np.array([[3.0], [7.0]]), np.array([[2.0], [2.0]]))
    >>> np.unique(drawn).tolist()
    [1.5, 2.5, 3.5]
    """
    n_clusters, n_columns = sums.shape
    rng = np.random.default_rng(seed)
    both = np.hstack([sums, counts])
    ratios = np.empty((n_resamples, n_columns))
    step = max(1, WEIGHTS_AT_ONCE // n_clusters)
    for first in range(0, n_resamples, step):
        size = min(step, n_resamples - first)
        weights = rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size)
        drawn = weights.astype(np.float64) @ both
        drawn_sums, drawn_counts = drawn[:, :n_columns], drawn[:, n_columns:]
        ratios[first : first + size] = np.divide(
            drawn_sums,
            drawn_counts,
            out=np.full(drawn_sums.shape, np.nan),
            where=drawn_counts > 0,
        )
    return ratios
