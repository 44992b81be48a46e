"""The Gram matrix as the solvers see it: whole, K of shape (n, n), or as a factor Z of shape
(n, p) with fewer columns than rows, K = Z Z'.

A linear kernel has such a factor, its features. Nothing of size n x n is then formed: products
cost O(n p), and a system with M = K + D over some rows, D diagonal and W = 1/D, is solved by

    (Z Z' + D)^{-1} = W - W Z (I + Z' W Z)^{-1} Z' W            (Woodbury)

with one p x p Cholesky factor. Where W is large this loses digits, which one step of refinement
brings back.
"""

from __future__ import annotations

import numpy as np

from ordrec.linalg.lapack import factorise, solve_factorised
from ordrec.ordinal.svor.compiled import compiled

__all__ = [
    "add_row",
    "entry",
    "factorise_shifted",
    "gram_times",
    "is_factor",
    "largest_entry",
    "room_for_factor",
    "solve_shifted",
]

RIDGES = 4  # tries to make a whole K positive definite, each ridge a hundred times the last


@compiled
def is_factor(K: np.ndarray) -> bool:
    """Whether this is Z and not K itself."""
    return K.shape[1] < K.shape[0]


@compiled
def gram_times(K: np.ndarray, beta: np.ndarray, f: np.ndarray) -> None:
    """f = K beta, (13), accumulated in float64 whatever the precision of K."""
    if is_factor(K):
        _spread(K, _gathered(K, beta), f)
        return
    f[:] = 0.0
    for i in range(K.shape[0]):  # by rows of the symmetric K: contiguous, and vectorised
        if beta[i] != 0.0:
            for k in range(f.size):
                f[k] += K[i, k] * beta[i]


@compiled
def _gathered(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Z' x."""
    total = np.zeros(Z.shape[1])
    for i in range(Z.shape[0]):
        if x[i] != 0.0:
            for a in range(total.size):
                total[a] += Z[i, a] * x[i]
    return total


@compiled
def _spread(Z: np.ndarray, u: np.ndarray, out: np.ndarray) -> None:
    """out = Z u."""
    for i in range(Z.shape[0]):
        out[i] = 0.0
        for a in range(u.size):
            out[i] += Z[i, a] * u[a]


@compiled
def entry(K: np.ndarray, i: int, k: int) -> float:
    """K_ik."""
    if not is_factor(K):
        return float(K[i, k])
    total = 0.0
    for a in range(K.shape[1]):
        total += K[i, a] * K[k, a]
    return total


@compiled
def add_row(K: np.ndarray, i: int, amount: float, f: np.ndarray) -> None:
    """Add a multiple of a row of the Gram matrix to f."""
    if is_factor(K):
        for k in range(f.size):
            f[k] += amount * entry(K, i, k)
        return
    for k in range(f.size):
        f[k] += amount * K[i, k]


@compiled
def largest_entry(K: np.ndarray) -> float:
    """The largest K_ii, which bounds all entries."""
    largest = 0.0
    for i in range(K.shape[0]):
        largest = max(largest, entry(K, i, i))
    return largest


@compiled
def room_for_factor(K: np.ndarray, size: int) -> np.ndarray:
    """An empty matrix for the Cholesky factor of a system over ``size`` rows."""
    side = K.shape[1] if is_factor(K) else size
    return np.empty((side, side), dtype=K.dtype)


@compiled
def factorise_shifted(
    K: np.ndarray,
    rows: np.ndarray,
    shift: np.ndarray,
    ridge: float,
    factor: np.ndarray,
    lapack: np.ndarray,
) -> bool:
    """Factor of K over some rows plus diag(shift); False if no ridge makes it definite.

    ``rows`` ascend, so that all of them are recognised by their number.
    """
    if is_factor(K):
        _woodbury_matrix(_some(K, rows), shift, factor)
        return factorise(factor, lapack) == 0
    whole = rows.size == K.shape[0]
    for _ in range(RIDGES):
        for k in range(rows.size):
            source = K[rows[k]]
            if whole:
                factor[k, k:] = source[k:]
            else:
                for o in range(k, rows.size):
                    factor[k, o] = source[rows[o]]
            factor[k, k] += ridge + shift[k]
        if factorise(factor, lapack) == 0:
            return True
        ridge *= 100.0
    return False


@compiled
def _some(Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """These rows of Z, which need no copy if they are all."""
    return Z if rows.size == Z.shape[0] else Z[rows]


@compiled
def _woodbury_matrix(Z: np.ndarray, shift: np.ndarray, out: np.ndarray) -> None:
    """The upper triangle of I + Z' W Z."""
    p = Z.shape[1]
    out[:] = 0.0
    for k in range(Z.shape[0]):
        for a in range(p):
            weighted = Z[k, a] / shift[k]
            for c in range(a, p):
                out[a, c] += weighted * Z[k, c]
    for a in range(p):
        out[a, a] += 1.0


@compiled
def solve_shifted(
    K: np.ndarray,
    rows: np.ndarray,
    shift: np.ndarray,
    factor: np.ndarray,
    B: np.ndarray,
    lapack: np.ndarray,
) -> None:
    """Overwrite each row of B, (m, number of rows), by the solution for it."""
    if not is_factor(K):
        solve_factorised(factor, B, lapack)
        return
    Z = _some(K, rows)
    rest = B.copy()
    _woodbury(Z, shift, factor, B, lapack)
    product = np.empty(rows.size)
    for j in range(B.shape[0]):  # refinement: what (K + D) x leaves of the right-hand side
        _spread(Z, _gathered(Z, B[j]), product)
        for k in range(rows.size):
            rest[j, k] -= product[k] + shift[k] * B[j, k]
    _woodbury(Z, shift, factor, rest, lapack)
    B += rest


@compiled
def _woodbury(
    Z: np.ndarray, shift: np.ndarray, factor: np.ndarray, B: np.ndarray, lapack: np.ndarray
) -> None:
    """Overwrite each row of B by the solution for it, without refinement."""
    U, product = np.empty((B.shape[0], Z.shape[1])), np.empty(Z.shape[0])
    for j in range(B.shape[0]):
        B[j] /= shift
        U[j] = _gathered(Z, B[j])
    solve_factorised(factor, U, lapack)
    for j in range(B.shape[0]):
        _spread(Z, U[j], product)
        B[j] -= product / shift
