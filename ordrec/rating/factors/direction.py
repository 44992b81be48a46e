"""One direction of `OrdinalFactors`: the sequential model of the ranks upwards, or downwards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ordrec.rating.factors.drift import UserDrift
from ordrec.rating.factors.row_priors import ColdPrior
from ordrec.rating.factors.row_updates import NO_DRIFT, compact_probabilities
from ordrec.rating.factors.rows import CompactRows
from ordrec.storage.schema import Array, Covariance, Optional, Part, Together

__all__ = ["Direction"]

TINY = 1e-12  # least variance of a score


@dataclass(frozen=True)
class Direction:
    """One fitted direction: its rows, their priors and the drift.

    Attributes
    ----------
    users, items : CompactRows
        One row per id, and a last one for the unknown.
    user_prior, item_prior : (ndarray, ndarray)
        B and S of `row_priors`.
    cold_users, cold_items : ColdPrior
    drift : UserDrift or None
        The users' drift, if this was fitted to dated ratings.
    """

    stored: ClassVar = {
        "users": Part(CompactRows, rows="users+1"),
        "items": Part(CompactRows, rows="items+1"),
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

    users: CompactRows
    items: CompactRows
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
        return compact_probabilities((users, items), drift, self.users, self.items)

    def influence(self, user: int, item: int, others: np.ndarray) -> np.ndarray:
        """Return ``q_i' Cov[p_u] q_a`` for other items a, by codes; see `lists.explanation`."""
        factors = self.items.factors.astype(np.float64)
        return factors[others] @ self.users.covariance(user) @ factors[item]

    def correlations(self, item: int) -> np.ndarray:
        """Return the correlations, over users, of all items' scores with those of one item.

        They are ``q_i' S q_j``, scaled, with S the covariance of the factors over users, which is
        that of an unknown user. The variances are expected ones, ``tr(S E[q q'])``, so items with
        uncertain factors correlate with nothing.
        """
        items, S = self.items, self.users.covariance(-1)
        factors, axes = items.factors[:-1].astype(np.float64), items.axes.astype(np.float64)
        variances = np.einsum("nf,nf->n", factors @ S, factors)
        variances += items.spreads[:-1].astype(np.float64) @ np.diag(axes.T @ S @ axes)
        sizes = np.sqrt(np.maximum(variances, TINY))
        return factors @ (S @ factors[item]) / (sizes * sizes[item])

    def without_users(self) -> Direction:
        """Return the direction with no user but the unknown one."""
        drift = self.drift
        if drift is not None:
            drift = UserDrift.of(np.zeros(1, np.int64), np.zeros(0))
        return replace(self, users=self.users.take(np.array([-1])), drift=drift)
