"""Compiled squared distances."""

from __future__ import annotations

import numpy as np

from ordrec.runtime.compiling import compiled


def pairwise_squares(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Squared distances, summed difference by difference: no cancellation, zero for equal rows."""
    D = np.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype)
    _accumulate(X, np.ascontiguousarray(Y.T), D)
    return D


@compiled
def _accumulate(X: np.ndarray, Yt: np.ndarray, D: np.ndarray) -> None:
    # feature by feature along a row, so that the inner loop runs over contiguous memory
    for i in range(X.shape[0]):
        for v in range(X.shape[1]):
            x = X[i, v]
            for j in range(D.shape[1]):
                difference = x - Yt[v, j]
                D[i, j] += difference * difference
