"""Tasks in threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ordrec.runtime.parallel.tasks import Cores, Outcome, attempt_here

__all__ = ["ThreadPool"]


class ThreadPool:
    """Threads of this process, which see all of its objects."""

    lost: tuple[type[BaseException], ...] = ()
    attempts = 1

    def __init__(self, n_workers: int, function: Callable[..., Any], shared: tuple[Any, ...]):
        self.width = 2 * n_workers
        self._function, self._shared, self._cores = function, shared, 1
        self._executor = ThreadPoolExecutor(n_workers, thread_name_prefix="ordrec")

    def submit(self, task: Any) -> Future[Outcome]:
        """Start a task."""
        cores = Cores(lambda: self._cores, self.width // 2)
        return self._executor.submit(attempt_here, self._function, task, self._shared, cores)

    def share(self, cores: int) -> None:
        """Let each of the last tasks use so many cores."""
        self._cores = cores

    def results_lost(self) -> bool:
        """Never: a thread always delivers its result."""
        return False

    def renew(self) -> None:
        """Nothing to do: threads do not die."""

    def close(self, kill: bool) -> None:
        """Wait for the threads; one that is busy cannot be stopped before its task is done."""
        self._executor.shutdown(wait=True, cancel_futures=kill)
