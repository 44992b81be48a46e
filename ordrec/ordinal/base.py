"""Base classes of the ordinal estimators: labels as ranks, decisions, probabilities.

Internally, ranks are 0..n_ranks-1. Labels are ordered by their numeric value, or by the order
declared with ``classes=``; a declared class that does not occur in training keeps its rank.
`ordrec.ordinal.kernel_model` has what estimators with a kernel share.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ordrec.errors import DataError, ModelFileError, callers_level
from ordrec.ordinal.labels import (
    categories_of,
    class_weighted,
    ordered_classes,
    refuse_continuous,
    refuse_encoded,
    refuse_unordered_scorer,
)
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.stored import ESTIMATOR, KERNELS
from ordrec.ordinal.thresholds.link import fit_link
from ordrec.ordinal.thresholds.probabilities import ranks_between
from ordrec.runtime.parallel import blas_for, one_blas_thread
from ordrec.runtime.progress import shows_progress
from ordrec.storage.parameters import plain_of, value_of
from ordrec.storage.schema import Field, Reader, Storable, Writer

__all__ = [
    "CalibratedModel",
    "OrdinalClassifier",
    "ProximityModel",
    "ThresholdModel",
    "limit_blas",
    "warn_if_constant",
]

Fit = TypeVar("Fit", bound=Callable[..., Any])

LINK_FOLDS = 5
ONE_LABEL = 0.95  # share of the samples from which on a constant prediction is to be expected
PROBES = 500  # samples that are predicted to see whether a fit is constant


def _by_rank(predict: Fit) -> Fit:
    """Let a method whose columns are in the order of ranks refuse scorers that assume another."""

    @wraps(predict)
    def predict_by_rank(self: Any, *args: Any, **options: Any) -> Any:
        if hasattr(self, "classes_"):
            refuse_unordered_scorer(self.classes_)
        return predict(self, *args, **options)

    return cast(Fit, predict_by_rank)


class OrdinalClassifier(Storable, ClassifierMixin, BaseEstimator):
    """Base of all ordinal estimators: validates the input and maps ranks to labels.

    Columns of ``predict_proba`` are in the order of ``classes_``, which is that of the ranks.
    Scorers of scikit-learn assume alphabetical order and are refused where that is another one;
    those of `ordrec.ordinal.scorers` are right for any labels. Tools that number labels before
    they fit, such as ``cross_val_predict`` with probabilities, lose the order of a Categorical:
    give them numbers.

    Subclasses have a parameter ``classes``; those that take weights also ``class_weight``, and
    those whose fit may take long ``verbose``. A fit is a stage of `ordrec.runtime.progress`.
    """

    classes: Any
    class_weight: Any = None
    verbose: bool | None = None
    stored: ClassVar[Mapping[str, Field]] = ESTIMATOR

    def __init_subclass__(cls, **options: Any) -> None:
        """Make ``fit`` a stage of progress, and let nobody mistake the order of columns."""
        super().__init_subclass__(**options)
        if "fit" in cls.__dict__:
            cls.fit = shows_progress(cls.__dict__["fit"])  # type: ignore[attr-defined]
        for name in ("predict_proba", "decision_function", "_linked_probabilities"):
            if callable(cls.__dict__.get(name)):
                setattr(cls, name, _by_rank(cls.__dict__[name]))

    def _validate_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, dtype: Any = np.float64
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Checked X, zero-based ranks and weights; sets ``classes_`` and ``n_features_in_``."""
        declared = categories_of(y) if self.classes is None else self.classes
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=dtype, order="C")
        if declared is None:
            refuse_continuous(y)
            refuse_encoded(y)
        self.classes_, ranks = ordered_classes(y, declared)
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        weight = class_weighted(self.class_weight, ranks, weight, self.classes_)
        present = np.unique(ranks[weight > 0])
        if present.size < 2:
            held = self.classes_[present].tolist() if present.size else "none"
            raise DataError(
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

    remedy_of_constants: ClassVar[str]

    def _remedy(self, X: Any, y: Any, weight: Any) -> str:
        """What to do where one label is predicted for all training samples."""
        return self.remedy_of_constants

    def _keep_solution(self, solution: Solution) -> None:
        """Set the attributes that tell how far a solver came."""
        self.objective_, self.dual_gap_ = solution.objective, solution.gap
        self.violation_, self.converged_ = solution.violation, solution.converged
        self.n_iter_ = solution.n_iter

    def _warn_unless_converged(self, solution: Solution, tol: float) -> None:
        if not solution.converged:
            gap = "" if np.isnan(solution.gap) else f" and duality gap {solution.gap:.3g}"
            warnings.warn(
                f"{type(self).__name__} stopped after {solution.n_iter} iterations with violation "
                f"{solution.violation:.3g} (tol {tol:g}){gap}: "
                "raise max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=callers_level(),
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
    done = {"scaling": None, "class_weight": None}  # X and the weights contain it already
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


def warn_if_constant(fit: Fit) -> Fit:
    """Decorate ``fit``: warn if the model predicts the same label for all training samples.

    There is no warning where nearly all samples have that label: little else can be expected then.
    """

    @wraps(fit)
    def fit_and_check(self: Any, X: Any, y: Any, *weights: Any, **options: Any) -> Any:
        fitted = fit(self, X, y, *weights, **options)
        weight = weights[0] if weights else options.get("sample_weight")
        if self.__sklearn_tags__().input_tags.pairwise or _has_one_label(y, weight):
            return fitted
        with one_blas_thread():  # further threads would go on spinning after the fit
            constant = _is_constant(self, X)
        if constant:
            advice = self._remedy(X, y, weight)
            if self.scaling_ is None:
                advice = f'standardise the features (scaling="standard"), or {advice}'
            warnings.warn(
                f"{type(self).__name__} predicts one label for all {len(np.asarray(y))} training "
                f"samples, so it has learnt nothing from the features: {advice}",
                UserWarning,
                stacklevel=callers_level(),
            )
        return fitted

    return cast(Fit, fit_and_check)


def _has_one_label(y: Any, weight: Any) -> bool:
    codes = np.unique(np.asarray(y), return_inverse=True)[1].ravel()
    weight = np.asarray(1.0 if weight is None else weight, dtype=np.float64)
    shares = np.bincount(codes, np.broadcast_to(weight / weight.max(), codes.shape))
    return bool(shares.max() >= ONE_LABEL * shares.sum())


def _is_constant(model: Any, X: Any) -> bool:
    """Whether all rows get the same rank; most often a few of them show that they do not."""
    X = X.tocsr() if sparse.issparse(X) else X if hasattr(X, "iloc") else np.asarray(X)
    every = np.arange(X.shape[0])
    some = np.unique(np.linspace(0, every.size - 1, PROBES).astype(np.int64))
    return all(
        np.unique(model.predict_ranks(_safe_indexing(X, rows))).size == 1
        for rows in ([some, every] if some.size < every.size else [every])
    )


def limit_blas(fit: Fit) -> Fit:
    """Decorate ``fit``: hold BLAS to one thread, unless there is a large kernel matrix.

    `ordrec.runtime.parallel` says why.
    """

    @wraps(fit)
    def fit_with_limit(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        has_matrix = getattr(self, "kernel", None) is not None
        with blas_for(np.shape(X)[0] if has_matrix and hasattr(X, "ndim") and X.ndim else 0):
            return fit(self, X, *args, **options)

    return cast(Fit, fit_with_limit)
