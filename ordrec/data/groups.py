"""Rows grouped by a code: the ratings of each user, or of each item, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ordrec.data.ratings import Ratings

__all__ = ["Groups", "RatingGroups", "group_starts"]


def group_starts(counts: np.ndarray) -> np.ndarray:
    """Return where each group starts if groups of these sizes follow each other, and the end.

    These are the row pointers of a CSR matrix: group ``k`` is ``start[k]:start[k + 1]``.

    Examples
    --------
    >>> group_starts(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    start = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=start[1:])
    return start


@dataclass(frozen=True)
class Groups:
    """Rows sorted by a code, in their given order within each group.

    Attributes
    ----------
    start : ndarray of int64, shape (n_groups + 1,)
        Where each group starts among the sorted rows; see `group_starts`.
    order : ndarray of int64, shape (n_rows,)
        The sorted rows: group ``k`` has the rows ``order[start[k]:start[k + 1]]``.

    Examples
    --------
    >>> groups = Groups.of(np.array([1, 0, 1, 3]), n_groups=4)
    >>> groups.start, groups.order
    (array([0, 1, 3, 3, 4]), array([1, 0, 2, 3]))
    >>> groups.rows(1), groups.sizes
    (array([0, 2]), array([1, 2, 0, 1]))
    """

    start: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, n_groups: int) -> Groups:
        """Group rows by their codes 0..``n_groups - 1``.

        Parameters
        ----------
        codes : array of int
            The group of each row.
        n_groups : int
        """
        counts = np.bincount(codes, minlength=n_groups)
        return cls(group_starts(counts), np.argsort(codes, kind="stable"))

    @property
    def n_groups(self) -> int:
        """Number of groups, including empty ones."""
        return self.start.size - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each group."""
        return np.diff(self.start)

    @property
    def codes(self) -> np.ndarray:
        """The group of each sorted row."""
        return np.repeat(np.arange(self.n_groups), self.sizes)

    def slice(self, code: int) -> slice:
        """Return the place of one group among the sorted rows."""
        return slice(int(self.start[code]), int(self.start[code + 1]))

    def rows(self, code: int) -> np.ndarray:
        """Return the row numbers of one group, ascending."""
        return self.order[self.slice(code)]


@dataclass(frozen=True)
class RatingGroups(Groups):
    """The columns of ratings, sorted by user or by item; see `Ratings.by_user`.

    A column is sorted when it is asked for, and not kept. ``times`` and ``weights`` are None where
    the ratings have none.

    Examples
    --------
    >>> import pandas as pd
    >>> from ordrec.data import Ratings
    >>> frame = pd.DataFrame({"user": ["bob", "ann", "bob"], "item": [7, 9, 9],
    ...                       "rating": [1.0, 2.0, 3.0]})
    >>> by_user = Ratings.from_frame(frame).by_user()
    >>> by_user.start, by_user.items, by_user.values
    (array([0, 1, 3]), array([1, 0, 1], dtype=int32), array([2., 1., 3.]))
    """

    ratings: Ratings

    @property
    def users(self) -> np.ndarray:
        """User codes."""
        return self.ratings.users[self.order]

    @property
    def items(self) -> np.ndarray:
        """Item codes."""
        return self.ratings.items[self.order]

    @property
    def levels(self) -> np.ndarray:
        """Zero-based positions on the scale."""
        return self.ratings.levels[self.order]

    @property
    def values(self) -> np.ndarray:
        """The ratings, in their own units."""
        return self.ratings.values[self.order]

    @property
    def times(self) -> np.ndarray | None:
        """Seconds since 1970, 0 where unknown."""
        times = self.ratings.timestamps
        return None if times is None else times[self.order]

    @property
    def weights(self) -> np.ndarray | None:
        """How much each rating counts."""
        weights = self.ratings.weights
        return None if weights is None else weights[self.order]
