"""The two problems of Chu and Keerthi, which differ in the pairs of samples and thresholds.

Implicit constraints on the thresholds (IMC), section 3, with costs:

    min  1/2 |w|^2 + sum_j ( sum_{y_i <= j} C_i^j [1 + f_i - b_j]_+
                           + sum_{y_i > j}  C_i^j [1 - f_i + b_j]_+ )                 (20)-(21)

Every sample pays at every threshold, and the thresholds come out ordered by themselves
(Lemma 1).

A cost matrix L, ``L[k, m]`` the cost of predicting m where k is true, gives
``C_k^j = C |L[k, j+1] - L[k, j]|``: a sample predicted m crosses the thresholds between k and
m, and the losses it pays there add up to at least ``C L[k, m]``. Absolute costs give plain IMC.

Lemma 1 survives costs only if C_k^j does not fall with the distance of j from k, that is
if each row of L is convex: its proof needs g_{j+1} <= g_j, and a sample of rank k <= j
contributes C_k^j - C_k^{j+1} to the difference. For other costs the order of the thresholds
is imposed as in (4). Zero-one costs then are EXC exactly.

Explicit constraints on the thresholds (EXC), section 2:

    min  1/2 |w|^2 + sum_j C ( sum_{y_i = j} [1 + f_i - b_j]_+ + sum_{y_i = j+1} [1 - f_i + b_j]_+ )
    subject to b_1 <= ... <= b_{r-1}                                                  (2)-(4)

Shashua and Levin's fixed-margin form (SLA) leaves out (4), and its thresholds may come out
disordered. Both are problems over adjacent pairs; the solver does the rest.

Departures
----------
Interior points are the default solver
    SMO is there as solver="smo". Effect: exponents of 1.7 to 1.9 in the rows, where the paper has
    2.1 to 2.3, and .32 of the time of SVR at 5000 rows, where the paper has 2.
No penalty on the thresholds
    Footnote 2 of the paper adds the sum of b_j^2 / 2, which makes them unique. Effect: where they
    are not unique, the middle of the interval is taken.

A rank without samples between two that have some is an empty interval here: its thresholds
coincide, as (4) makes them in EXC. (Literally, SLA would not compare its neighbours at all.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.svor.pairs import adjacent_pairs, all_pairs
from ordrec.ordinal.svor.solver import solve_pairs

__all__ = ["check_costs", "solve_explicit", "solve_implicit", "threshold_costs"]


def solve_implicit(
    K: np.ndarray | Gram,
    ranks: np.ndarray,
    n_ranks: int,
    *,
    C: float | np.ndarray = 1.0,
    costs: np.ndarray | None = None,
    **options: Any,
) -> Solution:
    """Solve (20)-(21).

    Parameters
    ----------
    K : ndarray of shape (n, n), or Gram
        Gram matrix, positive semidefinite; by a factor of it with `FactoredGram`.
    ranks : ndarray of shape (n,)
        Zero-based.
    n_ranks : int
    C : float or ndarray of shape (n,)
        Bound on the multipliers, common or for each sample.
    costs : ndarray of shape (n_ranks, n_ranks), optional
        Cost of predicting the column where the row is true; default ``|row - column|``.
    **options
        tol, max_iter and method, as in `solve_pairs`.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    >>> solution = solve_implicit(np.outer(x, x), np.array([0, 0, 1, 1, 2, 2]), 3, C=10.0)
    >>> solution.thresholds.round(2), solution.converged
    (array([3., 7.]), True)
    """
    caps = np.broadcast_to(np.asarray(C, dtype=np.float64), ranks.shape)
    if costs is None:
        at_thresholds, ordered = np.ones((n_ranks, n_ranks - 1)), False
    else:
        at_thresholds = threshold_costs(check_costs(costs, n_ranks))
        ordered = not _lemma_holds(at_thresholds)
    pairs = all_pairs(ranks, n_ranks, caps, at_thresholds)
    solution = solve_pairs(K, pairs, n_ranks - 1, ordered=ordered, **options)
    # Lemma 1 orders the exact thresholds; those of a violation below tol are off by as much
    return replace(solution, thresholds=np.maximum.accumulate(solution.thresholds))


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
        Gram matrix, positive semidefinite; by a factor of it with `FactoredGram`.
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


def check_costs(costs: Any, n_ranks: int) -> np.ndarray:
    """A cost matrix of floats, zero where right and never falling with the distance."""
    L = np.asarray(costs, dtype=np.float64)
    if L.shape != (n_ranks, n_ranks):
        raise ArgumentError(f"costs must be of shape ({n_ranks}, {n_ranks}), got {L.shape}")
    if not np.all(np.isfinite(L)) or np.any(np.diagonal(L) != 0.0):
        raise ArgumentError("costs must be finite, and zero on the diagonal (a right prediction)")
    rises = np.diff(L, axis=1) * _sides(n_ranks)
    if np.any(rises < 0.0):
        row = int(np.flatnonzero((rises < 0.0).any(axis=1))[0])
        raise ArgumentError(
            "costs must not fall as the prediction moves away from the truth: "
            f"see row {row}, {L[row].tolist()}"
        )
    if not np.all((rises > 0.0).any(axis=0)):
        raise ArgumentError("costs must tell any two neighbouring ranks apart in at least one row")
    return L


def threshold_costs(costs: np.ndarray) -> np.ndarray:
    """C_k^j over C, shape (n_ranks, n_ranks - 1): what crossing threshold j adds for rank k."""
    return np.abs(np.diff(costs, axis=1))


def _sides(n_ranks: int) -> np.ndarray:
    """+1 where the threshold (column) is above the rank (row), -1 where below."""
    return np.where(np.arange(n_ranks)[:, None] <= np.arange(n_ranks - 1), 1.0, -1.0)


def _lemma_holds(at_thresholds: np.ndarray) -> bool:
    """Whether C_k^j never falls with the distance of threshold j from rank k."""
    n_ranks = at_thresholds.shape[0]
    growth = np.diff(at_thresholds, axis=1)
    side = _sides(n_ranks)
    same_side = side[:, 1:] == side[:, :-1]
    return bool(np.all((growth * side[:, 1:])[same_side] >= 0.0))
