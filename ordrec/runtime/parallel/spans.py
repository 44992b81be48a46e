"""Compiled loops over ranges of users or items, on several threads.

An owner is a user or an item. Every loop writes only to what belongs to its own owners, so the
numbers are the same for any number of threads. The compiled functions release the interpreter
lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ordrec.runtime.parallel.loops import loop_threads
from ordrec.runtime.parallel.tasks import free_cores

__all__ = ["over_spans", "spans_of"]

SPANS_PER_JOB = 4  # more spans than threads, so that no thread waits long for the last one
SMALL = 200_000  # operations that take less time than starting threads


def spans_of(costs: np.ndarray, n_spans: int) -> list[tuple[int, int]]:
    """Contiguous ranges of about equal total cost that cover all owners.

    Examples
    --------
    >>> spans_of(np.array([4.0, 1.0, 1.0, 2.0]), 2)
    [(0, 1), (1, 4)]
    """
    total = np.cumsum(np.asarray(costs, dtype=np.float64))
    if total.size == 0 or total[-1] <= 0:
        return [(0, total.size)] if total.size else []
    cuts = np.searchsorted(total, total[-1] * np.arange(1, n_spans) / n_spans) + 1
    edges = np.unique(np.concatenate([[0], cuts, [total.size]]))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def over_spans(
    function: Callable[..., Any], costs: np.ndarray, n_jobs: int, *args: Any
) -> list[Any]:
    """Call ``function(first, stop, *args)`` for spans of owners; the results in their order.

    The costs are numbers of operations; where they are few, no threads are started.
    """
    n_jobs = 1 if costs.sum() <= SMALL else free_cores(n_jobs)
    if n_jobs == 1:
        return [function(first, stop, *args) for first, stop in spans_of(costs, 1)]
    spans = spans_of(costs, SPANS_PER_JOB * n_jobs)
    with loop_threads(n_jobs) as threads:
        return list(threads.map(lambda span: function(span[0], span[1], *args), spans))
