"""Fill missing ratings by a weighted low-rank approximation."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import callers_level
from ordrec.features.low_rank.em import LowRankFit, annealing_ranks, project_rows, weighted_low_rank
from ordrec.features.observed import (
    feature_columns,
    mean_of_rows,
    observed_entries,
    output_names,
    row_numbers,
)

__all__ = ["LowRankEM"]


class LowRankEM(TransformerMixin, BaseEstimator):
    """Fill missing entries with a weighted low-rank estimate (Srebro and Jaakkola, 2003).

    Rows are items, columns are users. Missing entries are NaN in a dense array, and those not
    stored in a sparse matrix; sparse input stays sparse throughout the fit.

    **The features of a row do not contain its target.** `fit_transform`, which makes the
    features of training rows, works out of fold: the rows are divided into ``n_splits`` folds,
    and a row's estimate comes from a fit to the other folds, applied to the row's own observed
    entries, exactly as `transform` treats new rows. The columns named by ``target`` (the user
    whose ratings are to be predicted) take no part in any fit and are not in the result. So
    ``fit_transform(X)`` differs from ``fit(X).transform(X)``: use the former for training rows
    and the latter only for test rows.

    Parameters
    ----------
    n_factors : int
        Rank k of the approximation, at most the smaller side of the matrix.
    weights : array or sparse matrix of the shape of X, optional
        Weights in [0, 1] of the training entries; 1 for every observed entry when omitted.
        The weight of a missing entry is always 0. `transform` has weights of its own.
    init : {"mean", "zero"}
        Start from the row means, or from zero.
    anneal : bool
        Whether to begin with a larger rank and reduce it to ``n_factors`` in steps, which avoids
        poor local optima.
    target : int or sequence of int, optional
        Columns that hold targets.
    output : {"filled", "factors"}
        Either the matrix with its missing entries filled (dense; an observed entry of weight w
        becomes ``w a + (1-w) x``), or each row's ``n_factors`` coordinates in ``components_``.
    n_splits : int
        Number of folds of `fit_transform`.
    tol : float
        Stop when a step lowers the weighted error by less than this fraction.
    max_iter : int
        Maximum number of EM steps. New rows get as many steps as the fit took.
    random_state : int, RandomState or None
        For the starting directions and the folds.

    Attributes
    ----------
    components_ : ndarray (n_factors, n_columns)
        Orthonormal rows that span the estimate.
    singular_values_ : ndarray (n_factors,)
        Singular values of the estimate of the training matrix.
    errors_, ranks_ : ndarray
        Weighted error before the first and after each EM step, and the rank at that step.
        While the rank is constant the error never rises.
    n_iter_ : int
        Number of EM steps.
    columns_ : ndarray of int
        The feature columns.
    mean_ : float
        Mean of the observed entries, where rows without any start.

    Notes
    -----
    Rows and columns without observed entries: with ``init="mean"`` such a row starts from the
    overall mean, such a column from the row means, and both are only projected on the subspace;
    with ``init="zero"`` both are filled with zeros.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0])
    >>> X[0, 1] = np.nan
    >>> em = LowRankEM(n_factors=1, tol=1e-12, max_iter=500, random_state=0).fit(X)
    >>> em.transform(X)[0].round(3)
    array([1., 2., 1.])
    """

    def __init__(
        self,
        n_factors: int = 20,
        *,
        weights: Any = None,
        init: Literal["mean", "zero"] = "mean",
        anneal: bool = True,
        target: Any = None,
        output: Literal["filled", "factors"] = "filled",
        n_splits: int = 5,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
    ):
        self.n_factors = n_factors
        self.weights = weights
        self.init = init
        self.anneal = anneal
        self.target = target
        self.output = output
        self.n_splits = n_splits
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> LowRankEM:
        """Fit the approximation to all rows. ``y`` is ignored."""
        self._fit(X)
        return self

    def transform(self, X: Any, weights: Any = None) -> np.ndarray:
        """Return the features of rows, from their observed entries and the fitted subspace.

        Parameters
        ----------
        X : array or sparse matrix
        weights : array or sparse matrix of the shape of X, optional
            Weights in [0, 1] of the entries. When omitted they are those of the fit if X is the
            matrix of the fit, and 1 otherwise.
        """
        check_is_fitted(self)
        entries = observed_entries(self, X, reset=False)
        if weights is None and self.weights is not None and _digest(entries) == self._fitted_to:
            weights = self.weights
        entries, of_entries = _columns(entries, _entry_weights(weights, entries), self.columns_)
        return self._features(entries, of_entries, self.components_.T, self.mean_, self.n_iter_)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to all rows, and return their out-of-fold features (see the class)."""
        entries, weights = self._fit(X)
        n_rows = entries.shape[0]
        if n_rows < 2:
            raise ValueError(
                "out-of-fold features need at least 2 rows, got 1 sample: use fit and transform"
            )
        random = check_random_state(self.random_state)
        folds = KFold(min(self.n_splits, n_rows), shuffle=True, random_state=random)
        result: np.ndarray | None = None
        for others, rows in folds.split(np.empty(n_rows)):
            fitted, mean = self._solve(*_rows(entries, weights, others), random)
            held_out = _rows(entries, weights, rows)
            part = self._features(*held_out, fitted.right, mean, fitted.n_iter)
            if result is None:
                result = np.empty((n_rows, part.shape[1]))
            result[rows] = part
        assert result is not None
        return result

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the filled columns, or lowrankem0, lowrankem1, ... for factors."""
        check_is_fitted(self)
        if self.output == "factors":
            return np.array([f"lowrankem{k}" for k in range(self.n_factors)], dtype=object)
        return output_names(self, input_features, self.columns_, self.n_features_in_)

    # ---- the steps of a fit --------------------------------------------------------------

    def _fit(self, X: Any) -> tuple[sparse.csr_array, np.ndarray]:
        """Check the parameters, fit to all rows, and return the training entries and weights."""
        if self.init not in ("mean", "zero"):
            raise ValueError(f'init must be "mean" or "zero", got {self.init!r}')
        if self.output not in ("filled", "factors"):
            raise ValueError(f'output must be "filled" or "factors", got {self.output!r}')
        n_splits: Any = self.n_splits
        if not (isinstance(n_splits, int | np.integer) and n_splits >= 2):
            raise ValueError(f"n_splits must be a whole number of at least 2, got {n_splits}")
        entries = observed_entries(self, X, reset=True)
        weights = _entry_weights(self.weights, entries)
        self._fitted_to = None if self.weights is None else _digest(entries)
        self.columns_ = feature_columns(self.target, entries.shape[1])
        entries, weights = _columns(entries, weights, self.columns_)
        fitted, self.mean_ = self._solve(entries, weights, check_random_state(self.random_state))
        if not fitted.converged:
            fall = 1 - fitted.errors[-1] / fitted.errors[-2] if fitted.n_iter else 1.0
            warnings.warn(
                f"the weighted error still fell by the fraction {fall:.1e} in step {fitted.n_iter} "
                f"(tol={self.tol:g}): raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )
        self.components_ = np.ascontiguousarray(fitted.right.T)
        self.singular_values_ = fitted.singular
        self.errors_, self.ranks_, self.n_iter_ = fitted.errors, fitted.ranks, fitted.n_iter
        return entries, weights

    def _solve(
        self, entries: sparse.csr_array, weights: np.ndarray, random: np.random.RandomState
    ) -> tuple[LowRankFit, float]:
        """The approximation of some rows, and the mean of their entries."""
        limit = min(entries.shape)
        n_factors: Any = self.n_factors
        if not (isinstance(n_factors, int | np.integer) and 1 <= n_factors <= limit):
            raise ValueError(
                f"n_factors must be a whole number in 1..{limit} for a matrix of "
                f"{entries.shape[0]} rows and {entries.shape[1]} feature columns, got "
                f"{self.n_factors!r}"
            )
        if not (weights > 0).any():
            raise ValueError("no observed entry has a positive weight: there is nothing to fit")
        mean = float(np.average(entries.data, weights=weights))
        fitted = weighted_low_rank(
            entries,
            weights,
            annealing_ranks(self.n_factors, limit) if self.anneal else [self.n_factors],
            start=mean_of_rows(entries, weights, mean) if self.init == "mean" else None,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=random,
        )
        return fitted, mean

    def _features(
        self,
        entries: sparse.csr_array,
        weights: np.ndarray,
        right: np.ndarray,
        mean: float,
        n_steps: int,
    ) -> np.ndarray:
        """Features of rows that were not in the fit with the basis ``right``."""
        start = mean_of_rows(entries, weights, mean) if self.init == "mean" else None
        coordinates = project_rows(entries, weights, np.ascontiguousarray(right), start, n_steps)
        if self.output == "factors":
            return coordinates @ (self.components_ @ right).T
        filled = coordinates @ right.T
        at = row_numbers(entries), entries.indices
        filled[at] += weights * (entries.data - filled[at])
        return filled

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _entry_weights(weights: Any, entries: sparse.csr_array) -> np.ndarray:
    """The weight of each observed entry."""
    if weights is None:
        return np.ones(entries.nnz)
    table = sparse.csr_array(weights) if sparse.issparse(weights) else np.asarray(weights, float)
    if table.shape != entries.shape:
        raise ValueError(f"weights have the shape {table.shape}, X has {entries.shape}")
    rows = row_numbers(entries)
    chosen = np.asarray(table[rows, entries.indices], dtype=np.float64).ravel()
    wrong = np.flatnonzero(~((chosen >= 0) & (chosen <= 1)))
    if wrong.size:
        at = wrong[0]
        raise ValueError(
            f"weights must lie in [0, 1], got {chosen[at]} in row {rows[at]}, "
            f"column {entries.indices[at]}"
        )
    return chosen


def _digest(entries: sparse.csr_array) -> str:
    """A text that is equal for equal matrices."""
    digest = hashlib.sha256(str(entries.shape).encode())
    for array, dtype in (
        (entries.indptr, np.int64),
        (entries.indices, np.int64),
        (entries.data, np.float64),
    ):
        digest.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    return digest.hexdigest()


def _rows(
    entries: sparse.csr_array, weights: np.ndarray, rows: np.ndarray
) -> tuple[sparse.csr_array, np.ndarray]:
    """Some rows of the entries and of their weights."""
    return entries[rows], _same_pattern(entries, weights)[rows].data


def _columns(
    entries: sparse.csr_array, weights: np.ndarray, columns: np.ndarray
) -> tuple[sparse.csr_array, np.ndarray]:
    """Some columns of the entries and of their weights."""
    return entries[:, columns], _same_pattern(entries, weights)[:, columns].data


def _same_pattern(entries: sparse.csr_array, data: np.ndarray) -> sparse.csr_array:
    """A matrix with other values at the same entries."""
    return sparse.csr_array((data, entries.indices, entries.indptr), shape=entries.shape)
