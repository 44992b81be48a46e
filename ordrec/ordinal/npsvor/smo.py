"""Sequential minimal optimisation of (8): the first thing to try where costs are small.

Each step moves two multipliers along e' rho = 0 to the next bound, kink or minimum: the one with
the steepest way up and the one whose way down gains most by second-order information (Fan, Chen and
Lin 2005). Where C K_ii is about one, most steps end at a bound, and the number of steps is about
the number of samples that have one; at large costs it is many times that, and ADMM is faster.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from ordrec.ordinal.gram.matrix import DenseGram
from ordrec.ordinal.npsvor.problem import Planes
from ordrec.runtime.compiling import compiled

__all__ = ["descend", "is_easy"]

EASY = 2.0  # largest cost times mean diagonal of K up to which few steps are expected
STEPS = 3  # for each sample, after which it is not easy after all


def is_easy(gram: DenseGram, planes: Planes) -> bool:
    """Whether costs are so small that most multipliers end at a bound."""
    return float(planes.upper.max()) * gram.mean_diagonal() <= EASY


def descend(gram: DenseGram, planes: Planes, tol: float, threads: Executor) -> np.ndarray:
    """Multipliers of shape (n, r), optimal to within tol if not too many steps are needed."""

    def of_rank(k: int) -> np.ndarray:
        columns = (planes.side[:, k], planes.lower[:, k], planes.upper[:, k])
        side, lower, upper = (np.ascontiguousarray(column) for column in columns)
        z = np.zeros(gram.n)
        _descend(gram.values, side, lower, upper, planes.epsilon, tol, STEPS * gram.n, z)
        return z

    return np.stack(list(threads.map(of_rank, range(planes.side.shape[1]))), axis=1)


@compiled
def _descend(K, side, lower, upper, epsilon, tol, steps, z):  # type: ignore[no-untyped-def]
    """Steps of one rank from z = 0, in place."""
    n = z.size
    f = np.zeros(n)
    for _ in range(steps):
        first, steepest = -1, np.inf
        for i in range(n):
            if z[i] < upper[i]:
                slope = f[i] - side[i]
                if side[i] == 0.0:
                    slope += epsilon if z[i] >= 0.0 else -epsilon
                if slope < steepest:
                    first, steepest = i, slope
        if first < 0:
            return
        second, most, gain = -1, -np.inf, 0.0
        ahead, curvature = 0.0, 1.0
        for j in range(n):
            if z[j] > lower[j]:
                slope = f[j] - side[j]
                if side[j] == 0.0:
                    slope += epsilon if z[j] > 0.0 else -epsilon
                most = max(most, slope)
                fall = slope - steepest
                if fall > 0.0:
                    bend = max(K[first, first] + K[j, j] - 2.0 * K[first, j], 1e-12)
                    if fall * fall / bend > gain:
                        second, gain = j, fall * fall / bend
                        ahead, curvature = fall, bend
        if second < 0 or most - steepest <= tol:
            return
        up = -z[first] if side[first] == 0.0 and z[first] < 0.0 else upper[first] - z[first]
        down = z[second] if side[second] == 0.0 and z[second] > 0.0 else z[second] - lower[second]
        length = min(ahead / curvature, up, down)
        # exactly at the end of its way, so that no step of no length follows
        z[first] = _moved(z[first], length, up, upper[first])
        z[second] = -_moved(-z[second], length, down, -lower[second])
        for i in range(n):
            f[i] += length * (K[first, i] - K[second, i])


@compiled
def _moved(value, length, way, bound):  # type: ignore[no-untyped-def]
    """The value after a step up; at the end of its way the kink, or the bound."""
    if length < way:
        return value + length
    return 0.0 if value < 0.0 else bound
