"""Fit a predictor: learn the weights of the joint process, prepare and solve it, fit thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.rating.inner_parts import held_out_rows
from ordrec.rating.process.kernel.weights import (
    DEFAULTS,
    FAST_DEFAULTS,
    TIME_SCALES,
    Layout,
    Weights,
)
from ordrec.rating.process.preparation import Preparation, SideFeatures, prepare
from ordrec.rating.process.solve.covariance import JointData
from ordrec.rating.process.solve.fitting import (
    TOLERANCE,
    Process,
    cross_fitted_likelihood,
    fit_probit,
    fit_process,
    refit_process,
)
from ordrec.rating.process.solve.hold_out import learn_weights
from ordrec.rating.process.solve.posterior_mean import new_pairs
from ordrec.rating.thresholds.ordered_probit import OrderedProbit
from ordrec.rating.units import Units
from ordrec.runtime.progress import progress, report

__all__ = ["FittedPredictor", "Plan", "fit_in_part", "fit_predictor", "plan_predictor"]

# about how long the solution and the steps by likelihood take
SOLVING, NEWTON = 1.0, 1.5


@dataclass(frozen=True)
class Plan:
    """What is decided before the scores are solved for.

    Attributes
    ----------
    config : Preparation
    side : SideFeatures
    weights : mapping of str to float
        Weights of the components by name.
    errors : list of float
        RMSE on the inner hold-out at each evaluation of learning.
    inner : InnerData or None
        What was prepared of the ratings that were not held out; None if nothing was learnt.
    start : float64 array or None
        Dual coefficients of all ratings, in the order of `prepare`, to solve from: those of
        learning, and 0 where ratings were held out.
    """

    config: Preparation
    side: SideFeatures
    weights: Mapping[str, float]
    errors: list[float]
    inner: InnerData | None = None
    start: np.ndarray | None = None


@dataclass(frozen=True)
class InnerData:
    """The ingredients for a part of the ratings, in the units of all of them, and a solution."""

    data: JointData
    units: Units
    solution: np.ndarray


@dataclass(frozen=True)
class FittedPredictor:
    """The fitted parts of a `ProcessPredictor`, all of its users from training.

    Attributes
    ----------
    process : Process
        The Gaussian process, with the training ratings.
    probit : OrderedProbit
        Turns the process's scores into distributions.
    likelihood : (OrderedProbit, float) or None
        The probit before the refit and its typical scale, if there was a refit.
    units : Units
        Of the process's scores.
    scale : Scale
        Of the ratings.
    user_ids, item_ids : Index
        Original ids, by code.
    """

    process: Process
    probit: OrderedProbit
    likelihood: tuple[OrderedProbit, float] | None
    units: Units
    scale: Scale
    user_ids: pd.Index
    item_ids: pd.Index

    @cached_property
    def known_users(self) -> np.ndarray:
        """Which user codes have training ratings."""
        return self.process.data.item_side.sizes[:-1] > 0

    @cached_property
    def known_items(self) -> np.ndarray:
        """Which item codes have training ratings."""
        return np.bincount(self.process.data.items, minlength=len(self.item_ids)) > 0

    def history(self, code: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Item codes, levels and times of a user's training ratings; none for the code -1."""
        side = self.process.data.item_side
        own = slice(side.start[code], side.start[code + 1]) if code >= 0 else slice(0, 0)
        return side.entry[own], self.process.data.levels[own], side.time[own]

    def training_ratings(self) -> Ratings:
        """The ratings that the model was fitted to, by user, with the times that it used."""
        data = self.process.data
        times = data.item_side.time.astype(np.int64)
        return Ratings(
            data.users, data.items, data.levels,
            scale=self.scale, user_ids=self.user_ids, item_ids=self.item_ids,
            timestamps=times if times.any() else None,
        )  # fmt: skip


def plan_predictor(
    ratings: Ratings,
    side: SideFeatures,
    config: Preparation,
    max_iter: int,
    *,
    seed: int,
    n_jobs: int,
) -> Plan:
    """Learn the components' weights in at most ``max_iter`` iterations; with 0, the defaults."""
    plan = Plan(config, side, DEFAULTS if config.two_sided else FAST_DEFAULTS, [])
    if not max_iter:
        return plan
    units = units_of(ratings)
    return learnt_plan(ratings, units, plan, max_iter=max_iter, seed=seed, n_jobs=n_jobs)


