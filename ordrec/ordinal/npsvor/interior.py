"""An interior-point method for nonparallel SVOR on a factored kernel, for very many rows.

ADMM needs hundreds of iterations to guess the active set of many rows; Newton's method on the
relaxed optimality conditions needs about twenty, whatever their number. With K = G G', G of shape
(n, p), each costs one p x p system, O(n p^2).

The multiplier of a sample is the sum of its arms, rho_i = sum_a s_a x_a with 0 <= x_a <= C_a: one
arm off the rank (s = side, cost c = -1), two on it (s = 1 and s = -1, c = epsilon), which makes
(8) a quadratic problem with bounds and one equation.

Equations here
--------------
    s_a (f_i + b) + c_a - u_a + v_a = residual_a -> 0,  e' rho -> 0                     (P1)
    x_a u_a = m,  (C_a - x_a) v_a = m,  m -> 0                                          (P2)
    g_a = 1 / (u_a / x_a + v_a / (C_a - x_a)),  q_i = sum_a g_a                         (P3)
    h_a = t^u_a / x_a - t^v_a / (C_a - x_a) - residual_a,  pull_i = sum_a s_a g_a h_a   (P4)
    drho = pull - q (G dw + db),  dw = G' drho,  e' drho = -e' rho,  df = G dw:
    (H' diag(q) H + diag(1, ..., 1, 0)) (dw, db) = H' pull + (0, ..., 0, e' rho)        (P5)
    dx_a = g_a (h_a - s_a (df_i + db))                                                  (P6)
    du_a = (t^u_a - u_a dx_a) / x_a,  dv_a = (t^v_a + v_a dx_a) / (C_a - x_a)           (P7)

H is G with a column of ones. The system is that of the planes, not of the multipliers: there q may
span all orders of magnitude, as it does where costs times kernel are large, and no digits are lost.

t^u and t^v are what the products (P2) must change by: Mehrotra's predictor and corrector.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ordrec.linalg.low_rank import weighted_gram
from ordrec.ordinal.gram.matrix import FactoredGram
from ordrec.ordinal.npsvor.problem import Planes, primal_objective

__all__ = ["InteriorPoint"]

START = 0.2  # of the cap: all arms start here
LEAST_CENTRING = 1e-3  # the goal of m is never a smaller share of m
BACK_OFF = 0.99  # of the way to the boundary
ENOUGH = 1e-10  # relative gap at which the multipliers show their places, with many rows too
WORSE = 3.0  # times the least gap: a larger one is rounding, and the point of the least is kept


class InteriorPoint:
    """The iteration, with the interface of `ADMM`; all ranks advance together."""

    def __init__(self, gram: FactoredGram, planes: Planes, threads: Executor):
        self.planes, self._threads, self.n_iter = planes, threads, 0
        columns = range(planes.side.shape[1])
        self._ranks = [_Rank(gram, planes.columns(np.array([k]))) for k in columns]

    @property
    def z(self) -> np.ndarray:
        """The multipliers, exactly at the bounds that they are about to reach."""
        return np.stack([rank.multipliers() for rank in self._ranks], axis=1)

    def step(self, tol: float) -> np.ndarray:
        """One iteration of all ranks; 1 for each that moved, 0 for one that stands still."""
        self.n_iter += 1
        list(self._threads.map(_Rank.step, self._ranks))
        return np.array([0.0 if rank.finished else 1.0 for rank in self._ranks])

    def restrict(self, chosen: np.ndarray) -> None:
        """Go on with some of the ranks only."""
        self.planes = self.planes.columns(chosen)
        self._ranks = [rank for rank, stays in zip(self._ranks, chosen, strict=True) if stays]


class _Rank:
    """One rank's point (x, u, v, b); the second arms of the rank's own samples come last."""

    def __init__(self, gram: FactoredGram, planes: Planes):
        self.gram, self.planes = gram, planes
        self.H = np.column_stack([gram.values, np.ones(gram.n)])
        side, lower, upper = planes.side[:, 0], planes.lower[:, 0], planes.upper[:, 0]
        self.own = np.flatnonzero(side == 0)
        self.sign = np.concatenate([np.where(side < 0, -1.0, 1.0), -np.ones(self.own.size)])
        self.cap = np.concatenate([np.where(side < 0, -lower, upper), -lower[self.own]])
        self.cost = np.where(self._at(side) == 0, planes.epsilon, -1.0)
        self.x = START * self.cap
        # (P1) holds from the start, whatever the size of the kernel: where features are large,
        # slacks of one would be lost beside the scores, and the first steps would go astray
        away = self.sign * self._at(gram.times(self._sum(self.sign * self.x))) + self.cost
        self.u, self.v = 1.0 + np.maximum(away, 0.0), 1.0 + np.maximum(-away, 0.0)
        self.b = 0.0
        self.best, self.least = (self.x, self.u, self.v, self.b), np.inf
        self.finished = False

    def _at(self, of_samples: np.ndarray) -> np.ndarray:
        """The values of each arm's sample."""
        return np.concatenate([of_samples, of_samples[self.own]])

    def _sum(self, of_arms: np.ndarray) -> np.ndarray:
        """Sums over the arms of each sample."""
        total = of_arms[: self.gram.n].copy()
        total[self.own] += of_arms[self.gram.n :]
        return total

    def multipliers(self) -> np.ndarray:
        """rho, with an arm at the bound that is closer than its slack is to zero.

        Where costs times kernel are large, all multipliers are far below the caps.
        """
        x = np.where(self.x < self.u * np.minimum(self.cap, self.x.max()), 0.0, self.x)
        x = np.where(self.cap - self.x < self.v * self.cap, self.cap, x)
        return self._sum(self.sign * x)

    @np.errstate(all="ignore")  # what overflows is found at the end of a step
    def step(self) -> None:
        """Predictor, corrector and a step, unless the gap is small enough."""
        if self.finished:
            return
        rho = self._sum(self.sign * self.x)
        f = self.gram.times(rho)
        gap = self._gap(rho, f)
        if gap < self.least:
            self.best, self.least = (self.x, self.u, self.v, self.b), gap
        self.finished = gap <= ENOUGH
        if self.least < 1e-2 and not gap <= WORSE * self.least:
            # costs times kernel so large that g, of the order x / u, leaves no digits to (P5)
            (self.x, self.u, self.v, self.b), self.finished = self.best, True
        if self.finished:
            return
        slack = self.cap - self.x
        residual = self.sign * (self._at(f) + self.b) + self.cost - self.u + self.v  # (P1)
        g = 1.0 / (self.u / self.x + self.v / slack)  # (P3)
        q = self._sum(g)
        A = weighted_gram(self.H, q)
        A[np.diag_indices(A.shape[0] - 1)] += 1.0
        unit = 1.0 / np.sqrt(np.diagonal(A))
        try:
            factor = cho_factor(unit[:, None] * A * unit, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            self.finished = True  # q spans too many orders of magnitude: rounding leads no further
            return

        def direction(t_u: np.ndarray, t_v: np.ndarray) -> tuple[np.ndarray, ...]:
            h = t_u / self.x - t_v / slack - residual  # (P4)
            pull = self._sum(self.sign * g * h)
            right = self.H.T @ pull
            right[-1] += rho.sum()
            plane = unit * cho_solve(factor, unit * right, check_finite=False)  # (P5)
            dx = g * (h - self.sign * self._at(self.H @ plane))  # (P6)
            du, dv = (t_u - self.u * dx) / self.x, (t_v + self.v * dx) / slack  # (P7)
            return dx, du, dv, plane[-1]

        low, high = self.x * self.u, slack * self.v  # (P2)
        m = (low.sum() + high.sum()) / (2 * low.size)
        dx, du, dv, _ = direction(-low, -high)
        length = self._longest(dx, du, dv, slack)
        ahead = (self.x + length * dx) @ (self.u + length * du)
        ahead += (slack - length * dx) @ (self.v + length * dv)
        goal = m * max((ahead / (2 * low.size) / m) ** 3, LEAST_CENTRING)
        dx, du, dv, db = direction(goal - low - dx * du, goal - high + dx * dv)
        length = BACK_OFF * self._longest(dx, du, dv, slack)
        self.finished = not np.isfinite(length * db)  # rounding leads no further
        if self.finished:
            return
        self.x = self.x + length * dx
        self.u = self.u + length * du
        self.v = self.v + length * dv
        self.b += length * float(db)

    def _gap(self, rho: np.ndarray, f: np.ndarray) -> float:
        """Duality gap over the objective, or the imbalance over the largest cap."""
        primal = primal_objective(self.planes, rho[:, None], f[:, None], np.array([self.b]))[0]
        dual = -0.5 * float(rho @ f) - float(self.cost @ self.x)
        size = max(abs(float(primal)), np.finfo(float).tiny)
        return max(float(primal - dual) / size, abs(float(rho.sum())) / float(self.cap.max()))

    def _longest(self, dx: np.ndarray, du: np.ndarray, dv: np.ndarray, slack: np.ndarray) -> float:
        """The longest step, at most 1, that keeps everything positive."""
        steepest = max(
            float((-dx / self.x).max()),
            float((dx / slack).max()),
            float((-du / self.u).max()),
            float((-dv / self.v).max()),
        )
        return 1.0 / max(1.0, steepest) if np.isfinite(steepest) else np.nan
