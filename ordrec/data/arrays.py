"""Arrays that cannot be written to, and rows grouped by code."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["frozen", "grouped"]


def frozen(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A read-only view of an array, converted if need be."""
    array = np.ascontiguousarray(array, dtype=dtype).view()
    array.setflags(write=False)
    return array


def grouped(codes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers sorted by code, and where each code starts among them (as in a CSR matrix)."""
    start = np.concatenate([[0], np.cumsum(counts)])
    return np.argsort(codes, kind="stable"), start
