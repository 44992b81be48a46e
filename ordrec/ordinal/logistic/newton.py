"""Trust-region Newton for ordinal logistic regression, with ordered thresholds.

Each step minimises the quadratic model within a trust region by preconditioned conjugate
gradients (Steihaug 1983); the preconditioner is the Hessian's diagonal, which also measures
the region. The iteration stops by the decrease that the quadratic model still predicts, relative
to the objective: this does not depend on the scale of the features.

Ordering. The minimum of an all-threshold objective has ordered thresholds without a constraint.
For the immediate ones, b_1 <= ... <= b_T is a convex constraint, met by an active-set method:
minimise with some neighbours tied; move towards that minimum until two thresholds meet and tie
them too, or, if none meet, untie the pair whose multiplier is most negative.
With lam_k the multiplier of b_k <= b_{k+1}, dJ/db_k = lam_{k-1} - lam_k within a tied group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ordrec.ordinal.logistic.objective import Objective
from ordrec.ordinal.losses import Loss, Reach
from ordrec.ordinal.solution import Solution

__all__ = ["Smooth", "minimise", "solve"]

ACCEPT, SHRINK, GROW = 1e-4, 0.25, 0.75  # actual over predicted decrease
SHARPEN = 2.0  # a sharp loss is approached from blunter ones, by this factor
TINY = float(np.finfo(np.float64).tiny)
ROUNDING = 1e-14  # relative decreases of the objective below this are noise


def solve(
    X: Any,
    ranks: np.ndarray,
    n_ranks: int,
    *,
    loss: Loss,
    reach: Reach,
    alpha: float = 1.0,
    weight: np.ndarray | None = None,
    ordered: bool = True,
    tol: float = 1e-8,
    max_iter: int = 200,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Solution:
    """Minimise the objective over weights and thresholds.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    ranks : ndarray of shape (n,)
        Zero-based. At every threshold that counts there must be samples on both sides.
    loss : Loss
        Logistic, shifted or generalised.
    ordered : bool
        Whether the thresholds of the immediate reach are held in order.
    tol : float
        Relative decrease of the objective below which the iteration ends.
    start : (w, b), optional
        A point to begin from.

    Returns
    -------
    Solution
        ``coef`` is w; ``state`` is (w, b), for ``start``.
    """
    n, d = X.shape
    weight = np.ones(n) if weight is None else weight
    if start is None:
        start = np.zeros(d), _quantile_thresholds(ranks, n_ranks, weight)
    J = Objective(X, ranks, weight, loss, reach, alpha, np.eye(n_ranks - 1))
    method = _minimise_ordered if reach == "immediate" and ordered else minimise
    x, used = _approach(J, np.concatenate(start), method, max_iter)
    x, value, violation, n_iter = method(J, x, tol, max_iter - used)
    w, b = x[:d], x[d:]
    return Solution(w, b, value, violation, np.nan, used + n_iter, violation <= tol, (w, b))


def _quantile_thresholds(ranks: np.ndarray, n_ranks: int, weight: np.ndarray) -> np.ndarray:
    """Log-odds of a rank below each threshold: the all-threshold optimum at w = 0."""
    count = np.maximum(np.bincount(ranks, weight / weight.max(), n_ranks), TINY)
    below, above = np.cumsum(count)[:-1], np.cumsum(count[::-1])[-2::-1]  # differences may be 0
    return np.log(below) - np.log(above)


def _approach(
    J: Objective, x: np.ndarray, minimise: Callable[..., Any], max_iter: int
) -> tuple[np.ndarray, int]:
    """A start for a sharp loss, from a blunt one that is sharpened in stages.

    The shifted loss at (margin, alpha) is the generalised one at sharpness = margin and
    penalty alpha margin, all weights and thresholds divided by the margin.
    """
    shifted = J.loss.name == "shifted"
    sharpness = J.loss.margin if shifted else J.loss.sharpness
    unit = sharpness if shifted else 1.0
    stages, used = [], 0
    while sharpness > SHARPEN:
        sharpness /= SHARPEN
        stages.append(sharpness)
    x = x / unit if stages else x
    for sharpness in reversed(stages):
        blunt = Loss("generalised", sharpness=sharpness)
        staged = replace(J, loss=blunt, alpha=J.alpha * unit)
        x, _, _, steps = minimise(staged, x, 1e-4, max_iter - used)
        used += steps
    return (x * unit if stages else x), used


class Smooth(Protocol):
    """A convex function of one vector."""

    def at(self, x: np.ndarray, *, hessian: bool = True) -> tuple[float, np.ndarray, Any]:
        """Return value, gradient and, on request, the Hessian, with ``@`` and ``diagonal()``."""


def minimise(
    J: Smooth, x: np.ndarray, tol: float, max_iter: int
) -> tuple[np.ndarray, float, float, int]:
    """Newton steps in a trust region until the predicted relative decrease is below tol."""
    value, gradient, H = J.at(x)
    # products with an explicit matrix are cheap compared with a pass over the data
    precision = 1e-8 if isinstance(H, np.ndarray) else 0.01
    radius, violation = np.inf, np.inf
    for iteration in range(1, max_iter + 1):
        step, length, promised = _steihaug(gradient, H, radius, precision)
        if length < radius:
            violation = promised / max(abs(value), np.finfo(float).tiny)
            precision = min(precision, np.sqrt(violation))  # superlinear at the end
        trial = J.at(x + step, hessian=violation > tol)
        noise = ROUNDING * abs(value)
        ratio = (value - trial[0] + noise) / (promised + noise)
        if not ratio >= SHRINK:  # also when the trial value is not a number
            radius = 0.25 * length
        elif ratio > GROW and length >= 0.99 * radius:
            radius = 2.0 * radius
        if ratio > ACCEPT:
            x, (value, gradient, H) = x + step, trial
        if violation <= tol:
            return x, value, violation, iteration
    return x, value, violation, max(max_iter, 0)


def _steihaug(
    gradient: np.ndarray, H: Any, radius: float, precision: float
) -> tuple[np.ndarray, float, float]:
    """Step, its length in the preconditioner's norm and the decrease the model predicts."""
    diagonal = H.diagonal()
    M = np.maximum(diagonal, 1e-8 * diagonal.max(initial=1e-300))
    step = np.zeros_like(gradient)
    residual = -gradient
    z = residual / M
    direction = z.copy()
    rho = residual @ z
    goal, length, promised = precision**2 * rho, 0.0, 0.0
    for _ in range(10 * gradient.size):
        if rho <= goal:
            break
        Hd = H @ direction
        curve = direction @ Hd
        reach = _to_boundary(step, direction, M, radius)
        a = min(rho / curve, reach) if curve > 0 else reach
        if not np.isfinite(a):
            break  # flat and unbounded: no sample depends on this direction
        step = step + a * direction
        promised += a * rho - 0.5 * a * a * curve
        if a == reach:
            return step, radius, promised
        residual = residual - a * Hd
        z = residual / M
        rho, before = residual @ z, rho
        direction = z + (rho / before) * direction
        length = float(np.sqrt(step @ (M * step)))
    return step, length, promised


