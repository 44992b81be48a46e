"""Threads for compiled loops, which release the interpreter lock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

from ordrec.parallel.blas import one_blas_thread

__all__ = ["loop_threads"]


@contextmanager
def loop_threads(n_threads: int, *, hold_blas: bool = True) -> Iterator[Executor]:
    """Open a pool of threads for the block, and hold BLAS to one thread meanwhile.

    Parameters
    ----------
    n_threads : int
        See `worker_count` for what ``n_jobs`` means.
    hold_blas : bool
        False leaves the threads of BLAS alone, where the loops do not call it, or where one
        thread calls it and should have all cores.

    Examples
    --------
    >>> with loop_threads(2) as threads:
    ...     list(threads.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    with one_blas_thread() if hold_blas else nullcontext(), ThreadPoolExecutor(n_threads) as pool:
        yield pool
