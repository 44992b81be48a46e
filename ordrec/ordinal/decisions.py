"""Turn a distribution over the ranks into one rank or one rating.

Which one is best depends on what an error costs: the mode makes the fewest errors (MZE), the
median has the smallest mean absolute error (MAE), the mean the smallest squared error.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from ordrec.errors import ArgumentError

__all__ = ["Decision", "decide", "expected_rank"]

Decision = Literal["mode", "median", "mean"] | np.ndarray


class HasValues(Protocol):
    """Anything with a value for each rank, lowest first, such as a `Scale` of ratings."""

    @property
    def values(self) -> np.ndarray:
        """The values."""


def decide(
    probabilities: np.ndarray,
    decision: Decision | str = "median",
    values: np.ndarray | HasValues | None = None,
) -> np.ndarray:
    """Return one rank, or one rating, for each row of probabilities.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_ranks)
        Rows sum to one.
    decision : {"mode", "median", "mean"} or ndarray of shape (n_ranks, n_ranks)
        The most probable rank, the lower of two equal ones; the lowest rank whose cumulative
        probability reaches one half; or the expected value. A matrix gives the cost of
        predicting the column's rank when the row's is true; the rank with the least expected
        cost wins.
    values : ndarray of shape (n_ranks,) or Scale, optional
        The rating of each rank, or a scale of ratings, whose ``values`` are these.

    Returns
    -------
    ndarray of shape (n,)
        Without ``values`` zero-based ranks; "mean" gives the rank nearest to the expected rank.
        With ``values`` ratings; "mean" gives the expected rating, which need not be one of
        ``values``.

    Examples
    --------
    >>> p = np.array([[0.4, 0.05, 0.25, 0.3]])
    >>> [int(decide(p, decision)[0]) for decision in ("mode", "median", "mean")]
    [0, 2, 1]
    >>> stars = np.array([1.0, 2.0, 3.0, 5.0])
    >>> [decide(p, decision, stars)[0].item() for decision in ("mode", "median", "mean")]
    [1.0, 3.0, 2.75]
    """
    if values is not None:
        values = np.asarray(getattr(values, "values", values))
        if isinstance(decision, str) and decision == "mean":
            return probabilities @ values
        return values[decide(probabilities, decision)]
    if isinstance(decision, str):
        if decision == "mode":
            return probabilities.argmax(axis=1)
        if decision == "median":
            # A tolerance, so that rounding errors do not move an exact half to the next rank.
            return (np.cumsum(probabilities, axis=1)[:, :-1] < 0.5 - 1e-12).sum(axis=1)
        if decision == "mean":
            return np.rint(expected_rank(probabilities)).astype(np.int64)
        raise ArgumentError(
            f'decision must be "mode", "median", "mean" or a cost matrix, got {decision!r}'
        )
    costs = np.asarray(decision, dtype=np.float64)
    n_ranks = probabilities.shape[1]
    if costs.shape != (n_ranks, n_ranks) or not np.isfinite(costs).all():
        raise ArgumentError(f"the cost matrix must be finite and of shape ({n_ranks}, {n_ranks})")
    return (probabilities @ costs).argmin(axis=1)


def expected_rank(probabilities: np.ndarray) -> np.ndarray:
    """Return the expected zero-based rank of each row."""
    return probabilities @ np.arange(probabilities.shape[1], dtype=np.float64)
