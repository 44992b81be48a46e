"""`RatingPredictor`: calibrated rating distributions for every user and item."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.lists.explanation import Influence
from ordrec.lists.groups import ItemGroups
from ordrec.lists.listing import RatingListingModel
from ordrec.models.base import IDENTITY, drop_weights, fits, folds_in, times_of
from ordrec.ordinal.decisions import Decision, decide
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.rating.inner_parts import inner_parts
from ordrec.rating.intervals import DistributionModel
from ordrec.rating.pool import EQUAL, LIMIT, PoolWeights, learnt_pool, pooled
from ordrec.rating.presets import chosen_preset
from ordrec.rating.process.fit import Plan
from ordrec.rating.process.model import ProcessPredictor
from ordrec.runtime.progress import progress, report
from ordrec.storage.schema import Member, Numbers, Optional, Parts, Text, Texts

__all__ = ["RatingPredictor", "fast_predictor"]

log = logging.getLogger(__name__)

UNLIMITED = 1e6  # gigabytes
PROCESS = "the process of RatingPredictor, unlike its factors,"
# about how long factors, weights of the process, pool and process take, relative to each other
SHARES = {
    "full": (2.0, 4.5, 3.0, 3.5),
    "fast": (2.0, 0.0, 1.5, 1.0),
    "large": (1.0, 0.0, 0.0, 0.0),
}


@dataclass(eq=False)
class RatingPredictor(RatingListingModel, DistributionModel):
    """Predict rating distributions: a Gaussian process pooled with ordinal factors.

    The process (`ProcessPredictor`) knows each rating of a user and of an item; the factors
    (`OrdinalFactors`) know what they have in common. They err differently, so that their pool,
    whose weights are learnt on an inner hold-out, is better than either. Users and items that the
    process has not seen are predicted by the factors alone.

    Parameters
    ----------
    preset : {"auto", "full", "fast", "large"}
        "full" pools the joint process over items, users and all ratings; "fast" only that over a
        user's items, which has a closed form; "large" is the factors alone, for data of any
        size. "auto" is "full" up to 300 thousand ratings and "fast" beyond, or the next smaller
        one where that would take more than 3 GB; ``preset_`` says which it is.
    components : collection of str, optional
        Names of the kernel components of the process to use, such as "item.residual" or
        "product.implicit*implicit"; all that the ratings allow when omitted.
    use_time : {"auto", True, False}
        Whether ratings close in time are similar; "auto" means if the ratings have times.
        Predictions for a given time become more accurate; those without a time come from
        coefficients fitted without times.
    use_side : {"auto", True, False}
        Whether the columns of the ratings' side tables are used.
    side_kinds : mapping of str to str, optional
        Kinds of side columns: "numeric", "categorical", "labels", "text" or "ignore"; those of
        other columns are inferred, see `ordrec.features.SideEncoder`.
    decision : {"mean", "median", "mode"} or cost matrix
        How `predict` turns a distribution into one rating: by default the expected rating, a float
        with the least squared error; the median has the least absolute error, the mode the fewest
        errors.
    learn : {"auto", "hold-out", "defaults"}
        Whether the weights of the process's components are learnt on an inner hold-out of the
        ratings, or the default weights are used. "auto" learns for "full" and not for "fast".
    max_iter : int
        Largest number of iterations of learning these weights.
    refit : bool
        Whether "full" is solved once more under the ordinal likelihood (Laplace's method):
        somewhat more accurate, for a few seconds more on 100 000 ratings.
    n_jobs : int or None
        Threads; all cores by default. The results do not depend on it.
    random_state : int
        Seed of the folds, the hold-out and the probes.
    max_memory : float
        Gigabytes that a fit may take beside the ratings, by an estimate that counts the pairs of
        users and of items with ratings in common; measured by ``pipelines/speed/bench_memory.py``
        it is right to about a seventh. A preset that would take more is replaced by a smaller one,
        with a warning, and where even "large" would, an error says what it takes.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    preset_ : {"full", "fast", "large"}
        The preset that was fitted; what "auto" has chosen.
    process_model_ : ProcessPredictor or None
    factors_ : OrdinalFactors
    pool_weights_ : (float, float)
        Exponents of process and factors in the pool.
    side_columns_ : dict
        For "user" and "item": what each side column is used as, or why it is ignored.
    titles_ : list of str or None
        Titles of the items, if the ratings' item table has them.

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

    stored: ClassVar = IDENTITY | {
        "preset_": Text("full", "fast", "large"),
        "pool_weights_": Numbers(2, low=0.0, high=LIMIT),
        "titles_": Optional(Texts("items")),
        "process_model_": Optional(Member(ProcessPredictor)),
        "item_groups_": Parts(ItemGroups),
        "factors_": Member(OrdinalFactors, *IDENTITY, "titles_", "item_groups_"),
    }

    preset: Literal["auto", "full", "fast", "large"] = "auto"
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
    verbose: bool | None = field(default=None, repr=False)
    search_space: ClassVar[dict[str, Any]] = {
        "preset": ["full", "fast", "large"],
        "learn": ["hold-out", "defaults"],
        "refit": [True, False],
    }
    takes_long = True
    _counts_weights = True  # its factors do
    _notices_events = True  # likewise

    @fits
    def fit(self, ratings: Ratings) -> RatingPredictor:
        """Learn from ratings; side tables and times are taken from them.

        The factors count ratings by their weights, the process counts each as 1, with a warning.
        """
        self._check_parameters()
        self._remember(ratings)
        self.preset_ = chosen_preset(self.preset, ratings, self.max_memory)
        log.info("preset %s for %d ratings", self.preset_, ratings.n_ratings)
        self.process_model_, self.pool_weights_ = None, (0.0, 1.0)
        chosen = f'preset "{self.preset_}"'
        self._report(0, chosen)
        self.factors_ = self._factors().fit(ratings)
        if self.preset_ != "large":
            process, unweighted = self._process(), drop_weights(ratings, PROCESS)
            self._report(1, chosen)
            plan = process.plan(unweighted)
            # the pool first, whose process is gone then
            self._report(2, chosen)
            with progress("weights of the pool"):
                self.pool_weights_ = self._learnt_pool(ratings, process, plan)
            plan = replace(plan, inner=None)  # before the process for all ratings takes memory
            self._report(3, chosen)
            self.process_model_ = process.follow(plan, unweighted)
        self.side_columns_ = self.factors_.side_columns_
        self.titles_, self.item_groups_ = self.factors_.titles_, self.factors_.item_groups_
        return self

    def _process(self) -> ProcessPredictor:
        """The process, unfitted."""
        own = {each.name for each in fields(ProcessPredictor)} - {"preset", "max_memory"}
        parameters = {name: getattr(self, name) for name in own}
        return ProcessPredictor(
            preset=self.preset_,  # type: ignore[arg-type]
            max_memory=UNLIMITED,  # checked before
            **parameters,
        )

    def _factors(self) -> OrdinalFactors:
        """The factors, unfitted."""
        return OrdinalFactors(
            use_time=self.use_time,
            use_side=self.use_side,
            side_kinds=self.side_kinds,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _report(self, step: int, text: str = "") -> None:
        """Say that a step of `SHARES` begins."""
        shares = SHARES[self.preset_]
        report(sum(shares[:step]), sum(shares), text, span=shares[step])

    def _learnt_pool(self, ratings: Ratings, process: ProcessPredictor, plan: Plan) -> PoolWeights:
        """Exponents of the pool, from fits to a part of the ratings.

        They are those of predictions without a time; for given times, others were hardly better.
        """
        # the split on which the process learns its weights; new users and items are left to the
        # factors anyway
        inner, outer = inner_parts(ratings, self.random_state)
        if min(inner.n_ratings, outer.n_ratings) < 2:
            return EQUAL
        report(0, 2)
        # one direction is enough to learn a weight, at half the time
        factors = replace(self._factors(), use_time=False, symmetric=False)
        factors = factors.fit_with_kinds(inner, self.factors_.event_kinds_)
        report(1, 2)
        members = process.follow_in_part(plan, inner), factors
        pairs = outer.user_ids.take(outer.users), outer.item_ids.take(outer.items)
        first, second = (model.predict_proba(*pairs) for model in members)
        weights = learnt_pool(first, second, outer.levels)
        log.info("weights of process and factors: %.3f and %.3f", *weights)
        return weights

    # ---- predictions -------------------------------------------------------------------------

    def predict(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Return one rating per pair: the expected one, or a scale value by another ``decision``.

        Parameters
        ----------
        users, items : array-like
            Original ids, of equal length. Unknown ones are predicted as the average user or
            item, with the variance of somebody of whom nothing is known.
        timestamps : array-like, optional
            Seconds since 1970 at which the rating is given; 0 where unknown.
        """
        p = self.predict_proba(users, items, timestamps)
        return decide(p, self.decision, self.scale_.values)

    def predict_proba(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """One row per pair, one column per scale value in ascending order; rows sum to 1."""
        codes, _ = self._codes(users, items)
        times = times_of(timestamps, codes.size)
        p = self.factors_.predict_proba(users, items, times)
        if self.process_model_ is None:
            return p
        users, items = pd.Index(users), pd.Index(items)
        known = np.flatnonzero(np.logical_and(*self.process_model_._known(users, items)))
        own = self.process_model_.predict_proba(users[known], items[known], times[known])
        p[known] = pooled(own, p[known], self.pool_weights_)
        return p

    # ---- new users, items and ratings ----------------------------------------------------------

    @folds_in
    def fold_in(self, ratings: Ratings) -> RatingPredictor:
        """Return a model that also knows the users and items of these ratings.

        Nothing else changes. Each user's own part of both models is solved for, in milliseconds
        per user; new items, and users and items of whom only side data are known, join the
        factors. The ratings of a known user are replaced by these; `update` adds to them. Ratings
        are read by value on the model's scale.
        """
        self._check_fitted()
        own = ratings.on_scale(self.scale_)
        process, factors = self.process_model_, self.factors_
        if process is not None:
            # beside factors, which take in new items, the process need not warn of them
            alone = factors is None
            process = process.fold_in(own if alone else drop_weights(own, PROCESS), warn=alone)
        if factors is not None:
            factors = factors.fold_in(own)
        return self._with_models(process, factors)

    def update(self, user: Any, item: Any, rating: Any, timestamp: Any = None) -> RatingPredictor:
        """Return a model with further ratings (or new ones for items already rated).

        Parameters
        ----------
        user, item : id, or sequence of ids
            New users and items are added.
        rating : float or sequence of floats
        timestamp : int or sequence of int, optional
            In seconds since 1970.
        """
        self._check_fitted()
        process, factors = self.process_model_, self.factors_
        if process is not None:
            process = process.update(user, item, rating, timestamp, warn=factors is None)
        if factors is not None:
            factors = factors.update(user, item, rating, timestamp)
        return self._with_models(process, factors)

    @property
    def held_out_(self) -> HeldOut | None:
        """Ratings that `fit_scan` left out."""
        return self.factors_.held_out_

    def _with_models(
        self, process: ProcessPredictor | None, factors: OrdinalFactors | None
    ) -> RatingPredictor:
        """A copy with these models in place of its own."""
        model = copy.copy(self)
        model.process_model_ = process
        if factors is not None:
            model.factors_ = factors
            model.user_ids_, model.item_ids_ = factors.user_ids_, factors.item_ids_
            model.titles_, model.item_groups_ = factors.titles_, factors.item_groups_
        return model

    # ---- files ---------------------------------------------------------------------------

    def check_stored(self) -> None:
        """Check that the models fit together."""
        self._check_decision(self.decision)
        preset = self.preset_
        self._check_parameters()
        self.preset_ = preset
        process = self.process_model_
        if process is not None and process.scale_ != self.scale_:
            raise ModelFileError("its process is of another scale")
        if (preset == "large") != (process is None):
            raise ModelFileError(f"preset {preset!r} does not fit its models")
        self.side_columns_ = self.factors_.side_columns_

    # ---- the steps -----------------------------------------------------------------------

    def _check_parameters(self) -> None:
        presets = ("auto", "full", "fast", "large")
        if self.preset not in presets:
            raise ArgumentError(f"preset must be one of {presets}, got {self.preset!r}")
        self.preset_ = "full"
        self._process()._check_parameters()

    def _known(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Whether each user and each item has ratings."""
        user_codes, item_codes = self._codes(users, items)
        known = self.factors_.known_ratings()
        return (
            np.append(known.user_counts > 0, False)[user_codes],
            np.append(known.item_counts > 0, False)[item_codes],
        )

    def known_ratings(self) -> Ratings:
        """The ratings of training, and those that were folded in, without side tables."""
        self._check_fitted()
        return self.factors_.known_ratings()

    def history_of(self, user: Any) -> tuple[np.ndarray, np.ndarray]:
        """Item codes and levels of a user's ratings; none for an unknown user."""
        self._check_fitted()
        return self.factors_.history_of(user)

    def _listable_items(self) -> np.ndarray:
        return self.factors_._listable_items()

    def _influence(self) -> Influence | None:
        return self.factors_._influence()

    def _similarity(self, known: Ratings, code: int) -> np.ndarray:
        return self.factors_._similarity(known, code)


def fast_predictor(n_jobs: int | None = None, random_state: int = 0) -> RatingPredictor:
    """A `RatingPredictor` with preset "fast": the process over a user's items, and factors."""
    return RatingPredictor(preset="fast", n_jobs=n_jobs, random_state=random_state)
