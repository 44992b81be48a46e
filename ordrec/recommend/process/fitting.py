"""Fit the Gaussian process to ratings: weights, solution, leave-one-out scores, ordinal refit.

The refit replaces Gaussian noise by the ordinal likelihood of the layer (Laplace's method): with
``l = log p(rating | f)``, each Newton step solves the same system with

(1) ``W = -l''``, at least 0.05
(2) target ``f + l' / W``
(3) noise ``1 / (W scale^2)``, with the layer's typical scale: the weights are in its square
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordrec.parallel.spans import over_spans
from ordrec.ratings import Ratings
from ordrec.recommend.predictor.preparation import Preparation, Units, prepare
from ordrec.recommend.process.covariance import (
    BlockInverse,
    Covariance,
    JointData,
    inverse_diagonal,
    smoothed_diagonal,
    solve,
)
from ordrec.recommend.process.hold_out import learn_weights
from ordrec.recommend.process.posterior_mean import new_pairs, parts_of_mean
from ordrec.recommend.process.weights import TIME_SCALES, Layout, Weights
from ordrec.recommend.thresholds.ordered_probit import curvature, fit_layer

__all__ = [
    "Likelihood",
    "Process",
    "cross_fitted_likelihood",
    "fit_process",
    "learnt_weights",
    "refit_process",
]

HELD_OUT = 0.15
TOLERANCE = 3e-3
MAX_STEPS = 500
N_PROBES, PROBE_STEPS = 8, 15
NEWTON_STEPS = 3
LEAST_CURVATURE = 0.05
LAYER_FOLDS = 4


@dataclass(frozen=True)
class Process:
    """A fitted process.

    Attributes
    ----------
    K : Covariance
        Its blocks are released.
    a : float64 array
        Dual coefficients, one a training rating.
    left_out : float64 array
        Leave-one-out scores of the training ratings.
    noise : float64 array
    n_iter : int
        Steps of the solver; 0 for a direct solution.
    undated : float64 array or None
        Dual coefficients without the kernels of times, for pairs whose time is not known: what
        these kernels explain would be missing there. None where there are no such kernels.
    """

    K: Covariance
    a: np.ndarray
    left_out: np.ndarray
    noise: np.ndarray
    n_iter: int
    undated: np.ndarray | None = None

    @property
    def data(self) -> JointData:
        """The ingredients."""
        return self.K.data

    @cached_property
    def table(self) -> np.ndarray:
        """``sum psi_u phi_i' a_ui``, the products' coefficients but for their variances."""
        return self.data.products.collect(self.a.astype(np.float32)).astype(np.float64)

    @cached_property
    def without_times(self) -> Process:
        """The process that answers for pairs whose time is not known."""
        if self.undated is None:
            return self
        K = Covariance(self.data, self.K.weights.without_times(), self.K.n_jobs)
        return Process(K, self.undated, self.left_out, self.noise, self.n_iter)

    def scores(
        self, users: np.ndarray, items: np.ndarray, time: np.ndarray | None = None
    ) -> np.ndarray:
        """Latent scores of pairs of codes; the last code of each kind is the unknown one.

        ``time`` may be None, or 0 where unknown.
        """
        dated = np.zeros(users.size, dtype=np.bool_) if time is None else time > 0
        scores = np.empty(users.size)
        for process, rows in ((self, dated), (self.without_times, ~dated)):
            if rows.any():
                known = None if time is None else time[rows]
                pairs = new_pairs(self.data, users[rows], items[rows], known)
                scores[rows] = parts_of_mean(process.K, pairs, process.a, process.table).mean
        return scores


def fit_process(data: JointData, weights: Weights, seed: int, n_jobs: int) -> Process:
    """Solve for the dual coefficients and the leave-one-out scores."""
    return _solve(Covariance(data, weights, n_jobs), data.y, np.ones(data.y.size), None, seed)


@dataclass(frozen=True)
class Likelihood:
    """Thresholds (n, n_ranks - 1) and scale of each rating, and the typical scale."""

    thresholds: np.ndarray
    scale: np.ndarray
    typical: float

    def newton_target(self, f: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Target (2) and noise (3) of a Newton step from the means f."""
        slope, W = curvature(f, self.thresholds, self.scale, levels)
        W = np.maximum(W, LEAST_CURVATURE)  # (1)
        return f + slope / W, 1.0 / (W * self.typical**2)


