"""Large arrays of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["zeros"]


def zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Zeros for an array that is filled nearly everywhere.

    `numpy.zeros` leaves the memory to be found page by page of 4 kB, on first use: for 2 GB that
    took several seconds, where filling an empty array, for which numpy asks for large pages, took
    half a second.

    Examples
    --------
    >>> zeros((1, 2))
    array([[0., 0.]])
    """
    result = np.empty(shape, dtype)
    result.fill(0)
    return result
