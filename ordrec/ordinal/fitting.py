"""What every ``fit`` does besides fitting: keep to its threads, and look at what it has learnt."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from ordrec.ordinal.base import KernelMixin
from ordrec.runtime.parallel import blas_for, one_blas_thread

__all__ = ["noticing_constants", "sharing_cores"]

Fit = TypeVar("Fit", bound=Callable[..., Any])

ONE_LABEL = 0.95  # share of the samples from which on a constant prediction is to be expected
PROBES = 500  # samples that are predicted to see whether a fit is constant


def noticing_constants(fit: Fit) -> Fit:
    """Make a fit warn if the model predicts one and the same label for all training samples.

    It does not where nearly all samples have that label, so that little else can be expected.
    """

    @wraps(fit)
    def noticed(self: Any, X: Any, y: Any, *weights: Any, **options: Any) -> Any:
        fitted = fit(self, X, y, *weights, **options)
        weight = weights[0] if weights else options.get("sample_weight")
        if self.__sklearn_tags__().input_tags.pairwise or _has_one_label(y, weight):
            return fitted
        with one_blas_thread():  # further threads would go on spinning after the fit
            constant = _is_constant(self, X)
        if constant:
            advice = self.remedy_of_constants
            if self.scaling_ is None:
                advice = f'standardise the features (scale="standard"), or {advice}'
            warnings.warn(
                f"{type(self).__name__} predicts one label for all {len(np.asarray(y))} training "
                f"samples, so it has learnt nothing from the features: {advice}",
                UserWarning,
                stacklevel=3,  # who called fit, which `shows_progress` has wrapped
            )
        return fitted

    return cast(Fit, noticed)


def _has_one_label(y: Any, weight: Any) -> bool:
    codes = np.unique(np.asarray(y), return_inverse=True)[1].ravel()
    weight = np.asarray(1.0 if weight is None else weight, dtype=np.float64)
    shares = np.bincount(codes, np.broadcast_to(weight / weight.max(), codes.shape))
    return bool(shares.max() >= ONE_LABEL * shares.sum())


def _is_constant(model: Any, X: Any) -> bool:
    """Whether all rows get the same rank; if a few of them do not, the others are not needed."""
    X = X.tocsr() if sparse.issparse(X) else X if hasattr(X, "iloc") else np.asarray(X)
    every = np.arange(X.shape[0])
    some = np.unique(np.linspace(0, every.size - 1, PROBES).astype(np.int64))
    return all(
        np.unique(model.predict_ranks(_safe_indexing(X, rows))).size == 1
        for rows in ([some, every] if some.size < every.size else [every])
    )


def sharing_cores(fit: Fit) -> Fit:
    """Make a fit keep to the rules of `ordrec.runtime.parallel`, on the threads of BLAS.

    They are held to one, except for large kernel matrices.
    """

    @wraps(fit)
    def held(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        has_matrix = isinstance(self, KernelMixin) and self.kernel is not None
        with blas_for(np.shape(X)[0] if has_matrix and hasattr(X, "ndim") and X.ndim else 0):
            return fit(self, X, *args, **options)

    return cast(Fit, held)
