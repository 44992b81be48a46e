"""Rows of weighted least squares for implicit feedback, compiled.

For one row with other-side factors ``q_j``, weights ``e_j`` and pulls ``w_j`` of its entries, the
factors solve

(1) ``(base + sum_j e_j q_j q_j' + ridge I) x = sum_j w_j q_j``

where ``base`` is the unseen weight times the Gram matrix of all ``q_j``. Each row is solved by
itself, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse

from ordrec.linalg.lapack import ADDRESSES, factorise, solve_factorised
from ordrec.parallel.spans import over_spans

__all__ = ["solve_rows"]


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
    over_spans(
        _solve_span, cost, n_jobs, start, entries.indices.astype(np.int64),
        extra.astype(Q.dtype), pull.astype(Q.dtype), Q, base, ridge.astype(Q.dtype), ADDRESSES, X,
    )  # fmt: skip
    for row in np.flatnonzero(np.isnan(X[:, :1]).any(axis=1)):  # not positive definite
        own = slice(start[row], start[row + 1])
        rows = Q[entries.indices[own]]
        A = base + (rows.T * extra[own]) @ rows + ridge[row] * np.eye(rank)
        X[row] = np.linalg.lstsq(A, rows.T @ pull[own])[0]
    return X


@njit(cache=True, nogil=True)
def _solve_span(first, stop, start, index, extra, pull, Q, base, ridge, addresses, X):  # type: ignore[no-untyped-def]
    rank = Q.shape[1]
    A, right = np.empty((rank, rank), Q.dtype), np.empty((1, rank), Q.dtype)
    for row in range(first, stop):
        begin, n = start[row], start[row + 1] - start[row]
        if n == 0:
            continue
        rows, weighted = np.empty((n, rank), Q.dtype), np.empty((n, rank), Q.dtype)
        right[:] = 0.0
        for j in range(n):
            q, e, w = index[begin + j], extra[begin + j], pull[begin + j]
            for f in range(rank):
                rows[j, f] = Q[q, f]
                weighted[j, f] = e * Q[q, f]
                right[0, f] += w * Q[q, f]
        np.dot(rows.T, weighted, A)  # (1)
        for f in range(rank):
            for g in range(rank):
                A[f, g] += base[f, g]
            A[f, f] += ridge[row]
        if factorise(A, addresses) == 0:
            solve_factorised(A, right, addresses)
            X[row] = right[0]
        else:
            X[row] = np.nan
