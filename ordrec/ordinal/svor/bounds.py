"""How far multipliers are from optimal, and the thresholds that they imply: (16)-(19).

Equations here
--------------
    F_p = f_i - sign_p                                          the threshold's value if p is on
                                                                its margin, section 2.2
    I_up: alpha_p can move so as to lower F_p's side            b_j <= F_p
    I_low: the other way                                        b_j >= F_p
    b_low^j = max F over I_low, b_up^j = min F over I_up        (16)
    with ordering: running maximum from below, minimum from above, merged where mu > 0  (18)
    violation = max_j B_low^j - B_up^j                          (19)

Departure: (18) looks one threshold to each side of a positive mu. Three or more positive
mu in a row tie four or more thresholds together, and the outer two must agree as well; so
the whole run of tied thresholds is merged here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["Bounds", "bounds_of", "implied_thresholds"]


class Bounds(NamedTuple):
    """Bounds on each threshold and the pairs that set them (-1 where none does)."""

    low: np.ndarray  # (T,) B_low of (18)
    up: np.ndarray  # (T,) B_up of (18)
    low_pair: np.ndarray  # (T,) the pair p with F_p = B_low
    up_pair: np.ndarray  # (T,) the pair p with F_p = B_up


@compiled
def bounds_of(
    pairs: Pairs, alpha: np.ndarray, mu: np.ndarray, f: np.ndarray, ordered: bool
) -> Bounds:
    """B_low and B_up of every threshold, (16) and (18)."""
    T = mu.size
    low, up = np.full(T, -np.inf), np.full(T, np.inf)
    low_pair, up_pair = np.full(T, -1), np.full(T, -1)
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            j, above = pairs.threshold[p], pairs.sign[p] > 0
            F = f[i] - pairs.sign[p]
            if up[j] > F and (alpha[p] < pairs.cap[p] if above else alpha[p] > 0.0):
                up[j], up_pair[j] = F, p  # I_0, I_1, I_3
            if low[j] < F and (alpha[p] > 0.0 if above else alpha[p] < pairs.cap[p]):
                low[j], low_pair[j] = F, p  # I_0, I_2, I_4
    if ordered:
        for j in range(1, T):
            if low[j - 1] > low[j]:
                low[j], low_pair[j] = low[j - 1], low_pair[j - 1]
        for j in range(T - 2, -1, -1):
            if up[j + 1] < up[j]:
                up[j], up_pair[j] = up[j + 1], up_pair[j + 1]
        for j in range(T - 2, -1, -1):
            if mu[j + 1] > 0.0:
                low[j], low_pair[j] = low[j + 1], low_pair[j + 1]
        for j in range(1, T):
            if mu[j] > 0.0:
                up[j], up_pair[j] = up[j - 1], up_pair[j - 1]
    return Bounds(low, up, low_pair, up_pair)


@compiled
def implied_thresholds(bounds: Bounds) -> np.ndarray:
    """The middle of the interval that the conditions leave, or its one finite end."""
    b = 0.5 * (bounds.low + bounds.up)
    for j in range(b.size):
        if not np.isfinite(bounds.low[j]):
            b[j] = bounds.up[j]
        elif not np.isfinite(bounds.up[j]):
            b[j] = bounds.low[j]
    return b
