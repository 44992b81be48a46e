"""One direction of `OrdinalFactors`: the sequential model of the ranks upwards, or downwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.rating.factors.drift import UserDrift
from ordrec.rating.factors.row_priors import ColdPrior
from ordrec.rating.factors.row_updates import NO_DRIFT, probabilities
from ordrec.rating.factors.rows import RowPosteriors
from ordrec.storage import take, take_covariance

__all__ = ["Direction"]

TINY = 1e-12  # least variance of a score


@dataclass(frozen=True)
class Direction:
    """A fitted direction.

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
        """P(rank) of pairs of codes, -1 for unknown ones; pairs of one user stand together."""
        drift = NO_DRIFT
        if self.drift is not None and times is not None:
            drift = self.drift.at(users, times)
        return probabilities((users, items), drift, self.users, self.items)

    def influence(self, user: int, item: int, others: np.ndarray) -> np.ndarray:
        """``q_i' Cov[p_u] q_a`` for other items a, by codes; see `answers.explanation`."""
        factors = self.items.mean[:, : self.items.rank].astype(np.float64)
        return factors[others] @ self.users.covariance(user) @ factors[item]

    def correlations(self, item: int) -> np.ndarray:
        """Return the correlations, over users, of all items' scores with those of one item.

        They are ``q_i' S q_j``, scaled.

        S is the covariance of the factors over users, that of somebody unknown. The variances are
        expected ones, ``tr(S E[q q'])``: uncertain factors are similar to nothing.
        """
        rank = self.items.rank
        S = self.users.covariance(-1)
        lower = np.tril_indices(rank)
        weights = np.where(lower[0] == lower[1], 1.0, 2.0) * S[lower]
        sizes = np.sqrt(np.maximum(self.items.moments[:-1] @ weights, TINY))
        factors = self.items.mean[:-1, :rank].astype(np.float64)
        return factors @ (S @ factors[item]) / (sizes * sizes[item])

    def without_users(self) -> Direction:
        """The direction with no user but the unknown one."""
        drift = self.drift
        if drift is not None:
            drift = UserDrift.of(np.zeros(1, np.int64), np.zeros(0))
        return replace(self, users=self.users.take(np.array([-1])), drift=drift)

    # ---- files -------------------------------------------------------------------------------

    def to_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the direction as arrays of a model file."""
        arrays = self.users.to_arrays(f"{name}.users") | self.items.to_arrays(f"{name}.items")
        for side, (B, S) in (("users", self.user_prior), ("items", self.item_prior)):
            arrays |= {f"{name}.{side}.B": B, f"{name}.{side}.S": S}
        if self.drift is not None:
            arrays |= self.drift.to_arrays(f"{name}.drift")
        arrays |= self.cold_users.to_arrays(f"{name}.cold_users")
        return arrays | self.cold_items.to_arrays(f"{name}.cold_items")

    @classmethod
    def from_arrays(
        cls,
        name: str,
        arrays: Mapping[str, Any],
        rows: tuple[int, int],
        sides: tuple[int, int],
        n_pattern: int,
        n_steps: int,
        dated: bool,
    ) -> Direction:
        """Restore a direction: numbers of users and items, of side columns, of other features."""
        parts: list[Any] = []
        width = take(arrays, f"{name}.users.mean", np.float32, (None, None)).shape[1]
        rank = width - n_steps
        if rank < 1:
            raise ModelFileError(f"array '{name}.users.mean' has {width} columns, too few")
        for side, n_rows in zip(("users", "items"), rows, strict=True):
            place = f"{name}.{side}"
            parts.append(RowPosteriors.from_arrays(place, arrays, n_rows + 1, rank, n_steps))
        for side, n_side in zip(("users", "items"), sides, strict=True):
            B = take(arrays, f"{name}.{side}.B", np.float64, (n_pattern + n_side, width))
            parts.append((B, take_covariance(arrays, f"{name}.{side}.S", width)))
        for side, n_side in zip(("users", "items"), sides, strict=True):
            place = f"{name}.cold_{side}"
            parts.append(ColdPrior.from_arrays(place, arrays, n_side, rank, n_steps))
        drift = UserDrift.from_arrays(f"{name}.drift", arrays, rows[0]) if dated else None
        users, items, user_prior, item_prior, cold_users, cold_items = parts
        return cls(users, items, user_prior, item_prior, cold_users, cold_items, drift)
