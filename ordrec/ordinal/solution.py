"""The result that every solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Solution"]


@dataclass(frozen=True)
class Solution:
    """The result of a solver, which reports non-convergence here instead of raising an error.

    Attributes
    ----------
    coef : ndarray
        Expansion coefficients over the samples (kernel solvers), or the weights of the
        features (linear ones).
    thresholds : ndarray of shape (n_ranks - 1,)
    objective : float
        The primal objective at the end.
    violation : float
        The quantity that the paper's stopping criterion bounds.
    gap : float
        Primal minus dual objective, NaN where there is no dual.
    n_iter : int
    converged : bool
    state : object
        Can be passed to the same solver as ``start``, to continue on a similar problem.
    """

    coef: np.ndarray
    thresholds: np.ndarray
    objective: float
    violation: float
    gap: float
    n_iter: int
    converged: bool
    state: Any = None
