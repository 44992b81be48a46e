"""The posterior of latent values under Gaussian factors, as `ordrec.ordinal.gpor` needs it.

K is the prior covariance, a Gram matrix. Laplace's method and expectation propagation both replace
the likelihood of sample i by a Gaussian factor of precision w_i >= 0. A covariance offers
``times(v) = K v`` and ``factor(w)``; the factor represents the posterior under those precisions:

    log_det            ln |I + K W|
    solve(v)           R v,  R = (K + W^-1)^-1
    remainder(v)       v - R K v = R W^-1 v
    marginals()        A_ii and 1 - w_i A_ii,  A = (K^-1 + W)^-1 = K - K R K
    kernel_slope(...)  sum_ij [sym(left right')_ij - R_ij / 2] dK_ij / dtheta

With a whole K everything goes through ``B = I + W^1/2 K W^1/2``, whose eigenvalues are at least
one: neither K nor W is ever inverted, both may be singular.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from ordrec.errors import DataError
from ordrec.kernels import Kernel
from ordrec.linalg.low_rank import Woodbury
from ordrec.ordinal.gram.matrix import DenseGram, FactoredGram
from ordrec.runtime.compiling import compiled

__all__ = [
    "Covariance",
    "DenseCovariance",
    "DenseFactor",
    "DensePredictor",
    "Factor",
    "InducingPairs",
    "LowRankCovariance",
    "LowRankFactor",
    "LowRankPredictor",
]

VISIBLE = 1e-9  # below this, A cannot be recovered from 1 - w A
FAINT = 1e-12  # relative to the largest root precision: smaller ones are not divided by
JITTER = 1e-8  # of the mean inducing variance, added to the diagonal of K_mm
BLOCK = 32  # rows whose diagonal slopes are read from one small block


class DenseCovariance(DenseGram):
    """A whole matrix; ``pairs`` is what the kernel computed it from."""

    def __init__(self, K: np.ndarray, pairs: Any = None):
        super().__init__(np.asarray(K, dtype=np.float64))
        self.pairs = pairs

    def factor(self, precision: np.ndarray) -> DenseFactor:
        """The posterior under these precisions, by the Cholesky factor of B."""
        return DenseFactor(self, precision)


class DenseFactor:
    """B = L L' for a full K."""

    def __init__(self, covariance: DenseCovariance, precision: np.ndarray):
        self.covariance = covariance
        self.precision = precision
        self.root = np.sqrt(precision)
        B = np.empty(covariance.values.shape, order="F")
        _balance(covariance.values, self.root, B.T)
        self.L, info = lapack.dpotrf(B, lower=1, clean=0, overwrite_a=1)
        if info:
            raise DataError(
                f"the kernel matrix is not positive semidefinite (leading minor {info}): "
                "use a valid kernel, or scale the features"
            )
        self.log_det = 2.0 * float(np.log(np.diagonal(self.L)).sum())
        self._inverse_of_L: np.ndarray | None = None

    def solve(self, v: np.ndarray) -> np.ndarray:
        """R v = W^1/2 B^-1 W^1/2 v."""
        x, _ = lapack.dpotrs(self.L, self.root * v, lower=1)
        return self.root * x.reshape(v.shape)

    def remainder(self, v: np.ndarray) -> np.ndarray:
        """v - R K v as W^1/2 B^-1 W^-1/2 v, in which nothing of the size of K v cancels.

        Where w is too small to divide by, v - R K v is computed as it is written.
        """
        clear = self.root > FAINT * self.root.max()
        scaled = np.divide(v, self.root, out=np.zeros_like(v), where=clear)
        x, _ = lapack.dpotrs(self.L, scaled, lower=1)
        rest = self.root * x.reshape(v.shape)
        if not clear.all():
            faint = np.where(clear, 0.0, v)
            rest += faint - self.solve(self.covariance.times(faint))
        return rest

    def _inverted(self) -> np.ndarray:
        if self._inverse_of_L is None:
            self._inverse_of_L, _ = lapack.dtrtri(self.L, lower=1)
        return self._inverse_of_L

    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """A_ii = (1 - (B^-1)_ii) / w_i, or directly where w_i is too small for that."""
        rest = _column_squares(self._inverted().T)  # diag of B^-1 = L^-T L^-1
        explained = 1.0 - rest
        clear = explained > VISIBLE
        A = np.divide(explained, self.precision, out=np.zeros_like(rest), where=clear)
        for i in np.flatnonzero(~clear):
            column = self.covariance.values[i]
            A[i] = column[i] - column @ self.solve(column)
            rest[i] = 1.0 - self.precision[i] * A[i]
        return A, rest

    def kernel_slope(self, kernel: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute the weights in one pass over B^-1, then the trace with the kernel's gradient."""
        inverse, _ = lapack.dlauum(np.array(self._inverted(), order="F"), lower=1, overwrite_c=1)
        weights = np.empty(inverse.shape)
        _slope_weights(inverse.T, self.root, left, right, weights)
        return kernel.gradient_trace(self.covariance.pairs, weights)

    def predictor(self, coef: np.ndarray) -> DensePredictor:
        """Return a predictor over all training samples."""
        return DensePredictor(coef, self.L, self.root)


@dataclass(frozen=True)
class DensePredictor:
    """Mean k' coef, variance reduced by k' R k = |L^-1 W^1/2 k|^2."""

    coef: np.ndarray
    L: np.ndarray
    root: np.ndarray

    def reduction(self, rows: np.ndarray) -> np.ndarray:
        """k' R k for each row k."""
        scaled = np.asfortranarray((rows * self.root).T)
        half, _ = lapack.dtrtrs(self.L, scaled, lower=1, overwrite_b=1)
        return np.einsum("ij,ij->j", half, half)


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


class LowRankCovariance(FactoredGram):
    """Q + Lambda for a kernel with its parameters set; the factor of Q is Phi."""

    def __init__(self, kernel: Kernel, pairs: InducingPairs):
        self.pairs = pairs
        self.prior_variance = kernel.diag(pairs.rows)
        K_mm = kernel.from_pairs(pairs.inducing)
        # a kernel that is zero has no diagonal to take a share of
        K_mm[np.diag_indices_from(K_mm)] += JITTER * max(float(np.diagonal(K_mm).mean()), 1e-200)
        self.L = np.linalg.cholesky(K_mm)
        super().__init__(solve_triangular(self.L, kernel.from_pairs(pairs.cross).T, lower=True).T)
        explained = np.einsum("ij,ij->i", self.Phi, self.Phi)
        self.Lambda = np.maximum(self.prior_variance - explained, 0.0)

    @property
    def Phi(self) -> np.ndarray:
        """The factor of Q."""
        return self.values

    def times(self, B: np.ndarray, each: Callable[..., Any] = map) -> np.ndarray:
        """K B, for a vector or for columns."""
        return super().times(B, each) + (self.Lambda * B.T).T

    def factor(self, precision: np.ndarray) -> LowRankFactor:
        """The posterior under these precisions, by the Cholesky factor of C."""
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


Covariance = DenseCovariance | LowRankCovariance
Factor = DenseFactor | LowRankFactor


@compiled
def _balance(K: np.ndarray, root: np.ndarray, upper: np.ndarray) -> None:
    """B = I + W^1/2 K W^1/2 into the upper triangle: the lower one for column-major LAPACK."""
    for i in range(root.size):
        for j in range(i, root.size):
            upper[i, j] = root[i] * K[i, j] * root[j]
        upper[i, i] += 1.0


@compiled
def _column_squares(upper: np.ndarray) -> np.ndarray:
    """Sum of squares along each row of the transposed lower triangle."""
    squares = np.zeros(upper.shape[0])
    for i in range(upper.shape[0]):
        for j in range(i, upper.shape[0]):
            squares[i] += upper[i, j] * upper[i, j]
    return squares


@compiled
def _slope_weights(
    upper: np.ndarray, root: np.ndarray, left: np.ndarray, right: np.ndarray, weights: np.ndarray
) -> None:
    """sym(left right') - W^1/2 B^-1 W^1/2 / 2, both triangles from one of B^-1."""
    for i in range(root.size):
        for j in range(i, root.size):
            value = left[i] * right[j] + left[j] * right[i] - root[i] * upper[i, j] * root[j]
            weights[i, j] = 0.5 * value
            weights[j, i] = 0.5 * value
