"""Threads for compiled loops, and loops over ranges of users or items.

An owner is a user or an item. Every loop writes only to what belongs to its own owners, so the
numbers are the same for any number of threads. The compiled functions release the interpreter
lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from ordrec.runtime.parallel.blas import one_blas_thread
from ordrec.runtime.parallel.tasks import become_worker, free_cores

__all__ = ["loop_threads", "over_spans", "spans_of"]


@contextmanager
def loop_threads(n_threads: int) -> Iterator[Executor]:
    """Open a pool of threads for the block, and hold BLAS to one thread meanwhile.

    The threads are workers: whatever they call runs in one thread. With one thread, as in a task
    whose worker has one core, calls run synchronously.

    Parameters
    ----------
    n_threads : int
        See `worker_count` for what ``n_jobs`` means.

    Examples
    --------
    >>> with loop_threads(2) as threads:
    ...     list(threads.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    with one_blas_thread():
        n_threads = free_cores(n_threads)
        if n_threads == 1:
            yield _Here()
        else:
            with ThreadPoolExecutor(n_threads, initializer=become_worker) as pool:
                yield pool


class _Here(Executor):
    """Runs each call in the thread that submits it."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """Call the function; an error is raised by the future."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as error:
            future.set_exception(error)
        return future


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
