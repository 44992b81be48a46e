"""The largest singular values of a sparse matrix and their vectors, by random projection.

Halko, Martinsson, Tropp, "Finding structure with randomness", SIAM Review 2011: a few power steps
from random vectors give a basis of the leading subspace, and a small decomposition the rest.
`sklearn.utils.extmath.randomized_svd` gives the same numbers, but importing it takes as long as
fitting a small model.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse

__all__ = ["leading_svd"]

MORE = 10  # random vectors than singular values asked for


def leading_svd(
    A: sparse.csr_array, size: int, n_steps: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left vectors (columns), singular values and right vectors (rows), largest values first.

    Each left vector's entry of largest size is positive.

    Examples
    --------
    >>> A = sparse.csr_array(np.diag([3.0, 2.0, 1.0, 0.5]))
    >>> leading_svd(A, 2, n_steps=4)[1].round(6)
    array([3., 2.])
    """
    if A.shape[0] < A.shape[1]:
        right, values, left = _tall(sparse.csr_array(A.T), size, n_steps, seed)
        left, right = left.T, right.T
    else:
        left, values, right = _tall(A, size, n_steps, seed)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])])
    return (left * signs)[:, :size], values[:size], (right * signs[:, None])[:size]


def _tall(
    A: sparse.csr_array, size: int, n_steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The decomposition within the subspace that random vectors reach."""
    Q = np.random.RandomState(seed).normal(size=(A.shape[1], size + MORE))
    for _ in range(n_steps):
        Q, _ = linalg.lu(A @ Q, permute_l=True, check_finite=False)
        Q, _ = linalg.lu(A.T @ Q, permute_l=True, check_finite=False)
    Q, _ = linalg.qr(A @ Q, mode="economic", check_finite=False)
    U, values, right = linalg.svd(Q.T @ A, full_matrices=False, lapack_driver="gesdd")
    return Q @ U, values, right
