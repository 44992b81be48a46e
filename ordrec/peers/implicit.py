"""Models of the package implicit, which rank items."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.lists.best import pair_scores
from ordrec.lists.filters import ItemFilter
from ordrec.lists.listing import ListingModel
from ordrec.models.base import codes_of, fits
from ordrec.runtime.extras import import_extra
from ordrec.runtime.parallel import forked, free_cores, one_blas_thread, worker_count

__all__ = ["ImplicitModel", "implicit_als", "implicit_bpr"]

LEAST_SCORE = -1e30  # below: what implicit puts where it has no score


@dataclass(eq=False)
class ImplicitModel(ListingModel):
    """A recommender of the package implicit, which ranks but does not predict ratings.

    All items are the same to an unknown user, and unknown items come last.

    Parameters
    ----------
    model : implicit recommender
        Such as ``implicit.bpr.BayesianPersonalizedRanking()``; it is not changed.
    entries : {"one", "rank", "interest"}
        Entries of the user-item matrix: ones, the ratings' ranks, or the ranks divided by their
        number.
    """

    model: Any = None
    entries: Literal["one", "rank", "interest"] = "one"
    ordered_by = "pick"
    _learns_from_picks = True

    @fits
    def fit(self, ratings: Ratings) -> ImplicitModel:
        """Fit a copy of ``model`` to the user-item matrix."""
        if not hasattr(self.model, "recommend"):
            raise ArgumentError(
                f"model must be a recommender of the package implicit, got {self.model!r}"
            )
        self._remember(ratings)
        rated = ratings.matrix("one" if self.entries == "one" else "rank").T
        if self.entries == "interest":
            rated = rated / ratings.scale.n_ranks
        self._rated = sparse.csr_matrix(rated)
        self._levels = sparse.csr_matrix(ratings.matrix("rank").T)
        self.item_counts_ = ratings.item_counts
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
        return pair_scores(self._rows, user_codes, item_codes, self.block_size())

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
                codes[known],
                self._rated[codes[known]],
                N=len(self.item_ids_),
                filter_already_liked_items=False,
            )
            rows, places = np.nonzero(ids >= 0)
            scores[known[rows], ids[rows, places]] = values[rows, places]
        scores[scores < LEAST_SCORE] = -np.inf
        lowest = scores.min(axis=1, initial=0.0, where=scores > -np.inf)[:, None]
        return np.where(scores > -np.inf, scores, lowest - 1.0)

    def history_of(self, user: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the item codes and the levels of a user's ratings; none for an unknown user."""
        self._check_fitted()
        code = int(codes_of(self.user_ids_, [user])[0])
        row = self._levels[[code]] if code >= 0 else self._levels[:0]
        return row.indices.astype(np.int64), row.data.astype(np.int64) - 1

    def lists(
        self, codes: np.ndarray, n: int, listable: ItemFilter, *, timestamp: int | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return lists by score; see `ListingModel.lists`."""
        scores = self._rows(codes)[:, :-1]
        rated = self._rated[np.maximum(codes, 0)]
        listable.hide(
            scores, sparse.csr_array(sparse.diags_array((codes >= 0) * 1.0) @ rated), codes
        )
        best = listable.best(scores, n)
        return best, {"score": np.take_along_axis(scores, np.maximum(best, 0), axis=1)}


def implicit_als(
    n_factors: int = 64,
    regularization: float = 0.05,
    alpha: float = 10.0,
    n_iter: int = 15,
    random_state: int = 0,
) -> ImplicitModel:
    """Return implicit's alternating least squares.

    Every rating is a sign of interest, the stronger the higher its rank: the confidence is
    ``alpha * rank / n_ranks``, against 1 for what was not rated; the ridge is the same for all
    rows. `ImplicitALS`, whose ridge grows with the number of ratings, ranks better.
    """
    with one_blas_thread():  # implicit warns of threads of BLAS when it is made
        als = import_extra("implicit.cpu.als", "implicit", "peers").AlternatingLeastSquares(
            factors=n_factors,
            regularization=regularization,
            alpha=alpha,
            iterations=n_iter,
            random_state=random_state,
            num_threads=free_cores(worker_count(None)),
            dtype=np.float64,
        )
    return ImplicitModel(als, "interest")


def implicit_bpr(n_factors: int = 64, n_iter: int = 100, random_state: int = 0) -> ImplicitModel:
    """Return implicit's Bayesian personalised ranking, to be fitted to a matrix of ones."""
    bpr = import_extra("implicit.bpr", "implicit", "peers").BayesianPersonalizedRanking(
        factors=n_factors, iterations=n_iter, random_state=random_state, num_threads=1
    )
    return ImplicitModel(bpr)
