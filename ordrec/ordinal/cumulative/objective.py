"""The penalised negative log-likelihood of a cumulative-link model, for `logistic.newton`.

    J(w, b) = -sum_i c_i ln(F(b_{y_i} - x_i.w) - F(b_{y_i - 1} - x_i.w)) + alpha/2 |w|^2

with b_{-1} = -inf and b_{T} = inf. Each sample meets the two thresholds around its rank, so that
the Hessian in the thresholds is tridiagonal. Outside b_0 < b_1 < ... the likelihood is zero and J
infinite, which the trust region takes for a step that is too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from ordrec.ordinal.cumulative.links import interval_derivatives

__all__ = ["CumulativeObjective", "link_start"]

EXPLICIT = 200  # features up to which the Hessian is a matrix


@dataclass(frozen=True)
class CumulativeObjective:
    """J as a function of one vector x = (w, b)."""

    X: Any
    ranks: np.ndarray
    weight: np.ndarray
    n_ranks: int
    link: str
    alpha: float

    def at(self, x: np.ndarray, *, hessian: bool = True) -> tuple[float, np.ndarray, Any]:
        """Return value, gradient and, on request, the Hessian, with ``@`` and ``diagonal()``."""
        d = self.X.shape[1]
        w, b = x[:d], x[d:]
        if not np.isfinite(x).all() or (np.diff(b) <= 0).any():
            return np.inf, np.full_like(x, np.nan), None
        f = self.X @ w
        edges = np.concatenate([[-np.inf], b, [np.inf]])
        log_p, slopes, curves = interval_derivatives(
            edges[self.ranks] - f, edges[self.ranks + 1] - f, self.link
        )
        c = self.weight
        value = -float(c @ log_p) + 0.5 * self.alpha * float(w @ w)
        upper, lower = c * slopes[0], c * slopes[1]
        gradient = np.concatenate(
            [self.alpha * w - self.X.T @ (upper + lower), self._by_threshold(upper, lower)]
        )
        if not hessian:
            return value, gradient, None
        H = _Curvature(self, *(c * curve for curve in curves))
        return value, gradient, H.matrix() if d <= EXPLICIT else H

    def _by_threshold(self, upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """Sums over the samples below and above each threshold."""
        at_upper = np.bincount(self.ranks, upper, self.n_ranks)[:-1]
        return at_upper + np.bincount(self.ranks, lower, self.n_ranks)[1:]


@dataclass(frozen=True)
class _Curvature:
    """The Hessian, from the second derivatives of each sample in its two ends."""

    objective: CumulativeObjective
    uu: np.ndarray
    ul: np.ndarray
    ll: np.ndarray

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        J, d = self.objective, self.objective.X.shape[1]
        ends = np.concatenate([[0.0], v[d:], [0.0]])
        step = J.X @ v[:d]
        up, low = ends[J.ranks + 1] - step, ends[J.ranks] - step
        upper, lower = self.uu * up + self.ul * low, self.ul * up + self.ll * low
        return np.concatenate(
            [J.alpha * v[:d] - J.X.T @ (upper + lower), J._by_threshold(upper, lower)]
        )

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, which preconditions the conjugate gradients."""
        J = self.objective
        squares = J.X.multiply(J.X) if sparse.issparse(J.X) else J.X * J.X
        by_weight = squares.T @ (self.uu + 2.0 * self.ul + self.ll) + J.alpha
        return np.concatenate([by_weight, J._by_threshold(self.uu, self.ll)])

    def matrix(self) -> np.ndarray:
        """Return the whole matrix."""
        J, d, T = self.objective, self.objective.X.shape[1], self.objective.n_ranks - 1
        H = np.zeros((d + T, d + T))
        total = self.uu + 2.0 * self.ul + self.ll
        if sparse.issparse(J.X):
            H[:d, :d] = (J.X.T @ J.X.multiply(total[:, None]).tocsr()).toarray()
        else:
            H[:d, :d] = J.X.T @ (J.X * total[:, None])
        H[np.arange(d), np.arange(d)] += J.alpha
        C = np.zeros((J.ranks.size, T + 2))  # columns -1 .. T: the two outer ones are dropped
        rows = np.arange(J.ranks.size)
        C[rows, J.ranks + 1] = self.uu + self.ul
        C[rows, J.ranks] = self.ll + self.ul
        H[:d, d:] = -(J.X.T @ C[:, 1:-1])
        H[d:, :d] = H[:d, d:].T
        k = d + np.arange(T)
        H[k, k] = J._by_threshold(self.uu, self.ll)
        both = np.bincount(J.ranks, self.ul, J.n_ranks)[1:-1]  # ranks with two finite ends
        H[k[:-1], k[1:]] = H[k[1:], k[:-1]] = both
        return H


def link_start(ranks: np.ndarray, n_ranks: int, weight: np.ndarray, link: str) -> np.ndarray:
    """Return the thresholds that give each rank its share: the optimum at w = 0."""
    share = np.bincount(ranks, weight, n_ranks)
    below = np.cumsum(share)[:-1] / share.sum()
    if link == "probit":
        return ndtri(below)
    above = np.cumsum(share[::-1])[-2::-1] / share.sum()
    return np.log(-np.log(above)) if link == "cloglog" else np.log(below) - np.log(above)
