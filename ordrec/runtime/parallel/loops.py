"""Threads for compiled loops, which release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ordrec.runtime.parallel.blas import one_blas_thread
from ordrec.runtime.parallel.tasks import become_worker, free_cores

__all__ = ["loop_threads"]


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
