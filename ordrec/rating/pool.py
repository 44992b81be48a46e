"""The pool of two distributions, whose exponents are learnt on ratings that neither has seen.

(1) ``p(r) ~ f(r)^a g(r)^b`` with f and g the distributions of the two models for a pair and r a
    rank. The mean log-likelihood of held-out ratings is concave in (a, b).

The exponents need not sum to 1: two models that err independently are surer together than each
is alone, and models that are too sure are tempered.
"""

from __future__ import annotations

import numpy as np

__all__ = ["EQUAL", "PoolWeights", "learnt_pool", "pooled"]

PoolWeights = tuple[float, float]
EQUAL: PoolWeights = (0.5, 0.5)
LEAST = 1e-12  # probabilities below are as this one
FEW = 200  # held-out ratings below which nothing is learnt
LIMIT = 3.0  # of an exponent
PRIOR = 20.0  # ratings' worth of belief in equal exponents


def pooled(first: np.ndarray, second: np.ndarray, weights: PoolWeights) -> np.ndarray:
    """The pool (1) of distributions, one row per pair.

    Examples
    --------
    >>> pooled(np.array([[0.8, 0.2]]), np.array([[0.2, 0.8]]), EQUAL)
    array([[0.5, 0.5]])
    """
    logs = weights[0] * _logs(first) + weights[1] * _logs(second)
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def learnt_pool(first: np.ndarray, second: np.ndarray, levels: np.ndarray) -> PoolWeights:
    """The exponents with the best log-likelihood of held-out ratings, none below 0."""
    from scipy.optimize import minimize  # takes long to import

    if levels.size < FEW:
        return EQUAL
    logs = np.stack([_logs(first), _logs(second)])
    rows = np.arange(levels.size)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total = np.tensordot(weights, logs, 1)
        total -= total.max(axis=1, keepdims=True)
        p = np.exp(total)
        size = p.sum(axis=1, keepdims=True)
        p /= size
        own = total[rows, levels] - np.log(size[:, 0])
        slope = logs[:, rows, levels] - np.einsum("nr,mnr->mn", p, logs)
        away = weights - EQUAL
        return (
            float(-own.sum() + PRIOR * away @ away / 2) / levels.size,
            (-slope.sum(axis=1) + PRIOR * away) / levels.size,
        )

    best = minimize(loss, np.array(EQUAL), jac=True, bounds=[(0.0, LIMIT)] * 2, method="L-BFGS-B")
    a, b = best.x.tolist()
    return a, b


def _logs(p: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(p, LEAST))
