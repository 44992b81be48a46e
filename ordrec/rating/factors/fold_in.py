"""Fold-in of `OrdinalFactors`: the rows of users and items that join a fitted model.

The rows of the other users and items stay as they are. New users and items without ratings are
predicted from their side data; those with ratings are solved for in turn, (6) of
`ordrec.rating.factors.model`, starting from their priors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ordrec.rating.factors.direction import Direction
from ordrec.rating.factors.drift import UserDrift
from ordrec.rating.factors.met import MetPairs
from ordrec.rating.factors.pattern import RatingPattern
from ordrec.rating.factors.row_priors import precision_of
from ordrec.rating.factors.row_updates import NO_DRIFT, update_rows, weight_floor
from ordrec.rating.factors.rows import (
    CompactRows,
    GroupedRatings,
    PriorArrays,
    RowPosteriors,
    packed_outer,
)

__all__ = ["Newcomers"]

ROUNDS = 2  # in which users and new items take turns
ROW_STEPS = 8  # updates of a row while the other side stays as it is
DRIFT_STEPS = 3  # updates of a user's drift, each after ROW_STEPS of the user's row


@dataclass(frozen=True)
class Newcomers:
    """Ratings to fold in; the codes of new users and items follow those of the model.

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
        met: MetPairs,
    ) -> Newcomers:
        """Compute the features; ``known`` are the model's numbers of users and items."""
        n_users, n_items = known
        raters, own = np.unique(users, return_inverse=True)
        fresh = items >= n_items
        rated, which = np.unique(items[fresh], return_inverse=True)
        seen, heard = (
            met.where(np.isin(codes, rows))
            for codes, rows in ((met.users, raters), (met.items, rated))
        )
        own_met, which_met = (
            np.searchsorted(raters, seen.users),
            np.searchsorted(rated, heard.items),
        )
        of_users = pattern.user_features(
            np.concatenate([own, own_met]), np.concatenate([items, seen.items]), raters.size
        )
        of_items = pattern.item_features(
            np.concatenate([which, which_met]),
            np.concatenate([users[fresh], heard.users]),
            rated.size,
        )
        return cls(
            users, items, levels, times, weights,
            np.arange(n_users, len(user_side)), np.arange(n_items, len(item_side)),
            user_side[n_users:], item_side[n_items:],
            np.hstack([of_users, user_side[raters]]), np.hstack([of_items, item_side[rated]]),
            n_steps,
        )  # fmt: skip

    def reversed(self) -> Newcomers:
        """Return the same ratings on the reversed scale."""
        return replace(self, levels=self.n_steps - self.levels)

    def join(self, direction: Direction) -> Direction:
        """Return the direction with these users and items."""
        users, items = direction.users, direction.items
        direction = replace(
            direction,
            users=direction.users.with_rows(
                self.new_users, direction.cold_users.compact_rows(self.user_side, users.axes)
            ),
            items=direction.items.with_rows(
                self.new_items, direction.cold_items.compact_rows(self.item_side, items.axes)
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
                of_items = _RowsToFoldIn(direction.item_prior, self.item_features)
                ratings, codes = by_item.compacted()
                rows = of_items.solve(ratings, drift, direction.users.expanded(codes))
                joined = CompactRows.of(rows, items.axes)
                direction = replace(direction, items=direction.items.with_rows(rated, joined))
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
        """Solve for the users; return the direction with them and their drift at these ratings."""
        rows, drift = self._solve_users(direction, by_user, times)
        joined = direction.drift
        if joined is not None and drift is not None:
            joined = joined.with_users(raters, drift)
        users = direction.users
        users = users.with_rows(raters, CompactRows.of(rows, users.axes))
        smoothed = None if drift is None else drift.smoothed
        return replace(direction, users=users, drift=joined), smoothed

    def _solve_users(
        self, direction: Direction, by_user: GroupedRatings, times: np.ndarray | None
    ) -> tuple[RowPosteriors, UserDrift | None]:
        """Return the users' posteriors, given the items, and their drift."""
        by_user, codes = by_user.compacted()
        items = direction.items.expanded(codes)
        users = _RowsToFoldIn(direction.user_prior, self.user_features)
        if direction.drift is None or times is None:
            return users.solve(by_user, NO_DRIFT, items), None
        drift, rows = UserDrift.of(by_user.start, times), None
        for _ in range(DRIFT_STEPS):
            rows = users.solve(by_user, drift.smoothed, items, rows)
            drift = drift.updated(by_user, rows, items)
        return users.solve(by_user, drift.smoothed, items, rows), drift


class _RowsToFoldIn:
    """Rows with given features, solved for while the other side stays as it is.

    Parameters
    ----------
    prior : (ndarray, ndarray)
        B and S of `row_priors`.
    features : ndarray
    """

    def __init__(self, prior: tuple[np.ndarray, np.ndarray], features: np.ndarray):
        B, self._S = prior
        self._mean = features @ B
        P = precision_of(self._S)
        pulls, weights = (self._mean @ P).astype(np.float32), np.ones(len(features), np.float32)
        self._prior = PriorArrays(pulls, weights, P.astype(np.float32))

    def solve(
        self,
        ratings: GroupedRatings,
        drift: np.ndarray,
        others: RowPosteriors,
        rows: RowPosteriors | None = None,
    ) -> RowPosteriors:
        """Return the posteriors of the rows, starting from ``rows`` or else from the prior."""
        if rows is None:
            n_factors = others.n_factors
            own = self._S[:n_factors, :n_factors][np.tril_indices(n_factors)]
            variances = np.tile(np.diag(self._S)[n_factors:], (len(self._mean), 1))
            moments = own + packed_outer(self._mean[:, :n_factors])
            rows = RowPosteriors.of(self._mean, moments, variances)
        rated, covariances = np.flatnonzero(ratings.counts), np.zeros(self._S.shape)
        for step in range(ROW_STEPS):
            floor = weight_floor(step)
            update_rows(rated, ratings, drift, others, self._prior, floor, rows, covariances)
        return rows
