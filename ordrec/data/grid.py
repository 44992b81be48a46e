"""Regular grids: whether rating values are whole steps apart."""

from __future__ import annotations

import numpy as np

__all__ = ["FINE", "MAX_LEVELS", "grid_positions"]

FINE = 60  # ratings with more levels than this are put into bins
MAX_LEVELS = int(np.iinfo(np.int16).max)  # levels are int16


def grid_positions(distinct: np.ndarray) -> np.ndarray | None:
    """Return how many least steps each ascending value is above the first; None if not whole.

    Examples
    --------
    >>> grid_positions(np.array([0.5, 1.0, 2.5]))
    array([0, 1, 4])
    """
    with np.errstate(over="ignore"):  # values that overflow are on no grid
        steps = np.diff(distinct) / np.diff(distinct).min()
    if steps.max() >= MAX_LEVELS or not np.allclose(steps, np.round(steps), atol=1e-6):
        return None
    return np.round(np.concatenate([[0], np.cumsum(steps)])).astype(np.int64)
