"""Pivoted incomplete Cholesky of a kernel, and solves by Woodbury's identity.

K ~ G G' with G of shape (n, p): each step takes the row with the largest remaining diagonal
(Fine and Scheinberg 2001). Only p columns of K are ever computed. The same p rows carry the
predictions: f(x) = k(x, pivots) T w with T = L_PP^{-T} and w = G' rho.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

__all__ = ["FactoredGram", "LowRank", "incomplete_cholesky"]


@dataclass(frozen=True)
class LowRank:
    """The factor G, the rows it was built on, and the share of the trace it leaves out."""

    G: np.ndarray
    pivots: np.ndarray
    left_out: float

    def on_pivots(self, rho: np.ndarray) -> np.ndarray:
        """Coefficients over the pivot rows that give the same f as rho over all rows."""
        return solve_triangular(self.G[self.pivots], self.G.T @ rho, lower=True, trans=1)


def incomplete_cholesky(
    diagonal: np.ndarray,
    column: Callable[[int], np.ndarray],
    *,
    tol: float = 1e-6,
    max_rank: int = 1000,
) -> LowRank:
    """Factor a kernel given by its diagonal and a function that computes a column.

    Stops when the remaining trace is below tol times the trace, or at max_rank.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(-1, 1) - 2.5
    >>> K = X @ X.T
    >>> low = incomplete_cholesky(np.diag(K), lambda i: K[:, i])
    >>> low.G.shape, bool(np.allclose(low.G @ low.G.T, K))
    ((6, 1), True)
    """
    rest = np.array(diagonal, dtype=np.float64)
    trace = rest.sum()
    G = np.zeros((rest.size, min(max_rank, rest.size)), order="F")
    pivots: list[int] = []
    for k in range(G.shape[1]):
        if rest.sum() <= tol * trace:
            break
        i = int(rest.argmax())
        G[:, k] = (column(i) - G[:, :k] @ G[i, :k]) / np.sqrt(rest[i])
        G[pivots, k] = 0.0  # exactly, so that G over the pivots is triangular
        pivots.append(i)
        rest = np.maximum(rest - G[:, k] ** 2, 0.0)
        rest[pivots] = 0.0
    share = float(rest.sum() / trace) if trace > 0 else 0.0
    return LowRank(G[:, : len(pivots)], np.array(pivots, dtype=np.int64), share)


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
        """(G G' + eta I)^{-1} B = (B - G (G'G + eta I)^{-1} G' B) / eta."""
        return _woodbury(self.G, eta)

    def free_block(self, rows: np.ndarray) -> _FreeRows:
        """The kernel over the free rows."""
        return _FreeRows(self)


class _FreeRows:
    """Solves over the free rows; Woodbury makes each cheap enough to start afresh."""

    def __init__(self, gram: FactoredGram):
        self.gram = gram
        self.ridge = 1e-7 * gram.mean_diagonal()

    def worn(self, free: np.ndarray) -> bool:
        return False

    def solve(
        self, free: np.ndarray, g: np.ndarray, fixed: np.ndarray, total: float
    ) -> tuple[np.ndarray, float]:
        """As `gram.FreeBlock.solve`."""
        rest = (g - self.gram.times(fixed))[free]
        inverse = _woodbury(self.gram.G[free], self.ridge)
        solved = inverse(np.stack([rest, np.ones(rest.size)], axis=1))
        db = (solved[:, 0].sum() - (total - fixed.sum())) / solved[:, 1].sum()
        x = fixed.copy()
        x[free] = solved[:, 0] - db * solved[:, 1]
        return x, float(db)


def _woodbury(G: np.ndarray, shift: float) -> Callable[[np.ndarray], np.ndarray]:
    inner = cho_factor(G.T @ G + shift * np.eye(G.shape[1]), lower=True)

    def solve(B: np.ndarray) -> np.ndarray:
        return (B - G @ cho_solve(inner, G.T @ B)) / shift

    return solve
