"""The thresholds' part of a Newton step, which `newton_system` and `polish` share.

Equations (N10) and (N13) of `newton_system`, over the samples that take part: all of them there,
those with a free multiplier in `polish`.
"""

from __future__ import annotations

import numpy as np

from ordrec.compiling import compiled
from ordrec.linalg.small import factorise_small

__all__ = ["factorise_thresholds"]

LEAST_PIVOT = 1e-14  # of the largest diagonal entry of H: smaller pivots are raised to it


@compiled
def factorise_thresholds(
    q: np.ndarray, S: np.ndarray, X: np.ndarray, ties: np.ndarray, lift: float, H: np.ndarray
) -> bool:
    """Overwrite H by its factor, (N10) with (N13); False if it has none.

    ``S`` holds the shares, ``X`` M^-1 of them, both (T, n), and ``ties`` the weight of each
    b_j - b_{j-1}, zero for the first. With g = q share a sample adds q diag(share) + share
    (X - q share)'; the lower triangle is enough. ``lift`` of the largest diagonal entry, at least
    of 1, is added to the diagonal.
    """
    T = S.shape[0]
    largest = 1e-300
    for j in range(T):
        for o in range(j + 1):
            total = 0.0
            for i in range(q.size):
                total += S[j, i] * (X[o, i] - q[i] * S[o, i])
            H[j, o] = total
        for i in range(q.size):
            H[j, j] += q[i] * S[j, i]
    for j in range(1, T):
        H[j, j] += ties[j]
        H[j - 1, j - 1] += ties[j]
        H[j, j - 1] -= ties[j]
    for j in range(T):
        largest = max(largest, H[j, j])
    if lift > 0.0:
        for j in range(T):
            H[j, j] += lift * max(1.0, largest)
    return factorise_small(H, LEAST_PIVOT * largest)
