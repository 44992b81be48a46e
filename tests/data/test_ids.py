"""Ids of two types, of the wrong type, broken ones, and what is no id at all."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.data.columns import order_of
from ordrec.data.ids import warn_of_other_type
from ordrec.data.side_tables import side_table
from ordrec.errors import ArgumentError, DataError
from ordrec.recommend import BiasModel, Popularity, RatingPredictor

BROKEN = "a\ud800"


def ratings_of(users: list[Any]) -> Ratings:
    users = (users * 6)[:12]
    frame = pd.DataFrame({"item": np.repeat(range(4), 3), "rating": [1, 2, 3, 4, 5, 3] * 2})
    return Ratings.from_frame(frame.assign(user=pd.Series(users, dtype=object)))


@pytest.fixture(scope="module")
def numbered() -> Ratings:
    return ratings_of([1, 2, 3])


def test_a_rating_that_is_half_a_character_is_refused_by_its_row() -> None:
    ratings = pd.Series([3, BROKEN], dtype=object)
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": ratings})
    with pytest.raises(DataError, match=r"row 1: rating .* is not a number"):
        Ratings.from_frame(frame)


def test_times_of_hundreds_of_digits_are_refused_by_their_row() -> None:
    times = pd.Series([5, 10**400], dtype=object)
    frame = pd.DataFrame({"user": [1, 2], "item": 1, "rating": [1, 2], "timestamp": times})
    with pytest.raises(DataError, match="row 1"):
        Ratings.from_frame(frame)


def test_lists_among_ratings_are_refused_by_their_row() -> None:
    ratings = pd.Series([5, 5, [1, 2]], dtype=object)
    frame = pd.DataFrame({"user": [1, 2, 3], "item": 1, "rating": ratings})
    with pytest.raises(DataError, match="row 2: rating"):
        Ratings.from_frame(frame)


def test_ratings_may_be_integers_of_more_than_64_bits() -> None:
    ratings = pd.Series([2**64, 2**65], dtype=object)
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": ratings})
    assert Ratings.from_frame(frame).scale.values.tolist() == [2.0**64, 2.0**65]


def test_a_number_and_its_digits_are_two_users_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"column 'user': 1 and '1' are taken for two ids \(1 "):
        ratings = ratings_of([1, "1", "x"])
    assert ratings.n_users == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ratings_of([1, "2", "x"])  # of two types, but no two are alike


def test_unknown_ids_of_another_type_are_reported(numbered: Ratings) -> None:
    model = BiasModel().fit(numbered)
    says = "none of the 2 ids is known: they are strings such as '1', the known ones are integers"
    with pytest.warns(UserWarning, match=says):
        model.predict(["1", "2"], [0, 1])
    with pytest.warns(UserWarning, match="the known ones are integers such as 0"):
        model.predict([1, 2], ["0", "1"])
    with pytest.warns(UserWarning, match="they are integers such as 1, the known ones are strings"):
        BiasModel().fit(ratings_of(["1", "2", "x"])).predict([1, 2], [0, 1])
    with pytest.warns(UserWarning, match="none of the 1 ids is known"):
        Popularity().fit(numbered).recommend("1", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folded = (
            RatingPredictor(preset="fast")
            .fit(numbered)
            .fold_in(ratings_of(["new", "newer", "newest"]))
        )
        folded.predict(["new", "new"], [0, 1])  # known, though not from training
        model.predict([77, 78], [0, 1])  # strangers of the right type
        model.predict([1, "stranger"], [0, 1])


@pytest.mark.parametrize(
    "ids",
    [[[1], [1, 2]], np.ones((2, 2)), np.array(3), [{}, {}], "12", 3, [[1], 2]],
    ids=["ragged", "a matrix", "a scalar array", "mappings", "a text", "a number", "half a list"],
)
def test_what_is_no_id_is_refused_in_words(numbered: Ratings, ids: Any) -> None:
    model = BiasModel().fit(numbered)
    for ask in (
        lambda: model.predict(ids, [0, 1]),
        lambda: model.predict([1, 2], ids),
        lambda: numbered.user_codes(ids),
        lambda: numbered.item_codes(ids),
    ):
        with pytest.raises(ArgumentError, match="sequences of ids"):
            ask()


@pytest.mark.parametrize("user", [[1], {}, np.array([1, 2])], ids=["list", "mapping", "array"])
def test_a_single_user_that_is_none(numbered: Ratings, user: Any) -> None:
    model = Popularity().fit(numbered)
    several = "one id per pair" if isinstance(user, dict) else "user must be one id, got"
    for ask, says in (
        (lambda: model.recommend(user, 2), several),
        (lambda: model.recommend(1, 2, exclude=[user]), "one id per pair"),
        (lambda: numbered.of_user(user), "one id per pair"),
    ):
        with pytest.raises(ArgumentError, match=says):
            ask()


def test_half_a_character_is_refused_at_the_door(numbered: Ratings) -> None:
    with pytest.raises(DataError, match=r"column 'user': an id holds .*half of a character"):
        ratings_of([BROKEN, "b", "c"])


def test_words_are_ordered_by_their_categories_or_refused() -> None:
    words = pd.Series(["good", "poor", "good"])
    ordered = words.astype(pd.CategoricalDtype(["poor", "fair", "good"], ordered=True))
    assert order_of(ordered, "rating") == ["poor", "fair", "good"]
    for numbers in (pd.Series([1, 2]), pd.Series([0.5]), pd.Series([], dtype=float)):
        assert order_of(numbers, "rating") is None
    for unordered in (words, ordered.cat.as_unordered()):
        with pytest.raises(DataError):
            order_of(unordered, "rating")


@pytest.mark.parametrize(("codes", "warned"), [([-1, -1], True), ([-1, 0], False), ([], False)])
def test_ids_of_another_type_are_said_only_where_none_is_known(codes: list, warned: bool) -> None:
    ids = [str(each) for each in codes]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warn_of_other_type(pd.Index([1, 2]), ids, np.array(codes, dtype=np.int64))
    assert bool(said) == warned


def test_the_column_of_ids_is_the_one_with_ids_of_the_ratings() -> None:
    table = pd.DataFrame({"item": [901, 902, 903], "id": [1, 2, 77], "kind": ["a", "b", "c"]})
    found = side_table(table, pd.Index([1, 2, 3]), "item", "item")
    assert found.loc[[1, 2], "kind"].tolist() == ["a", "b"]
