"""From multipliers in the interior to a vertex-like feasible point: exact zeros, exact caps.

Multipliers within a fraction of a bound are put on it. What this takes from the balance of a
threshold, (12) or (25), is given back by the multipliers that are free there; thresholds
tied by a positive mu share one balance, and mu follows from the sums.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["restore_balance", "snap"]

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
