"""Users and items that join a fitted `OrdinalFactors`: their rows, all others being kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ordrec.rating.factors.direction import NO_DRIFT, Direction
from ordrec.rating.factors.row_priors import RatingPattern
from ordrec.rating.factors.rows import GroupedRatings

__all__ = ["Newcomers"]

ROUNDS = 2  # in which users and new items take turns


@dataclass(frozen=True)
class Newcomers:
    """Ratings to fold in, by codes that go on where those of the model end.

    Attributes
    ----------
    users, items, levels : ndarray
        The ratings.
    times, weights : ndarray or None
    new_users, new_items : ndarray
        Codes of the ids that the model does not know.
    user_side, item_side : ndarray
        Side data of these.
    user_features, item_features : ndarray
        Features of the priors, one row per user with ratings and per new item with ratings, in
        ascending order of their codes.
    n_steps : int
    """

    users: np.ndarray
    items: np.ndarray
    levels: np.ndarray
    times: np.ndarray | None
    weights: np.ndarray | None
    new_users: np.ndarray
    new_items: np.ndarray
    user_side: np.ndarray
    item_side: np.ndarray
    user_features: np.ndarray
    item_features: np.ndarray
    n_steps: int

    @classmethod
    def of(
        cls,
        users: np.ndarray,
        items: np.ndarray,
        levels: np.ndarray,
        times: np.ndarray | None,
        weights: np.ndarray | None,
        pattern: RatingPattern,
        user_side: np.ndarray,
        item_side: np.ndarray,
        known: tuple[int, int],
        n_steps: int,
    ) -> Newcomers:
        """Ratings with their features; ``known`` numbers of users and items come first."""
        n_users, n_items = known
        raters, own = np.unique(users, return_inverse=True)
        fresh = items >= n_items
        rated, which = np.unique(items[fresh], return_inverse=True)
        of_users = pattern.user_features(own, items, raters.size)
        of_items = pattern.item_features(which, users[fresh], rated.size)
        return cls(
            users, items, levels, times, weights,
            np.arange(n_users, len(user_side)), np.arange(n_items, len(item_side)),
            user_side[n_users:], item_side[n_items:],
            np.hstack([of_users, user_side[raters]]), np.hstack([of_items, item_side[rated]]),
            n_steps,
        )  # fmt: skip

    def reversed(self) -> Newcomers:
        """The same ratings on the reversed scale."""
        return replace(self, levels=self.n_steps - self.levels)

    def join(self, direction: Direction) -> Direction:
        """The direction with these rows: from their side data, then from their ratings."""
        direction = replace(
            direction,
            users=direction.users.with_rows(
                self.new_users, direction.cold_users.rows(self.user_side)
            ),
            items=direction.items.with_rows(
                self.new_items, direction.cold_items.rows(self.item_side)
            ),
        )
        if direction.drift is not None:
            n_users = len(direction.users.mean) - 1
            direction = replace(direction, drift=direction.drift.extended(n_users))
        if self.users.size == 0:
            return direction
        raters, own = np.unique(self.users, return_inverse=True)
        by_user = GroupedRatings.of(own, self.items, self.levels, raters.size, self.weights)
        times = None if self.times is None else self.times[by_user.order]
        of_new = np.flatnonzero(np.isin(self.items, self.new_items))
        rated, which = np.unique(self.items[of_new], return_inverse=True)
        weights = None if self.weights is None else self.weights[of_new]
        by_item = GroupedRatings.of(
            which, self.users[of_new], self.levels[of_new], rated.size, weights
        )
        for _ in range(ROUNDS if rated.size else 1):
            direction, smoothed = self._with_raters(direction, raters, by_user, times)
            if rated.size:
                drift = NO_DRIFT
                if smoothed is not None:
                    in_order = np.empty_like(smoothed)
                    in_order[by_user.order] = smoothed
                    drift = in_order[of_new][by_item.order]
                rows = direction.folded_items(by_item, self.item_features, drift)
                direction = replace(direction, items=direction.items.with_rows(rated, rows))
        if rated.size:
            direction, _ = self._with_raters(direction, raters, by_user, times)
        return direction

    def _with_raters(
        self,
        direction: Direction,
        raters: np.ndarray,
        by_user: GroupedRatings,
        times: np.ndarray | None,
    ) -> tuple[Direction, np.ndarray | None]:
        """The direction with the users solved for, and their drift at these ratings."""
        rows, drift = direction.folded_users(by_user, self.user_features, times)
        joined = direction.drift
        if joined is not None and drift is not None:
            joined = joined.with_users(raters, drift)
        users = direction.users.with_rows(raters, rows)
        smoothed = None if drift is None else drift.smoothed
        return replace(direction, users=users, drift=joined), smoothed
