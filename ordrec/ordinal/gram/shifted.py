"""Linear systems with K + D, D diagonal, over the rows where D is finite.

A factored K goes through one p x p Cholesky factor (Woodbury). Where D is small, that formula
loses digits; one step of refinement restores them.

A whole K has an n x n Cholesky factor. The solvers ask for one system after the other, and from
one to the next only a few rows leave, come, or change their entry of D. A border around the matrix
M = L L' of the factor does the same: a row that leaves is held at zero by a multiplier, one that
comes stands in the border, and one that changes does both.

Equations here
--------------
    [ M   W ] [x]   [rhs]     W: a unit column for each row that leaves, K's for each that comes
    [ W'  A ] [y] = [new]     A: zero, and K + D of the rows that come                  (B1)

    (A - V' V) y = new - V' L^-1 rhs,   x = L'^-1 (L^-1 rhs - V y),   V = L^-1 W        (B2)

A column of V is kept once it is known: the next border has mostly the same ones.
"""

from __future__ import annotations

import numpy as np

from ordrec.linalg.lapack import (
    ADDRESSES,
    factorise,
    factorise_in_threads,
    solve_factorised,
    solve_rows_triangular,
    upper_block,
)
from ordrec.linalg.low_rank import Woodbury
from ordrec.ordinal.gram.matrix import Gram, block

__all__ = ["BorderedFactor", "ShiftedGram"]

RIDGES = 4  # attempts to make a whole K positive definite, each ridge a hundred times the last
LARGE = 1000  # rows from which a factorisation in threads pays
COPIED = 256  # rows of K that are copied at a time, each from the diagonal on
WIDEST = 0.05  # of the rows of the factor: a new factor is cheaper than a wider border


class ShiftedGram:
    """Systems with M = K + D, D diagonal, over the rows where D is finite.

    Parameters
    ----------
    K : Gram
    ridge : float
        Added to the diagonal of a whole K, and more of it where M has no factor otherwise.
    widest : tuple of (int, float)
        The most columns of a border: this number, plus this share of the rows of the factor.
    threaded : bool
        Whether large matrices are factorised in threads.

    Examples
    --------
    >>> from ordrec.ordinal.gram.matrix import as_gram
    >>> M = ShiftedGram(as_gram(np.array([[2.0, 1.0], [1.0, 2.0]])), 0.0)
    >>> M.factorise(np.array([1.0, 1.0]))
    True
    >>> M.solve(np.array([[4.0, 4.0]])).round(12).tolist()
    [[1.0, 1.0]]
    >>> M.factorise(np.array([1.0, np.inf]))
    True
    >>> M.solve(np.array([[6.0, 0.0]])).round(12).tolist()
    [[2.0, 0.0]]
    """

    def __init__(
        self,
        K: Gram,
        ridge: float,
        *,
        widest: tuple[int, float] = (0, WIDEST),
        threaded: bool = True,
    ):
        self.K = K
        self.ridge = ridge
        self._widest = widest
        self._threaded = threaded
        self._workspace = np.empty((0, 0))
        self._rows = np.empty(0, dtype=np.int64)
        self._factor: BorderedFactor | Woodbury | None = None

    @property
    def bordered(self) -> bool:
        """Whether the factor is that of other shifts."""
        return isinstance(self._factor, BorderedFactor) and self._factor.width > 0

    def refactorise(self, shift: np.ndarray) -> bool:
        """As `factorise`, with the last factor where that serves."""
        if isinstance(self._factor, BorderedFactor):
            count, share = self._widest
            widest = count + share * self._factor.rows.size
            if self._factor.serves(shift + self.ridge, widest):
                return True
        return self.factorise(shift)

    def factorise(self, shift: np.ndarray) -> bool:
        """Take D = diag(shift), infinite where a row takes no part; False if M has no factor."""
        self._rows, self._factor = np.flatnonzero(np.isfinite(shift)), None
        if self.K.factored:
            try:
                Z, rows = self.K.values, self._rows
                weight = 1.0 / (shift[rows] + self.ridge)
                self._factor = Woodbury(Z if rows.size == len(Z) else Z[rows], weight)
            except np.linalg.LinAlgError:
                return False
            return True
        ridge = self.ridge
        for _ in range(RIDGES):
            M, raised = self._matrix(), shift + ridge
            M.reshape(-1)[:: M.shape[0] + 1] += raised[self._rows]
            if M.size == 0 or self._has_factor(M):
                self._factor = BorderedFactor(self.K.values, M, self._rows, raised)
                return True
            ridge *= 100.0
        return False

    def _matrix(self) -> np.ndarray:
        """The upper triangle of K over the rows; that of all rows overwrites the last one."""
        values, rows = self.K.values, self._rows
        if rows.size < values.shape[0]:
            return upper_block(values, rows)
        if self._workspace.size == 0:
            self._workspace = np.empty_like(values)
        for first in range(0, rows.size, COPIED):
            self._workspace[first : first + COPIED, first:] = values[first : first + COPIED, first:]
        return self._workspace

    def _has_factor(self, M: np.ndarray) -> bool:
        """Overwrite the upper triangle by its Cholesky factor; False if there is none."""
        if self._threaded and M.shape[0] >= LARGE:
            return factorise_in_threads(M)
        return factorise(M, ADDRESSES) == 0

    def solve(self, B: np.ndarray) -> np.ndarray:
        """The solution for each row of B, (m, n), zero in the rows that take no part."""
        factor = self._factor
        if factor is None:
            raise RuntimeError("there is no factor to solve with: factorise first")
        if isinstance(factor, BorderedFactor):
            return factor.solve(B)
        if self._rows.size == B.shape[1]:
            return factor.solve_refined(B.T).T
        whole = np.zeros_like(B)
        whole[:, self._rows] = factor.solve_refined(B[:, self._rows].T).T
        return whole


