"""Sequential minimal optimisation, appendix A: the readable solver, and the last resort.

Each step moves the two multipliers that violate (17) most, and, when they belong to
different thresholds (the cross update), the mu between them.

Equations here
--------------
    (30) signs, (31) the moves, (32) the direction of mu, (33) the unclipped length.

Departures
----------
The whole Gram matrix is kept, and there is no double loop
    The paper caches errors and alternates between all samples and those inside their bounds.
    Effect: the same optimum; memory grows with the square of the rows.
Implicit constraints use the same code with other pairs and no mu
    Section 3.2 says as much. Effect: none.
A vanishing denominator of (33) goes to the boundary
    As the appendix asks. Effect: none.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.gram.matrix import Gram, add_row, entry
from ordrec.ordinal.svor.multipliers import Bounds, empty_bounds, set_bounds
from ordrec.ordinal.svor.pairs import Pairs
from ordrec.runtime.compiling import compiled, inner

__all__ = ["smo"]

FLAT = 1e-12  # curvature below this, relative to the kernel, counts as none


def smo(
    K: Gram,
    pairs: Pairs,
    ordered: bool,
    tol: float,
    max_iter: int,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
) -> int:
    """Lower the violation (19) to tol, in place, from any balanced point; returns the steps."""
    bounds = empty_bounds(mu.size)
    return _smo(*K.form, pairs, ordered, tol, max_iter, alpha, mu, f, bounds)


@compiled
def _smo(
    values: np.ndarray,
    factored: bool | None,
    pairs: Pairs,
    ordered: bool,
    tol: float,
    max_iter: int,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
    bounds: Bounds,
) -> int:
    sample, low, up = pairs.sample, bounds.low, bounds.up
    for iteration in range(max_iter):
        set_bounds(pairs, alpha, mu, f, ordered, bounds)
        J = 0  # the active threshold
        for j in range(1, mu.size):
            if low[j] - up[j] > low[J] - up[J]:
                J = j
        if not low[J] - up[J] > tol:
            return iteration
        o, u = bounds.low_pair[J], bounds.up_pair[J]
        length = _take_step(values, factored, pairs, o, u, alpha, mu, f)
        if sample[o] != sample[u]:
            add_row(values, factored, sample[u], length, f)
            add_row(values, factored, sample[o], -length, f)
    return max_iter


@inner
def _take_step(
    values: np.ndarray,
    factored: bool | None,
    pairs: Pairs,
    o: int,
    u: int,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
) -> float:
    """Optimise alpha_o, alpha_u and the mu between their thresholds, (29); return the length."""
    sample, threshold, sign, cap = pairs
    i_o, i_u = sample[o], sample[u]
    s_o, s_u = sign[o], sign[u]  # (30)
    j_o, j_u = threshold[o], threshold[u]
    slope = (f[i_o] - s_o) - (f[i_u] - s_u)  # b_low - b_up > 0
    scale = entry(values, factored, i_o, i_o) + entry(values, factored, i_u, i_u)
    curvature = scale - 2.0 * entry(values, factored, i_o, i_u)
    length = slope / curvature if curvature > FLAT * scale else np.inf  # -Delta mu of (33)

    # s_o alpha_o falls and s_u alpha_u rises by the length; each has a bound to meet
    length = min(length, alpha[o] if s_o > 0 else cap[o] - alpha[o])
    length = min(length, cap[u] - alpha[u] if s_u > 0 else alpha[u])
    for j in range(j_u + 1, j_o + 1):  # mu falls when the upper threshold gives, (32)
        length = min(length, mu[j])

    alpha[o] = _shifted(alpha[o], -s_o * length, cap[o])  # (31)
    alpha[u] = _shifted(alpha[u], s_u * length, cap[u])
    for j in range(j_u + 1, j_o + 1):
        mu[j] = max(0.0, mu[j] - length)
    for j in range(j_o + 1, j_u + 1):
        mu[j] += length
    return length


@inner
def _shifted(alpha: float, amount: float, cap: float) -> float:
    """A multiplier plus an amount; a step to a bound ends exactly on it."""
    moved = alpha + amount
    if amount < 0.0 and moved <= 1e-14 * cap:
        return 0.0
    if amount > 0.0 and moved >= cap * (1.0 - 1e-14):
        return cap
    return moved
