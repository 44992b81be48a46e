"""Features in units that a kernel can compare.

Kernels add up products or squared differences over the features, so that a feature in thousands
hides one in tenths. Standardised features are comparable, whatever their units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import inplace_column_scale, mean_variance_axis

from ordrec.errors import ArgumentError
from ordrec.kernels import Precomputed
from ordrec.storage.schema import Array

__all__ = ["Standardisation", "hidden_features", "scaling_for"]

SCALINGS = ("auto", "standard", None)
# By how much a quarter of the features may be smaller than the largest one: beyond it, each of
# them is less than a hundredth of what that one adds to a squared distance.
LARGEST_RATIO = 10.0
# Mean exponent of a Gaussian kernel: above, all rows are strangers; below, all are the same.
LARGEST_EXPONENT, SMALLEST_EXPONENT = 20.0, 0.01
BY_NAME = ("rbf", "linear", "poly", "ard", "ard-linear")


@dataclass(frozen=True)
class Standardisation:
    """Maps features to mean 0 and deviation 1.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Zero where the features were sparse, as these stay sparse.
    deviation : ndarray of shape (n_features,)
        One for constant features.

    Examples
    --------
    >>> X = np.array([[1.0, 2000.0], [3.0, 6000.0]])
    >>> Standardisation.of(X)(X).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """

    stored: ClassVar = {"mean": Array("features"), "deviation": Array("features", low=1e-300)}

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, X: Any) -> Standardisation:
        """From the means and deviations of some rows."""
        mean, deviation = _moments(X)
        return cls(
            np.zeros_like(mean) if sparse.issparse(X) else mean,
            np.where(deviation > 0, deviation, 1.0),
        )

    def __call__(self, X: Any) -> Any:
        """The rows, standardised."""
        if sparse.issparse(X) and not self.mean.any():
            scaled = X.copy()
            inplace_column_scale(scaled, 1.0 / self.deviation)
            return scaled
        dense = X.toarray() if sparse.issparse(X) else X
        return (dense - self.mean) / self.deviation

    def undo(self, coef: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and thresholds that give features in their own units the same ranks."""
        coef = coef / self.deviation
        return coef, thresholds + self.mean @ coef


def scaling_for(scaling: Any, X: Any, *, kernel: Any, gamma: Any) -> Standardisation | None:
    """What ``scaling`` does to the features, None if they stay as they are.

    Parameters
    ----------
    scaling : {"auto", "standard", None}
    X : array or CSR matrix of shape (n_samples, n_features)
    kernel, gamma :
        The parameters of the estimator. "auto" leaves features alone that a kernel object or a
        precomputed matrix was chosen for.
    """
    if scaling not in SCALINGS:
        raise ArgumentError(f'scaling must be "auto", "standard" or None, got {scaling!r}')
    if scaling is None:
        return None
    if kernel == "precomputed" or isinstance(kernel, Precomputed):
        if scaling == "standard":
            raise ArgumentError(
                'scaling="standard" needs features, but the kernel is precomputed: standardise the '
                'features that it is computed from, and use scaling="auto" or None'
            )
        return None
    if scaling == "auto":
        named = kernel is None or (isinstance(kernel, str) and kernel in BY_NAME)
        if not (named and hidden_features(X, kernel, gamma)):
            return None
    return Standardisation.of(X)


def hidden_features(X: Any, kernel: Any, gamma: Any) -> bool:
    """Whether the features' units hide most of what a kernel could see.

    Either a quarter of the features is ten times smaller than the largest one, in deviation as
    well as in range: features that were standardised, or scaled to a common range, are neither.
    Or a Gaussian kernel of the default width makes all rows dissimilar, or all similar. Rows
    that were scaled to a common length, such as those of texts, are left as they are.
    """
    mean, deviation = _moments(X)
    spread = _ranges(X)
    varies = deviation > 0
    if not varies.any() or _rows_are_normalised(X):
        return False
    ratios = [
        part.max() / np.quantile(part, 0.25, method="lower")
        for part in (deviation[varies], spread[varies])
    ]
    if min(ratios) > LARGEST_RATIO:
        return True
    if kernel not in ("rbf", "ard"):
        return False
    within = float(np.mean(deviation**2))
    if gamma is None:
        return within > LARGEST_EXPONENT  # widths of 1 / (2 n_features)
    if gamma == "auto":
        return 2.0 * within > LARGEST_EXPONENT
    if gamma == "scale":  # the variance of all entries contains that between the features' means
        return 2.0 * within < SMALLEST_EXPONENT * (within + float(np.var(mean)))
    return False


def _moments(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations of the columns; the latter 0 where rounding explains them."""
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
    else:
        mean, variance = X.mean(axis=0), X.var(axis=0)
    deviation = np.sqrt(variance)
    rounding = 10.0 * np.finfo(np.float64).eps * X.shape[0] * np.abs(mean)
    return mean, np.where(deviation > rounding, deviation, 0.0)


def _rows_are_normalised(X: Any) -> bool:
    """Whether all rows that are not zero have the same length."""
    squares = np.asarray((X.multiply(X) if sparse.issparse(X) else X * X).sum(axis=1)).ravel()
    squares = squares[squares > 0]
    return squares.size > 0 and bool(np.ptp(squares) <= 1e-6 * squares.max())


def _ranges(X: Any) -> np.ndarray:
    """Largest minus smallest entry of each column."""
    if sparse.issparse(X):
        return (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    return np.ptp(X, axis=0)
