"""A small, realistic mistake in one place of the package, and the tests that must notice it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Mutation"]


class Mutation(NamedTuple):
    """One row of the tables.

    ``old`` is text of ``file`` (a path within ``ordrec``) that occurs there once, ``new`` takes
    its place. ``tests`` are nodes below ``tests``, separated by blanks, at least one of which must
    fail. With ``compiled=False`` they run without compilation, which is quicker where loops are
    short.
    """

    file: str
    old: str
    new: str
    tests: str
    why: str
    compiled: bool = True

    @property
    def name(self) -> str:
        """What the mutation is called in reports."""
        return f"{self.file.removesuffix('.py').replace('/', '.')}: {self.why}"
