"""Regressors and classifiers of scikit-learn on user and item columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.models.base import IdMappedModel, fits
from ordrec.rating.intervals import DistributionModel
from ordrec.runtime.parallel import one_openmp_thread_if_forked

__all__ = ["SklearnModel", "ridge_on_ids"]

MAX_WORDS = 100  # side columns with more distinct words are left out


@dataclass(eq=False)
class SklearnModel(IdMappedModel, DistributionModel):
    """Any scikit-learn regressor or classifier, with one sample per pair of a user and an item.

    A classifier is trained on the ranks 0, 1, ...; with ``predict_proba`` it gives
    distributions. A regressor is trained on the ratings.

    Parameters
    ----------
    estimator : estimator
        Not changed; a clone is fitted.
    features : {"ids", "side", "both"}
        One column for each user and item, the columns of the side tables, or both. Numbers in
        the tables are used as they are, with the mean for missing ones; words ("a" or "a|b")
        become one column each, unless a column has more than a hundred (such as titles). An
        unknown user or item has zeros for its ids and means for its side features.
    dense : bool
        Whether the estimator needs a dense matrix.
    """

    estimator: Any = None
    features: Literal["ids", "side", "both"] = "ids"
    dense: bool = False

    @fits
    def fit(self, ratings: Ratings) -> SklearnModel:
        """Fit a clone of the estimator to the features of the rated pairs."""
        from sklearn.base import clone, is_classifier

        if self.features not in ("ids", "side", "both"):
            raise ArgumentError(f'features must be "ids", "side" or "both", got {self.features!r}')
        if not hasattr(self.estimator, "fit"):
            raise ArgumentError(f"estimator must have fit and predict, got {self.estimator!r}")
        self._remember(ratings)
        tables = (ratings.user_table, ratings.item_table)
        if self.features != "ids" and all(table is None for table in tables):
            raise ArgumentError("these ratings have no side tables: use features='ids'")
        counts = (ratings.n_users, ratings.n_items)
        self._sides = [self._side(*side) for side in zip(counts, tables, strict=True)]
        self._classifies = is_classifier(self.estimator)
        y = ratings.levels.astype(np.int64) if self._classifies else ratings.values
        with one_openmp_thread_if_forked():
            self.model_ = clone(self.estimator).fit(self._pairs(ratings.users, ratings.items), y)
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the estimator's predictions, clipped to the scale."""
        codes = self._codes(users, items)
        if not codes[0].size:
            return np.zeros(0)
        with one_openmp_thread_if_forked():
            predicted = self.model_.predict(self._pairs(*codes))
        return self.scale_.values[predicted] if self._classifies else self._clipped(predicted)

    @available_if(lambda model: hasattr(model.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """Return the estimator's distributions; ranks without training ratings have P = 0."""
        codes = self._codes(users, items)
        p = np.zeros((codes[0].size, self.scale_.n_ranks))
        if codes[0].size:
            with one_openmp_thread_if_forked():
                p[:, self.model_.classes_] = self.model_.predict_proba(self._pairs(*codes))
        return p

    def _side(self, n_rows: int, table: pd.DataFrame | None) -> sparse.csr_matrix:
        """Feature rows of all users or items, and a last row for unknown ones."""
        parts = []
        if self.features in ("ids", "both"):
            ids = sparse.identity(n_rows, format="csr")
            parts.append(sparse.vstack([ids, sparse.csr_matrix((1, n_rows))]))
        if self.features in ("side", "both") and table is not None:
            columns = _columns_of(table)
            parts.append(sparse.csr_matrix(np.vstack([columns, columns.mean(axis=0)])))
        return sparse.hstack(parts).tocsr() if parts else sparse.csr_matrix((n_rows + 1, 0))

    def _pairs(self, users: np.ndarray, items: np.ndarray) -> Any:
        rows = [side[codes] for side, codes in zip(self._sides, (users, items), strict=True)]
        X = sparse.hstack(rows).tocsr()
        return X.toarray() if self.dense else X


def ridge_on_ids(alpha: float = 5.0) -> SklearnModel:
    """Return scikit-learn's ridge regression on one column for each user and item."""
    from sklearn.linear_model import Ridge

    return SklearnModel(Ridge(alpha))


def _columns_of(table: pd.DataFrame) -> np.ndarray:
    """Numeric features from a side table."""
    numbers = table.select_dtypes(["number", "bool"]).astype(np.float64)
    parts = [numbers.fillna(numbers.mean()).fillna(0.0).to_numpy()]
    for name in table.columns.difference(numbers.columns):
        words = table[name].fillna("").astype(str)
        if len(set("|".join(words.unique()).split("|"))) <= MAX_WORDS:
            parts.append(words.str.get_dummies("|").to_numpy(np.float64))
    return np.hstack(parts)
