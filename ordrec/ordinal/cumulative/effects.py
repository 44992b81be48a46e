"""Average marginal effects of a cumulative-link model, with errors by the delta method.

P_k(x) = F(b_k - f) - F(b_{k-1} - f), f = w.x, so that dP_k/dx_v = w_v g_k with
g_k = F'(b_{k-1} - f) - F'(b_k - f), averaged over the samples. Derivatives of the average in
the parameters, with s_k = F''(b_k - f): in w_u it is [u = v] g_k + w_v mean(x_u (s_k - s_{k-1})),
in b_k it is -w_v mean(s_k), and in b_{k-1} it is w_v mean(s_{k-1}).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.ordinal.cumulative.links import density, relative_slope

__all__ = ["average_effects"]


def average_effects(
    X: Any,
    coef: np.ndarray,
    thresholds: np.ndarray,
    covariance: np.ndarray,
    link: str,
    share: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return effects and their standard errors, of shape (n_features, n_ranks).

    ``share`` are the weights of the samples, which add up to one.
    """
    d, T = coef.size, thresholds.size
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    z = edges - (X @ coef)[:, None]
    first = density(z, link)
    second = first * relative_slope(z, link)
    g = share @ (first[:, :-1] - first[:, 1:])
    by_score = X.T @ (share[:, None] * (second[:, 1:] - second[:, :-1]))  # (d, n_ranks)
    of_edges = share @ second
    effects = np.outer(coef, g)
    errors = np.empty_like(effects)
    for k in range(T + 1):
        J = np.zeros((d, d + T))
        J[:, :d] = np.outer(coef, by_score[:, k]) + g[k] * np.eye(d)
        if k < T:
            J[:, d + k] = -coef * of_edges[k + 1]
        if k > 0:
            J[:, d + k - 1] = coef * of_edges[k]
        errors[:, k] = np.sqrt(np.maximum(np.einsum("vi,ij,vj->v", J, covariance, J), 0.0))
    return effects, errors
