"""The shared part of the joint model: products of user and item kernels, kept as factors.

Equations here, with the columns of psi and phi in named groups, and Omega constant on each pair of
groups:

(1) ``h(u, i) = psi_u' W phi_i`` with independent ``W_kl ~ N(0, Omega_kl)``
(2) its covariance ``sum_ab w_ab A_a(u, v) B_b(i, j)``, with ``A_a = psi_a psi_a'`` and
    ``B_b = phi_b phi_b'``
(3) applied to a vector: ``psi_u' table phi_i`` at each rating (`apply`), with
(4) ``table = Omega * sum_ui psi_u phi_i' vector_ui`` (`adjoint`, without Omega)

Nothing larger than (users x columns) is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import svds

from ordrec.runtime.compiling import compiled, compiled_with
from ordrec.runtime.parallel.spans import over_spans

__all__ = ["USER_SMOOTHING", "SharedFeatures", "implicit_features"]

USER_SMOOTHING = 10.0  # of the scale of a user's implicit features
MOST_DENSE = 2000  # rows or columns from which products of all of them take longer than Lanczos
AT_ONCE = 1 << 14  # ratings whose features are side by side


@dataclass(frozen=True)
class SharedFeatures:
    """Features of users and items, and the named groups of their columns.

    Attributes
    ----------
    psi, phi : float32 arrays
        One row per user, and one row per item.
    user_groups, item_groups : dict of str to slice
        Columns of each group.
    start, items : int64 arrays
        The training ratings grouped by user.
    projection : float64 array (n_items, rank)
        Maps a user's scaled row of ratings to their implicit features.
    """

    psi: np.ndarray
    phi: np.ndarray
    user_groups: dict[str, slice]
    item_groups: dict[str, slice]
    start: np.ndarray
    items: np.ndarray
    projection: np.ndarray

    @property
    def names(self) -> list[tuple[str, str]]:
        """Pairs of groups, in the order of their weights."""
        return [(a, b) for a in self.user_groups for b in self.item_groups]

    def variances(self, weights: np.ndarray) -> np.ndarray:
        """Omega, from one weight per pair of groups."""
        omega = np.zeros((self.psi.shape[1], self.phi.shape[1]), dtype=np.float32)
        for weight, (a, b) in zip(weights, self.names, strict=True):
            omega[self.user_groups[a], self.item_groups[b]] = weight
        return omega

    def by_group(self, table: np.ndarray) -> np.ndarray:
        """Sums of a table shaped like Omega over each pair of groups."""
        return np.array(
            [
                table[self.user_groups[a], self.item_groups[b]].sum(dtype=np.float64)
                for a, b in self.names
            ]
        )

    def diagonal(self, omega: np.ndarray) -> np.ndarray:
        """Variance of h, the diagonal of (2), at the training ratings."""
        per_user, squares = (self.psi**2) @ omega, self.phi**2
        users = np.repeat(np.arange(self.start.size - 1), np.diff(self.start))
        result = np.empty(users.size, np.float32)
        for first in range(0, users.size, AT_ONCE):
            own = slice(first, first + AT_ONCE)
            result[own] = np.einsum("nk,nk->n", per_user[users[own]], squares[self.items[own]])
        return result

    def adjoint(self, vector: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """``sum over training ratings of psi_u phi_i' vector_ui``, (4); a batch adds a first axis.

        This is the transpose of `apply`, which takes a table to the ratings.
        """
        vectors = vector[:, None] if vector.ndim == 1 else vector
        n_users, n_vectors = self.start.size - 1, vectors.shape[1]
        sums = np.zeros((n_users, n_vectors, self.phi.shape[1]), dtype=np.float32)
        if self.psi.shape[1]:  # or there is nothing to compile a loop for
            over_spans(
                _sums_by_user, self._operations(n_vectors), n_jobs, self.start, self.items,
                self.phi, vectors.astype(np.float32), sums,
            )  # fmt: skip
        table = self.psi.T @ sums.reshape(n_users, -1)  # (4)
        table = table.reshape(self.psi.shape[1], n_vectors, self.phi.shape[1]).swapaxes(0, 1)
        return table[0] if vector.ndim == 1 else table

    def apply(self, table: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """``psi_u' table phi_i`` at the training ratings, (3); a batch of tables gives columns."""
        tables = table[None] if table.ndim == 2 else table
        n_users, n_vectors = self.start.size - 1, tables.shape[0]
        flat = np.ascontiguousarray(tables.swapaxes(0, 1)).reshape(self.psi.shape[1], -1)
        sums = (self.psi @ flat).reshape(n_users, n_vectors, self.phi.shape[1])
        result = np.empty((self.items.size, n_vectors), dtype=np.float32)
        over_spans(
            _apply_by_user, self._operations(n_vectors), n_jobs, self.start, self.items, self.phi,
            sums, result,
        )  # fmt: skip
        return result[:, 0] if table.ndim == 2 else result

    def _operations(self, n_vectors: int) -> np.ndarray:
        """Numbers of operations for the ratings of each user."""
        return np.diff(self.start) * n_vectors * self.phi.shape[1]

    def apply_at(self, table: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """``psi_u' table phi_i`` at any pairs, (3)."""
        distinct, at = np.unique(users, return_inverse=True)
        sums = self.psi[distinct].astype(np.float64) @ table
        return np.einsum("nk,nk->n", sums[at], self.phi[items], dtype=np.float64)

    def adjoint_at(self, vector: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """``sum over pairs of psi_u phi_i' vector`` for any pairs, (4)."""
        shape = (self.psi.shape[0], self.phi.shape[0])
        matrix = sparse.csr_array((vector.astype(np.float32), (users, items)), shape=shape)
        return self.psi.T @ (matrix @ self.phi)


def implicit_features(
    seen: sparse.csr_array,
    rank: int,
    rng: np.random.Generator,
    *,
    smoothing: float,
    by_activity: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Features whose products approximate the cosines between the rows of ``seen``.

    ``seen`` has a row for each user (or item) to be described, with ones for what they rated (or
    who rated it). With ``by_activity`` a column with more entries counts less. A row's scale is
    ``1 / sqrt(its squares + smoothing)``. Also returns the projection that maps a scaled row to
    its features.
    """
    counts = np.asarray(seen.sum(axis=0)).ravel()
    columns = 1.0 / np.sqrt(np.maximum(counts, 1.0)) if by_activity else np.ones(counts.size)
    weighted = seen @ sparse.diags_array(columns)
    squares = np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel()
    scaled = sparse.csr_array(sparse.diags_array(1.0 / np.sqrt(squares + smoothing)) @ weighted)
    limit = min(scaled.shape) - 1
    if limit < 1 or rank < 1:
        return np.zeros((seen.shape[0], 0)), np.zeros((seen.shape[1], 0))
    first = rng.standard_normal(min(scaled.shape))
    if min(scaled.shape) <= MOST_DENSE:
        left, singular, right = _by_dense_products(scaled, min(rank, limit))
    else:
        left, singular, right = svds(scaled, k=min(rank, limit), v0=first)
    return left * singular, right.T.copy()


def _by_dense_products(
    table: sparse.csr_array, rank: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest singular values of a table, from the products of its rows, or of its columns."""
    if table.shape[0] > table.shape[1]:
        left, singular, right = _by_dense_products(sparse.csr_array(table.T), rank)
        return right.T, singular, left.T
    n = table.shape[0]
    squares, left = linalg.eigh((table @ table.T).toarray(), subset_by_index=(n - rank, n - 1))
    singular = np.sqrt(np.maximum(squares, 0.0))
    right = (table.T @ left) / np.maximum(singular, 1e-6 * singular.max(initial=1e-300))
    return left, singular, right.T


# Rows of phi are read where they are, in the cache: copies of those of a user take longer than the
# sums.


@compiled
def _sums_by_user(first, stop, start, items, phi, vectors, sums):  # type: ignore[no-untyped-def]
    for u in range(first, stop):
        for q in range(start[u], start[u + 1]):
            i = items[q]
            for v in range(vectors.shape[1]):
                x = vectors[q, v]
                for k in range(phi.shape[1]):
                    sums[u, v, k] += x * phi[i, k]


@compiled_with(fastmath={"reassoc", "contract"})  # lets sums be vectorised
def _apply_by_user(first, stop, start, items, phi, sums, result):  # type: ignore[no-untyped-def]
    for u in range(first, stop):
        for q in range(start[u], start[u + 1]):
            i = items[q]
            for v in range(sums.shape[1]):
                total = np.float32(0.0)
                for k in range(phi.shape[1]):
                    total += sums[u, v, k] * phi[i, k]
                result[q, v] = total
