"""Primal and dual objective from scratch, whose difference is the duality gap."""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["dual_objective", "primal_objective", "signed_sums"]


@compiled
def signed_sums(pairs: Pairs, alpha: np.ndarray) -> np.ndarray:
    """beta_i, the signed sum of the multipliers of each sample, (8)."""
    beta = np.zeros(pairs.start.size - 1)
    for i in range(beta.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            beta[i] += pairs.sign[p] * alpha[p]
    return beta


@compiled
def primal_objective(pairs: Pairs, beta: np.ndarray, f: np.ndarray, b: np.ndarray) -> float:
    """Half the squared norm of w plus the hinge losses, (5) or (20)."""
    loss = 0.0
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            margin = pairs.sign[p] * (f[i] - b[pairs.threshold[p]])
            loss += pairs.cap[p] * max(0.0, 1.0 - margin)
    return 0.5 * np.dot(beta, f) + loss


@compiled
def dual_objective(alpha: np.ndarray, beta: np.ndarray, f: np.ndarray) -> float:
    """(11) or (24); a lower bound of the primal at any balanced multipliers in their box."""
    return np.sum(alpha) - 0.5 * np.dot(beta, f)
