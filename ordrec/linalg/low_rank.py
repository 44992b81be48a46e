"""Kernel matrices of low rank: rows that span them, coordinates of rows, and linear systems.

With pivots P, K_PP = L L' and Z = K_nP L^-T, K ~ Z Z' of shape (n, n), Z of shape (n, m).

Equations here
--------------
    K = L L', L of as many columns as K has rank                        (L1) pivoted Cholesky
    f(x) = k(x, P) a  with  a = L_PP^-T w  where  f = Z w               (L2)
    P(pivot = i) = rest_i / sum(rest), rest the diagonal of K - Z Z'    (L3) Chen et al. 2025
    (Z Z' + W^-1)^-1 = W - W Z C^-1 Z' W,  C = I + Z' W Z               (L4) Woodbury
    x = W (b - Z u), C u = Z' W b;  x += W Z C^-1 (u - Z' x)            (L5) refinement

(L3) is Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", CPAM 78 (2025): as good as
any choice up to a small factor, where the largest rest would pick outliers first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf

from ordrec.errors import DataError

__all__ = ["Woodbury", "coordinates", "expansion", "random_pivots", "weighted_gram"]

CACHED_ENTRIES = 2**16  # entries of Z that stay in the cache between two uses


def coordinates(K: np.ndarray, tol: float = 1e-11) -> tuple[np.ndarray, np.ndarray]:
    """Return L with K = L L' to within tol times the largest diagonal entry, and the pivots, (L1).

    Examples
    --------
    >>> K = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> L, pivots = coordinates(K)
    >>> L.shape, pivots.tolist(), bool(np.allclose(L @ L.T, K))
    ((3, 2), [0, 2], True)
    """
    size = K.diagonal().max(initial=0.0)
    if not np.isfinite(size):
        raise DataError("the kernel matrix has infinite entries: scale the features")
    if size <= 0.0:  # all samples are equal: one coordinate that is zero, without weight
        return np.zeros((K.shape[0], 1)), np.zeros(1, dtype=np.int64)
    factor, order, rank, _ = dpstrf(K, tol=tol * size, lower=1)
    L = np.empty((K.shape[0], rank))
    L[order - 1] = np.tril(factor)[:, :rank]
    left = np.abs(K.diagonal() - np.einsum("ij,ij->i", L, L)).max()
    if left > 1e-6 * size:
        raise DataError(
            "the kernel matrix is not positive semidefinite "
            f"(a remainder of {left:.3g} on a diagonal of {size:.3g})"
        )
    return L, order[:rank] - 1


def expansion(L: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return coefficients over the pivots, (L2), given the triangle L over the pivots."""
    if not L.any():
        return np.zeros_like(w)
    return solve_triangular(L, w, lower=True, trans="T")


def random_pivots(
    diagonal: np.ndarray,
    column: Callable[[int], np.ndarray],
    count: int,
    random: np.random.RandomState,
    *,
    least: float,
) -> np.ndarray:
    """Draw at most ``count`` rows that span a matrix given by its diagonal and its columns, (L3).

    Stops early when no diagonal entry of the rest is above ``least``, so that a row which the
    chosen ones span is never drawn.

    Examples
    --------
    >>> K = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> random = np.random.RandomState(0)
    >>> random_pivots(np.diag(K), lambda i: K[:, i], 3, random, least=1e-10).tolist()
    [1, 2]
    """
    rest = np.where(diagonal > least, diagonal, 0.0)
    Z = np.empty((rest.size, min(count, rest.size)), order="F")
    pivots: list[int] = []
    for k in range(Z.shape[1]):
        running = np.cumsum(rest)
        if not running[-1] > 0.0:
            break
        i = int(np.searchsorted(running, random.uniform() * running[-1], side="right"))  # (L3)
        Z[:, k] = (column(i) - Z[:, :k] @ Z[i, :k]) / np.sqrt(rest[i])
        pivots.append(i)
        rest -= Z[:, k] ** 2
        rest[rest <= least] = 0.0
        rest[pivots] = 0.0  # exactly, so that no row is drawn twice
    return np.array(pivots, dtype=np.int64)


def weighted_gram(Z: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Z' W Z for a diagonal W that is not negative, in one pass over Z."""
    root, gram = np.sqrt(weight), np.zeros((Z.shape[1], Z.shape[1]))
    # rows that stay in the cache, but not so few that adding them up takes longer than they do
    step = max(1, CACHED_ENTRIES // max(1, Z.shape[1]), Z.shape[1])
    for first in range(0, Z.shape[0], step):
        scaled = Z[first : first + step] * root[first : first + step, None]
        gram += scaled.T @ scaled
    return gram


class Woodbury:
    """Systems with Z Z' + W^-1, W diagonal with entries that may be zero, (L4).

    Parameters
    ----------
    Z : ndarray of shape (n, m)
    weight : float or ndarray of shape (n,)
        The diagonal of W.

    Attributes
    ----------
    C : ndarray of shape (m, m)
        Its lower triangle is the Cholesky factor of I + Z' W Z.

    Examples
    --------
    >>> Z, b = np.array([[1.0], [2.0]]), np.array([3.0, 4.0])
    >>> x = Woodbury(Z, 0.5).solve(b)
    >>> bool(np.allclose((Z @ Z.T + 2.0 * np.eye(2)) @ x, b))
    True
    """

    def __init__(self, Z: np.ndarray, weight: float | np.ndarray):
        self.Z = Z
        self.weight = np.broadcast_to(np.asarray(weight, dtype=np.float64), Z.shape[:1])
        C = np.eye(Z.shape[1]) + weighted_gram(Z, self.weight)
        self.C = cho_factor(C, lower=True, overwrite_a=True, check_finite=False)[0]

    def solve_inner(self, U: np.ndarray) -> np.ndarray:
        """C^-1 U."""
        return cho_solve((self.C, True), U, check_finite=False)

    def explained(self, V: np.ndarray) -> np.ndarray:
        """W Z C^-1 Z' V."""
        product = self.Z @ self.solve_inner(self.Z.T @ V)
        return (self.weight * product.T).T

    def solve(self, B: np.ndarray) -> np.ndarray:
        """(Z Z' + W^-1)^-1 B, for a vector or for columns."""
        weighted = (self.weight * B.T).T
        return weighted - self.explained(weighted)

    def solve_refined(self, B: np.ndarray) -> np.ndarray:
        """As `solve`, with one step of iterative refinement, in three passes over Z, (L5)."""
        X = (self.weight * B.T).T
        u = self.solve_inner(self.Z.T @ X)
        t = np.zeros_like(u)
        step = max(1, CACHED_ENTRIES // max(1, self.Z.shape[1]))
        for first in range(0, self.Z.shape[0], step):
            part = slice(first, first + step)
            X[part] -= (self.weight[part] * (self.Z[part] @ u).T).T
            t += self.Z[part].T @ X[part]
        X += (self.weight * (self.Z @ self.solve_inner(u - t)).T).T
        return X
