"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Solution"]


@dataclass(frozen=True)
class Solution:
    """The end state of a solver; solvers never raise on non-convergence, they say so here.

    Attributes
    ----------
    coef : ndarray
        Expansion coefficients over the samples (kernel solvers), or the weights of the
        features (linear ones).
    thresholds : ndarray of shape (n_ranks - 1,)
    objective : float
        The primal objective at the end.
    violation : float
        The paper's own stopping quantity.
    gap : float
        Primal minus dual objective, NaN where there is no dual.
    n_iter : int
    converged : bool
    state : object
        What the same solver wants back as ``start`` to continue on a nearby problem.
    """

    coef: np.ndarray
    thresholds: np.ndarray
    objective: float
    violation: float
    gap: float
    n_iter: int
    converged: bool
    state: Any = None
