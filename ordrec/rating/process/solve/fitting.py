"""Fit the Gaussian process to ratings: solution, leave-one-out scores, ordinal refit.

With ``a = (K + D)^-1 y`` and ``d = diag (K + D)^-1``:

(1) leave-one-out score of a training rating: ``y - a / d``

The refit replaces the Gaussian noise by the likelihood of an ordered probit (Laplace's method):
with ``l = log p(rating | f)``, each Newton step solves the same system with

(2) ``W = -l''``, at least 0.05
(3) target ``f + l' / W``
(4) noise ``1 / (W scale^2)``, with the probit's typical scale: the weights are in units of its
    square
(5) mean at the training ratings: ``f = target - noise a``
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordrec.errors import callers_level
from ordrec.rating.process.kernel.weights import Weights
from ordrec.rating.process.solve.conjugate_gradients import (
    inverse_diagonal,
    smoothed_diagonal,
    solve,
)
from ordrec.rating.process.solve.covariance import BlockInverse, Covariance, JointData
from ordrec.rating.process.solve.owner_blocks import solve_alone
from ordrec.rating.process.solve.posterior_mean import new_pairs, parts_of_mean
from ordrec.rating.thresholds.ordered_probit import OrderedProbit, curvature, fit_ordered_probit
from ordrec.runtime.parallel import loop_threads

__all__ = [
    "NEWTON_STEPS",
    "TOLERANCE",
    "Likelihood",
    "Process",
    "cross_fitted_likelihood",
    "fit_probit",
    "fit_process",
    "refit_process",
]

TOLERANCE = 3e-3
MAX_STEPS = 500
MOST_PROBES, PROBED, PROBE_STEPS = 3, 60_000, 15  # a probe asks all ratings; PROBED do
NEWTON_STEPS = 3
LEAST_CURVATURE = 0.05
PROBIT_FOLDS = 4


@dataclass(frozen=True)
class Process:
    """A fitted process.

    Attributes
    ----------
    K : Covariance
        The covariance of the training ratings, without its blocks.
    a : float64 array
        Dual coefficients, one per training rating.
    left_out : float64 array
        Leave-one-out scores of the training ratings, (1). A process from a file has none, nor their
        noise: thresholds were fitted to them, and predictions need neither.
    noise : float64 array
        Noise variances of the training ratings.
    n_iter : int
        Steps of the solver; 0 for a direct solution.
    undated : float64 array or None
        Dual coefficients without the kernels of times, for pairs whose time is not known: what
        these kernels explain would be missing there. None if there are no such kernels.
    """

    K: Covariance
    a: np.ndarray
    left_out: np.ndarray
    noise: np.ndarray
    n_iter: int
    undated: np.ndarray | None = None

    @classmethod
    def rounded(
        cls,
        K: Covariance,
        a: np.ndarray,
        left_out: np.ndarray,
        noise: np.ndarray,
        n_iter: int,
        undated: np.ndarray | None,
    ) -> Process:
        """A process whose numbers are in single precision, as files have them."""
        a, left_out, noise = (
            each.astype(np.float32).astype(np.float64) for each in (a, left_out, noise)
        )
        if undated is not None:
            undated = undated.astype(np.float32).astype(np.float64)
        return cls(K, a, left_out, noise, n_iter, undated)

    @property
    def data(self) -> JointData:
        """The ingredients of the covariance."""
        return self.K.data

    @cached_property
    def table(self) -> np.ndarray:
        """``sum psi_u phi_i' a_ui``: the coefficients of the products, without their variances."""
        return self.data.products.adjoint(self.a.astype(np.float32)).astype(np.float64)

    @property
    def without_times(self) -> Process:
        """The process for pairs whose time is not known."""
        # not kept where it is the same: a process that refers to itself keeps its pair sums in
        # memory until the garbage collector comes
        return self if self.undated is None else self._undated

    @cached_property
    def _undated(self) -> Process:
        assert self.undated is not None
        K = Covariance(self.data, self.K.weights.without_times(), self.K.n_jobs)
        return Process(K, self.undated, self.left_out, self.noise, self.n_iter)

    def scores(
        self, users: np.ndarray, items: np.ndarray, time: np.ndarray | None = None
    ) -> np.ndarray:
        """Latent scores of pairs of codes; the last code of each kind is the unknown one.

        ``time`` may be None, and is 0 where unknown.
        """
        dated = np.zeros(users.size, dtype=np.bool_) if time is None else time > 0
        scores = np.empty(users.size)
        for process, rows in ((self, dated), (self.without_times, ~dated)):
            if rows.any():
                known = None if time is None else time[rows]
                pairs = new_pairs(self.data, users[rows], items[rows], known)
                scores[rows] = parts_of_mean(process.K, pairs, process.a, process.table).mean
        return scores


def fit_process(
    data: JointData,
    weights: Weights,
    seed: int,
    n_jobs: int,
    *,
    start: np.ndarray | None = None,
    final: bool = True,
) -> Process:
    """Solve for the dual coefficients and the leave-one-out scores under Gaussian noise.

    The solver starts from the coefficients ``start``, if there are any that are near. A process
    that is not final keeps its blocks for `refit_process`, and has no ``undated``.
    """
    K = Covariance(data, weights, n_jobs)
    return _solve(K, data.y, np.ones(data.y.size), start, seed, final=final)


