"""An estimator that chooses its parameters by cross-validation on shared Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ordrec.ordinal.tuning import Metric, tune

__all__ = ["CrossValidated"]


class CrossValidated(ClassifierMixin, BaseEstimator):
    """Estimator that standardises features and tunes its parameters before it is fitted.

    Parameters are chosen by `ordrec.ordinal.tuning.tune` on the data given to ``fit`` alone, so
    that in an experiment no choice depends on a test part.

    Parameters
    ----------
    estimator : kernel estimator
    grid : str or dict
        As in `tune`.
    metric : {"mae", "mze"}, or a sequence of them
        For several metrics there is an estimator for each (`for_metric`), chosen by one search;
        predictions are those of the first. An experiment measures each metric on its own.
    n_folds : int
        At most the number of rows; a label with fewer rows than folds is in only some of them.
    standardise : bool
        Whether features are scaled to mean 0 and variance 1 on the training part. The estimator
        itself does not scale them (``scaling=None``).
    classes : sequence, optional
        The labels in ascending order, passed to the estimator.

    Attributes
    ----------
    tuned_ : dict of str to Tuned
        What was found for each metric.
    estimator_ : estimator
        That of the first metric.
    best_params_ : dict
        Those of the first metric.

    Examples
    --------
    >>> from ordrec.ordinal import SVORIM
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.digitize(X[:, 0], [-0.5, 0.5]) + 1
    >>> model = CrossValidated(SVORIM(), {"C": [0.1, 10.0], "gamma": [0.1]}, "mze", n_folds=3)
    >>> float((model.fit(X, y).predict(X) == y).mean()) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        grid: Any = "svor-paper",
        metric: Metric | Sequence[Metric] = "mae",
        *,
        n_folds: int = 5,
        standardise: bool = True,
        classes: Any = None,
    ):
        self.estimator = estimator
        self.grid = grid
        self.metric = metric
        self.n_folds = n_folds
        self.standardise = standardise
        self.classes = classes

    def fit(self, X: Any, y: Any) -> CrossValidated:
        """Choose the parameters and fit the estimator with them."""
        y = np.asarray(y)
        self.scaler_ = StandardScaler(with_mean=self.standardise, with_std=self.standardise).fit(X)
        estimator = clone(self.estimator)
        if "scaling" in estimator.get_params():
            estimator.set_params(scaling=None)  # whether to scale is said here
        if self.classes is not None and "classes" in estimator.get_params():
            estimator.set_params(classes=self.classes)
        # Rows sorted by label go to the folds in turn: every fold has its share of every label,
        # and a label with fewer rows than folds is no error.
        order = np.argsort(y, kind="stable")
        fold_of_row = np.empty(y.size, dtype=np.int64)
        fold_of_row[order] = np.arange(y.size) % min(self.n_folds, y.size)
        rows = np.arange(y.size)
        folds = [(rows[fold_of_row != k], rows[fold_of_row == k]) for k in np.unique(fold_of_row)]
        metrics = [self.metric] if isinstance(self.metric, str) else list(self.metric)
        self.tuned_ = tune(
            estimator, self.scaler_.transform(X), y, self.grid, cv=folds, metric=metrics
        )
        return self._choose(metrics[0])

    def for_metric(self, metric: str) -> CrossValidated:
        """Return the fitted estimator for a metric; the first one for a metric not searched for."""
        check_is_fitted(self)
        return copy(self)._choose(metric) if metric in self.tuned_ else self

    def _choose(self, metric: str) -> CrossValidated:
        found = self.tuned_[metric]
        self.estimator_, self.best_params_ = found.estimator, found.best_params
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels."""
        check_is_fitted(self)
        return self.estimator_.predict(self.scaler_.transform(X))
