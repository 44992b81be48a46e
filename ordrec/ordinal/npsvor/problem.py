"""The r problems of nonparallel SVOR, one column each.

H. Wang, Y. Shi, L. Niu and Y. Tian, "Nonparallel support vector ordinal regression",
IEEE Transactions on Cybernetics, 2017. For each rank k, over one vector rho (8):

    min  1/2 rho' K rho + eps sum_{I_k} |rho_i| - sum_{not I_k} yhat_i rho_i
    s.t. e' rho = 0,  |rho_i| <= C1 on I_k,  0 <= yhat_i rho_i <= C2 elsewhere

with I_k = {y_i = k}, yhat_i = -1 below and +1 above rank k; f_k = K rho + b_k (9).

Symbols
-------
=======  ============  ==================================================================
paper    variable      shape
=======  ============  ==================================================================
yhat     side          (n, r): -1 below, 0 on, +1 above the column's rank
C1, C2   lower, upper  (n, r): the box of rho, sample weights included
rho, z   rho, z        (n, r): one column per rank
b        b             (r,)
f        F             (n, r): K rho, without b
=======  ============  ==================================================================

A multiplier that may grow (z < upper) bounds b from below, one that may shrink (z > lower)
bounds it from above; a free multiplier does both. The solution is optimal when the largest
lower bound does not exceed the smallest upper one; their difference is the violation, the
quantity LIBSVM also stops by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "Planes",
    "bias",
    "bias_bounds",
    "dual_objective",
    "excess",
    "free_multipliers",
    "mean_bias",
    "planes_for",
    "primal_objective",
    "prox",
    "violation",
]

SMALLEST = 1e-13  # share of a multiplier's interval: rounding of one operation
GAP_PER_TOL = 0.1  # relative duality gap asked for, per unit of tol
ROUNDING = 1e-11  # of the summed costs: a smaller gap is lost in the rounding of the scores
FLAT = 1e-13  # share of all costs: a slope of the loss that is none


@dataclass(frozen=True)
class Planes:
    """The data of (8) for several ranks, one column each."""

    side: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    epsilon: float

    def columns(self, chosen: np.ndarray) -> Planes:
        """The problems of some ranks only."""
        return Planes(
            self.side[:, chosen], self.lower[:, chosen], self.upper[:, chosen], self.epsilon
        )

    def rows(self, chosen: np.ndarray) -> Planes:
        """The problems of some samples only."""
        return Planes(self.side[chosen], self.lower[chosen], self.upper[chosen], self.epsilon)

    def target(self, sign: np.ndarray) -> np.ndarray:
        """What f + b equals where a multiplier is free, given the signs of the multipliers."""
        return np.where(self.side == 0, -self.epsilon * sign, self.side)


def planes_for(
    y: np.ndarray, present: np.ndarray, C1: np.ndarray, C2: np.ndarray, epsilon: float
) -> Planes:
    """The problems of the ranks in ``present``; C1 and C2 have one entry per sample."""
    side = np.sign(y[:, None] - present).astype(np.float64)
    lower = np.where(side == 0, -C1[:, None], np.where(side < 0, -C2[:, None], 0.0))
    upper = np.where(side == 0, C1[:, None], np.where(side > 0, C2[:, None], 0.0))
    return Planes(side, lower, upper, epsilon)


def prox(planes: Planes, a: np.ndarray, eta: float) -> np.ndarray:
    """The z-update: argmin_z g(z) + eta/2 |a - z|^2 in the box, (17) and (18)."""
    shrunk = np.sign(a) * np.maximum(np.abs(a) - planes.epsilon / eta, 0.0)  # S_{eps/eta}(a)
    pulled = np.where(planes.side == 0, shrunk, a + planes.side / eta)
    return np.clip(pulled, planes.lower, planes.upper)


def primal_objective(planes: Planes, rho: np.ndarray, F: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Objective (4a) of the planes w = sum rho_i phi(x_i), one value per rank."""
    T = F + b
    slack = np.where(planes.side == 0, np.abs(T) - planes.epsilon, 1.0 - planes.side * T)
    cost = np.maximum(planes.upper, -planes.lower)
    norm = 0.5 * np.einsum("ij,ij->j", rho, F)
    return norm + np.einsum("ij,ij->j", cost, np.maximum(slack, 0.0))


