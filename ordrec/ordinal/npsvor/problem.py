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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Planes", "dual_objective", "planes_for", "primal_objective", "prox"]


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
