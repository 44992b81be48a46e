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

(I5) and (I6) are Mehrotra's predictor and corrector, with the power 4 instead of 3: there is less
centring, and Gondzio's centrality correctors (I7) make up for it. They use the one factor of M
again and again, at O(n^2) each beside its O(n^3 / 3).

Springs between the thresholds make it the machine of Li and Lin (`reduced`); with stiffness s

    primal + s/2 sum_j (b_j - mean b)^2,  balance_j + s (b_j - mean b) = 0,
    dual - 1/(2 s) sum_j (balance_j - mean balance)^2                               (I10)

The matrix K and the factor may be float32. Everything else is float64, f = K beta
included: sums over thousands of samples in single precision stall the gap near 1e-4. The
error of a single-precision solve goes into ``residual`` and the next step removes it.
"""

from __future__ import annotations

from math import isfinite, log
from typing import NamedTuple

import numpy as np

from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.svor.newton_system import NewtonSystem, Point, Targets
from ordrec.ordinal.svor.pairs import Pairs
from ordrec.runtime.compiling import compiled
from ordrec.runtime.progress import report

__all__ = ["Interior", "cold_start", "interior_point"]

START = 0.2  # of the cap: all multipliers start here
LEAST_CENTRING = 1e-3  # goal / m is never smaller
LONG_ENOUGH = 0.999  # steps longer than this need no further corrector
LOOK_AHEAD = 0.3  # a corrector aims at a step this much longer
NEAR, FAR = 0.3, 3.0  # products outside [NEAR, FAR] times the goal are corrected
WORTH = 0.01  # a corrector is used if it lengthens the step by this much
BACK_OFF = 0.999  # of the way to the boundary
EARLY_GAP = 0.99  # relative gap at which the point for warm starts is taken: later ones are worse
PATIENCE = 5  # iterations without a smaller gap before giving up
WANDERING = 25  # the same before it has ever been small: tiny costs begin far from balance


class Interior(NamedTuple):
    """The end point, its multipliers strictly inside their bounds, and one on the way."""

    alpha: np.ndarray
    b: np.ndarray
    mu: np.ndarray
    early: Point  # still central enough to start a problem with other caps from
    n_iter: int
    converged: bool


class _State(NamedTuple):
    """What is measured at a point."""

    primal: float
    gap: float  # the largest of duality gap, balance and disorder of b, all relative
    residual: np.ndarray  # (I1)
    balance: np.ndarray  # (I2), (I10)
    products: Targets  # alpha z, (cap - alpha) w and mu v, (I4)
    total: float  # of the products


def interior_point(
    K: Gram,
    pairs: Pairs,
    ordered: bool,
    gap_tol: float,
    max_iter: int,
    n_correctors: int,
    ridge: float,
    start: Point,
    stiffness: float = 0.0,
) -> Interior:
    """Minimise to a relative duality gap of gap_tol, in at most max_iter factorisations."""
    T = start.b.size
    here = np.concatenate(start)
    nearest_one, early = here.copy(), np.zeros_like(here)
    moved, tried = np.zeros_like(here), np.zeros_like(here)
    point, step, trial = (Point.within(buffer, T) for buffer in (here, moved, tried))
    system = NewtonSystem(K, pairs, T, ordered=ordered, stiffness=stiffness, ridge=ridge)
    n_products = 2 * pairs.cap.size + (T - 1 if ordered else 0)
    smallest, nearest, since = np.inf, np.inf, 0
    for iteration in range(max_iter + 1):
        state = _evaluate(K, pairs, point, ordered, stiffness)
        primal, gap, residual, balance, products, total = state
        if gap <= gap_tol:
            return _ended(here, early, T, iteration, True)
        if gap <= EARLY_GAP < smallest:
            early[:] = here
        smallest = min(gap, smallest)
        # far from the solution the objective falls by decades while the relative gap stays at 1
        distance = gap * abs(primal)
        since = 0 if distance < 0.9 * nearest else since + 1
        if distance < nearest:
            nearest = distance
            nearest_one[:] = here
        patience = PATIENCE if smallest < EARLY_GAP else WANDERING
        if iteration == max_iter or since > patience or not isfinite(gap):
            break
        # by now the gap falls by about the same factor in each iteration
        report(max(-log(gap), 0.0), -log(gap_tol), f"iteration {iteration + 1}")
        if not system.prepare(point):
            break
        # the pure Newton step: where does it lead, and how much centring does it need?
        m = total / n_products
        targets = Targets(-products.z, -products.w, -products.v)
        length = system.direction(point, residual, balance, targets, step)
        # the products fall in proportion to the length, but for those of two steps
        crossed = step.alpha @ (step.z - step.w) + (step.mu @ step.v if ordered else 0.0)
        ahead = (1.0 - length) * total + length * length * float(crossed)
        squared = (ahead / total) ** 2
        goal = m * max(squared * squared, LEAST_CENTRING)  # (I5)
        targets = _aim(products, step, goal)
        length = system.direction(point, residual, balance, targets, step)
        for _ in range(n_correctors):  # Gondzio: pull back what a longer step would spoil
            if length >= LONG_ENOUGH:
                break
            further = min(1.0, length + LOOK_AHEAD)
            _correct(pairs.cap, ordered, point, step, further, goal, targets)
            longer = system.direction(point, residual, balance, targets, trial)
            if longer < length + WORTH:
                break
            step, trial, moved, tried = trial, step, tried, moved
            length = longer
        here += BACK_OFF * length * moved
    return _ended(nearest_one, early, T, iteration, False)


def _ended(end: np.ndarray, early: np.ndarray, T: int, n_iter: int, converged: bool) -> Interior:
    """What the buffers of two points hold."""
    last, first = Point.within(end, T), Point.within(early, T)
    return Interior(last.alpha, last.b, last.mu, first, n_iter, converged)


def cold_start(pairs: Pairs, n: int, n_thresholds: int) -> Point:
    """A uniform point: equal products (I4) matter more than a good guess of the solution.

    Scores, hence slacks, are larger where a sample has more pairs; the square root was found by
    trial.
    """
    size = pairs.cap.size
    slack = np.sqrt(size / n)
    b = 2.0 * np.arange(n_thresholds) - (n_thresholds - 1)
    mu, v = np.ones(n_thresholds), np.full(n_thresholds, 2.0)
    mu[0] = 0.0
    return Point(START * pairs.cap, np.full(size, slack), np.full(size, slack), b, mu, v)


def _evaluate(K: Gram, pairs: Pairs, point: Point, ordered: bool, stiffness: float = 0.0) -> _State:
    """The objectives and how far the point is from a solution."""
    alpha, z, w, b, mu, v = point
    beta, balance = np.zeros(K.n), np.zeros(b.size)
    _sum_signed(*pairs[:3], alpha, beta, balance)
    f = K.times(beta)
    residual, products = np.empty_like(z), Targets(np.empty_like(z), np.empty_like(z), mu * v)
    loss, gain, m = _evaluate_pairs(*pairs, alpha, z, w, f, b, residual, *products[:2])
    half_norm = 0.5 * float(beta @ f)
    primal, dual = half_norm + loss, gain - half_norm
    if stiffness > 0.0:  # (I10)
        spread = b - b.mean()
        primal += 0.5 * stiffness * float(spread @ spread)
        dual -= 0.5 / stiffness * float(balance @ (balance - balance.mean()))
        balance += stiffness * spread
    gap = (primal - dual) / abs(primal)  # (I9)
    if ordered:
        balance -= mu
        balance[:-1] += mu[1:]
        gap = max(gap, float(np.max(b[:-1] - b[1:], initial=-np.inf)))
        m += float(mu @ v)
    gap = max(gap, float(np.abs(balance).max() / pairs.cap.max()))
    return _State(primal, gap, residual, balance, products, m)


@compiled
def _sum_signed(
    sample: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    balance: np.ndarray,
) -> None:
    """Add the signed multipliers to beta and to the balance."""
    for p in range(alpha.size):
        beta[sample[p]] += sign[p] * alpha[p]
        balance[threshold[p]] += sign[p] * alpha[p]


@compiled
def _evaluate_pairs(
    sample: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    residual: np.ndarray,
    product_z: np.ndarray,
    product_w: np.ndarray,
) -> tuple[float, float, float]:
    """Loss, sum of alpha and sum of the products (I4); (I1) and the products of each pair."""
    loss, gain, total = 0.0, 0.0, 0.0
    for p in range(alpha.size):
        short = 1.0 - sign[p] * (f[sample[p]] - b[threshold[p]])
        loss += cap[p] * max(short, 0.0)
        gain += alpha[p]
        residual[p] = w[p] - z[p] - short  # (I1)
        product_z[p] = alpha[p] * z[p]
        product_w[p] = (cap[p] - alpha[p]) * w[p]
        total += product_z[p] + product_w[p]
    return loss, gain, total


def _aim(products: Targets, step: Point, goal: float) -> Targets:
    """Targets that bring all products to the goal, (I6)."""
    z = goal - products.z - step.alpha * step.z
    w = goal - products.w + step.alpha * step.w
    return Targets(z, w, goal - products.v - step.mu * step.v)


def _correct(
    cap: np.ndarray,
    ordered: bool,
    point: Point,
    step: Point,
    length: float,
    goal: float,
    targets: Targets,
) -> None:
    """Shift the targets of products that would leave [NEAR, FAR] times the goal, (I7)."""
    low, high = NEAR * goal, FAR * goal
    _pull_pairs(cap, *point[:3], *step[:3], length, low, high, *targets[:2])
    if ordered:
        product = (point.mu + length * step.mu) * (point.v + length * step.v)
        inside = np.minimum(np.maximum(product, low), high)
        targets.v[:] += np.maximum(inside - product, -high)


@compiled
def _pull_pairs(
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    step_alpha: np.ndarray,
    step_z: np.ndarray,
    step_w: np.ndarray,
    length: float,
    low: float,
    high: float,
    target_z: np.ndarray,
    target_w: np.ndarray,
) -> None:
    """Add what brings the products of the pairs into [low, high], but at least -high, (I7)."""
    for p in range(cap.size):
        moved = alpha[p] + length * step_alpha[p]
        product = moved * (z[p] + length * step_z[p])
        target_z[p] += max(min(max(product, low), high) - product, -high)
        product = (cap[p] - moved) * (w[p] + length * step_w[p])
        target_w[p] += max(min(max(product, low), high) - product, -high)
