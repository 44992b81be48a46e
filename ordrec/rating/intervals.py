"""Intervals of ratings, from predicted distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.data import Scale
from ordrec.errors import ArgumentError
from ordrec.ordinal.uncertainty import shortest_interval

__all__ = ["DistributionModel", "ratings_between"]


class DistributionModel:
    """A rating model whose distributions give intervals, too."""

    scale_: Scale
    predict_proba: Any

    def predict_interval(
        self, users: Any, items: Any, coverage: float = 0.9, **given: Any
    ) -> np.ndarray:
        """Return the shortest interval of ratings that has at least the probability ``coverage``.

        Parameters
        ----------
        users, items : sequence
            Original ids.
        coverage : float
            Between 0 and 1. It holds as far as the distributions are right; those of
            `ConformalRatings` hold in any case.
        **given
            What else ``predict_proba`` takes, such as ``timestamps``.

        Returns
        -------
        ndarray of shape (n, 2)
            The lowest and the highest rating, both included; the ends of bins, where the scale
            is made of bins.
        """
        if not hasattr(self, "predict_proba"):
            raise ArgumentError(
                f"this {type(self).__name__} has no probabilities, which intervals are made of: "
                "give it an estimator that has them, such as OrdinalLogistic"
            )
        p = self.predict_proba(users, items, **given)
        return ratings_between(self.scale_, shortest_interval(p, coverage))


def ratings_between(scale: Scale, levels: np.ndarray) -> np.ndarray:
    """Return the ratings at the ends of runs of levels, shape (n, 2).

    Examples
    --------
    >>> ratings_between(Scale([1, 2, 5]), np.array([[0, 1]])).tolist()
    [[1.0, 2.0]]
    """
    if scale.edges is None:
        return np.asarray(scale.values, dtype=np.float64)[levels]
    edges = np.asarray(scale.edges, dtype=np.float64)
    return np.stack([edges[levels[:, 0]], edges[levels[:, 1] + 1]], axis=1)
