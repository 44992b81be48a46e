"""The mean of all ratings, the simplest baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.data import Ratings
from ordrec.models.base import IDENTITY, IdMappedModel, StoredRating, fits

__all__ = ["GlobalMean"]


@dataclass(eq=False)
class GlobalMean(IdMappedModel):
    """The mean of all training ratings, for every user and item."""

    stored: ClassVar = IDENTITY | {"mean_": StoredRating()}

    @fits
    def fit(self, ratings: Ratings) -> GlobalMean:
        """Compute the mean of all ratings."""
        self._remember(ratings)
        self.mean_ = float(ratings.values.mean())
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the mean rating for every pair."""
        codes, _ = self._codes(users, items)
        return np.full(codes.size, self.mean_)
