"""Rules of lists: pairs that may or must not be listed, and caps of groups."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, OrdrecWarning
from ordrec.lists.explanation import Explanation, largest_contributions
from ordrec.lists.filters import ItemFilter
from ordrec.recommend import EASE, OrdinalFactors, Recommender

N_ITEMS = 30
GENRES = ["War", "Crime", "War|Crime", "Love", "Love|War"]
TABLE = pd.DataFrame(
    {
        "item": np.arange(N_ITEMS),
        "genre": [GENRES[k % 5] for k in range(N_ITEMS)],
        "colour": [["red", "blue"][k % 2] for k in range(N_ITEMS)],
    }
)
RATINGS = synthetic_ratings(60, N_ITEMS, n_ratings=700, seed=2).with_side_tables(item_table=TABLE)


@pytest.fixture(scope="module")
def models() -> dict:
    factors = OrdinalFactors(n_factors=2, pattern=2, max_iter=3)
    return {
        "ease": EASE(50.0).fit(RATINGS),
        "factors": factors.fit(RATINGS),
        "recommender": Recommender(EASE(50.0), "factors", n_candidates=5).fit(RATINGS),
    }


NAMES = ["ease", "factors", "recommender"]


def greedy(order: list[int], most: int, n: int) -> list[int]:
    """The first items whose genres have room, by a plain loop."""
    left = dict.fromkeys(["War", "Crime", "Love"], most)
    kept = []
    for item in order:
        own = GENRES[item % 5].split("|")
        if len(kept) < n and all(left[genre] > 0 for genre in own):
            kept.append(item)
            for genre in own:
                left[genre] -= 1
    return kept


@pytest.mark.parametrize("name", ["ease", "factors"])
def test_a_list_within_caps_is_the_first_items_with_room(models, name: str) -> None:
    model = models[name]
    for user in (0, 7, 12):
        order = model.recommend(user, N_ITEMS)["item"].tolist()
        listed = model.recommend(user, 5, at_most={"genre": 2})
        assert listed["item"].tolist() == greedy(order, 2, 5)
        assert (np.diff(listed["score"]) <= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_group_has_more_than_its_cap_in_all_lists(models, name: str) -> None:
    lists = models[name].recommend_all(6, at_most={"genre": 2, "colour": 3})
    genres = lists["item"].map(TABLE.set_index("item")["genre"]).str.split("|")
    counts = lists.assign(genre=genres).explode("genre").groupby(["user", "genre"]).size()
    assert counts.max() == 2
    colours = lists.assign(colour=lists["item"] % 2).groupby(["user", "colour"]).size()
    assert colours.max() <= 3


def test_a_recommender_looks_beyond_its_candidates_for_items_within_caps(models) -> None:
    model = models["recommender"]  # of five candidates
    listed = model.recommend(3, 4, at_most={"colour": 2})
    assert len(listed) == 4
    assert (listed["item"] % 2).value_counts().tolist() == [2, 2]
    assert listed.columns.tolist() == model.recommend(3, 4).columns.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_hidden_from_one_user_alone(models, name: str) -> None:
    model = models[name]
    first = {user: model.recommend(user, 3)["item"].tolist() for user in (0, 7)}
    pairs = pd.DataFrame({"user_id": 0, "item_id": first[0]})
    lists = model.recommend_all(3, [0, 7], exclude=pairs)
    own = lists[lists["user"] == 0]["item"].tolist()
    assert not set(own) & set(first[0])
    assert lists[lists["user"] == 7]["item"].tolist() == first[7]
    assert model.recommend(0, 3, exclude=pairs)["item"].tolist() == own


@pytest.mark.parametrize("name", NAMES)
def test_only_pairs_are_listed_and_a_user_without_any_has_no_list(models, name: str) -> None:
    model = models[name]
    wanted = model.recommend(0, 5)["item"].tolist()[2:4]
    pairs = pd.DataFrame({"user": [0, 0], "item": wanted})
    assert sorted(model.recommend(0, 5, only=pairs)["item"]) == sorted(wanted)
    assert model.recommend(7, 5, only=pairs).empty


def test_a_table_of_items_alone_is_a_list_of_ids(models) -> None:
    table = pd.DataFrame({"item": [1, 2, 3], "why": "sold out"})
    listed = models["ease"].recommend_all(5, exclude=table)
    assert not set(listed["item"]) & {1, 2, 3}
    with pytest.raises(ArgumentError, match="must have a column item"):
        models["ease"].recommend(0, exclude=table.drop(columns="item"))


def test_ids_that_match_nothing_are_said(models) -> None:
    model = models["ease"]
    with pytest.warns(OrdrecWarning, match="exclude: 1 of 2 items are not in the model.*'gone'"):
        model.recommend(0, exclude=[3, "gone"])
    pairs = pd.DataFrame({"user": [0, 999], "item": [1, 1]})
    with pytest.warns(OrdrecWarning, match=r"exclude: 1 of 2 pairs.*\(999, 1\)"):
        model.recommend(0, exclude=pairs)
    with pytest.raises(ArgumentError, match="none of the 1 pairs"):
        model.recommend(0, only=pairs[1:])


@pytest.mark.parametrize(
    ("cap", "words"),
    [
        ({"price": 2}, "knows no column 'price'.*it has genre, colour"),
        ({"genre": 0}, "'genre' must be a whole number of at least 1, got 0"),
        (3, "must name columns and numbers"),
    ],
)
def test_impossible_caps_are_refused(models, cap, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        models["ease"].recommend(0, at_most=cap)
    bare = EASE(50.0).fit(synthetic_ratings(60, N_ITEMS, n_ratings=700, seed=2))
    with pytest.raises(ArgumentError, match="it has none"):
        bare.recommend(0, at_most={"genre": 1})


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_stored(models, name: str, tmp_path) -> None:
    save(models[name], tmp_path / "m")
    again = load(tmp_path / "m")
    expected = models[name].recommend(0, 6, at_most={"genre": 1})
    pd.testing.assert_frame_equal(again.recommend(0, 6, at_most={"genre": 1}), expected)


def test_new_items_have_the_groups_of_their_table(models) -> None:
    new = Ratings.from_frame(
        pd.DataFrame({"user": "you", "item": ["new", 3], "rating": [5, 1]}),
        scale=RATINGS.scale,
        item_table=pd.DataFrame({"item": ["new", 3], "genre": ["Opera", "Love"]}),
    )
    model = models["factors"].fold_in(new)
    by_column = {each.column: each for each in model.item_groups_}
    assert by_column["genre"].labels == ["Crime", "Love", "War", "Opera"]
    assert by_column["genre"].members.toarray()[-1].tolist() == [0, 0, 0, 1]


def test_lists_on_disk_depend_on_the_rules(models, tmp_path) -> None:
    from ordrec.lists.bulk import _Lists

    pairs = [None, pd.DataFrame({"user": [0], "item": [1]})]
    caps = [None, {"genre": 1}, {"genre": 2}]
    make = models["ease"].item_filter
    filters = [make(exclude=p, at_most=c) for p, c in itertools.product(pairs, caps)]
    codes = np.arange(3)
    found = {str(_Lists(models["ease"], 3, each, None).identity(codes)) for each in filters}
    assert len(found) == 6


def test_a_recommender_by_rating_alone_keeps_to_caps(models) -> None:
    listed = models["recommender"].recommend(0, 6, by="expected", at_most={"colour": 2})
    assert (listed["item"] % 2).value_counts().max() == 2


def test_lists_on_disk_depend_on_the_share_of_new_items() -> None:
    new = np.array([False, True, False])
    shares = [ItemFilter(~new, new=new, explore=share) for share in (0.0, 0.1, 0.2)]
    assert len({b" ".join(each.identity()) for each in shares}) == 3


def test_an_explanation_in_words_and_in_a_notebook() -> None:
    """What is probable is said in percent, never as certain; a reason that weighs nothing, once."""
    own = ["own rating"] * 3
    table = pd.DataFrame(
        {
            "source": ["all ratings", "this item", "you", *own],
            "id": pd.Series([None, None, None, 7, 8, 9], dtype=object),
            "title": ["", "", "", "Seven", "", "Nine"],
            "rating": [np.nan, np.nan, np.nan, 5.0, 2.0, 4.5],
            "contribution": [3.5, 0.25, -0.1, 0.3, -0.2, 0.001],
        }
    )
    picks = pd.DataFrame({"item": [7, 8], "rating": [5.0, np.nan], "contribution": [0.4, 0.1]})
    why = Explanation(3.751, table, 1, 5, "Five <b>", p_like=0.999, p_pick=0.004, pick=picks)
    assert str(why).splitlines()[1:] == [
        "picked next with probability under 1%, because of their ratings of",
        "  7 (5)",
        "  8 (seen)",
        "expected rating 3.75, liked with probability over 99%",
        "  +3.50 the mean of all ratings",
        "  +0.25 what others think of this item",
        "  -0.10 how you rate in general",
        "  +0.30 because you gave 5 to Seven",
        "  -0.20 because you gave 2 to 8",
        "  +0.00 from 1 more rating",
    ]
    shown = why._repr_html_()
    assert "<p>Five &lt;b&gt; for user 1, picked next with probability under 1%, " in shown
    assert "expected rating 3.75, liked with probability over 99%</p>" in shown
    counted = pd.DataFrame({"item": [7, 8], "count": [3.0, 1.0], "contribution": [0.4, 0.1]})
    bought = Explanation(None, table[:0], 1, 5, p_pick=0.25, pick=counted)
    assert str(bought).splitlines()[1:] == [
        "picked next with probability 25%, because of their picks of", "  7 (3 times)", "  8"
    ]  # fmt: skip
    alone = Explanation(3.751, table[:3], 1, 5)
    assert alone._repr_html_().startswith("<p>5 for user 1, expected rating 3.75</p>")


def test_the_largest_contributions_and_the_sum_of_the_others() -> None:
    table = pd.DataFrame(
        {
            "source": "own rating",
            "id": range(4),
            "rating": 3.0,
            "contribution": [1.0, -3.0, 2.0, 0.5],
        }
    )
    some = largest_contributions(table, 2)
    assert some["id"].tolist() == [1, 2, "2 more"]
    assert some["contribution"].tolist() == [-3.0, 2.0, 1.5]
    assert largest_contributions(table, 4)["id"].tolist() == [1, 2, 0, 3]
