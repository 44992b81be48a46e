"""Levels that a user gives more, or less, often than the layer expects.

On fine scales many users never give half stars. Thresholds cannot say so well; a factor on each
level's probability can:

(1) ``p_k (O_uk + kappa) / (E_uk + kappa)``, renormalised,

with ``O_uk`` how often user u gave level k and ``E_uk`` how often it was expected of him.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Tilt", "fit_tilt"]

KAPPAS = (2.0, 5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True)
class Tilt:
    """Factors of (1), one row a user; ``kappa`` is infinite where the tilt does not help."""

    kappa: float
    factors: np.ndarray

    def apply(self, p: np.ndarray, users: np.ndarray) -> np.ndarray:
        """Tilted distributions; -1 and users beyond the table are left as they are."""
        if not np.isfinite(self.kappa):
            return p
        known = (users >= 0) & (users < self.factors.shape[0])
        factors = np.where(known[:, None], self.factors[np.where(known, users, 0)], 1.0)
        tilted = p * factors
        return tilted / tilted.sum(axis=1, keepdims=True)


def fit_tilt(p: np.ndarray, levels: np.ndarray, users: np.ndarray, n_users: int) -> Tilt:
    """Choose kappa by the log-loss of the ratings, each left out of its own user's counts.

    ``p`` are leave-one-out distributions of the ratings.
    """
    n, n_ranks = p.shape
    given = np.zeros((n, n_ranks))
    given[np.arange(n), levels] = 1.0
    observed, expected = np.zeros((n_users, n_ranks)), np.zeros((n_users, n_ranks))
    np.add.at(observed, users, given)
    np.add.at(expected, users, p)
    best, best_loss = np.inf, -np.log(p[np.arange(n), levels] + 1e-300).mean()
    others, expected_of_others = observed[users] - given, expected[users] - p
    for kappa in KAPPAS:
        tilted = p * (others + kappa) / (expected_of_others + kappa)  # (1)
        share = tilted[np.arange(n), levels] / tilted.sum(axis=1)
        loss = -np.log(share + 1e-300).mean()
        if loss < best_loss:
            best, best_loss = kappa, loss
    if not np.isfinite(best):
        return Tilt(np.inf, np.ones((0, n_ranks)))
    return Tilt(best, (observed + best) / (expected + best))
