"""How much each block of side features has to do with the ratings.

Ratings of one owner (a user, say) are similar where the kernel of a block of features says that
the entries (items) are. With residuals r of the ratings after biases, and kernels ``k_b`` of the
blocks, the weights ``w`` are the variances that explain the products of residuals best,

(1) ``r_ui r_uj = c + sum_b w_b k_b(i, j)`` over all pairs i, j of all users u,

by least squares with w at least 0 (Haseman and Elston's regression), as if PRIOR_PAIRS pairs had
been seen with the weight PRIOR for every block: with few ratings all blocks count the same. A
block may also explain the biases of the entries, with

(2) ``b_i b_j = c + sum_b v_b k_b(i, j)``,

which helps where few ratings are known: v counts by the share of b that its damping leaves unknown
at an average rating.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ordrec.runtime.parallel import one_blas_thread

__all__ = ["block_weights"]

PRIOR = 0.01  # in units of the variance of the residuals
PRIOR_PAIRS = 2500.0  # PRIOR is known up to twice its size: 1 / 0.02 squared
MOST_ENTRIES = 1500  # those with the most ratings; their pairs are many enough
MOST_OWNERS = 5000
ROWS = 500


def block_weights(
    owners: np.ndarray,
    entries: np.ndarray,
    residuals: np.ndarray,
    biases: np.ndarray,
    damping: float,
    blocks: list[np.ndarray],
) -> np.ndarray:
    """One weight per block, in units of the variance of the residuals.

    Parameters
    ----------
    owners, entries : int arrays
        One per rating.
    residuals : ndarray
        What the biases leave of the ratings.
    biases : ndarray
        Of the entries, damped by ``damping`` pseudo-counts.
    blocks : list of ndarray
        Features of the entries.
    """
    variance = float(np.mean(residuals**2))
    counts = np.bincount(entries, minlength=len(biases))
    chosen = np.sort(np.argsort(-counts, kind="stable")[:MOST_ENTRIES])
    rows = [block[chosen] for block in blocks]
    known = counts[chosen] / (counts[chosen] + damping)
    unknown = float(np.mean(damping / (counts[entries] + damping)))
    with one_blas_thread():
        common, products = _pairs(owners, entries, residuals, counts.size, chosen)
        weights = _variances(common, products / max(variance, 1e-12), rows)  # (1)
        spread = float(np.mean(biases[chosen] ** 2))
        both = np.outer(known, known)
        outer = np.outer(biases[chosen], biases[chosen]) / max(spread, 1e-12)
        of_bias = _variances(both**2, both * outer, rows)  # (2)
    return weights + unknown * spread / max(variance, 1e-12) * of_bias


def _pairs(
    owners: np.ndarray, entries: np.ndarray, residuals: np.ndarray, n: int, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each pair of entries, how many owners have both, and the sum of their products."""
    _, owner = np.unique(owners, return_inverse=True)
    step = 1 + int(owner.max()) // MOST_OWNERS
    shape = (int(owner.max()) + 1, n)
    r = sparse.csr_array((residuals, (owner, entries)), shape=shape)[::step][:, chosen]
    one = sparse.csr_array((np.ones(r.data.size), r.indices, r.indptr), shape=r.shape)
    return (one.T @ one).toarray(), (r.T @ r).toarray()


def _variances(common: np.ndarray, products: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """The weights of (1) from sums over owners; pairs of an entry with itself are left out."""
    from scipy.optimize import nnls  # takes long to import

    np.fill_diagonal(common, 0.0)
    np.fill_diagonal(products, 0.0)
    size = len(rows) + 1  # with the constant
    A, t = np.zeros((size, size)), np.zeros(size)
    for first in range(0, len(common), ROWS):
        part = slice(first, first + ROWS)
        kernels = [np.ones_like(common[part]), *(block[part] @ block.T for block in rows)]
        for a, kernel in enumerate(kernels):
            weighted = common[part] * kernel
            t[a] += np.vdot(products[part], kernel)
            A[a, : a + 1] += [np.vdot(weighted, other) for other in kernels[: a + 1]]
    A = np.tril(A) + np.tril(A, -1).T
    share = A[1:, 0] / max(A[0, 0], 1e-12)  # the constant may have any sign: it is eliminated
    left = A[1:, 1:] - np.outer(share, A[0, 1:]) + PRIOR_PAIRS * np.eye(len(rows))
    right = t[1:] - share * t[0] + PRIOR_PAIRS * PRIOR
    L = np.linalg.cholesky(left)
    return nnls(L.T, np.linalg.solve(L, right))[0]
