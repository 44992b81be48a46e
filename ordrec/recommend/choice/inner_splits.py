"""Parts of the histories set aside, to choose parameters and to calibrate probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ordrec.ratings import Ratings

__all__ = ["InnerSplit", "entry_times", "inner_splits"]


@dataclass(frozen=True)
class InnerSplit:
    """Histories to learn from, and the picks set aside.

    Attributes
    ----------
    given, held : csr_array of shape (n_users, n_items)
    rows : int64 array
        Users that have entries in both parts, ascending.
    given_times : array or None
        Times of the entries of ``given``.
    """

    given: sparse.csr_array
    held: sparse.csr_array
    rows: np.ndarray
    given_times: np.ndarray | None = None


def inner_splits(
    history: sparse.csr_array,
    n_splits: int,
    share: float,
    rng: np.random.Generator,
    *,
    times: np.ndarray | None = None,
    max_users: int,
) -> list[InnerSplit]:
    """Set aside a share of every user's entries, several times.

    Parameters
    ----------
    history : csr_array
        With sorted indices.
    n_splits : int
    share : float
        Of each user's entries; a user keeps at least one.
    rng : Generator
    times : array, optional
        One per entry of the history: the latest entries are set aside. Without times, the
        entries are drawn at random.
    max_users : int
        At most so many ``rows``, drawn at random.
    """
    sizes = np.diff(history.indptr)
    user = np.repeat(np.arange(history.shape[0]), sizes)
    count = np.minimum(np.rint(share * sizes).astype(np.int64), sizes - 1)
    found = []
    for _ in range(n_splits):
        keys = rng.random(history.nnz)
        # the last of each user by time, then by chance
        order = np.lexsort((keys, user) if times is None else (keys, times, user))
        place = np.empty(history.nnz, dtype=np.int64)
        place[order] = np.arange(history.nnz) - history.indptr[user[order]]
        out = place >= (sizes - count)[user]
        given, held = _selected(history, user, ~out), _selected(history, user, out)
        rows = np.flatnonzero((np.diff(given.indptr) > 0) & (np.diff(held.indptr) > 0))
        if rows.size > max_users:
            rows = np.sort(rng.choice(rows, max_users, replace=False))
        found.append(InnerSplit(given, held, rows, None if times is None else times[~out]))
    return found


def entry_times(ratings: Ratings, history: sparse.csr_array) -> np.ndarray | None:
    """Times of the entries of the histories, or None where the ratings have none."""
    if ratings.timestamps is None or not (ratings.timestamps > 0).any():
        return None
    times = ratings.timestamps.astype(np.float64)
    table = sparse.csr_array((times, (ratings.users, ratings.items)), shape=history.shape)
    table.sort_indices()
    return table.data


def _selected(history: sparse.csr_array, user: np.ndarray, entries: np.ndarray) -> sparse.csr_array:
    counts = np.bincount(user[entries], minlength=history.shape[0])
    start = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array(
        (history.data[entries], history.indices[entries], start), shape=history.shape
    )