def dual_objective(planes: Planes, z: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Minus objective (8), so that it lies below the primal one; z feasible, F = K z."""
    linear = np.where(planes.side == 0, planes.epsilon * np.abs(z), -planes.side * z)
    return -0.5 * np.einsum("ij,ij->j", z, F) - linear.sum(axis=0)


def bias_bounds(planes: Planes, z: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest lower and smallest upper bound on b, one pair per rank."""
    growing = planes.target(np.where(z >= 0, 1.0, -1.0)) - F  # from d/dz+ of (8) >= 0
    shrinking = planes.target(np.where(z > 0, 1.0, -1.0)) - F  # from d/dz- of (8) <= 0
    low = np.where(z < planes.upper, growing, -np.inf).max(axis=0)
    high = np.where(z > planes.lower, shrinking, np.inf).min(axis=0)
    return low, high


def excess(
    planes: Planes, z: np.ndarray, F: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How far each rank is from optimal, in units of what is allowed; violations, and gaps.

    Allowed are a violation of ``tol`` and a duality gap of a tenth of it, as a share of the
    objective, as in SVOR. Where C2 is many times C1, a small violation may still cost much.
    """
    primal = primal_objective(planes, z, F, bias(planes, F))
    gap = primal - dual_objective(planes, z, F)
    costs = np.maximum(planes.upper, -planes.lower).sum(axis=0)
    wrong = violation(planes, z, F)
    allowed = GAP_PER_TOL * tol * primal + ROUNDING * costs
    return np.maximum(wrong / tol, gap / allowed), wrong, gap


def violation(planes: Planes, z: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Largest contradiction between two multipliers, in units of the margin; 0 is optimal.

    A multiplier of 1e-16 at the kink is zero: taken for more, it would contradict others.
    """
    low, high = bias_bounds(planes, _snapped(planes, z, SMALLEST), F)
    return np.maximum(low - high, 0.0)


def free_multipliers(planes: Planes, z: np.ndarray) -> np.ndarray:
    """Those strictly inside the box, and not at the kink |rho| = 0 on the rank itself."""
    inside = (z > planes.lower) & (z < planes.upper)
    return inside & ((planes.side != 0) | (z != 0))


def bias(planes: Planes, F: np.ndarray) -> np.ndarray:
    """b_k that minimises (4a) for the scores F, one per rank; the middle where several do.

    Free multipliers agree on it at the optimum (after (9)). Which of them are free is not asked:
    where C1 is 1e7 times C2, a free multiplier may be as near to zero as rounding is.
    """
    cost = np.maximum(planes.upper, -planes.lower)
    columns = zip(planes.side.T, cost.T, F.T, strict=True)
    return np.array([_best_bias(*column, planes.epsilon) for column in columns])


def _best_bias(side: np.ndarray, cost: np.ndarray, f: np.ndarray, epsilon: float) -> float:
    """The minimiser of one rank's sum of losses, which is piecewise linear in b.

    Its slope begins at minus the costs of all samples that want a larger b, and rises by the cost
    of a sample where that sample is content, or begins to want a smaller b.
    """
    own = side == 0
    kinks = np.concatenate([side[~own] - f[~own], -epsilon - f[own], epsilon - f[own]])
    rises = np.concatenate([cost[~own], cost[own], cost[own]])
    order = np.argsort(kinks, kind="stable")
    slopes = np.cumsum(rises[order]) - cost[side >= 0].sum()
    level = FLAT * rises.sum()
    first = np.searchsorted(slopes, -level)  # the loss falls before this kink
    last = np.searchsorted(slopes, level, side="right")  # and rises behind this one
    return 0.5 * float(kinks[order[first]] + kinks[order[last]])


def mean_bias(planes: Planes, z: np.ndarray, F: np.ndarray) -> np.ndarray:
    """b_k averaged over the free multipliers, as the paper and its program do (after (9)).

    Where none is free, what `bias` says.
    """
    free = free_multipliers(planes, z)
    count = free.sum(axis=0)
    total = np.where(free, planes.target(np.sign(z)) - F, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), bias(planes, F))


def _snapped(planes: Planes, z: np.ndarray, share: float) -> np.ndarray:
    """Multipliers that are this near to a bound or to the kink put there."""
    rounding = share * (planes.upper - planes.lower)
    z = np.where(z - planes.lower < rounding, planes.lower, z)
    z = np.where(planes.upper - z < rounding, planes.upper, z)
    return np.where((planes.side == 0) & (np.abs(z) < rounding), 0.0, z)
