"""The test of parallel lines of Brant (1990, Biometrics 46).

A binary logistic regression at each threshold, "is the rank above k?", gives coefficients beta_k
that should be equal if odds are proportional. Their joint covariance, with Z = (1, X), p_k the
fitted P(y > k) and p_l <= p_k for l > k, is

    cov(beta_k, beta_l) = (Z' W_kk Z)^-1 Z' W_kl Z (Z' W_ll Z)^-1,   W_kl = diag(p_l (1 - p_k))

and Wald's statistic of the differences beta_0 - beta_k is chi-squared if they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, stats
from scipy.special import expit

from ordrec.errors import DataError
from ordrec.ordinal.logistic.newton import solve
from ordrec.ordinal.losses import Loss

__all__ = ["parallel_lines"]


def parallel_lines(X: Any, ranks: np.ndarray) -> list[tuple[float, int, float]]:
    """Return chi2, df and p of all features together, and then of each."""
    cuts = np.flatnonzero(np.bincount(ranks))[:-1]
    d, m = X.shape[1], cuts.size
    Z = np.column_stack([np.ones(X.shape[0]), X.toarray() if sparse.issparse(X) else X])
    beta, above = np.empty((m, d)), np.empty((m, X.shape[0]))
    for j, k in enumerate(cuts.tolist()):
        answer = (ranks > k).astype(np.int64)
        fit = solve(X, answer, 2, loss=Loss("logistic"), reach="all", alpha=0.0, tol=1e-12)
        if not fit.converged:
            raise DataError(
                f"the features separate the ranks above {k} from the others, so that their "
                "coefficients have no bounds: the test needs more samples or fewer features"
            )
        beta[j], above[j] = fit.coef, expit(X @ fit.coef - fit.thresholds[0])
    roots = [np.linalg.inv(Z.T @ (Z * (p * (1 - p))[:, None])) for p in above]
    joint = np.empty((m, d, m, d))
    for j in range(m):
        for i in range(j, m):
            middle = Z.T @ (Z * (above[i] * (1 - above[j]))[:, None])
            block = (roots[j] @ middle @ roots[i])[1:, 1:]
            joint[j, :, i, :], joint[i, :, j, :] = block, block.T
    difference = np.hstack([np.ones((m - 1, 1)), -np.eye(m - 1)])  # of the first and each other
    away = difference @ beta
    spread = np.einsum("aj,jviu,bi->avbu", difference, joint, difference)
    together = _wald(away.ravel(), spread.reshape(away.size, away.size))
    return [together, *(_wald(away[:, v], spread[:, v, :, v]) for v in range(d))]


def _wald(away: np.ndarray, covariance: np.ndarray) -> tuple[float, int, float]:
    chi2 = float(away @ np.linalg.solve(covariance, away))
    return chi2, away.size, float(stats.chi2.sf(chi2, away.size))
