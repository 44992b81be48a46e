"""The histogram of all ratings, the simplest baseline for distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.data import Ratings
from ordrec.errors import ModelFileError
from ordrec.models.base import fits
from ordrec.rating.baselines.mean import GlobalMean
from ordrec.rating.intervals import DistributionModel
from ordrec.storage.schema import Array

__all__ = ["RatingHistogram"]


@dataclass(eq=False)
class RatingHistogram(GlobalMean, DistributionModel):
    """The distribution of all training ratings, for every user and item.

    Any model with `predict_proba` should do better than this.

    Parameters
    ----------
    damping : float
        Added to the count of each scale value, so that none has probability 0.
    """

    stored: ClassVar = GlobalMean.stored | {"distribution_": Array("ranks", low=0, high=1)}

    damping: float = 1.0

    @fits
    def fit(self, ratings: Ratings) -> RatingHistogram:
        """Count the ratings of each scale value."""
        super().fit(ratings)
        counts = np.bincount(ratings.levels, minlength=ratings.scale.n_ranks) + self.damping
        self.distribution_ = counts / counts.sum()
        return self

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """Return the same distribution for every pair, one column per scale value."""
        codes, _ = self._codes(users, items)
        return np.tile(self.distribution_, (codes.size, 1))

    def check_stored(self) -> None:
        """Check that the distribution is one."""
        if abs(self.distribution_.sum() - 1) > 1e-6:
            raise ModelFileError("array 'distribution' does not sum to one")
