"""How much memory the loading of a model file may take.

A small file can ask for a large model: a million items without ratings have a kernel of a million
rows. What a model allocates beyond the arrays of its file is therefore estimated first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ordrec.errors import ArgumentError, ModelFileError

__all__ = ["TooLarge", "claim_memory", "memory_limit"]


class TooLarge(ModelFileError):
    """Loading would need more memory than it may have."""


# Bytes claimed so far, and how many may be: only while a model is loaded.
_claims: ContextVar[tuple[float, float] | None] = ContextVar("claims", default=None)


@contextmanager
def memory_limit(gigabytes: float) -> Iterator[None]:
    """Bound the sum of what is claimed within the block."""
    if not gigabytes > 0:
        raise ArgumentError(f"max_memory must be above 0 gigabytes, got {gigabytes!r}")
    token = _claims.set((0.0, gigabytes * 1e9))
    try:
        yield
    finally:
        _claims.reset(token)


def claim_memory(n_bytes: float, what: str) -> None:
    """Raise an error if a model being loaded would get too large by this many bytes.

    Parameters
    ----------
    n_bytes : float
        What is about to be allocated for good.
    what : str
        For the message, such as "the kernel of 10000 items".

    Examples
    --------
    >>> claim_memory(1e12, "a model that is fitted, not loaded")  # no limit applies
    >>> with memory_limit(2):
    ...     claim_memory(1e9, "a half")
    ...     claim_memory(5e9, "the kernel of 20000 items")
    Traceback (most recent call last):
    ...
    ordrec.storage.limits.TooLarge: takes 6.0 GB or more (the kernel of 20000 items), and \
max_memory is 2: raise it if the file is from someone you trust
    """
    current = _claims.get()
    if current is None:
        return
    claimed, limit = current[0] + n_bytes, current[1]
    if claimed > limit:
        raise TooLarge(
            f"takes {claimed / 1e9:.1f} GB or more ({what}), and max_memory is {limit / 1e9:g}: "
            "raise it if the file is from someone you trust",
            parameter="max_memory",
        )
    _claims.set((claimed, limit))
