"""Explicit constraints on the thresholds (EXC), section 2, and their omission (SLA).

    min  1/2 |w|^2 + sum_j C ( sum_{y_i = j} [1 + f_i - b_j]_+ + sum_{y_i = j+1} [1 - f_i + b_j]_+ )
    subject to b_1 <= ... <= b_{r-1}                                                  (2)-(4)

Shashua and Levin's fixed-margin form leaves out (4), and its thresholds may come out
disordered. Both are problems over adjacent pairs; the solver does the rest.

A rank without samples between two that have some is an empty interval here: its thresholds
coincide, as (4) makes them in EXC. (Literally, SLA would not compare its neighbours at all.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ordrec.ordinal.solution import Solution
from ordrec.ordinal.svor.gram import Gram
from ordrec.ordinal.svor.pairs import adjacent_pairs
from ordrec.ordinal.svor.solver import solve_pairs

__all__ = ["solve_explicit"]


def solve_explicit(
    K: np.ndarray | Gram,
    ranks: np.ndarray,
    n_ranks: int,
    *,
    C: float | np.ndarray = 1.0,
    ordered: bool = True,
    **options: Any,
) -> Solution:
    """Solve (2)-(4), or (2)-(3) alone with ``ordered=False``.

    Parameters
    ----------
    K : ndarray of shape (n, n), or Gram
        Gram matrix, positive semidefinite; by a factor of it with `gram.factored_gram`.
    ranks : ndarray of shape (n,)
        Zero-based.
    n_ranks : int
    C : float or ndarray of shape (n,)
        Bound on the multipliers, common or for each sample.
    **options
        tol, max_iter and method, as in `solve_pairs`.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    >>> solution = solve_explicit(np.outer(x, x), np.array([0, 0, 1, 1, 2, 2]), 3, C=10.0)
    >>> solution.thresholds.round(2), solution.converged
    (array([3., 7.]), True)
    """
    caps = np.broadcast_to(np.asarray(C, dtype=np.float64), ranks.shape)
    declared = np.arange(n_ranks)
    inside = (declared >= ranks.min()) & (declared <= ranks.max())
    scale = np.flatnonzero(~inside | np.isin(declared, ranks))  # without inner empty ranks
    pairs = adjacent_pairs(np.searchsorted(scale, ranks), scale.size, caps)
    solution = solve_pairs(K, pairs, scale.size - 1, ordered=ordered, **options)
    place = np.searchsorted(scale, declared[:-1], side="right") - 1
    return replace(solution, thresholds=solution.thresholds[place])
