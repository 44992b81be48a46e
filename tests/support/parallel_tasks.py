"""Tasks for the tests of engines; importable, so that worker processes find them."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.errors import OrdrecWarning


def row_sum(task: int, table: np.ndarray, shift: float) -> float:
    return float(table[task] @ table[task]) + shift


def where(task: Any, *_: Any) -> tuple[int, bool]:
    """The process, and whether the first shared array is a map of a file."""
    base = _[0] if _ else None
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return os.getpid(), isinstance(base, np.memmap)


class Travelling:
    """Tells a file each time it arrives in a process."""

    def __init__(self, log: Path):
        self.log = log

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        with self.log.open("a") as file:
            file.write(f"{os.getpid()}\n")


def hold(task: int, travelling: Travelling) -> int:
    time.sleep(0.02)
    return os.getpid()


def fail_at(task: int, bad: int, log: Path) -> int:
    with log.open("a") as file:
        file.write(f"{task}\n")
    if task == bad:
        raise KeyError(f"the {task} is not there")
    time.sleep(0.01)
    return task


class NotToBePickled(Exception):
    def __init__(self, one: str, two: str):
        super().__init__(f"{one} and {two}")


def fail_oddly(task: int) -> None:
    raise NotToBePickled("this", "that")


def warn_of_a_parameter(task: int) -> None:
    """Warn as the library does."""
    warnings.warn(OrdrecWarning(f"pass scale={task}", parameter="scale"), stacklevel=1)


def warn(task: int) -> int:
    warnings.warn(f"task {task} did not converge: 0.25 left", RuntimeWarning, stacklevel=1)
    return task


def nested(task: int) -> tuple[bool, int]:
    """Whether tasks within a task are run where it is, and what they give."""
    from ordrec.runtime.parallel import run_all

    options: dict = {"engine": "processes", "n_jobs": 2}
    here = (os.getpid(), threading.get_ident())
    places = set(run_all(place, [0, 1], **options))
    return places == {here}, int(sum(run_all(row_sum, [0, 1], shared=(np.eye(2), task), **options)))


def place(task: int) -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


def last_shares(task: tuple[int, int | None]) -> tuple[int, int, list[int]]:
    """Wait for a share of the cores; what there is then, what n_jobs means, what threads have."""
    from ordrec.runtime.parallel import free_cores, loop_threads, worker_count

    expected, n_jobs = task
    ends = time.monotonic() + 60.0
    while free_cores(8) < expected and time.monotonic() < ends:
        time.sleep(0.01)
    with loop_threads(expected) as threads:
        alone = list(threads.map(free_cores, [8, 8]))
    return free_cores(8), worker_count(n_jobs), alone


def blas_threads(task: int) -> int:
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def die_once(task: int, table: np.ndarray, shift: float, folder: Path, victims: tuple) -> float:
    """As `row_sum`; the worker of a victim dies the first time, in the middle of it."""
    flag = folder / f"died-{task}"
    if task in victims and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return row_sum(task, table, shift)


def always_die(task: int, victim: int) -> int:
    if task == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def doze(task: int, seconds: float) -> int:
    time.sleep(seconds)
    return task
