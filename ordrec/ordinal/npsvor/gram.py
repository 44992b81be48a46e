"""A dense kernel matrix and its factorisations, in double or single precision.

Single precision halves the time of a factorisation. What it loses is won back because the
active-set rounds only solve for corrections, and the residuals they correct are summed in
double precision (`times`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ordrec.linalg.lapack import (
    ADDRESSES,
    factorise,
    solve_rows_factorised,
    solve_rows_triangular,
    upper_block,
)
from ordrec.runtime.compiling import compiled

__all__ = ["DenseGram", "FreeBlock", "NotPositiveDefiniteError", "ridge_for"]

STRIPE = 1024  # rows of K that a thread multiplies at a time
CHANGED = 0.05  # of a score, by the ridge
LARGEST_RIDGE = 1e-2  # of the mean diagonal
WIDENED = 2**17  # entries of K that are made double at a time: a megabyte, which a cache holds


class NotPositiveDefiniteError(Exception):
    """A block had no Cholesky factor in its precision."""


class DenseGram:
    """An n x n symmetric kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    largest : float, optional
        The largest that a multiplier can be; the more of a ridge do the free blocks have.
    """

    def __init__(self, K: np.ndarray, largest: float = np.inf):
        self.K = np.ascontiguousarray(K)
        self.n = K.shape[0]
        self.ridge = ridge_for(self.K, largest)

    def mean_diagonal(self) -> float:
        """Average of K_ii."""
        return float(np.diagonal(self.K).mean(dtype=np.float64))

    def times(self, B: np.ndarray, each: Callable[..., Any] = map) -> np.ndarray:
        """K @ B, summed in double precision."""
        if self.K.dtype == np.float64:
            return self.quick_times(B, each)

        step = max(1, WIDENED // self.n)

        def rows_of_product(rows: slice) -> np.ndarray:
            firsts = range(rows.start, rows.stop, step)
            parts = [self.K[first : min(first + step, rows.stop)] for first in firsts]
            return np.concatenate([part.astype(np.float64) @ B for part in parts])

        return np.concatenate(list(each(rows_of_product, self._stripes())))

    def quick_times(self, B: np.ndarray, each: Callable[..., Any] = map) -> np.ndarray:
        """K @ B in the precision of K: good for small corrections."""
        single = B.astype(self.K.dtype)
        products = each(lambda rows: self.K[rows] @ single, self._stripes())
        return np.concatenate(list(products)).astype(np.float64)

    def _stripes(self) -> list[slice]:
        """Rows in groups, the same for any number of threads so that the digits are the same."""
        return [slice(first, min(first + STRIPE, self.n)) for first in range(0, self.n, STRIPE)]

    def shifted(self, eta: float) -> Callable[[np.ndarray], np.ndarray]:
        """The map B -> (K + eta I)^{-1} B, by one Cholesky factorisation."""
        factor = cholesky(self.K.copy(), eta)
        return lambda B: _solve_cholesky(factor, B).astype(np.float64)

    def part(self, rows: np.ndarray) -> DenseGram:
        """The kernel matrix of some rows."""
        return DenseGram(_taken(self.K, rows, rows))

    def free_block(self, rows: np.ndarray) -> FreeBlock:
        """The factored block of K over ``rows``."""
        return FreeBlock(self.K, rows, self.ridge)


class FreeBlock:
    """Solves with the kernel over a set of free rows that changes a little at a time.

    The block of the first set F0 is factored once. Rows that became free (A) and rows that
    stopped being free (R) border it: over F0 and A, with multipliers for R and the bias,

        [ K_00  K_0A  E_R  e ] [ x_0 ]   [ g_0 ]
        [ K_A0  K_AA   0   e ] [ x_A ] = [ g_A ]
        [ E_R'   0     0   0 ] [ mu  ]   [ x_R ]
        [ e'     e'    0   0 ] [ db  ]   [ sum ]

    which costs a triangular solve for every new border column instead of a factorisation.
    """

    def __init__(self, K: np.ndarray, rows: np.ndarray, ridge: float):
        self.K, self.rows, self.ridge = K, rows, ridge
        self._position = np.full(K.shape[0], -1)
        self._position[rows] = np.arange(rows.size)
        self._factor = cholesky(upper_block(K, rows), self.ridge)
        # L^{-1} of the border columns, the bias column first, and their inner products
        self._half = _solve_triangle(self._factor, np.ones((rows.size, 1)))
        self._inner = self._half.T @ self._half
        self._column_of: dict[int, int] = {}

    def worn(self, free: np.ndarray) -> bool:
        """Whether so many rows changed that factoring anew is cheaper."""
        changed = int((free != (self._position >= 0)).sum())
        return changed > 50 + self.rows.size // 5

    def solve(
        self, free: np.ndarray, g: np.ndarray, fixed: np.ndarray, total: float
    ) -> tuple[np.ndarray, float]:
        """Correction x and shift db: (K x + db)_i = g_i on free rows, x = fixed elsewhere.

        The entries of x sum to ``total``. The ridge on the diagonal keeps singular blocks
        solvable; as x is a correction, it does not move the point that is converged to.
        """
        start = self.rows
        added = np.flatnonzero(free & (self._position < 0))
        removed = start[~free[start]]
        # rows outside F0 and A may still have a last move to make, to their bounds
        movers = np.flatnonzero((fixed != 0) & ~free & (self._position < 0))
        if movers.size:
            g = g - fixed[movers].astype(self.K.dtype) @ self.K[movers]
        columns = self._border_columns(added, removed)
        base = _solve_triangle(self._factor, g[start][:, None])[:, 0]
        a, c = added.size, added.size + removed.size
        corner = np.zeros((c + 1, c + 1))
        corner[:a, :a] = self.K[np.ix_(added, added)] + self.ridge * np.eye(a)
        corner[:a, c] = corner[c, :a] = 1.0
        corner -= self._inner[np.ix_(columns, columns)]
        right = np.concatenate([g[added], fixed[removed], [total - fixed[movers].sum()]])
        w = _solve_or_least_squares(corner, right - (self._half.T @ base)[columns])
        border = np.zeros(self._half.shape[1], dtype=self.K.dtype)
        border[columns] = w
        x = fixed.copy()
        rest = (base - self._half @ border)[:, None]
        x[start] = _solve_triangle(self._factor, rest, transposed=True)[:, 0]
        x[removed] = fixed[removed]
        x[added] = w[:a]
        return x, float(w[c])

    def _border_columns(self, added: np.ndarray, removed: np.ndarray) -> np.ndarray:
        """Where the columns of [K_0A, E_R, e] are in ``_half``; new ones are appended."""
        wanted = [*added.tolist(), *removed.tolist()]
        new = [row for row in wanted if row not in self._column_of]
        if new:
            columns = _taken(self.K, np.array(new), self.rows).T
            inside = self._position[new]
            for k in np.flatnonzero(inside >= 0):
                columns[:, k] = 0.0
                columns[inside[k], k] = 1.0
            fresh = _solve_triangle(self._factor, columns)
            across = self._half.T @ fresh
            self._inner = np.block([[self._inner, across], [across.T, fresh.T @ fresh]])
            first = self._half.shape[1]
            self._half = np.hstack([self._half, fresh])
            self._column_of.update({row: first + k for k, row in enumerate(new)})
        return np.array([*(self._column_of[row] for row in wanted), 0])


def _solve_or_least_squares(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(A, b, rcond=None)[0]


def ridge_for(K: np.ndarray, largest: float = np.inf) -> float:
    """The shift of the free blocks, which only precondition the system of the multipliers.

    At least what keeps the Cholesky factor of a singular kernel stable. Beyond that, a shift makes
    block pivoting converge: without one, multipliers whose rows are nearly dependent leap from
    bound to bound. ``largest`` times the shift is what it may change of a score, whose margin is 1.
    """
    scale = float(np.diagonal(K).mean(dtype=np.float64))
    stable = scale * (1e-3 if K.dtype == np.float32 else 1e-8)
    return max(stable, min(CHANGED / largest, LARGEST_RIDGE * scale))


@compiled
def _taken(K, rows, columns):  # type: ignore[no-untyped-def]
    """K over some rows and some columns."""
    block = np.empty((rows.size, columns.size), K.dtype)
    for i in range(rows.size):
        line, source = block[i], K[rows[i]]
        for j in range(columns.size):
            line[j] = source[columns[j]]
    return block


def cholesky(A: np.ndarray, shift: float) -> np.ndarray:
    """Factor of A + shift I, from the upper triangle of A, which it overwrites."""
    A.flat[:: A.shape[0] + 1] += A.dtype.type(shift)
    info = factorise(A, ADDRESSES)
    if info:
        raise NotPositiveDefiniteError(f"leading block {info} of {A.shape[0]}")
    return A


def _solve_cholesky(factor: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(L L')^{-1} B, with L' the upper triangle of the factor."""
    rows = np.array(B.T, dtype=factor.dtype, order="C")
    solve_rows_factorised(factor, rows, ADDRESSES)
    return rows.T


def _solve_triangle(factor: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L^{-1} B, or L'^{-1} B, with L' the upper triangle of the factor."""
    rows = np.array(B.T, dtype=factor.dtype, order="C")
    solve_rows_triangular(factor, rows, transposed, ADDRESSES)
    return rows.T
