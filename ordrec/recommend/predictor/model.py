"""`RatingPredictor`: calibrated rating distributions for every user and item."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.ordinal.decisions import Decision, decide
from ordrec.parallel import one_blas_thread, worker_count
from ordrec.ratings import Ratings
from ordrec.recommend.base import IdMappedModel, codes_of
from ordrec.recommend.choice.als_ranking import FirstStage
from ordrec.recommend.pair_table import predict_pairs
from ordrec.recommend.predictor.explain import Explanation, explain_pair
from ordrec.recommend.predictor.fold_in import FoldedUser, fold_in_user
from ordrec.recommend.predictor.preparation import Preparation, Units, prepare, within_memory
from ordrec.recommend.predictor.side_features import item_titles
from ordrec.recommend.predictor.state import (
    checked_parameters,
    restore_predictor,
    state_of_predictor,
)
from ordrec.recommend.process.fitting import (
    cross_fitted_likelihood,
    fit_process,
    learnt_weights,
    refit_process,
)
from ordrec.recommend.process.weights import DEFAULTS, FAST_DEFAULTS, TIME_SCALES, Layout
from ordrec.recommend.thresholds.ordered_probit import Layer, fit_layer
from ordrec.recommend.top_n import Order, best_items, candidate_items

__all__ = ["RatingPredictor", "fast_predictor"]


@dataclass(eq=False)
class RatingPredictor(IdMappedModel):
    """Ratings as ordered categories: a Gaussian process for the score, thresholds for each user.

    The score of a user for an item is the sum of a process over his items, a process over the
    item's users and a process shared by all, solved jointly; every kernel leaves out the user (or
    item) it is used for. A hierarchical ordered probit turns the score into a distribution.

    Parameters
    ----------
    preset : {"full", "fast"}
        "fast" has the process over a user's items alone, solved in closed form.
    components : collection of str, optional
        Names of the kernel components to use, such as "item.residual" or
        "product.implicit*implicit"; all that the ratings allow when omitted.
    use_time : {"auto", True, False}
        Whether ratings near in time are alike. "auto": if the ratings have times. Pairs that are
        asked for with the time of the rating gain by it; for those without, the model keeps
        coefficients without times, and errs no more than one fitted with False (its log-loss
        is a little higher, as thresholds are fitted to dated scores).
    use_side : {"auto", True, False}
        Whether genres, years, ages, genders and occupations in the side tables are used.
    decision : {"median", "mode", "mean"} or cost matrix
        How `predict` makes one rating of a distribution: the median has the least absolute
        error, the mode the fewest errors; "mean" gives the expected rating, a float.
    learn : {"auto", "hold-out", "defaults"}
        Whether the weights of the components are learnt on an inner hold-out of the ratings or
        taken as they are. "auto" learns for "full" and does not for "fast".
    learn_iter : int
        Most iterations of learning.
    refit : bool
        Whether "full" is solved once more under the ordinal likelihood (Laplace's method):
        somewhat more accurate, for a few seconds more on 100 000 ratings.
    n_jobs : int or None
        Threads; -1 for all cores. The numbers do not depend on it.
    random_state : int
    max_memory : float
        Gigabytes that the matrices of a fit may take, by the estimate of `memory_needed`, which
        grows with the squares of the numbers of items and users; the process takes a tenth to a
        quarter more. Where "full" would take more, "fast" is fitted in its place, with a
        warning; where that takes more too, fitting is refused.

    Attributes
    ----------
    weights_ : dict
        Weight of each component in use, and smoothing counts.
    hold_out_rmse_ : list of float
        RMSE on the inner hold-out at each evaluation of learning.
    titles_ : list of str or None
        What the items are called, where the ratings' item table has titles.
    process_, layer_ : fitted parts
    likelihood_ : (Layer, float) or None
        The layer before the refit and its typical scale, for users who are folded in.

    Examples
    --------
    >>> from ordrec.datasets import load_dataset
    >>> ratings = load_dataset("ml-latest-small-2016")
    >>> some = ratings.select((ratings.users < 40) & (ratings.items < 400)).compact()
    >>> model = RatingPredictor(preset="fast").fit(some)
    >>> user, item = some.user_ids[0], some.item_ids[0]
    >>> model.predict_proba([user], [item]).shape
    (1, 10)
    >>> float(model.predict_proba([user], [item]).sum().round(6))
    1.0
    """

    preset: Literal["full", "fast"] = "full"
    components: Collection[str] | None = None
    use_time: bool | Literal["auto"] = "auto"
    use_side: bool | Literal["auto"] = "auto"
    decision: Decision = "median"
    learn: Literal["auto", "hold-out", "defaults"] = "auto"
    learn_iter: int = 5
    refit: bool = True
    n_jobs: int | None = None
    random_state: int = 0
    max_memory: float = 8.0

    def fit(self, ratings: Ratings) -> RatingPredictor:
        """Learn from ratings; side tables and times are taken from them."""
        self._check_parameters()
        self._remember(ratings)
        how = self._preparation(ratings)
        n_jobs, seed = worker_count(self.n_jobs), self.random_state
        step = float(np.diff(ratings.scale.values).min())
        self.units_ = Units.of(ratings.values, step)
        weights: Mapping[str, float] = DEFAULTS if how.two_sided else FAST_DEFAULTS
        self.hold_out_rmse_: list[float] = []
        with one_blas_thread():  # threads run over users and items instead
            if self.learn == "hold-out" or (self.learn == "auto" and how.two_sided):
                weights, self.hold_out_rmse_ = learnt_weights(
                    ratings, self.units_, how, self.components, weights,
                    max_iter=self.learn_iter, seed=seed, n_jobs=n_jobs,
                )  # fmt: skip
            data = prepare(ratings, self.units_, how, seed, n_jobs)
            scales = TIME_SCALES if how.use_time else ()
            start = Layout.choose(data, scales, self.components, weights).start(weights)
            self.weights_ = start.as_dict()
            self.process_ = fit_process(data, start, seed, n_jobs)
            levels = ratings.levels[np.argsort(ratings.users, kind="stable")].astype(np.int64)
            self.likelihood_: tuple[Layer, float] | None = None
            if self.refit and how.two_sided:
                self._fit_layer(levels)
                likelihood = cross_fitted_likelihood(
                    self.process_, levels, ratings.scale.n_ranks, seed
                )
                self.likelihood_ = self.layer_, likelihood.typical
                self.process_ = refit_process(self.process_, likelihood, levels, seed + 1)
            self._fit_layer(levels)
        self.levels_ = levels
        self.known_users_ = ratings.user_counts > 0
        self.known_items_ = ratings.item_counts > 0
        self.titles_ = item_titles(ratings.item_table)
        self.folded_: dict[Any, FoldedUser] = {}
        self.first_stage_ = FirstStage()
        return self

    def predict(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """One rating a pair, by ``decision``: on the scale, or the expected one for "mean".

        Parameters
        ----------
        users, items : array-like
            Original ids, of equal length. Unknown users get the pooled model, unknown items
            the user's prior.
        timestamps : array-like, optional
            Seconds since 1970 at which the rating is given; 0 where unknown.
        """
        p = self.predict_proba(users, items, timestamps)
        return decide(p, self.decision, self.scale_.values)

    def predict_proba(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """One row a pair, one column a scale value in ascending order; rows sum to 1."""
        users, items, times = self._pairs(users, items, timestamps)
        scores = self._scores(users, items, times)
        user_codes, item_codes = self._codes(users, items)
        p = self.layer_.probabilities(scores, user_codes, item_codes)
        for folded, rows in self._folded_among(users):
            p[rows] = folded.probabilities(scores[rows], item_codes[rows], self.layer_)
        return p

    def predict_frame(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Predictions for a table with columns user, item and, if there, timestamp.

        Returns the pairs with the decided rating, the expected one, the probability of each
        scale value, and whether user and item were known.
        """
        return predict_pairs(self, pairs)

    def recommend(
        self,
        user: Any,
        n: int = 10,
        *,
        by: Literal["expected", "p_at_least", "lower_quantile"] = "expected",
        at_least: float | None = None,
        quantile: float = 0.25,
        candidates: Any = "all",
        n_candidates: int = 200,
        timestamp: int | None = None,
    ) -> pd.DataFrame:
        """The n items with the best distributions that the user has not rated.

        Parameters
        ----------
        user : id
            An unknown user gets what the pooled model recommends.
        n : int
        by : {"expected", "p_at_least", "lower_quantile"}
            Order by the expected rating, by the probability of ``at_least`` or more, or by the
            rating reached with probability ``1 - quantile`` (ties by the expected rating).
        at_least : float, optional
            A rating; by default the lowest of the top two fifths of the scale.
        quantile : float
        candidates : {"all", "implicit"} or array-like of item ids
            Items to choose from: all that somebody rated, those that an `ALSRanking` puts first
            (fitted when first asked for, and kept), or the ones given.
        n_candidates : int
            How many "implicit" puts forward.
        timestamp : int, optional
            When the ratings would be given.

        Returns
        -------
        DataFrame
            ``item``, ``value`` (what the list is ordered by) and ``expected``, best first.
        """
        if n < 1:
            raise ArgumentError(f"n must be at least 1, got {n}")
        self._check_fitted()
        order = Order(by, at_least, quantile)
        items = candidate_items(self, user, candidates, n_candidates)
        return best_items(self, user, items, n, order, timestamp)

    def explain(self, user: Any, item: Any, timestamp: int | None = None) -> Explanation:
        """The signed sum behind the score of a user for an item; see `Explanation`."""
        self._check_fitted()
        with one_blas_thread():
            return explain_pair(self, user, item, timestamp)

    def fold_in(self, ratings: Ratings) -> RatingPredictor:
        """A model that also knows the users of these ratings; nothing else changes.

        The coefficients of all other users stay; those of each user are solved for, with all
        kernels, and his thresholds are fitted. Takes milliseconds a user. A known user's
        ratings are replaced by these. Expected ratings are those of training with the user
        and the same weights to within 0.15 stars on average and 0.5 at most ("full"), 0.02
        and 0.1 ("fast"), as tested on the bundled ratings.
        """
        self._check_fitted()
        model = copy.copy(self)
        model.folded_ = dict(self.folded_)
        items = codes_of(self.item_ids_, ratings.item_ids)[ratings.items]
        for code in np.unique(ratings.users):
            rows = ratings.rows_of_user(int(code))
            rows = rows[items[rows] >= 0]
            times = None if ratings.timestamps is None else ratings.timestamps[rows]
            user = ratings.user_ids[code]
            known = int(codes_of(self.user_ids_, [user])[0])
            with one_blas_thread():
                model.folded_[user] = fold_in_user(
                    self, known, items[rows], ratings.levels[rows], times
                )
        return model

    def update(
        self, user: Any, item: Any, rating: float, timestamp: int | None = None
    ) -> RatingPredictor:
        """A model that knows one rating more (or another one for the same item)."""
        self._check_fitted()
        item_code = int(codes_of(self.item_ids_, [item])[0])
        level = int(self.scale_.ranks_of([rating])[0]) - 1
        items, levels, times = self._history(user)
        keep = items != item_code
        known = item_code >= 0
        items = np.append(items[keep], [item_code] * known).astype(np.int64)
        levels = np.append(levels[keep], [level] * known).astype(np.int64)
        times = np.append(times[keep], [timestamp or 0] * known)
        model = copy.copy(self)
        code = int(codes_of(self.user_ids_, [user])[0])
        with one_blas_thread():
            model.folded_ = self.folded_ | {user: fold_in_user(self, code, items, levels, times)}
        return model

    # ---- files ---------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata for `ordrec.persistence`."""
        return state_of_predictor(self, *self._identity())

    @classmethod
    def from_state(cls, arrays: Any, metadata: dict[str, Any]) -> Any:
        """The model of a file."""
        model = cls._from_identity(arrays, metadata)
        restore_predictor(model, arrays, metadata)
        model.first_stage_ = FirstStage()
        return model

    @classmethod
    def _checked(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return checked_parameters(parameters, [field.name for field in fields(cls)])

    # ---- the steps -----------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name, value, allowed in (
            ("preset", self.preset, ("full", "fast")),
            ("learn", self.learn, ("auto", "hold-out", "defaults")),
            ("use_time", self.use_time, ("auto", True, False)),
            ("use_side", self.use_side, ("auto", True, False)),
        ):
            if value not in allowed:
                raise ArgumentError(f"{name} must be one of {allowed}, got {value!r}")
        if self.learn_iter < 1:
            raise ArgumentError(f"learn_iter must be at least 1, got {self.learn_iter}")

    def _preparation(self, ratings: Ratings) -> Preparation:
        dated = ratings.timestamps is not None and bool((ratings.timestamps > 0).any())
        if self.use_time is True and not dated:
            raise ArgumentError("use_time=True, but the ratings have no times")
        how = Preparation(
            two_sided=self.preset == "full",
            use_time=dated and self.use_time is not False,
            use_side=self.use_side is not False,
        )
        return within_memory(ratings, how, self.max_memory)

    def _fit_layer(self, levels: np.ndarray) -> None:
        process, data = self.process_, self.process_.data
        self.layer_: Layer = fit_layer(
            process.left_out, levels, data.users, data.items,
            self.scale_.n_ranks, data.n_users, data.n_items,
        )  # fmt: skip

    def _known(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        user_codes, item_codes = self._codes(users, items)
        known_users = np.append(self.known_users_, False)[user_codes]
        for _, rows in self._folded_among(np.asarray(users)):
            known_users[rows] = True
        return known_users, np.append(self.known_items_, False)[item_codes]

    def _pairs(
        self, users: Any, items: Any, timestamps: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Arguments of a prediction as arrays, checked; times are 0 where unknown."""
        self._codes(users, items)
        users, items = np.asarray(users), np.asarray(items)
        times = np.zeros(users.size)
        if timestamps is not None:
            times = np.nan_to_num(np.asarray(timestamps, dtype=np.float64))
            if times.shape != users.shape:
                raise ArgumentError(
                    f"timestamps must pair up with users, got {times.size} for {users.size}"
                )
        return users, items, times

    def _scores(self, users: np.ndarray, items: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Latent scores, in the units of the process."""
        user_codes, item_codes = self._codes(users, items)
        data = self.process_.data
        user_codes = np.where(user_codes < 0, data.n_users - 1, user_codes)
        item_codes = np.where(item_codes < 0, data.n_items - 1, item_codes)
        with one_blas_thread():
            scores = self.process_.scores(user_codes, item_codes, times)
        for folded, rows in self._folded_among(users):
            scores[rows] = folded.scores(self.process_, item_codes[rows], times[rows])
        return scores

    def _folded_among(self, users: np.ndarray) -> list[tuple[FoldedUser, np.ndarray]]:
        """Those of the users who were folded in, and where they stand."""
        if not self.folded_:
            return []
        codes, distinct = pd.factorize(pd.Index(users))
        return [
            (self.folded_[user], np.flatnonzero(codes == k))
            for k, user in enumerate(distinct)
            if user in self.folded_
        ]

    def _history(self, user: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Item codes, levels and times of what a user has rated."""
        if user in self.folded_:
            folded = self.folded_[user]
            return folded.items, folded.levels, folded.times
        code = int(codes_of(self.user_ids_, [user])[0])
        side = self.process_.data.item_side
        if code < 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        own = slice(side.start[code], side.start[code + 1])
        return side.entry[own], self.levels_[own], side.time[own]


def fast_predictor(n_jobs: int | None = None, random_state: int = 0) -> RatingPredictor:
    """A `RatingPredictor` with the process over a user's items alone."""
    return RatingPredictor(preset="fast", n_jobs=n_jobs, random_state=random_state)
