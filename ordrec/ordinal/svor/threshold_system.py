"""The thresholds' part of a Newton step, which `newton_system` and `polish` share.

Equations (N10) and (N13) of `newton_system`, over the samples that take part: all of them there,
those with a free multiplier in `polish`.
"""

from __future__ import annotations

import numpy as np

__all__ = ["ThresholdSystem"]

LEAST_PIVOT = 1e-14  # of the largest diagonal entry of H, added where H has no factor without it
ATTEMPTS = 4  # each a hundred times the last


class ThresholdSystem:
    """Systems with the H of (N10), (T, T).

    Parameters
    ----------
    q : ndarray of shape (n,)
    S, X : ndarray of shape (T, n)
        The shares and M^-1 of them, transposed, (N8) and (N9).
    ties : ndarray of shape (T,), optional
        The weight of each b_j - b_{j-1}, zero for the first: mu / v of (N13).
    lift : float
        This much of the largest diagonal entry is added to the diagonal.
    """

    def __init__(
        self,
        q: np.ndarray,
        S: np.ndarray,
        X: np.ndarray,
        ties: np.ndarray | None = None,
        lift: float = 0.0,
    ):
        g = q * S
        H = S @ (X - g).T  # small numbers first: what is left of g after the samples moved
        H = 0.5 * (H + H.T)
        diagonal = H.reshape(-1)[:: H.shape[0] + 1]
        diagonal += g.sum(axis=1)
        if ties is not None:
            diagonal += ties
            diagonal[:-1] += ties[1:]
            H.reshape(-1)[1 :: H.shape[0] + 1] -= ties[1:]
            H.reshape(-1)[H.shape[0] :: H.shape[0] + 1] -= ties[1:]
        largest = max(1e-300, float(diagonal.max()))
        if lift > 0.0:
            diagonal += lift * max(1.0, largest)
        self._inverse: np.ndarray | None = None  # of the lower triangular factor
        added = LEAST_PIVOT * largest
        for _ in range(ATTEMPTS):
            try:
                self._inverse = np.linalg.inv(np.linalg.cholesky(H))
                break
            except np.linalg.LinAlgError:
                diagonal += added
                added *= 100.0

    @property
    def solvable(self) -> bool:
        """Whether H has a factor."""
        return self._inverse is not None and bool(np.isfinite(self._inverse).all())

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """H^-1 rhs."""
        assert self._inverse is not None
        return (self._inverse @ rhs) @ self._inverse
