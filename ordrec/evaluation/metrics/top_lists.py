"""Metrics of the lists themselves: what they show, how new and how varied it is, what they promise.

Each function takes `TopLists` and the number ``k`` of places to look at.
"""

from __future__ import annotations

import numpy as np

from ordrec.data import Ratings
from ordrec.evaluation.metrics.outcome import TopLists, UserSums

__all__ = [
    "coverage",
    "diversity_sums",
    "gini",
    "long_tail_sums",
    "novelty_sums",
    "pick_calibration_sums",
    "popularity_sums",
    "short_head",
]

HEAD = 0.2  # share of the ratings that the most rated items have together


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


def popularity_sums(lists: TopLists, k: int) -> UserSums:
    """Return the training ratings of each user's first ``k`` items, and the number of items.

    Examples
    --------
    >>> lists = TopLists(np.array([0]), np.array([[0, 1, -1]]), np.array([8, 4]), 16)
    >>> popularity_sums(lists, 3).sums.tolist(), popularity_sums(lists, 3).counts.tolist()
    ([12.0], [2.0])
    """
    items = lists.items[:, :k]
    there = items >= 0
    counts = np.where(there, lists.item_counts[items], 0)
    return UserSums(lists.users, counts.sum(axis=1) * 1.0, there.sum(axis=1) * 1.0)


def short_head(item_counts: np.ndarray) -> np.ndarray:
    """Return which items are the most rated ones that have a fifth of all ratings together.

    The item that crosses the fifth is one of them; so are items rated as often as it.

    Examples
    --------
    >>> short_head(np.array([1, 30, 9, 60])).tolist()
    [False, False, False, True]
    """
    by_count = np.sort(item_counts)[::-1]
    before = np.cumsum(by_count) - by_count
    last = by_count[np.flatnonzero(before < HEAD * by_count.sum())[-1]] if by_count.any() else 1
    return item_counts >= last


def long_tail_sums(lists: TopLists, k: int) -> UserSums:
    """Return how many of each user's first ``k`` items are outside the short head, of how many.

    Examples
    --------
    >>> lists = TopLists(np.array([0]), np.array([[3, 1]]), np.array([1, 30, 9, 60]), 60)
    >>> long_tail_sums(lists, 2).sums.tolist()
    [1.0]
    """
    items = lists.items[:, :k]
    there = items >= 0
    tail = ~short_head(lists.item_counts)
    return UserSums(lists.users, (there & tail[items]).sum(axis=1) * 1.0, there.sum(axis=1) * 1.0)


def diversity_sums(lists: TopLists, k: int) -> UserSums:
    """Return the diversity of each user's first ``k`` items: one minus their mean cosine.

    The mean is over all pairs of two items of a list; a list of one item has none. An item without
    features has cosine 0 with every other.

    Examples
    --------
    >>> features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> lists = TopLists(np.array([0]), np.array([[0, 1, 2]]), np.array([3, 2, 1]), 9,
    ...                  item_features=features)
    >>> print(round(diversity_sums(lists, 3).sums[0], 4))
    0.6667
    """
    assert lists.item_features is not None
    lengths = np.sqrt((lists.item_features**2).sum(axis=1, keepdims=True))
    unit = np.divide(
        lists.item_features, lengths, out=np.zeros_like(lists.item_features), where=lengths > 0
    )
    items = lists.items[:, :k]
    n_listed = (items >= 0).sum(axis=1)
    diverse = np.zeros(items.shape[0])
    for row, mine in enumerate(items):
        rows = unit[mine[mine >= 0]]
        n_pairs = n_listed[row] * (n_listed[row] - 1)
        if n_pairs:  # the sum of all cosines without those of items with themselves
            cosines = (rows.sum(axis=0) ** 2).sum() - (rows**2).sum()
            diverse[row] = 1.0 - cosines / n_pairs
    return UserSums(lists.users, diverse, (n_listed > 1) * 1.0)


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
