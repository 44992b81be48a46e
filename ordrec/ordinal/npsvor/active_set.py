"""ADMM to find the active set, block pivoting to finish: the solver NPSVOR uses.

Once it is known which multipliers are at a bound, at the kink or free, problem (8) is a
linear system: K_FF z_F + b = target on the free rows F, e'z = 0. A few iterations of ADMM
guess the set almost right. Each round of pivoting then solves that system, exchanges every
multiplier that left its place (a free one outside its interval, a fixed one whose derivative
has the wrong sign) and solves again (Judice and Pires 1994, block principal pivoting). When
no exchange is left the point is optimal. When the number of exchanges stops falling, ADMM
goes on with twice the iterations and guesses again; as ADMM converges, so does the whole.
Where costs are small, sequential minimal optimisation (`smo`) mostly needs no help at all.
For a large problem, the first guess comes from ADMM on parts of the rows (`parts`), for a
factored kernel from an interior-point method (`interior`), which is nearly exact. So is the
second guess for a small kernel matrix or one of low rank, on which ADMM may take thousands.
Rounds without exchange refine the solution by conjugate gradients; the factored block, which
has a ridge and may be in single precision, is their preconditioner.

Places of a multiplier: LOWER and UPPER its bounds, KINK rho = 0 on the rank itself, POSITIVE
and NEGATIVE free (off the rank: POSITIVE, whatever the sign).
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from ordrec.ordinal.npsvor import smo
from ordrec.ordinal.npsvor.admm import ADMM, Gram, balanced
from ordrec.ordinal.npsvor.bias import bias, violation
from ordrec.ordinal.npsvor.gram import DenseGram, NotPositiveDefiniteError
from ordrec.ordinal.npsvor.interior import InteriorPoint
from ordrec.ordinal.npsvor.lowrank import FactoredGram, factor_of
from ordrec.ordinal.npsvor.parts import PartedADMM
from ordrec.ordinal.npsvor.problem import Planes, dual_objective, primal_objective
from ordrec.ordinal.solution import Solution
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["solve"]

LOWER, NEGATIVE, KINK, POSITIVE, UPPER = -2, -1, 0, 1, 2
FIRST_GUESS = 12  # ADMM iterations before the first pivoting
SECOND_GUESS = 48  # and after a first guess in parts was too rough
NEWTON_STEPS = 40  # of the interior-point method, which mostly stands still after twenty
LARGE = 1500  # rows from which the first guess is made in two parts
SMO_TOL = 0.15  # in units of tol: two multipliers at a time leave many small violations
CHEAP = 1e7  # n p^2 up to which Newton steps on a factor of p columns are worth a second guess
PATIENCE = 4  # rounds without progress
MAX_ROUNDS = 40
STANDSTILL = 1e-6  # residuals of ADMM from which another guess would be the same
RENEWALS = 3  # of the sums in the precision of K
NEARLY = 5  # exchanges up to which rounding may be what is in the way, not the guess


def solve(
    gram: Gram,
    planes: Planes,
    *,
    eta: float,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
) -> Solution:
    """Solve (8) for all ranks to a KKT violation of tol.

    Parameters
    ----------
    eta : float
        Penalty of ADMM.
    tol : float
        Largest violation of optimality, in units of the margin.
    max_iter : int
        Limit of ADMM iterations.
    n_jobs : int
        Threads; each takes a part of the first guess, then one rank at a time.

    Returns
    -------
    Solution
        ``coef`` (n, r) and the biases as ``thresholds``; ``violation`` is that of `bias`,
        the largest of all ranks; the objective and the gap are sums over the ranks.
    """
    with loop_threads(worker_count(n_jobs)) as threads:
        return _solve(gram, planes, eta, tol, max_iter, threads)


def _solve(
    gram: Gram, planes: Planes, eta: float, tol: float, max_iter: int, threads: Executor
) -> Solution:
    """Guess and pivot until every rank is solved."""
    n_ranks = planes.side.shape[1]
    coef, F = np.zeros_like(planes.side), np.zeros_like(planes.side)
    reached = np.full(n_ranks, np.inf)
    open_ranks, earlier, lent = np.arange(n_ranks), 0, False
    if isinstance(gram, DenseGram) and smo.is_easy(gram, planes):
        coef = balanced(planes, smo.descend(gram, planes, SMO_TOL * tol, threads))
        F = gram.times(coef, threads.map)
        reached = violation(planes, coef, F)
        open_ranks, earlier = np.flatnonzero(reached > tol), 1
        if not open_ranks.size:
            return _solution(planes, coef, F, reached, earlier, tol)
    admm: ADMM | PartedADMM | InteriorPoint
    guess = min(FIRST_GUESS, max_iter)
    rest = planes.columns(open_ranks)
    if isinstance(gram, FactoredGram):
        admm, guess = InteriorPoint(gram, rest, threads), min(NEWTON_STEPS, max_iter)
    elif isinstance(gram, DenseGram) and gram.n >= LARGE:
        admm = PartedADMM(gram, rest, eta, size=(gram.n + 1) // 2, threads=threads)
    else:
        admm = ADMM(gram, rest, eta)
    while True:
        residual = np.full(open_ranks.size, np.inf)
        while admm.n_iter < guess and residual.max() > STANDSTILL:
            residual = admm.step(tol)
        for candidate in (_pivot(gram, admm.planes, admm.z, tol, threads), None):
            z = balanced(admm.planes, admm.z) if candidate is None else candidate
            product = gram.times(z, threads.map)
            short = violation(admm.planes, z, product)
            better = short < reached[open_ranks]
            coef[:, open_ranks[better]] = z[:, better]
            F[:, open_ranks[better]] = product[:, better]
            reached[open_ranks[better]] = short[better]
            left = reached[open_ranks] > tol
            if not left.any():
                break
        if not left.any() or earlier + admm.n_iter >= max_iter:
            break
        open_ranks = open_ranks[left]
        rest = planes.columns(open_ranks)
        if isinstance(admm, PartedADMM):
            admm, guess = ADMM(gram, rest, eta), SECOND_GUESS
        elif not lent and (G := _cheap_factor(gram)) is not None:
            earlier, lent = earlier + admm.n_iter, True
            admm, guess = InteriorPoint(FactoredGram(G), rest, threads), NEWTON_STEPS
        elif lent and isinstance(admm, InteriorPoint):
            earlier += admm.n_iter
            admm, guess = ADMM(gram, rest, eta), 4 * FIRST_GUESS
        elif residual.max() <= STANDSTILL:
            break
        else:
            admm.restrict(left)
            guess *= 2
        guess = min(guess, max_iter - earlier)
    return _solution(planes, coef, F, reached, earlier + admm.n_iter, tol)


def _solution(
    planes: Planes, coef: np.ndarray, F: np.ndarray, reached: np.ndarray, n_iter: int, tol: float
) -> Solution:
    """The solution, with its biases and objectives."""
    b = bias(planes, coef, F)
    objective = primal_objective(planes, coef, F, b)
    return Solution(
        coef=coef,
        thresholds=b,
        objective=float(objective.sum()),
        violation=float(reached.max()),
        gap=float((objective - dual_objective(planes, coef, F)).sum()),
        n_iter=n_iter,
        converged=bool(reached.max() <= tol),
    )


def _cheap_factor(gram: Gram) -> np.ndarray | None:
    """A factor of a kernel matrix in double precision, if it is narrow enough."""
    if not isinstance(gram, DenseGram) or gram.K.dtype != np.float64:
        return None
    return factor_of(gram.K, min(gram.n, int(np.sqrt(CHEAP / gram.n))))


def _pivot(gram: Gram, planes: Planes, z: np.ndarray, tol: float, threads: Executor) -> np.ndarray:
    """Rounds of exchanges from the places of z; feasible multipliers.

    The products of the moves are added up in the precision of K; when that is not enough,
    they are summed anew in double precision and the rounds go on, where few exchanges are left.
    """
    ranks = [_Rank(gram, planes, k, z[:, k]) for k in range(z.shape[1])]
    F, active = gram.times(z, threads.map), ranks
    for _ in range(RENEWALS):
        t = F + bias(planes, z, F)
        for k, rank in enumerate(ranks):
            if rank in active:
                rank.restart(z[:, k], t[:, k])
        _rounds(gram, active, tol, threads)
        z = balanced(planes, np.stack([rank.seated() for rank in ranks], axis=1))
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

    def __init__(self, gram: Gram, planes: Planes, k: int, z: np.ndarray):
        self.gram = gram
        self.on = planes.side[:, k] == 0
        self.side, self.epsilon = planes.side[:, k], planes.epsilon
        self.lower, self.upper = planes.lower[:, k], planes.upper[:, k]
        self.z = z.copy()
        free = np.where(self.on, np.sign(z), POSITIVE)
        self.place = np.where(z <= self.lower, LOWER, np.where(z >= self.upper, UPPER, free))
        self.block: Any
        self.descent = 0.0  # residual times preconditioned residual
        self.direction: tuple[np.ndarray, float] = (np.zeros_like(z), 0.0)

    def restart(self, z: np.ndarray, t: np.ndarray) -> None:
        """Go on from multipliers z, with t computed and the block factored anew."""
        self.z, self.t, self.block = z.copy(), t.copy(), None
        self.best, self.waited, self.finished = (t.size + 1, 0.0), 0, False
        self.refining = False

    def seated(self) -> np.ndarray:
        """The multipliers inside the box, those that are not free exactly where they belong."""
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
        fixed = np.where(free, 0.0, self.seated() - self.z)
        try:
            if self.block is None or self.block.worn(free):
                self.block = self.gram.free_block(np.flatnonzero(free))
            x, db = self.block.solve(free, goal - self.t, fixed, -float(self.z.sum()))
        except NotPositiveDefiniteError:
            self.finished = True
            return np.zeros_like(self.z), 0.0
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
