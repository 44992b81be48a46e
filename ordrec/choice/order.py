"""Where the entries of a history stand in time.

The place of an entry is counted from the newest one, which has place 0. Entries of the same time
share the mean of their places, so that nothing depends on the order in which they were stored; in
a history whose times are all equal, every entry has the same place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

__all__ = ["DAY", "DatedRows", "places_of", "tells_order"]

DAY = 86_400.0  # seconds


def places_of(start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the place of each entry, averaged over entries of the same time.

    Parameters
    ----------
    start : array of shape (n_rows + 1,)
        Where each row begins among the entries.
    times : array of shape (n_entries,)

    Examples
    --------
    >>> places_of(np.array([0, 4]), np.array([5.0, 9.0, 5.0, 1.0]))
    array([1.5, 0. , 1.5, 3. ])
    """
    sizes = np.diff(start)
    row = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((-times, row))
    place = np.arange(times.size) - np.asarray(start)[row]
    first = np.ones(times.size, dtype=np.bool_)  # of the entries that share a time
    first[1:] = (np.diff(row) != 0) | (np.diff(times[order]) != 0)
    group = np.cumsum(first) - 1
    mean = np.bincount(group, place) / np.maximum(np.bincount(group), 1)
    result = np.empty(times.size)
    result[order] = mean[group]
    return result


def tells_order(start: np.ndarray, times: np.ndarray) -> bool:
    """Return whether any row has entries of two different times."""
    within = np.ones(max(times.size - 1, 0), dtype=np.bool_)
    ends = np.asarray(start)[1:-1] - 1
    within[ends[(ends >= 0) & (ends < within.size)]] = False
    return bool((np.diff(times)[within] != 0).any())


@dataclass(frozen=True)
class DatedRows:
    """Histories, with the time and the place of every entry.

    Attributes
    ----------
    history : csr_array of shape (n_users, n_items)
        ``rank / n_ranks`` of each item that was rated.
    times, places : array
        One per entry of the history.
    """

    history: sparse.csr_array
    times: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, history: sparse.csr_array, times: np.ndarray) -> DatedRows:
        """From histories and the times of their entries."""
        return cls(history, times, places_of(history.indptr, times))

    @classmethod
    def taken(cls, history: sparse.csr_array, times: np.ndarray, codes: np.ndarray) -> DatedRows:
        """From the rows of users by code; -1 is a user without ratings."""
        start = history.indptr.astype(np.int64)
        rows = np.maximum(codes, 0)
        sizes = np.where(codes >= 0, np.diff(start)[rows], 0)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(start[rows] - ends[:-1], sizes) + np.arange(ends[-1])
        taken = sparse.csr_array(
            (history.data[entries], history.indices[entries], ends),
            shape=(codes.size, history.shape[1]),
        )
        return cls.of(taken, times[entries])

    @property
    def newest(self) -> np.ndarray:
        """The newest time of each row; NaN for a row without known times."""
        result = np.full(self.history.shape[0], np.nan)
        np.fmax.at(result, self._row, self.times)
        return np.where(result > 0, result, np.nan)

    @property
    def days(self) -> np.ndarray:
        """For each entry, the days between it and the newest of its row."""
        days = (self.newest[self._row] - self.times) / DAY
        return np.where(np.isnan(days), 0.0, days)

    @property
    def _row(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(self.history.shape[0]), np.diff(self.history.indptr))

    def weighted(self, weights: np.ndarray, least: float = 0.0) -> sparse.csr_array:
        """Return the rows with these entries, each row divided by its largest one.

        Entries of at most ``least`` times the largest are left out.
        """
        row, table = self._row, self.history
        largest = np.zeros(table.shape[0])
        np.maximum.at(largest, row, weights)
        scaled = weights / np.where(largest > 0, largest, 1.0)[row]
        kept = scaled > least
        start = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=table.shape[0]))])
        return sparse.csr_array((scaled[kept], table.indices[kept], start), shape=table.shape)

    def between(self, low: float, high: float) -> sparse.csr_array:
        """Return the rows with 1 at each entry whose place is from ``low`` to below ``high``."""
        inside = (self.places >= low) & (self.places < high)
        counts = np.bincount(self._row[inside], minlength=self.history.shape[0])
        start = np.concatenate([[0], np.cumsum(counts)])
        return sparse.csr_array(
            (np.ones(int(inside.sum())), self.history.indices[inside], start),
            shape=self.history.shape,
        )

    def without_each(self, entries: np.ndarray) -> DatedRows:
        """Return copies of a single row, each without one entry; places stay as they are."""
        size = self.history.nnz
        kept = np.tile(np.arange(size), (entries.size, 1))
        kept = kept[kept != entries[:, None]]
        start = np.arange(entries.size + 1) * (size - 1)
        copies = sparse.csr_array(
            (self.history.data[kept], self.history.indices[kept], start),
            shape=(entries.size, self.history.shape[1]),
        )
        return DatedRows(copies, self.times[kept], self.places[kept])
