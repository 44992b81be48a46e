"""The mean of all ratings, the simplest baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ordrec.data import Ratings, Scale
from ordrec.errors import ModelFileError
from ordrec.models.base import IdMappedModel, fits

__all__ = ["GlobalMean", "mean_on"]


@dataclass(eq=False)
class GlobalMean(IdMappedModel):
    """The mean of all training ratings, for every user and item."""

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

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata for `ordrec.storage`."""
        arrays, metadata = self._identity()
        return arrays, metadata | {"mean": self.mean_}

    @classmethod
    def from_state(cls, arrays: Any, metadata: dict[str, Any]) -> Any:
        """Restore a model from the arrays and the metadata of a file."""
        model = cls._from_identity(arrays, metadata)
        model.mean_ = mean_on(model.scale_, metadata)
        return model


def mean_on(scale: Scale, metadata: dict[str, Any]) -> float:
    """Return the mean rating in a file's metadata, checked to be a number within the scale."""
    mean = float(metadata["mean"])
    low, high = scale.low, scale.high
    if not low <= mean <= high:
        raise ModelFileError(f"the mean rating {mean:g} is not on the scale {scale}")
    return mean
