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

(I5) and (I6) are Mehrotra's predictor and corrector, with the power 4 in place of his 3: there is
less centring, and Gondzio's centrality correctors (I7) make up for it. They use the one factor of M
again and again, at O(n^2) each beside its O(n^3 / 3).

The matrix K and the factor may be float32. Everything else is float64, f = K beta
included: sums over thousands of samples in single precision stall the gap near 1e-4. The
error of a single-precision solve goes into ``residual`` and the next step removes it.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from ordrec.compiling import compiled, inner
from ordrec.linalg.lapack import ADDRESSES
from ordrec.ordinal.svor.gram import Gram, gram_times
from ordrec.ordinal.svor.newton_system import (
    Point,
    Targets,
    direction,
    prepare,
    room_for_system,
)
from ordrec.ordinal.svor.objective import signed_sums
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["Interior", "cold_start", "interior_point"]

START = 0.2  # of the cap: all multipliers start here
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


def interior_point(
    K: Gram,
    pairs: Pairs,
    ordered: bool,
    gap_tol: float,
    max_iter: int,
    n_correctors: int,
    ridge: float,
    start: Point,
) -> Interior:
    """Minimise to a relative duality gap of gap_tol, in at most max_iter factorisations."""
    T = start.b.size
    here, soon, nearest_one, *steps = np.zeros((5, sum(each.size for each in start)))
    here[:] = np.concatenate(start)
    point, step, trial = (Point.within(buffer, T) for buffer in (here, *steps))
    targets = Targets(np.empty_like(point.z), np.empty_like(point.z), np.zeros_like(point.v))
    system = room_for_system(K, pairs, T)
    beta, f = np.empty((2, K.values.shape[0]))
    residual, balance = np.empty_like(point.z), np.empty_like(point.b)
    # all arrays are overwritten in place, so that the arguments are the same in each iteration
    to_survey = *K.form, *pairs, *point, beta, f, ordered, residual, balance
    to_prepare = *K.form, ADDRESSES, ridge, *pairs, *point, ordered, *system
    to_solve = *K.form, ADDRESSES, *pairs, *point, residual, balance, *targets, ordered, *system
    smallest, nearest, since = np.inf, np.inf, 0
    for iteration in range(max_iter + 1):
        primal, gap, m = _survey(*to_survey)
        if gap <= gap_tol:
            return _ended(here, soon, T, iteration, True)
        if gap <= EARLY_GAP < smallest:
            soon[:] = here
        smallest = min(gap, smallest)
        # far from the solution the objective falls by decades while the relative gap stays at 1
        distance = gap * abs(primal)
        since = 0 if distance < 0.9 * nearest else since + 1
        if distance < nearest:
            nearest = distance
            nearest_one[:] = here
        if iteration == max_iter or since > PATIENCE or not isfinite(gap):
            break
        if not prepare(*to_prepare):
            break
        # the pure Newton step: where does it lead, and how much centring does it need?
        _aim(pairs.cap, *point, *step, 0.0, False, *targets, ordered)
        _, ahead = direction(*to_solve, *step)
        squared = (ahead / m) * (ahead / m)
        goal = m * max(squared * squared, LEAST_CENTRING)  # (I5)
        _aim(pairs.cap, *point, *step, goal, True, *targets, ordered)
        length, _ = direction(*to_solve, *step)
        for _ in range(n_correctors):  # Gondzio: pull back what a longer step would spoil
            if length >= LONG_ENOUGH:
                break
            further = min(1.0, length + LOOK_AHEAD)
            _correct(pairs.cap, *point, *step, further, goal, *targets, ordered)
            longer, _ = direction(*to_solve, *trial)
            if longer < length + WORTH:
                break
            step, trial = trial, step
            length = longer
        _move(*point, *step, BACK_OFF * length)
    return _ended(nearest_one, soon, T, iteration, False)


