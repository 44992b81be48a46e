"""One user's ratings as a table: his own column never gets into the features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.experiments.user_table import observed_matrix, user_table

FRAME = pd.DataFrame(
    [("me", "a", 1), ("me", "b", 5), ("me", "c", 3),
     ("x", "a", 2), ("x", "b", 4), ("x", "c", 4), ("y", "a", 4), ("y", "z", 1), ("w", "z", 2)],
    columns=["user", "item", "rating"],
)  # fmt: skip


def test_rows_are_his_items_and_columns_the_most_active_others() -> None:
    ratings = Ratings.from_frame(FRAME, scale=Scale.regular(1, 5))
    matrix = observed_matrix(ratings, "me", 5)
    assert matrix.shape == (3, 2)  # w rated none of them
    assert sorted(matrix[0]) == [2.0, 4.0]
    assert np.isnan(matrix[1:]).sum() == 2
    table = user_table(ratings, "me", 5)
    assert table.y.tolist() == [1, 5, 3]
    assert np.abs(table.X[0]).tolist() == pytest.approx([1 / np.sqrt(2)] * 2)
    assert not table.X[1:].any()  # one rating has no spread
    filled = user_table(ratings, "me", 5, features="ratings").X
    assert sorted(filled[0]) == [2.0, 4.0]
    assert filled[1:].tolist() == [[4.0, 4.0]] * 2  # the mean of the movie's only rating


@pytest.mark.parametrize("imputation", ["mean", "low-rank"])
def test_his_ratings_do_not_move_the_features(imputation: str) -> None:
    ratings = synthetic_ratings(40, 30, n_ratings=600, seed=1)
    mine = ratings.users == ratings.user_codes([3])[0]
    turned = Ratings(
        ratings.users,
        ratings.items,
        np.where(mine, 4 - ratings.levels, ratings.levels),
        scale=ratings.scale,
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
    )
    before = user_table(ratings, 3, 25, imputation=imputation, n_factors=4)
    after = user_table(turned, 3, 25, imputation=imputation, n_factors=4)
    assert (6 - before.y).tolist() == after.y.tolist()
    assert np.array_equal(before.X, after.X)


def test_products_are_pearsons_correlation() -> None:
    ratings = synthetic_ratings(60, 20, n_ratings=1200, seed=2)  # nothing is missing
    table = user_table(ratings, 5, 59)
    K = table.X @ table.X.T
    assert np.diag(K) == pytest.approx(1.0)
    assert pytest.approx(np.corrcoef(observed_matrix(ratings, 5, 59))) == K


def test_refusals() -> None:
    ratings = Ratings.from_frame(FRAME, scale=Scale.regular(1, 5))
    with pytest.raises(ArgumentError, match="no user 'nobody'"):
        user_table(ratings, "nobody", 3)
    with pytest.raises(ArgumentError, match="imputation"):
        user_table(ratings, "me", 3, imputation="luck")
    with pytest.raises(ArgumentError, match="features"):
        user_table(ratings, "me", 3, features="stars")
