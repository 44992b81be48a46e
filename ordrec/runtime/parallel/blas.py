"""Hold BLAS to one thread, also while other threads do the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from ordrec.runtime.parallel.forks import after_fork

__all__ = ["LARGE_MATRIX", "allowed_threads", "blas_for", "one_blas_thread"]

LARGE_MATRIX = 1500  # rows from which the threads of BLAS gain more than they lose by waiting

_lock = threading.Lock()
_holders = 0
_before: list[int] = []
_thread = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: tasks run in parallel instead, and digits do not change.

    In most builds the number of BLAS threads belongs to the whole process. The first thread to
    enter the block lowers it and the last one to leave restores it, so that threads may overlap
    in any way. In builds on OpenMP each thread has its own number, which it lowers and restores.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    global _holders, _before
    of_process, of_thread = _libraries()
    outermost = not hasattr(_thread, "before")
    if outermost:
        _thread.before = [library.get_num_threads() for library in of_thread]
        _set(of_thread, [1] * len(of_thread))
    with _lock:
        if _holders == 0:
            _before = [library.get_num_threads() for library in of_process]
            _set(of_process, [1] * len(of_process))
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _set(of_process, _before)
        if outermost:
            _set(of_thread, _thread.before)
            del _thread.before


def blas_for(rows: int) -> AbstractContextManager[None]:
    """One BLAS thread for work on matrices of ``rows`` rows, unless they are large.

    Examples
    --------
    >>> with blas_for(rows=300):
    ...     pass
    """
    return one_blas_thread() if rows < LARGE_MATRIX else nullcontext()


def allowed_threads(cores: int) -> int:
    """How many of the cores BLAS would use, were it not held: a limit the user may have set."""
    of_process, of_thread = _libraries()
    with _lock:
        held = _before if _holders else [library.get_num_threads() for library in of_process]
    own = getattr(_thread, "before", None)
    if own is None:
        own = [library.get_num_threads() for library in of_thread]
    return max(1, min([cores, *held, *own]))


def _free_lock() -> None:
    """Another thread of the parent may have held the lock, and is not there to release it."""
    global _lock
    _lock = threading.Lock()


after_fork(_free_lock)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """The BLAS libraries with one number of threads per process, and those with one per thread.

    Cached, because finding them takes longer than a small solve.
    """
    import scipy.linalg  # noqa: F401  brings a BLAS of its own, which must be found too
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    # builds without threads, which some solvers bring along, say nothing about the others
    found = [each for each in found if getattr(each, "threading_layer", "") != "disabled"]
    of_thread = [each for each in found if getattr(each, "threading_layer", "") == "openmp"]
    return [each for each in found if each not in of_thread], of_thread


def _set(libraries: list[Any], counts: list[int]) -> None:
    for library, count in zip(libraries, counts, strict=True):
        # From 3.8 on threadpoolctl lets only the first thread that set the number change it.
        # Here the first thread to enter and the last one to leave may be different.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(count)
        release(force=True)
