"""EASE and ALS together: the choice model that recommendations are made with.

(1) ``s_ui = (1 - t) log(E_ui + f_i) + t log(A_ui + f_i)``

with ``E`` the scores of `EASE` and ``A`` those of `ImplicitALS`, neither below 0, and a floor
``f_i = 0.01 + 0.001 n_i / max n`` that orders by popularity what the models know nothing of.

The ridge of EASE is chosen by exact leave-one-out; the ridge of ALS and ``t`` on histories of
which a part is set aside. They leave their usual values only for a gain of more than two standard
errors: on every data set tried, the usual values were near the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.parallel import one_blas_thread, worker_count
from ordrec.ratings import Ratings
from ordrec.recommend.choice.als import ImplicitALS
from ordrec.recommend.choice.base import ChoiceModel
from ordrec.recommend.choice.calibration import (
    CALIBRATED_PLACES,
    ListedScores,
    PickCalibration,
)
from ordrec.recommend.choice.ease import EASE
from ordrec.recommend.choice.inner_splits import InnerSplit, entry_times, inner_splits
from ordrec.recommend.choice.tuning import (
    best_on_a_grid_of_twos,
    left_out_quality,
    list_quality,
    within_errors,
)
from ordrec.recommend.lists import best_columns, rank_gains

__all__ = ["ChoiceMixture"]

FLOOR, POPULARITY_FLOOR = 0.01, 0.001
START = 200.0  # where the search for the ridge of EASE begins
USUAL_RIDGE, USUAL_MIX = 0.006, 0.35
RIDGES = (0.004, 0.006, 0.01, 0.015)  # of ALS
MIXES = (0.2, 0.35, 0.5, 0.65)
LEFT_OUT_USERS, INNER_USERS = 1000, 1500
SHARE = 0.2  # of each history, set aside
MANY = 300_000  # ratings: from here on more factors and one inner split
FEW_USERS = 20  # fewer users than this cannot choose anything


@dataclass(eq=False)
class ChoiceMixture(ChoiceModel):
    """The choice model of `Recommender`: EASE and ALS mixed, all parameters chosen in training.

    Parameters
    ----------
    regularization : float, optional
        Of `EASE`; chosen by leave-one-out if omitted.
    factors : int, optional
        Of `ImplicitALS`; 32, or 64 from 300,000 ratings on, if omitted.
    als_regularization, mix : float, optional
        Ridge of `ImplicitALS` and its share ``t`` in (1); chosen on parts of the histories that
        are set aside if omitted.
    future : {"auto", "random", "latest"}
        What is set aside: a random part of each history, or the latest. "auto" is the latest
        where the ratings have times. It decides what `p_pick` is the probability of: that an
        item is among the user's next picks.
    horizon : float
        How many next picks are meant, relative to the number of the user's ratings.
    max_memory : float
        Gigabytes, see `EASE`. Items without weights in EASE are scored by ALS alone.
    n_jobs : int, optional
        Threads; -1 means all cores.
    random_state : int

    Attributes
    ----------
    ease_, als_ : EASE, ImplicitALS
    mix_ : float
    calibration_ : PickCalibration
    tried_ : dict
        What the parameters were chosen by.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = ChoiceMixture(factors=4).fit(ratings)
    >>> listed = model.recommend(0, n=5)
    >>> list(listed.columns)
    ['item', 'score', 'p_pick']
    """

    regularization: float | None = None
    factors: int | None = None
    als_regularization: float | None = None
    mix: float | None = None
    future: Literal["auto", "random", "latest"] = "auto"
    horizon: float = 0.25
    max_memory: float = 8.0
    n_jobs: int | None = None
    random_state: int = 0

    # ---- learning -------------------------------------------------------------------------

    def _learn(self, history: sparse.csr_array, ratings: Ratings) -> None:
        self._check_parameters()
        history.sort_indices()
        rng = np.random.default_rng(self.random_state)
        self.tried_: dict[str, Any] = {}
        with one_blas_thread():
            self.ease_ = self._fit_ease(ratings, history, rng)
            times = self._times(ratings, history)
            n_splits = 1 if history.nnz > MANY else 3
            splits = inner_splits(history, n_splits, SHARE, rng, times=times, max_users=INNER_USERS)
            inner = [_InnerScores(self, split) for split in splits]
            ridge, self.mix_ = self._choose_mix(inner)
            self.als_ = self._als(ridge).shared_with(self)
            self.als_.learn_histories(history)
            self.calibration_ = self._calibrated(inner, ridge, rng)

    def _check_parameters(self) -> None:
        if self.mix is not None and not 0 <= self.mix <= 1:
            raise ArgumentError(f"mix must lie between 0 and 1, got {self.mix}")
        if self.future not in ("auto", "random", "latest"):
            raise ArgumentError(f'future must be "auto", "random" or "latest", got {self.future!r}')
        if not self.horizon > 0:
            raise ArgumentError(f"horizon must be above 0, got {self.horizon}")

    def _fit_ease(
        self, ratings: Ratings, history: sparse.csr_array, rng: np.random.Generator
    ) -> EASE:
        """EASE with the ridge given, or the best by leave-one-out."""
        ease = EASE(max_memory=self.max_memory, n_jobs=self.n_jobs).shared_with(self)
        inputs = ease.inputs(history)
        problem = inputs.problem(worker_count(self.n_jobs))
        ridge = self.regularization
        if ridge is None:
            rows = np.flatnonzero(np.diff(inputs.history.indptr) > 1)
            rows = np.sort(rng.permutation(rows)[:LEFT_OUT_USERS])
            own = inputs.history[rows]

            def quality(ridge: float) -> float:
                scores = problem.solve(inputs.ridges(ridge)).scores(rows, left_out=True)
                return float(left_out_quality(scores, own, ratings.scale.n_ranks).mean())

            ridge, self.tried_["regularization"] = START, {}
            if rows.size >= FEW_USERS:
                ridge, self.tried_["regularization"] = best_on_a_grid_of_twos(quality, START)
        ease.regularization = float(ridge)
        ease.set_weights(inputs, problem.solve(inputs.ridges(ease.regularization)).weights())
        return ease

    def _als(self, ridge: float) -> ImplicitALS:
        factors = self.factors or (64 if self._history.nnz > MANY else 32)
        return ImplicitALS(
            factors=factors, regularization=ridge, n_jobs=self.n_jobs,
            random_state=self.random_state,
        )  # fmt: skip

    def _times(self, ratings: Ratings, history: sparse.csr_array) -> np.ndarray | None:
        times = None if self.future == "random" else entry_times(ratings, history)
        if times is None and self.future == "latest":
            raise ArgumentError('future="latest", but the ratings have no times')
        return times

    def _choose_mix(self, inner: list[_InnerScores]) -> tuple[float, float]:
        """Ridge and share of ALS: as given, or by the lists for what was set aside."""
        ridges = RIDGES if self.als_regularization is None else (self.als_regularization,)
        mixes = MIXES if self.mix is None else (self.mix,)
        usual = (
            USUAL_RIDGE if self.als_regularization is None else self.als_regularization,
            USUAL_MIX if self.mix is None else self.mix,
        )
        if len(ridges) * len(mixes) == 1 or min(part.rows.size for part in inner) < FEW_USERS:
            return usual
        values = {
            (ridge, mix): np.concatenate([part.quality(ridge, mix) for part in inner])
            for ridge in ridges
            for mix in mixes
        }
        self.tried_["mix"] = {key: float(value.mean()) for key, value in values.items()}
        ridge, mix = within_errors(values, usual, len(inner), n_errors=2.0)
        return ridge, mix

    def _calibrated(
        self, inner: list[_InnerScores], ridge: float, rng: np.random.Generator
    ) -> PickCalibration:
        """Calibration of `p_pick` by the lists for what was set aside."""
        if min(part.rows.size for part in inner) < FEW_USERS:
            return PickCalibration(self.horizon)
        lists = ListedScores.joined([part.lists(ridge, self.mix_) for part in inner])
        above = inner[0].split
        (below,) = inner_splits(
            above.given, 1, SHARE, rng, times=above.given_times, max_users=INNER_USERS
        )
        deeper = None
        if below.rows.size >= FEW_USERS:
            deeper = _InnerScores(self, below).lists(ridge, self.mix_)
        return PickCalibration.fitted(lists, SHARE, deeper, self.horizon)

    # ---- scores and lists -----------------------------------------------------------------

    def _score_histories(self, history: sparse.csr_array) -> np.ndarray:
        return self._mixed(
            self.ease_._score_histories(history), self.als_._score_histories(history)
        )

    def _score_known(self, codes: np.ndarray) -> np.ndarray:
        rows = self._rows_of(codes)
        return self._mixed(self.ease_._score_histories(rows), self.als_._score_known(codes))

    def _mixed(self, E: np.ndarray, A: np.ndarray) -> np.ndarray:
        left_to_als = np.setdiff1d(
            np.flatnonzero(self.item_counts_ >= self.ease_.min_ratings), self.ease_.kept_items_
        )
        E[:, left_to_als] = A[:, left_to_als]
        scores = (1.0 - self.mix_) * log_scores(E, self.item_counts_)
        scores += self.mix_ * log_scores(A, self.item_counts_)
        return scores

    def _list_columns(self, codes: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
        counts = np.diff(self._rows_of(codes).indptr)
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

    # ---- files ----------------------------------------------------------------------------

    def _own_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        ease_arrays, ease = self.ease_._own_state()
        als_arrays, als = self.als_._own_state()
        about = {
            "mix": self.mix_,
            "calibration": self.calibration_.to_metadata(),
            "ease": ease | {"parameters": self.ease_._parameters()},
            "als": als | {"parameters": self.als_._parameters()},
        }
        return ease_arrays | als_arrays, about

    def _restore(self, arrays: Any, metadata: dict[str, Any]) -> None:
        self.mix_ = float(metadata["mix"])
        if not 0 <= self.mix_ <= 1:
            raise ModelFileError(f"its mix is {self.mix_}")
        self.calibration_ = PickCalibration.from_metadata(metadata["calibration"])
        self.tried_ = {}
        for name, kind in (("ease", EASE), ("als", ImplicitALS)):
            about = metadata[name]
            member = kind(**kind._checked(about["parameters"])).shared_with(self)
            member._restore(arrays, about)
            setattr(self, f"{name}_", member)


def log_scores(scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the logarithms of (1), for items with these numbers of ratings."""
    popular = counts / max(int(counts.max(initial=0)), 1)
    floor = (FLOOR + POPULARITY_FLOOR * popular).astype(scores.dtype)
    return np.log(np.maximum(scores, 0.0) + floor)


