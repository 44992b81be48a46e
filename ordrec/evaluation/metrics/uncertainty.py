"""Metrics of uncertainty: whether large errors are where a model says it is unsure.

The first ones take absolute errors and how uncertain each prediction was, in any unit. They are
those of Coscrato and Bridge (2023), "Estimating and evaluating the uncertainty of rating
predictions and top-n recommendations in recommender systems", as their released program computes
them. A model with correct distributions does not reach 1 in any of them: an error is one draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from ordrec.errors import ArgumentError, DataError

__all__ = [
    "interval_coverage",
    "interval_size",
    "large_error_auc",
    "pearson_of_errors",
    "quantile_rmse",
    "reliability_index",
    "rmse_spread",
    "spearman_of_errors",
]

PARTS = 20  # of the predictions, from the surest to the least sure


def pearson_of_errors(errors: Any, spread: Any) -> float:
    """Return Pearson's correlation of the errors and the uncertainties; NaN if one is constant.

    Examples
    --------
    >>> round(pearson_of_errors([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), 6)
    1.0
    """
    e, u = _pair(errors, spread)
    e, u = e - e.mean(), u - u.mean()
    size = float(np.sqrt((e @ e) * (u @ u)))
    return float(e @ u) / size if size > 0 else float("nan")


def spearman_of_errors(errors: Any, spread: Any) -> float:
    """Return Spearman's correlation of the errors and the uncertainties.

    Examples
    --------
    >>> round(spearman_of_errors([0.0, 1.0, 9.0], [1.0, 2.0, 3.0]), 6)
    1.0
    """
    e, u = _pair(errors, spread)
    return pearson_of_errors(rankdata(e), rankdata(u))


def reliability_index(errors: Any, spread: Any) -> float:
    """Return the reliability prediction index (RPI) of Bobadilla and others (2018).

    ``mean(e (e - mean e) (u - mean u)) / (mean e * mean |e - mean e| * mean |u - mean u|)``: a
    correlation in which large errors weigh more.

    Examples
    --------
    >>> reliability_index([0.0, 2.0], [1.0, 3.0])
    1.0
    """
    e, u = _pair(errors, spread)
    away, unsure = e - e.mean(), u - u.mean()
    scale = e.mean() * np.abs(away).mean() * np.abs(unsure).mean()
    return float((e * away * unsure).mean() / scale) if scale > 0 else float("nan")


def large_error_auc(errors: Any, spread: Any, large: float = 1.0) -> float:
    """Return the probability that a large error had more uncertainty than a small one (AUC).

    Parameters
    ----------
    errors, spread : array of shape (n,)
    large : float
        Errors above are large ones: one star, in the paper.

    Examples
    --------
    >>> large_error_auc([0.5, 2.0, 3.0], [0.1, 0.1, 0.7])  # half for a tie
    0.75
    """
    e, u = _pair(errors, spread)
    wrong = e > large
    n_wrong, n_right = int(wrong.sum()), int((~wrong).sum())
    if not n_wrong or not n_right:
        return float("nan")
    above = rankdata(u)[wrong].sum() - n_wrong * (n_wrong + 1) / 2
    return float(above / (n_wrong * n_right))


def quantile_rmse(errors: Any, spread: Any, parts: int = PARTS) -> np.ndarray:
    """Return the RMSE of equal parts of the predictions, from the surest to the least sure.

    Predictions of equal uncertainty stay in the order given.

    Examples
    --------
    >>> quantile_rmse([2.0, 1.0, 3.0, 0.0], [0.9, 0.2, 0.8, 0.1], parts=2).round(3).tolist()
    [0.707, 2.55]
    """
    e, u = _pair(errors, spread)
    if not 1 <= parts <= e.size:
        raise ArgumentError(f"{e.size} predictions cannot be divided into {parts} parts")
    ordered = np.array_split(e[np.argsort(u, kind="stable")], parts)
    return np.array([np.sqrt(np.mean(part**2)) for part in ordered])


def rmse_spread(errors: Any, spread: Any, parts: int = PARTS) -> float:
    """Return by how much the RMSE of the least sure part exceeds that of the surest part.

    Examples
    --------
    >>> rmse_spread([1.0, 3.0], [0.1, 0.2], parts=2)
    2.0
    """
    rmse = quantile_rmse(errors, spread, parts)
    return float(rmse[-1] - rmse[0])


def interval_coverage(values: Any, intervals: Any) -> float:
    """Return how often the true value lies in its interval, both ends included.

    Examples
    --------
    >>> interval_coverage([1, 4, 5], [[1, 2], [2, 3], [4, 5]]).__round__(4)
    0.6667
    """
    y, ends = _intervals(values, intervals)
    return float(((ends[:, 0] <= y) & (y <= ends[:, 1])).mean())


def interval_size(levels: Any) -> float:
    """Return the mean number of ranks in runs of ranks, given by their first and last rank.

    Examples
    --------
    >>> interval_size([[0, 1], [2, 2]])
    1.5
    """
    ends = np.asarray(levels, dtype=np.float64)
    return float((ends[:, 1] - ends[:, 0] + 1.0).mean())


def _pair(errors: Any, spread: Any) -> tuple[np.ndarray, np.ndarray]:
    e, u = np.asarray(errors, dtype=np.float64), np.asarray(spread, dtype=np.float64)
    if e.ndim != 1 or e.shape != u.shape or not e.size:
        raise ArgumentError(
            f"errors and uncertainties must pair up, got shapes {e.shape} and {u.shape}"
        )
    if (e < 0).any() or not (np.isfinite(e) & np.isfinite(u)).all():
        raise DataError("errors must be absolute ones, and both they and uncertainties finite")
    return e, u


def _intervals(values: Any, intervals: Any) -> tuple[np.ndarray, np.ndarray]:
    y, ends = np.asarray(values, dtype=np.float64), np.asarray(intervals, dtype=np.float64)
    if ends.shape != (y.size, 2) or not y.size:
        raise ArgumentError(f"{y.size} values need as many intervals, got shape {ends.shape}")
    return y, ends
