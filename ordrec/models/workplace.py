"""Where a fit does its work: loops over rows on any engine, and stages that outlive a stop.

A model learns by loops over rows, of users or of items, in which each row is computed by itself
from what all rows share. `over_rows` runs such a loop. By default that is in threads of this
process; within `working_at`, blocks of rows are tasks of an engine (`ordrec.runtime.parallel`), and
tables of ratings go to its workers as files that they map. No sum runs across two blocks, so that
the digits are the same everywhere, and a model needs no second implementation for ratings on disk.

`kept` and `Sweeps` store what has been computed under a checksum of all that it depends on. A fit
that is begun again with the same ratings in the same folder finds it there. Outside `working_at`
they store nothing.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.runtime.files import check_folder_visible, make_folder, storage_errors
from ordrec.runtime.parallel import Engine, run
from ordrec.runtime.parallel.spans import over_spans, spans_of
from ordrec.storage.parts import PartStore

__all__ = [
    "StoredTable",
    "Sweeps",
    "Workplace",
    "fingerprint",
    "kept",
    "mapped_table",
    "over_rows",
    "working_at",
]

TASKS = 16  # of a loop on an engine, whatever the number of its workers
LITTLE_WORK = 20_000_000  # operations that take less time than sending them away
TABLE_PARTS = "data", "indices", "indptr"


@dataclass(frozen=True)
class Workplace:
    """Where a fit works.

    Attributes
    ----------
    folder : Path
        For stored stages and the tables that workers map; on a cluster, all of them see it.
    engine : Engine or None
        None for threads of this process.
    n_jobs : int or None
    """

    folder: Path
    engine: Engine | None = None
    n_jobs: int | None = None

    @property
    def stages(self) -> PartStore:
        """What has been computed."""
        return PartStore(self.folder / "stages", ".stage")


_place: ContextVar[Workplace | None] = ContextVar("workplace", default=None)


@contextmanager
def working_at(place: Workplace) -> Iterator[None]:
    """Let the fits within the block work at a place."""
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


# ---- loops ---------------------------------------------------------------------------------------


def over_rows(
    function: Callable[..., Any], costs: np.ndarray, shared: tuple[Any, ...], n_jobs: int
) -> Any:
    """Return ``function(span, *shared)`` for spans of rows, one after the other in one array.

    Parameters
    ----------
    function : callable
        Of a module. Takes the first row of a span and the one behind its last, and returns an
        array, or a tuple of arrays, that holds what belongs to these rows, one after the other. It
        does not depend on where the spans begin.
    costs : array of shape (n_rows,)
        About how many operations each row takes.
    shared : tuple
        Further arguments, the same for all spans; a ``csr_array`` arrives as one.
    n_jobs : int
        Threads, if the loop runs here.

    Examples
    --------
    >>> over_rows(lambda span, x: x[span[0] : span[1]] ** 2, np.ones(3), (np.arange(3),), 2)
    array([0, 1, 4])
    """
    place = _place.get()
    if place is None or place.engine is None or costs.sum() <= LITTLE_WORK:
        found = over_spans(lambda *span: function(span, *shared), costs, n_jobs)
    else:
        there = tuple(
            StoredTable.of(each, place.folder) if isinstance(each, sparse.csr_array) else each
            for each in shared
        )
        spans = spans_of(costs, TASKS)
        results = dict(
            run(_span_there, spans, shared=(function, *there), engine=place.engine,
                n_jobs=place.n_jobs)
        )  # fmt: skip
        found = [results[number] for number in range(len(spans))]
    if not found:  # no rows
        return function((0, 0), *shared)
    if len(found) == 1:
        return found[0]
    if isinstance(found[0], tuple):
        return tuple(np.concatenate(pieces) for pieces in zip(*found, strict=True))
    return np.concatenate(found)


def _span_there(span: tuple[int, int], function: Callable[..., Any], *shared: Any) -> Any:
    """One span of a loop, in a worker."""
    tables = (each.table() if isinstance(each, StoredTable) else each for each in shared)
    return function(span, *tables)


@dataclass(frozen=True)
class StoredTable:
    """A sparse table in files that are mapped into memory where it is used.

    Attributes
    ----------
    folder : Path
    shape : tuple of int
    """

    folder: Path
    shape: tuple[int, int]

    @classmethod
    def of(cls, table: sparse.csr_array, folder: Path) -> StoredTable:
        """Write a table to a folder named by its content, unless it is there."""
        place = folder / "tables" / fingerprint(table)
        if not place.exists():
            make_folder(place.parent)
            part = place.with_name(f".{secrets.token_hex(8)}")
            with storage_errors(place):
                part.mkdir()
                for name in TABLE_PARTS:
                    np.save(part / f"{name}.npy", getattr(table, name))
                os.replace(part, place)
        return cls(place, table.shape)

    def table(self) -> sparse.csr_array:
        """Return the table."""
        check_folder_visible(self.folder)
        return mapped_table(self.folder, self.shape)


def mapped_table(folder: Path, shape: tuple[int, int]) -> sparse.csr_array:
    """Return a table whose arrays are maps of files; changes do not reach them."""
    data, indices, start = (
        np.asarray(np.load(folder / f"{name}.npy", mmap_mode="c")) for name in TABLE_PARTS
    )
    return sparse.csr_array((data, indices, start), shape=shape, copy=False)


# ---- stages --------------------------------------------------------------------------------------


def fingerprint(*values: Any) -> str:
    """Return a checksum of arrays, sparse tables, and values that have a ``repr``.

    Examples
    --------
    >>> fingerprint(np.arange(3)) == fingerprint(np.array([0, 1, 2]))
    True
    >>> fingerprint(np.arange(3), "a") == fingerprint(np.arange(3), "b")
    False
    """
    found = hashlib.sha256()
    for value in values:
        arrays = [value]
        if isinstance(value, sparse.csr_array):
            arrays = [getattr(value, name) for name in TABLE_PARTS] + [np.array(value.shape)]
        for array in arrays:
            if isinstance(array, np.ndarray):
                found.update(f"{array.dtype.str} {array.shape}".encode())
                found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            else:
                found.update(repr(array).encode())
    return found.hexdigest()[:32]


def kept(
    name: str, inputs: tuple[Any, ...], compute: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Return arrays that depend on nothing but the inputs; those of an earlier run if stored."""
    place = _place.get()
    if place is None:
        return compute()
    part = {"stage": name, "of": fingerprint(*inputs)}
    stored = place.stages.get(part)
    if stored is not None:
        return stored[0]
    arrays = compute()
    place.stages.put(part, arrays, part)
    return arrays


