"""The ratings that a fitted model knows, by user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.data.groups import Groups
from ordrec.errors import ModelFileError
from ordrec.storage.schema import Array, Starts

__all__ = ["RatingHistory"]


@dataclass(frozen=True)
class RatingHistory:
    """Items, levels and times of each user's ratings, by codes.

    Attributes
    ----------
    start : ndarray of shape (n_users + 1,)
        Where the ratings of each user begin.
    items, levels : ndarray of shape (n_ratings,)
    times : ndarray of shape (n_ratings,) or (0,)
        Seconds since 1970, 0 where unknown; empty where none is known.
    weights : ndarray of shape (n_ratings,) or (0,)
        How much each rating counts; empty where all count as 1.
    """

    stored: ClassVar = {
        "start": Starts("users", "ratings"),
        "items": Array("ratings", dtype=np.int32, codes="items"),
        "levels": Array("ratings", dtype=np.int16, codes="ranks"),
        "times": Array("dated_ratings", dtype=np.int64),
        "weights": Array("weighted_ratings", dtype=np.float32, low=0, high=1),
    }

    start: np.ndarray
    items: np.ndarray
    levels: np.ndarray
    times: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, ratings: Ratings, times: np.ndarray | None) -> RatingHistory:
        """Return the history of these ratings, with these times."""
        columns = ratings.items, ratings.levels, times, ratings.weights
        return cls._of_groups(ratings.by_user(), *columns)

    @classmethod
    def empty(cls, n_users: int) -> RatingHistory:
        """Return a history without ratings."""
        nothing = np.zeros(0, np.int64)
        return cls._of_groups(Groups.of(nothing, n_users), nothing, nothing, None, None)

    @classmethod
    def _of_groups(
        cls,
        groups: Groups,
        items: np.ndarray,
        levels: np.ndarray,
        times: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> RatingHistory:
        order = groups.order
        times = np.zeros(0, np.int64) if times is None else times[order].astype(np.int64)
        weights = np.zeros(0) if weights is None else weights[order]
        return cls(
            groups.start,
            items[order].astype(np.int32),
            levels[order].astype(np.int16),
            times,
            weights.astype(np.float32),
        )

    @property
    def users(self) -> np.ndarray:
        """The user of each rating."""
        return np.repeat(np.arange(self.start.size - 1), np.diff(self.start))

    @property
    def known_times(self) -> np.ndarray | None:
        """The times, or None where none is known."""
        return self.times if self.times.size else None

    @property
    def known_weights(self) -> np.ndarray | None:
        """The weights, or None where all ratings count as 1."""
        return self.weights if self.weights.size else None

    def of_user(self, code: int) -> tuple[np.ndarray, np.ndarray]:
        """Return item codes and levels of a user's ratings; none for the code -1."""
        own = slice(self.start[code], self.start[code + 1]) if code >= 0 else slice(0, 0)
        return self.items[own].astype(np.int64), self.levels[own].astype(np.int64)

    def as_ratings(self, scale: Scale, user_ids: pd.Index, item_ids: pd.Index) -> Ratings:
        """Return the history as ratings without side tables."""
        return Ratings(
            self.users, self.items.astype(np.int64), self.levels,
            scale=scale, user_ids=user_ids, item_ids=item_ids, timestamps=self.known_times,
            weights=self.known_weights,
        )  # fmt: skip

    def replaced(
        self,
        users: np.ndarray,
        items: np.ndarray,
        levels: np.ndarray,
        times: np.ndarray | None,
        weights: np.ndarray | None,
        n_users: int,
    ) -> RatingHistory:
        """Return a history in which the given ratings replace all ratings of their users."""
        unchanged = ~np.isin(self.users, users)
        old_weights = self.known_weights
        if (old_weights is None) != (weights is None):  # weights of 1 beside others
            old_weights = np.ones(self.items.size) if old_weights is None else old_weights
            weights = np.ones(items.size) if weights is None else weights

        def both(old: np.ndarray | None, new: np.ndarray | None) -> Any:
            return None if old is None or new is None else np.concatenate([old[unchanged], new])

        return self._of_groups(
            Groups.of(both(self.users, users), n_users),
            both(self.items, items),
            both(self.levels, levels),
            both(self.times, times),
            both(old_weights, weights),
        )

    def frame_of(
        self, users: pd.Index, user_ids: pd.Index, item_ids: pd.Index, scale: Scale
    ) -> pd.DataFrame:
        """Return ratings of users by id, with timestamps and weights if there are any."""
        codes = user_ids.get_indexer(users)
        rows = np.flatnonzero(np.isin(self.users, codes[codes >= 0]))
        columns: dict[str, Any] = {
            "user": user_ids.take(self.users[rows]),
            "item": item_ids.take(self.items[rows]),
            "rating": scale.values[self.levels[rows]],
        }
        if self.times.size:
            columns["timestamp"] = self.times[rows]
        if self.weights.size:
            columns["weight"] = self.weights[rows]
        return pd.DataFrame(columns)

    def check_stored(self) -> None:
        """Check that all ratings have a time or none has, and the same of weights."""
        for name in ("times", "weights"):
            if getattr(self, name).size not in (0, self.items.size):
                raise ModelFileError(f"not all ratings of the history have {name}")
