"""How good scores are, measured inside the training part, and the parameters chosen by it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy import sparse

from ordrec.recommend.lists import rank_gains

__all__ = ["best_on_a_grid_of_twos", "left_out_quality", "list_quality", "within_errors"]

DEPTH = 200  # places at which a left-out item still counts
SMALLEST, LARGEST = 1.0, 1e6  # regularizations


def best_on_a_grid_of_twos(quality: Callable[[float], float], start: float) -> tuple[float, dict]:
    """Climb on ``start * 2^k`` until neither neighbour is better; the grid has no edge.

    Returns the best value, and the quality of each value that was tried.

    Examples
    --------
    >>> best_on_a_grid_of_twos(lambda value: -abs(value - 30.0), 200.0)[0]
    25.0
    """
    tried: dict[float, float] = {}

    def of(value: float) -> float:
        if value not in tried:
            tried[value] = quality(value)
        return tried[value]

    best = start
    while SMALLEST < best < LARGEST:
        better = max((best, best / 2, best * 2), key=of)
        if better == best:
            break
        best = better
    return best, tried


def within_errors(
    values: dict[tuple[float, float], np.ndarray],
    usual: tuple[float, float],
    n_splits: int,
    n_errors: float,
) -> tuple[float, float]:
    """Choose the setting with the best mean, or the usual one if that is within some errors.

    ``values`` has one number per user and split for each setting. The error is the standard error
    of the paired difference over users; splits of the same users count as one.

    Examples
    --------
    >>> values = {(1.0, 0.0): np.array([0.5, 0.4, 0.3]), (2.0, 0.0): np.array([0.8, 0.1, 0.5])}
    >>> within_errors(values, (1.0, 0.0), n_splits=1, n_errors=2.0)
    (1.0, 0.0)
    """
    base = values[usual]
    best = max(values, key=lambda setting: float(values[setting].mean()))
    difference = values[best] - base
    error = difference.std() / np.sqrt(max(difference.size / n_splits, 1.0))
    return best if difference.mean() > n_errors * error else usual


def left_out_quality(scores: np.ndarray, history: sparse.csr_array, n_ranks: int) -> np.ndarray:
    """Return the mean discount of each user's own items, by left-out scores.

    An item's place is counted among the items that the user has not rated, its discount is
    ``1 / log2(place + 1)`` down to place 200 and 0 below; items are weighted by their gains.
    """
    gains = rank_gains(n_ranks)[np.rint(history.data * n_ranks).astype(np.int64) - 1]
    result = np.empty(history.shape[0])
    _mean_discounts(scores, history.indptr, history.indices, gains, DEPTH, result)
    return result


@njit(cache=True, nogil=True)
def _mean_discounts(scores, start, items, gains, depth, result):  # type: ignore[no-untyped-def]
    for row in range(start.size - 1):
        seen = np.zeros(scores.shape[1], np.bool_)
        for at in range(start[row], start[row + 1]):
            seen[items[at]] = True
        others = np.sort(scores[row][~seen])
        total, reached = 0.0, 0.0
        for at in range(start[row], start[row + 1]):
            score = scores[row, items[at]]
            place = others.size - np.searchsorted(others, score) + 1
            total += gains[at]
            if place <= depth:
                reached += gains[at] / np.log2(place + 1.0)
        result[row] = reached / total if total > 0.0 else 0.0


def list_quality(lists: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Return the NDCG of lists, one number per row.

    Parameters
    ----------
    lists : int array of shape (n_rows, k)
        Columns of ``gains``, best first; -1 where there is none.
    gains : array of shape (n_rows, n_items)
        Gains of the picks set aside, at least one per row, and 0.

    Examples
    --------
    >>> list_quality(np.array([[2, 0]]), np.array([[1.0, 0.0, 3.0]]))
    array([1.])
    """
    k = lists.shape[1]
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    reached = np.take_along_axis(gains, np.maximum(lists, 0), axis=1) * (lists >= 0)
    best = np.sort(np.partition(gains, gains.shape[1] - k, axis=1)[:, -k:], axis=1)[:, ::-1]
    return (reached @ discount) / (best @ discount)
