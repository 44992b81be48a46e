"""Matrix factorisation of who picked what, by alternating least squares.

With ``v_ui = rank / n_ranks`` where user u rated item i, ``p_u`` and ``q_i`` the factors, ``a`` the
unseen weight, ``n_u`` and ``n_i`` the numbers of ratings:

(1) ``sum_rated v_ui (1 - p_u . q_i)^2 + a sum_all (p_u . q_i)^2``
    ``+ c sum_u (n_u + a n_items) |p_u|^2 + c sum_i (n_i + a n_users) |q_i|^2``

For one row (a user, or an item), with the factors ``q_j`` of the other side and the weights
``v_j`` of its entries, (1) is least where

(2) ``(a sum_all q_j q_j' + sum_rated v_j q_j q_j' + ridge I) x = sum_rated v_j q_j``

Of a row with few entries, ``A = U diag(d) U'`` with the part of (2) that all rows have in common,
and ``R`` the rows ``U'q_j``, the system has one equation per entry:

(3) ``x = U D^-1 R' V^1/2 (I + V^1/2 R D^-1 R' V^1/2)^-1 V^1/2 1``, ``D = diag(d + ridge)``

Each row is solved by itself, so that the result does not depend on the number of threads. The ridge
grows with what a row is fitted to (Rendle, Krichene, Zhang, Koren, "Revisiting the performance of
iALS on item recommendation benchmarks", RecSys 2022; with their exponent 1). A user who is folded
in solves the same row as one in training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.base import ChoiceModel
from ordrec.errors import ArgumentError
from ordrec.linalg.lapack import ADDRESSES, add_products, factorise, solve_factorised
from ordrec.models.workplace import Sweeps, over_rows
from ordrec.runtime.compiling import compiled, compiled_with
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.runtime.progress import progress, report
from ordrec.storage.arrays import as_in_half, round_to_bytes
from ordrec.storage.schema import Array

__all__ = ["ImplicitALS"]

START_SPREAD = 0.1  # norm of a row of the random item factors
THIN = 4  # a row with fewer entries than a fourth of the factors is solved by (3)
LEAST_THIN = 2000  # such rows from which on that is worth its preparation


@dataclass(eq=False)
class ImplicitALS(ChoiceModel):
    """Implicit-feedback matrix factorisation, (1): what people pick, weighted by how they rate it.

    Its scores are near 1 for items a user is likely to pick and near 0 for the others. A user
    without ratings is scored as the average user.

    It is not the model of the same name in the package implicit, which has the same ridge for all
    rows and, for what was rated, the confidence ``alpha * value`` in place of ``a + v``: here the
    ridge grows with the number of a row's ratings, which ranks better. For implicit's own, see
    `ordrec.peers.implicit`, or the name ``implicit-als``.

    Parameters
    ----------
    n_factors : int
    regularization : float
        ``c`` of (1).
    unseen_weight : float
        ``a`` of (1): how much it costs to score an item that was not rated.
    n_iter : int
        Sweeps over items and users.
    n_jobs : int, optional
        Threads; all cores by default. The result is the same for any number.
    random_state : int
        Of the starting factors.

    Attributes
    ----------
    user_factors_ : ndarray of float32, shape (n_users, n_factors)
    item_factors_ : ndarray of float32, shape (n_items, n_factors)

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 120, n_ratings=1200, seed=0)
    >>> model = ImplicitALS(n_factors=4).fit(ratings)
    >>> len(model.recommend(0, n=5))
    5
    """

    stored: ClassVar = ChoiceModel.stored | {
        "user_factors_": Array("users", "factors", dtype=np.float32),
        "item_factors_": Array("items", "factors", dtype=np.float32),
        "_average_user": Array("factors", dtype=np.float32),
    }

    n_factors: int = 64
    regularization: float = 0.01
    unseen_weight: float = 0.3
    n_iter: int = 10
    n_jobs: int | None = None
    random_state: int = 0
    search_space: ClassVar[dict[str, Any]] = {
        "n_factors": [16, 32, 64, 128],
        "regularization": (0.001, 0.1, "log"),
        "unseen_weight": (0.05, 1, "log"),
    }

    # ---- learning -------------------------------------------------------------------------

    def _learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> None:
        self.learn_histories(history)

    def learn_histories(self, history: sparse.csr_array) -> None:
        """Learn the factors of users and items from histories alone."""
        for name, least in (("n_factors", 1), ("n_iter", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("regularization", "unseen_weight"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name} must be above 0, got {getattr(self, name)}")
        rng = np.random.default_rng(self.random_state)
        by_item = sparse.csr_array(history.T)
        self.item_counts_, present = np.diff(by_item.indptr), np.diff(history.indptr) > 0
        seen = self.item_counts_ > 0
        Q = rng.standard_normal((history.shape[1], self.n_factors)) * seen[:, None]
        Q = (Q * (START_SPREAD / np.sqrt(self.n_factors))).astype(np.float32)
        n_jobs = worker_count(self.n_jobs)
        ridge = self.regularization * (self.item_counts_ + self.unseen_weight * int(present.sum()))
        settings = self.regularization, self.unseen_weight
        sweeps = Sweeps("ALS", (history, Q, settings), self.n_iter)
        with one_blas_thread(), progress(""):  # the rows are shared by threads instead
            for state in sweeps.from_here({"Q": Q}):
                report(sweeps.number, self.n_iter, f"iteration {sweeps.number + 1}")
                P = self._rows(history, state["Q"], n_jobs)
                Q = _solve_rows(by_item, P, self.unseen_weight, ridge, n_jobs)
                sweeps.done({"Q": Q})
        self._end_with(history, sweeps.state["Q"], n_jobs)

    def _end_with(self, history: sparse.csr_array, Q: np.ndarray, n_jobs: int) -> None:
        """Take these factors of items, and solve for those of users."""
        self.item_factors_ = Q
        with one_blas_thread():
            self.user_factors_ = self._rows(history, Q, n_jobs)
        self._average_user = self.user_factors_[np.diff(history.indptr) > 0].mean(axis=0)

    def round_factors(self, history: sparse.csr_array) -> None:
        """Round the factors to what takes little place in a file.

        Those of items take a byte each; users are solved for anew, and take two.
        """
        Q = self.item_factors_.copy()
        round_to_bytes(Q)
        self._end_with(history, Q, worker_count(self.n_jobs))
        self.round_users(np.arange(len(self.user_factors_)))

    def round_users(self, users: np.ndarray) -> None:
        """Round the factors of users by code to half precision."""
        self.user_factors_[users] = as_in_half(self.user_factors_[users])

    def _rows(self, history: sparse.csr_array, Q: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """User factors for histories, given item factors."""
        n_items = int((self.item_counts_ > 0).sum())
        ridge = self.regularization * (np.diff(history.indptr) + self.unseen_weight * n_items)
        return _solve_rows(history, Q, self.unseen_weight, ridge, n_jobs)

    # ---- scores ---------------------------------------------------------------------------

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        return (self.factors_of(history) @ self.item_factors_.T).astype(np.float64)

    def factors_of(self, history: sparse.csr_array) -> np.ndarray:
        """Return user factors for histories, those of the average user for empty ones."""
        factors = self._rows(history, self.item_factors_)
        factors[np.diff(history.indptr) == 0] = self._average_user
        return factors

    def score_weighted(self, entries: sparse.csr_array, sums: np.ndarray) -> np.ndarray:
        """Return the scores of all items for histories whose entries count unequally.

        Parameters
        ----------
        entries : csr_array of shape (n_users, n_items)
            ``v`` of (2), already weighted.
        sums : array of shape (n_users,)
            Sums of the weights, which take the place of the numbers of ratings in the ridge.
        """
        n_items = int((self.item_counts_ > 0).sum())
        ridge = self.regularization * (sums + self.unseen_weight * n_items)
        factors = _solve_rows(entries, self.item_factors_, self.unseen_weight, ridge)
        factors[np.diff(entries.indptr) == 0] = self._average_user
        return (factors @ self.item_factors_.T).astype(np.float64)

    def score_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of all items for users by code; -1 is a user without ratings."""
        return (self.factors_of_users(codes) @ self.item_factors_.T).astype(np.float64)

    def factors_of_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the factors of users by code, those of the average user without ratings."""
        factors = self.user_factors_[codes]
        factors[np.diff(self.history_rows(codes).indptr) == 0] = self._average_user
        return factors

    def without_users(self) -> Self:
        """Return a copy that knows no users."""
        model = super().without_users()
        model.user_factors_ = self.user_factors_[:0]
        return model

    def _on_fold_in(self, users: np.ndarray) -> None:
        width = self.user_factors_.shape[1]
        added = len(self.user_ids_) - self.user_factors_.shape[0]
        new_rows = np.zeros((added, width), self.user_factors_.dtype)
        self.user_factors_ = np.vstack([self.user_factors_, new_rows])
        with one_blas_thread():
            self.user_factors_[users] = self._rows(self.history_rows(users), self.item_factors_)

    def contributions(self, code: int, item: int) -> np.ndarray:
        """Return what each item of a user's history adds to the score of an item, by codes."""
        row, Q = self.history_rows(np.array([code])), self.item_factors_.astype(np.float64)
        n_items = int((self.item_counts_ > 0).sum())
        own = Q[row.indices]
        A = self.unseen_weight * (Q.T @ Q) + (own.T * row.data) @ own
        A += self.regularization * (row.nnz + self.unseen_weight * n_items) * np.eye(Q.shape[1])
        return row.data * (own @ np.linalg.solve(A, Q[item]))


