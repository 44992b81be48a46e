"""The reduction to one binary machine (Li and Lin 2007), solved as IMC with springs.

Sample i becomes r - 1 extended samples (x_i, j) with label +1 if y_i > j, else -1, under the
kernel K(x, x') + [j = j']. With w, offsets v_j and an unpenalised bias c the machine solves

    min 1/2 |w|^2 + 1/2 sum_j v_j^2 + C sum_ij [1 - s_ij (f(x_i) + v_j + c)]_+

which is SVORIM with thresholds b_j = -(v_j + c), plus half the sum of the squared deviations of
the thresholds from their mean (the best c makes the v_j sum to zero): springs of stiffness one
between them, (I10) of `interior`. So the Gram matrix of the n (r - 1) extended samples is never
formed, and a step costs as much as one of SVORIM.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.gram.matrix import Gram, as_gram
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.svor.interior import cold_start, interior_point
from ordrec.ordinal.svor.pairs import all_pairs
from ordrec.ordinal.svor.solver import GAP_PER_TOL, INTERIOR_PER_GAP, precisions, step_ridge
from ordrec.runtime.parallel import one_blas_thread

__all__ = ["solve_reduced"]

LEAST_GAP = 1e-10  # relative duality gap that float64 reaches
CORRECTORS = 3


def solve_reduced(
    K: np.ndarray | Gram,
    ranks: np.ndarray,
    n_ranks: int,
    *,
    C: float | np.ndarray = 1.0,
    tol: float = 1e-3,
    max_iter: int = 200,
) -> Solution:
    """Solve the machine of the extended samples.

    Parameters
    ----------
    K : ndarray of shape (n, n) or Gram
        Gram matrix of the samples, positive semidefinite.
    ranks : ndarray of shape (n,)
        Zero-based.
    n_ranks : int
    C : float or ndarray of shape (n,)
        Bound on the multipliers, common or for each sample.
    tol : float
        The relative duality gap is at most 0.003 of it, or 1e-10.
    max_iter : int
        Factorisations.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    >>> solution = solve_reduced(np.outer(x, x), np.array([0, 0, 1, 1, 2, 2]), 3, C=10.0)
    >>> solution.thresholds.round(2), solution.converged
    (array([3., 7.]), True)
    """
    gram = as_gram(K)
    caps = np.broadcast_to(np.asarray(C, dtype=np.float64), ranks.shape)
    pairs = all_pairs(ranks, n_ranks, caps, np.ones((n_ranks, n_ranks - 1)))
    start = cold_start(pairs, ranks.size, n_ranks - 1)
    gap = max(INTERIOR_PER_GAP * GAP_PER_TOL * tol, LEAST_GAP)
    # a multiplier may reach its bound in the last digit; what is not finite then ends the search
    quiet = np.errstate(divide="ignore", over="ignore", invalid="ignore")
    with quiet, one_blas_thread():  # large factorisations have threads of their own
        for form in precisions(gram, tol):
            ridge = step_ridge(form)
            end = interior_point(
                form, pairs, False, gap, max_iter, CORRECTORS, ridge, start, stiffness=1.0
            )
            if end.converged:
                break
    coef = pairs.sums(pairs.sign * end.alpha, ranks.size)
    f = gram.times(coef)
    spread = end.b - end.b.mean()
    penalty = 0.5 * float(coef @ f + spread @ spread)
    objective = penalty + float(pairs.cap @ np.maximum(pairs.shortfall(f, end.b), 0.0))
    balance = pairs.threshold_sums(pairs.sign * end.alpha, n_ranks - 1)
    dual = float(end.alpha.sum()) - 0.5 * float(coef @ f + balance @ (balance - balance.mean()))
    violation = float(np.abs(balance + spread).max())
    return Solution(coef, end.b, objective, violation, objective - dual, end.n_iter, end.converged)
