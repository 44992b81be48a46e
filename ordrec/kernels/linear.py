"""Kernels of inner products: linear, plain or with one weight per feature, and polynomial."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.kernels.base import (
    WIDE,
    Bounds,
    Hyperparameter,
    Kernel,
    positive_number,
    positive_vector,
)
from ordrec.kernels.distances import dense, products, squared_norms, with_scaled_columns

__all__ = ["ARDLinear", "Linear", "Polynomial"]


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
