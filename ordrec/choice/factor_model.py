"""Choice models whose scores are products of user and item factors, and the rows they solve.

For one row with other-side factors ``q_j``, weights ``e_j`` and pulls ``w_j`` of its entries, the
factors solve

(1) ``(base + sum_j e_j q_j q_j' + ridge I) x = sum_j w_j q_j``

where ``base`` is the unseen weight times the Gram matrix of all ``q_j``. Each row is solved by
itself, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.choice.base import ChoiceModel
from ordrec.linalg.lapack import ADDRESSES, add_products, factorise, solve_factorised
from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel import one_blas_thread
from ordrec.runtime.parallel.spans import over_spans
from ordrec.storage import take

__all__ = ["FactorModel", "solve_rows"]


class FactorModel(ChoiceModel):
    """Base of choice models with one row of factors per user and per item.

    A user without ratings has the mean of the users' factors.
    """

    user_factors_: np.ndarray
    item_factors_: np.ndarray
    _average_user: np.ndarray
    _dtype: Any = np.float32

    @abstractmethod
    def _rows(self, history: sparse.csr_array, Q: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """User factors for histories, given item factors."""

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        factors = self._rows(history, self.item_factors_)
        factors[np.diff(history.indptr) == 0] = self._average_user
        return (factors @ self.item_factors_.T).astype(np.float64)

    def score_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of all items for users by code; -1 is a user without ratings."""
        factors = self.user_factors_[codes]
        factors[np.diff(self.history_rows(codes).indptr) == 0] = self._average_user
        return (factors @ self.item_factors_.T).astype(np.float64)

    def _on_fold_in(self, users: np.ndarray) -> None:
        width = self.user_factors_.shape[1]
        added = len(self.user_ids_) - self.user_factors_.shape[0]
        new_rows = np.zeros((added, width), self.user_factors_.dtype)
        self.user_factors_ = np.vstack([self.user_factors_, new_rows])
        with one_blas_thread():
            self.user_factors_[users] = self._rows(self._history[users], self.item_factors_)

    def _own_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {
            "user_factors": self.user_factors_,
            "item_factors": self.item_factors_,
            "average_user": self._average_user,
        }, {}

    def _restore(self, arrays: Any, metadata: dict[str, Any]) -> None:
        dtype = self._dtype
        width = take(arrays, "average_user", dtype, (None,)).size
        self._average_user = take(arrays, "average_user", dtype, (width,))
        self.user_factors_ = take(arrays, "user_factors", dtype, (len(self.user_ids_), width))
        self.item_factors_ = take(arrays, "item_factors", dtype, (len(self.item_ids_), width))


def solve_rows(
    entries: sparse.csr_array,
    extra: np.ndarray,
    pull: np.ndarray,
    Q: np.ndarray,
    unseen_weight: float,
    ridge: np.ndarray,
    n_jobs: int = 1,
) -> np.ndarray:
    """Return the factors of all rows, (1).

    Parameters
    ----------
    entries : csr_array
        Where there are entries; its data are not used.
    extra, pull : arrays
        ``e`` and ``w`` of each entry.
    Q : array of shape (n_columns, rank)
        Factors of the other side; their precision is that of the result.
    unseen_weight : float
    ridge : array of shape (n_rows,)
    n_jobs : int
        Threads.
    """
    rank, start = Q.shape[1], entries.indptr.astype(np.int64)
    X = np.zeros((entries.shape[0], rank), dtype=Q.dtype)
    base = (unseen_weight * (Q.T @ Q)).astype(Q.dtype)
    cost = np.diff(start) * rank**2 + rank**3
    arrays = (
        start, entries.indices.astype(np.int64), extra.astype(Q.dtype), pull.astype(Q.dtype), Q,
        base, ridge.astype(Q.dtype), ADDRESSES, X,
    )  # fmt: skip

    def solve_span(first: int, stop: int) -> None:
        rows = np.empty((2, int(np.diff(start[first : stop + 1]).max()), rank), Q.dtype)
        room = np.empty((1, rank), Q.dtype), *rows, np.ones(1, Q.dtype)
        _solve_span(first, stop, *arrays, np.empty_like(base), *room)

    over_spans(solve_span, cost, n_jobs)
    for row in np.flatnonzero(np.isnan(X[:, :1]).any(axis=1)):  # not positive definite
        own = slice(start[row], start[row + 1])
        rows = Q[entries.indices[own]]
        A = base + (rows.T * extra[own]) @ rows + ridge[row] * np.eye(rank)
        X[row] = np.linalg.lstsq(A, rows.T @ pull[own])[0]
    return X


@compiled
def _solve_span(  # type: ignore[no-untyped-def]
    first, stop, start, index, extra, pull, Q, base, ridge, addresses, X,
    A, right, rows, weighted, one,
):  # fmt: skip
    """Rows ``first..stop`` of (1); what stands behind X is room."""
    rank = Q.shape[1]
    for row in range(first, stop):
        begin, n = start[row], start[row + 1] - start[row]
        if n == 0:
            continue
        for f in range(rank):
            right[0, f] = 0.0
            for g in range(rank):
                A[f, g] = base[f, g]
            A[f, f] += ridge[row]
        for j in range(n):
            q, e, w = index[begin + j], extra[begin + j], pull[begin + j]
            for f in range(rank):
                rows[j, f] = Q[q, f]
                weighted[j, f] = e * Q[q, f]
                right[0, f] += w * Q[q, f]
        add_products(n, rows, weighted, one, A, addresses)  # (1)
        positive = factorise(A, addresses) == 0
        if positive:
            solve_factorised(A, right, addresses)
        for f in range(rank):  # a row as a whole would take a second to compile
            X[row, f] = right[0, f] if positive else np.nan
