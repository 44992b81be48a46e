"""Kernels of feature rows by name, as every ordinal estimator accepts them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.kernels.base import Kernel, Precomputed
from ordrec.kernels.gaussian import ARDGaussian, Gaussian
from ordrec.kernels.linear import ARDLinear, Linear
from ordrec.kernels.polynomial import Polynomial

__all__ = ["kernel_for"]

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
