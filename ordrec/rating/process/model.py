"""`ProcessPredictor`: rating distributions of the joint Gaussian process."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.models.base import IDENTITY, IdMappedModel, codes_of, fits, folds_in, times_of
from ordrec.models.further_ratings import paired_lists
from ordrec.ordinal.decisions import Decision, decide
from ordrec.rating.intervals import DistributionModel
from ordrec.rating.process.explain import ScoreExplanation, explain_pair
from ordrec.rating.process.fit import Plan, fit_in_part, fit_predictor, plan_predictor
from ordrec.rating.process.fold_in import (
    FoldedUser,
    ResolvedPairs,
    fold_in_user,
    folded_among,
)
from ordrec.rating.process.preparation import Preparation, SideFeatures, within_memory
from ordrec.rating.process.solve.fitting import Process
from ordrec.rating.process.stored import StoredFit, StoredUsers
from ordrec.rating.thresholds.ordered_probit import OrderedProbit
from ordrec.rating.units import Units
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.runtime.progress import progress, report
from ordrec.storage.schema import As, ByName, Names, Numbers

__all__ = ["ProcessPredictor"]

# about how long the weights of "full" and all the rest take, relative to each other
LEARNING, SOLVING = 5.0, 4.0


@dataclass(eq=False)
class ProcessPredictor(IdMappedModel, DistributionModel):
    """Predict rating distributions: a Gaussian process for the score, thresholds for each user.

    The score of a user for an item is the sum of a process over the user's items, a process over
    the item's users and a process shared by all, solved jointly; every kernel leaves out the user
    (or item) it is used for. A hierarchical ordered probit turns the score into a distribution.

    Parameters
    ----------
    preset : {"full", "fast"}
        "fast" has only the process over a user's items, solved in closed form.
    components : collection of str, optional
        Names of the kernel components to use, such as "item.residual" or
        "product.implicit*implicit"; all that the ratings allow when omitted.
    use_time : {"auto", True, False}
        Whether ratings close in time are similar; "auto" means if the ratings have times.
        Predictions for a given time become more accurate. For predictions without a time the
        model keeps separate coefficients, with errors no larger than those of a model fitted with
        False (the log-loss is a little higher, as thresholds are fitted to dated scores).
    use_side : {"auto", True, False}
        Whether the columns of the ratings' side tables are used.
    side_kinds : mapping of str to str, optional
        Kinds of side columns: "numeric", "categorical", "labels", "text" or "ignore"; those of
        the other columns are inferred, see `ordrec.features.SideEncoder`.
    decision : {"mean", "median", "mode"} or cost matrix
        How `predict` turns a distribution into one rating: by default the expected rating, a float
        with the least squared error; the median has the least absolute error, the mode the fewest
        errors.
    learn : {"auto", "hold-out", "defaults"}
        Whether the weights of the components are learnt on an inner hold-out of the ratings, or
        the default weights are used. "auto" learns for "full" and not for "fast".
    max_iter : int
        Largest number of iterations of learning these weights.
    refit : bool
        Whether "full" is solved once more under the ordinal likelihood (Laplace's method):
        somewhat more accurate, for a few seconds more on 100 000 ratings.
    n_jobs : int or None
        Threads; -1 for all cores. The results do not depend on it.
    random_state : int
        Seed of the folds, the hold-out and the probes.
    max_memory : float
        Gigabytes that a fit may take, by an estimate that counts the pairs of users and of items
        with ratings in common. If "full" would take more, "fast" is fitted in its place,
        with a warning; if that takes more too, an error is raised.

    Attributes
    ----------
    weights_ : dict
        Weight of each component in use, and smoothing counts.
    hold_out_rmse_ : list of float
        RMSE on the inner hold-out at each evaluation of learning.
    side_columns_ : dict
        For "user" and "item": what each side column is used as, or why it is ignored.
    fitted_ : FittedPredictor
        Everything that was learnt from the training ratings.
    process_, layer_ : Process and OrderedProbit
        The Gaussian process of the score, and the thresholds.
    likelihood_ : (OrderedProbit, float) or None
        The ordered probit before the refit and its typical scale, for users who are folded in.

    Examples
    --------
    >>> from ordrec.datasets import load_dataset
    >>> ratings = load_dataset("ml-latest-small-2016")
    >>> some = ratings.select((ratings.users < 40) & (ratings.items < 400)).compact()
    >>> model = ProcessPredictor(preset="fast").fit(some)
    >>> user, item = some.user_ids[0], some.item_ids[0]
    >>> model.predict_proba([user], [item]).shape
    (1, 10)
    >>> float(model.predict_proba([user], [item]).sum().round(6))
    1.0
    """

    stored: ClassVar = IDENTITY | {
        "fitted_": As(StoredFit, all_users="users+1", all_items="items+1"),
        "folded_": As(StoredUsers),
        "hold_out_rmse_": Numbers(low=0.0),
        "side_columns_": ByName(Names(values=True), "user", "item"),
    }

    preset: Literal["full", "fast"] = "full"
    components: Collection[str] | None = None
    use_time: bool | Literal["auto"] = "auto"
    use_side: bool | Literal["auto"] = "auto"
    side_kinds: Mapping[str, str] | None = None
    decision: Decision = "mean"
    learn: Literal["auto", "hold-out", "defaults"] = "auto"
    max_iter: int = 4
    refit: bool = True
    n_jobs: int | None = None
    random_state: int = 0
    max_memory: float = 8.0
    search_space: ClassVar[dict[str, Any]] = {
        "preset": ["full", "fast"],
        "learn": ["hold-out", "defaults"],
        "refit": [True, False],
    }
    takes_long = True

    @fits
    def fit(self, ratings: Ratings) -> ProcessPredictor:
        """Learn from ratings; side tables and times are taken from them."""
        learning = LEARNING if self.preset == "full" else 0.0
        report(0.0, learning + SOLVING, span=learning)
        plan = self.plan(ratings)
        report(learning, learning + SOLVING, span=SOLVING)
        return self.follow(plan, ratings)

    def plan(self, ratings: Ratings) -> Plan:
        """Decide what `fit` solves: features of side data, what fits into memory, and weights."""
        self._check_parameters()
        side = self._side_features(ratings)
        config = within_memory(ratings, side, self._preparation(ratings), self.max_memory)
        learn = self.learn == "hold-out" or (self.learn == "auto" and config.two_sided)
        # threads run over users and items instead of within BLAS
        with progress("weights of the process"), one_blas_thread():
            return plan_predictor(
                ratings, side, config, self.max_iter if learn else 0,
                seed=self.random_state, n_jobs=worker_count(self.n_jobs),
            )  # fmt: skip

    def follow(self, plan: Plan, ratings: Ratings) -> ProcessPredictor:
        """Fit all the rest to the ratings of a plan."""
        self._remember(ratings)
        with progress("process"), one_blas_thread():
            self.fitted_ = fit_predictor(
                ratings,
                plan,
                refit=self.refit,
                seed=self.random_state,
                n_jobs=worker_count(self.n_jobs),
            )
        self.hold_out_rmse_ = plan.errors
        self.side_columns_ = plan.side.columns
        self.folded_: dict[Any, FoldedUser] = {}
        return self

    def follow_in_part(self, plan: Plan, part: Ratings) -> ProcessPredictor:
        """A new model for pairs without times, with the weights of a plan.

        The part is that of the ratings on which a plan's weights were not judged.
        """
        model = replace(self)
        model._remember(part)
        if plan.inner is None:
            plan = replace(plan, side=self._side_features(part))
        with progress("process"), one_blas_thread():
            model.fitted_ = fit_in_part(
                part, plan, seed=self.random_state, n_jobs=worker_count(self.n_jobs)
            )
        model.folded_ = {}
        return model

    # ---- the fitted parts --------------------------------------------------------------------

    @property
    def process_(self) -> Process:
        """The fitted Gaussian process."""
        return self.fitted_.process

    @property
    def layer_(self) -> OrderedProbit:
        """The fitted ordered probit."""
        return self.fitted_.probit

    @property
    def likelihood_(self) -> tuple[OrderedProbit, float] | None:
        """The ordered probit before the refit and its typical scale."""
        return self.fitted_.likelihood

    @property
    def units_(self) -> Units:
        """Units of the process's scores."""
        return self.fitted_.units

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each component in use, and smoothing counts."""
        return self.fitted_.process.K.weights.as_dict()

    @property
    def levels_(self) -> np.ndarray:
        """Zero-based ranks of the training ratings, ordered by user."""
        return self.fitted_.process.data.levels

    # ---- predictions -------------------------------------------------------------------------

    def predict(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Return one rating per pair: the expected one, or a scale value by another ``decision``.

        Parameters
        ----------
        users, items : array-like
            Original ids, of equal length. Unknown users get the predictions of the pooled
            model, unknown items the user's prior.
        timestamps : array-like, optional
            Seconds since 1970 at which the rating is given; 0 where unknown.
        """
        p = self.predict_proba(users, items, timestamps)
        return decide(p, self.decision, self.scale_.values)

    def predict_proba(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """One row per pair, one column per scale value in ascending order; rows sum to 1."""
        pairs = self._resolve(users, items, timestamps)
        scores, probit = self._scores(pairs), self.fitted_.probit
        p = probit.probabilities(scores, pairs.users, pairs.items)
        for folded, rows in pairs.folded:
            p[rows] = folded.probabilities(scores[rows], pairs.items[rows], probit)
        return p

    def explain(self, user: Any, item: Any, timestamp: int | None = None) -> ScoreExplanation:
        """Explain the score of a user for an item by a signed sum; see `ScoreExplanation`."""
        user_codes, item_codes = self._codes([user], [item])
        u, i, folded = int(user_codes[0]), int(item_codes[0]), self.folded_.get(user)
        time = times_of([timestamp or 0], 1)[0]
        with one_blas_thread():
            return explain_pair(self.fitted_, u, i, time, folded)

    @folds_in
    def fold_in(self, ratings: Ratings, *, warn: bool = True) -> ProcessPredictor:
        """Return a model that also knows the users of these ratings; nothing else changes.

        The coefficients of all other users are kept; those of each user are solved for, with all
        kernels, and their thresholds are fitted. Takes milliseconds per user. The ratings of a
        known user are replaced by these. Expected ratings differ from those of training with the
        user and the same weights by 0.15 stars on average and 0.5 at most ("full"), or by 0.02
        and 0.1 ("fast"), as tested on the bundled ratings.

        Parameters
        ----------
        ratings : Ratings
            Those of unknown items are left out.
        warn : bool
            Whether to warn of ratings of unknown items.
        """
        self._check_fitted()
        ratings = ratings.on_scale(self.scale_)
        items = codes_of(self.item_ids_, ratings.item_ids)[ratings.items]
        if warn:
            self._warn_of_unknown_items(ratings.item_ids.take(ratings.items), items)
        model = copy.copy(self)
        model.folded_ = dict(self.folded_)
        user_codes = codes_of(self.user_ids_, ratings.user_ids)
        for code in np.unique(ratings.users):
            rows = ratings.rows_of_user(int(code))
            rows = rows[items[rows] >= 0]
            times = None if ratings.timestamps is None else ratings.timestamps[rows]
            with one_blas_thread():
                model.folded_[ratings.user_ids[code]] = fold_in_user(
                    self.fitted_, int(user_codes[code]), items[rows], ratings.levels[rows], times
                )
        return model

    def update(
        self, user: Any, item: Any, rating: Any, timestamp: Any = None, *, warn: bool = True
    ) -> ProcessPredictor:
        """Return a model with further ratings (or new ones for items already rated).

        Parameters
        ----------
        user, item, rating, timestamp
            Single ones or sequences, as those of `RatingPredictor.update`. Ratings of unknown
            items are left out.
        warn : bool
            Whether to warn of ratings of unknown items.
        """
        self._check_fitted()
        users, items, values, times = paired_lists(user, item, rating, timestamp)
        if warn:
            self._warn_of_unknown_items(items, codes_of(self.item_ids_, items))
        model = self
        for row in zip(users, items, values, times, strict=True):
            model = model._with_rating(*row)
        return model

    def _with_rating(self, user: Any, item: Any, rating: float, timestamp: int) -> ProcessPredictor:
        user_codes, item_codes = self._codes([user], [item])
        code, item_code = int(user_codes[0]), int(item_codes[0])
        level = int(self.scale_.ranks_of([rating])[0]) - 1
        items, levels, times = self._history(user)
        keep = items != item_code
        known = item_code >= 0
        items = np.append(items[keep], [item_code] * known).astype(np.int64)
        levels = np.append(levels[keep], [level] * known).astype(np.int64)
        times = np.append(times[keep], [timestamp] * known)
        model = copy.copy(self)
        with one_blas_thread():
            folded = fold_in_user(self.fitted_, code, items, levels, times)
        model.folded_ = self.folded_ | {user: folded}
        return model

    # ---- files ---------------------------------------------------------------------------

    def check_stored(self) -> None:
        """Check the parameters against what was fitted."""
        self._check_decision(self.decision)
        self._check_parameters()
        # "full" is one-sided where memory was short; "fast" is never two-sided
        if self.process_.data.two_sided and self.preset == "fast":
            raise ModelFileError("preset 'fast' has a process over users")
        self.hold_out_rmse_ = list(self.hold_out_rmse_)

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
        if self.max_iter < 1:
            raise ArgumentError(f"max_iter must be at least 1, got {self.max_iter}")

    def _side_features(self, ratings: Ratings) -> SideFeatures:
        if self.use_side is False:
            return SideFeatures()
        return SideFeatures.of(ratings, self.side_kinds)

    def _preparation(self, ratings: Ratings) -> Preparation:
        dated = ratings.timestamps is not None and bool((ratings.timestamps > 0).any())
        if self.use_time is True and not dated:
            raise ArgumentError(
                "use_time=True, but the ratings have no times", parameter="use_time"
            )
        return Preparation(
            two_sided=self.preset == "full",
            use_time=dated and self.use_time is not False,
            components=self.components,
        )

    def _known(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Whether each user and each item has ratings."""
        pairs = self._resolve(users, items, None)
        known_users = np.append(self.fitted_.known_users, False)[pairs.users]
        for folded, rows in pairs.folded:
            known_users[rows] = folded.items.size > 0
        return known_users, np.append(self.fitted_.known_items, False)[pairs.items]

    def _folded_ids(self, users: Any) -> bool:
        return any(user in self.folded_ for user in users) if self.folded_ else False

    def _resolve(self, users: Any, items: Any, timestamps: Any) -> ResolvedPairs:
        """The arguments of a prediction, checked, with codes in place of ids."""
        user_codes, item_codes = self._codes(users, items)
        times = times_of(timestamps, user_codes.size)
        return ResolvedPairs(user_codes, item_codes, times, folded_among(self.folded_, users))

    def _scores(self, pairs: ResolvedPairs) -> np.ndarray:
        """Latent scores, in the units of the process."""
        process = self.fitted_.process
        users = np.where(pairs.users < 0, process.data.n_users - 1, pairs.users)
        items = np.where(pairs.items < 0, process.data.n_items - 1, pairs.items)
        with one_blas_thread():
            scores = process.scores(users, items, pairs.times)
        for folded, rows in pairs.folded:
            scores[rows] = folded.scores(process, items[rows], pairs.times[rows])
        return scores

    def known_ratings(self) -> Ratings:
        """The ratings of training, and those that were folded in, without side tables."""
        self._check_fitted()
        training = self.fitted_.training_ratings()
        if not self.folded_:
            return training
        folded_ids = pd.Index(list(self.folded_))
        others = training.select(~np.isin(training.users, codes_of(training.user_ids, folded_ids)))
        frames = [others.to_frame()[["user", "item", "rating"]]]
        for user, folded in self.folded_.items():
            items = training.item_ids.take(folded.items)
            values = training.scale.values[folded.levels]
            frames.append(pd.DataFrame({"user": user, "item": items, "rating": values}))
        both = pd.concat([frame for frame in frames if len(frame)])
        user_ids = training.user_ids.append(folded_ids.difference(training.user_ids, sort=False))
        return Ratings(
            codes_of(user_ids, both["user"]),
            codes_of(training.item_ids, both["item"]),
            training.scale.ranks_of(both["rating"].to_numpy()) - 1,
            scale=training.scale,
            user_ids=user_ids,
            item_ids=training.item_ids,
        )

    def _history(self, user: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Item codes, levels and times of a user's ratings."""
        if user in self.folded_:
            folded = self.folded_[user]
            return folded.items, folded.levels, folded.times
        return self.fitted_.history(int(codes_of(self.user_ids_, [user])[0]))
