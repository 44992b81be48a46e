"""How popular items were at a time: ratings before it, the older the less they count.

(1) ``log(D_j + 0.1) - log(sum_j D_j + 1)``, ``D_j = sum over ratings of j before t of
    2^(-(t - time) / half-life)``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ordrec.choice.order import DAY, DatedRows
from ordrec.errors import ModelFileError
from ordrec.runtime.compiling import compiled
from ordrec.storage.schema import Array, Seconds

__all__ = ["RatingTimes"]

NEGLIGIBLE = 40.0  # half-lives after which a rating does not count


@dataclass(frozen=True)
class RatingTimes:
    """The times and the items of all ratings, the oldest first."""

    stored: ClassVar = {
        "times": Seconds("learnt"),
        "items": Array("learnt", dtype=np.int64, codes="items"),
    }

    times: np.ndarray
    items: np.ndarray

    @classmethod
    def of(cls, rows: DatedRows) -> RatingTimes:
        """Of all entries of histories."""
        order = np.argsort(rows.times, kind="stable")
        return cls(rows.times[order], rows.history.indices[order].astype(np.int64))

    def check_stored(self) -> None:
        """Check that the times rise."""
        if (np.diff(self.times) < 0).any():
            raise ModelFileError("the times of its ratings do not rise")

    def counts(self, n_items: int) -> np.ndarray:
        """Return the numbers of ratings of the items."""
        return np.bincount(self.items, minlength=n_items)

    def changed(self, before: DatedRows, after: DatedRows) -> RatingTimes:
        """Return the times after some histories have changed.

        Ratings that stand in ``before`` only are taken out, if they are there, and those that stand
        in ``after`` only are added.
        """
        old, new = _pairs_of(before), _pairs_of(after)
        gone = [self._find(*pair) for pair in old - new]
        out = np.array(sorted(place for place in gone if place >= 0), dtype=np.int64)
        times, items = np.delete(self.times, out), np.delete(self.items, out)
        added = np.array(sorted((time, item) for _, item, time in new - old)).reshape(-1, 2)
        at = np.searchsorted(times, added[:, 0], side="right")
        return RatingTimes(
            np.insert(times, at, added[:, 0]),
            np.insert(items, at, added[:, 1].astype(np.int64)),
        )

    def _find(self, row: int, item: int, time: float) -> int:
        """The place of a rating, -1 if it is not there."""
        first, last = (int(np.searchsorted(self.times, time, side)) for side in ("left", "right"))
        found = np.flatnonzero(self.items[first:last] == item)
        return first + int(found[0]) if found.size else -1

    def log_popularity(self, at: np.ndarray, half_life: float, n_items: int) -> np.ndarray:
        """Return (1) at some times, one row each; NaN is the end of the ratings.

        Parameters
        ----------
        at : array of shape (n_rows,)
            Seconds.
        half_life : float
            In days.
        n_items : int
        """
        last = self.times[-1] + 1.0 if self.times.size else 0.0
        asked = np.where(np.isnan(at), last, at)
        order = np.argsort(asked, kind="stable")
        D = np.zeros((asked.size, n_items))
        if asked.size and self.times.size:
            begin = asked[order[0]] - NEGLIGIBLE * half_life * DAY
            first = int(np.searchsorted(self.times, begin))
            rate = np.log(2.0) / (half_life * DAY)
            _decayed_counts(self.times, self.items, first, asked[order], order, rate, D)
        return np.log(D + 0.1) - np.log(D.sum(axis=1) + 1.0)[:, None]


def _pairs_of(rows: DatedRows) -> set[tuple[int, int, float]]:
    """The row, the item and the time of each entry."""
    table = rows.history
    row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    return set(zip(row.tolist(), table.indices.tolist(), rows.times.tolist(), strict=True))


@compiled
def _decayed_counts(times, items, first, asked, row, rate, D):  # type: ignore[no-untyped-def]
    """``D`` of (1) at rising times, each row from the one before."""
    n_items, event = D.shape[1], first
    for k in range(asked.size):
        t = asked[k]
        if k > 0:
            kept = np.exp(-(t - asked[k - 1]) * rate)
            for j in range(n_items):
                D[row[k], j] = kept * D[row[k - 1], j]
        while event < times.size and times[event] < t:
            D[row[k], items[event]] += np.exp(-(t - times[event]) * rate)
            event += 1
