"""The thresholds' part of a Newton step, which `newton_system` and `polish` share.

Equations (N8), (N10), (N11) and (N13) of `newton_system`. The samples that take part are ``rows``:
all of them there, those with a free multiplier in `polish`.
"""

from __future__ import annotations

import numpy as np

from ordrec.compiling import inner
from ordrec.linalg.small import factorise_small, solve_small

__all__ = ["move_thresholds", "set_shares", "set_thresholds"]

LEAST_PIVOT = 1e-14  # of the largest diagonal entry of H: smaller pivots are raised to it


@inner
def set_shares(
    start: np.ndarray, threshold: np.ndarray, rows: np.ndarray, share: np.ndarray, S: np.ndarray
) -> None:
    """S of (N8), transposed: the shares of some samples, one row per threshold."""
    for j in range(S.shape[0]):
        for k in range(rows.size):
            S[j, k] = 0.0
    for k in range(rows.size):
        for p in range(start[rows[k]], start[rows[k] + 1]):
            S[threshold[p], k] = share[p]


@inner
def set_thresholds(
    start: np.ndarray,
    threshold: np.ndarray,
    rows: np.ndarray,
    q: np.ndarray,
    share: np.ndarray,
    X: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    ordered: bool,
    lift: float,
    row: np.ndarray,
    H: np.ndarray,
) -> bool:
    """Overwrite H by its factor, (N10) with (N13); False if it has none.

    X has a column for each of the ``rows``. With g = q share a sample adds q diag(share) + share
    (X - q share)'; the lower triangle is enough. ``lift`` of the largest entry is added to the
    diagonal; ``row`` is room to work in.
    """
    T = mu.size
    for j in range(T):
        for k in range(T):
            H[j, k] = 0.0
    for k in range(rows.size):
        i = rows[k]
        for j in range(T):
            row[j] = X[j, k]
        for p in range(start[i], start[i + 1]):
            row[threshold[p]] -= q[i] * share[p]
        for p in range(start[i], start[i + 1]):
            j = threshold[p]
            for o in range(j + 1):
                H[j, o] += share[p] * row[o]
            H[j, j] += q[i] * share[p]
    if ordered:
        for j in range(1, T):  # (N13) with (N12), the part in db
            weight = mu[j] / v[j]
            H[j, j] += weight
            H[j - 1, j - 1] += weight
            H[j, j - 1] -= weight
    largest = 1e-300
    for j in range(T):
        if H[j, j] > largest:
            largest = H[j, j]
    if lift > 0.0:
        if largest < 1.0:
            largest = 1.0
        for j in range(T):
            H[j, j] += lift * largest
    return factorise_small(H, LEAST_PIVOT * largest)


@inner
def move_thresholds(
    start: np.ndarray,
    threshold: np.ndarray,
    rows: np.ndarray,
    share: np.ndarray,
    force: np.ndarray,
    pull: np.ndarray,
    solved: np.ndarray,
    place: int,
    H: np.ndarray,
    rhs: np.ndarray,
    step_b: np.ndarray,
) -> None:
    """The db of a step, (N11), ``rhs`` being the rest of it before.

    The row ``place`` of ``solved`` is x0, with an entry for each of the ``rows``.
    """
    for k in range(rows.size):
        i = rows[k]
        excess = pull[i] - solved[place, k]
        for p in range(start[i], start[i + 1]):
            rhs[threshold[p]] += share[p] * excess - force[p]  # (N11)
    solve_small(H, rhs, step_b)