def _solve_rows(
    entries: sparse.csr_array,
    Q: np.ndarray,
    unseen_weight: float,
    ridge: np.ndarray,
    n_jobs: int = 1,
) -> np.ndarray:
    """Return the factors of all rows, (2).

    Parameters
    ----------
    entries : csr_array
        The weights ``v``.
    Q : array of shape (n_columns, n_factors)
        Factors of the other side; their precision is that of the result.
    unseen_weight : float
    ridge : array of shape (n_rows,)
    n_jobs : int
        Threads.
    """
    n_factors = Q.shape[1]
    base = (unseen_weight * (Q.T @ Q)).astype(Q.dtype)
    cost = np.diff(entries.indptr) * float(n_factors**2) + n_factors**3
    thin = np.diff(entries.indptr) <= n_factors // THIN
    rotated = None
    if np.count_nonzero(thin) >= LEAST_THIN:
        cost[thin] = np.diff(entries.indptr)[thin] * float(n_factors) + n_factors**2
        rotated = Rotated.of(base, Q, entries.indices[np.repeat(thin, np.diff(entries.indptr))])
    shared = entries, Q, base, ridge.astype(Q.dtype), rotated
    return over_rows(_solved_rows, cost, shared, n_jobs)


class Rotated(NamedTuple):
    """What (3) needs of the other side."""

    rows: np.ndarray  # those that thin rows have entries at
    spread: np.ndarray
    axes: np.ndarray  # the columns of U, one after the other

    @classmethod
    def of(cls, base: np.ndarray, Q: np.ndarray, index: np.ndarray) -> Rotated:
        """From the part that all rows have in common, and the entries of thin rows."""
        spread, axes = np.linalg.eigh(base.astype(np.float64))
        there = np.zeros(len(Q), dtype=np.bool_)
        there[index] = True
        rows, axes = np.zeros_like(Q), axes.astype(Q.dtype)
        _rotate(np.flatnonzero(there), Q, axes, rows)
        return cls(rows, np.maximum(spread, 0.0).astype(Q.dtype), np.ascontiguousarray(axes.T))


