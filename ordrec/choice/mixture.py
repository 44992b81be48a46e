"""EASE and ALS together: the choice model that recommendations are made with.

(1) ``c_ui = (1 - t) log(E_ui + f_i) + t log(A_ui + f_i)``

with ``E`` the scores of `EASE` and ``A`` those of `ImplicitALS`, neither below 0, and a floor
``f_i = 0.01 + 0.001 m_i``, where ``m_i`` is the popularity of the item, its number of ratings
relative to the largest. Users with few ratings get more of what is popular, see
`ordrec.choice.cold_start`.

The ridge of EASE is chosen by exact leave-one-out, and the ridge of ALS is fixed. How much
popularity counts, ``t``, and whether another ridge is needed, is then decided by lists for users
who are left out of both models. There, ``t`` is 0.35 and the ridge the one of leave-one-out unless
another value is better by more than a standard error: freely chosen values lost on fresh splits.
So it is with the unseen weight of ALS. An item with fewer ratings than EASE asks for has its ``A``
in the place of ``E``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.als import ImplicitALS
from ordrec.choice.base import SHARED, ChoiceModel
from ordrec.choice.calibration import (
    TOP,
    ListedScores,
    PickCalibration,
    learnt_calibration,
)
from ordrec.choice.choosing import Chosen
from ordrec.choice.cold_start import (
    USUAL_COLD,
    chosen_cold,
    popularity_of,
    with_popularity,
)
from ordrec.choice.ease import EASE
from ordrec.choice.events import is_event
from ordrec.choice.inner_splits import (
    FEW_USERS,
    INNER_USERS,
    SHARE,
    InnerSplit,
    inner_splits,
)
from ordrec.choice.left_out_users import LeftOutUsers, groups_left_out, last_better, mixed
from ordrec.choice.new_items import ListsNewItems, NewItems
from ordrec.errors import ArgumentError
from ordrec.lists.filters import ItemFilter
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.runtime.progress import report
from ordrec.storage.arrays import round_to_bytes
from ordrec.storage.schema import Member, Number, Optional, Part

__all__ = ["ChoiceMixture"]

FLOOR, POPULARITY_FLOOR = 0.01, 0.001
USER_POWER, ITEM_POWER = 0.5, 0.25  # of EASE
MANY = 300_000  # ratings: from here on more factors and one inner split
MANY_ITEMS = 5000  # from here on, one group of users is left out, and no other ridge is tried
USUAL_MIX = 0.35
OF_SOLVING = 0.8  # share of max_memory for solving for EASE, beside the weights for another part
MIXES = {  # the first that is no worse than the best by more than a standard error is taken
    "mixture": USUAL_MIX, "EASE": 0.0, "mixture, more EASE": 0.2, "mixture, more ALS": 0.5,
    "mixture, mostly ALS": 0.65, "ALS": 1.0,
}  # fmt: skip
# tried one after the other, as long as each makes better lists than the one before
LARGER_RIDGES, SMALLER_RIDGES = (4.0, 16.0), (0.25,)  # times the one by leave-one-out
USUAL_UNSEEN_WEIGHT, UNSEEN_WEIGHTS = 0.3, (0.1, 0.03)
ALL_POPULARITY = 1e9  # a constant of `cold_start` with which nothing but popularity counts


@dataclass(eq=False)
class ChoiceMixture(ListsNewItems):
    """The choice model of `Recommender`: EASE and ALS mixed, all parameters chosen in training.

    Parameters
    ----------
    regularization : float, optional
        Of `EASE`; chosen by leave-one-out if omitted.
    n_factors : int, optional
        Of `ImplicitALS`; 32, or 64 from 300,000 ratings on, if omitted.
    als_regularization : float
        Ridge of `ImplicitALS`.
    mix : float, optional
        Share ``t`` of ALS in (1); chosen on users who are held out if omitted.
    cold : float, optional
        How much popularity counts for users with few ratings; chosen on users who are held out
        if omitted.
    future : {"auto", "random", "latest", "next"}
        What next picks are like: a random part of each history, its latest part, or its next
        entry. "auto" is the latest where the ratings have times. The calibration of `p_pick`,
        the probability that an item is among a user's next picks, is learnt by setting such
        parts aside.
    horizon : float
        How many next picks are meant, relative to the number of the user's ratings.
    max_memory : float
        Gigabytes that the choice may take: with 8, EASE is exact up to 20,000 items.
    n_jobs : int, optional
        Threads; all cores by default.
    random_state : int

    Attributes
    ----------
    ease_, als_ : EASE, ImplicitALS
    mix_, cold_ : float
    chosen_ : Chosen
        Which mixture was chosen, and how good the others were.
    calibration_ : PickCalibration
    new_items_ : NewItems or None
        How items of the item table without ratings are scored, if there are any.

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
        "mix_": Number(0.0, 1.0),
        "cold_": Number(0.0, 1e9),
        "chosen_": Part(Chosen),
        "calibration_": Part(PickCalibration),
        "new_items_": Optional(Part(NewItems)),
        "ease_": Member(EASE, *SHARED),
        "als_": Member(ImplicitALS, *SHARED),
    }

    regularization: float | None = None
    n_factors: int | None = None
    als_regularization: float = 0.006
    mix: float | None = None
    cold: float | None = None
    future: Literal["auto", "random", "latest", "next"] = "auto"
    horizon: float = 0.25
    max_memory: float = 8.0
    n_jobs: int | None = None
    random_state: int = 0
    search_space: ClassVar[dict[str, Any]] = {
        "mix": (0.0, 1.0),
        "als_regularization": (0.001, 0.1, "log"),
        "n_factors": [16, 32, 64, 128],
    }

    _dated = True

    # ---- learning -------------------------------------------------------------------------

    def _learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> None:
        self._check_parameters()
        rng, times = np.random.default_rng(self.random_state), self._used(times)
        with one_blas_thread():
            self.learn_parts(history, times, rng)
            report(3.0, 4.0, "calibration")
            self.calibrate(history, times, rng)
            self.new_items_ = self.learnt_new_items(history, items, rng)

    def learnt_new_items(
        self, history: sparse.csr_array, items: pd.DataFrame | None, rng: np.random.Generator
    ) -> NewItems | None:
        """Learn to score items without ratings from the item table."""
        return NewItems.learnt(items, history, self.als_, self.scale_.n_ranks, rng)

    def calibrate(
        self, history: sparse.csr_array, times: np.ndarray | None, rng: np.random.Generator
    ) -> None:
        """Learn how likely listed items are among the picks asked for."""
        if self.future != "next":
            self.calibration_ = learnt_calibration(
                self.inner_lists, lambda codes: self.listed_scores(codes, TOP), history, times, rng,
                n_splits=1 if history.nnz > MANY else 3, horizon=self.horizon,
                events=self.event_entries,
            )  # fmt: skip
            return
        (split,) = inner_splits(
            history, 1, SHARE, rng, times=times, max_users=INNER_USERS, one=True,
            events=is_event(history, self.event_entries),
        )  # fmt: skip
        self.calibration_ = PickCalibration(self.horizon)
        if split.rows.size >= FEW_USERS:
            lists = self.inner_lists(split)
            self.calibration_ = PickCalibration.of_latest(lists).matched(
                lists, *self.listed_scores(split.rows, TOP)
            )

    def learn_parts(
        self, history: sparse.csr_array, times: np.ndarray | None, rng: np.random.Generator
    ) -> None:
        """Learn everything but the calibration; ``times`` are those of the entries, if any."""
        self.new_items_ = None
        self.ease_ = self._new_ease(self.regularization).shared_with(self)
        report(0.0, 4.0, "EASE")
        self.ease_.learn_histories(history, self.scale_.n_ranks, rng)
        self.als_ = self._new_als(USUAL_UNSEEN_WEIGHT).shared_with(self)
        report(1.0, 4.0, "ALS")
        self.als_.learn_histories(history)
        report(2.0, 4.0, "new users")
        self.mix_ = USUAL_MIX if self.mix is None else self.mix
        self.cold_ = USUAL_COLD if self.cold is None else self.cold
        self.chosen_ = Chosen.only("mixture")
        if self.mix is None or self.cold is None:
            self._choose(history, times, rng)
        self._round_weights(history)

    def _round_weights(self, history: sparse.csr_array) -> None:
        """Round the weights of EASE and the factors of ALS to what files then have of them."""
        weights: Any = self.ease_.weights_
        if sparse.issparse(weights):
            weights.data = np.require(weights.data, requirements="W")
            round_to_bytes(weights.data)
        else:
            self.ease_.weights_ = np.require(weights, requirements="W")
            round_to_bytes(self.ease_.weights_)
        self.als_.round_factors(history)

    def _check_parameters(self) -> None:
        if self.mix is not None and not 0 <= self.mix <= 1:
            raise ArgumentError(f"mix must lie between 0 and 1, got {self.mix}")
        check_future(self.future)
        if not self.horizon > 0:
            raise ArgumentError(f"horizon must be above 0, got {self.horizon}")
        if self.cold is not None and not self.cold >= 0:
            raise ArgumentError(f"cold must not be negative, got {self.cold}")

    def _new_ease(self, regularization: float | None) -> EASE:
        return EASE(
            regularization, USER_POWER, ITEM_POWER,
            max_memory=OF_SOLVING * self.max_memory, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _new_als(self, unseen_weight: float) -> ImplicitALS:
        return ImplicitALS(
            n_factors=self.n_factors or (64 if self._history.nnz > MANY else 32),
            regularization=self.als_regularization,
            unseen_weight=unseen_weight,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _choose(
        self, history: sparse.csr_array, times: np.ndarray | None, rng: np.random.Generator
    ) -> None:
        """Choose what is left open, by both models fitted without some of the users."""
        groups = groups_left_out(
            history, times, rng, self.part_models, log_scores,
            n_ranks=self.scale_.n_ranks, least=FEW_USERS, events=self.event_entries,
            several=history.nnz <= MANY and self.ease_.weighted_items_.size <= MANY_ITEMS,
        )  # fmt: skip
        if self.cold is None:
            parts = [group.cold_parts(self.mix_, rng, FEW_USERS) for group in groups]
            self.cold_ = chosen_cold([part for own in parts for part in own])
            del parts
        if sum(group.split.rows.size for group in groups) < FEW_USERS:
            return

        usual_settings = self.mix_, self.cold_

        def usual(groups: Sequence[LeftOutUsers]) -> np.ndarray:
            return np.concatenate([group.qualities([usual_settings])[0] for group in groups])

        groups = self._with_chosen_unseen_weight(groups, history, usual)
        if self.regularization is None and self.ease_.weighted_items_.size <= MANY_ITEMS:
            groups = self._with_chosen_ridge(groups, history, rng, usual)
        if self.mix is None:
            settings = {name: (mix, self.cold_) for name, mix in MIXES.items()}
            if self.cold is None:
                settings["popularity"] = self.mix_, ALL_POPULARITY
            by_group = [group.qualities([*settings.values()]) for group in groups]
            by_setting = map(np.concatenate, zip(*by_group, strict=True))
            self.chosen_ = Chosen.among(dict(zip(settings, by_setting, strict=True)))
            if self.chosen_.name == "popularity":
                self.cold_ = ALL_POPULARITY
            else:
                self.mix_ = MIXES[self.chosen_.name]

    def _with_chosen_unseen_weight(
        self,
        groups: Sequence[LeftOutUsers],
        history: sparse.csr_array,
        quality: Callable[[Sequence[LeftOutUsers]], np.ndarray],
    ) -> Sequence[LeftOutUsers]:
        """Fit ALS anew where a smaller unseen weight makes better lists; return the groups."""

        def refitted(group: LeftOutUsers, weight: float) -> LeftOutUsers:
            return replace(group, als=self._part_als(group.rest, weight))

        weight, groups = last_better(groups, UNSEEN_WEIGHTS, refitted, quality)
        if weight is not None:
            self.als_ = self._new_als(weight).shared_with(self)
            self.als_.learn_histories(history)
        return groups

    def _with_chosen_ridge(
        self,
        groups: Sequence[LeftOutUsers],
        history: sparse.csr_array,
        rng: np.random.Generator,
        quality: Callable[[Sequence[LeftOutUsers]], np.ndarray],
    ) -> Sequence[LeftOutUsers]:
        """Fit EASE anew where another ridge makes better lists; return the groups with it."""

        def refitted(group: LeftOutUsers, factor: float) -> LeftOutUsers:
            ridge = self.ease_.regularization_ * factor
            return replace(group, ease=self._part_ease(group.rest, group.counts, ridge))

        factor, groups = last_better(groups, LARGER_RIDGES, refitted, quality)
        if factor is None:
            factor, groups = last_better(groups, SMALLER_RIDGES, refitted, quality)
        if factor is not None:
            chosen = self._new_ease(self.ease_.regularization_ * factor)
            self.ease_ = chosen.shared_with(self)
            self.ease_.learn_histories(history, self.scale_.n_ranks, rng)
        return groups

    def part_models(
        self, history: sparse.csr_array, counts: np.ndarray
    ) -> tuple[EASE, ImplicitALS]:
        """Return both models fitted to a part of the histories, with these counts of items."""
        ease = self._part_ease(history, counts, self.ease_.regularization_)
        return ease, self._part_als(history, self.als_.unseen_weight)

    def _part_ease(self, history: sparse.csr_array, counts: np.ndarray, ridge: float) -> EASE:
        ease = self._counted_ease(counts, ridge)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of too few ratings; the fit to all has warned already
            # as the fit to all, though a part may have few enough items for regressions on all
            rng, exact = np.random.default_rng(0), self.ease_.is_exact
            ease.learn_histories(history, self.scale_.n_ranks, rng, exact)
        return ease

    def _part_als(self, history: sparse.csr_array, unseen_weight: float) -> ImplicitALS:
        als = self._new_als(unseen_weight)
        als.learn_histories(history)
        return als

    def _counted_ease(self, counts: np.ndarray, ridge: float) -> EASE:
        """EASE for a part of the histories with these counts of items."""
        ease = self._new_ease(ridge)
        ease.item_counts_ = counts
        return ease

    def _used(self, times: np.ndarray | None) -> np.ndarray | None:
        """The times of the entries, if the future is a matter of time."""
        times = None if self.future == "random" else times
        if times is None and self.future in ("latest", "next"):
            raise ArgumentError(f'future="{self.future}", but the ratings have no times')
        return times

    def inner_lists(self, split: InnerSplit) -> ListedScores:
        """Lists of both models, mixed, fitted to the given part of a split."""
        counts = np.bincount(split.given.indices, minlength=split.given.shape[1])
        ease = self._counted_ease(counts, self.ease_.regularization_)
        inputs = ease.inputs(split.given, self.ease_.is_exact)
        solution = inputs.problem(worker_count(self.n_jobs)).solve(
            inputs.ridges(self.ease_.regularization_)
        )
        als = self._part_als(split.given, self.als_.unseen_weight)
        width, parts = self.block_size(), []
        for first in range(0, split.rows.size, width):
            rows = split.rows[first : first + width]
            A = als.user_factors_[rows] @ als.item_factors_.T
            E = np.zeros_like(A)
            E[:, inputs.items] = solution.scores(rows)
            given = split.given[rows]
            sizes = np.diff(given.indptr)
            scores = mixed_scores(E, A, counts, self.mix_)
            with_popularity(scores, counts, sizes, self.cold_)
            ItemFilter(counts > 0).hide(scores, given)
            parts.append(ListedScores.of(scores, sizes, split.held[rows]))
        return ListedScores.joined(parts)

    # ---- scores and lists -----------------------------------------------------------------

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        E, A = self.ease_.score_histories(history), self.als_.score_histories(history)
        scores = self.mixed(E, A, self.item_counts_, history)
        return self.with_new(scores, lambda: self.als_.factors_of(history), sizes_of(history))

    def score_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of all items for users by code; -1 is a user without ratings."""
        rows = self.history_rows(codes)
        E, A = self.ease_.score_histories(rows), self.als_.score_users(codes)
        scores = self.mixed(E, A, self.item_counts_, rows)
        return self.with_new(scores, lambda: self.als_.factors_of_users(codes), sizes_of(rows))

    def mixed(
        self,
        E: np.ndarray,
        A: np.ndarray,
        counts: np.ndarray,
        history: sparse.csr_array,
    ) -> np.ndarray:
        """Return the scores of histories from those of EASE and ALS."""
        scores = mixed_scores(E, A, counts, self.mix_)
        return with_popularity(scores, counts, np.diff(history.indptr), self.cold_)

    def contributions(self, code: int, item: int) -> np.ndarray:
        """Return what each item of a user's history adds to the score of EASE, by codes.

        Of an item with too few ratings for EASE, to the score of ALS.
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

    def without_users(self) -> Self:
        """Return a copy that knows no users."""
        model = super().without_users()
        model.ease_, model.als_ = self.ease_.without_users(), self.als_.without_users()
        return model

    def _on_fold_in(self, users: np.ndarray) -> None:
        self.ease_, self.als_ = self.ease_.shared_with(self), self.als_.shared_with(self)
        self.als_._on_fold_in(users)
        self.als_.round_users(users)

    def _take_up(self, new_items: NewItems) -> None:
        self.new_items_ = new_items
        self.ease_, self.als_ = self.ease_.shared_with(self), self.als_.shared_with(self)
        Q = self.als_.item_factors_
        further = np.zeros((len(self.item_ids_) - len(Q), Q.shape[1]), Q.dtype)
        self.als_.item_factors_ = np.vstack([Q, further])


def sizes_of(history: sparse.csr_array) -> np.ndarray:
    """Return the numbers of ratings in histories."""
    return np.diff(history.indptr)


def check_future(future: str) -> None:
    """Refuse what is no kind of future."""
    kinds = "auto", "random", "latest", "next"
    if future not in kinds:
        raise ArgumentError(
            f"future must be one of {', '.join(kinds)}, got {future!r}", parameter="future"
        )


def mixed_scores(E: np.ndarray, A: np.ndarray, counts: np.ndarray, mix: float) -> np.ndarray:
    """Return (1) for scores of EASE and ALS; ``counts`` are the numbers of ratings of the items."""
    return mixed(log_scores(E, A, counts), mix)


def log_scores(E: np.ndarray, A: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both logarithms in (1)."""
    floor = (FLOOR + POPULARITY_FLOOR * popularity_of(counts)).astype(E.dtype)
    E = np.where(counts < EASE.min_ratings, A, E)
    return np.log(np.maximum(E, 0.0) + floor), np.log(np.maximum(A, 0.0) + floor)