def fit_probit(process: Process, n_ranks: int) -> OrderedProbit:
    """The ordered probit of the leave-one-out scores of all training ratings."""
    data = process.data
    return fit_ordered_probit(
        process.left_out, data.levels, data.users, data.items, n_ranks, data.n_users, data.n_items
    )


@dataclass(frozen=True)
class Likelihood:
    """Thresholds (n, n_ranks - 1) and scale of each rating, and the typical scale."""

    thresholds: np.ndarray
    scale: np.ndarray
    typical: float

    def newton_target(self, f: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Target (3) and noise (4) of a Newton step from the means f."""
        slope, W = curvature(f, self.thresholds, self.scale, levels)
        W = np.maximum(W, LEAST_CURVATURE)  # (2)
        return f + slope / W, 1.0 / (W * self.typical**2)  # (3), (4)


def cross_fitted_likelihood(process: Process, n_ranks: int, seed: int) -> Likelihood:
    """Thresholds and scale of each training rating, from ordered probits fitted without it.

    Thresholds fitted to a rating would let it into its own leave-one-out score.
    """
    data, levels = process.data, process.data.levels
    n = levels.size
    fold = np.random.default_rng(seed).permutation(n) % PROBIT_FOLDS
    thresholds, scale = np.empty((n, n_ranks - 1)), np.empty(n)

    def fit(k: int) -> None:
        rest, own = fold != k, fold == k
        if not own.any():
            return
        probit = fit_ordered_probit(
            process.left_out[rest], levels[rest], data.users[rest], data.items[rest],
            n_ranks, data.n_users, data.n_items,
        )  # fmt: skip
        thresholds[own] = probit.thresholds_of(data.users[own])
        scale[own] = probit.scale_of(data.users[own], data.items[own])

    with loop_threads(process.K.n_jobs) as threads:
        list(threads.map(fit, range(PROBIT_FOLDS)))
    return Likelihood(thresholds, scale, float(np.exp(np.mean(np.log(scale)))))


def refit_process(process: Process, likelihood: Likelihood, seed: int) -> Process:
    """The process after three Newton steps for the ordinal likelihood, from a fitted one."""
    K, data = process.K, process.data
    f = data.y - process.noise * process.a  # (5)
    a = process.a
    target, noise, inverse = data.y, process.noise, None
    for _ in range(NEWTON_STEPS):
        del inverse  # there need not be two
        target, noise = likelihood.newton_target(f, data.levels)
        inverse = BlockInverse(K, noise)
        solved = solve(
            K, target, noise, tol=TOLERANCE, max_iter=MAX_STEPS, start=a, inverse=inverse
        )
        a = solved.x.astype(np.float64)
        f = target - noise * a  # (5)
    return _solve(K, target, noise, a, seed, final=True, inverse=inverse)


def _solve(
    K: Covariance,
    y: np.ndarray,
    noise: np.ndarray,
    start: np.ndarray | None,
    seed: int,
    *,
    final: bool,
    inverse: BlockInverse | None = None,
) -> Process:
    """The fitted process for given targets and noise, whose preconditioner may be known."""
    data = K.data
    right = y - (data.y - data.target)
    undated, dated = None, K.item_weights.scales.size > 0
    plain = Covariance(data, K.weights.without_times(), K.n_jobs)
    if not data.two_sided:
        side = data.item_side
        a, d = solve_alone(side, K.item_weights, right, noise, K.n_jobs)
        if dated:
            undated, _ = solve_alone(side, plain.item_weights, right, noise, K.n_jobs)
        return Process.rounded(K, a, y - a / d, noise, 0, undated)  # (1)
    inverse = inverse or BlockInverse(K, noise)
    a, n_iter = _coefficients(K, right, noise, start, inverse)
    rng, n_probes = np.random.default_rng(seed), min(-(-PROBED // y.size), MOST_PROBES)
    probed = inverse_diagonal(
        K, noise, rng, n_probes=n_probes, n_steps=PROBE_STEPS, inverse=inverse
    )
    d = smoothed_diagonal(K, noise, probed, n_probes, inverse)
    del inverse  # before the blocks without times take its place
    if final:
        plain.user_blocks = K.user_blocks  # which know no times
        K.release()
    if final and dated:
        undated, _ = _coefficients(plain, right, noise, a, BlockInverse(plain, noise))
    return Process.rounded(K, a, y - a / d, noise, n_iter, undated)  # (1)


def _coefficients(
    K: Covariance,
    right: np.ndarray,
    noise: np.ndarray,
    start: np.ndarray | None,
    inverse: BlockInverse,
) -> tuple[np.ndarray, int]:
    """Dual coefficients, with the number of steps of the solver."""
    solved = solve(K, right, noise, tol=TOLERANCE, max_iter=MAX_STEPS, start=start, inverse=inverse)
    if not solved.converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"after {solved.n_iter} steps the residual is {solved.residual:.2g} of the ratings "
            f"(tolerance {TOLERANCE:g})",
            ConvergenceWarning,
            stacklevel=callers_level(),
        )
    return solved.x.astype(np.float64), solved.n_iter
