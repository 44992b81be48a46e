"""Typing errors among ratings are refused; rare values of a usual scale are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings, Scale
from ordrec.errors import DataError

STARS = np.tile([1.0, 2, 3, 4, 5, 4, 4, 3], 5)
HALVES = np.tile(np.arange(0.5, 5.5, 0.5), 6)
TENS = np.tile(np.arange(1.0, 10), 5)
FINE = np.tile(np.arange(101.0), 3)
REALS = np.random.default_rng(0).uniform(-10, 10, 500).round(2)


def table(values) -> pd.DataFrame:
    return pd.DataFrame({"user": np.arange(len(values)), "item": 1, "rating": values})


@pytest.mark.parametrize(
    ("values", "stray"),
    [
        (STARS, 55), (STARS, 44), (STARS, 99), (STARS, -99), (STARS, 1e6), (HALVES, 45),
        (HALVES, 4.55), (HALVES, 3.14159), (TENS, 100), (TENS, 88), (FINE, 1000), (REALS, 99),
        (np.tile(STARS, 50), 11), (np.tile(STARS, 50), 10), (np.tile(FINE, 10), 550),
    ],
)  # fmt: skip
def test_a_typing_error_is_named_with_its_row(values, stray):
    values = np.insert(values, 17, stray)
    with pytest.raises(DataError) as refused:
        Ratings.from_frame(table(values))
    assert f"row 17: rating {stray:g} is unlike the others" in str(refused.value)
    assert "correct it, or declare the scale with scale=" in str(refused.value)


def test_the_remedy_works():
    values = np.append(STARS, 55)
    assert Ratings.from_frame(table(values), scale=[1, 2, 3, 4, 5, 55]).scale.n_ranks == 6


@pytest.mark.parametrize(
    ("values", "n_ranks"),
    [
        (np.append(TENS, 10), 10),  # a rare best
        (np.append(np.tile([7.0, 8, 9, 10], 20), 1), 10),  # a rare worst
        (np.append(np.tile([8.0, 9, 10], 500), 1), 10),
        (np.append(np.tile([1.0, 2, 3], 20), 10), 10),
        (np.append(STARS, 4.5), 9),  # a rare half
        (np.append(np.tile(STARS, 100), 4.5), 9),
        (np.append(np.tile([0.5, 3, 3.5, 4], 20), 5), 10),
        (np.array([1.0, 2, 3.7]), 3),
        (np.array([1.0, 2, 3, 4, 5, 55]), 55),  # too few to tell
        (np.append(np.tile([80.0, 85, 90], 10), 10), 17),
        (np.array([0.0, 1] * 30 + [5]), 6),
        (np.tile([1.0, 2, 3, 50], 10), 50),  # as frequent as the others
    ],
)
def test_rare_values_of_usual_scales_are_right(values, n_ranks):
    assert Scale.infer(values).n_ranks == n_ranks


@pytest.mark.parametrize(
    "values", [FINE, np.append(np.tile([30.0, 50, 70, 90], 300), [1, 99, 100])]
)
def test_fine_scales_are_right(values):
    with pytest.warns(UserWarning, match="were put into"):
        ratings = Ratings.from_frame(table(values))
    assert ratings.values.tolist() == values.tolist()


@given(st.integers(2, 10), st.integers(5, 900), st.integers(0, 10**6))
def test_no_rating_of_up_to_ten_ranks_is_refused_in_a_small_table(n_ranks, n, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_ranks, 0.3))
    values = np.append(rng.choice(n_ranks, n, p=p) + 1.0, [1, n_ranks])
    assert Scale.infer(values).values[[0, -1]].tolist() == [1, n_ranks]


def test_a_typing_error_in_a_folder_is_named_with_its_place(tmp_path):
    table(STARS).to_parquet(tmp_path / "a.parquet", index=False)
    other = table(np.insert(STARS, 17, 55)).assign(user=lambda frame: frame["user"] + 1000)
    other.to_parquet(tmp_path / "b.parquet", index=False, row_group_size=10)
    with pytest.raises(DataError, match=r"b\.parquet, row group 1, row 7: rating 55 is unlike"):
        Ratings.scan(tmp_path)


@pytest.mark.parametrize(
    ("values", "stray"),
    [
        (np.tile(STARS, 50), 0), (np.tile(STARS, 50), 6), (np.tile(STARS, 50), -1),
        (np.tile(STARS, 50), 0.5), (np.tile(HALVES, 30), 0), (np.tile(HALVES, 30), 5.5),
        (np.tile(np.arange(1.0, 11), 200), 0), (np.tile(np.arange(1.0, 11), 200), 11),
    ],
)  # fmt: skip
def test_a_handful_beyond_a_usual_scale_is_asked_about(values, stray):
    values = np.insert(values, [17, 40, 99], stray)
    with pytest.raises(DataError, match=rf"row 17: rating {stray:g} is unlike .*scale="):
        Ratings.from_frame(table(values))
    declared = np.unique(values)
    assert Ratings.from_frame(table(values), scale=declared).scale.n_ranks == declared.size


@pytest.mark.parametrize(
    ("values", "n_ranks"),
    [
        (np.append(np.tile([2.0, 3, 4, 5], 500), 1), 5),  # the end of the usual scale is rare
        (np.append(np.tile(TENS, 50), 10), 10),
        (np.append(np.tile(STARS, 50), np.zeros(40)), 6),  # no handful
    ],
)
def test_rare_ends_of_a_usual_scale_are_right(values, n_ranks):
    assert Scale.infer(values).n_ranks == n_ranks


@pytest.mark.parametrize("copies", [1, 2])
def test_a_typing_error_made_twice_is_none_the_less_one(copies):
    with pytest.raises(DataError, match="rating 55 is unlike the others"):
        Ratings.from_frame(table(np.append(np.tile(STARS, 5), [55.0] * copies)))
