"""What people pick next: choice models that know the order of histories, chosen in training.

The scores are weighted sums of the features in `ordrec.choice.ordered_features`, or those of a
`ChoiceMixture`, which forgets the order. Some sums have fixed weights; the weights of others are
fitted as a conditional logit (`ordrec.choice.conditional_logit`):

* long memory: ``ease / 2 + ease_near / 4 + als_near / 4 + after / 2``
* short memory: ``ease_near / 2 + als_near / 2 + after``
* "with sequence": plus ``sequence / 4``, the scores of a log-bilinear model of the next item
* "with trend": plus ``(week - month) / 2``, the slope of popularity, and ``sequence / 4``
* logit: all features, with weights that are drawn towards "short memory with trend" as if a
  hundred users had said so

Candidates are compared on the kind of picks that the model is for: each user's last rating
(``future="next"``), or, for the latest part of histories, their last half. (A latest fifth that is
held out in training favours a short memory more than the future does; the last half does so less.)
Candidates are tried in a fixed order, and the first is taken that is no worse than the best by more
than a standard error. For the next pick, of which there is one per user, the weights that maximise
its likelihood come before the fixed ones, and deeper lists are compared. For the latest part, the
long memory comes first, with the sequence and without, then the mixture: halves of histories say
less for the order than the ends of whole ones do, so that it takes evidence against the order to
leave it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.base import SHARED, ChoiceModel, replaced_rows
from ordrec.choice.calibration import TOP, ListedScores, PickCalibration
from ordrec.choice.choosing import Chosen
from ordrec.choice.conditional_logit import LikelyWeights, fitted_weights
from ordrec.choice.events import MOST_ENTRY, is_event, merged_rows
from ordrec.choice.inner_splits import (
    FEW_USERS,
    InnerSplit,
    ListQuality,
    inner_splits,
    ranks_of_interest,
)
from ordrec.choice.mixture import ChoiceMixture, check_future
from ordrec.choice.new_items import ListsNewItems, NewItems
from ordrec.choice.order import DatedRows, tells_order
from ordrec.choice.ordered_features import (
    FEATURES,
    LAGS,
    LearntOrder,
    OrderedFeatures,
)
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.lists.best import best_columns, rank_gains
from ordrec.models.base import codes_of, folds_in
from ordrec.models.further_ratings import paired_lists, with_further_ratings
from ordrec.runtime.parallel import one_blas_thread
from ordrec.runtime.progress import report
from ordrec.storage.schema import ByName, Member, Number, Optional, Part, Seconds, Table

__all__ = ["OrderedChoice"]

LONG = {"ease": 0.5, "ease_near": 0.25, "als_near": 0.25, "after": 0.5}
SHORT = {"ease_near": 0.5, "als_near": 0.5, "after": 1.0}
SEQUENCE = {"sequence": 0.25}
SLOPE = {"week": 0.5, "month": -0.5}
SUMS = {
    "long memory": LONG,
    "short memory": SHORT,
    "long memory with sequence": LONG | SEQUENCE,
    "short memory with sequence": SHORT | SEQUENCE,
    "long memory with trend": LONG | SEQUENCE | SLOPE,
    "short memory with trend": SHORT | SEQUENCE | SLOPE,
}
LOGIT, LIKELY = "logit", "short memory with trend"
CONFIDENCE = 100.0  # in the weights of the latter, in users
NEXT_ORDER = (
    "mixture", LOGIT, "short memory", "long memory", "short memory with sequence",
    "long memory with sequence", "short memory with trend", "long memory with trend",
)  # fmt: skip
LATEST_ORDER = (
    "long memory with sequence", "long memory", "mixture", "short memory",
    "short memory with sequence", "long memory with trend", "short memory with trend", LOGIT,
)  # fmt: skip
HALF = 0.5
NEXT_DEPTH = 50  # of lists for a single pick, of which the first ten places say little
OF_MIXTURE = 0.625  # share of max_memory for the mixture, where tables of the order stand beside it
CHOOSING_USERS, CALIBRATING_USERS = 2000, 4000
# of all entries, set aside besides to see how picks drift; fewer where what is left chooses, too
EARLIER_PICKS, EARLIER_PARTS = 0.01, 0.05
CHOOSING_CELLS = 100_000_000  # features held at a time: 400 MB, or two square tables, as EASE needs


@dataclass(eq=False)
class OrderedChoice(ListsNewItems):
    """Choice model for dated ratings: what people pick next, given what they picked last.

    Where the order of ratings says nothing, it is a `ChoiceMixture`: for ratings without times,
    or none of whose users has ratings of two different times, for ``future="random"``, and where
    lists for parts set aside in training are no better by the order.

    Parameters
    ----------
    future : {"auto", "next", "latest", "random"}
        What the lists are for: the next pick, the latest part of each history, or any part of it.
        "auto" is the latest part where the ratings have times.
    horizon : float
        For the latest part: how many next picks are meant by `p_pick`, relative to the number of
        the user's ratings.
    n_factors : int, optional
        See `ChoiceMixture`.
    max_memory : float
        Gigabytes that the choice may take, in which eight square tables of items have room: with 8,
        EASE is exact up to 15,811 items, and it is these, the most rated ones, of which the order
        is learnt.
    n_jobs : int, optional
        Threads; all cores by default.
    random_state : int

    Attributes
    ----------
    mixture_ : ChoiceMixture
        The order-free model.
    weights_ : dict of str to float
        Weights of the features; empty where the mixture was chosen.
    chosen_ : Chosen
        What was chosen, and how good the other candidates were.
    calibration_ : PickCalibration
    order_ : LearntOrder or None

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = OrderedChoice(n_factors=4).fit(ratings)
    >>> list(model.recommend(0, n=5).columns)
    ['item', 'score', 'p_pick']
    """

    stored: ClassVar = ChoiceModel.stored | {
        "_history": Table("users", "items", low=0.0, high=MOST_ENTRY, entries="entries"),
        "_times": Seconds("entries"),  # of what is rated or picked
        "weights_": ByName(Number(), *FEATURES),
        "chosen_": Part(Chosen),
        "calibration_": Part(PickCalibration),
        "mixture_": Member(ChoiceMixture, *SHARED),
        "order_": Optional(Part(LearntOrder)),
    }

    future: Literal["auto", "next", "latest", "random"] = "auto"
    horizon: float = 0.25
    n_factors: int | None = None
    max_memory: float = 8.0
    n_jobs: int | None = None
    random_state: int = 0
    search_space: ClassVar[dict[str, Any]] = {"n_factors": [16, 32, 64, 128]}

    _dated = True

    # ---- learning -------------------------------------------------------------------------

    def _learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> None:
        check_future(self.future)
        if times is None and self.future in ("next", "latest"):
            raise ArgumentError(f'future="{self.future}", but the ratings have no times')
        # one per entry of the histories, 0 where it is unknown
        times = np.zeros(history.nnz) if times is None else times
        self._times = times[~is_event(history, self.event_entries)]
        ordered = self.future != "random" and tells_order(history.indptr, times)
        self.weights_: dict[str, float] = {}
        self.order_: LearntOrder | None = None
        mixture = ChoiceMixture(
            n_factors=self.n_factors, future=self.future if ordered else "random",
            horizon=self.horizon, n_jobs=self.n_jobs,
            max_memory=(OF_MIXTURE if ordered else 1.0) * self.max_memory,
            random_state=self.random_state,
        )  # fmt: skip
        self.mixture_ = mixture.shared_with(self)
        if ordered:
            with one_blas_thread():
                self._learn_order(history, times, np.random.default_rng(self.random_state))
        else:
            self.mixture_._learn(history, times, items)
            self.chosen_, self.calibration_ = self.mixture_.chosen_, self.mixture_.calibration_
        if ordered:
            rng = np.random.default_rng(self.random_state)
            self.mixture_.new_items_ = self.mixture_.learnt_new_items(history, items, rng)

    def _learn_order(
        self, history: sparse.csr_array, times: np.ndarray, rng: np.random.Generator
    ) -> None:
        report(0.0, 1.0, span=0.4)
        self.mixture_.learn_parts(history, times, rng)
        report(0.4, 1.0, "order", span=0.0)
        rows = DatedRows.of(history, times)
        trial = self._inner_trial(rows, HALF, rng, FEATURES, looks_back=self.future == "next")
        self.chosen_ = self.mixture_.chosen_
        if trial is None:  # too few users to choose by
            self.calibration_ = PickCalibration(self.horizon)
        else:
            self.chosen_ = Chosen.among(trial.qualities())
            name = self.chosen_.name
            self.weights_ = SUMS.get(name, {})
            if name == LOGIT:
                self.weights_ = trial.logit(start=trial.halves[1])
        if trial is not None and self.weights_:
            report(0.7, 1.0, "order", span=0.0)
            items = self.mixture_.ease_.block_items
            self.order_ = LearntOrder.of(
                rows, items, self.item_counts_, rng, self.weights_, trial.features
            )
        if trial is not None:
            report(0.8, 1.0, "calibration", span=0.0)
            self.calibration_ = self._calibrated(rows, trial, rng)
        self.mixture_.calibration_ = self.calibration_

    def _calibrated(
        self, rows: DatedRows, trial: _Trial, rng: np.random.Generator
    ) -> PickCalibration:
        """How likely listed items are among the picks asked for."""
        if not self.weights_:
            self.mixture_.calibrate(rows.history, rows.times, rng)
            return self.mixture_.calibration_
        if self.future == "next":
            return self._of_next(trial)
        share, names = self.horizon / (1.0 + self.horizon), tuple(self.weights_)
        of_share = self._inner_trial(rows, share, rng, names, trial.features, looks_back=True)
        if of_share is None:
            return PickCalibration.of_latest(trial.lists(self.weights_))
        return self._of_latest(trial, of_share)

    def _of_next(self, trial: _Trial) -> PickCalibration:
        crossed = self.chosen_.name == LOGIT
        lists = trial.lists(self.weights_, crossed=crossed)
        final = self.listed_scores(trial.users, TOP)
        found = PickCalibration.of_latest(lists).matched(lists, *final)
        if trial.earlier is None:
            return found
        earlier = trial.earlier_lists(self.weights_, crossed=crossed)
        later = lists.of_rows(trial.looks_back)
        lower = PickCalibration.of_latest(earlier).matched(earlier, later.scores, later.counts)
        return found.drifted(earlier, later, lower)

    def _of_latest(self, half: _Trial, trial: _Trial) -> PickCalibration:
        lists = trial.lists(self.weights_)
        found = PickCalibration.of_latest(lists)
        if trial.earlier is not None:
            earlier, later = trial.earlier_lists(self.weights_), lists.of_rows(trial.looks_back)
            found = found.drifted(earlier, later, PickCalibration.of_latest(earlier))
        whole, learnt, less = (
            np.log(n) for n in (self.joined_history.nnz, trial.n_learnt, half.n_learnt)
        )
        if less == learnt:
            return found
        by_half = half.lists_from(trial.split, trial.choosing, self.weights_)
        same = lists.of_rows(np.arange(trial.choosing.size))
        return found.with_more(by_half, same, (whole - learnt) / (learnt - less))

    def _inner_trial(
        self,
        dated: DatedRows,
        share: float,
        rng: np.random.Generator,
        names: tuple[str, ...],
        near: OrderedFeatures | None = None,
        *,
        looks_back: bool = False,
    ) -> _Trial | None:
        """Both models and some features, fitted to histories without a part of their ends.

        With ``looks_back``, the part before it is set aside, too, for as many users as have a small
        share of all entries in it.
        """
        history, n_items = dated.history, self.mixture_.ease_.block_items.size
        cells = max(CHOOSING_CELLS, 2 * n_items**2)
        n_users = min(CHOOSING_USERS, max(cells // max(n_items * len(names), 1), FEW_USERS))
        (split,) = inner_splits(
            history, 1, share, rng, times=dated.times,
            max_users=CALIBRATING_USERS if looks_back else n_users,
            one=self.future == "next", events=is_event(history, self.event_entries),
        )  # fmt: skip
        if split.rows.size < FEW_USERS:
            return None
        users = rng.permutation(split.rows)
        users = np.concatenate([np.sort(users[:n_users]), np.sort(users[n_users:])])
        earlier = self._earlier(split, users[:n_users], share, rng) if looks_back else None
        graded = self.future != "next"
        return _Trial(
            self.mixture_, split, users, n_users, earlier, self.scale_.n_ranks, graded, names, rng,
            near,
        )  # fmt: skip

    def _earlier(
        self, split: InnerSplit, choosing: np.ndarray, share: float, rng: np.random.Generator
    ) -> InnerSplit | None:
        """What is given without the part that came before what is set aside, for some users."""
        users, one = rng.permutation(split.rows), self.future == "next"
        if one:  # those who choose last, so that models know their histories as in the end
            users = users[np.argsort(np.isin(users, choosing), kind="stable")]
            few = users[: int(EARLIER_PICKS * split.given.nnz)]
        else:
            sizes = share * np.diff(split.given.indptr)[users]
            few = users[np.cumsum(sizes) <= EARLIER_PARTS * split.given.nnz]
        (earlier,) = inner_splits(
            split.given, 1, share, rng, times=split.given_times, max_users=few.size,
            one=one, events=is_event(split.given, self.event_entries), users=few,
        )  # fmt: skip
        return earlier if earlier.rows.size >= FEW_USERS else None

    # ---- scores and lists -----------------------------------------------------------------

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history, whose order is unknown."""
        if self.order_ is None:
            return self.mixture_.score_histories(history)
        return self._score_rows(DatedRows.of(history, np.zeros(history.nnz)))

    def score_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of all items for users by code; -1 is a user without ratings."""
        if self.order_ is None:
            return self.mixture_.score_users(codes)
        return self._score_rows(self._dated_rows(codes))

    def _dated_rows(self, codes: np.ndarray) -> DatedRows:
        """The histories of users by code, with events, and their times."""
        if self._events is None:
            return DatedRows.taken(self._history, self._times, codes)
        kept = self.__dict__.get("_joined_times")
        if kept is None or kept[0] is not self._times or kept[1] is not self._events:
            order = merged_rows(self._history, self._events.entries)[1]
            times = np.concatenate([self._times, self._events.times])[order]
            kept = self.__dict__["_joined_times"] = self._times, self._events, times
        return DatedRows.taken(self.joined_history, kept[2], codes)

    def _score_rows(self, rows: DatedRows) -> np.ndarray:
        assert self.order_ is not None
        mixture = self.mixture_
        features = OrderedFeatures(mixture.ease_, mixture.als_, self.order_, self.item_counts_)
        scores = features.weighted_sum(self.weights_, rows)
        sizes = np.diff(rows.history.indptr)
        return self.with_new(scores, lambda: mixture.als_.factors_of(rows.history), sizes)

    @property
    def new_items_(self) -> NewItems | None:  # type: ignore[override]
        """How items without ratings are scored, if there are any."""
        return self.mixture_.new_items_

    def contributions(self, code: int, item: int) -> np.ndarray:
        """Return what each item of a user's history adds to the score of an item, by codes.

        Where the order counts, that is the score less the one without that entry, the others
        staying at their places.
        """
        if self.order_ is None:
            return self.mixture_.contributions(code, item)
        row = self._dated_rows(np.array([code]))
        score = self._score_rows(row)[0, item]
        parts, width = np.zeros(row.history.nnz), self.block_size()
        for first in range(0, parts.size, width):
            left_out = np.arange(first, min(first + width, parts.size))
            parts[left_out] = score - self._score_rows(row.without_each(left_out))[:, item]
        return parts

    def reasons(self, user: Any, item: Any) -> pd.DataFrame:
        """Return which of a user's ratings speak for an item, the weightiest first.

        Returns
        -------
        DataFrame
            As of `ChoiceModel.reasons`. Where the order counts, ``place`` says which entry of the
            history it is by time: 1 is the newest, entries of the same time share the mean of their
            places, and NaN is one without a time.
        """
        found = super().reasons(user, item)
        if self.order_ is None:
            return found
        row = self._dated_rows(codes_of(self.user_ids_, [user]))
        place = pd.Series(
            np.where(row.times > 0, row.places + 1.0, np.nan),
            self.item_ids_.take(row.history.indices),
        )
        found.insert(found.columns.size - 1, "place", place.reindex(found["item"]).to_numpy())
        return found

    def _list_columns(self, codes: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
        counts = np.diff(self.history_rows(codes).indptr)
        return {"score": scores, "p_pick": self.calibration_.p_pick(scores, counts)}

    # ---- new users ------------------------------------------------------------------------

    @folds_in
    def fold_in(self, ratings: Ratings) -> Self:
        """Return a model that also knows the users of these ratings; nothing else changes.

        The ratings of a known user are replaced by these. Ratings are read by value on the
        model's scale. Ratings of unknown items are left out, with a warning. The order of the
        ratings is that of their times; without times, none is the newest.
        """
        model = super().fold_in(ratings)
        if len(model.item_ids_) > len(self.item_ids_):  # it was folded in with the new items
            return model
        users = codes_of(model.user_ids_, ratings.user_ids)[ratings.users]
        items = codes_of(self.item_ids_, ratings.item_ids)[ratings.items]
        times = np.zeros(users.size) if ratings.timestamps is None else ratings.timestamps
        known = items >= 0
        given = sparse.csr_array(
            (times[known].astype(np.float64), (users[known], items[known])),
            shape=model._history.shape,
        )
        before = self._history
        dated = sparse.csr_array((self._times, before.indices, before.indptr), before.shape)
        model._times = replaced_rows(dated, given, np.unique(users)).data
        return model

    def without_users(self) -> Self:
        """Return a copy that knows no users."""
        model = super().without_users()
        model._times, model.mixture_ = self._times[:0], self.mixture_.without_users()
        return model

    def _on_fold_in(self, users: np.ndarray) -> None:
        self.mixture_ = self.mixture_.shared_with(self)
        self.mixture_._on_fold_in(users)

    def _take_up(self, new_items: NewItems) -> None:
        self.mixture_ = self.mixture_.shared_with(self)
        self.mixture_._take_up(new_items)

    def update(self, user: Any, item: Any, rating: Any = None, timestamp: Any = None) -> Self:
        """Return a model with further ratings (or new ones for items already rated).

        They count in what is counted over all users, too: which items follow which, and how popular
        items are, and when. Everything else that was learnt stays as it is.

        Parameters
        ----------
        user, item, rating : see `ChoiceModel.update`
        timestamp : int or sequence of int, optional
            In seconds since 1970. Without it, further ratings are the newest of their user.
        """
        model = super().update(user, item, rating, timestamp)
        if self.order_ is None or model.order_ is None:
            return model
        given = paired_lists(user, item, rating, None, self.scale_)[0]
        users = np.unique(codes_of(model.user_ids_, given))
        before = self._dated_rows(np.where(users < len(self.user_ids_), users, -1))
        after = model._dated_rows(users)
        model.order_ = model.order_.changed(before, after, self.mixture_.ease_.block_items)
        return model

    def ratings_with(self, user: Any, item: Any, rating: Any, timestamp: Any = None) -> Ratings:
        """Return all ratings of these users, with further ones.

        Without a time, further ratings are newer than all others of their user, and those of
        somebody new are newer than all.
        """
        self._check_fitted()
        if timestamp is None:
            users = paired_lists(user, item, rating, None, self.scale_)[0]
            codes = codes_of(self.user_ids_, users)
            newest = self._dated_rows(codes).newest
            newest = np.where(np.isnan(newest), self.newest_time, newest)
            timestamp = (newest + 1.0).astype(np.int64).tolist()
        return with_further_ratings(self._ratings_of, user, item, rating, timestamp, self.scale_)

    @property
    def newest_time(self) -> float:
        """When the newest of all ratings was given, in seconds since 1970; 0 if nobody knows."""
        return float(self._times.max(initial=0.0))

    def _ratings_of(self, users: pd.Index) -> pd.DataFrame:
        codes = codes_of(self.user_ids_, users)
        rows = DatedRows.taken(self._history, self._times, codes[codes >= 0])
        return super()._ratings_of(users).assign(timestamp=rows.times.astype(np.int64))

    # ---- files ----------------------------------------------------------------------------

    def check_stored(self) -> None:
        """Check that what was learnt of the order fits the models."""
        if bool(self.weights_) != (self.order_ is not None):
            raise ModelFileError("its weights do not go with what it has learnt of the order")
        asks = LAGS.keys() & self.weights_.keys()
        if self.order_ is not None and asks and self.order_.lifts is None:
            raise ModelFileError("its weights do not go with what it has learnt of the order")
        n_weighted = self.mixture_.ease_.block_items.size
        if self.order_ is not None and len(self.order_.cosines.table) != n_weighted:
            raise ModelFileError("its order is of other items than those with weights")


def weighted(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sums of the features of each user, shape (n_users, n_items), with own weights."""
    return np.einsum("uk,ukj->uj", weights, features)


