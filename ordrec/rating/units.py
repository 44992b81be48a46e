"""Units of scores: ratings centred, and scaled to the spread that default weights expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.storage.schema import Number

__all__ = ["Units"]

TINY = float(np.finfo(np.float64).tiny)
TYPICAL_SPREAD = 1.126  # of 5-star ratings: the unit of all default weights


@dataclass(frozen=True)
class Units:
    """Mean of the ratings, and the factor that scales them to the spread of 5-star ratings.

    Examples
    --------
    >>> units = Units.of(np.array([1.0, 5.0]), step=1.0)
    >>> units.outward(units.inward(np.array([4.0]))).round(6).tolist()
    [4.0]
    """

    stored: ClassVar = {"mean": Number(), "scale": Number(low=TINY)}

    mean: float
    scale: float

    @classmethod
    def of(cls, values: np.ndarray, step: float) -> Units:
        """The units of training ratings; ``step`` replaces the spread if all are equal."""
        spread = float(values.std())
        return cls(float(values.mean()), TYPICAL_SPREAD / (spread if spread > 0 else step))

    def inward(self, values: np.ndarray) -> np.ndarray:
        """Ratings to scores."""
        return (values - self.mean) * self.scale

    def outward(self, scores: Any) -> Any:
        """Scores to ratings."""
        return scores / self.scale + self.mean
