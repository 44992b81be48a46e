"""Intervals of ratings that hold the true one as often as they promise."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.ordinal.conformal import Calibration
from ordrec.rating.intervals import ratings_between

__all__ = ["ConformalRatings"]


@dataclass
class ConformalRatings:
    """A rating model with intervals that are calibrated on ratings kept apart from it.

    Parameters
    ----------
    model : rating model
        With ``predict_proba``; it is copied, not changed.
    coverage : float
        How often an interval contains the true rating, at least.
    calibration : float
        Share of the ratings that are kept apart, drawn at random.
    random_state : int

    Attributes
    ----------
    model_ : rating model
        Fitted to the other ratings.
    calibration_ : Calibration

    Notes
    -----
    The promise holds on average over new ratings that are drawn like the training ratings, as in a
    random split; ratings of later times, or of new users, may be less predictable. See
    `ordrec.ordinal.conformal`.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import RatingHistogram
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = ConformalRatings(RatingHistogram(), coverage=0.8).fit(ratings)
    >>> model.predict_interval([0, 1], [3, 3]).shape
    (2, 2)
    """

    model: Any
    coverage: float = 0.9
    calibration: float = 0.1
    random_state: int = 0

    def fit(self, ratings: Ratings) -> ConformalRatings:
        """Fit the model to one part of the ratings and calibrate the intervals on the other."""
        if not hasattr(self.model, "predict_proba"):
            raise ArgumentError(
                f"ConformalRatings needs a model with predict_proba, such as OrdinalFactors, got "
                f"{type(self.model).__name__}"
            )
        if not 0 < self.calibration < 1:
            raise ArgumentError(f"calibration must lie between 0 and 1, got {self.calibration!r}")
        order = np.random.default_rng(self.random_state).permutation(ratings.n_ratings)
        n_apart = max(1, round(self.calibration * ratings.n_ratings))
        apart, rest = (
            ratings.select(np.sort(order[:n_apart])),
            ratings.select(np.sort(order[n_apart:])),
        )
        blank = clone(self.model) if hasattr(self.model, "get_params") else copy.copy(self.model)
        self.model_ = blank.fit(rest)
        users, items = apart.user_ids[apart.users], apart.item_ids[apart.items]
        held = self.model_.predict_proba(users, items)
        self.calibration_ = Calibration.of(held, np.asarray(apart.levels), self.coverage)
        return self

    def predict(self, users: Any, items: Any, **given: Any) -> np.ndarray:
        """Return the ratings that the model predicts."""
        return self.model_.predict(users, items, **given)

    def predict_proba(self, users: Any, items: Any, **given: Any) -> np.ndarray:
        """Return the distributions that the model predicts."""
        return self.model_.predict_proba(users, items, **given)

    def predict_interval(self, users: Any, items: Any, **given: Any) -> np.ndarray:
        """Return the lowest and the highest rating of each interval, shape (n, 2)."""
        p = self.predict_proba(users, items, **given)
        return ratings_between(self.model_.scale_, self.calibration_.intervals(p))
