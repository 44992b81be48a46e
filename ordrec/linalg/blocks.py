"""Blocks of symmetric matrices, for the factors of `lapack`."""

from __future__ import annotations

import numpy as np

from ordrec.runtime.compiling import compiled

__all__ = ["upper_block"]


def upper_block(K: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The upper triangle of K over some rows and columns; what lies below it is not written.

    Examples
    --------
    >>> K = np.arange(9.0).reshape(3, 3)
    >>> np.triu(upper_block(K, np.array([0, 2]))).tolist()
    [[0.0, 2.0], [0.0, 8.0]]
    """
    block = np.empty((rows.size, rows.size), dtype=K.dtype)
    _write_upper(K, rows, block)
    return block


@compiled
def _write_upper(K: np.ndarray, rows: np.ndarray, block: np.ndarray) -> None:
    """Write the upper triangle into the block."""
    for i in range(rows.size):
        for k in range(i, rows.size):
            block[i, k] = K[rows[i], rows[k]]