class BorderedFactor:
    """Systems with a whole K + diag(shift) over the rows where the shift is finite.

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
        self.width = 0  # columns of the border
        self._leave = self._come = np.empty(0, dtype=np.int64)
        self._V = np.empty((0, rows.size), dtype=K.dtype)  # one row for each column of (B2)
        self._products = np.empty((0, 0), dtype=K.dtype)  # V' V
        self._place: dict[tuple[int, bool], int] = {}  # in V, of a row and whether it comes
        self._inverse: np.ndarray = np.empty((0, 0))

    def serves(self, shift: np.ndarray, widest: float) -> bool:
        """Set the border for other shifts; False if it would be wider than that."""
        changed = np.flatnonzero(shift != self.shift)
        if changed.size > widest:
            return False
        leave = changed[np.isfinite(self.shift[changed])]
        come = changed[np.isfinite(shift[changed])]
        chosen = self._columns(leave, come)
        corner = np.zeros((chosen.size, chosen.size))
        corner[leave.size :, leave.size :] = self.K[np.ix_(come, come)] + np.diag(shift[come])
        corner -= self._products[np.ix_(chosen, chosen)]
        try:
            self._inverse = np.linalg.inv(corner)  # (B2)
        except np.linalg.LinAlgError:
            return False
        self._leave, self._come, self.width = leave, come, chosen.size
        self._border = self._V[chosen]
        return True

    def _columns(self, leave: np.ndarray, come: np.ndarray) -> np.ndarray:
        """Where V has the columns of these rows, after those it lacks are appended."""
        wanted = [(row, False) for row in leave.tolist()] + [(row, True) for row in come.tolist()]
        new = [column for column in wanted if column not in self._place]
        if new:
            units = np.array([row for row, comes in new if not comes], dtype=np.int64)
            others = np.array([row for row, comes in new if comes], dtype=np.int64)
            W = np.zeros((len(new), self.rows.size), dtype=self.K.dtype)
            W[np.arange(units.size), np.searchsorted(self.rows, units)] = 1.0
            W[units.size :] = block(self.K, others, self.rows)
            if W.size > 0:
                solve_rows_triangular(self.factor, W, False, ADDRESSES)
            across = self._V @ W.T
            self._products = np.block([[self._products, across], [across.T, W @ W.T]])
            first = self._V.shape[0]
            self._V = np.concatenate([self._V, W])
            self._place |= {column: first + k for k, column in enumerate(new)}
        return np.array([self._place[column] for column in wanted], dtype=np.int64)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """The solution for each row of B, (m, n), zero in the rows that take no part."""
        if self.width == 0:
            whole = self.rows.size == B.shape[1]
            X = np.array(B if whole else B[:, self.rows], dtype=self.K.dtype, order="C")
            if X.size > 0:
                solve_factorised(self.factor, X, ADDRESSES)
            return X if whole else self._spread(X, B.shape)
        X = np.take(B, self.rows, axis=1).astype(self.K.dtype, copy=False)
        self._solve_half(X, transposed=False)
        new = np.zeros((B.shape[0], self.width))
        new[:, self._leave.size :] = B[:, self._come]
        y = (new - X @ self._border.T) @ self._inverse  # (B2)
        X -= y.astype(X.dtype) @ self._border
        self._solve_half(X, transposed=True)
        whole = self._spread(X, B.shape)
        whole[:, self._leave] = 0.0  # which it is but for rounding
        whole[:, self._come] = y[:, self._leave.size :]
        return whole

    def _solve_half(self, X: np.ndarray, *, transposed: bool) -> None:
        """Overwrite each row by L^-1 or by L'^-1 of it."""
        if X.size > 0:
            solve_rows_triangular(self.factor, X, transposed, ADDRESSES)

    def _spread(self, X: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Rows over all rows of K, zero where they take no part."""
        whole = np.zeros(shape, dtype=X.dtype)
        whole[:, self.rows] = X
        return whole
