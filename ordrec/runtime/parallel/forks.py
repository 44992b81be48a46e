"""What a process must not do after it was forked from one that used threads.

A fork copies the memory of a process but only one of its threads. GNU's OpenMP then waits for ever
for the team of threads that the parent had, and a pool of worker processes for its manager.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["after_fork", "forked", "one_openmp_thread_if_forked"]

_forked = False
_actions: list[Callable[[], None]] = []


def forked() -> bool:
    """Whether this process was forked from one that had imported ordrec."""
    return _forked


def after_fork(action: Callable[[], None]) -> None:
    """Have a function called in every process that is forked from this one."""
    _actions.append(action)


@contextmanager
def one_openmp_thread_if_forked() -> Iterator[None]:
    """Hold OpenMP to one thread if this process was forked: more of them may wait for ever.

    Examples
    --------
    >>> with one_openmp_thread_if_forked():
    ...     pass
    """
    if not _forked:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="openmp"):
        yield


def _begin() -> None:
    global _forked
    _forked = True
    for action in _actions:
        action()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_begin)
