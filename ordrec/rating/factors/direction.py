"""One direction of `OrdinalFactors`: the sequential model of the ranks upwards, or downwards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ordrec.rating.factors.drift import UserDrift
from ordrec.rating.factors.row_priors import ColdPrior
from ordrec.rating.factors.row_updates import NO_DRIFT, probabilities
from ordrec.rating.factors.rows import RowPosteriors
from ordrec.storage.schema import Array, Covariance, Optional, Part, Together

__all__ = ["Direction"]

TINY = 1e-12  # least variance of a score


@dataclass(frozen=True)
class Direction:
    """One fitted direction: its rows, their priors and the drift.

    Attributes
    ----------
    users, items : RowPosteriors
        One row per id, and a last one for the unknown.
    user_prior, item_prior : (ndarray, ndarray)
        B and S of `row_priors`.
    cold_users, cold_items : ColdPrior
    drift : UserDrift or None
        The users' drift, if this was fitted to dated ratings.
    """

    stored: ClassVar = {
        "users": Part(RowPosteriors, rows="users+1"),
        "items": Part(RowPosteriors, rows="items+1"),
        "user_prior": Together(
            B=Array("2+coordinates+user_side", "factors+thresholds"),
            S=Covariance("factors+thresholds"),
        ),
        "item_prior": Together(
            B=Array("2+coordinates+item_side", "factors+thresholds"),
            S=Covariance("factors+thresholds"),
        ),
        "cold_users": Part(ColdPrior, side="user_side"),
        "cold_items": Part(ColdPrior, side="item_side"),
        "drift": Optional(Part(UserDrift)),
    }

    users: RowPosteriors
    items: RowPosteriors
    user_prior: tuple[np.ndarray, np.ndarray]
    item_prior: tuple[np.ndarray, np.ndarray]
    cold_users: ColdPrior
    cold_items: ColdPrior
    drift: UserDrift | None = None

    def probabilities(
        self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """Return P(rank) of pairs of codes, -1 for unknown ids; pairs of one user are adjacent."""
        drift = NO_DRIFT
        if self.drift is not None and times is not None:
            drift = self.drift.at(users, times)
        return probabilities((users, items), drift, self.users, self.items)

    def influence(self, user: int, item: int, others: np.ndarray) -> np.ndarray:
        """Return ``q_i' Cov[p_u] q_a`` for other items a, by codes; see `lists.explanation`."""
        factors = self.items.mean[:, : self.items.n_factors].astype(np.float64)
        return factors[others] @ self.users.covariance(user) @ factors[item]

    def correlations(self, item: int) -> np.ndarray:
        """Return the correlations, over users, of all items' scores with those of one item.

        They are ``q_i' S q_j``, scaled, with S the covariance of the factors over users, which is
        that of an unknown user. The variances are expected ones, ``tr(S E[q q'])``, so items with
        uncertain factors correlate with nothing.
        """
        n_factors = self.items.n_factors
        S = self.users.covariance(-1)
        lower = np.tril_indices(n_factors)
        weights = np.where(lower[0] == lower[1], 1.0, 2.0) * S[lower]
        sizes = np.sqrt(np.maximum(self.items.moments[:-1] @ weights, TINY))
        factors = self.items.mean[:-1, :n_factors].astype(np.float64)
        return factors @ (S @ factors[item]) / (sizes * sizes[item])

    def without_users(self) -> Direction:
        """Return the direction with no user but the unknown one."""
        drift = self.drift
        if drift is not None:
            drift = UserDrift.of(np.zeros(1, np.int64), np.zeros(0))
        return replace(self, users=self.users.take(np.array([-1])), drift=drift)
