"""The Gram matrix as all solvers see it: whole, or by a factor.

A `DenseGram` holds K itself, of shape (n, n), in double or single precision. A `FactoredGram`
holds Z of shape (n, p) with K = Z Z', as a linear kernel has in its features and landmarks give it
to any kernel; nothing of size n x n is formed, and products cost O(n p). `shifted` has linear
systems with K + D, D diagonal.

Single precision halves the time of a factorisation and the memory. What it loses is won back
because the solvers only solve for corrections with it: the residuals that they correct are sums
in double precision (`DenseGram.times`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ordrec.errors import ArgumentError
from ordrec.linalg.low_rank import random_pivots
from ordrec.runtime.compiling import compiled, inner

__all__ = [
    "DenseGram",
    "FactoredGram",
    "Gram",
    "add_row",
    "as_gram",
    "block",
    "entry",
    "factor_of",
    "stable_ridge",
]

STRIPE = 1024  # rows of K that a thread multiplies at a time
WIDENED = 2**17  # entries of K that are made double at a time: a megabyte, which a cache holds
REST = 1e-8  # of the largest diagonal entry: what a factor may leave out of the kernel


class DenseGram:
    """A symmetric matrix K, float32 or float64.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Keeps single precision and is float64 otherwise.
    """

    factored = False

    def __init__(self, K: np.ndarray):
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ArgumentError(
                f"a Gram matrix must be square, got shape {K.shape}: pass a factor of it by "
                "FactoredGram"
            )
        dtype = np.float32 if K.dtype == np.float32 else np.float64
        self.values = np.ascontiguousarray(K, dtype=dtype)
        self.n = K.shape[0]

    @property
    def form(self) -> tuple[np.ndarray, None]:
        """What the compiled functions take: the values, and None as they are not a factor.

        Code that tests whether an argument is None is compiled for one of the two cases only.
        """
        return self.values, None

    def in_single(self) -> DenseGram:
        """The matrix in single precision."""
        return DenseGram(self.values.astype(np.float32))

    def mean_diagonal(self) -> float:
        """Average of K_ii."""
        return float(np.diagonal(self.values).mean(dtype=np.float64))

    def largest_entry(self) -> float:
        """The largest K_ii, which bounds all entries."""
        return float(np.max(np.diagonal(self.values)))

    def times(self, B: np.ndarray, each: Callable[..., Any] = map) -> np.ndarray:
        """K B for a vector or for columns, summed in double precision.

        ``each`` may be the ``map`` of a pool of threads, among which columns are divided.
        """
        if B.ndim == 1:
            if self.values.dtype == np.float64:
                return self.values @ B
            f = np.zeros(B.size)
            _add_single_rows(self.values, B, f)
            return f
        if self.values.dtype == np.float64:
            return self.quick_times(B, each)
        step = max(1, WIDENED // self.n)

        def rows_of_product(rows: slice) -> np.ndarray:
            firsts = range(rows.start, rows.stop, step)
            parts = [self.values[first : min(first + step, rows.stop)] for first in firsts]
            return np.concatenate([part.astype(np.float64) @ B for part in parts])

        return np.concatenate(list(each(rows_of_product, self._stripes())))

    def quick_times(self, B: np.ndarray, each: Callable[..., Any] = map) -> np.ndarray:
        """K B for columns in the precision of K: good for small corrections."""
        single = B.astype(self.values.dtype)
        products = each(lambda rows: self.values[rows] @ single, self._stripes())
        return np.concatenate(list(products)).astype(np.float64)

    def combined(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """K over all rows and some columns, times the weights of these, in the precision of K."""
        return weights.astype(self.values.dtype) @ self.values[rows]

    def _stripes(self) -> list[slice]:
        """Rows in groups, the same for any number of threads so that the digits are the same."""
        return [slice(first, min(first + STRIPE, self.n)) for first in range(0, self.n, STRIPE)]

    def part(self, rows: np.ndarray) -> DenseGram:
        """The Gram matrix of some rows."""
        return DenseGram(block(self.values, rows, rows))


class FactoredGram:
    """The matrix K = Z Z' of a factor Z of shape (n, p), never formed."""

    factored = True

    def __init__(self, Z: np.ndarray):
        self.values = np.ascontiguousarray(Z, dtype=np.float64)
        self.n = Z.shape[0]

    @property
    def form(self) -> tuple[np.ndarray, bool]:
        """What the compiled functions take: the values, and that they are a factor."""
        return self.values, True

    def mean_diagonal(self) -> float:
        """Average of K_ii."""
        return float(np.einsum("ij,ij->", self.values, self.values) / self.n)

    def largest_entry(self) -> float:
        """The largest K_ii, which bounds all entries."""
        return float(np.max(np.einsum("ij,ij->i", self.values, self.values)))

    def times(self, B: np.ndarray, each: Callable[..., Any] = map) -> np.ndarray:
        """Z (Z' B) for a vector or for columns: too little work for several threads."""
        return self.values @ (self.values.T @ B)

    quick_times = times

    def combined(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """K over all rows and some columns, times the weights of these."""
        return self.values @ (self.values[rows].T @ weights)

    def part(self, rows: np.ndarray) -> FactoredGram:
        """The Gram matrix of some rows."""
        return FactoredGram(self.values[rows])


Gram = DenseGram | FactoredGram


def as_gram(K: np.ndarray | Gram) -> Gram:
    """A Gram matrix in the form that the solvers take; an array is K itself, never a factor."""
    return DenseGram(K) if isinstance(K, np.ndarray) else K


def stable_ridge(gram: Gram, *, single: float, double: float) -> float:
    """A shift that gives a singular kernel matrix a Cholesky factor, a share of its mean diagonal.

    Zero for a factored one, whose systems need none.
    """
    if gram.factored:
        return 0.0
    share = single if gram.values.dtype == np.float32 else double
    return share * (gram.mean_diagonal() or 1.0)


def factor_of(K: np.ndarray, columns: int) -> np.ndarray | None:
    """Return Z with K ~ Z Z' and at most that many columns, None if there is none.

    It is good enough for a guess. Matrices nearly of low rank have one: a linear kernel of few
    features, a wide Gaussian one, any kernel of few different rows.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> factor_of(X @ X.T, columns=2).shape, factor_of(np.eye(6), columns=2)
    ((6, 1), None)
    """
    diagonal = np.diagonal(K).astype(np.float64)
    least = REST * diagonal.max(initial=0.0)
    random = np.random.RandomState(0)  # any pivots span a matrix of low rank
    pivots = random_pivots(diagonal, lambda i: K[:, i], columns + 1, random, least=least)
    if not 0 < pivots.size <= columns:
        return None
    L = np.linalg.cholesky(K[np.ix_(pivots, pivots)])
    return solve_triangular(L, K[pivots], lower=True).T


@compiled
def _add_single_rows(values: np.ndarray, beta: np.ndarray, f: np.ndarray) -> None:
    """Add K beta to f, K in single precision."""
    for i in range(f.size):  # by rows of the symmetric K: contiguous, and vectorised
        if beta[i] != 0.0:
            for k in range(f.size):
                f[k] += values[i, k] * beta[i]


@compiled
def block(K: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """K over some rows and some columns, without a copy of whole rows in between."""
    taken = np.empty((rows.size, columns.size), K.dtype)
    for i in range(rows.size):
        line, source = taken[i], K[rows[i]]
        for j in range(columns.size):
            line[j] = source[columns[j]]
    return taken


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
