"""Algorithms of the package Surprise."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.models.base import IdMappedModel, fits
from ordrec.runtime.extras import import_extra

__all__ = ["SurpriseModel", "surprise_knn"]

SEEDED_BY_SURPRISE = ("SVD", "SVDpp", "NMF", "CoClustering")


@dataclass(eq=False)
class SurpriseModel(IdMappedModel):
    """A rating prediction algorithm of the package Surprise.

    Parameters
    ----------
    algorithm : str or surprise.AlgoBase
        The name of a class in ``surprise``, or an instance, which is not changed.
    options : dict
        Arguments of the class, if it is given by name.
    random_state : int
        Seed of an algorithm given by name that uses random numbers.
    """

    algorithm: Any = "SVD"
    options: dict[str, Any] = field(default_factory=dict)
    random_state: int = 0

    @fits
    def fit(self, ratings: Ratings) -> SurpriseModel:
        """Fit the algorithm to the ratings."""
        surprise = import_extra("surprise", "scikit-surprise", "peers")
        self._remember(ratings)
        if not isinstance(self.algorithm, str):
            self.model_ = copy.deepcopy(self.algorithm)
        elif hasattr(surprise, self.algorithm):
            seeded = self.algorithm in SEEDED_BY_SURPRISE
            options = {"random_state": self.random_state} if seeded else {}
            self.model_ = getattr(surprise, self.algorithm)(**options | self.options)
        else:
            raise ArgumentError(f"surprise has no algorithm {self.algorithm!r}")
        frame = pd.DataFrame(
            {"user": ratings.users, "item": ratings.items, "rating": ratings.values}
        )
        low, high = ratings.scale.low, ratings.scale.high
        table = surprise.Dataset.load_from_df(frame, surprise.Reader(rating_scale=(low, high)))
        self.model_.verbose = False
        self.model_.fit(table.build_full_trainset())
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the algorithm's estimates, computed one pair at a time, as Surprise does."""
        user_codes, item_codes = self._codes(users, items)
        pairs = zip(user_codes.tolist(), item_codes.tolist(), strict=True)
        return np.array([self.model_.predict(u, i).est for u, i in pairs], dtype=np.float64)


def surprise_knn(k: int = 40, damping: float = 100.0) -> SurpriseModel:
    """Return Surprise's most accurate neighbourhood model: item neighbours around baselines."""
    similarity = {"name": "pearson_baseline", "user_based": False, "shrinkage": damping}
    return SurpriseModel("KNNBaseline", {"k": k, "sim_options": similarity})
