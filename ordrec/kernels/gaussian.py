"""Gaussian kernels, with one width for all features or one per feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.kernels.base import (
    WIDE,
    Bounds,
    Hyperparameter,
    Kernel,
    positive_number,
    positive_vector,
)
from ordrec.kernels.distances import dense, squared_distances, with_scaled_columns

__all__ = ["ARDGaussian", "Gaussian"]


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
