"""Fill missing ratings with a mean."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ordrec.features.observed import (
    feature_columns,
    mean_of_rows,
    observed_entries,
    output_names,
    row_numbers,
)

__all__ = ["MeanImputer"]


class MeanImputer(TransformerMixin, BaseEstimator):
    """Fill missing entries with the mean of their row (item) or of their column (user).

    Rows are items, columns are users. Missing entries are NaN in a dense array, and those not
    stored in a sparse matrix. The result is always dense.

    A row or column without any observed entry is filled with the mean of all observed
    entries of the training matrix.

    Parameters
    ----------
    by : {"row", "column"}
        Which mean to use: that of the row itself, or that of the column over the training
        rows.
    target : int or sequence of int, optional
        Columns that hold the targets of a later model. They are left out before any mean is
        computed, and are not in the result: the features of a row never contain its target.
        A column mean does not contain the entry it fills (which is missing), so that
        `fit_transform` is out of fold without further steps.

    Attributes
    ----------
    mean_ : float
        Mean of all observed entries.
    column_means_ : ndarray
        Mean of each feature column.
    columns_ : ndarray of int
        The feature columns, in the order of the result.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[5.0, np.nan, 3.0], [np.nan, 2.0, 1.0]])
    >>> MeanImputer().fit_transform(X)
    array([[5. , 4. , 3. ],
           [1.5, 2. , 1. ]])
    >>> MeanImputer(by="column", target=2).fit_transform(X)
    array([[5., 2.],
           [5., 2.]])
    """

    def __init__(self, by: Literal["row", "column"] = "row", *, target: Any = None):
        self.by = by
        self.target = target

    def fit(self, X: Any, y: Any = None) -> MeanImputer:
        """Compute the column means and the mean of all entries. ``y`` is ignored."""
        if self.by not in ("row", "column"):
            raise ValueError(f'by must be "row" or "column", got {self.by!r}')
        entries = observed_entries(self, X, reset=True)
        self.columns_ = feature_columns(self.target, entries.shape[1])
        entries = entries[:, self.columns_]
        if entries.nnz == 0:
            raise ValueError("X has no observed entry: there is no mean to fill with")
        self.mean_ = float(entries.data.mean())
        self.column_means_ = mean_of_rows(entries.T.tocsr(), None, self.mean_)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the feature columns as a dense array without missing entries."""
        check_is_fitted(self)
        entries = observed_entries(self, X, reset=False)[:, self.columns_]
        if self.by == "row":
            means = mean_of_rows(entries, None, self.mean_)[:, None]
        else:
            means = self.column_means_[None, :]
        filled = np.broadcast_to(means, entries.shape).copy()
        filled[row_numbers(entries), entries.indices] = entries.data
        return filled

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the feature columns."""
        check_is_fitted(self)
        return output_names(self, input_features, self.columns_, self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
