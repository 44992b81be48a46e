"""Scorers for scikit-learn's tools that know the order of the labels.

scikit-learn's own scorers assume that the columns of ``predict_proba`` are the labels in
alphabetical order. Those of ordinal estimators are the labels in the order of their ranks, which is
another one for labels such as "poor" < "fair" < "good"; the estimators refuse to be scored like
that. Functions of this module take the order from the estimator. They are given as ``scoring`` to
`sklearn.model_selection.cross_val_score`, `sklearn.model_selection.GridSearchCV` and others; larger
is better, so that errors and losses are negated.

Examples
--------
>>> from sklearn.model_selection import cross_val_score
>>> from ordrec.ordinal import OrdinalLogistic, scorers
>>> X = np.arange(60.0)[:, None] % 20
>>> y = np.array(["poor", "fair", "good"])[np.minimum(X[:, 0].astype(int) // 7, 2)]
>>> model = OrdinalLogistic(classes=["poor", "fair", "good"])
>>> bool((cross_val_score(model, X, y, scoring=scorers.neg_log_loss) > -0.4).all())
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import metrics

from ordrec.ordinal.labels import ordered_classes

__all__ = [
    "neg_log_loss",
    "neg_mean_absolute_error",
    "neg_ranked_probability_score",
    "quadratic_kappa",
    "roc_auc",
]


def neg_log_loss(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the mean logarithm of the probability of the true label."""
    ranks, n_ranks = _ranks(estimator, y)
    p = estimator.predict_proba(X)
    return -float(
        metrics.log_loss(ranks, p, labels=np.arange(n_ranks), sample_weight=sample_weight)
    )


def neg_ranked_probability_score(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Return the negated mean of the ranked probability score.

    That is the squared difference of the cumulative probabilities of prediction and truth, summed
    over the thresholds: probability counts the less, the nearer it is to the true label.
    """
    ranks, n_ranks = _ranks(estimator, y)
    reached = np.cumsum(estimator.predict_proba(X), axis=1)[:, :-1]
    errors = ((reached - (ranks[:, None] <= np.arange(n_ranks - 1))) ** 2).sum(axis=1)
    return -float(np.average(errors, weights=sample_weight))


def roc_auc(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the mean area under the ROC curve of each label against the others."""
    ranks, n_ranks = _ranks(estimator, y)
    p = estimator.predict_proba(X)
    return float(
        metrics.roc_auc_score(
            ranks,
            p[:, 1] if n_ranks == 2 else p,
            multi_class="ovr",
            labels=np.arange(n_ranks),
            sample_weight=sample_weight,
        )
    )


def neg_mean_absolute_error(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the negated mean number of ranks between the predicted label and the true one."""
    predicted, ranks = _ranks(estimator, estimator.predict(X))[0], _ranks(estimator, y)[0]
    return -float(np.average(np.abs(predicted - ranks), weights=sample_weight))


def quadratic_kappa(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return Cohen's kappa with squared differences of ranks as costs."""
    ranks, n_ranks = _ranks(estimator, y)
    predicted = _ranks(estimator, estimator.predict(X))[0]
    return float(
        metrics.cohen_kappa_score(
            ranks,
            predicted,
            weights="quadratic",
            labels=np.arange(n_ranks),
            sample_weight=sample_weight,
        )
    )


def _ranks(estimator: Any, labels: Any) -> tuple[np.ndarray, int]:
    """Zero-based ranks of labels, and the number of ranks."""
    classes = estimator.classes_
    return ordered_classes(np.asarray(labels), classes)[1], len(classes)
