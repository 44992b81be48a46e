"""`OrdinalFactors` as version 0.1 saved them: all-threshold loss, rows of independent entries.

Later versions fit another model. This one is kept, in plain numpy, so that files of version 0.1
predict what they predicted, take in new users and can be saved again; it is never fitted anew.
With u a user, i an item, y the zero-based rank of a rating and k a threshold:

(1) ``f_ui = b_i + p_u . q_i`` and ``P(y_ui > k) = sigma(f_ui - theta_uk)``; rows ``z_u = (p_u,
    theta_u)`` and ``e_i = (q_i, b_i)`` have Gaussian posteriors with independent entries.
(2) ``z_u ~ N(B' a_u, S)``, where ``a_u`` tells which items the user rated, see `Pattern`.
(3) ``A_u = S^-1 + sum_ik w_uik E[x_ik x_ik']`` with ``x_ik = (q_i, -unit_k)``: the posterior has
    the mean ``A_u^-1 g_u`` and the variances ``1 / diag(A_u)``, with ``g_u = S^-1 B' a_u + sum_ik
    (s_uik / 2 - w_uik b_i) x_ik``, ``s_uik`` = 1 if y_ui > k and -1 if not, and
(4) ``w = tanh(xi / 2) / (2 xi)``, ``xi^2 = E[(f_ui - theta_uk)^2]``.
(5) ``P(y > k) = sigma(E[m] / sqrt(1 + pi/8 Var[m]))`` with ``m = f_ui - theta_uk``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.storage import take, take_covariance

__all__ = ["AllThresholdRows", "Pattern"]

FOLD_IN_STEPS = 8
DAMPING = 10.0
BLOCK = 4096  # pairs whose rows are in memory at a time


@dataclass(frozen=True)
class AllThresholdRows:
    """Posteriors of users and items, and the prior of users; last rows stand for unknown ids.

    Attributes
    ----------
    z, vz : ndarray of shape (n_users + 1, rank + n_ranks - 1)
        Means and variances of users' factors and thresholds.
    e, ve : ndarray of shape (n_items + 1, rank + 1)
        Means and variances of items' factors and effects.
    B, S : ndarray
        Coefficients and covariance of the prior, (2).
    pattern : Pattern
    objective : ndarray
        What the fit reported for each sweep.
    """

    z: np.ndarray
    vz: np.ndarray
    e: np.ndarray
    ve: np.ndarray
    B: np.ndarray
    S: np.ndarray
    pattern: Pattern
    objective: np.ndarray

    @property
    def rank(self) -> int:
        """Number of factors."""
        return self.e.shape[1] - 1

    # ---- predictions -----------------------------------------------------------------------

    def probabilities(self, user_codes: np.ndarray, item_codes: np.ndarray) -> np.ndarray:
        """Return P(rank) of pairs, (5); the code -1 is an unknown user or item."""
        out = np.empty((user_codes.size, self.z.shape[1] - self.rank + 1))
        for first in range(0, user_codes.size, BLOCK):
            block = slice(first, first + BLOCK)
            users, items = user_codes[block], item_codes[block]
            mean, variance = _margins(self.z[users], self.vz[users], self.e[items], self.ve[items])
            score = mean / np.sqrt(1.0 + np.pi / 8.0 * variance)
            above = 0.5 + 0.5 * np.tanh(0.5 * score)  # the logistic function, without overflow
            # Posterior means of thresholds may cross where a user left ranks out.
            above = np.minimum.accumulate(above, axis=1)
            out[block] = -np.diff(above, axis=1, prepend=1.0, append=0.0)
        return out

    # ---- new users -------------------------------------------------------------------------

    def fold_in(
        self, users: np.ndarray, items: np.ndarray, levels: np.ndarray, n_users: int
    ) -> AllThresholdRows:
        """Return the rows of ``n_users`` users, these ones fitted to these ratings, (3).

        Parameters
        ----------
        users : ndarray of int
            Codes of the users; those from the present number of users on are new.
        items : ndarray of int
            Codes of the items; ratings of unknown ones, -1, are left out.
        levels : ndarray of int
            Zero-based ranks on the scale of the model.
        n_users : int
            Number of users in the result; new ones without ratings are like unknown ones.
        """
        known = items >= 0
        distinct, users = np.unique(users[known], return_inverse=True)
        items, levels = items[known], levels[known]
        added = np.full(n_users + 1 - len(self.z), -1)
        z, vz = (np.vstack([of[:-1], of[added], of[-1:]]) for of in (self.z, self.vz))
        priors = self.pattern.features(users, items, distinct.size) @ self.B
        P = np.linalg.inv(self.S)
        order = np.argsort(users, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=distinct.size))])
        for u, place in enumerate(distinct):
            rows = order[start[u] : start[u + 1]]
            z[place], vz[place] = self._user(items[rows], levels[rows], priors[u], P)
        return replace(self, z=z, vz=vz)

    def _user(
        self, items: np.ndarray, levels: np.ndarray, prior: np.ndarray, P: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variances of the user of these ratings, started at the prior."""
        rank, e, ve = self.rank, self.e[items], self.ve[items]
        q, effects = e[:, :rank], e[:, rank:]
        half = np.where(levels[:, None] > np.arange(prior.size - rank), 0.5, -0.5)
        z, vz = prior, np.diag(self.S)
        for _ in range(FOLD_IN_STEPS):
            mean, variance = _margins(z, vz, e, ve)
            w = _weights(mean**2 + variance)
            of_items = w.sum(axis=1)
            A, pulls = P.copy(), half - w * effects
            A[:rank, :rank] += (of_items[:, None] * q).T @ q + np.diag(of_items @ ve[:, :rank])
            A[rank:, :rank] -= w.T @ q
            A[:rank, rank:] -= q.T @ w
            A[rank:, rank:] += np.diag(w.sum(axis=0))
            g = P @ prior
            g[:rank] += pulls.sum(axis=1) @ q
            g[rank:] -= pulls.sum(axis=0)
            z, vz = np.linalg.solve(A, g), 1.0 / np.diag(A)  # (3)
        return z, vz

    def without_users(self) -> AllThresholdRows:
        """Return the same without its users."""
        return replace(self, z=self.z[-1:], vz=self.vz[-1:])

    # ---- files -----------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a model file of version 0.1, without ids."""
        return self.pattern.to_arrays() | {
            "users.mean": self.z,
            "users.variance": self.vz,
            "items.mean": self.e,
            "items.variance": self.ve,
            "prior.B": self.B,
            "prior.S": self.S,
            "objective": self.objective,
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, Any],
        *,
        n_users: int,
        n_items: int,
        n_ranks: int,
        rank: int,
        n_iter: int,
    ) -> AllThresholdRows:
        """Restore the rows from the arrays of a model file of version 0.1, checked."""
        of_users, of_items = (n_users + 1, rank + n_ranks - 1), (n_items + 1, rank + 1)
        pattern = Pattern.from_arrays(arrays, n_items)
        return cls(
            z=take(arrays, "users.mean", np.float64, of_users),
            vz=take(arrays, "users.variance", np.float64, of_users, low=0),
            e=take(arrays, "items.mean", np.float64, of_items),
            ve=take(arrays, "items.variance", np.float64, of_items, low=0),
            B=take(arrays, "prior.B", np.float64, (pattern.n_features, of_users[1])),
            S=take_covariance(arrays, "prior.S", of_users[1]),
            pattern=pattern,
            objective=take(arrays, "objective", np.float64, (n_iter,)),
        )


