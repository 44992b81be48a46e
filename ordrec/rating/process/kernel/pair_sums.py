"""Sums over pairs of entries on one side, from which every leave-one-owner-out kernel follows.

On the item side the owners are users and the entries items; on the user side it is the other
way round. With ``x_oe`` the owner-centred rating and ``o_oe`` 1 if there is one and 0 otherwise,
five sums over owners are enough to leave any single owner out again, in O(1) per pair:

====  ============  ======================  ===============  =========
slot  name          sum over owners v       in `components`  symmetric
====  ============  ======================  ===============  =========
0     CROSS_SUM     ``x_ve x_vf``           ``P_ef``         yes
1     OWN_SUM       ``x_ve o_vf``           ``Q_ef``         no
2     OTHER_SUM     ``o_ve x_vf``           ``Q_fe``         no
3     COMMON_SUM    ``o_ve o_vf``           ``N_ef``         yes
4     ACTIVITY_SUM  ``weight_v o_ve o_vf``  ``A_ef``         yes
====  ============  ======================  ===============  =========

Slots from 5 on hold kernels of side information, which do not depend on owners. All slots of a
pair lie together, because a block reads them for scattered pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.runtime.compiling import compiled, inner
from ordrec.runtime.parallel.spans import over_spans

__all__ = [
    "ACTIVITY_SUM",
    "COMMON_SUM",
    "CROSS_SUM",
    "N_SUMS",
    "OTHER_SUM",
    "OWN_SUM",
    "OwnerSide",
    "add_pair",
    "build_side",
    "empty_side",
]

CROSS_SUM, OWN_SUM, OTHER_SUM, COMMON_SUM, ACTIVITY_SUM = range(5)
N_SUMS = 5
ROWS = 64  # of a kernel that are multiplied at a time


class OwnerSide(NamedTuple):
    """Ratings grouped by owner, and the sums over all pairs of entries.

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
        The owner's weight in slot 4, 1 / their number of ratings.
    fold : int64 (n_owners,)
        Which of the loadings were fitted without the owner's ratings.
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
) -> OwnerSide:
    """Sum over all pairs of entries; ``features`` are rows of side information, one per kernel."""
    n_owners = start.size - 1
    sizes = np.diff(start)
    activity = 1.0 / np.maximum(sizes, 1)
    owner = np.repeat(np.arange(n_owners), sizes)
    order = np.argsort(entry, kind="stable")
    counts = np.bincount(entry, minlength=n_entries)
    by_entry = np.concatenate([[0], np.cumsum(counts)])
    gram = np.zeros((n_entries, n_entries, N_SUMS + len(features)), dtype=np.float32)
    cost = np.bincount(entry, sizes[owner], minlength=n_entries)
    sums = by_entry, owner[order], x[order], start, entry, x, activity, gram

    def sum_span(first: int, stop: int) -> None:
        _sum_rows(first, stop, *sums, np.zeros((n_entries, N_SUMS)))

    over_spans(sum_span, cost, n_jobs)
    _multiply_features([rows.astype(np.float32) for rows in features], gram)
    return OwnerSide(start, entry, x, time, gram, activity, fold, loadings)


def _multiply_features(features: list[np.ndarray], gram: np.ndarray) -> None:
    """Write kernels of side information to their slots, a few rows of all kernels at a time."""
    n_entries = gram.shape[0]
    for first in range(0, n_entries, ROWS):
        part = slice(first, first + ROWS)
        for slot, rows in enumerate(features, start=N_SUMS):
            gram[part, :, slot] = rows[part] @ rows.T


def empty_side(n_owners: int) -> OwnerSide:
    """A side without ratings, for a model with one side only."""
    return OwnerSide(
        np.zeros(n_owners + 1, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, 0, N_SUMS), dtype=np.float32),
        np.ones(n_owners),
        np.zeros(n_owners, dtype=np.int64),
        np.zeros((1, 0, 0)),
    )


@inner
def add_pair(row, f, x_e, x_f, weight):  # type: ignore[no-untyped-def]
    """Add one owner's ratings of entries e and f to the five sums ``row[f]`` of entry e."""
    row[f, CROSS_SUM] += x_e * x_f
    row[f, OWN_SUM] += x_e
    row[f, OTHER_SUM] += x_f
    row[f, COMMON_SUM] += 1.0
    row[f, ACTIVITY_SUM] += weight


@compiled
def _sum_rows(first, stop, by_entry, owner, x_by_entry, start, entry, x, activity, gram, row):  # type: ignore[no-untyped-def]
    """Rows ``first..stop`` of the five sums (0 so far), accumulated in double precision.

    Where an entry's owners have few ratings, only what these touch is written. ``row`` is room for
    one row, zeros.
    """
    n_entries = gram.shape[0]
    for e in range(first, stop):
        n_pairs = 0
        for at in range(by_entry[e], by_entry[e + 1]):
            v, x_e = owner[at], x_by_entry[at]
            n_pairs += start[v + 1] - start[v]
            for k in range(start[v], start[v + 1]):
                add_pair(row, entry[k], x_e, x[k], activity[v])
        if n_pairs >= n_entries:
            for f in range(n_entries):
                for slot in range(N_SUMS):
                    gram[e, f, slot] = row[f, slot]
                    row[f, slot] = 0.0
            continue
        for at in range(by_entry[e], by_entry[e + 1]):
            for k in range(start[owner[at]], start[owner[at] + 1]):
                f = entry[k]
                if row[f, COMMON_SUM] > 0.0:
                    for slot in range(N_SUMS):
                        gram[e, f, slot] = row[f, slot]
                        row[f, slot] = 0.0