class _InnerScores:
    """Scores of the members fitted to one inner split, for the users that have both parts."""

    def __init__(self, mixture: ChoiceMixture, split: InnerSplit):
        self.split, self.rows = split, split.rows
        self._new_als = mixture._als
        self._counts = np.bincount(split.given.indices, minlength=split.given.shape[1])
        self._given = split.given[self.rows]
        held = split.held[self.rows]
        ranks = np.rint(held.data * mixture.scale_.n_ranks).astype(np.int64)
        gains = rank_gains(mixture.scale_.n_ranks)[ranks - 1]
        self._gains = sparse.csr_array((gains, held.indices, held.indptr), held.shape).toarray()
        ease = EASE(max_memory=mixture.max_memory, n_jobs=mixture.n_jobs)
        ease.item_counts_ = self._counts
        inputs = ease.inputs(split.given)
        problem = inputs.problem(worker_count(mixture.n_jobs))
        solution = problem.solve(inputs.ridges(mixture.ease_.regularization))
        scores = np.zeros(self._given.shape, dtype=np.float32)
        scores[:, inputs.kept] = solution.scores(self.rows)
        self._log_ease = log_scores(scores, self._counts)
        self._log_als: dict[float, np.ndarray] = {}

    def scores(self, ridge: float, mix: float) -> np.ndarray:
        """Return mixed scores; what the user has in the given part is minus infinity."""
        if ridge not in self._log_als:
            als = self._new_als(ridge)
            als.learn_histories(self.split.given)
            scores = als.user_factors_[self.rows] @ als.item_factors_.T
            self._log_als[ridge] = log_scores(scores, self._counts)
        mixed = (1.0 - mix) * self._log_ease + mix * self._log_als[ridge]
        users = np.repeat(np.arange(self.rows.size), np.diff(self._given.indptr))
        mixed[users, self._given.indices] = -np.inf
        return mixed

    def quality(self, ridge: float, mix: float) -> np.ndarray:
        """Return the NDCG of the ten best, one number per user."""
        return list_quality(best_columns(self.scores(ridge, mix), 10), self._gains)

    def lists(self, ridge: float, mix: float) -> ListedScores:
        """Return the best items of each user, and which of them are in the part set aside."""
        scores = self.scores(ridge, mix)
        best = best_columns(scores, CALIBRATED_PLACES)
        there, best = best >= 0, np.maximum(best, 0)
        listed = np.take_along_axis(scores, best, axis=1).astype(np.float64)
        return ListedScores(
            np.where(there, listed, listed.min(initial=0.0, where=there)),
            np.diff(self._given.indptr),
            there & (np.take_along_axis(self._gains, best, axis=1) > 0),
        )
