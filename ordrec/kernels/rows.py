"""Kernels of feature rows, and the names by which every ordinal estimator accepts them.

Gaussian kernels have one width for all features, or one per feature. Kernels of inner products are
linear, plain or with one weight per feature, and polynomial.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.kernels.base import (
    WIDE,
    Bounds,
    Hyperparameter,
    Kernel,
    Precomputed,
    positive_number,
    positive_vector,
)
from ordrec.kernels.distances import (
    dense,
    products,
    squared_distances,
    squared_norms,
    with_scaled_columns,
)

__all__ = ["ARDGaussian", "ARDLinear", "Gaussian", "Linear", "Polynomial", "kernel_for"]


class Gaussian(Kernel):
    """``exp(-gamma |x - y|^2)``.

    The papers on SVOR and GPOR write ``exp(-kappa/2 |x - y|^2)``: kappa = 2 gamma.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(gamma=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353], [0.1353, 1.    ]])
    """

    def __init__(self, gamma: float = 1.0, bounds: Bounds = WIDE):
        self.gamma = positive_number(gamma, "gamma")
        self.bounds = bounds

    def pairs(self, X: Any, Y: Any = None) -> np.ndarray:
        """Squared distances."""
        return squared_distances(X, Y)

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """The exponential of the scaled distances."""
        K = pairs * pairs.dtype.type(-self.gamma)
        return np.exp(K, out=K)

    def diag(self, X: Any) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def hyperparameters(self) -> list[Hyperparameter]:
        """The inverse squared width."""
        return [Hyperparameter("gamma", np.asarray(self.gamma), self.bounds)]

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        return [-self.gamma * pairs * self.from_pairs(pairs)]


class ARDGaussian(Kernel):
    """``exp(-sum_v gamma_v (x_v - y_v)^2)``: automatic relevance determination.

    A feature whose ``gamma_v`` goes to zero does not matter. The GPOR paper's
    kappa_v is ``2 gamma_v``.
    """

    def __init__(self, gamma: Any, bounds: Bounds = WIDE):
        self.gamma = positive_vector(gamma, "gamma")
        self.bounds = bounds

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """Distances in the stretched space, then the exponential."""
        X, Y = pairs
        root = np.sqrt(self.gamma)
        K = squared_distances(
            with_scaled_columns(X, root), None if Y is X else with_scaled_columns(Y, root)
        )
        np.negative(K, out=K)
        return np.exp(K, out=K)

    def diag(self, X: Any) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def hyperparameters(self) -> list[Hyperparameter]:
        """One inverse squared width per feature."""
        return [Hyperparameter("gamma", self.gamma, self.bounds)]

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        X, Y = (dense(side) for side in pairs)
        K = self.from_pairs(pairs)
        return [-g * np.subtract.outer(X[:, v], Y[:, v]) ** 2 * K for v, g in enumerate(self.gamma)]

    def _gradient_traces(self, pairs: Any, weights: np.ndarray) -> list[float]:
        # sum_ij W_ij (x_iv - y_jv)^2 opens into two weighted norms and one bilinear form
        X, Y = (dense(side) for side in pairs)
        W = weights * self.from_pairs(pairs)
        squares = W.sum(axis=1) @ X**2 + W.sum(axis=0) @ Y**2
        squares -= 2.0 * np.einsum("iv,iv->v", X, W @ Y)
        return list(-self.gamma * squares)


class Linear(Kernel):
    """``x'y``."""

    def pairs(self, X: Any, Y: Any = None) -> np.ndarray:
        """The products, which are the kernel."""
        return products(X, Y)

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """A copy of the products."""
        return pairs.copy()

    def diag(self, X: Any) -> np.ndarray:
        """The squared norms."""
        return squared_norms(X)

    def factor(self, X: Any) -> np.ndarray:
        """The features."""
        return dense(X)