def _ended(end: np.ndarray, early: np.ndarray, T: int, n_iter: int, converged: bool) -> Interior:
    """What the buffers of two points hold."""
    last, first = Point.within(end.copy(), T), Point.within(early.copy(), T)
    return Interior(last.alpha, last.b, last.mu, first, n_iter, converged)


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
def _survey(
    values: np.ndarray,
    factored: bool | None,
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    beta: np.ndarray,
    f: np.ndarray,
    ordered: bool,
    residual: np.ndarray,
    balance: np.ndarray,
) -> tuple[float, float, float]:
    """The primal objective, how far the point is from a solution, and the mean m of (I4).

    How far is the largest of the duality gap, the balance and the disorder of b, all relative;
    ``residual`` and ``balance`` are how far each pair is from (14), (I1), and the multipliers
    from the equality of each threshold, (12) or (25): (I2).
    """
    signed_sums(start, sign, alpha, beta)
    gram_times(values, factored, beta, f)
    for j in range(b.size):
        balance[j] = 0.0
    loss, total, half_norm, products, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(f.size):
        half_norm += 0.5 * beta[i] * f[i]
        for p in range(start[i], start[i + 1]):
            j = threshold[p]
            short = 1.0 - sign[p] * (f[i] - b[j])
            if short > 0.0:
                loss += cap[p] * short
            residual[p] = w[p] - z[p] - short  # (I1)
            total += alpha[p]
            largest = max(largest, cap[p])
            products += alpha[p] * z[p] + (cap[p] - alpha[p]) * w[p]
            balance[j] += sign[p] * alpha[p]
    primal = half_norm + loss
    gap = (primal - (total - half_norm)) / abs(primal)  # (I9)
    for j in range(b.size):
        if ordered and j > 0:
            balance[j] -= mu[j]
            balance[j - 1] += mu[j]
            products += mu[j] * v[j]
            gap = max(gap, b[j - 1] - b[j])
    for j in range(b.size):
        gap = max(gap, abs(balance[j]) / largest)
    return primal, gap, products / (2 * cap.size + (b.size - 1 if ordered else 0))


@compiled
def _aim(
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    step_alpha: np.ndarray,
    step_z: np.ndarray,
    step_w: np.ndarray,
    step_b: np.ndarray,
    step_mu: np.ndarray,
    step_v: np.ndarray,
    goal: float,
    second_order: bool,
    target_z: np.ndarray,
    target_w: np.ndarray,
    target_v: np.ndarray,
    ordered: bool,
) -> None:
    """Targets that bring all products to the goal, (I6), with or without the products of steps."""
    for p in range(cap.size):
        target_z[p] = goal - alpha[p] * z[p]
        target_w[p] = goal - (cap[p] - alpha[p]) * w[p]  # (I6)
        if second_order:
            target_z[p] -= step_alpha[p] * step_z[p]
            target_w[p] += step_alpha[p] * step_w[p]
    if ordered:
        for j in range(1, b.size):
            target_v[j] = goal - mu[j] * v[j]
            if second_order:
                target_v[j] -= step_mu[j] * step_v[j]


@compiled
def _correct(
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    step_alpha: np.ndarray,
    step_z: np.ndarray,
    step_w: np.ndarray,
    step_b: np.ndarray,
    step_mu: np.ndarray,
    step_v: np.ndarray,
    length: float,
    goal: float,
    target_z: np.ndarray,
    target_w: np.ndarray,
    target_v: np.ndarray,
    ordered: bool,
) -> None:
    """Shift the targets of products that would leave [NEAR, FAR] times the goal, (I7)."""
    for p in range(cap.size):
        moved = alpha[p] + length * step_alpha[p]
        target_z[p] += _pull(moved * (z[p] + length * step_z[p]), goal)
        target_w[p] += _pull((cap[p] - moved) * (w[p] + length * step_w[p]), goal)
    if ordered:
        for j in range(1, b.size):
            product = (mu[j] + length * step_mu[j]) * (v[j] + length * step_v[j])
            target_v[j] += _pull(product, goal)


@inner
def _pull(product: float, goal: float) -> float:
    """What brings a product into [NEAR, FAR] times the goal, bounded from below, (I7)."""
    if product < NEAR * goal:
        return NEAR * goal - product
    if product > FAR * goal:
        return max(FAR * goal - product, -FAR * goal)
    return 0.0


@compiled
def _move(
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    step_alpha: np.ndarray,
    step_z: np.ndarray,
    step_w: np.ndarray,
    step_b: np.ndarray,
    step_mu: np.ndarray,
    step_v: np.ndarray,
    length: float,
) -> None:
    """point += length * step, in place."""
    for p in range(alpha.size):
        alpha[p] += length * step_alpha[p]
        z[p] += length * step_z[p]
        w[p] += length * step_w[p]
    for j in range(b.size):
        b[j] += length * step_b[j]
        mu[j] += length * step_mu[j]
        v[j] += length * step_v[j]