class _Trial:
    """All candidates, fitted to the given part of a split, and the lists they make for it.

    Only items that have weights in EASE are listed, unless they are too few for a list.

    Parameters
    ----------
    mixture : ChoiceMixture
        Whose parameters are taken over.
    split : InnerSplit
        With times.
    users : int64 array
        Their codes, in the order of lists.
    n_choosing : int
        How many of them, the first, choose; lists of the others are for calibration alone.
    earlier : InnerSplit or None
        Of what is given, without the part before what is set aside for some of the users: nothing
        is learnt from that, but it is given where the split's own part is asked for.
    n_ranks : int
    graded : bool
        Whether picks count by their ratings, or all alike.
    names : tuple of str
        The features.
    rng : Generator
    near : OrderedFeatures, optional
        See `LearntOrder.of`.
    """

    def __init__(
        self,
        mixture: ChoiceMixture,
        split: InnerSplit,
        users: np.ndarray,
        n_choosing: int,
        earlier: InnerSplit | None,
        n_ranks: int,
        graded: bool,
        names: tuple[str, ...],
        rng: np.random.Generator,
        near: OrderedFeatures | None = None,
    ):
        learnt = split if earlier is None else earlier
        assert split.given_times is not None
        assert learnt.given_times is not None
        self.mixture, self.split, self.earlier, self.names = mixture, split, earlier, names
        self.users, self.choosing = users, users[:n_choosing]
        self.n_learnt = learnt.given.nnz
        counts = np.bincount(learnt.given.indices, minlength=learnt.given.shape[1])
        ease, als = mixture.part_models(learnt.given, counts)
        given = DatedRows.of(learnt.given, learnt.given_times)
        order = LearntOrder.of(given, ease.block_items, counts, rng, names, near)
        self.features = OrderedFeatures(ease, als, order, counts)
        self.rows = DatedRows.taken(split.given, split.given_times, self.choosing)
        items = ease.block_items
        self.items = items if items.size >= NEXT_DEPTH else np.arange(counts.size)
        held = split.held[self.choosing]
        self.graded, self.depth = graded, 10 if graded else NEXT_DEPTH
        self.measure = ListQuality(held, n_ranks, self.depth)
        self.held = sparse.csr_array(held[:, self.items])
        self.allowed = self._allowed(self.rows.history)
        gains = rank_gains(n_ranks)[ranks_of_interest(self.held.data, n_ranks) - 1]
        self.targets = self._targets(gains if graded else np.ones(self.held.nnz))

    def _allowed(self, history: sparse.csr_array) -> np.ndarray:
        """Which items may be listed: those with ratings that are not in the history."""
        allowed = np.tile(self.features.counts > 0, (history.shape[0], 1))
        row = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
        allowed[row, history.indices] = False
        return allowed[:, self.items]

    def _targets(self, gains: np.ndarray) -> sparse.csr_array:
        """The shares of what was set aside, without items that cannot be listed."""
        held = self.held
        row = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
        gains = np.where(self.features.counts[self.items[held.indices]] > 0, gains, 0.0)
        total = np.bincount(row, gains, minlength=held.shape[0])
        shares = gains / np.where(total > 0, total, 1.0)[row]
        return sparse.csr_array((shares, held.indices, held.indptr), held.shape)

    @cached_property
    def block(self) -> np.ndarray:
        """The features of all users of the split."""
        return self.features.block(self.names, self.rows, self.items)

    def qualities(self) -> dict[str, np.ndarray]:
        """Return the quality of every candidate's lists, one number per user."""
        found = {
            "mixture": self._quality(self._mixed()),
            LOGIT: self._quality(self._summed({}, crossed=True)),
        }
        for name, weights in SUMS.items():
            found[name] = self._quality(self._summed(weights))
        return {name: found[name] for name in (LATEST_ORDER if self.graded else NEXT_ORDER)}

    def logit(
        self, users: np.ndarray | None = None, start: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Return the weights of the features by the conditional logit, fitted to some users.

        Weights that are fitted to others are a near start.
        """
        which = slice(None) if users is None else np.flatnonzero(users)
        likely = np.array([SUMS[LIKELY].get(name, 0.0) for name in self.names])
        weights = fitted_weights(
            self.block[which], self.allowed[which], self.targets[which],
            LikelyWeights(likely, CONFIDENCE),
            np.array([start[name] for name in self.names]) if start else None,
        )  # fmt: skip
        return dict(zip(self.names, weights.tolist(), strict=True))

    def lists(self, weights: Mapping[str, float], *, crossed: bool = False) -> ListedScores:
        """Return the lists by a weighted sum.

        With ``crossed``, they are those of the logit whose weights are fitted to the other half of
        the users: lists by which weights were fitted have more hits than others.
        """
        scores = self._summed(weights, crossed)
        scores[~self.allowed] = -np.inf
        sizes = np.diff(self.rows.history.indptr)
        own = ListedScores.of(scores, sizes, self.held)
        others = np.arange(sizes.size, self.users.size)
        blocks = self._blocks(
            self.split, self.users[others], self._weights_of(others, weights, crossed)
        )
        return ListedScores.joined([own, *blocks])

    @cached_property
    def looks_back(self) -> np.ndarray:
        """The places of the users of whom an earlier part is set aside."""
        assert self.earlier is not None
        return np.flatnonzero(np.isin(self.users, self.earlier.rows))

    def earlier_lists(self, weights: Mapping[str, float], *, crossed: bool = False) -> ListedScores:
        """Return the same of the earlier part, for the users of whom one is set aside."""
        assert self.earlier is not None
        users, own = (
            self.users[self.looks_back],
            self._weights_of(self.looks_back, weights, crossed),
        )
        return ListedScores.joined([*self._blocks(self.earlier, users, own)])

    def lists_from(
        self, part: InnerSplit, users: np.ndarray, weights: Mapping[str, float]
    ) -> ListedScores:
        """Return the lists of users by code from what is given in another split.

        Nothing that it sets aside may be given in the trial's own one.
        """
        own = self._weights_of(np.arange(users.size), weights, crossed=False)
        return ListedScores.joined([*self._blocks(part, users, own)])

    def _blocks(
        self, part: InnerSplit, users: np.ndarray, weights: np.ndarray
    ) -> Iterator[ListedScores]:
        """Lists from what is given in a split, with a row of weights for each user."""
        assert part.given_times is not None
        width, used = self.mixture.block_size(), np.flatnonzero(weights.any(axis=0))
        names = [self.names[k] for k in used]
        for first in range(0, users.size, width):
            block = slice(first, first + width)
            rows = DatedRows.taken(part.given, part.given_times, users[block])
            scores = weighted(self.features.block(names, rows, self.items), weights[block, used])
            scores[~self._allowed(rows.history)] = -np.inf
            held = sparse.csr_array(part.held[users[block]][:, self.items])
            yield ListedScores.of(scores, np.diff(rows.history.indptr), held)

    def _quality(self, scores: np.ndarray) -> np.ndarray:
        scores[~self.allowed] = -np.inf
        best = best_columns(scores, self.depth)
        return self.measure(np.where(best >= 0, self.items[best], -1))

    def _summed(self, weights: Mapping[str, float], crossed: bool = False) -> np.ndarray:
        places = np.arange(self.held.shape[0])
        return weighted(self.block, self._weights_of(places, weights, crossed))

    def _weights_of(
        self, places: np.ndarray, weights: Mapping[str, float], crossed: bool
    ) -> np.ndarray:
        """The weights of the features for users by place, one row each.

        With ``crossed``, those of each half of the choosing users by the logit of the other half.
        """
        tables = (weights, *self.halves) if crossed else (weights,)
        table = np.array([[own.get(name, 0.0) for name in self.names] for own in tables])
        which = np.where(places < self.held.shape[0], 1 + places % 2, 0) if crossed else 0
        return np.broadcast_to(table.astype(np.float32)[which], (places.size, len(self.names)))

    @cached_property
    def halves(self) -> tuple[dict[str, float], dict[str, float]]:
        """The weights for each half of the users, fitted to the other."""
        first = np.arange(self.held.shape[0]) % 2 == 0
        for_first = self.logit(~first)
        return for_first, self.logit(first, for_first)

    def _mixed(self) -> np.ndarray:
        history = self.rows.history
        E = self.features.ease.score_histories(history)
        A = self.features.als.score_histories(history)
        mixed = self.mixture.mixed(E, A, self.features.counts, history)
        return np.ascontiguousarray(mixed[:, self.items])
