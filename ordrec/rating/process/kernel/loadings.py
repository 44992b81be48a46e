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
from scipy import sparse

from ordrec.runtime.parallel import loop_threads

__all__ = ["cross_fitted_loadings", "factor_loadings"]


def cross_fitted_loadings(
    start: np.ndarray,
    entry: np.ndarray,
    x: np.ndarray,
    n_entries: int,
    *,
    n_factors: int,
    n_folds: int,
    n_rounds: int,
    ridge: float,
    rng: np.random.Generator,
    n_jobs: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Fold of each owner, and for each fold the loadings fitted without it.

    The loadings have shape (n_folds, n_entries, n_factors), in single precision, as in files.
    """
    n_owners = start.size - 1
    fold = rng.permutation(n_owners) % n_folds
    owner = np.repeat(np.arange(n_owners), np.diff(start))
    first = 0.1 * rng.standard_normal((n_entries, n_factors))
    loadings = np.zeros((n_folds, n_entries, n_factors))

    def fit(k: int) -> None:
        rows = fold[owner] != k
        loadings[k] = factor_loadings(
            owner[rows], entry[rows], x[rows], n_owners, first, n_rounds, ridge
        )

    if n_factors:
        with loop_threads(n_jobs) as threads:
            list(threads.map(fit, range(n_folds)))
    return fold.astype(np.int64), loadings.astype(np.float32).astype(np.float64)


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
    q, variance = first, float(x.var()) or 1.0
    shape = n_owners, first.shape[0]
    ratings = sparse.csr_array((x, (owner, entry)), shape=shape)
    seen = sparse.csr_array((np.ones(x.size), (owner, entry)), shape=shape)
    squares = float(x @ x)
    by_entry = sparse.csr_array(ratings.T), sparse.csr_array(seen.T)
    for _ in range(n_rounds):
        q, variance = _round(ratings, seen, by_entry, squares, q, variance, ridge)
    return q


def _round(
    ratings: sparse.csr_array,
    seen: sparse.csr_array,
    by_entry: tuple[sparse.csr_array, sparse.csr_array],
    squares: float,
    q: np.ndarray,
    variance: float,
    ridge: float,
) -> tuple[np.ndarray, float]:
    """The loadings and the noise variance after one E and one M step.

    All sums over ratings are products with sparse matrices; ``by_entry`` are their transposes,
    ``squares`` is the sum of the squared ratings.
    """
    n_entries, n_factors = q.shape
    square, unit = (-1, n_factors, n_factors), np.eye(n_factors)
    of_owners = seen @ (q[:, :, None] * q[:, None]).reshape(n_entries, -1)  # sum_e q_e q_e'
    right = ratings @ q
    V = np.linalg.inv(unit + of_owners.reshape(square) / variance)
    m = np.einsum("oab,ob->oa", V, right) / variance  # (1)
    moment = (V + m[:, :, None] * m[:, None]).reshape(-1, n_factors * n_factors)
    second = (by_entry[1] @ moment).reshape(square) + ridge * unit
    fitted = np.linalg.solve(second, (by_entry[0] @ m)[:, :, None])[:, :, 0]  # (2)
    # E (x - q z)^2 = x^2 - 2 x q m + q moment q
    squares += float(np.sum(moment * of_owners)) - 2.0 * float(np.sum(m * right))
    return fitted, max(squares / ratings.nnz, 1e-6)
