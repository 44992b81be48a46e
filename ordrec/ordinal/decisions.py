"""From a distribution over the ranks to one rank.

Which rank is best depends on what a mistake costs: the mode makes fewest mistakes (MZE),
the median the smallest mean absolute error (MAE), the mean the smallest squared error.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

__all__ = ["Decision", "decide", "expected_rank"]

Decision = Literal["mode", "median", "mean"] | np.ndarray


def decide(probabilities: np.ndarray, decision: Decision = "median") -> np.ndarray:
    """Zero-based rank for each row of probabilities.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_ranks)
        Rows sum to one.
    decision : {"mode", "median", "mean"} or ndarray of shape (n_ranks, n_ranks)
        "mean" is the rank nearest to the expected rank. A matrix gives the cost of
        predicting the column's rank when the row's is true; the least expected cost wins.

    Examples
    --------
    >>> p = np.array([[0.4, 0.05, 0.25, 0.3]])
    >>> [int(decide(p, how)[0]) for how in ("mode", "median", "mean")]
    [0, 2, 1]
    """
    if isinstance(decision, str):
        if decision == "mode":
            return probabilities.argmax(axis=1)
        if decision == "median":
            # A tolerance, so that rounding errors do not move an exact half to the next rank.
            return (np.cumsum(probabilities, axis=1)[:, :-1] < 0.5 - 1e-12).sum(axis=1)
        if decision == "mean":
            return np.rint(expected_rank(probabilities)).astype(np.int64)
        raise ValueError(
            f'decision must be "mode", "median", "mean" or a cost matrix, got {decision!r}'
        )
    costs = np.asarray(decision, dtype=np.float64)
    n_ranks = probabilities.shape[1]
    if costs.shape != (n_ranks, n_ranks) or not np.isfinite(costs).all():
        raise ValueError(f"the cost matrix must be finite and of shape ({n_ranks}, {n_ranks})")
    return (probabilities @ costs).argmin(axis=1)


def expected_rank(probabilities: np.ndarray) -> np.ndarray:
    """Expected zero-based rank of each row."""
    return probabilities @ np.arange(probabilities.shape[1], dtype=np.float64)
