"""The weights of several scores: a softmax over the items that a user has not rated.

With ``f_j`` the features of item j for a user and ``g_j`` the weights of the user's targets, which
sum to 1,

(1) ``sum_u sum_j g_j log p(j | u) - c |w - m|^2 / 2``,
    ``p(j | u) = e^(w . f_j) / sum_k e^(w . f_k)``

is greatest where its gradient is 0; ``m`` are weights that are likely beforehand, and ``c`` is how
many users they count for. Newton's method needs

(2) ``sum_u sum_j g_j f_j - E[f]`` less ``c (w - m)``, and ``sum_u E[f f'] - E[f] E[f]'`` plus c I

with expectations under p. (1) is concave, and a step that does not raise it is halved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

__all__ = ["LikelyWeights", "fitted_weights", "log_likelihood"]

MAX_ITER = 12
LONGEST_STEP = 3.0
ENOUGH = 1e-3  # length of a step after which nothing changes


@dataclass(frozen=True)
class LikelyWeights:
    """Weights that are likely before any pick is seen.

    Attributes
    ----------
    mean : array of shape (n_features,)
        ``m``.
    precision : float
        ``c``.
    """

    mean: np.ndarray
    precision: float


def fitted_weights(
    features: np.ndarray,
    allowed: np.ndarray,
    targets: sparse.csr_array,
    likely: LikelyWeights,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Return the weights that maximise (1).

    Parameters
    ----------
    features : array of shape (n_users, n_features, n_items)
    allowed : bool array of shape (n_users, n_items)
        The items among which each user picks.
    targets : csr_array of shape (n_users, n_items)
        ``g``; each row sums to 1.
    likely : LikelyWeights
    start : array of shape (n_features,), optional
        Weights near the best ones, such as those for other users; ``m`` if omitted.
    """
    w = likely.mean if start is None else start
    value, gradient, hessian = log_likelihood(w, features, allowed, targets, likely)
    for _ in range(MAX_ITER):
        step = np.linalg.solve(hessian, gradient)
        step *= min(1.0, LONGEST_STEP / max(float(np.linalg.norm(step)), 1e-300))
        while True:
            tried = log_likelihood(w + step, features, allowed, targets, likely)
            if tried[0] >= value or np.linalg.norm(step) < ENOUGH:
                break
            step /= 2.0
        w, (value, gradient, hessian) = w + step, tried
        if np.linalg.norm(step) < ENOUGH:
            break
    return w


def log_likelihood(
    w: np.ndarray,
    features: np.ndarray,
    allowed: np.ndarray,
    targets: sparse.csr_array,
    likely: LikelyWeights,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return (1), its gradient and its negative Hessian, (2)."""
    away, c = w - likely.mean, likely.precision
    value, gradient, hessian = -c * float(away @ away) / 2.0, -c * away, c * np.eye(w.size)
    single = w.astype(features.dtype)
    for u in range(features.shape[0]):
        own = slice(targets.indptr[u], targets.indptr[u + 1])
        picked, g = targets.indices[own], targets.data[own]
        F = features[u]
        score = (single @ F).astype(np.float64)
        top = score.max(initial=-np.inf, where=allowed[u])
        p = np.where(allowed[u], np.exp(np.minimum(score - top, 0.0)), 0.0)
        total = p.sum()
        shares = (p / total).astype(F.dtype)
        value += float(g @ (score[picked] - top)) - float(g.sum() * np.log(total))
        expected = (F @ shares).astype(np.float64)
        gradient += F[:, picked] @ g - expected * g.sum()
        weighted = F * shares
        hessian += (weighted @ F.T - np.outer(expected, expected)) * g.sum()
    return value, gradient, hessian
