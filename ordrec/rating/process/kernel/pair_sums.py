"""Ratings grouped by owner, with the moments of all pairs of entries that have a common owner.

On the item side the owners are users and the entries items; on the user side it is the other
way round. With ``x_oe`` the owner-centred rating and ``o_oe`` 1 if there is one and 0 otherwise,
the five moments of `ordrec.kernels.items.moments` are enough to leave any single owner out again:

====  ============  ======================  ===============
slot  name          sum over owners v       in `components`
====  ============  ======================  ===============
0     COMMON_SUM    ``o_ve o_vf``           ``N_ef``
1     CROSS_SUM     ``x_ve x_vf``           ``P_ef``
2     OWN_SUM       ``x_ve o_vf``           ``Q_ef``
3     OTHER_SUM     ``o_ve x_vf``           ``Q_fe``
4     ACTIVITY_SUM  ``weight_v o_ve o_vf``  ``A_ef``
====  ============  ======================  ===============

Slots from 5 on hold kernels of side information, which do not depend on owners.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.kernels.items.moments import (
    COUNT,
    OTHER,
    OWN,
    PRODUCT,
    GroupedEntries,
    PairMoments,
    common_moments,
    group_entries,
    n_moments,
    single_row,
)

__all__ = [
    "ACTIVITY_SUM",
    "COMMON_SUM",
    "CROSS_SUM",
    "N_SUMS",
    "OTHER_SUM",
    "OWN_SUM",
    "OwnerSide",
    "build_side",
    "empty_side",
    "owner_centred",
]

COMMON_SUM, CROSS_SUM, OWN_SUM, OTHER_SUM, ACTIVITY_SUM = COUNT, PRODUCT, OWN, OTHER, 4
N_SUMS = n_moments(1, weighted=True)


class OwnerSide(NamedTuple):
    """Ratings grouped by owner, and the sums over pairs of entries.

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
    pairs : PairMoments
        The five moments of all pairs of entries with a common owner, and the kernels of side
        information.
    activity : float64 (n_owners,)
        The owner's weight in slot 4, 1 / the number of their ratings.
    fold : int64 (n_owners,)
        Which of the loadings were fitted without the owner's ratings.
    loadings : float64 (n_folds, n_entries, n_factors)
    """

    start: np.ndarray
    entry: np.ndarray
    x: np.ndarray
    time: np.ndarray
    pairs: PairMoments
    activity: np.ndarray
    fold: np.ndarray
    loadings: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of ratings of each owner."""
        return np.diff(self.start)

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return self.loadings.shape[1]

    def new_entry(self, owners: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The five moments of a new entry, which these owners rated.

        Returns those with every entry (n_entries, 5), and those of the new one with itself.
        """
        ratings = GroupedEntries(
            self.start, self.entry, self.x[None],
            np.array([0, owners.size]), owners, x[None], self.activity,
        )  # fmt: skip
        total, weight = x.sum(), self.activity[owners].sum()
        itself = np.array([owners.size, x @ x, total, total, weight])
        return single_row(ratings, self.n_entries), itself


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
    """Sum over pairs of entries; ``features`` are rows of side information, one per kernel."""
    sizes = np.diff(start)
    activity = 1.0 / np.maximum(sizes, 1)
    owner = np.repeat(np.arange(sizes.size), sizes)
    ratings = group_entries(owner, entry, x[None], sizes.size, n_entries, activity)
    rows = [each.astype(np.float32) for each in features]
    pairs = common_moments(ratings, rows, dtype=np.float32, n_jobs=n_jobs)
    return OwnerSide(start, entry, x, time, pairs, activity, fold, loadings)


def owner_centred(y: np.ndarray, mean: float, biases: np.ndarray) -> np.ndarray:
    """Ratings less the bias of their owners, which ``biases`` has for each."""
    return y - mean - biases


def empty_side(n_owners: int) -> OwnerSide:
    """A side without ratings, for a model with one side only."""
    return OwnerSide(
        np.zeros(n_owners + 1, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros(0),
        np.zeros(0),
        PairMoments(np.zeros((0, N_SUMS), dtype=np.float32), 1),
        np.ones(n_owners),
        np.zeros(n_owners, dtype=np.int64),
        np.zeros((1, 0, 0)),
    )
