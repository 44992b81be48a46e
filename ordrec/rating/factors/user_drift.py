"""The drift of all users of a fit: what their ratings say of it, and its posterior."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ordrec.rating.factors.drift import at, by_time, smooth
from ordrec.rating.factors.row_updates import drift_sites
from ordrec.rating.factors.rows import GroupedRatings, RowPosteriors
from ordrec.storage.schema import Array, Starts

__all__ = ["UserDrift"]


@dataclass(frozen=True)
class UserDrift:
    """Sites and posteriors of the drift at each rating, ratings being grouped by user.

    Attributes
    ----------
    start : ndarray
        Where the ratings of each user begin.
    times : ndarray of float64
    weights, pulls : ndarray of float32
        Sites of `drift`, (2).
    smoothed : ndarray of float32, shape (n_ratings, 2)
        Posterior mean and variance of the drift at each rating.
    """

    stored: ClassVar = {
        "start": Starts("users", "drifting_ratings"),
        "times": Array("drifting_ratings"),
        "weights": Array("drifting_ratings", dtype=np.float32, low=0, high=1e6),
        "pulls": Array("drifting_ratings", dtype=np.float32),
        "smoothed": Array("drifting_ratings", 2, dtype=np.float32),
    }

    start: np.ndarray
    times: np.ndarray
    weights: np.ndarray
    pulls: np.ndarray
    smoothed: np.ndarray

    @classmethod
    def of(cls, start: np.ndarray, times: np.ndarray) -> UserDrift:
        """No drift yet."""
        nothing = np.zeros(times.size, np.float32)
        smoothed = np.zeros((times.size, 2), np.float32)
        return cls(start, times.astype(np.float64), nothing, nothing, smoothed)

    @cached_property
    def _order(self) -> np.ndarray:
        """The ratings of each user in the order of their times."""
        return by_time(self.users, self.times, self.start.size - 1)[1]

    @property
    def users(self) -> np.ndarray:
        """The user of each rating."""
        return np.repeat(np.arange(self.start.size - 1), np.diff(self.start))

    def updated(
        self,
        ratings: GroupedRatings,
        users: RowPosteriors,
        items: RowPosteriors,
        threads: Executor | None = None,
    ) -> UserDrift:
        """The drift given the rows of users and items, (8) of `model`."""
        weights, pulls = np.empty((2, self.times.size), np.float32)
        means, variances = np.empty((2, self.times.size), np.float32)
        start, order = self.start, self._order

        def update(piece: tuple[int, int]) -> None:
            drift_sites(
                *piece, *ratings.arrays, self.smoothed, *users.arrays, *items.arrays,
                weights, pulls,
            )  # fmt: skip
            smooth(*piece, start, order, self.times, weights, pulls, means, variances)

        list((threads.map if threads else map)(update, ratings.pieces()))
        smoothed = np.column_stack([means, variances])
        return replace(self, weights=weights, pulls=pulls, smoothed=smoothed)

    def at(self, users: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Posterior mean and variance of the drift of any users at any times."""
        sites = self.times, self.weights, self.pulls
        return np.column_stack(at(users, times, self.start, self._order, *sites))

    def extended(self, n_users: int) -> UserDrift:
        """The drift with further users, up to this number, who have no ratings."""
        n_new = n_users - (self.start.size - 1)
        return replace(self, start=np.pad(self.start, (0, n_new), mode="edge"))

    def with_users(self, codes: np.ndarray, other: UserDrift) -> UserDrift:
        """A copy in which some users are those of another drift."""
        kept = ~np.isin(self.users, codes)
        rows = [(self, np.flatnonzero(kept)), (other, np.arange(other.times.size))]
        users = np.concatenate([self.users[kept], codes[other.users]])
        order = np.argsort(users, kind="stable")

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(part, name)[own] for part, own in rows])[order]

        counts = np.bincount(users, minlength=self.start.size - 1)
        start = np.concatenate([[0], np.cumsum(counts)])
        names = "times", "weights", "pulls", "smoothed"
        return UserDrift(start, *(joined(name) for name in names))
