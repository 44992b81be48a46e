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
        first = 0
        for j in range(b.size):
            if j + 1 == b.size or not (ordered and mu[j + 1] > 0.0):
                _give_back(pairs, alpha, f, b, first, j)
                first = j + 1
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
    pairs: Pairs, alpha: np.ndarray, f: np.ndarray, b: np.ndarray, first: int, last: int
) -> None:
    """Remove the surplus of the thresholds first..last, from the free multipliers if they can.

    Otherwise from those at a bound, nearest to their margin first, which hurts (14) least.
    """
    mine = np.flatnonzero((pairs.threshold >= first) & (pairs.threshold <= last))
    sign, cap, values = pairs.sign[mine], pairs.cap[mine], alpha[mine]
    surplus = _from_free(sign, cap, values)
    if abs(surplus) > NEGLIGIBLE * float(cap.sum()):
        distance = np.abs(f[pairs.sample[mine]] - sign - b[pairs.threshold[mine]])
        _from_bound(sign, cap, values, surplus, np.argsort(distance, kind="stable"))
    alpha[mine] = values


def _from_free(sign: np.ndarray, cap: np.ndarray, values: np.ndarray) -> float:
    """Take equal parts of the surplus from the free multipliers; return what they cannot give."""
    surplus = float(sign @ values)
    negligible = NEGLIGIBLE * float(cap.sum())
    free = np.flatnonzero((values > 0.0) & (values < cap))
    while abs(surplus) > negligible and free.size > 0:
        wanted = values[free] - sign[free] * (surplus / free.size)
        moved = np.minimum(np.maximum(wanted, 0.0), cap[free])
        surplus -= float(sign[free] @ (values[free] - moved))
        values[free] = moved
        inside = (moved > 0.0) & (moved < cap[free])
        if inside.all():  # no multiplier met a bound: what is left is rounding
            return 0.0
        free = free[inside]
    return surplus


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
