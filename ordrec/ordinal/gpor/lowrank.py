"""Inducing inputs: a covariance of rank m plus a diagonal, for many samples.

With m inducing rows Z and Q = K_nm K_mm^-1 K_mn, the prior covariance is

    K ~ Q + Lambda,    Lambda = diag(K - Q)

(FITC: Snelson and Ghahramani, 2006): the variances are exact, the covariances go through
the inducing values. With Phi Phi' = Q, V = (Lambda + W^-1)^-1 and C = I + Phi' V Phi,

    |I + K W| = |C| prod(1 + lambda_i w_i)
    R   = V - V Phi C^-1 Phi' V
    A_ii = lambda_i / (1 + lambda_i w_i) + phi_i' C^-1 phi_i / (1 + lambda_i w_i)^2

and a factorisation costs n m^2. With all training rows inducing it is the exact model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ordrec.kernels import Kernel
from ordrec.linalg.low_rank import Woodbury

__all__ = ["InducingPairs", "LowRankCovariance", "LowRankFactor", "LowRankPredictor"]

JITTER = 1e-8  # of the mean inducing variance, added to the diagonal of K_mm
BLOCK = 32  # rows whose diagonal slopes are read from one small block


@dataclass(frozen=True)
class InducingPairs:
    """The rows, and the kernel's pairs of rows with inducing rows and of inducing rows."""

    rows: Any
    cross: Any
    inducing: Any

    @classmethod
    def of(cls, kernel: Kernel, X: Any, inducing: np.ndarray) -> InducingPairs:
        """Return the pairs for the rows of X and inducing rows, given by their row numbers."""
        Z = X[inducing]
        return cls(X, kernel.pairs(X, Z), kernel.pairs(Z))


class LowRankCovariance:
    """Q + Lambda for a kernel with its parameters set."""

    def __init__(self, kernel: Kernel, pairs: InducingPairs):
        self.pairs = pairs
        self.prior_variance = kernel.diag(pairs.rows)
        K_mm = kernel.from_pairs(pairs.inducing)
        # a kernel that is zero has no diagonal to take a share of
        K_mm[np.diag_indices_from(K_mm)] += JITTER * max(float(np.diagonal(K_mm).mean()), 1e-200)
        self.L = np.linalg.cholesky(K_mm)
        self.Phi = solve_triangular(self.L, kernel.from_pairs(pairs.cross).T, lower=True).T
        explained = np.einsum("ij,ij->i", self.Phi, self.Phi)
        self.Lambda = np.maximum(self.prior_variance - explained, 0.0)
        self.diagonal = explained + self.Lambda

    def dot(self, v: np.ndarray) -> np.ndarray:
        """K v."""
        return self.Phi @ (self.Phi.T @ v) + self.Lambda * v

    def factor(self, precision: np.ndarray) -> LowRankFactor:
        """Cholesky factor of C."""
        return LowRankFactor(self, precision)


class LowRankFactor:
    """The posterior through the m x m matrix C."""

    def __init__(self, covariance: LowRankCovariance, precision: np.ndarray):
        self.covariance = covariance
        self.precision = precision
        self.shrink = 1.0 / (1.0 + covariance.Lambda * precision)
        self.V = precision * self.shrink
        self.system = Woodbury(covariance.Phi, self.V)
        self.log_det = 2.0 * float(np.log(np.diagonal(self.system.C)).sum())
        self.log_det -= float(np.log(self.shrink).sum())

    def solve(self, v: np.ndarray) -> np.ndarray:
        """R v."""
        return self.system.solve(v)

    def remainder(self, v: np.ndarray) -> np.ndarray:
        """v - R K v as R W^-1 v, in which nothing of the size of K v cancels."""
        shrunk = self.shrink * v
        return shrunk - self.system.explained(shrunk)

    def _explained(self) -> np.ndarray:
        """phi_i' C^-1 phi_i."""
        half = solve_triangular(
            self.system.C, self.covariance.Phi.T, lower=True, check_finite=False
        )
        return np.einsum("ij,ij->j", half, half)

    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """A_ii and 1 - w_i A_ii."""
        explained = self.shrink * self._explained()
        A = self.shrink * (self.covariance.Lambda + explained)
        return A, self.shrink * (1.0 - self.precision * explained)

    def kernel_slope(self, kernel: Kernel, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute the slope through K_nm, K_mm and the diagonal.

        dK = dQ + diag(dk - dq) and dQ = dK_nm T' + T dK_mn - T dK_mm T', T = K_nm K_mm^-1,
        so only the off-diagonal part of the weights meets dQ.
        """
        cov = self.covariance
        T = solve_triangular(cov.L.T, cov.Phi.T, lower=False, check_finite=False).T
        on_diagonal = left * right - 0.5 * (self.V - self.V**2 * self._explained())
        weighted = 0.5 * (np.outer(left, right @ T) + np.outer(right, left @ T))
        VT = self.V[:, None] * T
        weighted -= 0.5 * VT
        inner = self.system.solve_inner(cov.Phi.T @ VT)
        weighted += 0.5 * self.V[:, None] * (cov.Phi @ inner)
        weighted -= on_diagonal[:, None] * T
        slope = 2.0 * kernel.gradient_trace(cov.pairs.cross, weighted)
        slope -= kernel.gradient_trace(cov.pairs.inducing, T.T @ weighted)
        return slope + _diagonal_slope(kernel, cov.pairs.rows, on_diagonal)

    def predictor(self, coef: np.ndarray) -> LowRankPredictor:
        """Return a predictor over the inducing rows: k' coef = phi' Phi' coef with k = phi L'."""
        cov = self.covariance
        over_inducing = solve_triangular(cov.L.T, cov.Phi.T @ coef, lower=False)
        return LowRankPredictor(over_inducing, cov.L, self.system.C)


@dataclass(frozen=True)
class LowRankPredictor:
    """Mean k' coef, variance reduced by |phi|^2 - phi' C^-1 phi with phi = L^-1 k."""

    coef: np.ndarray
    L: np.ndarray
    C: np.ndarray

    def reduction(self, rows: np.ndarray) -> np.ndarray:
        """Return by how much the data reduce the prior variance of each row k."""
        phi = solve_triangular(self.L, rows.T, lower=True)
        half = solve_triangular(self.C, phi, lower=True, check_finite=False)
        return np.einsum("ij,ij->j", phi, phi) - np.einsum("ij,ij->j", half, half)


def _diagonal_slope(kernel: Kernel, X: Any, weights: np.ndarray) -> np.ndarray:
    """sum_i weights_i dk(x_i, x_i) / dtheta, from small diagonal blocks."""
    slope = np.zeros(kernel.theta.size)
    if not slope.size:
        return slope
    for start in range(0, weights.size, BLOCK):
        part = slice(start, start + BLOCK)
        slope += kernel.gradient_trace(kernel.pairs(X[part]), np.diag(weights[part]))
    return slope