def cross_fitted_likelihood(
    process: Process, levels: np.ndarray, n_ranks: int, seed: int
) -> Likelihood:
    """Thresholds and scale of each rating from a layer that was fitted without it.

    Thresholds that have seen a rating would let it into its own leave-one-out score.
    """
    data, n = process.data, levels.size
    fold = np.random.default_rng(seed).permutation(n) % LAYER_FOLDS
    thresholds, scale = np.empty((n, n_ranks - 1)), np.empty(n)

    def fit(first: int, stop: int) -> None:
        for k in range(first, stop):
            rest, own = fold != k, fold == k
            if not own.any():
                continue
            layer = fit_layer(
                process.left_out[rest], levels[rest], data.users[rest], data.items[rest],
                n_ranks, data.n_users, data.n_items,
            )  # fmt: skip
            thresholds[own] = layer.thresholds_of(data.users[own])
            scale[own] = layer.scale_of(data.users[own], data.items[own])

    over_spans(fit, np.ones(LAYER_FOLDS), process.K.n_jobs)
    return Likelihood(thresholds, scale, float(np.exp(np.mean(np.log(scale)))))


def refit_process(
    process: Process, likelihood: Likelihood, levels: np.ndarray, seed: int
) -> Process:
    """Three Newton steps for the ordinal likelihood, from a fitted process."""
    K, data = process.K, process.data
    f = data.y - process.noise * process.a  # the mean at the training ratings
    a = process.a
    target, noise = data.y, process.noise
    for _ in range(NEWTON_STEPS):
        target, noise = likelihood.newton_target(f, levels)
        solved = solve(K, target, noise, tol=TOLERANCE, max_iter=MAX_STEPS, start=a)
        a = solved.x.astype(np.float64)
        f = target - noise * a
    return _solve(K, target, noise, a, seed)


def _solve(
    K: Covariance, y: np.ndarray, noise: np.ndarray, start: np.ndarray | None, seed: int
) -> Process:
    data = K.data
    prior = data.y - data.target
    inverse = BlockInverse(K, noise)
    a, n_iter = _coefficients(K, y - prior, noise, start, inverse)
    if data.two_sided:
        rng = np.random.default_rng(seed)
        probed = inverse_diagonal(
            K, noise, rng, n_probes=N_PROBES, n_steps=PROBE_STEPS, inverse=inverse
        )
        d = smoothed_diagonal(K, noise, probed, inverse)
    else:
        d = inverse.diagonal
    K.release()
    undated = None
    if K.item_weights.scales.size:
        plain = Covariance(data, K.weights.without_times(), K.n_jobs)
        undated, _ = _coefficients(plain, y - prior, noise, a, BlockInverse(plain, noise))
    return Process(K, a, y - a / d, noise, n_iter, undated)


def _coefficients(
    K: Covariance,
    right: np.ndarray,
    noise: np.ndarray,
    start: np.ndarray | None,
    inverse: BlockInverse,
) -> tuple[np.ndarray, int]:
    """Dual coefficients, and the steps of the solver."""
    if not K.data.two_sided:
        return (inverse @ right.astype(np.float32)).astype(np.float64), 0
    solved = solve(K, right, noise, tol=TOLERANCE, max_iter=MAX_STEPS, start=start, inverse=inverse)
    if not solved.converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"after {solved.n_iter} steps the residual is {solved.residual:.2g} of the ratings "
            f"(tolerance {TOLERANCE:g})",
            ConvergenceWarning,
            stacklevel=5,
        )
    return solved.x.astype(np.float64), solved.n_iter


def learnt_weights(
    ratings: Ratings,
    units: Units,
    how: Preparation,
    components: Collection[str] | None,
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
    data = prepare(inner, units, how, seed, n_jobs)
    layout = Layout.choose(data, TIME_SCALES if how.use_time else (), components, defaults)
    time = None
    if how.use_time and outer.timestamps is not None:
        time = outer.timestamps.astype(np.float64)
    pairs = new_pairs(data, outer.users, outer.items, time)
    learned = learn_weights(
        data, pairs, units.inward(outer.values), layout.start(defaults),
        max_iter=max_iter, tol=TOLERANCE, n_jobs=n_jobs,
    )  # fmt: skip
    return learned.weights.as_dict(), [error / units.scale for error in learned.errors]
