"""One user's ratings as a table of ordinal labels, as in the papers' filtering experiments.

Rows are the items the user rated, labels are his ratings, features are what the most active
other users gave to the same items. His own column is not among them, so nothing a feature is
made of contains a label.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ordrec.datasets.tables import OrdinalTable
from ordrec.errors import ArgumentError
from ordrec.ratings import Ratings

__all__ = ["observed_matrix", "user_table"]


def observed_matrix(ratings: Ratings, user: Any, n_users: int) -> np.ndarray:
    """Ratings by the most active other users of the items that a user rated, NaN where none.

    Parameters
    ----------
    ratings : Ratings
    user : id
    n_users : int
        As many as rated most of these items; equal ones in the order of their codes.

    Returns
    -------
    ndarray of shape (n_items, n_users)
    """
    code = int(ratings.user_codes([user])[0])
    if code < 0:
        raise ArgumentError(f"{ratings.name} has no user {user!r}")
    items = ratings.items[ratings.rows_of_user(code)]
    rated = ratings.matrix("one")[items]
    counts = np.asarray(rated.sum(axis=0)).ravel()
    counts[code] = -1
    most = np.argsort(-counts, kind="stable")[:n_users]
    most = np.sort(most[counts[most] > 0])
    # Ranks are from 1 up, so that 0 is free to say that there is no rating.
    ranks = ratings.matrix("rank")[items][:, most].toarray()
    return np.where(ranks > 0, ranks.astype(np.float64), np.nan)


def user_table(
    ratings: Ratings,
    user: Any,
    n_users: int,
    *,
    imputation: Literal["mean", "low-rank"] = "mean",
    rank: int = 20,
    seed: int = 0,
) -> OrdinalTable:
    """The user's items with z-scores of the others' ratings as features.

    The products of rows, over the number of users, are Pearson's correlation kernel. A
    missing rating has z-score 0 ("mean"), or is filled first by the weighted low-rank estimate
    of `ordrec.features.low_rank.LowRankEM`. An item whose ratings do not differ is a row of
    zeros.

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
        from ordrec.features.low_rank import LowRankEM

        fill = LowRankEM(min(rank, *matrix.shape), random_state=seed)
        matrix = fill.fit(matrix).transform(matrix)
    elif imputation != "mean":
        raise ArgumentError(f'imputation must be "mean" or "low-rank", got {imputation!r}')
    count = np.maximum((~np.isnan(matrix)).sum(axis=1, keepdims=True), 1)
    centred = matrix - np.nansum(matrix, axis=1, keepdims=True) / count
    spread = np.sqrt(np.nansum(centred**2, axis=1, keepdims=True) / count)
    scores = np.nan_to_num(centred / np.where(spread > 1e-12, spread, np.inf))
    rows = ratings.rows_of_user(int(ratings.user_codes([user])[0]))
    return OrdinalTable(
        scores / np.sqrt(scores.shape[1]),
        ratings.levels[rows].astype(np.int64) + 1,
        [f"user {number}" for number in range(scores.shape[1])],
        ratings.scale.n_ranks,
        name=f"{ratings.name}, {imputation}",
    )
