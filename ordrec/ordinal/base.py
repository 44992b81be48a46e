"""Base classes of the ordinal estimators: labels as ranks, kernels, decisions, probabilities.

Internally, ranks are 0..n_ranks-1. Labels are ordered by their numeric value, or by the order
declared with ``classes=``; a declared class that does not occur in training keeps its rank.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ordrec.errors import DataError
from ordrec.kernels import Gaussian, Kernel, Precomputed, kernel_for
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.thresholds.link import fit_link
from ordrec.ordinal.thresholds.order import ranks_between

__all__ = ["KernelMixin", "OrdinalClassifier", "ProximityModel", "ThresholdModel"]

LINK_FOLDS = 5
BLOCK_ENTRIES = 2**22  # entries of a kernel matrix that are computed at a time
# Negative eigenvalues of a Gram matrix that rounding explains, relative to its trace.
DOUBLE_ROUNDING, SINGLE_ROUNDING = 1e-8, 1e-6
SHORT = 100.0  # Gaussian widths up to which single precision resolves coordinates to 1e-5 widths


class OrdinalClassifier(ClassifierMixin, BaseEstimator):
    """Base of all ordinal estimators: validates the input and maps ranks to labels.

    Subclasses have a parameter ``classes``.
    """

    classes: Any

    def _validate_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, dtype: Any = np.float64
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Checked X, zero-based ranks and weights; sets ``classes_`` and ``n_features_in_``."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=dtype, order="C")
        check_classification_targets(y)
        self.classes_, ranks = _ordered_classes(y, self.classes)
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        present = np.unique(ranks[weight > 0])
        if present.size < 2:
            held = self.classes_[present].tolist() if present.size else "none"
            raise ValueError(
                f"{type(self).__name__} needs samples of at least two classes to tell apart, "
                f"got one class ({held}) among the samples of positive weight"
            )
        return X, ranks, weight

    def _validate_predict(self, X: Any, *, dtype: Any = np.float64) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=dtype, order="C", reset=False)

    @property
    def n_ranks_(self) -> int:
        """Number of ranks of the fitted scale."""
        return len(self.classes_)

    @abstractmethod
    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return zero-based ranks."""

    def predict(self, X: Any) -> np.ndarray:
        """Return labels, which are entries of ``classes_``."""
        ranks = self.predict_ranks(X)  # before classes_ is read: checks that there was a fit
        return self.classes_[ranks]

    def _warn_unless_converged(self, solution: Solution, tol: float) -> None:
        if not solution.converged:
            gap = "" if np.isnan(solution.gap) else f" and duality gap {solution.gap:.3g}"
            warnings.warn(
                f"{type(self).__name__} stopped after {solution.n_iter} iterations with violation "
                f"{solution.violation:.3g} (tol {tol:g}){gap}: "
                "raise max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ThresholdModel(OrdinalClassifier):
    """An estimator with a latent score cut by ``thresholds_``.

    There is no ``decision_function``: scikit-learn expects one column per class there. Use
    `predict_latent`, which is on the scale of ``thresholds_``.
    """

    thresholds_: np.ndarray

    @abstractmethod
    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the latent score f(x), shape (n_samples,)."""

    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return zero-based ranks: ``min{j : f(x) < thresholds_[j]}``."""
        return ranks_between(self.predict_latent(X), self.thresholds_)

    def _fit_link(self, X: Any, ranks: np.ndarray, weight: np.ndarray) -> None:
        """Calibrate ``link_`` on scores from models that did not see the sample scored."""
        scores = out_of_fold_latent(self, X, ranks, weight)
        self.link_ = fit_link(scores, ranks, self.n_ranks_, weight)

    def _linked_probabilities(self, X: Any) -> np.ndarray:
        if not hasattr(self, "link_"):
            check_is_fitted(self)
            raise AttributeError(
                f"this {type(self).__name__} was fitted without probability=True, which "
                "predict_proba needs"
            )
        return self.link_.probabilities(self.predict_latent(X))


class ProximityModel(OrdinalClassifier):
    """An estimator with one surface per rank, which predicts the rank of the nearest."""

    @abstractmethod
    def predict_distances(self, X: Any) -> np.ndarray:
        """Return distances to the ranks' surfaces, (n_samples, n_ranks); inf if there is none."""

    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return the zero-based rank of the nearest surface, the lower one of equally near ones."""
        return self.predict_distances(X).argmin(axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return negated distances, one column per rank; the largest is predicted.

        With two ranks, as in scikit-learn, one value per sample: how much nearer it is to the
        upper rank than to the lower one.
        """
        distances = self.predict_distances(X)
        if self.n_ranks_ == 2:
            return distances[:, 0] - distances[:, 1]
        return -distances


class KernelMixin:
    """Computes Gram matrices in fit and cross-Gram matrices in predict, for any kernel.

    Subclasses have the parameters ``kernel``, ``gamma``, ``degree`` and ``coef0``.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float

    def _fit_gram(
        self, X: Any, *, rows: np.ndarray | None = None, dtype: Any = np.float64
    ) -> np.ndarray:
        """K(X, X), or that of some rows of X as if there were no others; sets ``kernel_``."""
        part = self._fit_kernel(X, rows)
        if isinstance(self.kernel_, Precomputed):
            K = check_gram(X)
            counted = K if rows is None or part is X else K[np.ix_(rows, rows)]
            return counted.astype(dtype, copy=False)
        if dtype == np.float64:
            return self.kernel_(part)
        return _gram_in_blocks(self.kernel_, part, dtype)

    def _fit_kernel(self, X: Any, rows: np.ndarray | None) -> Any:
        """Set ``kernel_`` for some rows of X, or for all; returns them."""
        part = X if rows is None or rows.size == X.shape[0] else X[rows]
        self.kernel_ = kernel_for(
            self.kernel, part, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        return part

    def _keep_rows(self, X: Any, rows: np.ndarray) -> None:
        """Remember the training rows that predictions are expanded over."""
        self._rows = rows
        self._inputs = None if isinstance(self.kernel_, Precomputed) else X[rows]

    def _cross_gram(self, X: Any) -> np.ndarray:
        """K(X, kept training rows)."""
        if isinstance(self.kernel_, Precomputed):
            return X[:, self._rows]
        return self.kernel_(X, self._inputs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        return tags


def _gram_in_blocks(kernel: Kernel, X: Any, dtype: Any) -> np.ndarray:
    """K(X, X) in another precision, without a double-precision matrix of that size."""
    n = X.shape[0]
    if isinstance(kernel, Gaussian) and not sparse.issparse(X):
        centred = X - X.mean(axis=0)  # which does not change the distances
        if np.sqrt(kernel.gamma) * np.abs(centred).max() < SHORT:
            X = centred.astype(dtype)
    K = np.empty((n, n), dtype=dtype)
    step = max(1, BLOCK_ENTRIES // n)
    for first in range(0, n, step):
        K[first : first + step] = kernel(X[first : first + step], X)
    return K


def check_gram(K: Any) -> np.ndarray:
    """Return a precomputed Gram matrix, checked to be dense, square, symmetric and semidefinite.

    Eigenvalues below 0 by no more than rounding are accepted.
    """
    if sparse.issparse(K):
        raise TypeError("a precomputed kernel must be a dense matrix: pass K.toarray()")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"a precomputed kernel must be a square matrix (n_samples, n_samples), got {K.shape}"
        )
    size = np.abs(K).max(initial=0.0)
    if np.abs(K - K.T).max(initial=0.0) > 1e-8 * size:
        raise ValueError("a precomputed kernel must be symmetric: use (K + K.T) / 2 to make it so")
    shifted = np.array(K, dtype=np.float64, order="F")
    rounding = SINGLE_ROUNDING if K.dtype == np.float32 else DOUBLE_ROUNDING
    shifted[np.diag_indices_from(shifted)] += rounding * np.abs(np.diagonal(K)).sum()
    if size > 0 and lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1]:
        eigenvalues = np.linalg.eigvalsh(K)
        raise DataError(
            "the kernel matrix is not positive semidefinite (its eigenvalues lie between "
            f"{eigenvalues[0]:.3g} and {eigenvalues[-1]:.3g}): use a valid kernel, or set the "
            "negative eigenvalues to 0"
        )
    return K


def out_of_fold_latent(
    model: ThresholdModel, X: Any, ranks: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the latent score of every sample, from a clone fitted without its fold.

    The samples of each rank are distributed over all folds.
    """
    fold = np.empty(ranks.size, dtype=np.int64)
    fold[np.argsort(ranks, kind="stable")] = np.arange(ranks.size) % LINK_FOLDS
    labels = model.classes_[ranks]
    blank = clone(model).set_params(classes=model.classes_)
    if "probability" in blank.get_params():
        blank.set_params(probability=False)
    pairwise = model.__sklearn_tags__().input_tags.pairwise
    scores = np.empty(ranks.size)
    for part in range(LINK_FOLDS):
        train, test = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        if not test.size:
            continue
        if np.unique(ranks[train][weight[train] > 0]).size < 2:  # too few samples to leave any out
            scores[test] = model.predict_latent(X[test])
            continue
        rows = X[np.ix_(train, train)] if pairwise else X[train]
        held = X[np.ix_(test, train)] if pairwise else X[test]
        fitted = clone(blank).fit(rows, labels[train], sample_weight=weight[train])
        scores[test] = fitted.predict_latent(held)
    return scores


def _ordered_classes(y: np.ndarray, declared: Any) -> tuple[np.ndarray, np.ndarray]:
    """Classes in ascending order of rank, and the zero-based rank of each label."""
    if declared is None:
        classes, ranks = np.unique(y, return_inverse=True)
        if classes.size > 2 and not np.issubdtype(classes.dtype, np.number):
            raise ValueError(
                f"labels of type {classes.dtype} have no order of their own: declare it with "
                f"classes=[lowest, ..., highest] (the labels are {classes[:5].tolist()} ...)"
            )
        return classes, ranks.astype(np.int64)
    classes = np.asarray(declared)
    if classes.ndim != 1 or classes.size < 2 or np.unique(classes).size != classes.size:
        raise ValueError(f"classes must list at least two distinct labels, got {declared!r}")
    position = {label: rank for rank, label in enumerate(classes.tolist())}
    unknown = [label for label in np.unique(y).tolist() if label not in position]
    if unknown:
        raise ValueError(f"y contains {unknown[:5]}, not among the declared classes {declared!r}")
    return classes, np.array([position[label] for label in y.tolist()], dtype=np.int64)