class Sweeps:
    """The state of a fit after each of its sweeps, of which the last is stored.

    Parameters
    ----------
    name : str
    inputs : tuple
        All that the state depends on, see `fingerprint`.
    n_sweeps : int

    Attributes
    ----------
    number : int
        Of sweeps that are done.
    state : dict of str to ndarray
        After the last of them.

    Examples
    --------
    >>> sweeps = Sweeps("counting", (), 3)
    >>> for state in sweeps.from_here({"n": np.zeros(1)}):
    ...     sweeps.done({"n": state["n"] + 1})
    >>> sweeps.state
    {'n': array([3.])}
    """

    def __init__(self, name: str, inputs: tuple[Any, ...], n_sweeps: int):
        self._place, self._n_sweeps, self.number = _place.get(), n_sweeps, 0
        self._about = {"sweeps": name}
        self.state: dict[str, np.ndarray] = {}
        if self._place is not None:
            self._about["of"] = fingerprint(*inputs)

    def from_here(self, start: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """Yield the state before each sweep that is left; call `done` with the one after it."""
        self.resumed(start)
        while self.number < self._n_sweeps:
            yield self.state

    def resumed(self, start: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the state after the last sweep that was done; ``start`` if none was."""
        self.state = start
        if self._place is not None:
            for number in range(self._n_sweeps, 0, -1):
                stored = self._place.stages.get(self._part(number))
                if stored is not None:
                    self.number, self.state = number, stored[0]
                    break
        return self.state

    def done(self, state: dict[str, np.ndarray]) -> None:
        """Note the state after a sweep."""
        self.state, self.number = state, self.number + 1
        if self._place is not None:
            stages = self._place.stages
            stages.put(self._part(self.number), state, {})
            stages.file(self._part(self.number - 1)).unlink(missing_ok=True)

    def _part(self, number: int) -> dict[str, Any]:
        return self._about | {"sweep": number}
