"""The Gram matrices of one side, from which every leave-one-owner-out kernel follows.

On the item side the owners are users and the entries items; on the user side it is the other
way round. With ``x_oe`` the owner-centred rating and ``o_oe`` whether there is one, four sums
over owners are enough to take any single owner out again, in O(1) a pair:

====  ============================  =========
slot  sum over owners v             symmetric
====  ============================  =========
0     ``x_ve x_vf``                 yes
1     ``x_ve o_vf``                 no
2     ``o_ve x_vf``                 no
3     ``o_ve o_vf``                 yes
4     ``weight_v o_ve o_vf``        yes
====  ============================  =========

Slots from 5 on hold kernels of side information, which no owner enters. All slots of a pair
lie together, because a block reads them for scattered pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ordrec.parallel.spans import over_spans

__all__ = ["N_SUMS", "Side", "build_side", "empty_side"]

N_SUMS = 5


class Side(NamedTuple):
    """Ratings grouped by owner, and the Gram of the entries.

    Attributes
    ----------
    start : int64 (n_owners + 1,)
        Where each owner's ratings begin.
    entry : int64 (n_ratings,)
        The entry of each rating.
    x : float64 (n_ratings,)
        Owner-centred ratings.
    time : float64 (n_ratings,)
        Seconds; 0 where unknown.
    gram : float32 (n_entries, n_entries, 5 + number of side kernels)
    activity : float64 (n_owners,)
        The owner's weight in slot 4.
    fold : int64 (n_owners,)
        Which loadings are free of the owner's ratings.
    loadings : float64 (n_folds, n_entries, rank)
    """

    start: np.ndarray
    entry: np.ndarray
    x: np.ndarray
    time: np.ndarray
    gram: np.ndarray
    activity: np.ndarray
    fold: np.ndarray
    loadings: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of ratings of each owner."""
        return np.diff(self.start)


def build_side(
    start: np.ndarray,
    entry: np.ndarray,
    x: np.ndarray,
    time: np.ndarray,
    n_entries: int,
    features: list[np.ndarray],
    fold: np.ndarray,
    loadings: np.ndarray,
    n_jobs: int = 1,
) -> Side:
    """Sum up the Grams; ``features`` are rows of side information, one array a kernel."""
    n_owners = start.size - 1
    sizes = np.diff(start)
    activity = 1.0 / np.maximum(sizes, 1)
    owner = np.repeat(np.arange(n_owners), sizes)
    order = np.argsort(entry, kind="stable")
    counts = np.bincount(entry, minlength=n_entries)
    by_entry = np.concatenate([[0], np.cumsum(counts)])
    gram = np.zeros((n_entries, n_entries, N_SUMS + len(features)), dtype=np.float32)
    cost = np.bincount(entry, sizes[owner], minlength=n_entries)
    over_spans(
        _sum_rows, cost, n_jobs, by_entry, owner[order], x[order], start, entry, x, activity, gram
    )
    for slot, rows in enumerate(features, start=N_SUMS):
        small = rows.astype(np.float32)
        np.matmul(small, small.T, out=gram[:, :, slot])
    return Side(start, entry, x, time, gram, activity, fold, loadings)


def empty_side(n_owners: int) -> Side:
    """A side without ratings, for a model with one side only."""
    return Side(
        np.zeros(n_owners + 1, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, 0, N_SUMS), dtype=np.float32),
        np.ones(n_owners),
        np.zeros(n_owners, dtype=np.int64),
        np.zeros((1, 0, 0)),
    )


@njit(cache=True, nogil=True)
def _sum_rows(first, stop, by_entry, owner, x_by_entry, start, entry, x, activity, gram):  # type: ignore[no-untyped-def]
    """Rows ``first..stop`` of the five sums, accumulated in double precision."""
    n_entries = gram.shape[0]
    row = np.zeros((n_entries, N_SUMS))
    for e in range(first, stop):
        row[:] = 0.0
        for at in range(by_entry[e], by_entry[e + 1]):
            v, x_e = owner[at], x_by_entry[at]
            for k in range(start[v], start[v + 1]):
                f, x_f = entry[k], x[k]
                row[f, 0] += x_e * x_f
                row[f, 1] += x_e
                row[f, 2] += x_f
                row[f, 3] += 1.0
                row[f, 4] += activity[v]
        for f in range(n_entries):
            for slot in range(N_SUMS):
                gram[e, f, slot] = row[f, slot]
