"""Is there room for a kernel matrix? Said before it is computed, not when memory runs out."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from ordrec.errors import ArgumentError

__all__ = ["check_gram_size", "memory_limit"]

MANY = 20_000  # rows from which a factorisation takes minutes
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_gram_size(model: object, n: int, bytes_per_entry: int) -> None:
    """Raise an error if matrices of n x n entries do not fit into memory; warn if n is large.

    Parameters
    ----------
    model : estimator
        Its name, and whether it has a parameter ``n_landmarks``, are part of the message.
    n : int
        Rows of the kernel matrix.
    bytes_per_entry : int
        Of all matrices of that size together.
    """
    name, needed, limit = type(model).__name__, bytes_per_entry * n**2, memory_limit()
    if hasattr(model, "n_landmarks"):
        remedy = "set n_landmarks (such as n_landmarks=500): time and memory are then linear in n"
    else:
        remedy = "fit to a sample of the rows, or use SVORIM, NPSVOR or GPOR with n_landmarks"
    if needed > limit:
        raise ArgumentError(
            f"{name} on {n:,} rows needs {needed / 2**30:.0f} GB for its kernel matrix and factors "
            f"of it, and this machine has {limit / 2**30:.0f} GB: {remedy}"
        )
    if n > MANY:
        warnings.warn(
            f"{name} factorises a kernel matrix of {n:,} x {n:,} entries, which takes "
            f"{needed / 2**30:.0f} GB and time that grows with n^3: {remedy}",
            UserWarning,
            stacklevel=4,
        )


def memory_limit() -> float:
    """Bytes that this process may use: the machine's memory, or less in a container."""
    limits = []
    try:
        limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    except (AttributeError, ValueError, OSError):  # not a POSIX system: unknown
        limits.append(float("inf"))
    for place in CONTAINER_LIMITS:
        try:
            limits.append(float(Path(place).read_text()))
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return min(limits)
