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
