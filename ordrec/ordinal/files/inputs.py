"""Training rows, dense or sparse, as arrays of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.storage import take, take_rows

__all__ = ["inputs_from_arrays", "inputs_to_arrays"]


def inputs_to_arrays(name: str, inputs: Any) -> dict[str, np.ndarray]:
    """Turn rows into one array, or a sparse matrix into three."""
    if not sparse.issparse(inputs):
        return {name: inputs}
    thin = inputs.tocsr().copy()
    thin.sum_duplicates()
    return {
        f"{name}.data": thin.data,
        f"{name}.columns": thin.indices.astype(np.int64),
        f"{name}.start": thin.indptr.astype(np.int64),
    }


def inputs_from_arrays(name: str, arrays: Mapping[str, np.ndarray], n: int, d: int) -> Any:
    """Return the n rows of d features that `inputs_to_arrays` stored."""
    if name in arrays:
        return take(arrays, name, np.float64, (n, d))
    start, columns = take_rows(arrays, f"{name}.start", f"{name}.columns", n, d)
    data = take(arrays, f"{name}.data", np.float64, columns.shape)
    return sparse.csr_array((data, columns, start), shape=(n, d))
