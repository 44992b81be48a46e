"""`PersonalThresholds`: rating distributions from any model that gives scores."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.models.base import IDENTITY, IdMappedModel, fits
from ordrec.ordinal.decisions import Decision, decide
from ordrec.rating.intervals import DistributionModel
from ordrec.rating.thresholds.ordered_probit import OrderedProbit, ProbitPriors, fit_ordered_probit
from ordrec.rating.units import Units
from ordrec.runtime.parallel import one_blas_thread
from ordrec.storage.schema import Model, Numbers, Optional, Part, Writer

__all__ = ["PersonalThresholds"]


class _StoredInner(Model):
    """The wrapped model, which must be storable, too."""

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the wrapped model, or say what can be saved."""
        try:
            super().write(file, name, value)
        except ArgumentError as error:
            raise ArgumentError(
                f"PersonalThresholds cannot be saved with its wrapped model ({error}): save a "
                "model that was fitted to a column of scores, fit(ratings, scores)"
            ) from None


@dataclass(eq=False)
class PersonalThresholds(IdMappedModel, DistributionModel):
    """A hierarchical ordered probit over the scores of another model.

    Every user has their own thresholds and scale, shrunk to common ones: a four from a user who
    gives only fours and fives does not mean the same as a four from a user of the whole scale.
    See `ordrec.rating.thresholds.ordered_probit` for the model.

    Parameters
    ----------
    model : object with fit and predict, or None
        Any rating model. It is fitted ``n_splits`` times to parts of the ratings, so that
        each rating's score comes from a fit without it, and once to all of them. With None,
        pass scores to `fit` and to the predictions.
    decision : {"mean", "median", "mode"} or cost matrix
        How `predict` turns a distribution into one rating: by default the expected rating, a float
        with the least squared error; the median has the least absolute error, the mode the fewest
        errors.
    n_splits : int
        Number of parts.
    threshold_sd, user_sd, item_sd : float
        Starting standard deviations of the users' thresholds (in units of scores on a 5-star
        scale) and of the log-scales of users and items. Those of users are learnt from the
        ratings; the given values count as much as twenty users.
    random_state : int
        Seed of the split into parts.

    Examples
    --------
    >>> import pandas as pd
    >>> from ordrec.recommend import BiasModel
    >>> frame = pd.DataFrame({"user": [1, 1, 2, 2, 3, 3] * 3, "item": list("aabbcc" + "bbccaa"
    ...     + "ccaabb"), "rating": [5, 4, 3, 3, 1, 2, 4, 4, 2, 3, 1, 1, 5, 5, 3, 2, 2, 1]})
    >>> ratings = Ratings.from_frame(frame, duplicates="last")
    >>> model = PersonalThresholds(BiasModel(), n_splits=3).fit(ratings)
    >>> model.predict_proba([1], ["a"]).shape
    (1, 5)
    """

    stored: ClassVar = IDENTITY | {
        "model_": Optional(_StoredInner(), unset=True),
        "units_": Part(Units),
        "line_": Numbers(2),
        "layer_": Part(OrderedProbit, raters="users", rated="items"),
    }
    _unstored_parameters = ("model", "verbose")

    model: Any = None
    decision: Decision = "mean"
    n_splits: int = 5
    threshold_sd: float = 0.25
    user_sd: float = 0.2
    item_sd: float = 0.15
    random_state: int = 0
    search_space: ClassVar[dict[str, Any]] = {
        "threshold_sd": (0.05, 1.0, "log"),
        "user_sd": (0.05, 1.0, "log"),
        "item_sd": (0.05, 1.0, "log"),
    }

    @fits
    @one_blas_thread()
    def fit(self, ratings: Ratings, scores: np.ndarray | None = None) -> PersonalThresholds:
        """Fit the wrapped model and the ordered probit.

        Parameters
        ----------
        ratings : Ratings
        scores : ndarray, optional
            One score per rating, each made without its rating (leave-one-out or held-out), in
            place of a wrapped model.
        """
        if (scores is None) == (self.model is None):
            raise ArgumentError("PersonalThresholds needs either a model or scores in fit")
        self._remember(ratings)
        if scores is None:
            scores = self._out_of_fold(ratings)
            self.model_ = copy.deepcopy(self.model).fit(ratings)
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != (ratings.n_ratings,) or not np.isfinite(scores).all():
            raise ArgumentError(
                f"scores must be {ratings.n_ratings} finite numbers, one per rating, "
                f"got shape {scores.shape}"
            )
        step = float(np.diff(ratings.scale.values).min())
        self.units_ = Units.of(ratings.values, step)
        self.line_ = _regression(scores, ratings.values)
        users, items = ratings.users.astype(np.int64), ratings.items.astype(np.int64)
        inward = self._inward(scores)
        self.layer_ = fit_ordered_probit(
            inward, ratings.levels, users, items, ratings.scale.n_ranks,
            ratings.n_users, ratings.n_items,
            ProbitPriors(self.threshold_sd, user_sd=self.user_sd, item_sd=self.item_sd),
        )  # fmt: skip
        return self

    def predict_proba(self, users: Any, items: Any, scores: Any = None) -> np.ndarray:
        """Return distributions, one row per pair and one column per scale value.

        Unknown users get the common thresholds.
        """
        user_codes, item_codes = self._codes(users, items)
        if (scores is None) == (self.model is None):
            raise ArgumentError("give scores to predictions if, and only if, fit was given scores")
        if scores is None:
            scores = self.model_.predict(users, items)
        inward = self._inward(np.asarray(scores, dtype=np.float64))
        return self.layer_.probabilities(inward, user_codes, item_codes)

    def predict(self, users: Any, items: Any, scores: Any = None) -> np.ndarray:
        """Return one rating per pair: the expected one, or what ``decision`` says."""
        p = self.predict_proba(users, items, scores)
        return decide(p, self.decision, self.scale_.values)

    # ---- files ---------------------------------------------------------------------------

    def check_stored(self) -> None:
        """Check the decision and the wrapped model."""
        self._check_decision(self.decision)
        self.model = getattr(self, "model_", None)
        if self.model is not None and not hasattr(self.model, "predict"):
            raise ModelFileError("the wrapped model does not predict ratings")

    # ---- the steps -----------------------------------------------------------------------

    def _inward(self, scores: np.ndarray) -> np.ndarray:
        slope, intercept = self.line_
        return self.units_.inward(intercept + slope * scores)

    def _out_of_fold(self, ratings: Ratings) -> np.ndarray:
        """Scores of all ratings, each from a fit without the rating's own part."""
        n_splits = min(self.n_splits, ratings.n_ratings)
        if n_splits < 2:
            raise ArgumentError("n_splits: at least two parts and two ratings are needed")
        rng = np.random.default_rng(self.random_state)
        fold = rng.permutation(ratings.n_ratings) % n_splits
        scores = np.empty(ratings.n_ratings)
        for k in range(n_splits):
            part = ratings.select(fold == k)
            model = copy.deepcopy(self.model).fit(ratings.select(fold != k))
            scores[fold == k] = model.predict(
                part.user_ids.take(part.users), part.item_ids.take(part.items)
            )
        return scores


def _regression(scores: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of the ratings on the scores, so that the scores' units cancel."""
    centred = scores - scores.mean()
    squares = float(centred @ centred)
    slope = float(centred @ values) / squares if squares > 0 else 0.0
    return slope, float(values.mean() - slope * scores.mean())
