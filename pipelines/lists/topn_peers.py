"""Public recommenders that the top-N benchmark compares with, their settings chosen in training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender, TFIDFRecommender
from scipy import sparse
from topn_measures import N, Truth, ten_best

from ordrec.choice.ease import EASE
from ordrec.data import Ratings
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.peers.implicit import ImplicitModel, implicit_als

LEAST_GAIN = 0.001  # for a further step: else the factors of ALS grow without end
NEIGHBOURS: dict[str, Callable[[], Any]] = {
    "cosine": lambda: CosineRecommender(K=100),
    "tf-idf": lambda: TFIDFRecommender(K=100),
    "bm25": lambda: BM25Recommender(K=100, K1=1.2, B=0.75),
    "bm25, B .2": lambda: BM25Recommender(K=100, K1=1.2, B=0.2),
}


@dataclass(eq=False)
class LeftOutEASE(EASE):
    """EASE as published, with its ridge chosen by leave-one-out; ``ones`` ignores the ratings."""

    ones: bool = False

    def _learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> None:
        if self.ones:
            history.data[:] = 1.0
        super()._learn(history, times, items)


class Neighbours:
    """Item neighbours of implicit on the ratings' ranks, the kind chosen on an inner hold-out."""

    def __init__(self, kind: str):
        self.kind = kind

    def fit(self, ratings: Ratings) -> Neighbours:
        """Learn the similarities."""
        self._rated = sparse.csr_matrix(ratings.matrix("rank").T.astype(np.float64))
        self.model = NEIGHBOURS[self.kind]()
        self.model.fit(self._rated, show_progress=False)
        return self

    def ten(self, users: np.ndarray) -> np.ndarray:
        """Return the ten best items of each user."""
        return np.asarray(self.model.recommend(users, self._rated[users], N=N)[0])


def chosen_neighbours(inner: InnerPart) -> Neighbours:
    """Return the neighbours that are best on the inner hold-out, not fitted."""
    return Neighbours(max(NEIGHBOURS, key=lambda kind: inner.quality(Neighbours(kind))))


def chosen_als(inner: InnerPart) -> ImplicitModel:
    """Climb over confidence, ridge and factors on the inner hold-out, one at a time."""
    steps = {"alpha": 3.0, "regularization": 3.0, "n_factors": 2}
    now: dict[str, Any] = {"alpha": 3.0, "regularization": 3.0, "n_factors": 32}
    tried: dict[tuple, float] = {}

    def quality(**changes: Any) -> float:
        key = tuple((now | changes).values())
        if key not in tried:
            tried[key] = inner.quality(implicit_als(**(now | changes)))
        return tried[key]

    moved = True
    while moved:
        moved = False
        for name, step in steps.items():
            kind = type(now[name])
            near = [kind(now[name] / step) or 1, now[name], kind(now[name] * step)]
            best = max(near, key=lambda value, name=name: quality(**{name: value}))
            if quality(**{name: best}) > quality() + LEAST_GAIN:
                now[name], moved = best, True
    return implicit_als(**now)


class InnerPart:
    """A split of the training part, of the same kind as the split outside."""

    def __init__(self, train: Ratings, protocol: str, seed: int):
        self.split = next(iter(split_from_name(protocol, random_state=1000 + seed).split(train)))
        self.truth = Truth.of(self.split.test)

    def quality(self, model: Any) -> float:
        """Fit a model to the inner training part and return graded NDCG@10 on the rest."""
        best, _ = ten_best(model.fit(self.split.train), self.truth.users)
        return float(self.truth.measured(best)["graded"].mean())
