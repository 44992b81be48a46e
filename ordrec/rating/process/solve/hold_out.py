"""Weights of the joint model, learnt by the gradient of an inner hold-out error.

Part of the training ratings is set aside, and everything (pair sums, loadings, features) is built
from the rest. With ``e`` the errors at the ratings set aside, ``theta`` the logarithms of the
weights and ``theta_0`` their start, L-BFGS minimises

(1) ``|e|^2 / 2 + |theta - theta_0|^2 / (2 sd^2)``, divided by the number of errors,

by the gradient (3) of `ordrec.rating.process.solve.posterior_mean`. The second term is weak: it
decides only where the data do not.

The first step of L-BFGS is the gradient itself, and the second one divides the difference of two
gradients by it. Gradients are as exact as the solutions of two linear systems, so that the first
step must be long: (1) is multiplied by a number that makes it 1. With (1) itself, whose gradient
is far below 1, rounding decided where learning went.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ordrec.rating.process.kernel.weights import Weights
from ordrec.rating.process.solve.conjugate_gradients import solve
from ordrec.rating.process.solve.covariance import BlockInverse, Covariance, JointData
from ordrec.rating.process.solve.posterior_mean import NewPairs, adjoint, gradient, parts_of_mean
from ordrec.runtime.progress import progress, report

__all__ = ["Learned", "hold_out_objective", "learn_weights"]

# the linear systems are solved to a tolerance, below which a line search finds nothing
LEAST_GAIN, MOST_IN_VAIN = 2e-4, 2
LEAST_SLOPE = 1e-9  # below which there is nothing to learn
SD_OF_LOGS = 2.0  # standard deviation of the logarithms of the weights around their start


@dataclass(frozen=True)
class Learned:
    """Learnt weights, with the hold-out RMSE of each evaluation.

    ``solution`` has dual coefficients for nearly these weights, from the last evaluation.
    """

    weights: Weights
    errors: list[float]
    solution: np.ndarray


def learn_weights(
    data: JointData,
    pairs: NewPairs,
    y: np.ndarray,
    start: Weights,
    *,
    max_iter: int,
    tol: float = 3e-3,
    n_jobs: int = 1,
) -> Learned:
    """Minimise (1) at the pairs set aside, whose scaled ratings are ``y``."""
    from scipy.optimize import minimize  # takes long to import

    solution = np.zeros(data.y.size)
    objective = hold_out_objective(data, pairs, y, start, tol=tol, n_jobs=n_jobs, solution=solution)
    best: tuple[float, np.ndarray] = (np.inf, start.logs)
    errors: list[float] = []
    in_vain, unit = 0, 0.0

    def value_and_gradient(logs: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, in_vain, unit
        value, slope, rmse = objective(logs)
        errors.append(rmse)
        unit = unit or 1.0 / max(float(np.linalg.norm(slope)), LEAST_SLOPE)
        report(len(errors), max_iter + 3, f"evaluation {len(errors)}")
        in_vain = 0 if value < best[0] * (1.0 - LEAST_GAIN) else in_vain + 1
        if value < best[0]:
            best = (value, logs.copy())
        if in_vain == MOST_IN_VAIN:
            raise StopIteration
        return value * unit, slope * unit

    with progress(""), suppress(StopIteration):
        minimize(
            value_and_gradient,
            start.logs,
            jac=True,
            method="L-BFGS-B",
            bounds=[(log - 7.0, log + 5.0) for log in start.logs],
            options={"maxiter": max_iter, "maxfun": max_iter + 3, "maxls": 4},
        )
    return Learned(start.with_logs(best[1]), errors, solution)


def hold_out_objective(
    data: JointData,
    pairs: NewPairs,
    y: np.ndarray,
    start: Weights,
    *,
    tol: float,
    n_jobs: int = 1,
    solution: np.ndarray | None = None,
) -> Callable[[np.ndarray], tuple[float, np.ndarray, float]]:
    """A function of the logarithms of the weights: (1), its gradient, and the RMSE.

    Each evaluation starts its linear systems from the solutions of the one before; its dual
    coefficients are written to ``solution``.
    """
    noise = np.ones(data.y.size)
    first = start.logs
    last: dict[str, np.ndarray | None] = {"a": None, "gamma": None}

    def objective(logs: np.ndarray) -> tuple[float, np.ndarray, float]:
        weights = start.with_logs(logs)
        K = Covariance(data, weights, n_jobs)
        inverse = BlockInverse(K, noise)
        solved = solve(
            K, data.target, noise, tol=tol, max_iter=400, start=last["a"], inverse=inverse
        )
        a = solved.x.astype(np.float64)
        parts = parts_of_mean(K, pairs, a)
        e = parts.mean - y
        right = adjoint(K, pairs, e)
        back = solve(K, right, noise, tol=tol, max_iter=400, start=last["gamma"], inverse=inverse)
        gamma = back.x.astype(np.float64)
        last["a"], last["gamma"] = solved.x, back.x
        if solution is not None:
            solution[:] = a
        slope = gradient(K, pairs, parts, a, gamma, e)[weights.layout.free]
        pull = (logs - first) / SD_OF_LOGS**2
        value = 0.5 * float(e @ e) + 0.5 * float(pull @ (logs - first))  # (1)
        return value / y.size, (slope + pull) / y.size, float(np.sqrt(np.mean(e * e)))

    return objective
