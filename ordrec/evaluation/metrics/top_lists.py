"""Metrics of the lists themselves: how many items they show, how new they are, what they promise.

Each function takes `TopLists` and the number ``k`` of places to look at.
"""

from __future__ import annotations

import numpy as np

from ordrec.data import Ratings
from ordrec.evaluation.metrics.outcome import TopLists, UserSums

__all__ = ["coverage", "gini", "novelty_sums", "pick_calibration_sums"]


def coverage(lists: TopLists, k: int) -> float:
    """Return the share of the catalogue's items that are among anybody's first ``k``.

    Examples
    --------
    >>> lists = TopLists(np.array([0, 1]), np.array([[0, 1], [0, 3]]), np.array([9, 9, 9, 9]), 9)
    >>> coverage(lists, 1), coverage(lists, 2)
    (0.25, 0.75)
    """
    return float((_listed_counts(lists, k) > 0).mean())


def gini(lists: TopLists, k: int) -> float:
    """Return the Gini coefficient of how often the catalogue's items are listed.

    ``sum_j (2 j - n - 1) c_j / (n sum_j c_j)`` for the numbers ``c_1 <= ... <= c_n`` of lists
    that have each item among the first ``k``: 0 if all items are listed equally often, near 1 if
    all lists are the same few items.

    Examples
    --------
    >>> lists = TopLists(np.array([0, 1]), np.array([[0], [0]]), np.array([9, 9, 9, 9]), 9)
    >>> gini(lists, 1)
    0.75
    """
    counts = np.sort(_listed_counts(lists, k))
    if not counts.any():
        return float("nan")
    n = counts.size
    return float((2.0 * np.arange(1, n + 1) - n - 1.0) @ counts / (n * counts.sum()))


def novelty_sums(lists: TopLists, k: int) -> UserSums:
    """Return the novelty of each user's first ``k`` items, and their number.

    The novelty of an item is ``-log2`` of the share of training users who rated it. An item that
    nobody rated counts as one that a single user rated.

    Examples
    --------
    >>> lists = TopLists(np.array([0]), np.array([[0, 1]]), np.array([8, 4]), 16)
    >>> novelty_sums(lists, 2).sums.tolist()
    [3.0]
    """
    items = lists.items[:, :k]
    share = np.maximum(lists.item_counts, 1) / max(lists.n_training_users, 1)
    there = items >= 0
    novelty = np.where(there, -np.log2(share[items]), 0.0)
    return UserSums(lists.users, novelty.sum(axis=1), there.sum(axis=1) * 1.0)


def pick_calibration_sums(lists: TopLists, test: Ratings, k: int) -> UserSums:
    """Return, for each user, the number of hits the model expects in its first ``k`` places.

    The second column is the number of hits there are: items of the list in the test part. Pooled
    over users, the ratio of the two is 1 for a model whose probabilities are calibrated.
    """
    assert lists.own_items is not None
    assert lists.p_pick is not None
    items, n_items = lists.own_items[:, :k], test.n_items
    picked = np.isin(
        lists.users[:, None].astype(np.int64) * n_items + items,
        test.users.astype(np.int64) * n_items + test.items,
    )
    hits = (picked & (items >= 0)).sum(axis=1)
    return UserSums(lists.users, lists.p_pick[:, :k].sum(axis=1), hits * 1.0)


def _listed_counts(lists: TopLists, k: int) -> np.ndarray:
    items = lists.items[:, :k]
    return np.bincount(items[items >= 0], minlength=lists.item_counts.size)
