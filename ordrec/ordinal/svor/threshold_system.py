"""The thresholds' part of a Newton step, which `newton_system` and `polish` share.

Equations (N10) and (N13) of `newton_system`, over the samples that take part: all of them there,
those with a free multiplier in `polish`.
"""

from __future__ import annotations

import numpy as np

from ordrec.linalg.small import factorise_small
from ordrec.runtime.compiling import compiled

__all__ = ["factorise_thresholds"]

LEAST_PIVOT = 1e-14  # of the largest diagonal entry of H: smaller pivots are raised to it


def factorise_thresholds(
    q: np.ndarray,
    S: np.ndarray,
    X: np.ndarray,
    ties: np.ndarray,
    *,
    lift: float = 0.0,
    stiffness: float = 0.0,
) -> np.ndarray:
    """The Cholesky factor of H, (N10) with (N13), as a lower triangle.

    ``S`` holds the shares, ``X`` M^-1 of them, both (T, n), and ``ties`` the weight of each
    b_j - b_{j-1}, zero for the first. With g = q share a sample adds q diag(share) + share
    (X - q share)'. ``lift`` of the largest diagonal entry, at least of 1, is added to the diagonal;
    ``stiffness`` is that of (I10).
    """
    H = S @ (X - q * S).T
    if stiffness > 0.0:
        H += stiffness * (np.eye(ties.size) - 1.0 / ties.size)
    _complete(H, S @ q, ties, lift)
    return H


@compiled
def _complete(H: np.ndarray, sums: np.ndarray, ties: np.ndarray, lift: float) -> None:
    """Add what is diagonal in (N10), the ties and the lift; overwrite the sum by its factor."""
    T = sums.size
    for j in range(T):
        H[j, j] += sums[j]
    for j in range(1, T):
        H[j, j] += ties[j]
        H[j - 1, j - 1] += ties[j]
        H[j, j - 1] -= ties[j]
    largest = 1e-300
    for j in range(T):
        largest = max(largest, H[j, j])
    if lift > 0.0:
        for j in range(T):
            H[j, j] += lift * max(1.0, largest)
    factorise_small(H, LEAST_PIVOT * largest)
