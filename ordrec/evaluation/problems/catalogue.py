"""Rank the whole catalogue for test users and find the places of their test items.

A model with ``scores_block(users)``, which returns the scores of all its items for several users,
is asked for blocks of users; any other model is asked for pairs of a user and an item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.errors import DataError
from ordrec.evaluation.splits.base import Split
from ordrec.lists.filters import CELLS_AT_ONCE
from ordrec.models.base import codes_of

__all__ = [
    "CatalogueRanking",
    "CatalogueScores",
    "affordable_users",
    "catalogue_ranking",
    "pick_lists",
    "ranked_users",
    "scores_from_blocks",
    "scores_from_pairs",
]

VALUES_AT_ONCE = 2_500_000  # many, as neighbours of an item are looked for once in each call
AUTO_PAIRS, AUTO_USERS = 10_000_000, 100
UNLISTED = 1 << 40  # the place of an item that is in no list: so late that it adds nothing


@dataclass(frozen=True)
class CatalogueScores:
    """Scores of all items of a split for users by code.

    Attributes
    ----------
    of_users : callable
        Takes codes of users and returns an array of shape (n_users, n_items), which the caller
        may change.
    users_at_once : int
        How many users to ask for in one call.
    """

    of_users: Callable[[np.ndarray], np.ndarray]
    users_at_once: int


@dataclass(frozen=True, eq=False)
class CatalogueRanking:
    """The result of `catalogue_ranking`.

    Attributes
    ----------
    places : ndarray of int
        One place per row of ``split.test``, counted from 1; 0 for users who were not ranked, and
        `UNLISTED` for items with a score of minus infinity.
    users : ndarray of int
        Codes of the users who were ranked.
    items : ndarray of shape (n_users, list_length)
        Codes of the first items of each of these users' lists; -1 where there are no more.
    cold_places : ndarray of int
        Places of test items without training ratings among all such items; 0 for other items.
    """

    places: np.ndarray
    users: np.ndarray
    items: np.ndarray
    cold_places: np.ndarray


def affordable_users(ratings: Ratings) -> int | Literal["all"]:
    """Return for how many users models can be asked about every item: "all" if for all of them.

    These are as many as make ten million pairs of a user and an item, but at least a hundred.
    """
    affordable = max(AUTO_USERS, AUTO_PAIRS // len(ratings.item_ids))
    return "all" if len(ratings.user_ids) <= affordable else affordable


def ranked_users(split: Split, wanted: int | Literal["all"], seed: int) -> np.ndarray:
    """Return the codes of the test users for whom the catalogue is ranked, ascending.

    Parameters
    ----------
    split : Split
    wanted : int or "all"
        The largest number of users, drawn at random.
    seed : int
    """
    users = np.unique(split.test.users)
    if wanted == "all" or wanted >= users.size:
        return users
    return np.sort(np.random.default_rng(seed).choice(users, wanted, replace=False))


def scores_from_pairs(
    score: Callable[[Any, Any], np.ndarray], split: Split, values_per_pair: int = 1
) -> CatalogueScores:
    """Return scores made by asking for every pair of a user and an item.

    Parameters
    ----------
    score : callable
        Takes the original ids of users and items, of equal length, and returns the numbers by
        which pairs are ranked. It is called with all items of one or more users at a time.
    split : Split
    values_per_pair : int
        How many numbers the model predicts for a pair, which limits the pairs of one call.
    """
    user_ids, item_ids = split.test.user_ids, split.test.item_ids
    n_items = len(item_ids)

    def of_users(codes: np.ndarray) -> np.ndarray:
        users = user_ids.take(np.repeat(codes, n_items))
        items = item_ids.take(np.tile(np.arange(n_items), codes.size))
        return score(users, items).reshape(codes.size, n_items)

    return CatalogueScores(of_users, max(1, VALUES_AT_ONCE // (values_per_pair * n_items)))


def scores_from_blocks(name: str, model: Any, split: Split) -> CatalogueScores:
    """Return scores made by the model's ``scores_block``.

    Items of the split that the model does not know come last.

    Parameters
    ----------
    name : str
        Of the model, for error messages.
    model : fitted model
        With ``scores_block``. Its columns are the model's ``item_ids_``, or the items of the
        split if it has no such attribute.
    split : Split
    """
    user_ids, item_ids = split.test.user_ids, split.test.item_ids
    own: pd.Index = getattr(model, "item_ids_", item_ids)
    columns = None if own.equals(item_ids) else codes_of(own, item_ids)

    def of_users(codes: np.ndarray) -> np.ndarray:
        scores = np.array(model.scores_block(user_ids.take(codes)), dtype=np.float64)
        shape = (codes.size, len(own))
        if scores.shape != shape:
            raise DataError(
                f"scores_block of model {name!r} returned shape {scores.shape} instead of {shape}"
            )
        bad = int((~np.isfinite(scores)).sum())
        if bad:
            raise DataError(
                f"scores_block of model {name!r} returned {bad} scores that are not finite numbers"
            )
        if columns is None:
            return scores
        lowest = scores.min(axis=1, initial=0.0, keepdims=True)
        # The added last column is that of unknown items, whose code is -1.
        return np.hstack([scores, lowest - 1.0])[:, columns]

    return CatalogueScores(of_users, max(1, CELLS_AT_ONCE // len(item_ids)))


def catalogue_ranking(
    scores: CatalogueScores, split: Split, users: np.ndarray, *, list_length: int = 0
) -> CatalogueRanking:
    """Return the places of the test items and the first items of the list of each user.

    Parameters
    ----------
    scores : CatalogueScores
    split : Split
        Items that a user rated in training, or that are given for fold-in, are not in their
        list, and neither are those of their events, whatever the model. Ties are broken in an
        order that is random but the same in every run.
    users : array of int
        Codes of the users to rank for.
    list_length : int
        How many of the first items to keep.
    """
    known, test = split.train_and_given(), split.test
    n_items = len(test.item_ids)
    shuffled = np.random.default_rng(0).permutation(n_items)
    places = np.zeros(test.n_ratings, dtype=np.int64)
    items = np.full((users.size, min(list_length, n_items)), -1, dtype=np.int64)
    place = np.empty(n_items, dtype=np.int64)
    met = known.events_matrix()
    cold = known.item_counts == 0
    cold_places = np.zeros_like(places)
    for first in range(0, users.size, scores.users_at_once):
        block = users[first : first + scores.users_at_once]
        table = scores.of_users(block)
        for number, (user, row) in enumerate(zip(block.tolist(), table, strict=True), first):
            row[known.items[known.rows_of_user(user)]] = -np.inf
            row[met.indices[met.indptr[user] : met.indptr[user + 1]]] = -np.inf
            order = shuffled[np.argsort(-row[shuffled], kind="stable")]
            place[order] = np.arange(1, n_items + 1)
            place[row == -np.inf] = UNLISTED
            rows = test.rows_of_user(user)
            places[rows] = place[test.items[rows]]
            if cold.any():
                among = np.cumsum(cold[order])  # the place of an item among the cold ones
                found = np.where(cold, among[np.argsort(order)], 0)
                cold_places[rows] = np.where(
                    places[rows] < UNLISTED,
                    found[test.items[rows]],
                    UNLISTED * cold[test.items[rows]],
                )
            listed = order[: items.shape[1]]
            items[number] = np.where(row[listed] > -np.inf, listed, -1)
    return CatalogueRanking(places, users, items, cold_places)


def pick_lists(
    model: Any, split: Split, users: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the lists a model makes and the probability that each listed item is picked.

    Parameters
    ----------
    model : fitted model
        Such as `ordrec.recommend.Recommender`.
    split : Split
    users : array of int
        Codes of users.
    n : int
        Length of the lists.

    Returns
    -------
    tuple of arrays of shape (n_users, n), or None
        Codes of the items, -1 where there are no more, and probabilities; None for a model whose
        lists have no column ``p_pick``.
    """
    if not hasattr(model, "lists") or not hasattr(model, "item_filter"):
        return None
    length = min(n, len(model.item_ids_))
    options = model.item_filter()
    columns = codes_of(split.test.item_ids, model.item_ids_)
    codes = codes_of(model.user_ids_, split.test.user_ids.take(users))
    if "p_pick" not in model.lists(codes[:0], length, options)[1]:
        return None
    items = np.full((users.size, length), -1, dtype=np.int64)
    p_pick = np.zeros(items.shape)
    users_at_once = max(1, CELLS_AT_ONCE // len(model.item_ids_))
    for first in range(0, users.size, users_at_once):
        block = slice(first, first + users_at_once)
        best, found = model.lists(codes[block], length, options)
        items[block] = np.where(best >= 0, columns[best], -1)
        p_pick[block] = np.where(best >= 0, found["p_pick"], 0.0)
    return items, p_pick
