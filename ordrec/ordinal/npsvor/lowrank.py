"""A kernel matrix given by a factor G of shape (n, p), K = G G': solves by Woodbury's identity.

`factor_of` finds a factor, good enough for a guess, of a matrix nearly of low rank: a linear
kernel of few features, a wide Gaussian one, any kernel of few different rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ordrec.linalg.low_rank import Woodbury, random_pivots

__all__ = ["FactoredGram", "factor_of"]

REST = 1e-8  # of the largest diagonal entry: what a factor may leave out of the kernel


def factor_of(K: np.ndarray, columns: int) -> np.ndarray | None:
    """Return G with K ~ G G' and at most so many columns, None if there is none.

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


class FactoredGram:
    """The kernel matrix G G', never formed."""

    def __init__(self, G: np.ndarray):
        self.G = G
        self.n = G.shape[0]

    def mean_diagonal(self) -> float:
        """Average of the diagonal of G G'."""
        return float(np.einsum("ij,ij->", self.G, self.G) / self.n)

    def times(self, B: np.ndarray, each: Callable[..., Any] = map) -> np.ndarray:
        """G (G' B), too little work for several threads."""
        return self.G @ (self.G.T @ B)

    quick_times = times

    def shifted(self, eta: float) -> Callable[[np.ndarray], np.ndarray]:
        """The map B -> (G G' + eta I)^{-1} B."""
        return Woodbury(self.G, 1.0 / eta).solve

    def free_block(self, rows: np.ndarray) -> _FreeRows:
        """The kernel over the free rows."""
        return _FreeRows(self)


class _FreeRows:
    """Solves over the free rows; Woodbury makes each cheap enough to start afresh."""

    def __init__(self, gram: FactoredGram):
        self.gram = gram
        self.ridge = 1e-7 * (gram.mean_diagonal() or 1.0)

    def worn(self, free: np.ndarray) -> bool:
        return False

    def solve(
        self, free: np.ndarray, g: np.ndarray, fixed: np.ndarray, total: float
    ) -> tuple[np.ndarray, float]:
        """As `gram.FreeBlock.solve`."""
        rest = (g - self.gram.times(fixed))[free]
        inverse = Woodbury(self.gram.G[free], 1.0 / self.ridge)
        solved = inverse.solve(np.stack([rest, np.ones(rest.size)], axis=1))
        db = (solved[:, 0].sum() - (total - fixed.sum())) / solved[:, 1].sum()
        x = fixed.copy()
        x[free] = solved[:, 0] - db * solved[:, 1]
        return x, float(db)
