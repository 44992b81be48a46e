"""The fast solver: interior point, then semismooth Newton, then (rarely) some SMO steps.

`solve_pairs` ends with multipliers that are exactly feasible; their violation (19) and their
duality gap are computed from scratch. A solution has converged when the violation is
at most ``tol`` and the gap at most ``tol / 10`` of the objective.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.ordinal.gram.matrix import DenseGram, Gram, as_gram, stable_ridge
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.svor.interior import Interior, cold_start, interior_point
from ordrec.ordinal.svor.multipliers import bounds_of, implied_thresholds, restore_balance, snap
from ordrec.ordinal.svor.newton_system import Point
from ordrec.ordinal.svor.pairs import Pairs, anchored_thresholds, only_thresholds
from ordrec.ordinal.svor.polish import newton_steps
from ordrec.ordinal.svor.smo import smo
from ordrec.runtime.parallel import one_blas_thread

__all__ = [
    "GAP_PER_TOL",
    "INTERIOR_PER_GAP",
    "SINGLE_TOL",
    "Warm",
    "precisions",
    "solve_pairs",
    "step_ridge",
]

GAP_PER_TOL = 0.1  # relative duality gap asked for, per unit of tol
INTERIOR_PER_GAP = 0.03  # the interior point goes this much further than the gap asked for
SINGLE_TOL = 1e-4  # the smallest tol that an interior point in float32 is good for
FIRST_SIGMA = 5.0
NEWTON_PER_TOL = 0.02  # accuracy of f that ends a level
LEVELS = 8  # proximal levels of the polish, sigma growing tenfold unless it fails
STEPS_PER_LEVEL = 25
SMALL_PROBLEM = 500  # below this a factorisation is cheap next to correctors
SMO_STEPS_PER_SAMPLE = 50
NEARBY = 2.6  # ratio of caps up to which an earlier interior point helps
ON_BOUND = 1e-13  # of the cap: a multiplier this near to a bound is on it
ROUNDING = 1e-11  # of the summed caps: a smaller gap is lost in float64's rounding


class Warm(NamedTuple):
    """The starting point for a problem with the same kernel and samples, but other caps."""

    pairs: Pairs
    alpha: np.ndarray
    mu: np.ndarray
    b: np.ndarray
    early: Point  # from the last run of the interior-point method that started cold
    early_total: float  # the sum of its caps, zero if there was none


class _Outcome(NamedTuple):
    """Feasible multipliers and what is measured on them."""

    alpha: np.ndarray
    mu: np.ndarray
    beta: np.ndarray
    f: np.ndarray
    b: np.ndarray
    violation: float
    primal: float
    dual: float
    n_iter: int


def solve_pairs(
    K: np.ndarray | Gram,
    pairs: Pairs,
    n_thresholds: int,
    *,
    ordered: bool,
    tol: float = 1e-3,
    max_iter: int | None = None,
    method: str = "interior",
    start: Warm | None = None,
) -> Solution:
    """Solve the problem of any set of pairs; `explicit` and `implicit` make those of the paper.

    Parameters
    ----------
    K : ndarray of shape (n, n), float32 or float64, or Gram
        Gram matrix. Single precision halves time and memory. `FactoredGram` gives one by
        a factor Z, K = Z Z'.
    pairs : Pairs
    n_thresholds : int
    ordered : bool
        Whether the constraints b_1 <= ... <= b_T are part of the problem, (4).
    tol : float
        Bound on the violation (19); the relative duality gap must be a tenth of it.
    max_iter : int, optional
        Factorisations (interior, default 200) or steps (smo, default at least a million).
    method : "interior" or "smo"
    start : Warm, optional
        The ``state`` of a solution for the same K and samples and nearby caps.
    """
    gram = as_gram(K)
    anchored = anchored_thresholds(pairs, n_thresholds, ordered)
    inner = only_thresholds(pairs, anchored)
    thresholds = np.zeros(n_thresholds)
    if not anchored.any():
        n = gram.n
        beta, f = np.zeros(n), np.zeros(n)
        thresholds = _with_loose(thresholds, anchored, pairs, f, ordered)
        return Solution(beta, thresholds, 0.0, 0.0, 0.0, 0, True)
    T = int(anchored.sum())
    outcome, early, early_total = _run(gram, inner, T, ordered, tol, max_iter, method, start)
    gap = outcome.primal - outcome.dual
    converged = bool(_good(outcome, tol, inner.cap.sum()))
    thresholds[anchored] = outcome.b
    thresholds = _with_loose(thresholds, anchored, pairs, outcome.f, ordered)
    return Solution(
        outcome.beta,
        thresholds,
        outcome.primal,
        outcome.violation,
        gap,
        outcome.n_iter,
        converged,
        Warm(inner, outcome.alpha, outcome.mu, outcome.b, early, early_total),
    )


def _run(
    K: Gram,
    pairs: Pairs,
    T: int,
    ordered: bool,
    tol: float,
    max_iter: int | None,
    method: str,
    start: Warm | None,
) -> tuple[_Outcome, Point, float]:
    """Solve by the method asked for, warm if possible; also the early point of a cold start."""
    total = float(pairs.cap.sum())
    cold = cold_start(pairs, K.n, T)
    if method == "smo":
        steps = max(1_000_000, 1000 * K.n) if max_iter is None else max_iter
        alpha, mu = np.zeros(pairs.cap.size), np.zeros(T)
        end = _finish(K, pairs, alpha, mu, np.zeros(T), ordered, tol, steps, 0)
        return end, cold, 0.0
    if start is not None and np.array_equal(start.pairs.threshold, pairs.threshold):
        if np.all(start.alpha <= pairs.cap) and np.all(start.alpha < start.pairs.cap):
            # no multiplier was at its cap, so that larger caps change nothing
            f = np.zeros(K.n)
            outcome = _measure(K, pairs, start.alpha, start.mu, f, start.b, ordered, 0)
            if _good(outcome, tol, total):
                return outcome, start.early, start.early_total
        if total <= NEARBY * start.early_total and start.early_total <= NEARBY * total:
            warm = _rescaled(start.early, pairs, total / start.early_total)
            outcome, _ = _interior(K, pairs, warm, ordered, tol, max_iter)
            if _good(outcome, tol, total):
                return outcome, start.early, start.early_total
    outcome, early = _interior(K, pairs, cold, ordered, tol, max_iter)
    return outcome, early, total


def _rescaled(point: Point, pairs: Pairs, ratio: float) -> Point:
    """A point inside the box of other caps, at the same fractions of them."""
    alpha = np.clip(ratio * point.alpha, 0.01 * pairs.cap, 0.99 * pairs.cap)
    return point._replace(alpha=alpha, mu=ratio * point.mu)


def _interior(
    K: Gram,
    pairs: Pairs,
    start: Point,
    ordered: bool,
    tol: float,
    max_iter: int | None,
) -> tuple[_Outcome, Point]:
    """Interior point and polish, their steps in single precision first if tol allows it."""
    steps = 200 if max_iter is None else max_iter
    small = K.n <= SMALL_PROBLEM
    # where K is given by a factor, a new system costs hardly more than one more solution
    correctors = 1 if K.factored else 2 if small else 6
    gap = INTERIOR_PER_GAP * GAP_PER_TOL * tol
    # a multiplier may reach its bound in the last digit; what is not finite then ends the search
    quiet = np.errstate(divide="ignore", over="ignore", invalid="ignore")
    with quiet, one_blas_thread():  # large factorisations have threads of their own
        for coarse in precisions(K, tol):
            ridge = step_ridge(coarse)
            end = interior_point(coarse, pairs, ordered, gap, steps, correctors, ridge, start)
            outcome = _polish(K, coarse, pairs, end, ordered, tol, steps, ridge)
            if _good(outcome, tol, pairs.cap.sum()):
                break
    return outcome, end.early


def precisions(K: Gram, tol: float) -> list[Gram]:
    """K in the precisions that steps are tried in: in single precision first if tol allows it."""
    if isinstance(K, DenseGram) and K.values.dtype == np.float64 and tol >= SINGLE_TOL:
        return [K.in_single(), K]
    return [K]


def step_ridge(K: Gram) -> float:
    """The ridge of the systems that give the steps; nothing but the steps depends on it."""
    return stable_ridge(K, single=1e-6, double=1e-12)


def _polish(
    K: Gram,
    coarse: Gram,
    pairs: Pairs,
    end: Interior,
    ordered: bool,
    tol: float,
    max_iter: int,
    ridge: float,
) -> _Outcome:
    """Newton steps at growing sigma, and steps of SMO if they do not suffice."""
    alpha, b, mu, n_iter = end.alpha, end.b, end.mu, end.n_iter
    if not np.isfinite(alpha.sum()):
        alpha[:], b[:], mu[:] = 0.0, 0.0, 0.0
    if not ordered:
        mu[:] = 0.0
    f = K.times(_beta(pairs, alpha, K.n))

    sigma, accuracy = FIRST_SIGMA, NEWTON_PER_TOL * tol
    total_cap = float(pairs.cap.sum())
    outcomes = []
    inside = (alpha.copy(), mu.copy(), f.copy(), b.copy())
    for _ in range(LEVELS):
        budget = min(STEPS_PER_LEVEL, max_iter - n_iter)
        before = (alpha.copy(), b.copy(), mu.copy(), f.copy())
        steps = newton_steps(
            K, coarse, pairs, ordered, sigma, accuracy, budget, ridge, alpha, b, mu, f
        )
        if steps < 0:  # a smaller sigma stays closer to where it starts from
            n_iter += budget
            alpha[:], b[:], mu[:], f[:] = before
            sigma *= 0.1
            continue
        n_iter += steps
        outcomes.append(_measure(K, pairs, alpha, mu, f, b, ordered, n_iter))
        if _good(outcomes[-1], tol, total_cap):
            return outcomes[-1]
        sigma *= 10.0
    outcomes.append(_measure(K, pairs, *inside, ordered, end.n_iter))
    best = min(outcomes, key=lambda outcome: outcome.violation)
    in_double_next = coarse.values.itemsize < K.values.itemsize
    if n_iter >= max_iter or in_double_next:
        return best
    budget = SMO_STEPS_PER_SAMPLE * K.n
    alpha, mu = best.alpha.copy(), best.mu.copy()
    return _finish(K, pairs, alpha, mu, best.b, ordered, tol, budget, n_iter)


def _finish(
    K: Gram,
    pairs: Pairs,
    alpha: np.ndarray,
    mu: np.ndarray,
    b: np.ndarray,
    ordered: bool,
    tol: float,
    max_steps: int,
    n_iter: int,
) -> _Outcome:
    """SMO from a feasible point, at smaller and smaller tolerance until the gap is met too."""
    stop, used = tol, 0
    while True:
        f = K.times(_beta(pairs, alpha, K.n))  # afresh: updates accumulate rounding
        used += smo(K, pairs, ordered, stop, max_steps - used, alpha, mu, f)
        outcome = _measure(K, pairs, alpha, mu, f, b, ordered, n_iter + used)
        if _good(outcome, tol, float(pairs.cap.sum())) or used >= max_steps or stop < 1e-6 * tol:
            return outcome
        stop *= 0.2


def _measure(
    K: Gram,
    pairs: Pairs,
    alpha: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    ordered: bool,
    n_iter: int,
) -> _Outcome:
    """Make the multipliers exactly feasible; violation, thresholds and objectives from scratch."""
    alpha, mu = alpha.copy(), mu.copy()
    snap(pairs.cap, alpha, ON_BOUND)
    restore_balance(pairs, alpha, mu, f, b, ordered)
    beta = _beta(pairs, alpha, f.size)
    scores = K.times(beta)
    bounds = bounds_of(pairs, alpha, mu, scores, ordered)
    thresholds = implied_thresholds(bounds)
    violation = max(0.0, float(np.max(bounds.low - bounds.up)))
    primal, dual = _primal_and_dual(pairs, alpha, beta, scores, thresholds)
    return _Outcome(alpha, mu, beta, scores, thresholds, violation, primal, dual, n_iter)


def _primal_and_dual(
    pairs: Pairs, alpha: np.ndarray, beta: np.ndarray, f: np.ndarray, b: np.ndarray
) -> tuple[float, float]:
    """Half the squared norm of w plus the hinge losses, (5) or (20), and the dual, (11) or (24).

    The dual is a lower bound of the primal at any balanced multipliers in their box.
    """
    half_norm = 0.5 * float(beta @ f)
    loss = float(pairs.cap @ np.maximum(pairs.shortfall(f, b), 0.0))
    return half_norm + loss, float(alpha.sum()) - half_norm


def _beta(pairs: Pairs, alpha: np.ndarray, n: int) -> np.ndarray:
    """The signed sums of the multipliers, (8)."""
    return pairs.sums(pairs.sign * alpha, n)


def _good(outcome: _Outcome, tol: float, total_cap: float) -> bool:
    """Whether violation and gap are within their bounds."""
    gap = outcome.primal - outcome.dual
    smallest = ROUNDING * total_cap
    return outcome.violation <= tol and gap <= GAP_PER_TOL * tol * outcome.primal + smallest


def _with_loose(
    thresholds: np.ndarray, anchored: np.ndarray, pairs: Pairs, f: np.ndarray, ordered: bool
) -> np.ndarray:
    """Give each threshold that the problem leaves undetermined the nearest value without loss.

    With samples on one side only, that is just beyond the margin of the outermost of them; with
    no samples at all, the value of the neighbour, so that the ranks between are never predicted.
    """
    if anchored.all():
        return thresholds
    F = f[pairs.sample] - pairs.sign
    known = anchored.copy()
    for j in np.flatnonzero(~anchored):
        mine = pairs.threshold == j
        if mine.any():
            above = pairs.sign[mine][0] > 0
            thresholds[j] = F[mine].min() if above else F[mine].max()
            known[j] = True
    for j in np.flatnonzero(~known):
        nearest = np.flatnonzero(known)
        thresholds[j] = thresholds[nearest[np.abs(nearest - j).argmin()]] if nearest.size else 0.0
    if ordered and anchored.any():
        first, last = np.flatnonzero(anchored)[[0, -1]]
        thresholds[:first] = np.minimum.accumulate(thresholds[: first + 1][::-1])[::-1][:-1]
        thresholds[last:] = np.maximum.accumulate(thresholds[last:])
    return thresholds
