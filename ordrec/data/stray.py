"""Find ratings that are typing errors rather than levels of the scale: a 55 among 1..5.

An inferred scale would stretch to hold them. Two kinds are found, if they are few:

* far away: beyond the other values, seen from zero, by more than four times their range; by more
  than once their range among many ratings, where values in between would have been given too. A
  rare 10 among 1..9, or a 1 among 7..10, is not far away;
* between: off the short regular grid of all others, so that a fine scale, or none that is regular,
  would hold it too (a 4.55 among half stars; a rare 4.5 among 1..5 makes half stars). Steps of
  more than 1 are taken for habits on a fine scale: 37 among 10, 20, ..., 100 is right.
"""

from __future__ import annotations

import numpy as np

from ordrec.data.grid import FINE, grid_positions

__all__ = ["stray_value"]

FEWEST_OTHERS = 10  # ratings, of at least FEWEST_VALUES values, that can show what is usual
FEWEST_VALUES = 3
MANY_RATINGS = 1000
STRAYS_PER_RATING = 1 / 1000
LONGEST_USUAL_SCALE = 21  # 0..100 in steps of five


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
    return _between(distinct, counts, at_most) if far is None else far


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