def _solved_rows(
    span: tuple[int, int], entries: sparse.csr_array, Q: np.ndarray, base: np.ndarray,
    ridge: np.ndarray, rotated: Rotated | None,
) -> np.ndarray:  # fmt: skip
    """Return the factors of some rows, (2); ``base`` is what all of them have in common."""
    first, stop = span
    n_factors, start = Q.shape[1], entries.indptr[first : stop + 1].astype(np.int64)
    own = slice(int(start[0]), int(start[-1]))
    index, weight = entries.indices[own].astype(np.int64), entries.data[own].astype(Q.dtype)
    start -= start[0]
    X = np.zeros((stop - first, n_factors), dtype=Q.dtype)
    ridge = ridge[first:stop]
    longest, most = int(np.diff(start).max(initial=0)), 0
    if rotated is not None:
        most = n_factors // THIN
        shapes = (most, n_factors), (most, most), most, n_factors, n_factors
        memory = tuple(np.empty(shape, Q.dtype) for shape in shapes)
        _solve_thin(start, index, weight, ridge, *rotated, X, memory)
    scratch = Scratch(
        np.empty_like(base),
        np.empty((1, n_factors), Q.dtype),
        np.empty((longest, n_factors), Q.dtype),
        np.empty((longest, n_factors), Q.dtype),
        np.ones(1, Q.dtype),
    )
    _solve_each(start, index, weight, Q, base, ridge, most, ADDRESSES, X, scratch)
    for row in np.flatnonzero(np.isnan(X[:, :1]).any(axis=1)):  # not positive definite
        own = slice(start[row], start[row + 1])
        known = Q[index[own]]
        A = base + (known.T * weight[own]) @ known + ridge[row] * np.eye(n_factors)
        X[row] = np.linalg.lstsq(A, known.T @ weight[own])[0]
    return X


