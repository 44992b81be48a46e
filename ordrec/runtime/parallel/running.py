"""`run`: a bounded number of tasks in flight, results as they finish, lost tasks repeated."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Protocol

from ordrec.errors import WorkerLost
from ordrec.runtime.parallel.blas import one_blas_thread
from ordrec.runtime.parallel.engine import Engine
from ordrec.runtime.parallel.forks import one_openmp_thread_if_forked
from ordrec.runtime.parallel.tasks import Cores, Outcome, attempt_here

__all__ = ["ThreadPool", "run", "run_all"]

Progress = Callable[[int, int, str], None]

PATIENCE = 1.0  # seconds without a result after which the pool is asked whether results are lost


def run(
    function: Callable[..., Any],
    tasks: Iterable[Any],
    *,
    shared: tuple[Any, ...] = (),
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    label: Callable[[Any], str] = reprlib.repr,
) -> Iterator[tuple[int, Any]]:
    """Call ``function(task, *shared)`` for each task, where the engine runs it.

    Parameters
    ----------
    function : callable
        Must not change what is shared. For processes and clusters it is a function of a module.
    tasks : iterable
        Taken from lazily: about two per worker are in flight, and no more are taken while
        results wait to be consumed.
    shared : tuple
        What all tasks need. It goes to each worker once, arrays of a megabyte and more as
        memory maps where workers are processes of this machine.
    engine : Engine or str, optional
        See `Engine`; a string may be "dask:ADDRESS". By default serial for one job and
        processes for more. Tasks of a task are run serially, where it is.
    n_jobs : int, optional
        Workers; -1 for all cores. For a Dask cluster that exists already, bounds the tasks in
        flight; by default there are two for each of its threads.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after each task. Where ``tasks`` has no
        length, ``total`` is the number taken so far.
    label : callable
        Returns the text that names a task in progress reports and errors.

    Yields
    ------
    (int, object)
        The number of the task and its result, in order of completion (serial: of the tasks).

    Raises
    ------
    WorkerLost
        Where workers die repeatedly (killed, out of memory, crashed) on the same task.
    Exception
        What a task raised, with a note that names it. The other tasks are then cancelled, as
        they are when the iterator is closed early or interrupted; worker processes end.

    Examples
    --------
    >>> from operator import add
    >>> list(run(add, [1, 2, 3], shared=(10,)))
    [(0, 11), (1, 12), (2, 13)]
    >>> sorted(run(add, [1, 2, 3], shared=(10,), engine="threads", n_jobs=2))
    [(0, 11), (1, 12), (2, 13)]
    """
    chosen = Engine.of(engine)
    name, n_workers = chosen.resolve(n_jobs)
    if name == "serial":
        found = _in_order(function, tasks, shared, label)
    else:

        def open_pool() -> Pool:
            return _open_pool(chosen, n_workers, n_jobs is not None, function, shared)

        found = _as_finished(open_pool, tasks, label)
    return _reported(found, tasks, progress, label)


def run_all(function: Callable[..., Any], tasks: Iterable[Any], **options: Any) -> list[Any]:
    """All results of `run` in the order of the tasks; the options are the same.

    Examples
    --------
    >>> run_all(pow, [2, 3], shared=(2,))
    [4, 9]
    """
    found = dict(run(function, tasks, **options))
    return [found[number] for number in range(len(found))]


class Flight(NamedTuple):
    """A task in flight."""

    number: int
    task: Any
    attempts: int = 1


class Pool(Protocol):
    """What an engine must be able to do."""

    width: int  # tasks in flight, two for each worker
    lost: tuple[type[BaseException], ...]  # what a future raises when its worker died
    attempts: int  # that a task has before it is given up

    def submit(self, task: Any) -> Future[Outcome]:
        """Start a task."""

    def share(self, cores: int) -> None:
        """Let each of the last tasks use this many cores, where others have nothing left to do."""

    def results_lost(self) -> bool:
        """Whether the results of the tasks in flight can never arrive."""

    def renew(self) -> None:
        """Replace workers that died, when nothing is in flight."""

    def close(self, kill: bool) -> None:
        """Release the workers, or kill them in the middle of their tasks."""


def _open_pool(
    engine: Engine,
    n_workers: int,
    bounded: bool,
    function: Callable[..., Any],
    shared: tuple[Any, ...],
) -> Pool:
    # Imported here: most runs need one of them, and Dask need not be installed.
    if engine.name == "threads":
        return ThreadPool(n_workers, function, shared)
    if engine.name == "dask":
        from ordrec.runtime.parallel.dask_cluster import DaskPool

        return DaskPool(engine.scheduler, n_workers, bounded, function, shared)
    from ordrec.runtime.parallel.processes import ProcessPool

    return ProcessPool(n_workers, function, shared)


Found = Iterator[tuple[Flight, int, Any]]  # the task, how many were taken so far, the result


def _in_order(
    function: Callable[..., Any],
    tasks: Iterable[Any],
    shared: tuple[Any, ...],
    label: Callable[[Any], str],
) -> Found:
    for number, task in enumerate(tasks):
        try:
            with one_blas_thread(), one_openmp_thread_if_forked():
                result = function(task, *shared)
        except Exception as error:
            error.add_note(_naming(number, task, label))
            raise
        yield Flight(number, task), number + 1, result


def _as_finished(
    open_pool: Callable[[], Pool], tasks: Iterable[Any], label: Callable[[Any], str]
) -> Found:
    pool = open_pool()
    flying: dict[Future[Outcome], Flight] = {}
    again: deque[Flight] = deque()
    waiting, taken, broken, complete = enumerate(tasks), 0, False, False
    cores = 1  # of each worker: more when fewer tasks are left than there are workers
    try:
        while True:
            while not broken and len(flying) < pool.width:
                if again:
                    flight = again.popleft()
                elif (following := next(waiting, None)) is not None:
                    flight, taken = Flight(*following), taken + 1
                else:
                    break
                try:
                    flying[pool.submit(flight.task)] = flight
                except pool.lost:
                    again.append(flight)
                    broken = True
            if not flying and not again:
                break
            if not flying:
                pool.renew()
                broken = False
                continue
            if (each := max(1, pool.width // 2 // len(flying))) != cores:
                cores = each
                pool.share(cores)
            done = wait(flying, timeout=PATIENCE, return_when=FIRST_COMPLETED).done
            if not done and pool.results_lost():
                done = {future for future in flying if future.cancel()}
            # in the order of the tasks: what `wait` returns is a set, whose order is chance
            for future in [future for future in flying if future in done]:
                flight = flying.pop(future)
                try:
                    outcome = future.result()
                except pool.lost as error:
                    again.append(_once_more(flight, pool.attempts, error, label))
                    broken = True
                    continue
                try:
                    result = outcome.unpack()
                except Exception as error:
                    error.add_note(_naming(flight.number, flight.task, label))
                    raise
                yield flight, taken, result
        complete = True
    finally:
        pool.close(kill=not complete)


def _once_more(
    flight: Flight, attempts: int, error: BaseException, label: Callable[[Any], str]
) -> Flight:
    """The task for another attempt, or `WorkerLost` when it has had all of its attempts."""
    if flight.attempts >= attempts:
        raise WorkerLost(
            f"{_naming(flight.number, flight.task, label)}: its worker died again and again, "
            "killed from outside, crashed or out of memory: run it alone (engine serial) to see, "
            f"or use fewer jobs. ({error})"
        ) from error
    return flight._replace(attempts=flight.attempts + 1)


def _reported(
    found: Found, tasks: Iterable[Any], progress: Progress | None, label: Callable[[Any], str]
) -> Iterator[tuple[int, Any]]:
    """Task numbers and results; the progress is reported before each of them."""
    for done, (flight, taken, result) in enumerate(found, start=1):
        if progress is not None:
            total = len(tasks) if isinstance(tasks, Sized) else taken
            progress(done, total, label(flight.task))
        yield flight.number, result


def _naming(number: int, task: Any, label: Callable[[Any], str]) -> str:
    return f"task {number}: {label(task)}"


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
        """Let each of the last tasks use this many cores."""
        self._cores = cores

    def results_lost(self) -> bool:
        """Never: a thread always delivers its result."""
        return False

    def renew(self) -> None:
        """Nothing to do: threads do not die."""

    def close(self, kill: bool) -> None:
        """Wait for the threads; one that is busy cannot be stopped before its task is done."""
        self._executor.shutdown(wait=True, cancel_futures=kill)
