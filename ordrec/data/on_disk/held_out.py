"""`HeldOut`: ratings to leave out and predict, chosen by ids, so that any part of them can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.storage.schema import Integer, Number

__all__ = ["HeldOut"]


@dataclass(frozen=True)
class HeldOut:
    """A random share of the ratings, chosen by user and item ids: it does not depend on chunks.

    Parameters
    ----------
    share : float
        Between 0 and 1.
    random_state : int

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(50, 40, n_ratings=1000)
    >>> bool(90 < HeldOut(0.1).mask(ratings).sum() < 110)
    True
    """

    stored: ClassVar = {
        "share": Number(low=0, high=1),
        "random_state": Integer(low=-(2**62), high=2**62),
    }

    share: float = 0.1
    random_state: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ArgumentError(f"share must lie between 0 and 1, got {self.share}")

    def covers(self, other: HeldOut) -> bool:
        """Whether all ratings that the other holds out are held out here, too.

        Examples
        --------
        >>> HeldOut(0.2).covers(HeldOut(0.1)), HeldOut(0.1).covers(HeldOut(0.2))
        (True, False)
        """
        return self.random_state == other.random_state and self.share >= other.share

    def mask(self, ratings: Ratings) -> np.ndarray:
        """Return which ratings are held out, as booleans."""
        users, items = (
            pd.util.hash_array(np.asarray(ids)) for ids in (ratings.user_ids, ratings.item_ids)
        )
        state = np.array([self.random_state], dtype=np.int64).view(np.uint64)
        state = _mixed(_mixed(state + users)[ratings.users] + items[ratings.items])
        return state < np.uint64(self.share * 2.0**64)

    def parted(self, ratings: Ratings) -> tuple[Ratings, Ratings]:
        """Return the ratings to learn from and the ratings held out."""
        held = self.mask(ratings)
        return ratings.select(~held), ratings.select(held)


def _mixed(state: np.ndarray) -> np.ndarray:
    """Mix the bits of each number (the finaliser of splitmix64)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
