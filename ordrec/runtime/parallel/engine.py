"""Which engine, and how many workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ordrec.errors import ArgumentError
from ordrec.runtime.parallel.blas import allowed_threads
from ordrec.runtime.parallel.tasks import most_cores, within_task

__all__ = ["ENGINES", "Engine", "default_engine", "worker_count"]

ENGINES = ("auto", "serial", "threads", "processes", "dask")
NO_JOBS = "n_jobs must not be 0: give 1, more, or -1 for all processors"


@dataclass(frozen=True)
class Engine:
    """Where tasks are run.

    Parameters
    ----------
    name : {"auto", "serial", "threads", "processes", "dask"}
        "auto" is serial for one job and processes for more.
    scheduler : str or distributed.Client, optional
        Address of Dask's scheduler, such as "tcp://10.0.0.1:8786", or a client that is already
        connected (and stays so). Without it, a cluster of processes on this machine is
        started for each run.

    Examples
    --------
    >>> Engine.of("dask:tcp://10.0.0.1:8786")
    Engine(name='dask', scheduler='tcp://10.0.0.1:8786')
    >>> Engine.of(None)
    Engine(name='auto', scheduler=None)
    """

    name: str = "auto"
    scheduler: Any = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ArgumentError(f"unknown engine {self.name!r}: choose one of {', '.join(ENGINES)}")
        if self.scheduler is not None and self.name != "dask":
            raise ArgumentError(
                f"the engine {self.name!r} has no scheduler: leave it out or choose dask"
            )
        if isinstance(self.scheduler, str) and not self.scheduler.strip():
            raise ArgumentError("the address of Dask's scheduler is empty: as in tcp://host:8786")

    @classmethod
    def of(cls, engine: Engine | str | None) -> Engine:
        """An engine from its name or "dask:ADDRESS"; None means the default one."""
        if engine is None:
            return _default.get() or cls()
        if isinstance(engine, Engine):
            return engine
        if not isinstance(engine, str):
            raise ArgumentError(f"engine must be a name or an Engine, got {engine!r}")
        name, colon, address = engine.partition(":")
        return cls(name, address) if colon else cls(name)

    def resolve(self, n_jobs: int | None) -> tuple[str, int]:
        """Name of the engine that is used in the end, and its number of workers."""
        if n_jobs == 0:
            raise ArgumentError(NO_JOBS)
        if within_task() or self.name == "serial" or (self.name == "auto" and n_jobs is None):
            return "serial", 1
        if self.name == "threads":
            return self.name, worker_count(n_jobs)
        count = worker_count(-1 if n_jobs is None else n_jobs)
        if self.name == "auto":
            return ("processes", count) if count > 1 else ("serial", 1)
        return self.name, count


_default: ContextVar[Engine | None] = ContextVar("default engine", default=None)


@contextmanager
def default_engine(engine: Engine | str | None) -> Iterator[None]:
    """Set the engine that `run` uses within the block when it is given none, instead of "auto".

    Examples
    --------
    >>> with default_engine("threads"):
    ...     Engine.of(None)
    Engine(name='threads', scheduler=None)
    """
    token = _default.set(Engine.of(engine))
    try:
        yield
    finally:
        _default.reset(token)


def worker_count(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` means: -1 as many as there are cores, -2 one less.

    None means all cores, or as many as BLAS is allowed (``OMP_NUM_THREADS``, threadpoolctl,
    joblib). Within a task it is the number that the task can have once other workers have nothing
    left to do; `loop_threads` starts no more than there are cores for at the moment.

    Examples
    --------
    >>> worker_count(3)
    3
    """
    if n_jobs == 0:
        raise ArgumentError(NO_JOBS)
    if within_task():
        most = most_cores()
        return min(most, int(n_jobs)) if n_jobs is not None and n_jobs > 0 else most
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    from loky import cpu_count  # type: ignore[import-untyped]

    if n_jobs is None:
        return allowed_threads(cpu_count())
    return max(1, cpu_count() + 1 + int(n_jobs))
