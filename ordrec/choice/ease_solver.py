"""Row-scaled EASE: the regression of every item on all other items, in closed form.

With ``V`` the histories, ``d`` one factor per user, ``Z = diag(d) V`` the inputs, ``Y = V`` the
targets and ``L`` the ridges, one per item, the weights minimise ``|Y - Z B|^2 + sum_i L_i |B_i|^2``
over all ``B`` with a zero diagonal:

(1) ``P = (Z'Z + diag(L))^-1``
(2) ``B = P Z'Y``, then ``B_.j -= P_.j B_jj / P_jj``
(3) or, with fewer users than items, ``P Z'Y = diag(1/L) Z' M Y`` with
    ``M = (I + Z diag(1/L) Z')^-1`` and ``P = diag(1/L) - diag(1/L) Z' M Z diag(1/L)``

The scores of a user who is left out of the regressions, with ``z`` and ``y`` that user's rows:

(4) ``s_j = ((z B)_j - h_j y_j) / (1 - h_j)``, ``h_j = z P z' - (z P)_j^2 / P_jj``

since ``P`` without row and column j, downdated by j, is the inverse for the regression of j.

Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019, with ``d = 1`` and equal
ridges. Departures: the scaled rows and the ridges by counts.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg, sparse

from ordrec.linalg.lapack import mirror_upper, row_blocks
from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel.spans import over_spans

__all__ = ["EaseProblem", "EaseSolution", "row_factors"]


def row_factors(sizes: np.ndarray, mean_count: float, user_power: float) -> np.ndarray:
    """Factors by which rows of histories with these numbers of ratings are scaled."""
    return (np.maximum(sizes, 1) / mean_count) ** -user_power


class EaseProblem:
    """The regressions of one set of histories, for any number of ridges.

    Parameters
    ----------
    history : csr_array of shape (n_users, n_items)
        ``V``, only items that are to be regressed.
    row_factors : array of shape (n_users,)
        ``d``.
    dtype : numpy float type
    n_jobs : int
        Threads that sum up the Gram matrices.
    """

    def __init__(
        self,
        history: sparse.csr_array,
        row_factors: np.ndarray,
        dtype: type = np.float64,
        n_jobs: int = 1,
    ):
        self.Y = history.astype(dtype)
        self.Z = sparse.csr_array(sparse.diags_array(row_factors.astype(dtype)) @ self.Y)
        self.by_users = history.shape[0] < history.shape[1]
        if not self.by_users:
            self.ZZ, self.ZY = _gram_matrices(history, row_factors, dtype, n_jobs)

    def solve(self, ridges: np.ndarray) -> EaseSolution:
        """Return the solution for these ridges, one per item."""
        ridges = ridges.astype(self.Y.dtype)
        if not self.by_users:
            A = self.ZZ.copy()
            A[np.diag_indices_from(A)] += ridges
            return _ByItems(self, _inverse(A))
        ZL = self.Z.toarray() / ridges
        A = np.asarray(self.Z @ ZL.T)
        A[np.diag_indices_from(A)] += 1.0
        return _ByUsers(self, ridges, ZL, _inverse(A) @ ZL)


class EaseSolution(Protocol):
    """What the two ways to solve have in common."""

    def weights(self, dtype: type | None = None) -> np.ndarray:
        """Return ``B``, (2), in the precision of the problem or another one."""

    def scores(self, rows: np.ndarray, *, left_out: bool = False) -> np.ndarray:
        """Return the scores of training users; with ``left_out`` by (4)."""


class _ByItems:
    """The inverse of the items' Gram matrix, (1)."""

    def __init__(self, problem: EaseProblem, P: np.ndarray):
        self.problem, self.P, self.p = problem, P, np.diag(P).copy()
        self.b = np.einsum("ij,ji->i", P, problem.ZY)  # the diagonal of P Z'Y

    def weights(self, dtype: type | None = None) -> np.ndarray:
        ratio = self.b / self.p
        B = np.empty((self.p.size, self.p.size), dtype or self.P.dtype)
        for rows in row_blocks(B.shape[0]):
            B[rows] = self.P[rows] @ self.problem.ZY - self.P[rows] * ratio
        np.fill_diagonal(B, 0.0)
        return B

    def scores(self, rows: np.ndarray, *, left_out: bool = False) -> np.ndarray:
        Z = self.problem.Z[rows].toarray()
        ZP = Z @ self.P
        scores = ZP @ self.problem.ZY - ZP * (self.b / self.p)
        return _left_out(scores, ZP, self.p, Z, self.problem.Y[rows]) if left_out else scores


