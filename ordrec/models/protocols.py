"""What a rating model, a probability model, a fold-in model and a ranking model must offer.

A rating model is any object with ``fit(ratings)`` and ``predict(users, items)``: original ids
go in, ratings on the scale of the data come out. Everything else is optional and is found by
looking for the method: ``predict_proba`` (a distribution over the scale) and ``fold_in`` (users
who were not in training). A ranking model has ``scores`` instead of ``predict``: numbers that
order the items of one user and have no other meaning.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ordrec.data import Ratings

__all__ = ["FoldInModel", "ProbabilityModel", "RankingModel", "RatingModel"]


@runtime_checkable
class RatingModel(Protocol):
    """Predicts ratings."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn from ratings, forgetting what was learnt before; return the model."""
        ...

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Predict one rating per pair, as floats within the scale's range.

        ``users`` and ``items`` are original ids, of equal length. Unknown ones get a
        sensible fallback, never an exception.
        """
        ...


@runtime_checkable
class ProbabilityModel(RatingModel, Protocol):
    """Predicts distributions over the rating scale."""

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """One row per pair, one column per scale value in ascending order; rows sum to 1."""
        ...


@runtime_checkable
class FoldInModel(RatingModel, Protocol):
    """Adds users who were not in training, without training again."""

    def fold_in(self, ratings: Ratings) -> Any:
        """Return a model that also knows the users of these ratings; nothing else changes."""
        ...


@runtime_checkable
class RankingModel(Protocol):
    """Orders items for users without predicting ratings."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn from ratings, forgetting what was learnt before; return the model."""
        ...

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """One number per pair; items with higher numbers come first in the user's list."""
        ...
