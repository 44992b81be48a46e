"""Primal and dual objective from scratch, whose difference is the duality gap."""

from __future__ import annotations

import numpy as np

from ordrec.compiling import compiled, inner

__all__ = ["primal_and_dual", "signed_sums"]


@compiled
def signed_sums(start: np.ndarray, sign: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> None:
    """beta_i, the signed sum of the multipliers of each sample, (8)."""
    for i in range(beta.size):
        total = 0.0
        for p in range(start[i], start[i + 1]):
            total += sign[p] * alpha[p]
        beta[i] = total


@inner
def primal_and_dual(
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
) -> tuple[float, float]:
    """Half the squared norm of w plus the hinge losses, (5) or (20), and the dual, (11) or (24).

    The dual is a lower bound of the primal at any balanced multipliers in their box.
    """
    half_norm, loss, total = 0.0, 0.0, 0.0
    for i in range(f.size):
        half_norm += 0.5 * beta[i] * f[i]
        for p in range(start[i], start[i + 1]):
            total += alpha[p]
            short = 1.0 - sign[p] * (f[i] - b[threshold[p]])
            if short > 0.0:
                loss += cap[p] * short
    return half_norm + loss, total - half_norm
