"""Metrics of how far predicted ratings are from the true ones.

All take ``(y_true, y_pred, *, groups=None)``: ratings in their own scale, or ranks; the metrics
that need ranks say so. See `ordrec.evaluation.metrics.averaging` for
``groups``. In the formulas ``y`` is the true value, ``p`` the prediction, and means are over rows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ordrec.evaluation.metrics.averaging import (
    by_group,
    segment_means,
    segment_of_rows,
)

__all__ = [
    "kendall_tau",
    "macro_mae",
    "mae",
    "mze",
    "off_by_one",
    "quadratic_kappa",
    "rmse",
]


@by_group
def mae(y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the mean absolute error, ``mean |p - y|``.

    Examples
    --------
    >>> mae([1, 2, 5], [1, 3, 3])
    1.0
    >>> mae([1, 2, 5], [1, 3, 3], groups=["ann", "ann", "bob"])
    1.25
    """
    return segment_means(np.abs(y_pred - y_true), start)


@by_group
def mze(y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the mean zero-one error, ``mean [p != y]``: the share of wrong predictions.

    Examples
    --------
    >>> mze([1, 2, 5, 4], [1, 3, 3, 4])
    0.5
    """
    return segment_means((y_pred != y_true).astype(np.float64), start)


@by_group
def rmse(y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the root mean squared error, ``sqrt(mean (p - y)^2)``.

    Examples
    --------
    >>> rmse([1, 2, 5], [1, 4, 4.0]) ** 2 * 3
    5.0
    """
    return np.sqrt(segment_means((y_pred - y_true) ** 2, start))


@by_group
def off_by_one(y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the off-by-one accuracy of ranks, ``mean [|p - y| <= 1]``.

    Examples
    --------
    >>> off_by_one([1, 2, 5, 4], [1, 3, 3, 4])
    0.75
    """
    return segment_means((np.abs(y_pred - y_true) <= 1.0).astype(np.float64), start)


@by_group
def macro_mae(y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the macro-averaged absolute error, ``mean over c of mean_{y = c} |p - y|``.

    Every class c that occurs among the true ones weighs the same, however rare (Baccianella,
    Esuli and Sebastiani, 2009). "Macro" refers to classes here; ``groups`` adds the average over
    users.

    Examples
    --------
    >>> macro_mae([3, 3, 3, 5], [3, 3, 3, 4])
    0.5
    """
    classes, codes = np.unique(y_true, return_inverse=True)
    n_groups = start.size - 1
    cells = segment_of_rows(start) * classes.size + codes
    shape = (n_groups, classes.size)
    counts = np.bincount(cells, minlength=n_groups * classes.size).reshape(shape)
    sums = np.bincount(cells, np.abs(y_pred - y_true), minlength=counts.size).reshape(shape)
    return (sums / np.maximum(counts, 1)).sum(axis=1) / (counts > 0).sum(axis=1)


@by_group
def quadratic_kappa(y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return Cohen's kappa with quadratic weights, of ranks.

    ``1 - mean_i (p_i - y_i)^2 / mean_ij (p_i - y_j)^2``; the denominator is
    ``var y + var p + (mean y - mean p)^2``, so that no table of ranks is needed and ranks that
    never occur cannot shift the weights. 1 is perfect, 0 chance; undefined when all true
    and all predicted ranks are the same.

    Examples
    --------
    >>> quadratic_kappa([1, 2, 3], [1, 2, 3])
    1.0
    """
    mean_true, mean_pred = segment_means(y_true, start), segment_means(y_pred, start)
    segment = segment_of_rows(start)
    variance = segment_means((y_true - mean_true[segment]) ** 2, start)
    variance += segment_means((y_pred - mean_pred[segment]) ** 2, start)
    by_chance = variance + (mean_true - mean_pred) ** 2
    error = segment_means((y_pred - y_true) ** 2, start)
    share = np.divide(error, by_chance, out=np.full(error.size, np.nan), where=by_chance > 0)
    return 1.0 - share


@by_group
def kendall_tau(y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b, ``(C - D) / sqrt((C + D + T_y) (C + D + T_p))``.

    ``C`` and ``D`` count concordant and discordant pairs of rows, ``T_y`` and ``T_p`` those tied
    only in truth or only in prediction (`scipy.stats.kendalltau`). Undefined when all true
    or all predicted values are equal.

    Examples
    --------
    >>> round(kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]), 4)
    0.6667
    """
    from scipy.stats import kendalltau

    values = np.full(start.size - 1, np.nan)
    for group, (low, high) in enumerate(pairwise(start)):
        true, pred = y_true[low:high], y_pred[low:high]
        if np.ptp(true) > 0 and np.ptp(pred) > 0:
            values[group] = kendalltau(true, pred).statistic
    return values
