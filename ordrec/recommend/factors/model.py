"""Ordinal matrix factorisation with personal thresholds.

With u a user, i an item, y the zero-based rank of a rating and k a threshold:

(1) ``f_ui = b_i + p_u . q_i`` and ``P(y_ui > k) = sigma(f_ui - theta_uk)``: the all-threshold
    logistic loss ``sum_k ln(1 + exp(-m_uik))``, ``m_uik = s_k (f_ui - theta_uk)``, with ``s_k`` = 1
    if the rating is above threshold k and -1 if not (`ordrec.ordinal.losses`).
(2) ``(p_u, theta_u) ~ N(B' a_u, S)`` and ``(q_i, b_i) ~ N(C' c_i, V)``: the prior means depend
    on who rated what (``a_u`` and ``c_i``: a constant, the number of ratings, and coordinates
    of the matrix with ones where there is a rating).
(3) ``-ln sigma(m) <= ln(1 + exp(-xi)) + (xi - m) / 2 + w (m^2 - xi^2) / 2``, for every xi, with
(4) ``w = tanh(xi / 2) / (2 xi)``; tightest on average at ``xi^2 = E[m^2]``.

The posterior of every row is taken as a Gaussian with independent entries. By (3) the
expected loss is quadratic in the row, so that its best Gaussian solves a linear system,

(5) ``A_u = S^-1 + sum_ik w_uik E[x_ik x_ik']`` with ``x_ik = (q_i, -unit_k)``, mean ``A_u^-1 g_u``,
    variances ``1 / diag(A_u)``, and
(6) likewise for items with ``x_ik = (p_u, 1)``.

Users, items and the parameters of (2) take turns; none of the steps can raise the bound.
How strongly rows are shrunk, and to what, is learned (S, V, B and C); a few constants are fixed.

(7) A prediction averages over the posterior: ``P(y > k) = sigma(E[m] / sqrt(1 + pi/8 Var[m]))``.

All-threshold loss for factors: Srebro, Rennie, Jaakkola, "Maximum-margin matrix factorization"
(2005) and Rennie, Srebro, "Fast maximum margin matrix factorization" (2005). Thresholds of each
user: Koren, Sill, "OrdRec" (2011). (3): Jaakkola, Jordan, "Bayesian parameter estimation via
variational methods" (2000). (7): MacKay (1992).

Departures: those papers compute point estimates by gradient steps, with penalties chosen by
cross-validation; here the penalties follow from the posteriors, and rows have exact block updates.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.special import logit

from ordrec.errors import ArgumentError
from ordrec.ordinal.decisions import decide
from ordrec.parallel import loop_threads, worker_count
from ordrec.persistence import take, take_covariance
from ordrec.ratings import Ratings
from ordrec.recommend.base import IdMappedModel
from ordrec.recommend.factors.row_priors import RatingPattern, RowPrior
from ordrec.recommend.factors.row_updates import probabilities, update_items, update_users

__all__ = ["OrdinalFactors"]

FOLD_IN_STEPS = 8
START_SD = 0.3  # standard deviation of the random item factors at the start
PIECES = 64  # into which the rows are cut for the threads
PER_ROW = 30  # cost of solving a row's linear system, in ratings


@dataclass(eq=False)
class OrdinalFactors(IdMappedModel):
    """Ordinal matrix factorisation: all-threshold logistic loss, personal thresholds.

    For data of any size: memory and time grow with the number of ratings. Fits in a few
    sweeps over users and items; the result is the same for any number of threads.

    Parameters
    ----------
    rank : int
        Number of factors. More factors cost time but not accuracy: useless ones shrink to 0.
    pattern : int
        Number of coordinates of the pattern of who rated what that the priors of users and
        items depend on; 0 for priors that are the same for all.
    n_iter : int
        Number of sweeps over users and items.
    decision : {"median", "mode", "mean"}
        How `predict` turns a distribution into one rating; the mean is not rounded.
    n_jobs : int, optional
        Threads; -1 means all cores.
    random_state : int
        Seed of the starting factors.

    Attributes
    ----------
    item_factors_ : ndarray of shape (n_items, rank)
    item_effects_ : ndarray of shape (n_items,)
    user_factors_ : ndarray of shape (n_users, rank)
    thresholds_ : ndarray of shape (n_users, n_ranks - 1)
    objective_ : ndarray
        The bound on the loss plus penalties in each sweep, in nats; it never rises.

    Notes
    -----
    The all-threshold loss counts a rating once at every threshold, as if these were separate
    observations, so that the posteriors are somewhat too narrow: on ratings that are pure noise
    the log-loss is worse than that of the histogram by .05 to .25. On MovieLens the learnt
    shrinkage is as good as any other.

    An unknown user has the thresholds and factors of the average user, an unknown item those
    of the average item, both with the full prior variance.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = OrdinalFactors(rank=4, pattern=4).fit(ratings)
    >>> model.predict_proba([0, "stranger"], [3, 3]).shape
    (2, 5)
    """

    rank: int = 32
    pattern: int = 32
    n_iter: int = 20
    decision: Literal["median", "mode", "mean"] = "median"
    n_jobs: int | None = None
    random_state: int = 0

    def fit(self, ratings: Ratings) -> OrdinalFactors:
        """Learn factors, thresholds and priors."""
        self._check_parameters()
        self._remember(ratings)
        by_user = _Rows.of(ratings.users, ratings.items, ratings.levels, ratings.n_users)
        by_item = _Rows.of(ratings.items, ratings.users, ratings.levels, ratings.n_items)
        self._pattern, of_users, of_items = RatingPattern.of(ratings, self.pattern)
        z, e = self._start(ratings)
        vz, ve = np.full_like(z, START_SD**2), np.full_like(e, START_SD**2)
        users = RowPrior(of_users, ratings.user_counts > 0, z.mean(axis=0))
        items = RowPrior(of_items, ratings.item_counts > 0, np.zeros(self.rank + 1))
        loss = np.zeros(ratings.n_items)
        self.objective_ = np.empty(self.n_iter)
        # one BLAS thread, or the last digits would depend on the machine
        with loop_threads(worker_count(self.n_jobs)) as threads:

            def update(rows: _Rows, step: Callable[..., None], *arguments: Any) -> None:
                pieces = pairwise(rows.pieces.tolist())
                done = threads.map(lambda piece: step(*piece, *rows.arrays, *arguments), pieces)
                list(done)  # raises the exceptions of the threads

            for sweep in range(self.n_iter):
                update(by_user, update_users, e, ve, users.means, users.P, z, vz)  # (5)
                if sweep > 0:  # the first factors are too small to learn a prior from
                    users.learn(z, vz)
                penalty = users.penalty(z, vz) + items.penalty(e, ve)
                update(by_item, update_items, z, vz, items.means, items.P, e, ve, loss)  # (6)
                if sweep > 0:
                    items.learn(e, ve)
                self.objective_[sweep] = loss.sum() + penalty
            update(by_user, update_users, e, ve, users.means, users.P, z, vz)
        self._users = users.B, users.S
        self._z, self._vz = users.with_average(z, vz)
        self._e, self._ve = items.with_average(e, ve)
        return self

    def _check_parameters(self) -> None:
        for name, least in (("rank", 1), ("pattern", 0), ("n_iter", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.decision not in ("median", "mode", "mean"):
            raise ArgumentError(
                f'decision must be "median", "mode" or "mean", got {self.decision!r}'
            )

    def _start(self, ratings: Ratings) -> tuple[np.ndarray, np.ndarray]:
        """Start: thresholds from the shares of the ranks, equal for all users; small factors."""
        counts = np.bincount(ratings.levels, minlength=ratings.scale.n_ranks) + 1.0
        z = np.zeros((ratings.n_users, self.rank + counts.size - 1))
        z[:, self.rank :] = logit(np.cumsum(counts)[:-1] / counts.sum())
        e = np.zeros((ratings.n_items, self.rank + 1))
        random = np.random.default_rng(self.random_state)
        e[:, : self.rank] = random.normal(0.0, START_SD, (ratings.n_items, self.rank))
        return z, e

    # ---- predictions -----------------------------------------------------------------------

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return one rating per pair, chosen by ``decision``."""
        p = self.predict_proba(users, items)
        return decide(p, self.decision, self.scale_.values)

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """Return distributions, one row per pair and one column per scale value, ascending."""
        user_codes, item_codes = self._codes(users, items)
        return probabilities(user_codes, item_codes, self._z, self._vz, self._e, self._ve)

    @property
    def user_factors_(self) -> np.ndarray:
        """Posterior means of the users' factors."""
        return self._z[:-1, : self.rank]

    @property
    def thresholds_(self) -> np.ndarray:
        """Posterior means of the users' thresholds."""
        return self._z[:-1, self.rank :]

    @property
    def item_factors_(self) -> np.ndarray:
        """Posterior means of the items' factors."""
        return self._e[:-1, : self.rank]

    @property
    def item_effects_(self) -> np.ndarray:
        """Posterior means of the items' effects."""
        return self._e[:-1, self.rank]

    def item_factors_by_fold(self, ratings: Ratings, n_folds: int = 4) -> np.ndarray:
        """Return item factors for a kernel, fitted without each fold of users, last with all.

        The users are divided into folds by code, modulo ``n_folds``, as in `LowRank`: factors
        fitted to a user's ratings contain what they are used to predict. The factors are scaled so
        that their products are the covariances of items' scores over users.

        Returns
        -------
        ndarray of shape (n_folds + 1, n_items, rank)
        """
        if n_folds < 2:
            raise ArgumentError(f"n_folds must be at least 2, got {n_folds}")
        sets = []
        for fold in range(n_folds + 1):
            others = ratings.select(ratings.users % n_folds != fold)
            model = copy.copy(self).fit(others)
            S = model._users[1][: self.rank, : self.rank]
            sets.append(model.item_factors_ @ np.linalg.cholesky(S))
        return np.stack(sets)

    # ---- new users -----------------------------------------------------------------------------

    def fold_in(self, ratings: Ratings) -> OrdinalFactors:
        """Return a model with these users fitted to these ratings, (5), and all else kept."""
        user_ids, users, items = self._with_users_of(ratings)
        known = items >= 0
        distinct, users = np.unique(users[known], return_inverse=True)
        rows = _Rows.of(users, items[known], ratings.levels[known], distinct.size)
        B, S = self._users
        prior = self._pattern.features(users, items[known], distinct.size) @ B
        P = np.linalg.inv(S)
        z, vz = prior.copy(), np.tile(np.diag(S), (distinct.size, 1))
        for _ in range(FOLD_IN_STEPS):
            update_users(0, distinct.size, *rows.arrays, self._e, self._ve, prior, P, z, vz)
        model = copy.copy(self)
        model.user_ids_ = user_ids
        n_new = len(user_ids) + 1 - len(self._z)
        average = np.full(n_new, -1)
        model._z = np.vstack([self._z[:-1], self._z[average], self._z[-1:]])
        model._vz = np.vstack([self._vz[:-1], self._vz[average], self._vz[-1:]])
        model._z[distinct], model._vz[distinct] = z, vz
        return model

    def without_users(self) -> OrdinalFactors:
        """Return a model without its training users, small and quick, to fold others in."""
        self._check_fitted()
        model = copy.copy(self)
        model.user_ids_ = self.user_ids_[:0]
        model._z, model._vz = self._z[-1:], self._vz[-1:]
        return model

    # ---- files ---------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata for `ordrec.persistence`."""
        arrays, metadata = self._identity()
        arrays |= self._pattern.to_arrays()
        names = "users.mean", "users.variance", "items.mean", "items.variance"
        arrays |= dict(zip(names, (self._z, self._vz, self._e, self._ve), strict=True))
        arrays |= {"prior.B": self._users[0], "prior.S": self._users[1]}
        return arrays | {"objective": self.objective_}, metadata

    @classmethod
    def from_state(cls, arrays: Any, metadata: dict[str, Any]) -> Any:
        """Restore a model from the arrays and the metadata of a file."""
        model = cls._from_identity(arrays, metadata)
        model._check_parameters()
        of_users = len(model.user_ids_) + 1, model.rank + model.scale_.n_ranks - 1
        of_items = len(model.item_ids_) + 1, model.rank + 1
        model._z = take(arrays, "users.mean", np.float64, of_users)
        model._vz = take(arrays, "users.variance", np.float64, of_users, low=0)
        model._e = take(arrays, "items.mean", np.float64, of_items)
        model._ve = take(arrays, "items.variance", np.float64, of_items, low=0)
        model._pattern = RatingPattern.from_arrays(arrays, len(model.item_ids_))
        width, n_features = of_users[1], model._pattern.n_features
        model._users = (
            take(arrays, "prior.B", np.float64, (n_features, width)),
            take_covariance(arrays, "prior.S", width),
        )
        model.objective_ = take(arrays, "objective", np.float64, (model.n_iter,))
        return model


@dataclass(frozen=True)
class _Rows:
    """Ratings by user or by item, and the cuts into pieces of about equal work."""

    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]
    pieces: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, others: np.ndarray, levels: np.ndarray, n_rows: int) -> _Rows:
        start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
        order = np.argsort(rows, kind="stable")
        work = start + PER_ROW * np.arange(n_rows + 1)
        cuts = np.searchsorted(work, np.linspace(0, work[-1], PIECES + 1))
        arrays = start, others[order].astype(np.int32), levels[order].astype(np.int16)
        return cls(arrays, np.unique(cuts))
