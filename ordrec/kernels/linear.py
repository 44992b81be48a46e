"""Linear kernels, plain or with one weight per feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.kernels.base import WIDE, Bounds, Hyperparameter, Kernel, positive_vector
from ordrec.kernels.distances import dense, products, squared_norms, with_scaled_columns

__all__ = ["ARDLinear", "Linear"]


class Linear(Kernel):
    """``x . y``."""

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
