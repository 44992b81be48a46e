"""Fit a predictor: prepare the joint process, learn its weights, solve it, fit thresholds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ordrec.progress import report
from ordrec.ratings import Ratings
from ordrec.recommend.process.covariance import JointData
from ordrec.recommend.process.fitting import (
    TOLERANCE,
    cross_fitted_likelihood,
    fit_probit,
    fit_process,
    refit_process,
)
from ordrec.recommend.process.hold_out import learn_weights
from ordrec.recommend.process.posterior_mean import new_pairs
from ordrec.recommend.process.weights import DEFAULTS, FAST_DEFAULTS, TIME_SCALES, Layout, Weights
from ordrec.recommend.process_model.fitted import FittedPredictor
from ordrec.recommend.process_model.preparation import Preparation, prepare
from ordrec.recommend.process_model.side_features import SideFeatures
from ordrec.recommend.units import Units

__all__ = ["fit_predictor"]

HELD_OUT = 0.15

# about how long an iteration of learning, the solution and the steps by likelihood take
LEARNING, SOLVING, NEWTON = 1.0, 1.5, 1.5


def fit_predictor(
    ratings: Ratings,
    side: SideFeatures,
    config: Preparation,
    learn_iter: int,
    *,
    refit: bool,
    seed: int,
    n_jobs: int,
    weights: Mapping[str, float] | None = None,
) -> tuple[FittedPredictor, list[float]]:
    """Everything that is learnt from ratings, and the RMSE of each evaluation of learning.

    The weights of the components are learnt in ``learn_iter`` iterations, from the given ones or
    the defaults on; with 0 iterations they stay.
    """
    units = Units.of(ratings.values, float(np.diff(ratings.scale.values).min()))
    by_name = weights or (DEFAULTS if config.two_sided else FAST_DEFAULTS)
    errors: list[float] = []
    refits = refit and config.two_sided
    shares = [LEARNING * learn_iter, SOLVING, SOLVING * NEWTON * refits]
    report(0.0, sum(shares), "weights of the components", span=shares[0])
    if learn_iter:
        by_name, errors = learnt_weights(
            ratings, side, units, config, by_name, max_iter=learn_iter, seed=seed, n_jobs=n_jobs
        )
    data, start = weighted_data(ratings, side, units, config, by_name, seed=seed, n_jobs=n_jobs)
    report(shares[0], sum(shares), "scores")
    process = fit_process(data, start, seed, n_jobs)
    probit = fit_probit(process, ratings.scale.n_ranks)
    likelihood = None
    if refits:
        report(shares[0] + shares[1], sum(shares), "scores by the ordinal likelihood")
        cross_fitted = cross_fitted_likelihood(process, ratings.scale.n_ranks, seed)
        likelihood = probit, cross_fitted.typical
        process = refit_process(process, cross_fitted, seed + 1)
        probit = fit_probit(process, ratings.scale.n_ranks)
    return FittedPredictor(
        process, probit, likelihood, units, ratings.scale, ratings.user_ids, ratings.item_ids
    ), errors


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


def learnt_weights(
    ratings: Ratings,
    side: SideFeatures,
    units: Units,
    config: Preparation,
    defaults: Mapping[str, float],
    *,
    max_iter: int,
    seed: int,
    n_jobs: int,
) -> tuple[dict[str, float], list[float]]:
    """Weights by name from an inner hold-out of the ratings, and the RMSE of each evaluation."""
    rng = np.random.default_rng(seed)
    held = rng.random(ratings.n_ratings) < HELD_OUT
    inner, outer = ratings.select(~held), ratings.select(held)
    if min(inner.n_ratings, outer.n_ratings) < 2:
        return dict(defaults), []
    data, start = weighted_data(inner, side, units, config, defaults, seed=seed, n_jobs=n_jobs)
    time = None
    if config.use_time and outer.timestamps is not None:
        time = outer.timestamps.astype(np.float64)
    pairs = new_pairs(data, outer.users, outer.items, time)
    learned = learn_weights(
        data, pairs, units.inward(outer.values), start,
        max_iter=max_iter, tol=TOLERANCE, n_jobs=n_jobs,
    )  # fmt: skip
    return learned.weights.as_dict(), [error / units.scale for error in learned.errors]
