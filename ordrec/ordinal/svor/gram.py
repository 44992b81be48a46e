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

from ordrec.compiling import compiled, inner
from ordrec.linalg.lapack import factorise, solve_factorised

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

    @property
    def form(self) -> tuple[np.ndarray, bool | None]:
        """What the compiled functions take: the values, and None or True for ``factored``.

        Code that tests whether an argument is None is compiled for one of the two cases only.
        """
        return self.values, True if self.factored else None


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
def gram_times(values: np.ndarray, factored: bool | None, beta: np.ndarray, f: np.ndarray) -> None:
    """f = K beta, (13), accumulated in float64 whatever the precision of K."""
    if factored is not None:
        _factor_times(values, _transpose_times(values, beta), f)
    else:
        for k in range(f.size):
            f[k] = 0.0
        for i in range(f.size):  # by rows of the symmetric K: contiguous, and vectorised
            if beta[i] != 0.0:
                for k in range(f.size):
                    f[k] += values[i, k] * beta[i]


@inner
def _transpose_times(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Z' x."""
    total = np.zeros(Z.shape[1])
    for i in range(Z.shape[0]):
        if x[i] != 0.0:
            for a in range(total.size):
                total[a] += Z[i, a] * x[i]
    return total


@inner
def _factor_times(Z: np.ndarray, u: np.ndarray, out: np.ndarray) -> None:
    """out = Z u."""
    for i in range(Z.shape[0]):
        out[i] = 0.0
        for a in range(u.size):
            out[i] += Z[i, a] * u[a]


@inner
def entry(values: np.ndarray, factored: bool | None, i: int, k: int) -> float:
    """K_ik."""
    if factored is None:
        return float(values[i, k])
    total = 0.0
    for a in range(values.shape[1]):
        total += values[i, a] * values[k, a]
    return total


@inner
def add_row(
    values: np.ndarray, factored: bool | None, i: int, amount: float, f: np.ndarray
) -> None:
    """Add a multiple of a row of the Gram matrix to f."""
    for k in range(f.size):
        f[k] += amount * entry(values, factored, i, k)


def largest_entry(K: Gram) -> float:
    """The largest K_ii, which bounds all entries."""
    if K.factored:
        return float(np.max(np.einsum("ij,ij->i", K.values, K.values)))
    return float(np.max(np.diagonal(K.values)))


def room_for_factor(K: Gram, size: int) -> np.ndarray:
    """An empty matrix for the Cholesky factor of a system over ``size`` rows."""
    side = K.values.shape[1] if K.factored else size
    return np.empty((side, side), dtype=K.values.dtype)


@compiled
def factorise_shifted(
    values: np.ndarray,
    factored: bool | None,
    rows: np.ndarray,
    shift: np.ndarray,
    ridge: float,
    factor: np.ndarray,
    lapack: np.ndarray,
) -> bool:
    """Factor of K over some rows plus diag(shift); False if no ridge makes it definite.

    ``rows`` must ascend: as many rows as K has are then all of them, in order.
    """
    if factored is not None:
        _woodbury_matrix(values, rows, shift, factor)
        return factorise(factor, lapack) == 0
    for _ in range(RIDGES):
        for k in range(rows.size):
            if rows.size == values.shape[0]:
                source, target = values[k, k:], factor[k, k:]
                for o in range(target.size):  # from 0: then these are vector instructions
                    target[o] = source[o]
            else:
                for o in range(k, rows.size):
                    factor[k, o] = values[rows[k], rows[o]]
            factor[k, k] += ridge + shift[k]
        if factorise(factor, lapack) == 0:
            return True
        ridge *= 100.0
    return False


@inner
def _woodbury_matrix(
    values: np.ndarray, rows: np.ndarray, shift: np.ndarray, out: np.ndarray
) -> None:
    """The upper triangle of I + Z' W Z, (G1)."""
    p = values.shape[1]
    for a in range(p):
        for c in range(p):
            out[a, c] = 1.0 if a == c else 0.0
    for k in range(rows.size):
        for a in range(p):
            weighted = values[rows[k], a] / shift[k]
            for c in range(a, p):
                out[a, c] += weighted * values[rows[k], c]


@compiled
def solve_shifted(
    values: np.ndarray,
    factored: bool | None,
    rows: np.ndarray,
    shift: np.ndarray,
    factor: np.ndarray,
    B: np.ndarray,
    lapack: np.ndarray,
) -> None:
    """Overwrite each row of B, (m, number of rows), by the solution for it.

    B has the precision of the factor.
    """
    if factored is None:
        solve_factorised(factor, B, lapack)
    else:
        remainder = B.copy()
        _woodbury(values, rows, shift, factor, B, lapack)
        product, x = np.empty(values.shape[0]), np.empty(values.shape[0])
        for j in range(B.shape[0]):  # (G2): what (K + D) x leaves of the right-hand side
            _scatter(rows, B[j], x)
            _factor_times(values, _transpose_times(values, x), product)
            for k in range(rows.size):
                remainder[j, k] -= product[rows[k]] + shift[k] * B[j, k]
        _woodbury(values, rows, shift, factor, remainder, lapack)
        for j in range(B.shape[0]):
            for k in range(rows.size):
                B[j, k] += remainder[j, k]  # (G2)


@inner
def _scatter(rows: np.ndarray, entries: np.ndarray, x: np.ndarray) -> None:
    """Put entries into the places ``rows`` of x, zero elsewhere."""
    for k in range(x.size):
        x[k] = 0.0
    for k in range(rows.size):
        x[rows[k]] = entries[k]


@inner
def _woodbury(
    values: np.ndarray,
    rows: np.ndarray,
    shift: np.ndarray,
    factor: np.ndarray,
    B: np.ndarray,
    lapack: np.ndarray,
) -> None:
    """Overwrite each row of B by the solution for it, (G1), without refinement."""
    U = np.empty((B.shape[0], values.shape[1]))
    x, product = np.empty(values.shape[0]), np.empty(values.shape[0])
    for j in range(B.shape[0]):
        for k in range(rows.size):
            B[j, k] /= shift[k]  # W B
        _scatter(rows, B[j], x)
        total = _transpose_times(values, x)
        for a in range(total.size):
            U[j, a] = total[a]
    solve_factorised(factor, U, lapack)
    for j in range(B.shape[0]):
        _factor_times(values, U[j], product)
        for k in range(rows.size):
            B[j, k] -= product[rows[k]] / shift[k]
