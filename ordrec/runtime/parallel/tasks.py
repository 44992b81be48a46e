"""How a task is run: with one BLAS thread, its warnings and errors packed with the result."""

from __future__ import annotations

import pickle
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ordrec.errors import OrdrecWarning
from ordrec.runtime.parallel.blas import one_blas_thread
from ordrec.runtime.parallel.forks import one_openmp_thread_if_forked

__all__ = [
    "Cores",
    "Outcome",
    "attempt",
    "attempt_here",
    "become_worker",
    "free_cores",
    "most_cores",
    "within_task",
]

_thread = threading.local()


class Cores(NamedTuple):
    """The cores of a task: how many it has now, and how many it can have in the end."""

    now: Callable[[], int]
    most: int


ONE_CORE = Cores(lambda: 1, 1)


def within_task() -> bool:
    """Whether this thread belongs to a worker and is running a task."""
    return getattr(_thread, "busy", False)


def free_cores(n_threads: int) -> int:
    """How many of ``n_threads`` may be started now: in a task, one for each of its cores."""
    return min(n_threads, _thread.cores.now()) if within_task() else n_threads


def most_cores() -> int:
    """How many cores the task of this thread can have, once other workers are idle."""
    return _thread.cores.most


def become_worker() -> None:
    """Make this thread a worker's, with one core, for as long as it lives."""
    _thread.busy, _thread.cores = True, ONE_CORE


@dataclass
class Outcome:
    """The result or error of a task, in a form that can be sent between processes."""

    result: Any = None
    error: BaseException | None = None
    warned: list[tuple[str | Warning, type[Warning], str, int]] = field(default_factory=list)

    def unpack(self) -> Any:
        """The result, after the task's warnings are repeated here; or raise its error."""
        for message, category, filename, line in self.warned:
            warnings.warn_explicit(message, category, filename, line)
        if self.error is not None:
            raise self.error
        return self.result


def attempt_here(
    function: Callable[..., Any],
    task: Any,
    shared: tuple[Any, ...],
    cores: Cores = ONE_CORE,
) -> Outcome:
    """Run a task in a thread of this process."""
    _thread.busy, _thread.cores = True, cores
    try:
        with one_blas_thread(), one_openmp_thread_if_forked():
            return Outcome(function(task, *shared))
    except Exception as error:
        return Outcome(error=error)
    finally:
        _thread.busy = False


def attempt(
    function: Callable[..., Any],
    task: Any,
    shared: tuple[Any, ...],
    cores: Cores = ONE_CORE,
) -> Outcome:
    """Run a task in another process: its warnings and errors are packed for the way back."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = attempt_here(function, task, shared, cores)
    outcome.warned = [
        (_sendable_warning(w.message), w.category, w.filename, w.lineno) for w in caught
    ]
    if outcome.error is not None:
        outcome.error = _sendable(outcome.error)
    return outcome


def _sendable_warning(message: Warning | str) -> Warning | str:
    """A warning of ordrec as it is, with its parameters; others as text: they may not pickle."""
    return message if isinstance(message, OrdrecWarning) else str(message)


def _sendable(error: BaseException) -> BaseException:
    """The error with the traceback as a note, or one that says the same and can be pickled."""
    text = "".join(traceback.format_exception(error)).rstrip()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"in a worker process:\n{text}")
    return error.with_traceback(None)
