"""Low-rank loadings by EM factor analysis, fitted without the owners they are used for.

The model of one owner's residuals: ``x_e = q_e . z + noise``, ``z ~ N(0, I)``, a ridge on the
loadings. Owners are split into folds; the loadings for a fold come from the other folds, so that
the kernel ``q_e . q_f`` in an owner's block does not depend on that owner's ratings.

Equations here, with ``v`` the noise variance:

(1) E step: ``V_o = (I + sum_e q_e q_e' / v)^-1``, ``m_o = V_o sum_e q_e x_e / v``
(2) M step: ``q_e = (sum_o (V_o + m_o m_o') + ridge I)^-1 sum_o m_o x_oe``
"""

from __future__ import annotations

import numpy as np

from ordrec.compiling import compiled
from ordrec.linalg.small import factorise_small, invert_small, solve_small
from ordrec.parallel import loop_threads

__all__ = ["cross_fitted_loadings", "factor_loadings"]


def cross_fitted_loadings(
    start: np.ndarray,
    entry: np.ndarray,
    x: np.ndarray,
    n_entries: int,
    *,
    rank: int,
    n_folds: int,
    n_rounds: int,
    ridge: float,
    rng: np.random.Generator,
    n_jobs: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Fold of each owner, and for each fold the loadings fitted without it.

    The loadings have shape (n_folds, n_entries, rank).
    """
    n_owners = start.size - 1
    fold = rng.permutation(n_owners) % n_folds
    owner = np.repeat(np.arange(n_owners), np.diff(start))
    first = 0.1 * rng.standard_normal((n_entries, rank))
    loadings = np.zeros((n_folds, n_entries, rank))

    def fit(k: int) -> None:
        rows = fold[owner] != k
        loadings[k] = factor_loadings(
            owner[rows], entry[rows], x[rows], n_owners, first, n_rounds, ridge
        )

    if rank:
        with loop_threads(n_jobs) as threads:
            list(threads.map(fit, range(n_folds)))
    return fold.astype(np.int64), loadings


def factor_loadings(
    owner: np.ndarray,
    entry: np.ndarray,
    x: np.ndarray,
    n_owners: int,
    first: np.ndarray,
    n_rounds: int,
    ridge: float,
) -> np.ndarray:
    """Loadings of all entries after ``n_rounds`` of EM from the loadings ``first``."""
    if x.size == 0:
        return np.zeros_like(first)
    q, variance = first.copy(), float(x.var()) or 1.0
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_owners))])
    for _ in range(n_rounds):
        q, variance = _round(start, entry, x, q, variance, ridge)
    return q


@compiled
def _round(start, entry, x, q, variance, ridge):  # type: ignore[no-untyped-def]
    """The loadings and the noise variance after one E and one M step."""
    n_entries, rank = q.shape
    second = np.zeros((n_entries, rank, rank))
    first = np.zeros((n_entries, rank))
    precision, moment = np.empty((rank, rank)), np.empty((rank, rank))
    right, m, squares = np.empty(rank), np.empty(rank), 0.0
    for o in range(start.size - 1):
        if start[o] == start[o + 1]:
            continue
        for a in range(rank):
            right[a] = 0.0
            for b in range(rank):
                precision[a, b] = 1.0 if a == b else 0.0
        for k in range(start[o], start[o + 1]):
            q_e = q[entry[k]]
            for a in range(rank):
                right[a] += q_e[a] * x[k] / variance
                for b in range(a + 1):
                    precision[a, b] += q_e[a] * q_e[b] / variance
        factorise_small(precision, 0.0)
        solve_small(precision, right, m)  # (1)
        invert_small(precision, moment)  # V of (1)
        for a in range(rank):
            for b in range(rank):
                moment[a, b] += m[a] * m[b]
        for k in range(start[o], start[o + 1]):
            e = entry[k]
            q_e, x_k = q[e], x[k]
            squares += x_k * x_k  # E (x - q z)^2 = x^2 - 2 x q m + q moment q
            for a in range(rank):
                along = -2.0 * x_k * m[a]
                for b in range(rank):
                    along += moment[a, b] * q_e[b]
                    second[e, a, b] += moment[a, b]
                squares += q_e[a] * along
                first[e, a] += m[a] * x_k
    fitted = np.zeros_like(q)
    for e in range(n_entries):
        for a in range(rank):
            second[e, a, a] += ridge
        factorise_small(second[e], 0.0)
        solve_small(second[e], first[e], fitted[e])  # (2)
    return fitted, max(squares / x.size, 1e-6)
