"""EASE and ALS together: the choice model that recommendations are made with.

(1) ``c_ui = (1 - t) log(E_ui + f_i) + t log(A_ui + f_i)``

with ``E`` the scores of `EASE` and ``A`` those of `ImplicitALS`, neither below 0, and a floor
``f_i = 0.01 + 0.001 m_i``, where ``m_i`` is the popularity of the item, its number of ratings
relative to the largest. Users with few ratings get more of what is popular, see
`ordrec.choice.cold_start`.

The ridge of EASE is chosen by exact leave-one-out. The ridge of ALS and ``t`` have fixed values:
choosing them on parts of the histories that are set aside was tried, and lost on fresh splits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from ordrec.choice.als import ImplicitALS
from ordrec.choice.base import SHARED, ChoiceModel
from ordrec.choice.calibration import ListedScores, PickCalibration, learnt_calibration
from ordrec.choice.cold_start import (
    USUAL_COLD,
    chosen_cold,
    popularity_of,
    with_popularity,
)
from ordrec.choice.ease import EASE
from ordrec.choice.inner_splits import (
    FEW_USERS,
    InnerSplit,
    entry_times,
    without_users,
)
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.lists.filters import ItemFilter
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.runtime.progress import report
from ordrec.storage.schema import Member, Number, Part

__all__ = ["ChoiceMixture"]

FLOOR, POPULARITY_FLOOR = 0.01, 0.001
USER_POWER, ITEM_POWER = 0.5, 0.25  # of EASE
NEW_USERS = 500
MANY = 300_000  # ratings: from here on more factors and one inner split


@dataclass(eq=False)
class ChoiceMixture(ChoiceModel):
    """The choice model of `Recommender`: EASE and ALS mixed, all parameters chosen in training.

    Parameters
    ----------
    regularization : float, optional
        Of `EASE`; chosen by leave-one-out if omitted.
    n_factors : int, optional
        Of `ImplicitALS`; 32, or 64 from 300,000 ratings on, if omitted.
    als_regularization, mix : float
        Ridge of `ImplicitALS`, and its share ``t`` in (1).
    cold : float, optional
        How much popularity counts for users with few ratings; chosen on users who are held out
        if omitted.
    future : {"auto", "random", "latest"}
        What next picks are like: a random part of each history, or its latest part. "auto" is
        the latest where the ratings have times. The calibration of `p_pick`, the probability
        that an item is among a user's next picks, is learnt by setting such parts aside.
    horizon : float
        How many next picks are meant, relative to the number of the user's ratings.
    max_memory : float
        Gigabytes, see `EASE`. Items without weights in EASE are scored by ALS alone.
    n_jobs : int, optional
        Threads; all cores by default.
    random_state : int

    Attributes
    ----------
    ease_, als_ : EASE, ImplicitALS
    cold_ : float
    calibration_ : PickCalibration

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = ChoiceMixture(n_factors=4).fit(ratings)
    >>> listed = model.recommend(0, n=5)
    >>> list(listed.columns)
    ['item', 'score', 'p_pick']
    """

    stored: ClassVar = ChoiceModel.stored | {
        "cold_": Number(0.0, 1e9),
        "calibration_": Part(PickCalibration),
        "ease_": Member(EASE, *SHARED),
        "als_": Member(ImplicitALS, *SHARED),
    }

    regularization: float | None = None
    n_factors: int | None = None
    als_regularization: float = 0.006
    mix: float = 0.35
    cold: float | None = None
    future: Literal["auto", "random", "latest"] = "auto"
    horizon: float = 0.25
    max_memory: float = 8.0
    n_jobs: int | None = None
    random_state: int = 0
    search_space: ClassVar[dict[str, Any]] = {
        "mix": (0.0, 1.0),
        "als_regularization": (0.001, 0.1, "log"),
        "n_factors": [16, 32, 64, 128],
    }

    # ---- learning -------------------------------------------------------------------------

    def _learn(self, history: sparse.csr_array, ratings: Ratings) -> None:
        self._check_parameters()
        history.sort_indices()
        rng = np.random.default_rng(self.random_state)
        with one_blas_thread():
            self.ease_ = self._new_ease(self.regularization).shared_with(self)
            report(0.0, 4.0, "EASE")
            self.ease_.learn_histories(history, ratings.scale.n_ranks, rng)
            self.als_ = self._new_als().shared_with(self)
            report(1.0, 4.0, "ALS")
            self.als_.learn_histories(history)
            report(2.0, 4.0, "new users")
            self.cold_ = self._chosen_cold(history, rng) if self.cold is None else self.cold
            report(3.0, 4.0, "calibration")
            self.calibration_ = learnt_calibration(
                self._inner_lists, history, self._times(ratings, history), rng,
                n_splits=1 if history.nnz > MANY else 3, horizon=self.horizon,
            )  # fmt: skip

    def _check_parameters(self) -> None:
        if not 0 <= self.mix <= 1:
            raise ArgumentError(f"mix must lie between 0 and 1, got {self.mix}")
        if self.future not in ("auto", "random", "latest"):
            raise ArgumentError(f'future must be "auto", "random" or "latest", got {self.future!r}')
        if not self.horizon > 0:
            raise ArgumentError(f"horizon must be above 0, got {self.horizon}")
        if self.cold is not None and not self.cold >= 0:
            raise ArgumentError(f"cold must not be negative, got {self.cold}")

    def _new_ease(self, regularization: float | None) -> EASE:
        return EASE(
            regularization, USER_POWER, ITEM_POWER, max_memory=self.max_memory, n_jobs=self.n_jobs
        )

    def _new_als(self) -> ImplicitALS:
        return ImplicitALS(
            n_factors=self.n_factors or (64 if self._history.nnz > MANY else 32),
            regularization=self.als_regularization,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _chosen_cold(self, history: sparse.csr_array, rng: np.random.Generator) -> float:
        """The constant of `cold_start`, by both models fitted without some of the users."""
        present = np.flatnonzero(np.diff(history.indptr) > 0)
        users = rng.choice(present, min(NEW_USERS, present.size // 5), replace=False)
        if users.size < FEW_USERS:
            return USUAL_COLD
        rest = without_users(history, users)
        counts = np.bincount(rest.indices, minlength=rest.shape[1])
        ease = self._part_ease(counts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all histories has warned already
            ease.learn_histories(rest, self.scale_.n_ranks, rng)
        als = self._new_als()
        als.learn_histories(rest)

        def score(given: sparse.csr_array) -> np.ndarray:
            E, A = ease.score_histories(given), als.score_histories(given)
            left_to_als = without_weights(counts, ease.min_ratings, ease.weighted_items_)
            E[:, left_to_als] = A[:, left_to_als]
            return mixed_scores(E, A, counts, self.mix)

        return chosen_cold(
            history[np.sort(users)], counts, score, self.scale_.n_ranks, rng, FEW_USERS
        )

    def _part_ease(self, counts: np.ndarray) -> EASE:
        """EASE with the same ridge, for a part of the histories with these counts of items."""
        ease = self._new_ease(self.ease_.regularization_)
        ease.item_counts_ = counts
        return ease

    def _times(self, ratings: Ratings, history: sparse.csr_array) -> np.ndarray | None:
        times = None if self.future == "random" else entry_times(ratings, history)
        if times is None and self.future == "latest":
            raise ArgumentError('future="latest", but the ratings have no times')
        return times

    def _inner_lists(self, split: InnerSplit) -> ListedScores:
        """Lists of both models, mixed, fitted to the given part of a split."""
        counts = np.bincount(split.given.indices, minlength=split.given.shape[1])
        ease = self._part_ease(counts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all histories has warned already
            inputs = ease.inputs(split.given)
        solution = inputs.problem(worker_count(self.n_jobs)).solve(
            inputs.ridges(self.ease_.regularization_)
        )
        als = self._new_als()
        als.learn_histories(split.given)
        left_to_als = without_weights(counts, ease.min_ratings, inputs.items)
        width, parts = self.block_size(), []
        for first in range(0, split.rows.size, width):
            rows = split.rows[first : first + width]
            A = als.user_factors_[rows] @ als.item_factors_.T
            E = np.zeros_like(A)
            E[:, inputs.items] = solution.scores(rows)
            E[:, left_to_als] = A[:, left_to_als]
            given = split.given[rows]
            sizes = np.diff(given.indptr)
            scores = mixed_scores(E, A, counts, self.mix)
            with_popularity(scores, counts, sizes, self.cold_)
            ItemFilter(counts > 0).hide(scores, given)
            parts.append(ListedScores.of(scores, sizes, split.held[rows]))
        return ListedScores.joined(parts)

    # ---- scores and lists -----------------------------------------------------------------

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        E, A = self.ease_.score_histories(history), self.als_.score_histories(history)
        return self._mixed(E, A, np.diff(history.indptr))

    def score_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of all items for users by code; -1 is a user without ratings."""
        rows = self.history_rows(codes)
        E, A = self.ease_.score_histories(rows), self.als_.score_users(codes)
        return self._mixed(E, A, np.diff(rows.indptr))

    def _mixed(self, E: np.ndarray, A: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        ease = self.ease_
        left_to_als = without_weights(self.item_counts_, ease.min_ratings, ease.weighted_items_)
        E[:, left_to_als] = A[:, left_to_als]
        scores = mixed_scores(E, A, self.item_counts_, self.mix)
        return with_popularity(scores, self.item_counts_, sizes, self.cold_)

    def contributions(self, code: int, item: int) -> np.ndarray:
        """Return what each item of a user's history adds to the score of EASE, by codes.

        Of an item without weights in EASE, to the score of ALS.
        """
        model = self.ease_ if item in self.ease_.weighted_items_ else self.als_
        return model.contributions(code, item)

    def _list_columns(self, codes: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
        counts = np.diff(self.history_rows(codes).indptr)
        return {"score": scores, "p_pick": self.p_pick(scores, counts)}

    def p_pick(self, scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the probability that each listed item is among the user's next picks.

        Parameters
        ----------
        scores : array of shape (n_users, n_places)
        counts : array of shape (n_users,)
            Number of each user's ratings.
        """
        return self.calibration_.p_pick(scores, counts)

    def _on_fold_in(self, users: np.ndarray) -> None:
        self.ease_, self.als_ = self.ease_.shared_with(self), self.als_.shared_with(self)
        self.als_._on_fold_in(users)

    def check_stored(self) -> None:
        """Check that the mix is a share."""
        if not 0 <= self.mix <= 1:
            raise ModelFileError(f"its mix is {self.mix}")


def without_weights(counts: np.ndarray, min_ratings: int, items: np.ndarray) -> np.ndarray:
    """Return the items with enough ratings for EASE that are not among those with weights."""
    return np.setdiff1d(np.flatnonzero(counts >= min_ratings), items)


def mixed_scores(E: np.ndarray, A: np.ndarray, counts: np.ndarray, mix: float) -> np.ndarray:
    """Return (1) for scores of EASE and ALS; ``counts`` are the numbers of ratings of the items."""
    floor = (FLOOR + POPULARITY_FLOOR * popularity_of(counts)).astype(E.dtype)
    scores = (1.0 - mix) * np.log(np.maximum(E, 0.0) + floor)
    scores += mix * np.log(np.maximum(A, 0.0) + floor)
    return scores