class ARDLinear(Kernel):
    """``sum_v weight_v x_v y_v``: a linear kernel that weighs its features."""

    def __init__(self, weight: Any, bounds: Bounds = WIDE):
        self.weight = positive_vector(weight, "weight")
        self.bounds = bounds

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """The weighted products."""
        X, Y = pairs
        return products(with_scaled_columns(X, self.weight), Y)

    def diag(self, X: Any) -> np.ndarray:
        """The weighted squared norms."""
        return np.asarray(dense(X) ** 2 @ self.weight)

    def factor(self, X: Any) -> np.ndarray:
        """The features, each times the root of its weight."""
        return dense(with_scaled_columns(X, np.sqrt(self.weight)))

    def hyperparameters(self) -> list[Hyperparameter]:
        """One weight per feature."""
        return [Hyperparameter("weight", self.weight, self.bounds)]

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        X, Y = (dense(side) for side in pairs)
        return [w * np.outer(X[:, v], Y[:, v]) for v, w in enumerate(self.weight)]

    def _gradient_traces(self, pairs: Any, weights: np.ndarray) -> list[float]:
        X, Y = (dense(side) for side in pairs)
        return list(self.weight * np.einsum("iv,iv->v", X, weights @ Y))


class Polynomial(Kernel):
    """``(gamma x'y + coef0) ** degree``; degree a positive integer, coef0 not negative."""

    def __init__(
        self, degree: int = 3, gamma: float = 1.0, coef0: float = 0.0, bounds: Bounds = WIDE
    ):
        if int(degree) != degree or degree < 1:
            raise ArgumentError(f"degree must be a positive integer, got {degree!r}")
        if not coef0 >= 0:
            raise ArgumentError(f"coef0 must not be negative (no kernel otherwise), got {coef0!r}")
        self.degree = int(degree)
        self.gamma = positive_number(gamma, "gamma")
        self.coef0 = float(coef0)
        self.bounds = bounds

    def pairs(self, X: Any, Y: Any = None) -> np.ndarray:
        """The products."""
        return products(X, Y)

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """The power of the shifted products."""
        return (self.gamma * pairs + self.coef0) ** self.degree

    def diag(self, X: Any) -> np.ndarray:
        """The power of the shifted squared norms."""
        return (self.gamma * squared_norms(X) + self.coef0) ** self.degree

    def hyperparameters(self) -> list[Hyperparameter]:
        """The scale of the products; degree and offset are part of the kernel's kind."""
        return [Hyperparameter("gamma", np.asarray(self.gamma), self.bounds)]

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        scaled = self.gamma * pairs
        return [self.degree * scaled * (scaled + self.coef0) ** (self.degree - 1)]

    def __repr__(self) -> str:
        return f"Polynomial(degree={self.degree}, gamma={self.gamma:g}, coef0={self.coef0:g})"


NAMES = ("rbf", "linear", "poly", "ard", "ard-linear", "precomputed")


def kernel_for(
    kernel: str | Kernel, X: Any, *, gamma: Any = "scale", degree: int = 3, coef0: float = 0.0
) -> Kernel:
    """The kernel object behind a name, with data-dependent defaults filled in from X.

    Parameters
    ----------
    kernel : str or Kernel
        "rbf", "linear", "poly", "ard" (Gaussian, one width per feature), "ard-linear",
        "precomputed", or a kernel object, which is returned as it is.
    X : array or sparse matrix of shape (n_samples, n_features)
    gamma : "scale", "auto" or float
        As in scikit-learn: 1 / (n_features * X.var()), 1 / n_features, or the number.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if kernel not in NAMES:
        raise ArgumentError(f"kernel must be one of {', '.join(NAMES)} or a Kernel, got {kernel!r}")
    if kernel == "linear":
        return Linear()
    if kernel == "precomputed":
        return Precomputed()
    if kernel == "ard-linear":
        return ARDLinear(np.ones(X.shape[1]))
    width = _resolve_gamma(gamma, X)
    if kernel == "rbf":
        return Gaussian(width)
    if kernel == "poly":
        return Polynomial(degree, width, coef0)
    return ARDGaussian(np.full(X.shape[1], width))


def _resolve_gamma(gamma: Any, X: Any) -> float:
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        mean = X.mean()
        variance = (X.multiply(X) if hasattr(X, "multiply") else X * X).mean() - mean**2
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if isinstance(gamma, str) or not gamma > 0:
        raise ArgumentError(f'gamma must be "scale", "auto" or a positive number, got {gamma!r}')
    return float(gamma)
