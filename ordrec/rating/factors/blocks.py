"""Blocks of users on disk: their ratings, grouped both ways, and what a fit knows of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ordrec.data.on_disk.scan import RatingsScan
from ordrec.rating.factors.rows import GroupedRatings, RowPosteriors

if TYPE_CHECKING:
    from ordrec.rating.on_disk.held_out import HeldOut

__all__ = ["Block", "write_blocks"]

POSTERIOR = ("mean", "moments", "variances")
PARTS = "start", "others", "levels", "weights"
NO_ORDER = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Block:
    """Some users, by arrays in files of their own that are mapped into memory.

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
        """Write an array."""
        np.save(self._file(name), array)

    def load(self, name: str, writable: bool = False) -> np.ndarray:
        """An array as memory that is read when it is used; changes are written to its file."""
        mapped = np.load(self._file(name), mmap_mode="r+" if writable else "r")
        return np.asarray(mapped)  # numba takes no subclasses

    def save_ratings(self, name: str, ratings: GroupedRatings) -> None:
        """Write ratings, as grouped by "user" or "item"."""
        for part, array in zip(PARTS, ratings.arrays, strict=True):
            self.save(f"{name}.{part}", array)

    def ratings(self, name: str, reversed_from: int | None = None) -> GroupedRatings:
        """The ratings grouped by "user" or "item", their ranks reversed from the last one."""
        start, others, levels, weights = (self.load(f"{name}.{part}") for part in PARTS)
        if reversed_from is not None:
            levels = np.asarray(reversed_from - levels, np.int16)
        return GroupedRatings(start, others, levels, weights, NO_ORDER)

    def save_rows(self, name: str, rows: RowPosteriors) -> None:
        """Write posteriors of the users."""
        for part, array in zip(POSTERIOR, rows.arrays, strict=True):
            self.save(f"{name}.{part}", array)

    def rows(self, name: str) -> RowPosteriors:
        """Posteriors of the users, which are written to disk as they change."""
        return RowPosteriors(*(self.load(f"{name}.{part}", True) for part in POSTERIOR))


def write_blocks(
    scan: RatingsScan, folder: Path, rows: int, held_out: HeldOut | None = None
) -> Iterator[tuple[Block, pd.Index]]:
    """Write the ratings of a scan as blocks of about so many; yield each with its users' ids.

    Ratings that are held out, and users who have no others, are left out.
    """
    number = 0
    for chunk in scan.chunks(rows):
        if held_out is not None:
            chunk = held_out.parted(chunk)[0]
        there, users = np.unique(chunk.users, return_inverse=True)
        if there.size == 0:
            continue
        block = Block(folder, number, there.size)
        levels, weights = chunk.levels, chunk.weights
        by_user = GroupedRatings.of(users, chunk.items, levels, there.size, weights)
        by_item = GroupedRatings.of(chunk.items, users, levels, chunk.n_items, weights)
        block.save_ratings("user", by_user)
        block.save_ratings("item", by_item)
        yield block, chunk.user_ids[there]
        number += 1
