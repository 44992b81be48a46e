"""A primal-dual interior-point method for the problems of Chu and Keerthi.

W. Chu and S. S. Keerthi, Support vector ordinal regression, Neural Computation 19 (2007).

The dual (11)-(12) or (24)-(25) has one multiplier alpha_p for each pair p = (i, j), but these
enter the kernel only through one signed sum beta_i for each sample. So a Newton step on the
relaxed optimality conditions (14)-(15), with slacks z for alpha >= 0, w for alpha <= cap and v
for the ordering constraints, reduces to one n x n positive definite matrix M, whatever the number
of ranks (`newton_system`).

Equations here
--------------
    residual_p = sign_p (f_i - b_j) - 1 - z_p + w_p = 0                             (I1)
    balance_j  = sum_p sign_p alpha_p - mu_j + mu_{j+1} = 0                         (I2)
    v_j = b_j - b_{j-1}                                                             (I3)
    alpha_p z_p = m,  (cap_p - alpha_p) w_p = m,  mu_j v_j = m,     m -> 0          (I4)

    goal = m (m_ahead / m)^4, m_ahead the mean product after the pure Newton step   (I5)
    t^z = goal - alpha z - dalpha dz,  t^w = goal - (cap - alpha) w + dalpha dw,
    t^v = goal - mu v - dmu dv                                                      (I6)
    t += what brings the product after a longer step into [NEAR, FAR] goal          (I7)
    length = the largest t <= 1 that leaves alpha, cap - alpha, z, w, mu, v >= 0    (I8)
    gap = (primal - dual) / |primal|                                                (I9)

(I5) and (I6) are Mehrotra's predictor and corrector, (I7) Gondzio's centrality correctors. They
use the one factor of M again and again, at O(n^2) each beside its O(n^3 / 3).

The matrix K and the factor may be float32. Everything else is float64, f = K beta
included: sums over thousands of samples in single precision stall the gap near 1e-4. The
error of a single-precision solve goes into ``residual`` and the next step removes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.gram import Gram, gram_times
from ordrec.ordinal.svor.newton_system import (
    Point,
    System,
    Targets,
    direction,
    prepare,
    room_for_system,
)
from ordrec.ordinal.svor.objective import dual_objective, primal_objective, signed_sums
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["Interior", "cold_start", "interior_point"]

START = 0.2  # of the cap: all multipliers start here
CENTRING_POWER = 4  # of (I5); Mehrotra's is 3: the correctors restore what less centring spoils
LEAST_CENTRING = 1e-3  # goal / m is never smaller
LONG_ENOUGH = 0.999  # steps longer than this need no further corrector
LOOK_AHEAD = 0.3  # a corrector aims at a step this much longer
NEAR, FAR = 0.3, 3.0  # products outside [NEAR, FAR] times the goal are corrected
WORTH = 0.01  # a corrector is kept if it lengthens the step by this much
BACK_OFF = 0.999  # of the way to the boundary
EARLY_GAP = 0.99  # relative gap at which the point for warm starts is taken: later ones are worse
PATIENCE = 5  # iterations without a smaller gap before giving up


class Interior(NamedTuple):
    """The end point, its multipliers strictly inside their bounds, and one on the way."""

    alpha: np.ndarray
    b: np.ndarray
    mu: np.ndarray
    early: Point  # still central enough to start a problem with other caps from
    n_iter: int
    converged: bool


@compiled
def interior_point(
    K: Gram,
    pairs: Pairs,
    n_thresholds: int,
    ordered: bool,
    gap_tol: float,
    max_iter: int,
    n_correctors: int,
    ridge: float,
    lapack: np.ndarray,
    start: Point,
) -> Interior:
    """Minimise to a relative duality gap of gap_tol, in at most max_iter factorisations."""
    point, early, best, step = _like(start), _like(start), _like(start), _like(start)
    _copy(start, point)
    trial = _like(point)
    targets = Targets(np.empty_like(point.z), np.empty_like(point.z), np.zeros(n_thresholds))
    system = room_for_system(K, pairs, n_thresholds, lapack)
    f = np.empty(K.values.shape[0])
    smallest, nearest, since = np.inf, np.inf, 0
    for iteration in range(max_iter + 1):
        beta = signed_sums(pairs, point.alpha)
        gram_times(K, beta, f)
        balance = _balance(pairs, point, ordered)
        primal = primal_objective(pairs, beta, f, point.b)
        gap = _relative_gap(pairs, point, primal, beta, f, balance, ordered)
        if gap <= gap_tol:
            return Interior(point.alpha, point.b, point.mu, early, iteration, True)
        if gap <= EARLY_GAP < smallest:
            _copy(point, early)
        smallest = min(gap, smallest)
        # far from the solution the objective falls by decades while the relative gap stays at 1
        distance = gap * abs(primal)
        since = 0 if distance < 0.9 * nearest else since + 1
        if distance < nearest:
            nearest = distance
            _copy(point, best)
        if iteration == max_iter or since > PATIENCE or not np.isfinite(gap):
            break
        residual = _residual(pairs, point, f)
        if not prepare(K, pairs, point, ordered, ridge, system):
            break
        length, goal = _mehrotra(K, pairs, point, residual, balance, targets, system, ordered, step)
        for _ in range(n_correctors):  # Gondzio: pull back what a longer step would spoil
            if length >= LONG_ENOUGH:
                break
            _correct(pairs, point, step, min(1.0, length + LOOK_AHEAD), goal, targets, ordered)
            direction(K, pairs, point, residual, balance, targets, system, ordered, trial)
            longer = _longest(pairs, point, trial, system, ordered)
            if longer < length + WORTH:
                break
            step, trial = trial, step
            length = longer
        _move(point, step, BACK_OFF * length)
    return Interior(best.alpha, best.b, best.mu, early, iteration, False)


@compiled
def _mehrotra(
    K: Gram,
    pairs: Pairs,
    point: Point,
    residual: np.ndarray,
    balance: np.ndarray,
    targets: Targets,
    system: System,
    ordered: bool,
    step: Point,
) -> tuple[float, float]:
    """Predictor and corrector, into ``step``; returns its length (I8) and the goal (I5)."""
    m = _mean_product(pairs, point, point, 0.0, ordered)
    # the pure Newton step: where does it lead, and how much centring does it need?
    _aim(pairs, point, step, 0.0, False, targets, ordered)
    direction(K, pairs, point, residual, balance, targets, system, ordered, step)
    length = _longest(pairs, point, step, system, ordered)
    ahead = _mean_product(pairs, point, step, length, ordered)
    goal = m * max((ahead / m) ** CENTRING_POWER, LEAST_CENTRING)  # (I5)
    _aim(pairs, point, step, goal, True, targets, ordered)
    direction(K, pairs, point, residual, balance, targets, system, ordered, step)
    return _longest(pairs, point, step, system, ordered), goal


@compiled
def cold_start(pairs: Pairs, n_thresholds: int) -> Point:
    """A uniform point: equal products (I4) matter more than a good guess of the solution.

    Scores, hence slacks, are larger where a sample has more pairs; the square root was found by
    trial.
    """
    size = pairs.cap.size
    slack = np.sqrt(size / (pairs.start.size - 1))
    b = 2.0 * np.arange(n_thresholds) - (n_thresholds - 1)
    mu, v = np.ones(n_thresholds), np.full(n_thresholds, 2.0)
    mu[0] = 0.0
    return Point(START * pairs.cap, np.full(size, slack), np.full(size, slack), b, mu, v)


@compiled
def _like(point: Point) -> Point:
    """Zeros of the same shapes."""
    return Point(
        np.zeros_like(point.alpha),
        np.zeros_like(point.z),
        np.zeros_like(point.w),
        np.zeros_like(point.b),
        np.zeros_like(point.mu),
        np.zeros_like(point.v),
    )


@compiled
def _residual(pairs: Pairs, point: Point, f: np.ndarray) -> np.ndarray:
    """How far each pair is from (14), (I1)."""
    residual = np.empty_like(point.alpha)
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            margin = pairs.sign[p] * (f[i] - point.b[pairs.threshold[p]])
            residual[p] = margin - 1.0 - point.z[p] + point.w[p]  # (I1)
    return residual


@compiled
def _balance(pairs: Pairs, point: Point, ordered: bool) -> np.ndarray:
    """How far the multipliers are from the equality of each threshold, (12) or (25): (I2)."""
    balance = np.zeros(point.b.size)
    for p in range(pairs.cap.size):
        balance[pairs.threshold[p]] += pairs.sign[p] * point.alpha[p]
    if ordered:
        for j in range(1, balance.size):
            balance[j] -= point.mu[j]
            balance[j - 1] += point.mu[j]
    return balance


@compiled
def _relative_gap(
    pairs: Pairs,
    point: Point,
    primal: float,
    beta: np.ndarray,
    f: np.ndarray,
    balance: np.ndarray,
    ordered: bool,
) -> float:
    """The largest of the duality gap, the balance and the disorder of b, all relative."""
    dual = dual_objective(point.alpha, beta, f)
    gap = (primal - dual) / abs(primal)  # (I9)
    gap = max(gap, np.max(np.abs(balance)) / np.max(pairs.cap))
    if ordered:
        for j in range(1, point.b.size):
            gap = max(gap, point.b[j - 1] - point.b[j])
    return gap


@compiled
def _mean_product(pairs: Pairs, point: Point, step: Point, length: float, ordered: bool) -> float:
    """The mean m of the products (I4) after a step of some length."""
    n_products = 2 * pairs.cap.size + (point.b.size - 1 if ordered else 0)
    total = 0.0
    for p in range(pairs.cap.size):
        alpha = point.alpha[p] + length * step.alpha[p]
        total += alpha * (point.z[p] + length * step.z[p])
        total += (pairs.cap[p] - alpha) * (point.w[p] + length * step.w[p])
    if ordered:
        for j in range(1, point.b.size):
            total += (point.mu[j] + length * step.mu[j]) * (point.v[j] + length * step.v[j])
    return total / n_products


@compiled
def _aim(
    pairs: Pairs,
    point: Point,
    step: Point,
    goal: float,
    second_order: bool,
    targets: Targets,
    ordered: bool,
) -> None:
    """Targets that bring all products to the goal, (I6), with or without the products of steps."""
    for p in range(pairs.cap.size):
        targets.z[p] = goal - point.alpha[p] * point.z[p]
        targets.w[p] = goal - (pairs.cap[p] - point.alpha[p]) * point.w[p]  # (I6)
        if second_order:
            targets.z[p] -= step.alpha[p] * step.z[p]
            targets.w[p] += step.alpha[p] * step.w[p]
    if ordered:
        for j in range(1, point.b.size):
            targets.v[j] = goal - point.mu[j] * point.v[j]
            if second_order:
                targets.v[j] -= step.mu[j] * step.v[j]


@compiled
def _correct(
    pairs: Pairs,
    point: Point,
    step: Point,
    length: float,
    goal: float,
    targets: Targets,
    ordered: bool,
) -> None:
    """Shift the targets of products that would leave [NEAR, FAR] times the goal, (I7)."""
    for p in range(pairs.cap.size):
        alpha = point.alpha[p] + length * step.alpha[p]
        targets.z[p] += _pull(alpha * (point.z[p] + length * step.z[p]), goal)
        room = pairs.cap[p] - alpha
        targets.w[p] += _pull(room * (point.w[p] + length * step.w[p]), goal)
    if ordered:
        for j in range(1, point.b.size):
            mu, v = point.mu[j] + length * step.mu[j], point.v[j] + length * step.v[j]
            targets.v[j] += _pull(mu * v, goal)


@compiled
def _pull(product: float, goal: float) -> float:
    """What brings a product into [NEAR, FAR] times the goal, bounded from below, (I7)."""
    if product < NEAR * goal:
        return NEAR * goal - product
    if product > FAR * goal:
        return max(FAR * goal - product, -FAR * goal)
    return 0.0


@compiled
def _longest(pairs: Pairs, point: Point, step: Point, system: System, ordered: bool) -> float:
    """The longest step, at most 1, that keeps everything non-negative, (I8)."""
    # one maximum for each kind of variable: a single one would be a chain of dependent steps
    alpha, room, z, w = 1.0, 1.0, 1.0, 1.0
    for p in range(pairs.cap.size):
        alpha = max(alpha, -step.alpha[p] * system.per_alpha[p])
        room = max(room, step.alpha[p] * system.per_room[p])
        if -step.z[p] > z * point.z[p]:
            z = -step.z[p] / point.z[p]
        if -step.w[p] > w * point.w[p]:
            w = -step.w[p] / point.w[p]
    steepest = max(alpha, room, z, w)
    if ordered:
        for j in range(1, point.b.size):
            steepest = max(steepest, -step.mu[j] / point.mu[j], -step.v[j] / point.v[j])
    return 1.0 / steepest


@compiled
def _copy(source: Point, target: Point) -> None:
    """target = source, in place."""
    target.alpha[:] = source.alpha
    target.z[:] = source.z
    target.w[:] = source.w
    target.b[:] = source.b
    target.mu[:] = source.mu
    target.v[:] = source.v


@compiled
def _move(point: Point, step: Point, length: float) -> None:
    """point += length * step, in place."""
    point.alpha[:] += length * step.alpha
    point.z[:] += length * step.z
    point.w[:] += length * step.w
    point.b[:] += length * step.b
    point.mu[:] += length * step.mu
    point.v[:] += length * step.v
