"""Sequential minimal optimisation, appendix A: the readable solver, and the last resort.

Each step moves the two multipliers that violate (17) most, and, when they belong to
different thresholds (the cross update), the mu between them.

Equations here
--------------
    (30) signs, (31) the moves, (32) the direction of mu, (33) the unclipped length.

Departure: implicit constraints use the same code with other pairs and no mu (section 3.2
says as much); a vanishing denominator of (33) goes to the boundary, as the appendix asks.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.svor.bounds import bounds_of
from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.gram import Gram, add_row, entry
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["smo"]

FLAT = 1e-12  # curvature below this, relative to the kernel, counts as none


@compiled
def smo(
    K: Gram,
    pairs: Pairs,
    sample: np.ndarray,
    ordered: bool,
    tol: float,
    max_iter: int,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
) -> int:
    """Lower the violation (19) to tol, in place, from any balanced point; returns the steps."""
    for iteration in range(max_iter):
        bounds = bounds_of(pairs, alpha, mu, f, ordered)
        J = np.argmax(bounds.low - bounds.up)  # the active threshold
        if not bounds.low[J] - bounds.up[J] > tol:
            return iteration
        _take_step(K, pairs, sample, bounds.low_pair[J], bounds.up_pair[J], alpha, mu, f)
    return max_iter


@compiled
def _take_step(
    K: Gram,
    pairs: Pairs,
    sample: np.ndarray,
    o: int,
    u: int,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
) -> None:
    """Optimise alpha_o, alpha_u and the mu between their thresholds, (29)."""
    i_o, i_u = sample[o], sample[u]
    s_o, s_u = pairs.sign[o], pairs.sign[u]  # (30)
    j_o, j_u = pairs.threshold[o], pairs.threshold[u]
    slope = (f[i_o] - s_o) - (f[i_u] - s_u)  # b_low - b_up > 0
    scale = entry(K, i_o, i_o) + entry(K, i_u, i_u)
    curvature = scale - 2.0 * entry(K, i_o, i_u)
    length = slope / curvature if curvature > FLAT * scale else np.inf  # -Delta mu of (33)

    # s_o alpha_o falls and s_u alpha_u rises by the length; each has a bound to meet
    length = min(length, alpha[o] if s_o > 0 else pairs.cap[o] - alpha[o])
    length = min(length, pairs.cap[u] - alpha[u] if s_u > 0 else alpha[u])
    for j in range(j_u + 1, j_o + 1):  # mu falls when the upper threshold gives, (32)
        length = min(length, mu[j])

    _shift(pairs, alpha, o, -s_o * length)  # (31)
    _shift(pairs, alpha, u, s_u * length)
    for j in range(j_u + 1, j_o + 1):
        mu[j] = max(0.0, mu[j] - length)
    for j in range(j_o + 1, j_u + 1):
        mu[j] += length
    if i_o != i_u:
        add_row(K, i_u, length, f)
        add_row(K, i_o, -length, f)


@compiled
def _shift(pairs: Pairs, alpha: np.ndarray, p: int, amount: float) -> None:
    """Add to a multiplier; a step to a bound ends exactly on it."""
    moved, cap = alpha[p] + amount, pairs.cap[p]
    if amount < 0.0 and moved <= 1e-14 * cap:
        moved = 0.0
    elif amount > 0.0 and moved >= cap * (1.0 - 1e-14):
        moved = cap
    alpha[p] = moved
