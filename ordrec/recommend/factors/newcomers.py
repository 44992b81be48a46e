"""Users and items that join a fitted `OrdinalFactors`: their rows, all others being kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ordrec.recommend.factors.direction import NO_DRIFT, Direction
from ordrec.recommend.factors.rows import GroupedRatings

__all__ = ["Newcomers"]

ROUNDS = 2  # in which users and new items take turns


@dataclass(frozen=True)
class Newcomers:
    """Ratings to fold in, by codes that go on where those of the model end.

    Attributes
    ----------
    users, items, levels : ndarray
        The ratings.
    times : ndarray or None
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
    new_users: np.ndarray
    new_items: np.ndarray
    user_side: np.ndarray
    item_side: np.ndarray
    user_features: np.ndarray
    item_features: np.ndarray
    n_steps: int

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
        by_user = GroupedRatings.of(own, self.items, self.levels, raters.size)
        times = None if self.times is None else self.times[by_user.order]
        of_new = np.flatnonzero(np.isin(self.items, self.new_items))
        rated, which = np.unique(self.items[of_new], return_inverse=True)
        by_item = GroupedRatings.of(which, self.users[of_new], self.levels[of_new], rated.size)
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
