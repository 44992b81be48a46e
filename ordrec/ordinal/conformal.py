"""Conformal sets of ranks: runs of ranks that contain the true one as often as they promise.

Lu, Angelopoulos and Pomerantz (2022), "Improving trustworthiness of AI disease severity rating in
medical imaging with ordinal conformal prediction sets". Around the most probable rank the run
grows by the more probable of its two neighbours. The score of a rank is the probability of the run
when the rank joins it. A set is made of the ranks whose score is at most the quantile
ceil((n + 1) coverage) / n of the scores of n calibration samples, which the model was not fitted
to. If these and the new sample are exchangeable, it contains the true rank with at least the
probability ``coverage``, however bad the model is; a bad one has large sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, DataError
from ordrec.ordinal.labels import categories_of, ordered_classes
from ordrec.ordinal.uncertainty import check_coverage

__all__ = ["Calibration", "ConformalOrdinal", "growth_scores"]


def growth_scores(probabilities: np.ndarray) -> np.ndarray:
    """Return, for each rank, the probability of the run around the mode when the rank joins it.

    Examples
    --------
    >>> growth_scores(np.array([[0.25, 0.5, 0.125, 0.125]])).tolist()
    [[0.75, 0.5, 0.875, 1.0]]
    """
    n, n_ranks = probabilities.shape
    rows = np.arange(n)
    low = high = probabilities.argmax(axis=1)
    held = probabilities[rows, low]
    scores = np.zeros((n, n_ranks))
    scores[rows, low] = held
    padded = np.pad(probabilities, ((0, 0), (1, 1)), constant_values=-1.0)  # no neighbour: -1
    for _ in range(n_ranks - 1):
        down = padded[rows, low] >= padded[rows, high + 2]  # the lower of equal neighbours
        low, high = np.where(down, low - 1, low), np.where(down, high, high + 1)
        joined = np.where(down, low, high)
        held = held + probabilities[rows, joined]
        scores[rows, joined] = held
    return scores


@dataclass(frozen=True)
class Calibration:
    """The largest score that a rank of a set may have.

    Examples
    --------
    >>> p = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    >>> Calibration(0.85, 0.9).intervals(p).tolist()  # first and last rank
    [[0, 0], [1, 2]]
    """

    largest_score: float
    coverage: float

    @classmethod
    def of(cls, probabilities: np.ndarray, ranks: np.ndarray, coverage: float) -> Calibration:
        """From the distributions and the true zero-based ranks of samples kept apart."""
        check_coverage(coverage)
        n = ranks.size
        place = int(np.ceil((n + 1) * coverage - 1e-9))
        if place > n:
            raise DataError(
                f"{n} calibration samples are too few for coverage {coverage:g}: "
                f"there must be {int(np.ceil(coverage / (1 - coverage) - 1e-9))} or more"
            )
        own = growth_scores(probabilities)[np.arange(n), ranks]
        return cls(float(np.sort(own)[place - 1]), float(coverage))

    def intervals(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the first and the last rank of each set; the most probable rank is in it."""
        inside = growth_scores(probabilities) <= self.largest_score
        inside[np.arange(len(inside)), probabilities.argmax(axis=1)] = True
        last = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        return np.stack([inside.argmax(axis=1), last], axis=1)


class ConformalOrdinal(ClassifierMixin, BaseEstimator):
    """An ordinal estimator with sets of labels that hold the true one as often as promised.

    Parameters
    ----------
    estimator : estimator
        With ``predict_proba``: `GPOR`, `OrdinalLogistic`, or `SVORIM` and others with
        ``probability=True``; also a pipeline that ends in one.
    coverage : float
        How often a set contains the true label, at least.
    calibration : float
        Share of the samples that are kept apart to calibrate the sets.
    classes : sequence, optional
        The labels in ascending order, if they have none of their own. Passed to the estimator if
        it takes them.
    random_state : int, RandomState or None
        Draws the samples that are kept apart.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the other samples.
    classes_ : ndarray of shape (n_ranks,)
    calibration_ : Calibration

    Notes
    -----
    The promise holds for new samples that are drawn like the training data, on average over
    them; not for each group of samples by itself.

    Examples
    --------
    >>> from ordrec.ordinal import OrdinalLogistic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.digitize(X[:, 0] + rng.logistic(size=600), [-2.0, 0.0, 2.0])
    >>> model = ConformalOrdinal(OrdinalLogistic(), coverage=0.8, random_state=0)
    >>> model.fit(X[:300], y[:300]).predict_interval([[-3.0, 0.0], [0.0, 0.0]]).tolist()
    [[0, 0], [0, 2]]
    >>> low, high = model.predict_interval(X[300:]).T
    >>> float(((low <= y[300:]) & (y[300:] <= high)).mean().round(2))
    0.85
    """

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float = 0.9,
        calibration: float = 0.25,
        classes: Any = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.coverage = coverage
        self.calibration = calibration
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ConformalOrdinal:
        """Fit the estimator to one part of the samples and calibrate the sets on the other."""
        if not 0 < self.calibration < 1:
            raise ArgumentError(f"calibration must lie between 0 and 1, got {self.calibration!r}")
        X = X if hasattr(X, "shape") else np.asarray(X)
        declared = categories_of(y) if self.classes is None else self.classes
        labels = np.asarray(y)
        self.classes_, ranks = ordered_classes(labels, declared)
        order = check_random_state(self.random_state).permutation(ranks.size)
        n_apart = max(1, round(self.calibration * ranks.size))
        apart, train = order[:n_apart], order[n_apart:]
        self.estimator_ = clone(self.estimator)
        if "classes" in self.estimator_.get_params():  # all of them, whichever are in this part
            self.estimator_.set_params(classes=self.classes_)
        self.estimator_.fit(_safe_indexing(X, train), labels[train])
        if not hasattr(self.estimator_, "predict_proba"):
            raise ArgumentError(
                f"ConformalOrdinal needs an estimator with predict_proba, such as "
                f"SVORIM(probability=True), got {self.estimator!r}"
            )
        held = self._probabilities(_safe_indexing(X, apart))
        self.calibration_ = Calibration.of(held, ranks[apart], self.coverage)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels that the estimator predicts."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the distributions that the estimator predicts, a column for each class."""
        check_is_fitted(self)
        return self._probabilities(X)

    def predict_interval(self, X: Any) -> np.ndarray:
        """Return the lowest and the highest label of each set, shape (n_samples, 2)."""
        return self.classes_[self._intervals(X)]

    def predict_set(self, X: Any) -> np.ndarray:
        """Return which of ``classes_`` are in each set, boolean of shape (n_samples, n_ranks)."""
        low, high = self._intervals(X).T
        ranks = np.arange(self.classes_.size)
        return (low[:, None] <= ranks) & (ranks <= high[:, None])

    def _intervals(self, X: Any) -> np.ndarray:
        return self.calibration_.intervals(self.predict_proba(X))

    def _probabilities(self, X: Any) -> np.ndarray:
        """Columns in the order of ``classes_``, zero for classes the estimator has not seen."""
        found = self.estimator_.predict_proba(X)
        position = {label: rank for rank, label in enumerate(self.classes_.tolist())}
        places = [position[label] for label in self.estimator_.classes_.tolist()]
        p = np.zeros((found.shape[0], self.classes_.size))
        p[:, places] = found
        return p
