"""A guess of the active set, block pivoting to finish: the solver NPSVOR uses.

Once it is known which multipliers are at a bound, at the kink or free, problem (8) is a
linear system: K_FF z_F + b = target on the free rows F, e'z = 0. A few iterations of ADMM
guess the set almost right. Each round of pivoting then solves that system, exchanges every
multiplier that left its place (a free one outside its interval, a fixed one whose derivative
has the wrong sign) and solves again (Judice and Pires 1994, block principal pivoting). When
no exchange is left the point is optimal. When the number of exchanges stops falling, ADMM
goes on with twice the iterations and guesses again; as ADMM converges, so does the whole.

`_plan` lists who guesses, and how many iterations a guess may take. For a large problem, the
first guess comes from ADMM on parts of the rows; for a factored kernel from an interior-point
method (`interior`), which is nearly exact. So does the second guess for a small kernel matrix or
one of low rank, where ADMM may take thousands of iterations. Where costs are small, sequential
minimal optimisation (`smo`) comes first, and mostly needs no further guess at all. Rounds without
exchange refine the solution by conjugate gradients; the factored block, which has a ridge and may
be in single precision, is their preconditioner.

Departures
----------
The solution is exact
    The paper stops ADMM at 1e-2, and its authors' program after 50 iterations. Effect: at C = 100
    and gamma = 1 on California housing, stopping early has the lower errors (MAE .694 against
    .721 at 600 rows, .594 against .643 at 2000); with C and gamma chosen by cross-validation the
    exact solution is better on 9 of 13 sets, so it is the default.
The bias minimises the loss
    The paper averages over free multipliers, which rounding hides where C1 is 1e7 times C2.
    Effect: none but there.

Places of a multiplier: LOWER and UPPER its bounds, KINK rho = 0 on the rank itself, POSITIVE
and NEGATIVE free (off the rank: POSITIVE, whatever the sign).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor

import numpy as np

from ordrec.ordinal.gram.matrix import DenseGram, FactoredGram, Gram, factor_of, stable_ridge
from ordrec.ordinal.gram.shifted import ShiftedGram
from ordrec.ordinal.npsvor import smo
from ordrec.ordinal.npsvor.admm import ADMM, PartedADMM, balanced
from ordrec.ordinal.npsvor.interior import InteriorPoint
from ordrec.ordinal.npsvor.problem import (
    Planes,
    bias,
    excess,
    primal_objective,
    violation,
)
from ordrec.ordinal.solution import Solution
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["free_step", "pivoting_ridge", "solve"]

LOWER, NEGATIVE, KINK, POSITIVE, UPPER = -2, -1, 0, 1, 2
FIRST_GUESS = 12  # ADMM iterations before the first pivoting
SECOND_GUESS = 48  # and after another method's guess was too rough
NEWTON_STEPS = 40  # of the interior-point method, which mostly stands still after twenty
LARGE = 1500  # rows from which the first guess is made in two parts
SMO_TOL = 0.15  # in units of tol: two multipliers at a time leave many small violations
CHEAP = 1e7  # n p^2 up to which Newton steps on a factor of p columns are worth a second guess
PATIENCE = 4  # rounds without progress
MAX_ROUNDS = 40
TIGHTER = 6  # times that pivoting goes on at a tenth of the tolerance, to close the gap
STANDSTILL = 1e-6  # residuals of a method from which another guess would be the same
RENEWALS = 3  # of the sums in the precision of K
NEARLY = 5  # exchanges up to which rounding may be what is in the way, not the guess
CHANGED = 0.05  # of a score, by the ridge
LARGEST_RIDGE = 1e-2  # of the mean diagonal
WIDEST = (50, 0.2)  # rows that may change, and share of the block, before it is factored anew

Guesser = ADMM | PartedADMM | InteriorPoint
# A method of guessing for some planes, and its iterations; None goes on with the last method.
Guess = tuple[Callable[[Planes], Guesser] | None, int]


def solve(
    gram: Gram,
    planes: Planes,
    *,
    eta: float,
    tol: float,
    max_iter: int,
    largest: float = np.inf,
    n_jobs: int | None = None,
) -> Solution:
    """Solve (8) for all ranks to a KKT violation of tol and a relative gap of a tenth of it.

    Parameters
    ----------
    eta : float
        Penalty of ADMM.
    tol : float
        Largest violation of optimality, in units of the margin; the duality gap of each rank must
        be at most a tenth of it, as a share of its objective.
    max_iter : int
        Limit of ADMM iterations.
    largest : float
        Upper bound on a multiplier; a smaller bound allows a larger ridge.
    n_jobs : int
        Threads; each takes a part of the first guess, then one rank at a time.

    Returns
    -------
    Solution
        ``coef`` (n, r) and the biases as ``thresholds``; ``violation`` is the largest of all
        ranks; the objective and the gap are sums over the ranks.
    """
    with loop_threads(worker_count(n_jobs)) as threads:
        return _solve(gram, planes, eta, tol, max_iter, pivoting_ridge(gram, largest), threads)


def pivoting_ridge(gram: Gram, largest: float = np.inf) -> float:
    """The shift of the free blocks, which only precondition the system of the multipliers.

    At least what keeps the Cholesky factor of a singular kernel stable. Beyond that, a shift makes
    block pivoting converge: without one, multipliers whose rows are nearly dependent leap from
    bound to bound. ``largest`` times the shift is what it may change of a score, whose margin is 1.
    """
    if gram.factored:
        return 1e-7 * (gram.mean_diagonal() or 1.0)
    stable = stable_ridge(gram, single=1e-3, double=1e-8)
    return max(stable, min(CHANGED / largest, LARGEST_RIDGE * gram.mean_diagonal()))


def _solve(
    gram: Gram,
    planes: Planes,
    eta: float,
    tol: float,
    max_iter: int,
    ridge: float,
    threads: Executor,
) -> Solution:
    """Guess and pivot until every rank is solved."""
    best = _Best(gram, planes, tol, threads)
    ranks = np.arange(planes.side.shape[1])  # those that are not solved yet
    used = 0  # iterations of methods that were given up
    if isinstance(gram, DenseGram) and smo.is_easy(gram, planes):
        best.offer(ranks, balanced(planes, smo.descend(gram, planes, SMO_TOL * tol, threads)))
        ranks, used = ranks[best.excess > 1.0], 1
        if not ranks.size:
            return best.solution(used)
    guesser: Guesser | None = None
    residual = np.empty(0)
    for method, budget in _plan(gram, eta, threads):
        if method is not None:
            if guesser is not None and not isinstance(guesser, PartedADMM):
                used += guesser.n_iter  # those on parts are cheap, and do not count
            guesser = method(planes.columns(ranks))
        elif residual.max() <= STANDSTILL:
            break
        assert guesser is not None  # a plan begins with a method
        residual = np.full(ranks.size, np.inf)
        while guesser.n_iter < min(budget, max_iter - used) and residual.max() > STANDSTILL:
            residual = guesser.step(tol)
        best.offer(ranks, _pivot(gram, guesser.planes, guesser.z, tol, ridge, threads))
        _close_gaps(best, ranks, ridge)
        if (best.excess[ranks] > 1.0).any():
            best.offer(ranks, balanced(guesser.planes, guesser.z))
        still_open = best.excess[ranks] > 1.0
        ranks = ranks[still_open]
        if not ranks.size or used + guesser.n_iter >= max_iter:
            break  # before the plan is asked for the next method, whose preparation takes time
        if not isinstance(guesser, PartedADMM):
            guesser.restrict(still_open)
    assert guesser is not None
    return best.solution(used + guesser.n_iter)


def _close_gaps(best: _Best, ranks: np.ndarray, ridge: float) -> None:
    """Pivot on at smaller tolerances where violations are small enough but gaps are not."""
    tol = best.tol
    for _ in range(TIGHTER):
        wide = ranks[(best.excess[ranks] > 1.0) & (best.violation[ranks] <= best.tol)]
        if not wide.size:
            return
        tol *= 0.1
        planes = best.planes.columns(wide)
        best.offer(wide, _pivot(best.gram, planes, best.coef[:, wide], tol, ridge, best.threads))


def _plan(gram: Gram, eta: float, threads: Executor) -> Iterator[Guess]:
    """Who guesses the active set, one after the other, until all ranks are solved."""

    def admm(planes: Planes) -> ADMM:
        return ADMM(gram, planes, eta)

    if isinstance(gram, FactoredGram):
        budget = NEWTON_STEPS
        yield lambda planes: InteriorPoint(gram, planes, threads), budget
    else:
        budget = FIRST_GUESS
        if gram.n >= LARGE:
            half = (gram.n + 1) // 2
            yield lambda planes: PartedADMM(gram, planes, eta, size=half, threads=threads), budget
            budget = SECOND_GUESS
        yield admm, budget
        Z = _cheap_factor(gram)
        if Z is not None:
            narrow = FactoredGram(Z)
            yield lambda planes: InteriorPoint(narrow, planes, threads), NEWTON_STEPS
            budget = SECOND_GUESS
            yield admm, budget
    while True:
        budget *= 2
        yield None, budget


def _cheap_factor(gram: DenseGram) -> np.ndarray | None:
    """A factor of a kernel matrix in double precision, if it is narrow enough."""
    if gram.values.dtype != np.float64:
        return None
    return factor_of(gram.values, min(gram.n, int(np.sqrt(CHEAP / gram.n))))


class _Best:
    """The best multipliers of each rank so far, with F = K coef and how far they are from optimal.

    ``excess`` is in units of what is allowed: a rank is solved at one or less.
    """

    def __init__(self, gram: Gram, planes: Planes, tol: float, threads: Executor):
        self.gram, self.planes, self.tol, self.threads = gram, planes, tol, threads
        self.coef, self.F = np.zeros_like(planes.side), np.zeros_like(planes.side)
        unknown = np.full(planes.side.shape[1], np.inf)
        self.excess, self.violation, self.gap = unknown, unknown.copy(), unknown.copy()

    def offer(self, ranks: np.ndarray, z: np.ndarray) -> None:
        """Keep the columns of z that are nearer to optimal than what their ranks had."""
        F = self.gram.times(z, self.threads.map)
        found, wrong, gap = excess(self.planes.columns(ranks), z, F, self.tol)
        better = found < self.excess[ranks]
        chosen = ranks[better]
        self.coef[:, chosen], self.F[:, chosen] = z[:, better], F[:, better]
        self.excess[chosen], self.violation[chosen] = found[better], wrong[better]
        self.gap[chosen] = gap[better]

    def solution(self, n_iter: int) -> Solution:
        """The solution, with its biases and objectives."""
        b = bias(self.planes, self.F)
        return Solution(
            coef=self.coef,
            thresholds=b,
            objective=float(primal_objective(self.planes, self.coef, self.F, b).sum()),
            violation=float(self.violation.max()),
            gap=float(self.gap.sum()),
            n_iter=n_iter,
            converged=bool((self.excess <= 1.0).all()),
        )


def free_step(
    system: ShiftedGram, free: np.ndarray, g: np.ndarray, fixed: np.ndarray, total: float
) -> tuple[np.ndarray, float] | None:
    """Correction x and shift db: (K x + db)_i = g_i on free rows, x = fixed elsewhere.

    The sum of x is ``total``. None if the kernel over the free rows has no Cholesky factor.
    """
    if not system.refactorise(np.where(free, 0.0, np.inf)):
        return None
    movers = np.flatnonzero(fixed)  # rows that have a last move to make, to their bounds
    if movers.size:
        g = g - system.K.combined(movers, fixed[movers])
    right = np.stack([np.where(free, g, 0.0), free.astype(np.float64)])
    solved, of_ones = system.solve(right).astype(np.float64)
    db = (solved.sum() - (total - fixed.sum())) / of_ones.sum()
    return fixed + solved - db * of_ones, float(db)


def _pivot(
    gram: Gram, planes: Planes, z: np.ndarray, tol: float, ridge: float, threads: Executor
) -> np.ndarray:
    """Rounds of exchanges from the places of z; feasible multipliers.

    The products of the moves are added up in the precision of K; when that is not enough,
    they are summed anew in double precision and the rounds go on, where few exchanges are left.
    """
    ranks = [_Rank(gram, planes, k, z[:, k], ridge) for k in range(z.shape[1])]
    F, active = gram.times(z, threads.map), ranks
    for _ in range(RENEWALS):
        t = F + bias(planes, F)
        for k, rank in enumerate(ranks):
            if rank in active:
                rank.restart(z[:, k], t[:, k])
        _rounds(gram, active, tol, threads)
        z = balanced(planes, np.stack([rank.clipped() for rank in ranks], axis=1))
        F = gram.times(z, threads.map)
        short = violation(planes, z, F)
        active = [
            rank
            for rank, left in zip(ranks, short > tol, strict=True)
            if left and rank.best[0] <= NEARLY
        ]
        if not active:
            break
    return z


def _rounds(gram: Gram, ranks: list[_Rank], tol: float, threads: Executor) -> None:
    """Rounds of exchanges, all ranks in step, until none has anything to gain."""
    for _ in range(MAX_ROUNDS):
        moves = list(threads.map(_Rank.correction, ranks))
        products = gram.quick_times(np.stack([x for x, _ in moves], axis=1), threads.map)
        for rank, (x, db), product in zip(ranks, moves, products.T, strict=True):
            rank.apply(x, product, db, tol)
        ranks = [rank for rank in ranks if not rank.finished]
        if not ranks:
            break


class _Rank:
    """One rank's multipliers z, their places, and t = f + b."""

    def __init__(self, gram: Gram, planes: Planes, k: int, z: np.ndarray, ridge: float):
        self.system = ShiftedGram(gram, ridge, widest=WIDEST, threaded=False)
        self.on = planes.side[:, k] == 0
        self.side, self.epsilon = planes.side[:, k], planes.epsilon
        self.lower, self.upper = planes.lower[:, k], planes.upper[:, k]
        self.z = z.copy()
        free = np.where(self.on, np.sign(z), POSITIVE)
        self.place = np.where(z <= self.lower, LOWER, np.where(z >= self.upper, UPPER, free))
        self.descent = 0.0  # residual times preconditioned residual
        self.direction: tuple[np.ndarray, float] = (np.zeros_like(z), 0.0)

    def restart(self, z: np.ndarray, t: np.ndarray) -> None:
        """Go on from multipliers z, with t computed anew."""
        self.z, self.t = z.copy(), t.copy()
        self.best, self.waited, self.finished = (t.size + 1, 0.0), 0, False
        self.refining = False

    def clipped(self) -> np.ndarray:
        """The multipliers inside the box, those that are not free exactly at their places."""
        ends = np.select(
            [self.place == LOWER, self.place == UPPER, self.place == KINK],
            [self.lower, self.upper, 0.0],
            self.z,
        )
        return np.clip(ends, self.lower, self.upper)

    def correction(self) -> tuple[np.ndarray, float]:
        """The step to the solution of the linear system that the places describe.

        While the places stay, the direction of conjugate gradients instead.
        """
        free = np.abs(self.place) == POSITIVE
        if not free.any():
            self.finished = True
            return np.zeros_like(self.z), 0.0
        goal = np.where(self.on, -self.epsilon * self.place, self.side)
        fixed = np.where(free, 0.0, self.clipped() - self.z)
        found = free_step(self.system, free, goal - self.t, fixed, -float(self.z.sum()))
        if found is None:
            self.finished = True
            return np.zeros_like(self.z), 0.0
        x, db = found
        descent = float((goal - self.t)[free] @ x[free])
        if self.refining and self.descent > 0:
            beta, (last, last_db) = descent / self.descent, self.direction
            x, db = x + beta * last, db + beta * last_db
        self.descent = descent if self.refining else 0.0
        self.direction = x, db
        return x, db

    def apply(self, x: np.ndarray, product: np.ndarray, db: float, tol: float) -> None:
        """Take the step, exchange what left its place, and set whether the rank is finished."""
        if self.finished:
            return
        curvature = float(x @ product)
        length = self.descent / curvature if self.refining and curvature > 0 else 1.0
        self.z += length * x
        self.t += length * (product + db)
        place = self._exchanged(tol)
        exchanges = int((place != self.place).sum())
        free = np.abs(self.place) == POSITIVE
        goal = np.where(self.on, -self.epsilon * self.place, self.side)
        rest = np.abs(self.t - goal)[free].max(initial=0.0)
        progress = (exchanges, rest if exchanges == 0 else 0.0)
        if progress < self.best:  # fewer exchanges, or none left and a smaller remainder
            self.best, self.waited = progress, 0
        else:
            self.waited += 1
        solved = exchanges == 0 and rest <= 0.25 * tol
        self.finished = solved or self.waited >= PATIENCE
        self.refining = exchanges == 0
        self.place = place

    def _exchanged(self, tol: float) -> np.ndarray:
        """The places after every multiplier that is wrong where it is has moved."""
        z, t, place, on = self.z, self.t, self.place, self.on
        free = np.abs(place) == POSITIVE
        rounding = 1e-7 * (self.upper - self.lower)
        slack, eps = 0.4 * tol, self.epsilon
        new = place.copy()
        new[free & on & (z * place < -rounding)] = KINK
        new[free & (z > self.upper + rounding)] = UPPER
        new[free & (z < self.lower - rounding)] = LOWER
        new[(place == KINK) & (t < -eps - slack)] = POSITIVE
        new[(place == KINK) & (t > eps + slack)] = NEGATIVE
        new[on & (place == UPPER) & (t > -eps + slack)] = POSITIVE
        new[on & (place == LOWER) & (t < eps - slack)] = NEGATIVE
        new[~on & (place == LOWER) & (t < self.side - slack)] = POSITIVE
        new[~on & (place == UPPER) & (t > self.side + slack)] = POSITIVE
        return new
