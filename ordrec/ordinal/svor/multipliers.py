"""Multipliers made exactly feasible, how far they are from optimal, and the thresholds they imply.

The interior-point method leaves every multiplier strictly inside its box. Multipliers within a
fraction of a bound are put on it. What this takes from the balance of a threshold, (12) or
(25), is given back by the multipliers that are free there; thresholds tied by a positive mu
share one balance, and mu follows from the sums.

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

__all__ = [
    "Bounds",
    "bounds_of",
    "empty_bounds",
    "implied_thresholds",
    "restore_balance",
    "set_bounds",
    "snap",
]

NEGLIGIBLE = 1e-15  # of the summed caps: a smaller surplus is rounding


def snap(cap: np.ndarray, alpha: np.ndarray, fraction: float) -> None:
    """Move multipliers within a fraction of their cap of a bound onto it, in place."""
    alpha[alpha < fraction * cap] = 0.0
    np.copyto(alpha, cap, where=alpha > (1.0 - fraction) * cap)


def restore_balance(
    pairs: Pairs, alpha: np.ndarray, mu: np.ndarray, f: np.ndarray, b: np.ndarray, ordered: bool
) -> None:
    """Make the balance of every threshold zero by small changes of alpha and mu, in place.

    Where mu is positive, a threshold is tied to the one before.
    """
    cut = True
    while cut:  # at most T times
        tied = (mu > 0.0) & ordered
        tied[0] = False
        group = np.cumsum(~tied) - 1  # of each threshold: those tied together have one balance
        _give_back(pairs, group[pairs.threshold], alpha, f, b)
        cut = False
        if ordered:
            sums = pairs.threshold_sums(pairs.sign * alpha, b.size)
            for j in range(1, b.size):
                if mu[j] > 0.0:  # mu follows from the sums; where it would be negative, cut the tie
                    mu[j] = mu[j - 1] - sums[j - 1]
                    if mu[j] <= 0.0:
                        mu[j] = 0.0
                        cut = True


def _give_back(
    pairs: Pairs, group: np.ndarray, alpha: np.ndarray, f: np.ndarray, b: np.ndarray
) -> None:
    """Remove the surplus of each group of pairs, from the free multipliers if they can.

    Otherwise from those at a bound, nearest to their margin first, which hurts (14) least.
    """
    surplus = np.bincount(group, pairs.sign * alpha)
    negligible = NEGLIGIBLE * np.bincount(group, pairs.cap)
    _take_from_free(pairs, group, alpha, surplus, negligible)
    for left in np.flatnonzero(np.abs(surplus) > negligible):
        mine = np.flatnonzero(group == left)
        sign, cap, values = pairs.sign[mine], pairs.cap[mine], alpha[mine]
        distance = np.abs(f[pairs.sample[mine]] - sign - b[pairs.threshold[mine]])
        _from_bound(sign, cap, values, surplus[left], np.argsort(distance, kind="stable"))
        alpha[mine] = values


def _take_from_free(
    pairs: Pairs,
    group: np.ndarray,
    alpha: np.ndarray,
    surplus: np.ndarray,
    negligible: np.ndarray,
) -> None:
    """Take equal parts of each surplus from the free multipliers; what they cannot give stays."""
    free = np.flatnonzero((alpha > 0.0) & (alpha < pairs.cap))
    while True:
        free = free[(np.abs(surplus) > negligible)[group[free]]]
        if free.size == 0:
            return
        of, sign, cap, before = group[free], pairs.sign[free], pairs.cap[free], alpha[free]
        part = surplus / np.maximum(np.bincount(of, minlength=surplus.size), 1)
        moved = np.minimum(np.maximum(before - sign * part[of], 0.0), cap)
        surplus -= np.bincount(of, sign * (before - moved), surplus.size)
        alpha[free] = moved
        inside = (moved > 0.0) & (moved < cap)
        done = np.bincount(of, minlength=surplus.size) > 0
        done[of[~inside]] = False
        surplus[done] = 0.0  # no multiplier met a bound: what is left is rounding
        free = free[inside]


def _from_bound(
    sign: np.ndarray, cap: np.ndarray, values: np.ndarray, surplus: float, order: np.ndarray
) -> None:
    """Take the surplus from one multiplier after the other, all that each can give."""
    falls = (sign > 0.0) == (surplus > 0.0)
    bound = np.where(falls, 0.0, cap)[order]
    capacity = np.abs(values[order] - bound)
    before = np.cumsum(capacity) - capacity
    taken = np.minimum(np.maximum(abs(surplus) - before, 0.0), capacity)
    moved = values[order] - np.where(falls[order], taken, -taken)
    values[order] = np.where(taken == capacity, bound, moved)


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
    bounds = empty_bounds(mu.size)
    set_bounds(pairs, alpha, mu, f, ordered, bounds)
    return bounds


def empty_bounds(n_thresholds: int) -> Bounds:
    """Empty bounds, which `set_bounds` fills."""
    low, up = np.empty(n_thresholds), np.empty(n_thresholds)
    low_pair, up_pair = np.empty((2, n_thresholds), dtype=np.int64)
    return Bounds(low, up, low_pair, up_pair)


@compiled
def set_bounds(
    pairs: Pairs,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
    ordered: bool,
    bounds: Bounds,
) -> None:
    """(16) and (18), into the bounds."""
    sample, threshold, sign, cap = pairs
    low, up, low_pair, up_pair = bounds
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
