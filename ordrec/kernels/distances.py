"""Products and squared distances of rows, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ordrec.errors import ArgumentError
from ordrec.runtime.compiling import compiled

__all__ = ["dense", "products", "squared_distances", "squared_norms", "with_scaled_columns"]

WIDE = 48  # columns above which a matrix product beats the exact loop


def products(X: Any, Y: Any = None) -> np.ndarray:
    """All inner products of rows, as a dense array."""
    product = X @ (X if Y is None else Y).T
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


def squared_distances(X: Any, Y: Any = None) -> np.ndarray:
    """All squared Euclidean distances of rows, as a dense array.

    Few columns are summed one by one, exactly; the expansion |x|^2 + |y|^2 - 2 xy is used
    only for many columns or sparse rows, in double precision and (dense rows) centred,
    because it cancels for far outliers.
    """
    other = X if Y is None else Y
    if sparse.issparse(X) or sparse.issparse(other):
        return _expanded(X, other, same=Y is None)
    if X.shape[1] > WIDE:
        centre = X.mean(axis=0, dtype=np.float64)
        A = X - centre
        return _expanded(A, A if Y is None else Y - centre, same=Y is None)
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    A = np.ascontiguousarray(X, dtype=dtype)
    B = A if Y is None else np.ascontiguousarray(other, dtype=dtype)
    D = np.zeros((A.shape[0], B.shape[0]), dtype=dtype)
    _add_squares(A, np.ascontiguousarray(B.T), D)
    return D


@compiled
def _add_squares(X: np.ndarray, Yt: np.ndarray, D: np.ndarray) -> None:
    """Add the squares difference by difference: nothing cancels, and equal rows give zero."""
    # feature by feature along a row, so that the inner loop runs over contiguous memory
    for i in range(X.shape[0]):
        for v in range(X.shape[1]):
            x = X[i, v]
            for j in range(D.shape[1]):
                difference = x - Yt[v, j]
                D[i, j] += difference * difference


def _expanded(X: Any, Y: Any, same: bool) -> np.ndarray:
    D = products(X, None if same else Y).astype(np.float64, copy=False)
    D *= -2.0
    D += squared_norms(X)[:, None]
    D += squared_norms(Y)
    np.maximum(D, 0.0, out=D)
    if same:
        np.fill_diagonal(D, 0.0)
    return D


def squared_norms(X: Any) -> np.ndarray:
    """The squared Euclidean norm of each row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def with_scaled_columns(X: Any, scale: np.ndarray) -> Any:
    """X with each column multiplied by its scale."""
    if X.shape[1] != scale.size:
        raise ArgumentError(f"the kernel has {scale.size} weights, X has {X.shape[1]} features")
    return X.multiply(scale).tocsr() if sparse.issparse(X) else X * scale


def dense(X: Any) -> np.ndarray:
    """X as an ordinary array."""
    return X.toarray() if sparse.issparse(X) else np.asarray(X)
