"""Priors of the rows of `OrdinalFactors`, learnt from who rated what.

With ``F`` the features of the rows that have ratings, ``M`` and ``v`` the means and variances of
their posteriors, the best parameters of the prior ``N(B' f, S)`` are

(1) ``B = (F'F + RIDGE D)^-1 F'M``, where D leaves the constant feature out, and
(2) ``S = ((M - FB)'(M - FB) + sum diag(v) + RIDGE B'DB + PRIOR_ROWS PRIOR_VARIANCE I) / (n +
    PRIOR_ROWS)``,

as if B had the prior ``N(0, S / RIDGE)`` and there were a few more rows, of a small variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.parallel import one_blas_thread
from ordrec.persistence import take
from ordrec.ratings import Ratings

__all__ = ["RatingPattern", "RowPrior"]

RIDGE = 50.0
PRIOR_ROWS = 10.0
PRIOR_VARIANCE = 0.1
DAMPING = 10.0  # ratings added to every row and column, so that rare ones do not dominate
POWER_STEPS = 5


class RowPrior:
    """The prior of all users or of all items, see (1) and (2).

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        The first feature is constant.
    seen : ndarray of bool
        Rows that have ratings.
    mean : ndarray
        Starting mean of all rows; the variances start at 1.
    """

    def __init__(self, features: np.ndarray, seen: np.ndarray, mean: np.ndarray):
        self._features, self._seen = features, seen
        F = features[seen]
        self._ridge = np.full(F.shape[1], RIDGE)
        self._ridge[0] = 0.0
        self._system = F.T @ F + np.diag(self._ridge)
        self.B = np.zeros((F.shape[1], mean.size))
        self.B[0] = mean
        self._set(np.eye(mean.size))

    def _set(self, S: np.ndarray) -> None:
        self.S = S
        P = np.linalg.inv(S)
        self.P = (P + P.T) / 2
        self.means = self._features @ self.B

    def learn(self, mean: np.ndarray, variance: np.ndarray) -> None:
        """Set B and S to their best values for the posteriors of the rows."""
        F, M = self._features[self._seen], mean[self._seen]
        self.B = np.linalg.solve(self._system, F.T @ M)  # (1)
        rest = M - F @ self.B
        total = rest.T @ rest + self.B.T @ (self._ridge[:, None] * self.B)
        total[np.diag_indices_from(total)] += (
            variance[self._seen].sum(axis=0) + PRIOR_ROWS * PRIOR_VARIANCE
        )
        self._set(total / (len(M) + PRIOR_ROWS))  # (2)

    def penalty(self, mean: np.ndarray, variance: np.ndarray) -> float:
        """Kullback-Leibler divergence of the posteriors from the prior, plus that of B and S."""
        M, v = mean[self._seen], variance[self._seen]
        rest = M - self.means[self._seen]
        log_det = np.linalg.slogdet(self.S)[1]
        quadratic = np.sum((rest @ self.P) * rest) + np.sum(v @ np.diag(self.P))
        rows = quadratic + len(M) * (log_det - M.shape[1]) - np.log(v).sum()
        own = self.B.T @ (self._ridge[:, None] * self.B)
        own[np.diag_indices_from(own)] += PRIOR_ROWS * PRIOR_VARIANCE
        return float(rows + np.sum(own * self.P) + PRIOR_ROWS * log_det) / 2

    def with_average(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return posteriors with a last row for unknown ids; rows without ratings equal it."""
        mean, variance = np.vstack([mean, self.B[:1]]), np.vstack([variance, np.diag(self.S)])
        unseen = np.append(~self._seen, True)
        mean[unseen], variance[unseen] = self.B[0], np.diag(self.S)
        return mean, variance


@dataclass(frozen=True)
class RatingPattern:
    """Coordinates of users, computed from which items they rated.

    The singular vectors of the matrix ``x_ui / sqrt((n_u + DAMPING) (n_i + DAMPING))``, ``x_ui``
    being 1 where there is a rating: ``basis`` holds, for each item, what a rating of it adds
    to a user's coordinates.

    Attributes
    ----------
    basis : ndarray of shape (n_items, n_coordinates)
    count_mean, count_scale : float
        Mean and standard deviation of ``log(1 + n_u)`` over the users with ratings.
    """

    basis: np.ndarray
    count_mean: float
    count_scale: float

    @classmethod
    def of(cls, ratings: Ratings, size: int) -> tuple[RatingPattern, np.ndarray, np.ndarray]:
        """Return the pattern, the features of all users and the features of all items."""
        from sklearn.utils.extmath import randomized_svd

        size = min(size, min(ratings.n_users, ratings.n_items) - 1)
        log_users, log_items = np.log1p(ratings.user_counts), np.log1p(ratings.item_counts)
        seen = ratings.user_counts > 0
        count_mean, count_scale = float(log_users[seen].mean()), float(log_users[seen].std())
        if size < 1:
            empty = cls(np.zeros((ratings.n_items, 0)), count_mean, count_scale)
            return empty, np.ones((ratings.n_users, 1)), np.ones((ratings.n_items, 1))
        of_user = 1.0 / np.sqrt(ratings.user_counts + DAMPING)
        of_item = 1.0 / np.sqrt(ratings.item_counts + DAMPING)
        entries = of_user[ratings.users] * of_item[ratings.items]
        table = sparse.csr_array(
            (entries, (ratings.users, ratings.items)), shape=(ratings.n_users, ratings.n_items)
        )
        with one_blas_thread():  # the same digits on every machine
            _, values, right = randomized_svd(table, size, n_iter=POWER_STEPS, random_state=0)
        kept = values > 1e-9 * values[0]
        right, values = right[kept].T, values[kept]
        basis = of_item[:, None] * right / values * np.sqrt(seen.sum())
        pattern = cls(np.ascontiguousarray(basis), count_mean, count_scale)
        of_users = pattern.features(ratings.users, ratings.items, ratings.n_users)
        rated = ratings.item_counts > 0
        of_items = np.column_stack(
            [
                np.ones(ratings.n_items),
                _standardised(log_items, log_items[rated].mean(), log_items[rated].std()),
                right * np.sqrt(rated.sum()),
            ]
        )
        return pattern, of_users, of_items

    def features(self, users: np.ndarray, items: np.ndarray, n_users: int) -> np.ndarray:
        """Return the features of users who rated these items."""
        if self.basis.shape[1] == 0:
            return np.ones((n_users, 1))
        counts = np.bincount(users, minlength=n_users)
        ones = sparse.csr_array(
            (np.ones(users.size), (users, items)), shape=(n_users, len(self.basis))
        )
        coordinates = (ones @ self.basis) / np.sqrt(counts + DAMPING)[:, None]
        size = _standardised(np.log1p(counts), self.count_mean, self.count_scale)
        return np.column_stack([np.ones(n_users), size, coordinates])

    @property
    def n_features(self) -> int:
        """Number of features: coordinates, rating count and constant, or the constant alone."""
        n_coordinates = self.basis.shape[1]
        return n_coordinates + 2 if n_coordinates else 1

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the pattern as arrays of a model file."""
        return {
            "pattern.basis": self.basis,
            "pattern.counts": np.array([self.count_mean, self.count_scale]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], n_items: int) -> RatingPattern:
        """Restore the pattern from the arrays of a model file."""
        mean, scale = take(arrays, "pattern.counts", np.float64, (2,))
        return cls(take(arrays, "pattern.basis", np.float64, (n_items, None)), mean, scale)


def _standardised(values: np.ndarray, mean: float, scale: float) -> np.ndarray:
    return (values - mean) / scale if scale > 0 else np.zeros(values.size)
