"""How far the estimates of ordinal logistic regression would vary from sample to sample.

The loss of a sample is a sum over thresholds, which is no log-likelihood of its rank: the same
sample counts several times. So the inverse Hessian H^-1 alone would be too small (or too large),
and the covariance of the estimates is Godambe's sandwich

    H^-1 G H^-1,   G = sum_i c_i g_i g_i',   H = sum_i c_i dg_i + alpha I (weights only)

with g_i the gradient of the loss of sample i. With a single threshold the loss is the
log-likelihood, and both agree for large samples.

=======  ==============================================  ===========
symbol   meaning                                         shape
=======  ==============================================  ===========
c        weights: how many samples a row stands for      (n,)
g        gradients, weights first and thresholds last    (n, d + T)
E        tie: coinciding thresholds are one parameter    (T, T')
=======  ==============================================  ===========
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ordrec.ordinal.losses import Loss, Reach, signs
from ordrec.ordinal.scaling import Standardisation
from ordrec.ordinal.thresholds.absent import PresentRanks

__all__ = ["MOST_FEATURES", "in_users_units", "sandwich"]

MOST_FEATURES = 200  # up to which standard errors are computed

BLOCK = 1 << 20  # numbers of the gradients that are computed at a time


def sandwich(
    X: Any,
    ranks: np.ndarray,
    weight: np.ndarray,
    coef: np.ndarray,
    thresholds: np.ndarray,
    loss: Loss,
    reach: Reach,
    alpha: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance of (coef, thresholds), and the Hessian H of the objective.

    Both have the shape (d + T, d + T). Without a unique minimum, variances are NaN.
    """
    d, T = coef.size, thresholds.size
    information, spread = np.zeros((d + T, d + T)), np.zeros((d + T, d + T))
    step = max(1, BLOCK // (d + T))
    for first in range(0, ranks.size, step):
        rows = slice(first, first + step)
        part = X[rows].toarray() if sparse.issparse(X) else X[rows]
        pull, curve = _derivatives(part @ coef, ranks[rows], thresholds, loss, reach)
        gradients = np.hstack([part * pull.sum(axis=1)[:, None], -pull])
        spread += (gradients * weight[rows, None]).T @ gradients
        curve *= weight[rows, None]
        information[:d, :d] += (part * curve.sum(axis=1)[:, None]).T @ part
        information[:d, d:] -= part.T @ curve
        information[d:, d:] += np.diag(curve.sum(axis=0))
    information[d:, :d] = information[:d, d:].T
    information[np.arange(d), np.arange(d)] += alpha
    groups = np.unique(thresholds, return_inverse=True)[1]
    tie = np.zeros((d + T, d + groups.max() + 1))
    tie[np.arange(d), np.arange(d)] = 1.0
    tie[d + np.arange(T), d + groups] = 1.0
    try:
        root = tie @ np.linalg.solve(tie.T @ information @ tie, tie.T)
    except np.linalg.LinAlgError:
        root = np.full_like(information, np.nan)
    return root @ spread @ root, information


def _derivatives(
    latent: np.ndarray, ranks: np.ndarray, thresholds: np.ndarray, loss: Loss, reach: Reach
) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivatives of the losses at each threshold in the score."""
    side = signs(ranks, thresholds.size + 1)
    m = side * (latent[:, None] - thresholds)
    pull, curve = side * loss.slope(m), loss.curvature(m)
    if reach == "immediate":
        k = np.arange(thresholds.size)
        near = (k == ranks[:, None]) | (k == ranks[:, None] - 1)
        pull, curve = pull * near, curve * near
    return pull, curve


def in_users_units(
    found: np.ndarray, d: int, part: PresentRanks, scaling: Standardisation | None
) -> np.ndarray:
    """Return the covariance of all thresholds, in the units of the features as they were given.

    ``found`` is that of d coefficients and of the thresholds of the ranks that have samples.
    """
    places = np.concatenate([np.arange(d), d + part.place])
    covariance = found[np.ix_(places, places)]
    placed = np.concatenate([np.zeros(d, dtype=bool), part.outer])  # by rule, not by data
    covariance[placed] = covariance[:, placed] = 0.0
    if scaling is not None:
        change = np.diag(np.concatenate([1.0 / scaling.deviation, np.ones(part.place.size)]))
        change[d:, :d] = scaling.mean / scaling.deviation
        covariance = change @ covariance @ change.T
    covariance[placed] = covariance[:, placed] = np.nan
    return covariance
