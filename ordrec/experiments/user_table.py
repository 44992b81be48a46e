"""One user's ratings as a table of ordinal labels, as in the papers' filtering experiments.

Rows are the items the user rated, labels are their ratings, and features are the ratings of the
same items by the most active other users. The user's own column is not among them, so no feature
contains a label.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ordrec.data import Ratings
from ordrec.data.formats.tables import OrdinalTable
from ordrec.errors import ArgumentError

__all__ = ["observed_matrix", "user_table"]


def observed_matrix(ratings: Ratings, user: Any, n_users: int) -> np.ndarray:
    """Return the ratings of a user's items by the most active other users, NaN where missing.

    Parameters
    ----------
    ratings : Ratings
    user : id
    n_users : int
        The number of users, those who rated most of these items; ties by user code.

    Returns
    -------
    ndarray of shape (n_items, n_users)
    """
    items, most = _items_and_others(ratings, user, n_users)
    # Ranks start at 1, so that 0 means that there is no rating.
    ranks = ratings.matrix("rank")[items][:, most].toarray()
    return np.where(ranks > 0, ranks, np.nan)


def _items_and_others(ratings: Ratings, user: Any, n_users: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the user's items, and of the other users who rated most of them."""
    code = int(ratings.user_codes([user])[0])
    if code < 0:
        raise ArgumentError(f"{ratings.name} has no user {user!r}")
    items = ratings.items[ratings.rows_of_user(code)]
    counts = np.asarray(ratings.matrix("one")[items].sum(axis=0)).ravel()
    counts[code] = -1
    most = np.argsort(-counts, kind="stable")[:n_users]
    return items, np.sort(most[counts[most] > 0])


def user_table(
    ratings: Ratings,
    user: Any,
    n_users: int,
    *,
    imputation: Literal["mean", "low-rank"] = "mean",
    features: Literal["z-scores", "ratings"] = "z-scores",
    n_factors: int = 20,
    seed: int = 0,
) -> OrdinalTable:
    """Return a user's items as a table with other users' ratings as features.

    A missing rating is the item's mean ("mean"), or is filled by the weighted low-rank estimate of
    `ordrec.features.LowRankEM`. The features are these ratings as they are ("ratings",
    ranks from 1), or their z-scores within each item, divided by the root of the number of users,
    so that products of rows are Pearson's correlation kernel; z-scores do not contain the item's
    mean. The z-scores of an item whose ratings do not differ are zero.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(40, 30, n_ratings=600, seed=1)
    >>> table = user_table(ratings, 3, n_users=20)
    >>> table.X.shape[1], table.n_ranks, bool(table.y.size == ratings.user_counts[3])
    (20, 5, True)
    """
    matrix = observed_matrix(ratings, user, n_users)
    if imputation == "low-rank":
        from ordrec.features.low_rank.model import LowRankEM

        weights = None
        if ratings.weights is not None:
            items, most = _items_and_others(ratings, user, n_users)
            weights = ratings.matrix("weight")[items][:, most]
        fill = LowRankEM(min(n_factors, *matrix.shape), weights=weights, random_state=seed)
        matrix = fill.fit(matrix).transform(matrix)
    elif imputation != "mean":
        raise ArgumentError(f'imputation must be "mean" or "low-rank", got {imputation!r}')
    count = np.maximum((~np.isnan(matrix)).sum(axis=1, keepdims=True), 1)
    mean = np.nansum(matrix, axis=1, keepdims=True) / count
    if features == "ratings":
        X = np.where(np.isnan(matrix), mean, matrix)
    elif features == "z-scores":
        deviation = np.sqrt(np.nansum((matrix - mean) ** 2, axis=1, keepdims=True) / count)
        scores = np.nan_to_num((matrix - mean) / np.where(deviation > 1e-12, deviation, np.inf))
        X = scores / np.sqrt(scores.shape[1])
    else:
        raise ArgumentError(f'features must be "z-scores" or "ratings", got {features!r}')
    rows = ratings.rows_of_user(int(ratings.user_codes([user])[0]))
    return OrdinalTable(
        X,
        ratings.levels[rows].astype(np.int64) + 1,
        [f"user {number}" for number in range(X.shape[1])],
        ratings.scale.n_ranks,
        name=f"{ratings.name}, {imputation}",
    )
