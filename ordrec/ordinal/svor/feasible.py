"""From multipliers in the interior to a vertex-like feasible point: exact zeros, exact caps.

Multipliers within a fraction of a bound are put on it. What this takes from the balance of a
threshold, (12) or (25), is given back by the multipliers that are free there; thresholds
tied by a positive mu share one balance, and mu follows from the sums.
"""

from __future__ import annotations

import numpy as np

from ordrec.compiling import inner

__all__ = ["restore_balance", "snap"]


@inner
def snap(cap: np.ndarray, alpha: np.ndarray, fraction: float) -> None:
    """Move multipliers within a fraction of their cap of a bound onto it, in place."""
    for p in range(alpha.size):
        if alpha[p] < fraction * cap[p]:
            alpha[p] = 0.0
        elif alpha[p] > (1.0 - fraction) * cap[p]:
            alpha[p] = cap[p]


@inner
def restore_balance(
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    ordered: bool,
    free: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Make the balance of every threshold zero by small changes of alpha and mu, in place.

    ``free``, with an entry per pair, and ``sums``, with one per threshold, are room to work in.
    Where mu is positive, a threshold is tied to the one before.
    """
    cut = True
    while cut:  # at most T times
        first = 0
        for j in range(b.size):
            if j + 1 == b.size or not (ordered and mu[j + 1] > 0.0):
                _give_back(start, threshold, sign, cap, alpha, f, b, first, j, free)
                first = j + 1
        cut = False
        if ordered:
            for j in range(b.size):
                sums[j] = 0.0
            for p in range(alpha.size):
                sums[threshold[p]] += sign[p] * alpha[p]
            for j in range(1, b.size):
                if mu[j] > 0.0:  # mu follows from the sums; where it would be negative, cut the tie
                    mu[j] = mu[j - 1] - sums[j - 1]
                    if mu[j] <= 0.0:
                        mu[j] = 0.0
                        cut = True


@inner
def _give_back(
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    first: int,
    last: int,
    free: np.ndarray,
) -> None:
    """Remove the surplus of the thresholds first..last, from the free multipliers if they can.

    Otherwise from those at a bound, nearest to their margin first, which hurts (14) least.
    """
    n_free, surplus, scale = 0, 0.0, 0.0
    for p in range(alpha.size):
        if first <= threshold[p] <= last:
            surplus += sign[p] * alpha[p]
            scale += cap[p]
            if 0.0 < alpha[p] < cap[p]:
                free[n_free] = p
                n_free += 1
    negligible = 1e-15 * scale
    while abs(surplus) > negligible and n_free > 0:
        part, still = surplus / n_free, 0
        for k in range(n_free):
            p = free[k]
            taken = _take(sign, cap, alpha, p, part)
            surplus -= taken
            if taken == part:
                free[still] = p
                still += 1
        if still == n_free:  # no multiplier met a bound: what is left is rounding
            return
        n_free = still
    beyond = -1.0
    while abs(surplus) > negligible and beyond < np.inf:
        nearest = np.inf  # beyond those that gave already
        for i in range(f.size):
            for p in range(start[i], start[i + 1]):
                distance = abs(f[i] - sign[p] - b[threshold[p]])
                if first <= threshold[p] <= last and beyond < distance < nearest:
                    nearest = distance
        beyond = nearest
        for i in range(f.size):
            for p in range(start[i], start[i + 1]):
                distance = abs(f[i] - sign[p] - b[threshold[p]])
                if first <= threshold[p] <= last and distance == nearest:
                    surplus -= _take(sign, cap, alpha, p, surplus)


@inner
def _take(sign: np.ndarray, cap: np.ndarray, alpha: np.ndarray, p: int, amount: float) -> float:
    """Reduce the signed multiplier of a pair by up to amount; return by how much."""
    wanted = alpha[p] - sign[p] * amount
    if 0.0 < wanted < cap[p]:
        alpha[p] = wanted
        return amount
    bound = 0.0 if wanted <= 0.0 else cap[p]
    taken = sign[p] * (alpha[p] - bound)
    alpha[p] = bound
    return taken
