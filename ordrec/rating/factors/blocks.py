"""Blocks of users on disk: their ratings, grouped both ways, and what a fit knows of them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ordrec.data.on_disk.scan import RatingsScan
from ordrec.rating.factors.rows import GroupedRatings, RatingArrays, RowArrays, RowPosteriors
from ordrec.rating.factors.visits import UserBlock
from ordrec.runtime.files import storage_errors

if TYPE_CHECKING:
    from ordrec.data.on_disk.held_out import HeldOut

__all__ = ["StoredBlock", "write_blocks"]

NO_ORDER = np.zeros(0, np.int32)


@dataclass(frozen=True)
class StoredBlock:
    """Some users, whose arrays are in files.

    Ratings and features are mapped into memory. The posteriors of the users are read as a whole and
    written to new files, which bear the number of visits that led to them: a visit that is
    repeated, because its worker died, starts from the same rows and gives the same digits.

    Attributes
    ----------
    folder : Path
    number : int
    n_users : int
    """

    folder: Path
    number: int
    n_users: int

    def _file(self, name: str) -> Path:
        return self.folder / f"block-{self.number:05d}.{name}.npy"

    def save(self, name: str, array: np.ndarray) -> None:
        """Write an array; a reader finds the old file or the new one."""
        file = self._file(name)
        # not replace_file, which waits for the disk: these files do not outlive the fit
        part = file.with_name(f".{secrets.token_hex(8)}.npy")
        with storage_errors(file):
            try:
                np.save(part, array)
                os.replace(part, file)
            except BaseException:
                part.unlink(missing_ok=True)
                raise

    def load(self, name: str) -> np.ndarray:
        """Map an array into memory; changes do not reach its file."""
        mapped = np.load(self._file(name), mmap_mode="c")
        return np.asarray(mapped)  # numba takes no subclasses

    def save_ratings(self, name: str, ratings: GroupedRatings) -> None:
        """Write ratings, as grouped by "user" or "item"."""
        for part, array in ratings.arrays._asdict().items():
            self.save(f"{name}.{part}", array)

    def ratings(self, name: str) -> GroupedRatings:
        """Return the ratings grouped by "user" or "item"."""
        arrays = {part: self.load(f"{name}.{part}") for part in RatingArrays._fields}
        return GroupedRatings(**arrays, order=NO_ORDER)

    def users(self, n_side: int) -> UserBlock:
        """Return the block as a visit takes it; its last ``n_side`` features are side data."""
        ratings = self.ratings("user"), self.ratings("item")
        return UserBlock(*ratings, self.load("features"), n_side, self.load("sample"))

    def save_rows(self, direction: str, n_visits: int, rows: RowPosteriors) -> None:
        """Write the posteriors of the users after some visits."""
        for part, array in rows.arrays._asdict().items():
            self.save(f"{direction}.{n_visits}.{part}", array)

    def rows(self, direction: str, n_visits: int) -> RowPosteriors:
        """Read the posteriors of the users after some visits; changes do not reach the files."""
        names = (f"{direction}.{n_visits}.{part}" for part in RowArrays._fields)
        return RowPosteriors(*(np.load(self._file(name)) for name in names))

    def remove_rows(self, direction: str, n_visits: int) -> None:
        """Remove posteriors that are no longer needed."""
        for part in RowArrays._fields:
            self._file(f"{direction}.{n_visits}.{part}").unlink(missing_ok=True)


def write_blocks(
    scan: RatingsScan, folder: Path, rows: int, held_out: HeldOut | None = None
) -> Iterator[tuple[StoredBlock, pd.Index]]:
    """Write the ratings of a scan as blocks of about ``rows`` ratings.

    Ratings that are held out are left out, and so are users who have no others. Yields each block
    with the ids of its users.
    """
    number = 0
    for chunk in scan.chunks(rows):
        if held_out is not None:
            chunk = held_out.parted(chunk)[0]
        there, users = np.unique(chunk.users, return_inverse=True)
        if there.size == 0:
            continue
        block = StoredBlock(folder, number, there.size)
        levels, weights = chunk.levels, chunk.weights
        by_user = GroupedRatings.of(users, chunk.items, levels, there.size, weights)
        by_item = GroupedRatings.of(chunk.items, users, levels, chunk.n_items, weights)
        block.save_ratings("user", by_user)
        block.save_ratings("item", by_item)
        yield block, chunk.user_ids[there]
        number += 1
