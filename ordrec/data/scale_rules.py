"""The rules by which a scale is found in ratings: grids, bins and stray values.

Grids. Values that are whole steps apart lie on a regular grid, whose unused values are levels too.

Bins. Of all divisions of many values into at most `MOST_BINS` intervals, the one with the most
equal numbers of ratings (least sum of their squares) is taken. A value is never divided. A value
that is given often (0, 50, 100) has a bin of its own, since every neighbour that joins it makes the
numbers less equal. No bin has fewer than `LEAST_SHARE` of the ratings of an average bin, so that a
stray value is no bin.

Stray values. An inferred scale would stretch to hold a typing error such as a 55 among 1..5. Three
kinds are found, if they are few:

* far away: beyond the other values, seen from zero, by more than four times their range; by more
  than once their range among many ratings, where values in between would have been given too. A
  rare 10 among 1..9, or a 1 among 7..10, is not far away;
* between: off the short regular grid of all others, so that a fine scale, or none that is regular,
  would hold it too (a 4.55 among half stars; a rare 4.5 among 1..5 makes half stars). Steps of
  more than 1 are taken for habits on a fine scale: 37 among 10, 20, ..., 100 is right;
* beyond a usual scale: a handful of 0, 6 or -1 among thousands of ratings which have all values of
  1..5 (or 1..7, 1..10, half stars) and no others.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "FINE",
    "LEAST_SHARE",
    "MAX_LEVELS",
    "MOST_BINS",
    "bin_starts",
    "cut_between",
    "grid_positions",
    "stray_value",
    "zero_means_none",
]

FINE = 60  # ratings with more levels than this are put into bins
MAX_LEVELS = int(np.iinfo(np.int16).max)  # levels are int16

MOST_BINS = 10
LEAST_SHARE = 0.1  # of the ratings of an average bin
MOST_GROUPS = 500  # more distinct values than these are grouped before they are divided

FREQUENT = 0.1  # share of zeros that may mean "no rating"
MORE_OFTEN = 5.0  # than the next value, where that is near

FEWEST_OTHERS = 10  # ratings, of at least FEWEST_VALUES values, that can show what is usual
FEWEST_VALUES = 3
MANY_RATINGS = 1000
STRAYS_PER_RATING = 1 / 1000
HANDFUL = 5
HANDFUL_PER_RATING = 1 / 10_000
USUAL_SCALES = (
    np.arange(1.0, 6),
    np.arange(0.5, 5.5, 0.5),
    np.arange(1.0, 5.5, 0.5),
    np.arange(1.0, 8),
    np.arange(1.0, 11),
)
LONGEST_USUAL_SCALE = 21  # 0..100 in steps of five


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


# ---- bins ----------------------------------------------------------------------------------------


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


# ---- zeros ---------------------------------------------------------------------------------------


def zero_means_none(distinct: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether zeros look like missing ratings: frequent, and apart from all other values.

    They are apart if more than a step of the others is missing, or if the next value is rare.

    Examples
    --------
    >>> zero_means_none(np.array([0, 1, 2, 3, 4, 5]), np.array([600, 4, 8, 40, 90, 80]))
    True
    >>> zero_means_none(np.array([0, 1, 2, 3, 4, 5]), np.array([90, 80, 70, 60, 50, 40]))
    False
    """
    if distinct.size < FEWEST_VALUES + 1 or distinct[0] != 0 or counts[0] < FREQUENT * counts.sum():
        return False
    gap = distinct[1] > 1.5 * np.diff(distinct[1:]).min()
    return bool(gap or counts[0] > MORE_OFTEN * counts[1])


# ---- stray values --------------------------------------------------------------------------------


def stray_value(distinct: np.ndarray, counts: np.ndarray) -> float | None:
    """Return a value that cannot belong to the scale of the others, or None.

    Parameters
    ----------
    distinct : array of float, ascending
    counts : array of int
        How often each value occurs.

    Examples
    --------
    >>> stray_value(np.array([1, 2, 3, 4, 5, 55]), np.array([3, 8, 9, 9, 5, 1]))
    55.0
    >>> stray_value(np.array([1, 7, 8, 9, 10]), np.array([1, 8, 9, 9, 5]))
    """
    n = int(counts.sum())
    at_most = max(2, int(n * STRAYS_PER_RATING))
    if distinct.size < FEWEST_VALUES + 1 or not (np.abs(distinct) < np.inf).all():
        return None
    far = _far_away(distinct, counts, n, at_most)
    if far is not None:
        return far
    between = _between(distinct, counts, at_most)
    return _beyond_usual(distinct, counts, n) if between is None else between


def _far_away(distinct: np.ndarray, counts: np.ndarray, n: int, at_most: int) -> float | None:
    from_below, from_above = np.cumsum(counts), np.cumsum(counts[::-1])[::-1]
    usual = np.flatnonzero((from_below > at_most) & (from_above > at_most))
    if usual.size < FEWEST_VALUES or n - at_most < FEWEST_OTHERS:
        return None
    if n < 2 * distinct.size and n < 100:  # hardly any value is given twice
        return None
    low, high = distinct[usual[0]], distinct[usual[-1]]
    factor = 1.0 if n >= MANY_RATINGS else 4.0
    for value in distinct[usual[-1] + 1 :]:
        if value > 0 and value - high > factor * (high - low):
            return float(value)
        high = value
    for value in distinct[: usual[0]][::-1]:
        if value < 0 and low - value > factor * (high - low):
            return float(value)
        low = value
    return None


def _between(distinct: np.ndarray, counts: np.ndarray, at_most: int) -> float | None:
    is_usual = counts > at_most
    usual = distinct[is_usual]
    if usual.size < FEWEST_VALUES or is_usual.all() or np.diff(usual).min() > 1:
        return None
    short, long = grid_positions(usual), grid_positions(distinct)
    if short is None or short[-1] >= LONGEST_USUAL_SCALE or (long is not None and long[-1] < FINE):
        return None
    steps = (distinct - usual[0]) / np.diff(usual).min()
    off = np.abs(steps - np.round(steps)) > 1e-6
    return float(distinct[off][0]) if off.any() and counts[off].sum() <= at_most else None


def _beyond_usual(distinct: np.ndarray, counts: np.ndarray, n: int) -> float | None:
    at_most = max(HANDFUL, int(n * HANDFUL_PER_RATING))
    if n < MANY_RATINGS:
        return None
    for scale in USUAL_SCALES:
        outside = (distinct < scale[0]) | (distinct > scale[-1])
        if 0 < counts[outside].sum() <= at_most and np.array_equal(distinct[~outside], scale):
            return float(distinct[outside][0])
    return None