class _ByUsers:
    """The inverse of the users' Gram matrix, (3): ``ZP = M Z diag(1/L)`` for all users."""

    def __init__(self, problem: EaseProblem, ridges: np.ndarray, ZL: np.ndarray, ZP: np.ndarray):
        self.problem, self.ridges, self.ZL, self.ZP = problem, ridges, ZL, ZP
        self.p = 1.0 / ridges - np.einsum("ij,ij->j", ZL, ZP)
        self.b = np.asarray(problem.Y.multiply(ZP).sum(axis=0)).ravel()

    def weights(self, dtype: type | None = None) -> np.ndarray:
        n_items = self.ridges.size
        B = np.empty((n_items, n_items), dtype or self.ZP.dtype)
        targets, ratio = sparse.csr_array(self.problem.Y.T), self.b / self.p
        for rows in row_blocks(n_items):
            block = (self.ZL[:, rows].T @ self.ZP) * ratio
            block += np.asarray(targets @ self.ZP[:, rows]).T  # P Z'Y
            B[rows] = block
        np.fill_diagonal(B, 0.0)  # where P has another term
        return B

    def scores(self, rows: np.ndarray, *, left_out: bool = False) -> np.ndarray:
        Z, ZP = self.problem.Z[rows].toarray(), self.ZP[rows]
        ZPZ = np.asarray(self.problem.Z @ ZP.T)
        scores = np.asarray(self.problem.Y.T @ ZPZ).T - ZP * (self.b / self.p)
        return _left_out(scores, ZP, self.p, Z, self.problem.Y[rows]) if left_out else scores


def _left_out(
    scores: np.ndarray, ZP: np.ndarray, p: np.ndarray, Z: np.ndarray, Y: sparse.csr_array
) -> np.ndarray:
    leverage = np.einsum("ij,ij->i", ZP, Z)[:, None] - ZP**2 / p
    return (scores - leverage * Y.toarray()) / (1.0 - leverage)  # (4)


def _inverse(A: np.ndarray) -> np.ndarray:
    """Inverse of a symmetric positive definite matrix, which is overwritten."""
    if not A.size:
        return A  # LAPACK takes no empty matrix
    potrf, potri = linalg.get_lapack_funcs(("potrf", "potri"), (A,))
    factor, info = potrf(A.T, lower=True, overwrite_a=True, clean=False)
    if info == 0:
        inverse, info = potri(factor, lower=True, overwrite_c=True)
    if info != 0:
        raise np.linalg.LinAlgError("the ridge is too small for these ratings")
    mirror_upper(inverse.T)
    return inverse.T


def _gram_matrices(
    history: sparse.csr_array, row_factors: np.ndarray, dtype: type, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """``Z'Z`` and ``Z'Y``, summed in double precision."""
    n_items = history.shape[1]
    by_item = sparse.csr_array(history.T)
    ZZ, ZY = np.empty((n_items, n_items), dtype), np.empty((n_items, n_items), dtype)
    sizes = np.diff(history.indptr)
    owners = np.repeat(np.arange(n_items), np.diff(by_item.indptr))
    cost = np.bincount(owners, sizes[by_item.indices], minlength=n_items) + n_items
    sides = (
        SparseRows(by_item.indptr, by_item.indices, by_item.data),
        SparseRows(history.indptr, history.indices, history.data),
    )
    factors = row_factors.astype(np.float64)
    over_spans(
        lambda *span: _sum_rows(*span, *sides, factors, ZZ, ZY, np.empty((2, n_items))),
        cost,
        n_jobs,
    )
    return ZZ, ZY


class SparseRows(NamedTuple):
    """A sparse matrix by rows."""

    start: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@compiled
def _sum_rows(  # type: ignore[no-untyped-def]
    first, stop, by_item, history, factors, ZZ, ZY, scratch
):
    """Rows ``first..stop`` of both Gram matrices; the last is scratch memory."""
    item_start, users, user_values = by_item
    start, items, values = history
    n_items, square, cross = ZZ.shape[0], scratch[0], scratch[1]
    for i in range(first, stop):
        for j in range(n_items):
            square[j], cross[j] = 0.0, 0.0
        for at in range(item_start[i], item_start[i + 1]):
            u = users[at]
            once = factors[u] * user_values[at]
            twice = factors[u] * once
            for k in range(start[u], start[u + 1]):
                cross[items[k]] += once * values[k]
                square[items[k]] += twice * values[k]
        for j in range(n_items):
            ZZ[i, j] = square[j]
            ZY[i, j] = cross[j]
