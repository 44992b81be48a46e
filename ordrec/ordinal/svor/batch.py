"""Many small problems in parallel, such as one per user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ordrec.ordinal.solution import Solution
from ordrec.ordinal.svor.explicit import solve_explicit
from ordrec.ordinal.svor.implicit import solve_implicit
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["solve_many"]


def solve_many(
    grams: Sequence[np.ndarray],
    ranks: Sequence[np.ndarray],
    n_ranks: int,
    *,
    implicit: bool = True,
    n_jobs: int | None = None,
    **options: Any,
) -> list[Solution]:
    """Solve independent problems in threads, each on one core.

    The factorisations and the loops over all pairs release the interpreter lock, so that threads
    suffice and nothing is copied between processes.

    Parameters
    ----------
    grams : sequence of ndarray
        The Gram matrix of each problem; sizes may differ.
    ranks : sequence of ndarray
        Zero-based ranks of each problem, on one scale.
    n_ranks : int
    implicit : bool
        Implicit constraints, or explicit ones.
    n_jobs : int, optional
        Threads; all cores by default.
    **options
        As in `solve_implicit` or `solve_explicit`: C, costs or ordered, tol, max_iter, method.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    >>> grams = [scale * np.outer(x, x) for scale in (1.0, 4.0)]
    >>> y = np.array([0, 0, 1, 1, 2, 2])
    >>> [s.thresholds.round(2).tolist() for s in solve_many(grams, [y, y], 3, C=10.0)]
    [[3.0, 7.0], [3.0, 7.0]]
    """
    if len(grams) != len(ranks):
        raise ValueError(f"{len(grams)} Gram matrices for {len(ranks)} vectors of ranks")
    solve = solve_implicit if implicit else solve_explicit

    def one(K: np.ndarray, y: np.ndarray) -> Solution:
        return solve(K, y, n_ranks, **options)

    with loop_threads(worker_count(n_jobs)) as threads:
        return list(threads.map(one, grams, ranks))
