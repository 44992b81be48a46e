"""The polynomial kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.kernels.base import WIDE, Bounds, Hyperparameter, Kernel, positive_number
from ordrec.kernels.distances import products, squared_norms

__all__ = ["Polynomial"]


class Polynomial(Kernel):
    """``(gamma x . y + coef0) ** degree``; degree a positive integer, coef0 not negative."""

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
