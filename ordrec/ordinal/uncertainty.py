"""How sure a distribution over the ranks is: intervals that hold most of it, and its spread."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ordrec.errors import ArgumentError

__all__ = ["SPREADS", "Spread", "check_coverage", "shortest_interval", "spread"]

Spread = Literal["deviation", "absolute", "entropy", "doubt"]
SPREADS: tuple[Spread, ...] = ("deviation", "absolute", "entropy", "doubt")
ROUNDING = 1e-12  # by which sums of probabilities may fall short


def check_coverage(coverage: float) -> float:
    """Return a coverage if it lies between 0 and 1."""
    if not 0 < coverage < 1:
        raise ArgumentError(f"coverage must lie between 0 and 1, such as 0.9, got {coverage!r}")
    return float(coverage)


def shortest_interval(probabilities: np.ndarray, coverage: float) -> np.ndarray:
    """Return the shortest runs of ranks that have at least the probability ``coverage``.

    Of several, the most probable one is chosen, the lowest of equally probable ones.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_ranks)
    coverage : float

    Returns
    -------
    ndarray of int, shape (n, 2)
        First and last rank, zero-based, both included.

    Examples
    --------
    >>> p = np.array([[0.05, 0.15, 0.5, 0.3], [0.5, 0.0, 0.0, 0.5]])
    >>> shortest_interval(p, 0.75).tolist()
    [[2, 3], [0, 3]]
    """
    check_coverage(coverage)
    n, n_ranks = probabilities.shape
    below = np.hstack([np.zeros((n, 1)), np.cumsum(probabilities, axis=1)])
    found = np.zeros((n, 2), dtype=np.int64)
    found[:, 1] = n_ranks - 1
    open_rows = np.arange(n)
    for length in range(1, n_ranks):
        held = below[open_rows, length:] - below[open_rows, :-length]
        best = (held - ROUNDING * np.arange(held.shape[1])).argmax(axis=1)
        enough = held[np.arange(open_rows.size), best] >= coverage - ROUNDING
        found[open_rows[enough], 0] = best[enough]
        found[open_rows[enough], 1] = best[enough] + length - 1
        open_rows = open_rows[~enough]
    return found


def spread(
    probabilities: np.ndarray, values: np.ndarray, measure: Spread = "deviation"
) -> np.ndarray:
    """Return how uncertain each distribution is, by one of the usual measures.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_ranks)
    values : ndarray of shape (n_ranks,)
        The rating of each rank, such as ``scale.values``.
    measure : {"deviation", "absolute", "entropy", "doubt"}
        The standard deviation; the expected absolute distance from the mean; the entropy in
        nats; or the probability that the most probable rank is wrong.

    Examples
    --------
    >>> p, stars = np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    >>> [spread(p, stars, measure).round(2).tolist() for measure in SPREADS]
    [[1.0, 0.0], [1.0, 0.0], [0.69, 0.0], [0.5, 0.0]]
    """
    if measure not in SPREADS:
        raise ArgumentError(f"measure must be one of {', '.join(SPREADS)}, got {measure!r}")
    if measure == "entropy":
        logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
        return np.abs(-(probabilities * logs).sum(axis=1))
    if measure == "doubt":
        return 1.0 - probabilities.max(axis=1)
    away = np.abs(values - (probabilities @ values)[:, None])
    if measure == "absolute":
        return (probabilities * away).sum(axis=1)
    return np.sqrt((probabilities * away**2).sum(axis=1))
