"""From multipliers in the interior to a vertex-like feasible point: exact zeros, exact caps.

Multipliers within a fraction of a bound are put on it. What this takes from the balance of a
threshold, (12) or (25), is given back by the multipliers that are free there; thresholds
tied by a positive mu share one balance, and mu follows from the sums.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["restore_balance", "snap"]


@compiled
def snap(pairs: Pairs, alpha: np.ndarray, fraction: float) -> None:
    """Move multipliers within a fraction of their cap of a bound onto it, in place."""
    for p in range(alpha.size):
        cap = pairs.cap[p]
        if alpha[p] < fraction * cap:
            alpha[p] = 0.0
        elif alpha[p] > (1.0 - fraction) * cap:
            alpha[p] = cap


@compiled
def restore_balance(
    pairs: Pairs, alpha: np.ndarray, mu: np.ndarray, f: np.ndarray, b: np.ndarray, ordered: bool
) -> None:
    """Make the balance of every threshold zero by small changes of alpha and mu, in place."""
    T = b.size
    tied = np.zeros(T, dtype=np.bool_)  # to the threshold before
    if ordered:
        for j in range(1, T):
            tied[j] = mu[j] > 0.0
    while True:
        first = 0
        while first < T:
            last = first
            while last + 1 < T and tied[last + 1]:
                last += 1
            _give_back(pairs, alpha, f, b, first, last)
            first = last + 1
        if not ordered or _solve_mu(pairs, alpha, mu, tied):
            return  # otherwise a run of ties was cut: at most T times


@compiled
def _solve_mu(pairs: Pairs, alpha: np.ndarray, mu: np.ndarray, tied: np.ndarray) -> bool:
    """Set mu from the sums; where it would be negative, cut the tie and return False."""
    T = mu.size
    sums = np.zeros(T)
    for p in range(alpha.size):
        sums[pairs.threshold[p]] += pairs.sign[p] * alpha[p]
    fine = True
    for j in range(1, T):
        mu[j] = 0.0
        if tied[j]:
            mu[j] = mu[j - 1] - sums[j - 1]
            if mu[j] <= 0.0:
                mu[j] = 0.0
                tied[j] = False
                fine = False
    return fine


@compiled
def _give_back(
    pairs: Pairs, alpha: np.ndarray, f: np.ndarray, b: np.ndarray, first: int, last: int
) -> None:
    """Remove the surplus of the thresholds first..last, from the free multipliers if they can.

    Otherwise from those at a bound, nearest to their margin first, which hurts (14) least.
    """
    free = np.empty(alpha.size, dtype=np.int64)
    n_free, surplus, scale = 0, 0.0, 0.0
    for p in range(alpha.size):
        if first <= pairs.threshold[p] <= last:
            surplus += pairs.sign[p] * alpha[p]
            scale += pairs.cap[p]
            if 0.0 < alpha[p] < pairs.cap[p]:
                free[n_free] = p
                n_free += 1
    negligible = 1e-15 * scale
    while abs(surplus) > negligible and n_free > 0:
        part, still = surplus / n_free, 0
        for k in range(n_free):
            p = free[k]
            taken = _take(pairs, alpha, p, part)
            surplus -= taken
            if taken == part:
                free[still] = p
                still += 1
        if still == n_free:  # no multiplier met a bound: what is left is rounding
            return
        n_free = still
    if abs(surplus) <= negligible:
        return
    distance = np.empty(alpha.size)
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            j = pairs.threshold[p]
            inside = first <= j <= last
            distance[p] = abs(f[i] - pairs.sign[p] - b[j]) if inside else np.inf
    for p in np.argsort(distance):
        if abs(surplus) <= negligible or distance[p] == np.inf:
            return
        surplus -= _take(pairs, alpha, p, surplus)


@compiled
def _take(pairs: Pairs, alpha: np.ndarray, p: int, amount: float) -> float:
    """Reduce the signed multiplier of a pair by up to amount; return by how much."""
    wanted = alpha[p] - pairs.sign[p] * amount
    if 0.0 < wanted < pairs.cap[p]:
        alpha[p] = wanted
        return amount
    bound = 0.0 if wanted <= 0.0 else pairs.cap[p]
    taken = pairs.sign[p] * (alpha[p] - bound)
    alpha[p] = bound
    return taken
