"""The kernel form as a linear one: explicit coordinates of the samples in feature space.

By the representer theorem w lies in the span of the mapped samples. With K = L L' the rows
of L are coordinates in that span: f = L w and |w|^2 is the norm in feature space, so the
linear solver applies as it is. The Cholesky factorisation picks pivots and stops at the
numerical rank of K; the pivots alone span everything, and f(x) = k(x, pivots) . dual.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

__all__ = ["coordinates", "expansion"]


def coordinates(K: np.ndarray, tol: float = 1e-11) -> tuple[np.ndarray, np.ndarray]:
    """Return L with K = L L' to within tol times the largest diagonal entry, and the pivots.

    Examples
    --------
    >>> K = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> L, pivots = coordinates(K)
    >>> L.shape, pivots.tolist(), bool(np.allclose(L @ L.T, K))
    ((3, 2), [0, 2], True)
    """
    size = K.diagonal().max(initial=0.0)
    if not np.isfinite(size):
        raise ValueError("the kernel matrix has infinite entries: scale the features")
    if size <= 0.0:  # all samples are equal: one coordinate that is zero, without weight
        return np.zeros((K.shape[0], 1)), np.zeros(1, dtype=np.int64)
    factor, order, rank, _ = dpstrf(K, tol=tol * size, lower=1)
    L = np.empty((K.shape[0], rank))
    L[order - 1] = np.tril(factor)[:, :rank]
    left = np.abs(K.diagonal() - np.einsum("ij,ij->i", L, L)).max()
    if left > 1e-6 * size:
        raise ValueError(
            "the kernel matrix is not positive semidefinite "
            f"(a remainder of {left:.3g} on a diagonal of {size:.3g})"
        )
    return L, order[:rank] - 1


def expansion(L: np.ndarray, pivots: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return dual coefficients over the pivots: k(x, pivots) @ dual = f(x)."""
    if not L.any():
        return np.zeros_like(w)
    return solve_triangular(L[pivots], w, lower=True, trans="T")
