"""Compiled loops over ranges of users or items, on several threads.

Every loop writes only to what belongs to its own owners, so the numbers are the same at any
number of threads. Threads are plain ones: the compiled functions let go of the interpreter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

__all__ = ["over_spans", "spans_of"]

SPANS_PER_JOB = 4  # more spans than threads, so that none waits long for the last


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
    """Call ``function(first, stop, *args)`` for spans of owners; results in order."""
    if n_jobs == 1:
        return [function(first, stop, *args) for first, stop in spans_of(costs, 1)]
    spans = spans_of(costs, SPANS_PER_JOB * n_jobs)
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(lambda span: function(span[0], span[1], *args), spans))
