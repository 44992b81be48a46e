"""Cholesky factors, solves and inverses of small matrices, compiled, without a call to LAPACK.

For systems of a few dozen unknowns that are solved thousands of times, where the call itself
would cost more than the arithmetic: the thresholds of one problem, the factors of one user.
Equations here, with L lower triangular:

(1) ``A = L L'``:  ``L_kk^2 = A_kk - sum_{j<k} L_kj^2``,
    ``L_ik = (A_ik - sum_{j<k} L_ij L_kj) / L_kk``
(2) ``L y = rhs``, then ``L' x = y``
(3) ``X = L^{-1}`` by block rows: ``X_ii = L_ii^{-1}``, ``X_i,<i = -X_ii L_i,<i X_<i,<i``
"""

from __future__ import annotations

import numpy as np

from ordrec.runtime.compiling import compiled

__all__ = ["factorise_small", "invert_lower", "solve_small"]

BLOCK = 48  # rows of the triangular inverse that are found together


@compiled
def factorise_small(A: np.ndarray, least_pivot: float) -> bool:
    """Overwrite the lower triangle of A by its Cholesky factor, (1).

    Squared pivots below ``least_pivot`` are raised to it; with ``-inf`` none is, and a matrix
    that is not positive definite gives NaN. Returns whether all pivots were finite.
    """
    finite = True
    for i in range(A.shape[0]):
        for k in range(i + 1):
            total = A[i, k]
            for j in range(k):
                total -= A[i, j] * A[k, j]
            if k < i:
                A[i, k] = total / A[k, k]
            else:
                finite = finite and bool(np.isfinite(total))
                A[i, i] = np.sqrt(max(total, least_pivot))
    return finite


@compiled
def solve_small(L: np.ndarray, rhs: np.ndarray, x: np.ndarray) -> None:
    """Write the solution of L L' x = rhs into x, (2).

    By columns of L, so that the first half has no sum to wait for; any memory order will do.
    """
    n = L.shape[0]
    for i in range(n):
        x[i] = rhs[i]
    for j in range(n):
        x[j] /= L[j, j]
        for i in range(j + 1, n):
            x[i] -= L[i, j] * x[j]
    for j in range(n - 1, -1, -1):
        total = x[j]
        for i in range(j + 1, n):
            total -= L[i, j] * x[i]
        x[j] = total / L[j, j]


@compiled
def invert_lower(L: np.ndarray) -> np.ndarray:
    """The inverse of a lower triangular matrix, (3)."""
    n = L.shape[0]
    X = np.zeros((n, n))
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        m = stop - start
        corner = np.zeros((m, m))
        for c in range(m):
            corner[c, c] = 1.0 / L[start + c, start + c]
            for i in range(c + 1, m):
                total = 0.0
                for k in range(c, i):
                    total -= L[start + i, start + k] * corner[k, c]
                corner[i, c] = total / L[start + i, start + i]
        X[start:stop, start:stop] = corner
        if start:
            before = np.ascontiguousarray(L[start:stop, :start])
            known = np.ascontiguousarray(X[:start, :start])
            X[start:stop, :start] = -(corner @ (before @ known))
    return X
