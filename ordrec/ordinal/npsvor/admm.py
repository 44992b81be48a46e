"""ADMM for nonparallel SVOR (Algorithm 2 of the paper), all ranks advancing together.

Equations here: (13) the iteration, (15) the rho-update, (17) and (18) the z-update, (19) and
(20) the stop. The matrix K + eta I of (14) is the same for all ranks and all iterations: it
is factored once, and a step of all ranks is one solve with r columns.

Departures
----------
Over-relaxation by 1.6
    Boyd et al. (2011), section 3.4.3; not with "algorithm-2" and "published". Effect: about a
    third fewer iterations.
e_abs of (19) is multiplied by min(1, C, 1 / mean of K_ii)
    That is the size that multipliers can have; not with "algorithm-2" and "published". Effect:
    where C is 0.01, the printed rule stops at the first iteration.
The answer is z, moved to e'z = 0
    It lies in the box, which rho need not do; "published" returns rho, as the authors' program
    does. Effect: none at convergence.
eta is kept above the rounding errors of K, and (20) has the norm of eta u
    Below them the iteration diverges. Effect: none at the paper's eta = 1.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from ordrec.errors import DataError
from ordrec.ordinal.gram.matrix import DenseGram, Gram
from ordrec.ordinal.gram.shifted import ShiftedGram
from ordrec.ordinal.npsvor.problem import (
    Planes,
    bias,
    dual_objective,
    free_multipliers,
    mean_bias,
    primal_objective,
    prox,
)
from ordrec.ordinal.solution import Solution

__all__ = [
    "ADMM",
    "PartedADMM",
    "Residuals",
    "balanced",
    "natural_penalty",
    "similar_rows",
    "solve",
    "solve_published",
]

RELAXATION = 1.6
PUBLISHED_STEPS, PUBLISHED_TOL = 50, 1e-2  # at which the authors' program stops
LANDMARKS = 100  # rows that the others are compared with, to find similar ones
SMALLEST_SHIFT = 1e-13  # of K, as a share of n times its mean diagonal: rounding is not far below


def solve(
    gram: Gram,
    planes: Planes,
    *,
    eta: float,
    tol: float,
    max_iter: int,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    as_printed: bool = False,
) -> Solution:
    """Iterate until (19) and (20) hold with e_abs = e_rel = tol.

    Returns
    -------
    Solution
        ``coef`` (n, r) holds z, ``thresholds`` the biases b_k; ``violation`` is the larger
        residual over its bound, times tol; ``state`` is (z, u), to start from.
    """
    admm = ADMM(gram, planes, eta, start, as_printed=as_printed)
    residual = np.inf
    while admm.n_iter < max_iter and residual > 1.0:
        residual = float(admm.step(tol).max())
    z = balanced(planes, admm.z)
    F = gram.times(z)
    b = mean_bias(planes, z, F) if as_printed else bias(planes, F)
    objective = primal_objective(planes, z, F, b)
    return Solution(
        coef=z,
        thresholds=b,
        objective=float(objective.sum()),
        violation=residual * tol,
        gap=float((objective - dual_objective(planes, z, F)).sum()),
        n_iter=admm.n_iter,
        converged=residual <= 1.0,
        state=(admm.z, admm.u),
    )


def solve_published(gram: Gram, planes: Planes, *, eta: float) -> Solution:
    """What the authors' program returns: rho after at most 50 iterations.

    It begins at z = -1 and stops earlier where (19) and (20) hold at 1e-2 for the spectral norms
    over all ranks together. rho may lie outside the box, so that there is no duality gap. Where no
    multiplier is inside, the program's bias is NaN; here it is the best one.
    """
    start = -np.ones_like(planes.side), np.zeros_like(planes.side)
    admm = ADMM(gram, planes, eta, start, as_printed=True)
    floor, residual = np.sqrt(gram.n) * PUBLISHED_TOL, np.inf
    while admm.n_iter < PUBLISHED_STEPS and residual >= 1.0:
        before = admm.z
        admm.advance()
        primal, dual = (np.linalg.norm(A, 2) for A in (admm.rho - admm.z, admm.z - before))
        size = max(np.linalg.norm(admm.rho, 2), np.linalg.norm(admm.z, 2))
        pull = admm.eta * np.linalg.norm(admm.u, 2)
        residual = float(
            max(
                primal / (floor + PUBLISHED_TOL * size),
                admm.eta * dual / (floor + PUBLISHED_TOL * pull),
            )
        )
    F = gram.times(admm.rho)
    b = mean_bias(planes, admm.rho, F)
    return Solution(
        coef=admm.rho,
        thresholds=b,
        objective=float(primal_objective(planes, admm.rho, F, b).sum()),
        violation=residual * PUBLISHED_TOL,
        gap=np.nan,
        n_iter=admm.n_iter,
        converged=residual < 1.0,
    )


class Residuals(NamedTuple):
    """What (19) and (20) compare, one entry per rank."""

    primal: np.ndarray  # |rho - z|
    dual: np.ndarray  # eta |z - z before|
    size: np.ndarray  # the larger of |rho| and |z|
    pull: np.ndarray  # eta |u|


class ADMM:
    """The iteration (13); ``z`` and ``u`` are its state, one column per rank, ``rho`` the last."""

    rho: np.ndarray

    def __init__(
        self,
        gram: Gram,
        planes: Planes,
        eta: float,
        start: tuple[np.ndarray, np.ndarray] | None = None,
        as_printed: bool = False,
    ):
        # Below this, K + eta I is indefinite in floating point and the iteration diverges.
        self.eta = max(eta, SMALLEST_SHIFT * gram.n * gram.mean_diagonal())
        self.planes = planes
        # Multipliers are at most C and of the order 1 / K_ii; where that is small, so is e_abs.
        C = float(np.maximum(planes.upper, -planes.lower).max())
        self.unit = 1.0 if as_printed else min(1.0, C, 1.0 / max(gram.mean_diagonal(), 1e-300))
        self.relaxation = 1.0 if as_printed else RELAXATION
        self.z, self.u = start or (np.zeros_like(planes.side), np.zeros_like(planes.side))
        self.n_iter = 0
        self._system = ShiftedGram(gram, 0.0, threaded=False)
        if not self._system.factorise(np.full(gram.n, self.eta)):
            raise DataError("the kernel matrix is not positive semidefinite: use a valid kernel")
        self._ones = self._solve(np.ones((gram.n, 1)))  # (K + eta I)^{-1} e

    def step(self, tol: float) -> np.ndarray:
        """One iteration of all ranks; the residuals of each over the bounds (19), (20)."""
        primal, dual, size, pull = self.advance()
        floor = np.sqrt(self.z.shape[0]) * tol
        return np.maximum(
            primal / (self.unit * floor + tol * size),  # (19)
            dual / (floor + tol * pull),  # (20)
        )

    def advance(self) -> Residuals:
        """One iteration of all ranks."""
        solved = self._solve(self.eta * (self.z - self.u))
        v = solved.sum(axis=0) / self._ones.sum()  # (15a)
        rho = solved - v * self._ones  # (15b)
        relaxed = self.relaxation * rho + (1.0 - self.relaxation) * self.z
        z = prox(self.planes, relaxed + self.u, self.eta)  # (17), (18)
        self.u = self.u + relaxed - z  # (13c)
        primal, dual = rho - z, self.eta * (z - self.z)
        self.rho, self.z = rho, z
        self.n_iter += 1
        return Residuals(
            primal=_norms(primal),
            dual=_norms(dual),
            size=np.maximum(_norms(rho), _norms(z)),
            pull=_norms(self.eta * self.u),
        )

    def _solve(self, B: np.ndarray) -> np.ndarray:
        """(K + eta I)^{-1} B, (14)."""
        return self._system.solve(B.T).T.astype(np.float64)

    def restrict(self, chosen: np.ndarray) -> None:
        """Go on with some of the ranks only."""
        self.planes = self.planes.columns(chosen)
        self.z, self.u = self.z[:, chosen], self.u[:, chosen]


class PartedADMM:
    """ADMM on separate parts of a large problem: a cheap first guess of the active set.

    The cost of ADMM is the factor of K + eta I, which grows with the cube of the rows. Rows that
    are similar by the kernel are put into one part, the kernel between parts is left out (Hsieh,
    Si and Dhillon 2014, divide and conquer), and two parts cost a quarter of the whole. Every
    part has biases of its own.
    """

    def __init__(
        self, gram: DenseGram, planes: Planes, eta: float, *, size: int, threads: Executor
    ):
        self.planes, self._threads = planes, threads
        self.parts = similar_rows(gram.values, size)
        self._each = list(
            threads.map(lambda rows: ADMM(gram.part(rows), planes.rows(rows), eta), self.parts)
        )

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return self._each[0].n_iter

    @property
    def z(self) -> np.ndarray:
        """The multipliers of all parts."""
        z = np.empty_like(self.planes.side)
        for rows, admm in zip(self.parts, self._each, strict=True):
            z[rows] = admm.z
        return z

    def step(self, tol: float) -> np.ndarray:
        """One iteration of every part; the largest residuals."""
        return np.max(list(self._threads.map(lambda admm: admm.step(tol), self._each)), axis=0)


def similar_rows(K: np.ndarray, size: int) -> list[np.ndarray]:
    """Rows in parts of at most ``size``, cut at medians of the leading principal component.

    What is decomposed are the values of the kernel with some landmarks.
    """
    landmarks = np.linspace(0, len(K) - 1, min(LANDMARKS, len(K))).astype(np.int64)
    traits = K[:, landmarks]

    def halved(rows: np.ndarray) -> list[np.ndarray]:
        if rows.size <= size:
            return [np.sort(rows)]
        centred = traits[rows] - traits[rows].mean(axis=0)
        _, axes = np.linalg.eigh(centred.T @ centred)
        order = np.argsort(centred @ axes[:, -1], kind="stable")
        middle = rows.size // 2
        return halved(rows[order[:middle]]) + halved(rows[order[middle:]])

    return halved(np.arange(len(K)))


def natural_penalty(gram: Gram, planes: Planes) -> float:
    """The penalty that suits the scale of a problem: k^0.4 / (2 C^0.6), k the mean of K_ii.

    The paper's eta = 1 is within a factor two of it for a Gaussian kernel and C = 1, but
    thirty times too large at C = 100. The numbers fit what was fastest for C from 0.01 to
    1000; the two exponents add up to one because scaling K by s scales rho by 1/s. Where C is
    so small that K hardly matters, the loss alone sets the scale of the multipliers.
    """
    C = float(np.maximum(planes.upper, -planes.lower).mean())
    return max(0.5 * max(gram.mean_diagonal(), 1e-300) ** 0.4 / C**0.6, 0.01 / C)


def balanced(planes: Planes, z: np.ndarray) -> np.ndarray:
    """z in the box with e'z = 0, rank by rank; the free multipliers move, all if they must."""
    rounding = 1e-9 * float(np.maximum(planes.upper, -planes.lower).max())
    for movable in (free_multipliers(planes, z), np.ones(z.shape, dtype=bool)):
        uneven = np.abs(z.sum(axis=0)) > rounding
        if uneven.any():
            z = np.where(uneven, _shifted_to_zero_sum(planes, z, movable), z)
    return z


def _shifted_to_zero_sum(planes: Planes, z: np.ndarray, movable: np.ndarray) -> np.ndarray:
    """Nearest point with e'z = 0 when only some entries may move (bisection on the shift)."""
    lower, upper = np.where(movable, planes.lower, z), np.where(movable, planes.upper, z)
    reach = 2.0 * float(np.maximum(planes.upper, -planes.lower).max())
    low, high = np.full(z.shape[1], -reach), np.full(z.shape[1], reach)
    for _ in range(60):
        shift = 0.5 * (low + high)
        excess = np.clip(z - shift, lower, upper).sum(axis=0) > 0
        low, high = np.where(excess, shift, low), np.where(excess, high, shift)
    return np.clip(z - shift, lower, upper)


def _norms(columns: np.ndarray) -> np.ndarray:
    return np.linalg.norm(columns, axis=0)
