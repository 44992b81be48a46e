"""Tasks on a Dask cluster: the shared objects are sent to each worker once.

A cluster that is joined by its address may have an active memory manager, which drops copies
from workers that are idle at the moment; such a worker fetches its copy again for its next task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from typing import Any

from ordrec.errors import ArgumentError, WorkerLost
from ordrec.runtime.parallel.tasks import Outcome, attempt

__all__ = ["DaskPool", "connected"]

CONNECT_SECONDS = 10
WORKER_SECONDS = 60  # to wait for the first worker of a cluster
SEND_SECONDS = 15  # to send the shared objects after a worker died meanwhile
PATIENCE = 1.0  # seconds after which the workers are counted


class DaskPool:
    """A client of a cluster that starts tasks as the other engines do.

    Dask itself restarts a task whose worker died. `run` restarts it only after several workers
    died with the task, or when no worker is left that holds the shared objects.
    """

    attempts = 3

    def __init__(
        self,
        scheduler: Any,
        n_workers: int,
        bounded: bool,
        function: Callable[..., Any],
        shared: tuple[Any, ...],
    ):
        check_installed()
        from distributed import KilledWorker

        self.lost: tuple[type[BaseException], ...] = (CancelledError, KilledWorker)
        self._content = (function, shared)
        self._open = ExitStack()  # what this pool opened and must close
        try:
            self._client = self._open.enter_context(connected(scheduler, n_workers))
            self._address = self._client.scheduler_info()["address"]
            self.renew()
            threads = sum(self._client.nthreads().values())
            self.width = 2 * (n_workers if bounded else threads)
        except BaseException:
            self._open.close()
            raise

    def submit(self, task: Any) -> Future[Outcome]:
        """Start a task."""
        if self._gone():
            raise CancelledError
        return self._executor.submit(_work, self._held, task)

    def share(self, cores: int) -> None:
        """Nothing: how many threads a worker has is for its cluster to say."""

    def results_lost(self) -> bool:
        """Whether the shared objects are lost: Dask may then wait for a result for ever."""
        return self._held.status not in ("finished", "pending")

    def renew(self) -> None:
        """Wait for the first worker, then send the shared objects to all of them."""
        deadline = time.monotonic() + WORKER_SECONDS
        while True:  # a worker may vanish after it was seen
            try:
                self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
                (self._held,) = self._sent()
                break
            except Exception as error:
                gone = self._gone()  # a client that is closing raises other errors
                # the client looks for what it has sent, and finds it forgotten with its worker
                forgotten = isinstance(error, (OSError, CancelledError, KeyError))
                if not gone and not forgotten:
                    raise
                if gone or time.monotonic() >= deadline:
                    raise WorkerLost(
                        f"the Dask cluster {self._address} has no workers, or can no longer be "
                        f"reached: start some with 'dask worker {self._address}' ({error})"
                    ) from error
                time.sleep(0.1)
        self._executor = self._client.get_executor(pure=False)

    def _sent(self) -> Any:
        """Send the shared objects, and give up some time after a worker vanished meanwhile.

        Dask itself may then wait for the answer of that worker for ever.
        """
        before, lost_at = set(self._client.nthreads()), float("inf")
        sending = asyncio.run_coroutine_threadsafe(
            self._client.scatter([self._content], broadcast=True, hash=False, asynchronous=True),
            self._client.loop.asyncio_loop,
        )
        while True:
            try:
                return sending.result(timeout=PATIENCE)
            except TimeoutError:
                if sending.done():
                    raise
            if not before <= set(self._client.nthreads()):
                lost_at = min(lost_at, time.monotonic())
            if time.monotonic() - lost_at > SEND_SECONDS:
                sending.cancel()
                raise TimeoutError("a worker died while the shared objects were sent to it")

    def close(self, kill: bool) -> None:
        """Forget the tasks; a cluster that was started for this run is shut down."""
        try:
            if not self._gone():
                self._executor.shutdown(wait=not kill)
        finally:
            self._held = None
            self._open.close()

    def _gone(self) -> bool:
        """Whether the client has given up on its scheduler."""
        return self._client.status in ("closing", "closed")


def check_installed() -> None:
    """Say how to install Dask, if it is not."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ArgumentError(
            "the engine dask needs a package that is not installed: pip install 'ordrec[dask]'"
        ) from error


@contextmanager
def connected(scheduler: Any, n_workers: int) -> Iterator[Any]:
    """The given client, a client for the address, or one of a cluster started here.

    What is opened for the block is closed behind it.
    """
    check_installed()
    from dask import config
    from distributed import Client, LocalCluster

    if isinstance(scheduler, Client):
        yield scheduler
        return
    with ExitStack() as opened:
        if scheduler is None:
            with config.set({"distributed.scheduler.active-memory-manager.start": False}):
                cluster = LocalCluster(
                    n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
                )
            scheduler = opened.enter_context(cluster)
        address = getattr(scheduler, "scheduler_address", scheduler)
        # A client whose constructor fails may stay half open. Left to the garbage collector, it
        # is closed wherever that happens to run: inside the constructor of the next client it
        # waits for ever for the lock that this one holds. So it is kept at hand and closed here.
        client = Client.__new__(Client)
        try:
            Client.__init__(client, scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            client.close()
            raise WorkerLost(
                f"no Dask scheduler answers at {address}: check the address, which is like "
                f"tcp://host:8786, and that 'dask scheduler' runs there ({error})"
            ) from error
        yield opened.enter_context(client)


class SentOutcome(Outcome):
    """An outcome on its way from a worker.

    When the worker dies while its result is fetched, Dask calls the result lost although it has
    arrived, and unpacks it as type, error and traceback. It learns here that the task is to be
    done once more.
    """

    def __iter__(self) -> Iterator[Any]:
        raise CancelledError("the worker died while its result was on the way")


def _work(content: tuple[Callable[..., Any], tuple[Any, ...]], task: Any) -> SentOutcome:
    """Run a task in a worker that holds the function and the shared objects."""
    function, shared = content
    outcome = attempt(function, task, shared)
    return SentOutcome(outcome.result, outcome.error, outcome.warned)
