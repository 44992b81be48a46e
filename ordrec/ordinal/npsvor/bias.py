"""The bias of each plane, and how far a plane is from optimal.

A multiplier that may grow (z < upper) bounds b from below, one that may shrink (z > lower)
bounds it from above; a free multiplier does both. The solution is optimal when the largest
lower bound does not exceed the smallest upper one; their difference is the violation, the
quantity LIBSVM also stops by.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.npsvor.problem import Planes

__all__ = ["bias", "bias_bounds", "free_multipliers", "violation"]


ROUNDING = 1e-6  # share of a multiplier's interval
SMALLEST = 1e-13  # the same, where only the rounding of one operation is meant


def bias_bounds(planes: Planes, z: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest lower and smallest upper bound on b, one pair per rank."""
    growing = planes.target(np.where(z >= 0, 1.0, -1.0)) - F  # from d/dz+ of (8) >= 0
    shrinking = planes.target(np.where(z > 0, 1.0, -1.0)) - F  # from d/dz- of (8) <= 0
    low = np.where(z < planes.upper, growing, -np.inf).max(axis=0)
    high = np.where(z > planes.lower, shrinking, np.inf).min(axis=0)
    return low, high


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


def bias(planes: Planes, z: np.ndarray, F: np.ndarray) -> np.ndarray:
    """b_k averaged over the free multipliers, from the bounds where none is free (after (9)).

    A multiplier within rounding of its bound or of the kink counts as being there.
    """
    z = _snapped(planes, z, ROUNDING)
    free = free_multipliers(planes, z)
    count = free.sum(axis=0)
    total = np.where(free, planes.target(np.sign(z)) - F, 0.0).sum(axis=0)
    low, high = bias_bounds(planes, z, F)
    # with no bound on one side (all multipliers at one end) the other bound is optimal
    low, high = np.where(np.isinf(low), high, low), np.where(np.isinf(high), low, high)
    return np.where(count > 0, total / np.maximum(count, 1), 0.5 * (low + high))


def _snapped(planes: Planes, z: np.ndarray, share: float) -> np.ndarray:
    """Multipliers that are this near to a bound or to the kink put there."""
    rounding = share * (planes.upper - planes.lower)
    z = np.where(z - planes.lower < rounding, planes.lower, z)
    z = np.where(planes.upper - z < rounding, planes.upper, z)
    return np.where((planes.side == 0) & (np.abs(z) < rounding), 0.0, z)
