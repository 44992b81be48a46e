"""Read a matrix with missing values, and leave out the columns that are targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

__all__ = [
    "feature_columns",
    "mean_of_rows",
    "observed_entries",
    "output_names",
    "row_numbers",
    "stored_entries",
]


def observed_entries(estimator: BaseEstimator, X: Any, *, reset: bool) -> sparse.csr_array:
    """Return the observed entries of X: those not NaN if dense, those stored if sparse.

    X is validated like any input of a scikit-learn estimator. Infinite entries are refused, and
    so is NaN stored in a sparse matrix.
    """
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
    )
    return stored_entries(X)


def stored_entries(X: Any) -> sparse.csr_array:
    """Return the observed entries of an array that needs no validation."""
    if sparse.issparse(X):
        entries = sparse.csr_array(X, dtype=np.float64)
        if np.isnan(entries.data).any():
            raise ValueError("a sparse matrix must not store NaN: leave missing entries out")
        return entries
    X = np.asarray(X, dtype=np.float64)
    seen = ~np.isnan(X)
    start = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    return sparse.csr_array((X[seen], np.nonzero(seen)[1], start), shape=X.shape)


def row_numbers(entries: sparse.csr_array) -> np.ndarray:
    """Return the row number of each stored entry."""
    return np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))


def feature_columns(target: Any, n_columns: int) -> np.ndarray:
    """Return the numbers of the columns that are features: all but the targets."""
    if target is None:
        return np.arange(n_columns)
    targets = np.atleast_1d(np.asarray(target))
    whole = targets.ndim == 1 and np.issubdtype(targets.dtype, np.integer)
    if not whole or (targets < 0).any() or (targets >= n_columns).any():
        raise ValueError(f"target must be column numbers in 0..{n_columns - 1}, got {target!r}")
    columns = np.setdiff1d(np.arange(n_columns), targets)
    if columns.size == 0:
        raise ValueError("every column is a target: no feature is left")
    return columns


def output_names(
    estimator: Any, input_features: Any, columns: np.ndarray, n_columns: int
) -> np.ndarray:
    """Return the names of the feature columns, for ``get_feature_names_out``."""
    names = getattr(estimator, "feature_names_in_", None)
    if input_features is not None:
        given = np.asarray(input_features, dtype=object)
        if names is not None and not np.array_equal(given, names):
            raise ValueError("input_features is not equal to feature_names_in_")
        names = given
    if names is None:
        names = np.array([f"x{j}" for j in range(n_columns)], dtype=object)
    if len(names) != n_columns:
        raise ValueError(f"input_features should have length {n_columns}, got {len(names)}")
    return np.asarray(names, dtype=object)[columns]


def mean_of_rows(
    entries: sparse.csr_array, weights: np.ndarray | None, fallback: float
) -> np.ndarray:
    """Return the weighted mean of each row's observed entries; the fallback where it has none."""
    n_rows = entries.shape[0]
    rows = row_numbers(entries)
    weights = np.ones(entries.nnz) if weights is None else weights
    total = np.bincount(rows, weights, n_rows)
    sums = np.bincount(rows, weights * entries.data, n_rows)
    return np.divide(sums, total, out=np.full(n_rows, float(fallback)), where=total > 0)
