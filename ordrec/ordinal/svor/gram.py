"""The Gram matrix as the solvers see it, and linear systems with it.

A `Gram` holds either K itself, of shape (n, n), or a factor Z of shape (n, p) with K = Z Z', as a
linear kernel has in its features; it says which of the two it holds. With a factor, nothing of
size n x n is ever formed: products cost O(n p), and a system with M = K + D over some rows, D
diagonal and W = 1/D, is solved through one p x p Cholesky factor.

Equations here
--------------
    f = K beta                                                          (13) of the paper
    (Z Z' + D)^{-1} = W - W Z (I + Z' W Z)^{-1} Z' W                    (G1) Woodbury
    x <- x + (Z Z' + D)^{-1} (rhs - (Z Z' + D) x)                       (G2) refinement

Where W is large, (G1) loses digits; one step of (G2) restores them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.linalg.lapack import factorise, solve_factorised
from ordrec.ordinal.svor.compiled import compiled

__all__ = [
    "Gram",
    "add_row",
    "as_gram",
    "entry",
    "factored_gram",
    "factorise_shifted",
    "gram_times",
    "largest_entry",
    "room_for_factor",
    "solve_shifted",
]

RIDGES = 4  # attempts to make a whole K positive definite, each ridge a hundred times the last


class Gram(NamedTuple):
    """A Gram matrix K, given whole or by a factor."""

    values: np.ndarray  # K, (n, n), or Z, (n, p), with K = Z Z'
    factored: bool  # whether ``values`` is Z


def factored_gram(Z: np.ndarray) -> Gram:
    """The Gram matrix Z Z' of a factor Z of shape (n, p), which is never formed."""
    return Gram(np.ascontiguousarray(Z, dtype=np.float64), True)


def as_gram(K: np.ndarray | Gram) -> Gram:
    """A Gram matrix in the form that the compiled functions take.

    An array is K itself, never a factor; it keeps single precision and is float64 otherwise.
    """
    if isinstance(K, Gram):
        return K
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"a Gram matrix must be square, got shape {K.shape}: pass a factor by factored_gram"
        )
    dtype = np.float32 if K.dtype == np.float32 else np.float64
    return Gram(np.ascontiguousarray(K, dtype=dtype), False)


@compiled
def gram_times(K: Gram, beta: np.ndarray, f: np.ndarray) -> None:
    """f = K beta, (13), accumulated in float64 whatever the precision of K."""
    values = K.values
    if K.factored:
        _factor_times(values, _transpose_times(values, beta), f)
        return
    f[:] = 0.0
    for i in range(values.shape[0]):  # by rows of the symmetric K: contiguous, and vectorised
        if beta[i] != 0.0:
            for k in range(f.size):
                f[k] += values[i, k] * beta[i]


@compiled
def _transpose_times(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Z' x."""
    total = np.zeros(Z.shape[1])
    for i in range(Z.shape[0]):
        if x[i] != 0.0:
            for a in range(total.size):
                total[a] += Z[i, a] * x[i]
    return total


@compiled
def _factor_times(Z: np.ndarray, u: np.ndarray, out: np.ndarray) -> None:
    """out = Z u."""
    for i in range(Z.shape[0]):
        out[i] = 0.0
        for a in range(u.size):
            out[i] += Z[i, a] * u[a]


@compiled
def entry(K: Gram, i: int, k: int) -> float:
    """K_ik."""
    values = K.values
    if not K.factored:
        return float(values[i, k])
    total = 0.0
    for a in range(values.shape[1]):
        total += values[i, a] * values[k, a]
    return total


@compiled
def add_row(K: Gram, i: int, amount: float, f: np.ndarray) -> None:
    """Add a multiple of a row of the Gram matrix to f."""
    if K.factored:
        for k in range(f.size):
            f[k] += amount * entry(K, i, k)
        return
    values = K.values
    for k in range(f.size):
        f[k] += amount * values[i, k]


@compiled
def largest_entry(K: Gram) -> float:
    """The largest K_ii, which bounds all entries."""
    largest = 0.0
    for i in range(K.values.shape[0]):
        largest = max(largest, entry(K, i, i))
    return largest


@compiled
def room_for_factor(K: Gram, size: int) -> np.ndarray:
    """An empty matrix for the Cholesky factor of a system over ``size`` rows."""
    side = K.values.shape[1] if K.factored else size
    return np.empty((side, side), dtype=K.values.dtype)


@compiled
def factorise_shifted(
    K: Gram,
    rows: np.ndarray,
    shift: np.ndarray,
    ridge: float,
    factor: np.ndarray,
    lapack: np.ndarray,
) -> bool:
    """Factor of K over some rows plus diag(shift); False if no ridge makes it definite.

    ``rows`` must ascend: as many rows as K has are then all of them, in order.
    """
    values = K.values
    if K.factored:
        _woodbury_matrix(_rows_of(values, rows), shift, factor)
        return factorise(factor, lapack) == 0
    all_rows = rows.size == values.shape[0]
    for _ in range(RIDGES):
        for k in range(rows.size):
            source = values[rows[k]]
            if all_rows:
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
def _rows_of(Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Some rows of Z, without a copy if they are all of them."""
    return Z if rows.size == Z.shape[0] else Z[rows]


@compiled
def _woodbury_matrix(Z: np.ndarray, shift: np.ndarray, out: np.ndarray) -> None:
    """The upper triangle of I + Z' W Z, (G1)."""
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
    K: Gram,
    rows: np.ndarray,
    shift: np.ndarray,
    factor: np.ndarray,
    B: np.ndarray,
    lapack: np.ndarray,
) -> None:
    """Overwrite each row of B, (m, number of rows), by the solution for it."""
    if not K.factored:
        solve_factorised(factor, B, lapack)
        return
    Z = _rows_of(K.values, rows)
    remainder = B.copy()
    _woodbury(Z, shift, factor, B, lapack)
    product = np.empty(rows.size)
    for j in range(B.shape[0]):  # (G2): what (K + D) x leaves of the right-hand side
        _factor_times(Z, _transpose_times(Z, B[j]), product)
        for k in range(rows.size):
            remainder[j, k] -= product[k] + shift[k] * B[j, k]
    _woodbury(Z, shift, factor, remainder, lapack)
    B += remainder  # (G2)


@compiled
def _woodbury(
    Z: np.ndarray, shift: np.ndarray, factor: np.ndarray, B: np.ndarray, lapack: np.ndarray
) -> None:
    """Overwrite each row of B by the solution for it, (G1), without refinement."""
    U, product = np.empty((B.shape[0], Z.shape[1])), np.empty(Z.shape[0])
    for j in range(B.shape[0]):
        B[j] /= shift  # W B
        U[j] = _transpose_times(Z, B[j])
    solve_factorised(factor, U, lapack)
    for j in range(B.shape[0]):
        _factor_times(Z, U[j], product)
        B[j] -= product / shift
