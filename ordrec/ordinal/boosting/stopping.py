"""Early stopping by the error on held-out samples."""

from __future__ import annotations

import numpy as np

from ordrec.errors import DataError
from ordrec.ordinal.boosting.ensemble import Member
from ordrec.ordinal.losses import Reach
from ordrec.ordinal.thresholds.absent import PresentRanks
from ordrec.ordinal.thresholds.probabilities import ranks_between

__all__ = ["EarlyStopping", "hold_out"]


class EarlyStopping:
    """Tracks the error on held-out samples and decides when to stop."""

    def __init__(
        self,
        X: np.ndarray,
        ranks: np.ndarray,
        weight: np.ndarray,
        part: PresentRanks,
        reach: Reach,
        patience: int,
    ):
        self.X, self.ranks, self.weight = X, ranks, weight
        self.part, self.reach, self.patience = part, reach, patience
        self.H = np.zeros(X.shape[0])
        self.round = self.best_round = 0
        self.best_error = np.inf

    def __call__(self, member: Member, alpha: float, theta: np.ndarray) -> bool:
        """Record a round; return False after ``patience`` rounds without a lower error."""
        self.round += 1
        self.H += alpha * member(self.X)
        off = np.abs(self.part.scale[ranks_between(self.H, theta)] - self.ranks)
        error = self.weight @ (np.minimum(off, 1) if self.reach == "adjacent" else off)
        if error < self.best_error:
            self.best_round, self.best_error = self.round, error
        return self.round - self.best_round < self.patience


def hold_out(
    rows: np.ndarray, ranks: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and held-out rows, drawn rank by rank; every rank keeps a training row."""
    shuffled = rng.permutation(rows)
    held = np.zeros(ranks.size, dtype=bool)
    for rank in np.unique(ranks[rows]):
        own = shuffled[ranks[shuffled] == rank]
        held[own[: min(int(np.ceil(fraction * own.size)), own.size - 1)]] = True
    if not held.any():
        raise DataError("early stopping needs at least two samples of some class to hold one out")
    return rows[~held[rows]], rows[held[rows]]
