"""Ingredients of the joint process with their weights: defaults, or learnt on a hold-out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ordrec.ratings import Ratings
from ordrec.recommend.predictor.preparation import Preparation, prepare
from ordrec.recommend.process.covariance import JointData
from ordrec.recommend.process.fitting import TOLERANCE
from ordrec.recommend.process.hold_out import learn_weights
from ordrec.recommend.process.posterior_mean import new_pairs
from ordrec.recommend.process.weights import TIME_SCALES, Layout, Weights
from ordrec.recommend.units import Units

__all__ = ["learnt_weights", "weighted_data"]

HELD_OUT = 0.15


def weighted_data(
    ratings: Ratings,
    units: Units,
    config: Preparation,
    weights: Mapping[str, float],
    *,
    seed: int,
    n_jobs: int,
) -> tuple[JointData, Weights]:
    """Prepare ratings, and choose the weights of the components that these ratings allow."""
    data = prepare(ratings, units, config, seed, n_jobs)
    scales = TIME_SCALES if config.use_time else ()
    return data, Layout.choose(data, scales, config.components, weights).start(weights)


def learnt_weights(
    ratings: Ratings,
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
    data, start = weighted_data(inner, units, config, defaults, seed=seed, n_jobs=n_jobs)
    time = None
    if config.use_time and outer.timestamps is not None:
        time = outer.timestamps.astype(np.float64)
    pairs = new_pairs(data, outer.users, outer.items, time)
    learned = learn_weights(
        data, pairs, units.inward(outer.values), start,
        max_iter=max_iter, tol=TOLERANCE, n_jobs=n_jobs,
    )  # fmt: skip
    return learned.weights.as_dict(), [error / units.scale for error in learned.errors]
