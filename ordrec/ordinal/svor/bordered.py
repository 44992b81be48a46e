"""A Cholesky factor that also serves matrices in which a few rows differ.

`polish` solves one system after the other with K + D over the rows with a free multiplier, and
from one to the next only a few rows leave, come, or change their entry of D. A border around the
matrix M of the factor does the same: a row that leaves is held at zero by a multiplier, one that
comes stands in the border, and one that changes does both.

Equations here
--------------
    [ M   W ] [x]   [rhs]     W: a unit column for each row that leaves, K's for each that comes
    [ W'  A ] [y] = [new]     A: zero, and K + D of the rows that come                  (B1)

    (A - W' M^-1 W) y = new - W' M^-1 rhs,   x = M^-1 rhs - (M^-1 W) y                  (B2)
"""

from __future__ import annotations

import numpy as np

from ordrec.linalg.lapack import ADDRESSES, solve_factorised

__all__ = ["BorderedFactor"]

WIDEST = 0.05  # of the rows of the factor: a new factor is cheaper than a wider border


class BorderedFactor:
    """Systems with K + diag(shift) over the rows where the shift is finite.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    factor : ndarray
        Of M, as `lapack.factorise` leaves it.
    rows : ndarray of int
        The rows of K in M.
    shift : ndarray of shape (n,)
        What M has on its diagonal beside K, infinite for the other rows.
    """

    def __init__(self, K: np.ndarray, factor: np.ndarray, rows: np.ndarray, shift: np.ndarray):
        self.K = K
        self.factor = factor
        self.rows = rows
        self.shift = shift
        self.leave = self.come = np.empty(0, dtype=np.int64)
        self.border = self.solved = np.empty((0, rows.size), dtype=K.dtype)
        self.inverse = np.empty((0, 0))

    def serves(self, shift: np.ndarray) -> bool:
        """Set the border for other shifts; False if that would be too wide."""
        changed = np.flatnonzero(shift != self.shift)
        if changed.size > WIDEST * self.rows.size:
            return False
        leave = changed[np.isfinite(self.shift[changed])]
        come = changed[np.isfinite(shift[changed])]
        W = np.zeros((leave.size + come.size, self.rows.size), dtype=self.K.dtype)
        W[np.arange(leave.size), np.searchsorted(self.rows, leave)] = 1.0
        W[leave.size :] = self.K[come][:, self.rows]
        A = np.zeros((W.shape[0], W.shape[0]))
        A[leave.size :, leave.size :] = self.K[np.ix_(come, come)] + np.diag(shift[come])
        self.leave, self.come, self.border = leave, come, W
        self.solved = self._solve(W.copy())
        try:
            self.inverse = np.linalg.inv(A - W @ self.solved.T)  # (B2)
        except np.linalg.LinAlgError:
            return False
        return True

    def solve(self, B: np.ndarray) -> np.ndarray:
        """The solution for each row of B, (m, n), zero in the rows that take no part."""
        if self.rows.size == B.shape[1] and self.border.size == 0:
            return self._solve(np.array(B, dtype=self.K.dtype, order="C"))
        X = self._solve(np.take(B, self.rows, axis=1).astype(self.K.dtype, copy=False))
        new = np.zeros((B.shape[0], self.border.shape[0]))
        new[:, self.leave.size :] = B[:, self.come]
        y = (new - X @ self.border.T) @ self.inverse  # (B2)
        X -= y.astype(X.dtype) @ self.solved
        whole = np.zeros(B.shape, dtype=X.dtype)
        whole[:, self.rows] = X
        whole[:, self.leave] = 0.0  # which it is but for rounding
        whole[:, self.come] = y[:, self.leave.size :]
        return whole

    def _solve(self, B: np.ndarray) -> np.ndarray:
        """M^-1 of each row of B, which is overwritten."""
        if B.size > 0:
            solve_factorised(self.factor, B, ADDRESSES)
        return B
