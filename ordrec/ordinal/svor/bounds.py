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

from ordrec.ordinal.svor.pairs import Pairs
from ordrec.runtime.compiling import compiled

__all__ = ["Bounds", "bounds_of", "implied_thresholds", "room_for_bounds", "set_bounds"]


class Bounds(NamedTuple):
    """Bounds on each threshold and the pairs that set them (-1 where none does)."""

    low: np.ndarray  # (T,) B_low of (18)
    up: np.ndarray  # (T,) B_up of (18)
    low_pair: np.ndarray  # (T,) the pair p with F_p = B_low
    up_pair: np.ndarray  # (T,) the pair p with F_p = B_up


def bounds_of(
    pairs: Pairs, alpha: np.ndarray, mu: np.ndarray, f: np.ndarray, ordered: bool
) -> Bounds:
    """B_low and B_up of every threshold, (16) and (18)."""
    bounds = room_for_bounds(mu.size)
    set_bounds(*pairs, alpha, mu, f, ordered, *bounds)
    return bounds


def room_for_bounds(n_thresholds: int) -> Bounds:
    """Empty bounds, which `set_bounds` fills."""
    low, up = np.empty(n_thresholds), np.empty(n_thresholds)
    low_pair, up_pair = np.empty((2, n_thresholds), dtype=np.int64)
    return Bounds(low, up, low_pair, up_pair)


@compiled
def set_bounds(
    sample: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
    ordered: bool,
    low: np.ndarray,
    up: np.ndarray,
    low_pair: np.ndarray,
    up_pair: np.ndarray,
) -> None:
    """(16) and (18), into the last four."""
    T = mu.size
    for j in range(T):
        low[j], up[j], low_pair[j], up_pair[j] = -np.inf, np.inf, -1, -1
    for p in range(alpha.size):
        j, above = threshold[p], sign[p] > 0
        F = f[sample[p]] - sign[p]
        if up[j] > F and (alpha[p] < cap[p] if above else alpha[p] > 0.0):
            up[j], up_pair[j] = F, p  # I_0, I_1, I_3
        if low[j] < F and (alpha[p] > 0.0 if above else alpha[p] < cap[p]):
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


def implied_thresholds(bounds: Bounds) -> np.ndarray:
    """The middle of the interval that the conditions leave, or its one finite end."""
    low = np.where(np.isfinite(bounds.low), bounds.low, bounds.up)
    up = np.where(np.isfinite(bounds.up), bounds.up, bounds.low)
    return 0.5 * (low + up)
