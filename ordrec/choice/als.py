"""Matrix factorisation of who picked what, by alternating least squares.

With ``v_ui = rank / n_ranks`` where user u rated item i, ``p_u`` and ``q_i`` the factors, ``a`` the
unseen weight, ``n_u`` and ``n_i`` the numbers of ratings:

(1) ``sum_rated v_ui (1 - p_u . q_i)^2 + a sum_all (p_u . q_i)^2``
    ``+ c sum_u (n_u + a n_items) |p_u|^2 + c sum_i (n_i + a n_users) |q_i|^2``

The ridge grows with what a row is fitted to (Rendle, Krichene, Zhang, Koren, "Revisiting the
performance of iALS on item recommendation benchmarks", RecSys 2022; with their exponent 1). A
user who is folded in solves the same row as one in training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ordrec.choice.factor_model import FactorModel, solve_rows
from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.runtime.progress import tracked

__all__ = ["ImplicitALS"]

START_SPREAD = 0.1  # norm of a row of the random item factors


@dataclass(eq=False)
class ImplicitALS(FactorModel):
    """Implicit-feedback matrix factorisation, (1): what people pick, weighted by how they rate it.

    Its scores are near 1 for items a user is likely to pick and near 0 for the others. A user
    without ratings is scored as the average user.

    Parameters
    ----------
    factors : int
    regularization : float
        ``c`` of (1).
    unseen_weight : float
        ``a`` of (1): how much it costs to score an item that was not rated.
    iterations : int
        Sweeps over items and users.
    n_jobs : int, optional
        Threads; all cores by default. The result is the same for any number.
    random_state : int
        Of the starting factors.

    Attributes
    ----------
    user_factors_, item_factors_ : float32 arrays of shape (n_users, factors), (n_items, factors)

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 120, n_ratings=1200, seed=0)
    >>> model = ImplicitALS(factors=4).fit(ratings)
    >>> len(model.recommend(0, n=5))
    5
    """

    factors: int = 64
    regularization: float = 0.01
    unseen_weight: float = 0.3
    iterations: int = 10
    n_jobs: int | None = None
    random_state: int = 0

    def _learn(self, history: sparse.csr_array, ratings: Ratings) -> None:
        self.learn_histories(history)

    def learn_histories(self, history: sparse.csr_array) -> None:
        """Learn the factors of users and items from histories alone."""
        for name, least in (("factors", 1), ("iterations", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("regularization", "unseen_weight"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name} must be above 0, got {getattr(self, name)}")
        rng = np.random.default_rng(self.random_state)
        by_item = sparse.csr_array(history.T)
        self.item_counts_, present = np.diff(by_item.indptr), np.diff(history.indptr) > 0
        seen = self.item_counts_ > 0
        Q = rng.standard_normal((history.shape[1], self.factors)) * seen[:, None]
        Q = (Q * (START_SPREAD / np.sqrt(self.factors))).astype(np.float32)
        n_jobs, weight = worker_count(self.n_jobs), by_item.data
        ridge = self.regularization * (self.item_counts_ + self.unseen_weight * int(present.sum()))
        with one_blas_thread():  # the rows are shared by threads instead
            for _ in tracked(range(self.iterations), "iteration"):
                P = self._rows(history, Q, n_jobs)
                Q = solve_rows(by_item, weight, weight, P, self.unseen_weight, ridge, n_jobs)
            self.item_factors_ = Q
            self.user_factors_ = self._rows(history, Q, n_jobs)
        self._average_user = self.user_factors_[present].mean(axis=0)

    def contributions(self, code: int, item: int) -> np.ndarray:
        """Return what each item of a user's history adds to the score of an item, by codes."""
        row, Q = self.history_rows(np.array([code])), self.item_factors_.astype(np.float64)
        n_items = int((self.item_counts_ > 0).sum())
        own = Q[row.indices]
        A = self.unseen_weight * (Q.T @ Q) + (own.T * row.data) @ own
        A += self.regularization * (row.nnz + self.unseen_weight * n_items) * np.eye(Q.shape[1])
        return row.data * (own @ np.linalg.solve(A, Q[item]))

    def _rows(self, history: sparse.csr_array, Q: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """User factors for histories, given item factors."""
        n_items = int((self.item_counts_ > 0).sum())
        ridge = self.regularization * (np.diff(history.indptr) + self.unseen_weight * n_items)
        weight = history.data
        return solve_rows(history, weight, weight, Q, self.unseen_weight, ridge, n_jobs)
