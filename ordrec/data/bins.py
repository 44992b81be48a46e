"""Bins for ratings of many values, such as 0..100 or real numbers.

The rule: of all divisions into at most ``MOST_BINS`` intervals, take the one with the most equal
numbers of ratings (least sum of their squares). A value is never divided. A value that is given
often (0, 50, 100) has a bin of its own, since every neighbour that joins it makes the numbers less
equal. No bin has fewer than ``LEAST_SHARE`` of the ratings of an average bin, so that a stray
value is no bin.
"""

from __future__ import annotations

import numpy as np

__all__ = ["MOST_BINS", "bin_starts", "cut_between"]

MOST_BINS = 10
LEAST_SHARE = 0.1  # of the ratings of an average bin
MOST_GROUPS = 500  # more distinct values than these are grouped before they are divided


def bin_starts(counts: np.ndarray, most: int = MOST_BINS) -> np.ndarray:
    """Divide distinct values, in ascending order, into bins, and return where each bin starts.

    Parameters
    ----------
    counts : array of int
        How often each value occurs.
    most : int
        Number of bins at most; fewer if there are fewer values, or if a bin would have too few
        ratings.

    Examples
    --------
    >>> bin_starts(np.array([5, 90, 4, 6, 80, 3, 2]), most=4)
    array([0, 1, 2, 4])
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.size > MOST_GROUPS:
        middle = (np.cumsum(counts) - counts / 2) / counts.sum()
        group = np.floor(middle * MOST_GROUPS)
        first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        return first[bin_starts(np.add.reduceat(counts, first), most)]
    least = LEAST_SHARE * counts.sum() / most
    starts = _most_equal(counts, most, least)
    # So few ratings outside one value that they make no bin of the least size.
    return starts if starts.size > 1 else _most_equal(counts, 2, 0.0)


def _most_equal(counts: np.ndarray, most: int, least: float) -> np.ndarray:
    """Starts of the bins with the least sum of squared numbers, by dynamic programming."""
    before = np.concatenate([[0.0], np.cumsum(counts)])
    within = before[None, :] - before[:, None]  # ratings of the values i..j-1
    cost = np.where((within >= least) & (within > 0), within**2, np.inf)
    best = np.full(before.size, np.inf)  # of the first j values in the bins so far
    best[0] = 0.0
    last_starts = []
    for _ in range(min(most, counts.size)):
        total = best[:, None] + cost
        if not np.isfinite(total[:, -1]).any():
            break
        last_starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    starts, stop = [], counts.size
    for last_start in reversed(last_starts):
        stop = int(last_start[stop])
        starts.append(stop)
    return np.array(starts[::-1])


def cut_between(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return numbers halfway between two, such that ``lower <= cut < upper`` holds exactly."""
    halfway = lower / 2 + upper / 2
    return np.where((lower <= halfway) & (halfway < upper), halfway, lower)
