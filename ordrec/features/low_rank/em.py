"""Weighted low-rank approximation by expectation-maximisation.

N. Srebro and T. Jaakkola, Weighted low-rank approximations, ICML 2003. Minimises
``E(X) = sum_ij W_ij (A_ij - X_ij)^2`` over matrices of rank k, weights in [0, 1], by

    X <- SVD_k( W*A + (1 - W)*X )  =  SVD_k( X + W*(A - X) )                          (1)

Symbols
-------
=====================  ==================  ====================================
here                   shape               meaning
=====================  ==================  ====================================
``entries``            (n, m), CSR         A on the entries with a weight
``weights``            (nnz,)              W on these entries, 0 elsewhere
``left, s, right``     (n,k) (k,) (m,b)    X = left diag(s) right[:, :k]'
``R``                  (n, m), CSR         W * (A - X), sparse like A
=====================  ==================  ====================================

Departures
----------
The filled matrix ``M = X + R`` is never formed: it is a low-rank matrix plus a sparse one, and
only products with it are needed. Its SVD is not computed from scratch either: each step makes
one block power step from the previous right factors V,

    Q = orth(M V),   X <- SVD_k(Q Q' M).                                              (2)

That is enough for E never to rise. For any X' the majorant gives
``E(X') - E(X) <= |M - X'|^2 - |M - X|^2``, and, because M V V' has its columns in Q,
``|M - Q Q' M| <= |M - M V V'| <= |M - X|``. At a fixed point V is a singular subspace of M,
so X is a fixed point of (1) too; the block has a few vectors more than the rank, so that the
dominant subspace is not missed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel import one_blas_thread

__all__ = ["LowRankFit", "annealing_ranks", "project_rows", "weighted_low_rank"]

SPARE_VECTORS = 5
STEPS_PER_ANNEALING_RANK = 5


class LowRankFit(NamedTuple):
    """The factors of ``X = left diag(singular) right'``, and the course of the iteration.

    ``errors`` holds the weighted error before the first step and after each step, ``ranks``
    the rank at which each was measured. Where the rank drops, the error is that of the
    matrix already truncated to the lower rank. It never rises while the rank is constant.
    """

    left: np.ndarray
    singular: np.ndarray
    right: np.ndarray
    errors: np.ndarray
    ranks: np.ndarray
    converged: bool

    @property
    def n_iter(self) -> int:
        """Number of EM steps."""
        return len(self.errors) - 1


def annealing_ranks(rank: int, limit: int) -> list[int]:
    """Return the ranks to go through: from four times the wanted rank, halved each time."""
    ranks = [min(4 * rank, limit)]
    while ranks[-1] > rank:
        ranks.append(max(rank, -(-ranks[-1] // 2)))
    return ranks


@one_blas_thread()  # with such thin factors, further threads would only wait
def weighted_low_rank(
    entries: sparse.csr_array,
    weights: np.ndarray,
    ranks: list[int],
    *,
    start: np.ndarray | None,
    tol: float,
    max_iter: int,
    seed: np.random.RandomState,
) -> LowRankFit:
    """Fit X by EM from constant rows ``start`` (or from zero), through the given ranks.

    All ranks but the last get a few steps each; the last is continued until the weighted error
    falls by less than the fraction ``tol``, or ``max_iter`` steps were made in all.
    """
    left, s, right = _first_block(entries.shape, max(ranks), start, seed)
    errors: list[float] = []
    at_rank: list[int] = []
    converged = False
    for stage, rank in enumerate(ranks):
        left, s = left[:, :rank], s[:rank]
        right = right[:, : rank + SPARE_VECTORS]
        R, error = _residual(entries, weights, left * s, right[:, :rank])
        errors, at_rank = [*errors[:-1], error], [*at_rank[:-1], rank]
        last = stage == len(ranks) - 1
        steps = max_iter + 1 - len(errors)
        for _ in range(steps if last else min(steps, STEPS_PER_ANNEALING_RANK)):
            left, s, right = _power_step(R, left, s, right, rank)
            R, error = _residual(entries, weights, left * s, right[:, :rank])
            errors.append(error)
            at_rank.append(rank)
            converged = last and errors[-2] - error <= tol * errors[-2]
            if converged:
                break
    rank = ranks[-1]
    return LowRankFit(
        left[:, :rank], s[:rank], right[:, :rank], np.array(errors), np.array(at_rank), converged
    )


def _first_block(
    shape: tuple[int, int], rank: int, start: np.ndarray | None, seed: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The factors of X = start 1' (or zero); the rest of the block are random directions."""
    n_rows, n_columns = shape
    width = min(rank + SPARE_VECTORS, n_rows, n_columns)
    left, s = np.zeros((n_rows, rank)), np.zeros(rank)
    block = seed.standard_normal((n_columns, width))
    block[:, 0] = 1.0
    right = np.linalg.qr(block)[0]
    right[:, 0] = 1 / np.sqrt(n_columns)  # QR may have changed its sign
    if start is not None:
        norm = float(np.linalg.norm(start))
        s[0] = norm * np.sqrt(n_columns)
        left[:, 0] = start / norm if norm > 0 else 0.0
    return left, s, right


