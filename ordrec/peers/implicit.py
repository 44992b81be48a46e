"""Models of the package implicit, for ranking."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.lists.best import pair_scores
from ordrec.lists.filters import CELLS_AT_ONCE
from ordrec.models.base import IdMappedModel, codes_of, fits
from ordrec.peers.peers import import_peer
from ordrec.runtime.parallel import forked, one_blas_thread

__all__ = ["ImplicitModel", "implicit_bpr"]

LEAST_SCORE = -1e30


@dataclass(eq=False)
class ImplicitModel(IdMappedModel):
    """A recommender of the package implicit, for ranking only; unknown users and items come last.

    Parameters
    ----------
    model : implicit recommender
        Such as ``implicit.bpr.BayesianPersonalizedRanking()``; it is not changed.
    entries : {"one", "rank"}
        Entries of the user-item matrix: ones, or the ratings' ranks.
    """

    model: Any = None
    entries: Literal["one", "rank"] = "one"

    @fits
    def fit(self, ratings: Ratings) -> ImplicitModel:
        """Fit a copy of ``model`` to the user-item matrix."""
        if not hasattr(self.model, "recommend"):
            raise ArgumentError(
                f"model must be a recommender of the package implicit, got {self.model!r}"
            )
        self._remember(ratings)
        self._rated = sparse.csr_matrix(ratings.matrix(self.entries).T)
        self.model_ = copy.deepcopy(self.model)
        with one_blas_thread():
            self._peer().fit(self._rated, show_progress=False)
        return self

    def _peer(self) -> Any:
        """The recommender; in a forked process its threads would wait for ever, so it has one."""
        if forked() and hasattr(self.model_, "num_threads"):
            self.model_.num_threads = 1
        return self.model_

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """Return the recommender's scores, one per pair, as in `scores_block`.

        An unknown item scores as one that the recommender has no score for.
        """
        user_codes, item_codes = self._codes(users, items)
        width = max(1, CELLS_AT_ONCE // len(self.item_ids_))
        return pair_scores(self._rows, user_codes, item_codes, width)

    def scores_block(self, users: Any) -> np.ndarray:
        """Return the scores of all items for these users, one row per user.

        Items it has no score for have the lowest score of the row, less 1; an unknown user has
        the same score for all items.
        """
        self._check_fitted()
        return self._rows(codes_of(self.user_ids_, users))[:, :-1]

    def _rows(self, codes: np.ndarray) -> np.ndarray:
        """Scores of all items, and of an unknown one in the last column."""
        known = np.flatnonzero(codes >= 0)
        scores = np.full((codes.size, len(self.item_ids_) + 1), -np.inf)
        if known.size:
            ids, values = self._peer().recommend(
                codes[known], self._rated[codes[known]], N=len(self.item_ids_),
                filter_already_liked_items=False,
            )  # fmt: skip
            rows, places = np.nonzero(ids >= 0)
            scores[known[rows], ids[rows, places]] = values[rows, places]
        scores[scores < LEAST_SCORE] = -np.inf  # what implicit puts where it has no score
        lowest = scores.min(axis=1, initial=0.0, where=scores > -np.inf)[:, None]
        return np.where(scores > -np.inf, scores, lowest - 1.0)


def implicit_bpr(factors: int = 64, iterations: int = 100, random_state: int = 0) -> ImplicitModel:
    """Return implicit's Bayesian personalised ranking, to be fitted to a matrix of ones."""
    bpr = import_peer("implicit.bpr", "implicit").BayesianPersonalizedRanking(
        factors=factors, iterations=iterations, random_state=random_state, num_threads=1
    )
    return ImplicitModel(bpr)
