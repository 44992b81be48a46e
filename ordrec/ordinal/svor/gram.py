"""The Gram matrix as the solvers see it, and linear systems with it.

A `Gram` holds either K itself, of shape (n, n), or a factor Z of shape (n, p) with K = Z Z', as a
linear kernel has in its features; it says which of the two it holds. With a factor, nothing of
size n x n is ever formed: products cost O(n p), and a system with M = K + D over some rows, D
diagonal, is solved through one p x p Cholesky factor. The factor of a whole K may serve the next
system, too (`bordered`).

f = K beta is (13) of the paper. Where D is small, Woodbury's formula loses digits; one step of
refinement restores them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.linalg.lapack import ADDRESSES, factorise, upper_block
from ordrec.linalg.low_rank import Woodbury
from ordrec.linalg.threaded import factorise_in_threads
from ordrec.ordinal.svor.bordered import BorderedFactor
from ordrec.runtime.compiling import compiled, inner

__all__ = ["Gram", "ShiftedGram", "add_row", "as_gram", "entry", "factored_gram"]

RIDGES = 4  # attempts to make a whole K positive definite, each ridge a hundred times the last
LARGE = 1000  # rows from which a factorisation in threads pays
COPIED = 256  # rows of K that are copied at a time, each from the diagonal on


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

    def times(self, beta: np.ndarray) -> np.ndarray:
        """f = K beta, (13), accumulated in float64 whatever the precision of K."""
        if self.factored:
            return self.values @ (beta @ self.values)
        if self.values.dtype == np.float64:
            return self.values @ beta
        f = np.zeros(beta.size)
        _add_single_rows(self.values, beta, f)
        return f

    def largest_entry(self) -> float:
        """The largest K_ii, which bounds all entries."""
        if self.factored:
            return float(np.max(np.einsum("ij,ij->i", self.values, self.values)))
        return float(np.max(np.diagonal(self.values)))


def factored_gram(Z: np.ndarray) -> Gram:
    """The Gram matrix Z Z' of a factor Z of shape (n, p), which is never formed."""
    return Gram(np.ascontiguousarray(Z, dtype=np.float64), True)


def as_gram(K: np.ndarray | Gram) -> Gram:
    """A Gram matrix in the form that the solvers take.

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


class ShiftedGram:
    """Systems with M = K + D, D diagonal, over the rows where D is finite.

    Parameters
    ----------
    K : Gram
    ridge : float
        Added to the diagonal of a whole K, and more of it where M has no factor otherwise.

    Examples
    --------
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

    def __init__(self, K: Gram, ridge: float):
        self.K = K
        self.ridge = ridge
        self._room = np.empty((0, 0))
        self._rows = np.empty(0, dtype=np.int64)
        self._factor: BorderedFactor | Woodbury | None = None

    @property
    def bordered(self) -> bool:
        """Whether the factor is that of other shifts."""
        return isinstance(self._factor, BorderedFactor) and self._factor.border.size > 0

    def refactorise(self, shift: np.ndarray) -> bool:
        """As `factorise`, with the last factor where that serves."""
        if isinstance(self._factor, BorderedFactor) and self._factor.serves(shift + self.ridge):
            return True
        return self.factorise(shift)

    def factorise(self, shift: np.ndarray) -> bool:
        """Take D = diag(shift), infinite where a row takes no part; False if M has no factor."""
        self._rows, self._factor = np.flatnonzero(np.isfinite(shift)), None
        if self.K.factored:
            try:
                Z, rows = self.K.values, self._rows
                self._factor = Woodbury(Z if rows.size == len(Z) else Z[rows], 1.0 / shift[rows])
            except np.linalg.LinAlgError:
                return False
            return True
        ridge = self.ridge
        for _ in range(RIDGES):
            M, raised = self._matrix(), shift + ridge
            M.reshape(-1)[:: M.shape[0] + 1] += raised[self._rows]
            if M.size == 0 or _factorise(M):
                self._factor = BorderedFactor(self.K.values, M, self._rows, raised)
                return True
            ridge *= 100.0
        return False

    def _matrix(self) -> np.ndarray:
        """The upper triangle of K over the rows; that of all rows overwrites the last one."""
        values, rows = self.K.values, self._rows
        if rows.size < values.shape[0]:
            return upper_block(values, rows)
        if self._room.size == 0:
            self._room = np.empty_like(values)
        for first in range(0, rows.size, COPIED):
            self._room[first : first + COPIED, first:] = values[first : first + COPIED, first:]
        return self._room

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


def _factorise(M: np.ndarray) -> bool:
    """Overwrite the upper triangle by its Cholesky factor; False if there is none."""
    if M.shape[0] >= LARGE:
        return factorise_in_threads(M)
    return factorise(M, ADDRESSES) == 0


@compiled
def _add_single_rows(values: np.ndarray, beta: np.ndarray, f: np.ndarray) -> None:
    """Add K beta to f, K in single precision."""
    for i in range(f.size):  # by rows of the symmetric K: contiguous, and vectorised
        if beta[i] != 0.0:
            for k in range(f.size):
                f[k] += values[i, k] * beta[i]


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