def _to_boundary(step: np.ndarray, direction: np.ndarray, M: np.ndarray, radius: float) -> float:
    """The a > 0 with |step + a direction|_M = radius."""
    if not np.isfinite(radius):
        return np.inf
    dd, sd, ss = direction @ (M * direction), step @ (M * direction), step @ (M * step)
    return float((-sd + np.sqrt(sd * sd + dd * max(radius * radius - ss, 0.0))) / dd)


def _minimise_ordered(
    J: Objective, x: np.ndarray, tol: float, max_iter: int
) -> tuple[np.ndarray, float, float, int]:
    """The minimum over ordered thresholds, by the active-set method."""
    d, used = J.X.shape[1], 0
    w, b = x[:d], np.sort(x[d:])
    tied = np.diff(b) == 0.0
    while True:
        face = replace(J, tie=_tie_matrix(tied))
        first = face.tie.argmax(axis=0)
        y, value, violation, steps = minimise(
            face, np.concatenate([w, b[first]]), tol, max_iter - used
        )
        used += max(steps, 1)
        goal_w, goal_b = face.split(y)
        gap, goal_gap = np.diff(b), np.diff(goal_b)
        blocking = np.flatnonzero(goal_gap < 0)
        if blocking.size:
            walk = gap[blocking] / (gap[blocking] - goal_gap[blocking])
            w, b = w + walk.min() * (goal_w - w), b + walk.min() * (goal_b - b)
            tied[blocking[walk.argmin()]] = True
            b = np.maximum.accumulate(b)
            continue
        w, b = goal_w, goal_b
        multiplier = _multipliers(face.gradient_of_thresholds(y), tied)
        released = int(multiplier.argmin()) if tied.any() else 0
        if used >= max_iter or not tied.any() or multiplier[released] >= -1e-7 * J.weight.sum():
            return np.concatenate([w, b]), value, violation, used
        tied[released] = False


def _tie_matrix(tied: np.ndarray) -> np.ndarray:
    """E with b = E t: thresholds joined by a tied link share one entry of t."""
    group = np.concatenate([[0], np.cumsum(~tied)])
    return (group[:, None] == np.arange(group[-1] + 1)).astype(np.float64)


def _multipliers(slope: np.ndarray, tied: np.ndarray) -> np.ndarray:
    """lam_k of each tied link b_k = b_{k+1}; infinite at the free ones."""
    lam, total = np.full(tied.size, np.inf), 0.0
    for k in range(tied.size):
        total = total + slope[k] if k and tied[k - 1] else slope[k]
        if tied[k]:
            lam[k] = -total
    return lam