@dataclass(frozen=True)
class Pattern:
    """Features of users, computed from which items they rated.

    Attributes
    ----------
    basis : ndarray of shape (n_items, n_coordinates)
        What a rating of each item adds to a user's coordinates.
    count_mean, count_scale : float
        Mean and standard deviation of ``log(1 + n_u)`` over the users of the fit.
    """

    basis: np.ndarray
    count_mean: float
    count_scale: float

    def features(self, users: np.ndarray, items: np.ndarray, n_users: int) -> np.ndarray:
        """Return a constant, the number of ratings and the coordinates of each user."""
        if self.basis.shape[1] == 0:
            return np.ones((n_users, 1))
        counts = np.bincount(users, minlength=n_users)
        ones = sparse.csr_array(
            (np.ones(users.size), (users, items)), shape=(n_users, len(self.basis))
        )
        coordinates = (ones @ self.basis) / np.sqrt(counts + DAMPING)[:, None]
        size = np.zeros(n_users)
        if self.count_scale > 0:
            size = (np.log1p(counts) - self.count_mean) / self.count_scale
        return np.column_stack([np.ones(n_users), size, coordinates])

    @property
    def n_features(self) -> int:
        """Number of features: constant, rating count and coordinates, or the constant alone."""
        n_coordinates = self.basis.shape[1]
        return n_coordinates + 2 if n_coordinates else 1

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the pattern as arrays of a model file."""
        return {
            "pattern.basis": self.basis,
            "pattern.counts": np.array([self.count_mean, self.count_scale]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], n_items: int) -> Pattern:
        """Restore the pattern from the arrays of a model file."""
        mean, scale = take(arrays, "pattern.counts", np.float64, (2,))
        return cls(take(arrays, "pattern.basis", np.float64, (n_items, None)), mean, scale)


def _margins(
    z: np.ndarray, vz: np.ndarray, e: np.ndarray, ve: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of ``f - theta_k``, (1), a row for each rating, a column for each k."""
    rank = e.shape[-1] - 1
    p, vp, q, vq = z[..., :rank], vz[..., :rank], e[..., :rank], ve[..., :rank]
    f = e[..., rank:] + np.sum(p * q, axis=-1, keepdims=True)
    spread = np.sum(vp * (q * q + vq) + p * p * vq, axis=-1, keepdims=True)
    return f - z[..., rank:], ve[..., rank:] + spread + vz[..., rank:]


def _weights(square: np.ndarray) -> np.ndarray:
    """``tanh(xi / 2) / (2 xi)``, (4), from the square of xi; 1/4 where xi vanishes."""
    xi = np.sqrt(np.maximum(square, 1e-8))
    return np.tanh(xi / 2.0) / (2.0 * xi)