def _power_step(
    R: sparse.csr_array, left: np.ndarray, s: np.ndarray, right: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step (2) on M = left diag(s) right' + R."""
    Y = R @ right  # M V, whose low-rank part is left diag(s), as V is orthonormal
    Y[:, :rank] += left * s
    Q = np.linalg.qr(Y)[0]
    B = R.T @ Q + (right[:, :rank] * s) @ (left.T @ Q)  # M' Q
    new_right, singular, turn = np.linalg.svd(B, full_matrices=False)
    return Q @ turn.T[:, :rank], singular[:rank], np.ascontiguousarray(new_right)


def _residual(
    entries: sparse.csr_array, weights: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[sparse.csr_array, float]:
    """R = W*(A - X) and the weighted error."""
    data = np.empty(entries.nnz)
    error = _fill_residual(
        entries.indptr.astype(np.int64),
        entries.indices.astype(np.int64),
        entries.data,
        weights,
        np.ascontiguousarray(left),
        np.ascontiguousarray(right),
        data,
    )
    R = sparse.csr_array((data, entries.indices, entries.indptr), shape=entries.shape)
    return R, float(error)


@compiled
def _fill_residual(indptr, indices, values, weights, left, right, out):  # type: ignore[no-untyped-def]
    error = 0.0
    for i in range(len(indptr) - 1):
        for at in range(indptr[i], indptr[i + 1]):
            estimate = 0.0
            for c in range(left.shape[1]):
                estimate += left[i, c] * right[indices[at], c]
            gap = values[at] - estimate
            out[at] = weights[at] * gap
            error += out[at] * gap
    return error


def project_rows(
    entries: sparse.csr_array,
    weights: np.ndarray,
    right: np.ndarray,
    start: np.ndarray | None,
    n_steps: int,
) -> np.ndarray:
    """Return the coordinates, in the basis ``right``, of rows that were not in the fit.

    With the basis held fixed, a step (1) on one row is a gradient step of length 1 on its
    weighted squares: ``c <- c + V_w'(a - V c)``. ``n_steps`` of them from the constant row
    ``start`` have the closed form ``c = c0 + phi(H) g``, ``phi(t) = (1 - (1-t)^n) / t``, with
    ``H = V'WV`` over the row's observed entries: directions with many observations are solved
    for, those with few stay near the start, as in the fit.
    """
    n_rows, rank = entries.shape[0], right.shape[1]
    centre = np.zeros((n_rows, rank))
    if start is not None:
        centre = np.outer(start, right.sum(axis=0))
    R, _ = _residual(entries, weights, centre, right)
    gradient = R @ right
    coordinates = np.empty((n_rows, rank))
    for begin in range(0, n_rows, 512):  # bounds the memory of the batched decomposition
        part = slice(begin, begin + 512)
        H = _weighted_grams(
            entries.indptr[begin : begin + 513].astype(np.int64),
            entries.indices.astype(np.int64),
            weights,
            right,
        )
        t, vectors = np.linalg.eigh(H)
        t = np.clip(t, 0.0, 1.0)
        grown = -np.expm1(n_steps * np.log1p(-np.minimum(t, 1 - 1e-16)))
        phi = np.divide(grown, t, out=np.full_like(t, float(n_steps)), where=t > 1e-12)
        inside = np.einsum("nij,ni->nj", vectors, gradient[part])
        coordinates[part] = np.einsum("nij,nj->ni", vectors, phi * inside)
    return centre + coordinates


@compiled
def _weighted_grams(indptr, indices, weights, right):  # type: ignore[no-untyped-def]
    """V' diag(w) V over each row's observed entries."""
    n_rows, rank = len(indptr) - 1, right.shape[1]
    H = np.zeros((n_rows, rank, rank))
    for i in range(n_rows):
        for at in range(indptr[i], indptr[i + 1]):
            j, w = indices[at], weights[at]
            for a in range(rank):
                for b in range(a + 1):
                    H[i, a, b] += w * right[j, a] * right[j, b]
        for a in range(rank):
            for b in range(a):
                H[i, b, a] = H[i, a, b]
    return H
