"""Rank the whole catalogue for test users and find the places of their test items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ordrec.evaluation.splits.base import Split

__all__ = ["catalogue_places", "ranked_users"]

PAIRS_AT_ONCE = 50_000  # few enough for a model's intermediate results to stay in the cache
AUTO_PAIRS, AUTO_USERS = 1_000_000, 100


def ranked_users(split: Split, wanted: int | Literal["auto", "all"], seed: int) -> np.ndarray:
    """Return the codes of the test users for whom the catalogue is ranked, ascending.

    Parameters
    ----------
    split : Split
    wanted : int, "auto" or "all"
        The largest number of users, drawn at random; "auto" takes as many as make a million
        pairs with the catalogue, but at least a hundred.
    seed : int
    """
    users = np.unique(split.test.users)
    if wanted == "all":
        return users
    affordable = max(AUTO_USERS, AUTO_PAIRS // len(split.test.item_ids))
    size = affordable if wanted == "auto" else wanted
    if size >= users.size:
        return users
    return np.sort(np.random.default_rng(seed).choice(users, size, replace=False))


def catalogue_places(
    score: Callable[[Any, Any], np.ndarray], split: Split, users: np.ndarray
) -> np.ndarray:
    """Return the place of each test rating's item in its user's ranking of the catalogue.

    Parameters
    ----------
    score : callable
        Takes the original ids of users and items, of equal length, and returns the numbers by
        which pairs are ranked. It is called with all items of one or more users at a time.
    split : Split
        Items that a user rated in training, or that are given for fold-in, are not in their
        list. Ties are broken in an order that is random but the same in every run.
    users : array of int
        Codes of the users to rank for.

    Returns
    -------
    ndarray of int
        One place per row of ``split.test``, counted from 1; 0 for the ratings of other users.
    """
    known, test = split.train_and_given(), split.test
    n_items = len(test.item_ids)
    shuffled = np.random.default_rng(0).permutation(n_items)
    places = np.zeros(test.n_ratings, dtype=np.int64)
    users_at_once = max(1, PAIRS_AT_ONCE // n_items)
    for first in range(0, users.size, users_at_once):
        block = users[first : first + users_at_once]
        user_ids = test.user_ids.take(np.repeat(block, n_items))
        item_ids = test.item_ids.take(np.tile(np.arange(n_items), block.size))
        scores = score(user_ids, item_ids).reshape(block.size, n_items)
        for user, row in zip(block.tolist(), scores, strict=True):
            row[known.items[known.rows_of_user(user)]] = -np.inf
            place = np.empty(n_items, dtype=np.int64)
            place[shuffled[np.argsort(-row[shuffled], kind="stable")]] = np.arange(1, n_items + 1)
            rows = test.rows_of_user(user)
            places[rows] = place[test.items[rows]]
    return places
