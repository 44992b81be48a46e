"""Landmarks: a few rows that stand for all of them, for kernels of very many rows.

    k(x, y) ~ phi(x) . phi(y),    phi(x) = L^-1 k(landmarks, x),    L L' = K(landmarks)

(Nystrom). A kernel problem becomes a linear one in m features, whose solution is again an
expansion over rows, the landmarks. Of all functions that the landmarks span it finds the best, so
its objective lies above that of the exact problem and falls as landmarks are added; where
they span every row, it is the exact solution.

Landmarks are drawn by randomly pivoted Cholesky on a sample of the rows. scikit-learn's
`Nystroem` draws them uniformly, and knows neither our kernels nor when to stop.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ordrec.errors import ArgumentError
from ordrec.kernels.base import Kernel, Precomputed
from ordrec.linalg.low_rank import coordinates, expansion, random_pivots

__all__ = ["Landmarks", "rows_named"]

SAMPLE = 5000  # rows that landmarks are drawn from
SAMPLE_PER_LANDMARK = 4  # but at least this many for each
SPANNED = 1e-10  # of the largest k(x, x): a row with less than this left needs no landmark
BLOCK_ENTRIES = 2**20  # entries of the kernel that are computed at a time


class Landmarks:
    """Rows of X, and the features that they give to any row.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n, d)
        Or the Gram matrix, for `Precomputed`.
    rows : ndarray of int
        Numbers of rows of X. Those that the others span are left out.

    Attributes
    ----------
    rows : ndarray of shape (m,)

    Examples
    --------
    >>> from ordrec.kernels.rows import Gaussian
    >>> X = np.array([[0.0], [1.0], [1.0], [2.0]])
    >>> landmarks = Landmarks.chosen(Gaussian(1.0), X, 4, np.random.RandomState(0))
    >>> Z = landmarks.features(X)
    >>> Z.shape, bool(np.allclose(Z @ Z.T, Gaussian(1.0)(X)))
    ((4, 3), True)
    """

    def __init__(self, kernel: Kernel, X: Any, rows: np.ndarray):
        given = isinstance(kernel, Precomputed)
        L, pivots = np.empty((0, 0)), np.empty(0, dtype=np.int64)
        if rows.size:
            L, pivots = coordinates(X[np.ix_(rows, rows)] if given else kernel(X[rows]))
        self.kernel = kernel
        self.rows = rows[pivots]
        self._L = L[pivots]
        self._inputs = None if given else X[self.rows]

    @classmethod
    def chosen(
        cls, kernel: Kernel, X: Any, wanted: Any, random: np.random.RandomState
    ) -> Landmarks:
        """Return as many landmarks as wanted, or fewer if these span all rows.

        ``wanted`` may also be the numbers of the rows. With the same random state, more
        landmarks contain fewer, as long as the sample is the same.
        """
        named = rows_named(wanted, X.shape[0])
        if named is not None:
            return cls(kernel, X, named)
        diagonal = kernel.diag(X)
        largest = float(diagonal.max())
        if not np.isfinite(largest):
            raise ArgumentError("the kernel has infinite values: scale the features")
        least = SPANNED * largest
        size = max(SAMPLE, SAMPLE_PER_LANDMARK * int(wanted))
        found = cls(kernel, X, np.empty(0, dtype=np.int64))
        left = np.arange(X.shape[0])
        while left.size and found.rows.size < wanted:
            sample = left
            if left.size > size:
                sample = np.sort(random.choice(left, size, replace=False))
            count = int(wanted) - found.rows.size
            drawn = _drawn(kernel, X, sample, diagonal[sample], found, count, random, least)
            found = cls(kernel, X, np.concatenate([found.rows, drawn]))
            if sample is left or drawn.size == count:
                break
            # few rows span the sample: have others been missed?
            left = np.flatnonzero(diagonal - _squares(found.features(X)) > 10.0 * least)
        return found if found.rows.size else cls(kernel, X, np.zeros(1, dtype=np.int64))

    def features(self, X: Any) -> np.ndarray:
        """phi of each row, (n, m), computed in blocks of rows.

        For a precomputed kernel, X is the block of the Gram matrix with all training rows.
        """
        n, m = X.shape[0], self.rows.size
        Z = np.zeros((n, m))
        if not self._L.any():
            return Z
        step = max(1, BLOCK_ENTRIES // m)
        for first in range(0, n, step):
            part = X[first : first + step]
            K = part[:, self.rows] if self._inputs is None else self.kernel(part, self._inputs)
            Z[first : first + step] = solve_triangular(
                self._L, K.T, lower=True, check_finite=False, overwrite_b=True
            ).T
        return Z

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Coefficients over the landmarks: k(x, landmarks) @ coefficients = phi(x) @ w."""
        return expansion(self._L, w)


def rows_named(wanted: Any, n: int) -> np.ndarray | None:
    """Return the row numbers, if it is these that are given; None for a number of landmarks."""
    if np.ndim(wanted) == 0:
        if isinstance(wanted, bool) or not isinstance(wanted, Integral) or int(wanted) < 1:
            raise ArgumentError(
                "n_landmarks must be a whole number from 1, row numbers or None (for the exact "
                f"kernel), got {wanted!r}"
            )
        return None
    rows = np.asarray(wanted)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise ArgumentError("n_landmarks must be a number of rows or an array of row numbers")
    if not rows.size or rows.min() < 0 or rows.max() >= n:
        raise ArgumentError(f"the row numbers in n_landmarks must lie between 0 and {n - 1}")
    return np.unique(rows)


def _drawn(
    kernel: Kernel,
    X: Any,
    sample: np.ndarray,
    diagonal: np.ndarray,
    found: Landmarks,
    count: int,
    random: np.random.RandomState,
    least: float,
) -> np.ndarray:
    """Draw rows of a sample that the landmarks found so far do not span."""
    part = X if sample.size == X.shape[0] else X[sample]
    spanned = found.features(part)
    given = isinstance(kernel, Precomputed)

    def column(i: int) -> np.ndarray:
        own = part[:, sample[i]] if given else kernel(part, part[[i]])[:, 0]
        return own - spanned @ spanned[i]

    drawn = random_pivots(diagonal - _squares(spanned), column, count, random, least=least)
    return sample[drawn]


def _squares(Z: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", Z, Z)