class Scratch(NamedTuple):
    """Memory for the system of a row, for its columns of Q, and the number 1."""

    A: np.ndarray
    right: np.ndarray
    rows: np.ndarray
    weighted: np.ndarray
    one: np.ndarray


@compiled
def _solve_each(  # type: ignore[no-untyped-def]
    start, index, weight, Q, base, ridge, most, addresses, X, scratch
):
    """Solve (2) for each row with more than ``most`` entries."""
    A, right, rows, weighted, one = scratch
    n_factors = Q.shape[1]
    for row in range(len(X)):
        begin, n = start[row], start[row + 1] - start[row]
        if n <= most:
            continue
        for f in range(n_factors):
            right[0, f] = 0.0
            for g in range(n_factors):
                A[f, g] = base[f, g]
            A[f, f] += ridge[row]
        for j in range(n):
            q, w = index[begin + j], weight[begin + j]
            for f in range(n_factors):
                rows[j, f] = Q[q, f]
                weighted[j, f] = w * Q[q, f]
                right[0, f] += weighted[j, f]
        add_products(n, rows, weighted, one, A, addresses)  # (2)
        positive = factorise(A, addresses) == 0
        if positive:
            solve_factorised(A, right, addresses)
        for f in range(n_factors):  # a row as a whole would take a second to compile
            X[row, f] = right[0, f] if positive else np.nan


@compiled
def _rotate(chosen, Q, axes, out):  # type: ignore[no-untyped-def]
    """Write the products of chosen rows of Q with the axes."""
    n_factors = Q.shape[1]
    for q in chosen:
        for g in range(n_factors):
            for f in range(n_factors):
                out[q, f] += Q[q, g] * axes[g, f]


@compiled_with(fastmath={"reassoc", "contract"})  # lets sums be vectorised
def _solve_thin(  # type: ignore[no-untyped-def]
    start, index, weight, ridge, R, spread, axes, X, memory
):
    """Solve (3) for each row with no more entries than the memory is for."""
    rows, M, right, inverse, x = memory
    n_factors = R.shape[1]
    for row in range(len(X)):
        begin, n = start[row], start[row + 1] - start[row]
        if n == 0 or n > len(rows):
            continue
        for f in range(n_factors):
            inverse[f] = 1.0 / (spread[f] + ridge[row])
            x[f] = 0.0
        for j in range(n):
            right[j] = np.sqrt(weight[begin + j])
            for f in range(n_factors):
                rows[j, f] = right[j] * R[index[begin + j], f]
        for j in range(n):  # the factor of the system, and the solution of its lower half
            for k in range(j + 1):
                total = np.float32(0.0)
                for f in range(n_factors):
                    total += rows[j, f] * inverse[f] * rows[k, f]
                if k == j:
                    total += np.float32(1.0)
                for i in range(k):
                    total -= M[j, i] * M[k, i]
                M[j, k] = total / M[k, k] if k < j else np.sqrt(total)
            for i in range(j):
                right[j] -= M[j, i] * right[i]
            right[j] /= M[j, j]
        for j in range(n - 1, -1, -1):
            for i in range(j + 1, n):
                right[j] -= M[i, j] * right[i]
            right[j] /= M[j, j]
            for f in range(n_factors):
                x[f] += right[j] * rows[j, f]
        for g in range(n_factors):
            share = x[g] * inverse[g]
            for f in range(n_factors):
                X[row, f] += share * axes[g, f]
