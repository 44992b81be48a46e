"""Base classes of the ordinal estimators: labels as ranks, kernels, decisions, probabilities.

Internally, ranks are 0..n_ranks-1. Labels are ordered by their numeric value, or by the order
declared with ``classes=``; a declared class that does not occur in training keeps its rank.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ordrec.errors import DataError, ModelFileError
from ordrec.kernels import Gaussian, Kernel, Precomputed, kernel_for
from ordrec.kernels.landmarks import Landmarks
from ordrec.ordinal.gram_size import check_gram_size
from ordrec.ordinal.labels import categories_of, class_weighted, ordered_classes
from ordrec.ordinal.scaling import Standardisation, scaling_for
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.stored import ESTIMATOR, KERNELS
from ordrec.ordinal.thresholds.link import fit_link
from ordrec.ordinal.thresholds.order import ranks_between
from ordrec.runtime.parallel import one_blas_thread
from ordrec.runtime.progress import shows_progress
from ordrec.storage.parameters import plain_of, value_of
from ordrec.storage.schema import Field, Reader, Storable, Writer

__all__ = [
    "CalibratedModel",
    "KernelMixin",
    "OrdinalClassifier",
    "ProximityModel",
    "ThresholdModel",
]

LINK_FOLDS = 5
BLOCK_ENTRIES = 2**22  # entries of a kernel matrix that are computed at a time
# Negative eigenvalues of a Gram matrix that rounding explains, relative to its trace.
DOUBLE_ROUNDING, SINGLE_ROUNDING = 1e-8, 1e-6
SHORT = 100.0  # Gaussian widths up to which single precision resolves coordinates to 1e-5 widths


class OrdinalClassifier(Storable, ClassifierMixin, BaseEstimator):
    """Base of all ordinal estimators: validates the input and maps ranks to labels.

    Subclasses have a parameter ``classes``; those that take weights also ``class_weight``, and
    those whose fit may take long ``verbose``. A fit is a stage of `ordrec.runtime.progress`.
    """

    classes: Any
    class_weight: Any = None
    verbose: bool | None = None
    stored: ClassVar[Mapping[str, Field]] = ESTIMATOR

    def __init_subclass__(cls, **options: Any) -> None:
        """Make ``fit`` a stage of progress."""
        super().__init_subclass__(**options)
        if "fit" in cls.__dict__:
            cls.fit = shows_progress(cls.__dict__["fit"])  # type: ignore[attr-defined]

    def _validate_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, dtype: Any = np.float64
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Checked X, zero-based ranks and weights; sets ``classes_`` and ``n_features_in_``."""
        declared = categories_of(y) if self.classes is None else self.classes
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=dtype, order="C")
        check_classification_targets(y)
        self.classes_, ranks = ordered_classes(y, declared)
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        weight = class_weighted(self.class_weight, ranks, weight, self.classes_)
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

    # ---- files ---------------------------------------------------------------------------

    def write_to(self, file: Writer) -> None:
        """Write the parameters, and what is declared."""
        check_is_fitted(self)
        file.values["parameters"] = parameters = {}
        for name, value in self.get_params(deep=False).items():
            if name == "verbose":
                continue  # how it was fitted, not what
            if name == "random_state" and not isinstance(value, (int, np.integer)):
                value = None
            place = f"{type(self).__name__}({name}=...)"
            parameters[name] = plain_of(value, place, KERNELS)
        file.add_attributes(self)

    @classmethod
    def read_from(cls, file: Reader) -> Any:
        """Return the estimator of a file, after checking every part of it."""
        model, plain = cls(), file.value("parameters")
        unknown = set(plain) - set(model.get_params(deep=False))
        if unknown:
            raise ModelFileError(f"{sorted(map(str, unknown))[0][:50]!r} is no parameter of {cls}")
        model.set_params(**{name: value_of(value, KERNELS) for name, value in plain.items()})
        if hasattr(model, "_check_parameters"):
            model._check_parameters()
        file.restore(model)
        check_is_fitted(model)
        return model

    def _warn_unless_converged(self, solution: Solution, tol: float) -> None:
        if not solution.converged:
            gap = "" if np.isnan(solution.gap) else f" and duality gap {solution.gap:.3g}"
            warnings.warn(
                f"{type(self).__name__} stopped after {solution.n_iter} iterations with violation "
                f"{solution.violation:.3g} (tol {tol:g}){gap}: "
                "raise max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=6,  # who called fit, which three decorators have wrapped
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
        """P(rank) by the calibrated link, shape (n_samples, n_ranks)."""
        if not hasattr(self, "link_"):
            check_is_fitted(self)
            raise AttributeError(
                f"this {type(self).__name__} was fitted without probability=True, which "
                "predict_proba needs"
            )
        return self.link_.probabilities(self.predict_latent(X))


class CalibratedModel(ThresholdModel):
    """A `ThresholdModel` that has probabilities on request, by the parameter ``probability``."""

    probability: bool

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """``predict_proba(X)``: P(rank) by the calibrated link; needs ``probability=True``.

        A property, so that models without probabilities have no such method and say why.
        """
        if not self.probability:
            raise AttributeError(
                f"predict_proba of {type(self).__name__} needs probability=True, set before fit"
            )
        return self._linked_probabilities


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

    Subclasses have the parameters ``kernel``, ``gamma``, ``degree``, ``coef0`` and ``scale``;
    those that can do with an approximate kernel also ``n_landmarks`` and ``random_state``.
    """

    scale: Any
    scaling_: Standardisation | None
    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    n_landmarks: Any
    random_state: Any
    remedy_of_constants: ClassVar[str] = "raise C"
    gram_copies: ClassVar[int] = 2  # matrices of the size of K that a fit holds at a time

    def _validate_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, dtype: Any = np.float64
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """As of `OrdinalClassifier`, with the features scaled; sets ``scaling_``."""
        X, ranks, weight = super()._validate_fit(X, y, sample_weight, dtype=dtype)  # type: ignore[misc]
        counted = X if (weight > 0).all() else X[weight > 0]
        self.scaling_ = scaling_for(self.scale, counted, kernel=self.kernel, gamma=self.gamma)
        return X if self.scaling_ is None else self.scaling_(X), ranks, weight

    def _validate_predict(self, X: Any, *, dtype: Any = np.float64) -> Any:
        X = super()._validate_predict(X, dtype=dtype)  # type: ignore[misc]
        return X if self.scaling_ is None else self.scaling_(X)

    def _fit_gram(
        self, X: Any, *, rows: np.ndarray | None = None, dtype: Any = np.float64
    ) -> np.ndarray:
        """K(X, X), or that of some rows of X as if there were no others; sets ``kernel_``."""
        part = self._fit_kernel(X, rows)
        if isinstance(self.kernel_, Precomputed):
            return self._counted_gram(X, rows).astype(dtype, copy=False)
        check_gram_size(self, part.shape[0], self.gram_copies * np.dtype(dtype).itemsize)
        if dtype == np.float64:
            return self.kernel_(part)
        return _gram_in_blocks(self.kernel_, part, dtype)

    def _counted_gram(self, X: Any, rows: np.ndarray | None) -> np.ndarray:
        """A precomputed Gram matrix, checked, over some rows or all."""
        K = check_gram(X)
        return K if rows is None or rows.size == K.shape[0] else K[np.ix_(rows, rows)]

    def _fit_landmarks(self, X: Any, rows: np.ndarray) -> tuple[np.ndarray, Landmarks]:
        """Features of some rows of X, and the landmarks that give them; sets ``kernel_``.

        ``left_out_`` is the share of the kernel's trace that the features leave out.
        """
        part = self._fit_kernel(X, rows)
        if isinstance(self.kernel_, Precomputed):
            part = self._counted_gram(X, rows)
        random = check_random_state(self.random_state)
        with one_blas_thread():  # products this narrow only wait for further threads
            landmarks = Landmarks.chosen(self.kernel_, part, self.n_landmarks, random)
            Z = landmarks.features(part)
        trace = float(self.kernel_.diag(part).sum())
        kept = float(np.einsum("ij,ij->", Z, Z))
        self.left_out_ = max(0.0, 1.0 - kept / trace) if trace > 0 else 0.0
        return Z, landmarks

    def _fit_kernel(self, X: Any, rows: np.ndarray | None) -> Any:
        """Set ``kernel_`` for some rows of X, or for all; returns them."""
        part = X if rows is None or rows.size == X.shape[0] else X[rows]
        self.kernel_ = kernel_for(
            self.kernel, part, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        return part

    def check_stored(self) -> None:
        """Check that the rows of the expansion are those of the training data."""
        super().check_stored()  # type: ignore[misc]
        if not hasattr(self, "_rows"):
            return
        pairwise = isinstance(self.kernel_, Precomputed)
        if pairwise != (self._inputs is None):
            raise ModelFileError("the stored rows do not match the kernel")
        if pairwise and self._rows.max(initial=0) >= self.n_features_in_:  # type: ignore[attr-defined]
            raise ModelFileError("array 'rows' points beyond the kernel matrix")

    def _keep_rows(self, X: Any, rows: np.ndarray) -> None:
        """Remember the training rows that predictions are expanded over."""
        self._rows = rows
        self._inputs = None if isinstance(self.kernel_, Precomputed) else X[rows]

    def _cross_gram(self, X: Any) -> np.ndarray:
        """K(X, kept training rows)."""
        if isinstance(self.kernel_, Precomputed):
            return X[:, self._rows]
        return self.kernel_(X, self._inputs)

    def _expanded(self, X: Any, coef: np.ndarray) -> np.ndarray:
        """K(X, kept training rows) @ coef, in blocks of rows so that memory is bounded."""
        step = max(1, BLOCK_ENTRIES // max(1, self._rows.size))
        blocks = [X[first : first + step] for first in range(0, X.shape[0], step)]
        return np.concatenate([self._cross_gram(block) @ coef for block in blocks])

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
    done = {"scale": None, "class_weight": None}  # X and the weights contain it already
    blank.set_params(**{name: done[name] for name in blank.get_params() if name in done})
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