def fit_in_part(part: Ratings, plan: Plan, *, seed: int, n_jobs: int) -> FittedPredictor:
    """A process without times for the ratings that are not held out, as far as a pool needs it.

    It is not solved again under the ordinal likelihood, and what a plan has prepared of these
    ratings is not prepared again.
    """
    config = replace(plan.config, use_time=False)
    if plan.inner is None:
        undated = replace(plan, config=config)
        return fit_predictor(part, undated, refit=False, seed=seed, n_jobs=n_jobs)
    data, units = plan.inner.data, plan.inner.units
    start = Layout.choose(data, (), config.components, plan.weights).start(plan.weights)
    with progress("scores"):
        process = fit_process(data, start, seed, n_jobs, start=plan.inner.solution)
        probit = fit_probit(process, part.scale.n_ranks)
    return FittedPredictor(process, probit, None, units, part.scale, part.user_ids, part.item_ids)


def fit_predictor(
    ratings: Ratings, plan: Plan, *, refit: bool, seed: int, n_jobs: int
) -> FittedPredictor:
    """Everything that is learnt from ratings, with the weights of a plan."""
    config, units = plan.config, units_of(ratings)
    refits = refit and config.two_sided
    whole = SOLVING + SOLVING * NEWTON * refits
    with progress("pair sums"):
        data, start = weighted_data(
            ratings, plan.side, units, config, plan.weights, seed=seed, n_jobs=n_jobs
        )
    report(0.0, whole, span=SOLVING)
    with progress("scores"):
        process = fit_process(data, start, seed, n_jobs, start=plan.start, final=not refits)
        probit = fit_probit(process, ratings.scale.n_ranks)
    likelihood = None
    if refits:
        report(SOLVING, whole, span=SOLVING * NEWTON)
        with progress("scores by the ordinal likelihood"):
            cross_fitted = cross_fitted_likelihood(process, ratings.scale.n_ranks, seed)
            likelihood = probit, cross_fitted.typical
            process = refit_process(process, cross_fitted, seed + 1)
            probit = fit_probit(process, ratings.scale.n_ranks)
    return FittedPredictor(
        process, probit, likelihood, units, ratings.scale, ratings.user_ids, ratings.item_ids
    )


def units_of(ratings: Ratings) -> Units:
    """The units in which the process sees ratings."""
    return Units.of(ratings.values, float(np.diff(ratings.scale.values).min()))


def weighted_data(
    ratings: Ratings,
    side: SideFeatures,
    units: Units,
    config: Preparation,
    weights: Mapping[str, float],
    *,
    seed: int,
    n_jobs: int,
) -> tuple[JointData, Weights]:
    """Prepare ratings, and choose the weights of the components that these ratings allow."""
    data = prepare(ratings, side, units, config, seed, n_jobs)
    scales = TIME_SCALES if config.use_time else ()
    return data, Layout.choose(data, scales, config.components, weights).start(weights)


def learnt_plan(
    ratings: Ratings, units: Units, plan: Plan, *, max_iter: int, seed: int, n_jobs: int
) -> Plan:
    """A plan with weights from an inner hold-out of the ratings."""
    config = plan.config
    held = held_out_rows(ratings, seed)
    inner, outer = ratings.select(~held), ratings.select(held)
    if min(inner.n_ratings, outer.n_ratings) < 2:
        return plan
    with progress("pair sums"):
        data, start = weighted_data(
            inner, plan.side, units, config, plan.weights, seed=seed, n_jobs=n_jobs
        )
    time = None
    if config.use_time and outer.timestamps is not None:
        time = outer.timestamps.astype(np.float64)
    pairs = new_pairs(data, outer.users, outer.items, time)
    learned = learn_weights(
        data, pairs, units.inward(outer.values), start,
        max_iter=max_iter, tol=TOLERANCE, n_jobs=n_jobs,
    )  # fmt: skip
    errors = [error / units.scale for error in learned.errors]
    known = ~held[np.lexsort((ratings.items, ratings.users))]
    start_of_all = np.zeros(ratings.n_ratings)
    start_of_all[known] = learned.solution
    return replace(
        plan, weights=learned.weights.as_dict(), errors=errors,
        inner=InnerData(data, units, learned.solution), start=start_of_all,
    )  # fmt: skip
