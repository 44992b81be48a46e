"""The prior covariance K of the latent values, and the operations that inference needs.

Laplace's method and expectation propagation both replace the likelihood of sample i by a
Gaussian factor of precision w_i >= 0. A covariance offers ``dot(v) = K v`` and
``factor(w)``; the factor represents the posterior under those precisions:

    log_det            ln |I + K W|
    solve(v)           R v,  R = (K + W^-1)^-1
    remainder(v)       v - R K v = R W^-1 v
    marginals()        A_ii and 1 - w_i A_ii,  A = (K^-1 + W)^-1 = K - K R K
    kernel_slope(...)  sum_ij [sym(left right')_ij - R_ij / 2] dK_ij / dtheta

Here K is a full matrix and everything goes through ``B = I + W^1/2 K W^1/2``, whose
eigenvalues are at least one: neither K nor W is ever inverted, both may be singular.
`ordrec.ordinal.gpor.lowrank` has the same interface for inducing inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import lapack

from ordrec.runtime.compiling import compiled

__all__ = ["Covariance", "DenseCovariance", "DenseFactor", "DensePredictor", "Factor", "Predictor"]

VISIBLE = 1e-9  # below this, A cannot be recovered from 1 - w A
FAINT = 1e-12  # relative to the largest root precision: smaller ones are not divided by


class Predictor(Protocol):
    """Predictions from the covariances k of new samples with the rows kept from training."""

    coef: np.ndarray

    def reduction(self, rows: np.ndarray) -> np.ndarray:
        """Return by how much the data reduce the prior variance of each row k."""


class Factor(Protocol):
    """The posterior under Gaussian factors of given precisions."""

    log_det: float

    def solve(self, v: np.ndarray) -> np.ndarray:
        """R v."""

    def remainder(self, v: np.ndarray) -> np.ndarray:
        """v - R K v."""

    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior variances A_ii, and 1 - w_i A_ii."""

    def kernel_slope(self, kernel: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """sum_ij [sym(left right')_ij - R_ij / 2] dK_ij / dtheta."""

    def predictor(self, coef: np.ndarray) -> Predictor:
        """Return a predictor for the posterior mean K coef."""


class Covariance(Protocol):
    """A positive semidefinite n x n matrix known by its products and factors."""

    diagonal: np.ndarray

    def dot(self, v: np.ndarray) -> np.ndarray:
        """K v."""

    def factor(self, precision: np.ndarray) -> Factor:
        """The posterior under these precisions."""


class DenseCovariance:
    """A full matrix; ``pairs`` is what the kernel computed it from."""

    def __init__(self, K: np.ndarray, pairs: Any = None):
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.pairs = pairs
        self.diagonal = np.diagonal(self.K).copy()

    def dot(self, v: np.ndarray) -> np.ndarray:
        """K v."""
        return self.K @ v

    def factor(self, precision: np.ndarray) -> DenseFactor:
        """Cholesky factor of B."""
        return DenseFactor(self, precision)


class DenseFactor:
    """B = L L' for a full K."""

    def __init__(self, covariance: DenseCovariance, precision: np.ndarray):
        self.covariance = covariance
        self.precision = precision
        self.root = np.sqrt(precision)
        B = np.empty(covariance.K.shape, order="F")
        _balance(covariance.K, self.root, B.T)
        self.L, info = lapack.dpotrf(B, lower=1, clean=0, overwrite_a=1)
        if info:
            raise ValueError(
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
            rest += faint - self.solve(self.covariance.dot(faint))
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
            column = self.covariance.K[i]
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
