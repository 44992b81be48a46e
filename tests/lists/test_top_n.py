"""Lists of rating models and recommenders: candidates, and what lists are ordered by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec import load, save
from ordrec.data import Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.lists.best import RatingOrder, best_by_rating
from ordrec.recommend import (
    ChoiceMixture,
    OrdinalFactors,
    RatingPredictor,
    Recommender,
    recommend_all,
)

RATINGS = synthetic_ratings(30, 40, n_ratings=420, seed=3)


@pytest.fixture(scope="module")
def model() -> RatingPredictor:
    return RatingPredictor(preset="fast").fit(RATINGS)


def test_the_model_remembers_its_training_ratings(model) -> None:
    columns = ["user", "item"]
    pd.testing.assert_frame_equal(
        model.process_model_.fitted_.training_ratings()
        .to_frame()
        .sort_values(columns)
        .reset_index(drop=True),
        RATINGS.to_frame()[["user", "item", "rating"]].sort_values(columns).reset_index(drop=True),
    )


@pytest.fixture(scope="module")
def choice() -> ChoiceMixture:
    return ChoiceMixture().fit(RATINGS)


@pytest.fixture(scope="module")
def recommender() -> Recommender:
    return Recommender(ChoiceMixture(), RatingPredictor(preset="fast")).fit(RATINGS)


def naive_list(model, user, n: int, score) -> pd.DataFrame:
    """All unrated items sorted by score, expected rating and place among the items."""
    rated = set(RATINGS.of_user(user)["item"]) if user in set(RATINGS.user_ids) else set()
    items = [item for item in RATINGS.item_ids if item not in rated]
    p = model.predict_proba([user] * len(items), items)
    table = pd.DataFrame({"item": items, "score": score(p), "expected": p @ RATINGS.scale.values})
    table = table.sort_values(["score", "expected"], ascending=False, kind="stable")
    return table.head(n).reset_index(drop=True)


def test_a_rating_model_lists_by_expected_rating_and_says_so(model, recommender) -> None:
    values = RATINGS.scale.values
    scores = {
        "expected": lambda p: p @ values,
        "p_at_least": lambda p: p[:, values >= 4].sum(axis=1),
        "lower_quantile": lambda p: [values[np.argmax(np.cumsum(row) >= 0.25)] for row in p],
    }
    for user in [*RATINGS.user_ids[:5], -1]:
        found = model.recommend(user, 6)
        pd.testing.assert_frame_equal(found, model.recommend(user, 6, by="expected"))
        assert found.attrs["ordered_by"] == "expected"
        for by, score in scores.items():
            listed = model.recommend(user, 6, by=by)
            assert listed.attrs["ordered_by"] == by
            pd.testing.assert_frame_equal(listed, naive_list(model, user, 6, score))
            pd.testing.assert_frame_equal(listed, recommender.recommend(user, 6, by=by))
        assert recommender.recommend(user, 6).attrs["ordered_by"] == "recommended"
        assert recommender.choice_.recommend(user, 6).attrs["ordered_by"] == "pick"
    few = RATINGS.item_ids[:6].tolist()
    assert set(model.recommend(-1, 10, candidates=few)["item"]) == set(few)
    assert set(recommender.recommend(-1, 10, candidates=few)["item"]) == set(few)


def test_lists_for_all_are_those_of_each_in_any_block(model, monkeypatch) -> None:
    whole = recommend_all(model, 4, exclude=[3], engine="serial")
    for user, rows in whole.groupby("user"):
        own = model.recommend(user, 4, exclude=[3])
        assert rows["item"].tolist() == own["item"].tolist()
        np.testing.assert_allclose(rows["score"], own["score"])
        assert rows["place"].tolist() == [1, 2, 3, 4][: len(rows)]
    monkeypatch.setattr(RatingPredictor, "block_size", lambda self: 7)
    pd.testing.assert_frame_equal(recommend_all(model, 4, exclude=[3], engine="serial"), whole)


def test_items_without_ratings_are_listed_only_when_they_are_candidates() -> None:
    unrated = RATINGS.select(RATINGS.items != 11)
    model = OrdinalFactors(n_factors=2, pattern=2).fit(unrated)
    eleven = RATINGS.item_ids[11]
    assert eleven not in set(model.recommend(-1, 100)["item"])
    assert len(model.recommend(-1, 100, only=[eleven])) == 0
    listed = model.recommend(-1, 100, candidates=[eleven, "no item"])
    assert listed["item"].tolist() == [eleven]
    with pytest.raises(ArgumentError, match="candidates: none of the 1 items is known"):
        model.recommend(-1, 3, candidates=["no item"])


def test_likely_candidates_are_those_of_the_choice_model(recommender, choice) -> None:
    for user in RATINGS.user_ids[:5]:
        found = recommender.recommend(user, 20, by="expected", candidates="likely", n_candidates=8)
        assert set(found["item"]) == set(choice.recommend(user, 8)["item"])
        assert not set(RATINGS.of_user(user)["item"]) & set(found["item"])
        assert len(found) == 8
        given = recommender.recommend(user, 20, by="expected", candidates=found["item"])
        pd.testing.assert_frame_equal(
            found.sort_values("item", ignore_index=True),
            given.sort_values("item", ignore_index=True),
        )
        assert (np.diff(found["score"]) <= 0).all()


def test_enough_candidates_are_all_items(recommender) -> None:
    user = RATINGS.user_ids[7]
    options = {"by": "expected", "candidates": "likely", "n_candidates": 1000}
    two_stages = recommender.recommend(user, 1000, **options)
    pd.testing.assert_frame_equal(two_stages, recommender.recommend(user, 1000, by="expected"))


def test_a_rating_model_fits_nothing_to_make_lists(monkeypatch, tmp_path) -> None:
    fresh = RatingPredictor(preset="fast").fit(RATINGS)
    save(fresh, tmp_path / "fresh")
    fits = []
    usual = ChoiceMixture.fit
    monkeypatch.setattr(ChoiceMixture, "fit", lambda self, r: fits.append(1) or usual(self, r))
    newer = fresh.update(-1, RATINGS.item_ids[2], 5.0)
    lists = [
        m.recommend(-1, 5) for m in (newer, fresh, newer.update(0, RATINGS.item_ids[3], 1.0), newer)
    ]
    assert lists[0].equals(lists[3])
    assert not lists[0].equals(lists[1])  # without a rating: what is popular
    assert RATINGS.item_ids[2] not in set(lists[0]["item"])
    again = load(tmp_path / "fresh").update(-1, RATINGS.item_ids[2], 5.0)
    pd.testing.assert_frame_equal(again.recommend(-1, 5), lists[0])
    assert len(fits) == 0


def test_orders() -> None:
    scale = Scale.regular(1, 5)
    p = np.array([[0.1, 0.2, 0.4, 0.2, 0.1], [0.4, 0.0, 0.0, 0.0, 0.6]])
    assert RatingOrder("expected").scores(p, scale).tolist() == pytest.approx([3.0, 3.4])
    assert RatingOrder("p_at_least").scores(p, scale).tolist() == pytest.approx([0.3, 0.6])
    assert RatingOrder("p_at_least", 3).scores(p, scale).tolist() == pytest.approx([0.7, 0.6])
    assert RatingOrder("lower_quantile").scores(p, scale).tolist() == [2.0, 1.0]


def test_what_counts_as_liked_is_the_same_on_half_stars() -> None:
    scale = Scale.regular(0.5, 5.0, 0.5)
    p = np.full((1, 10), 0.1)
    assert RatingOrder("p_at_least").scores(p, scale).tolist() == pytest.approx([0.3])
    assert (RATINGS.scale.liked_from, scale.liked_from) == (4.0, 4.0)


def test_ties_are_ordered_by_the_expected_rating() -> None:
    scale = Scale.regular(1, 3)
    p = np.array([[0.3, 0.7, 0.0], [0.5, 0.0, 0.5], [0.3, 0.2, 0.5], [0.0, 1.0, 0.0]])
    everything = np.ones((1, 4), dtype=bool)
    best, columns = best_by_rating(p, everything, scale, 3, RatingOrder("lower_quantile"))
    assert best.tolist() == [[3, 2, 1]]  # the last but one, and the first two, have the value 1
    assert columns["score"].tolist() == [[2.0, 1.0, 1.0]]
    assert columns["expected"][0].tolist() == pytest.approx([2.0, 2.2, 2.0])
    top, _ = best_by_rating(p, everything, scale, 4, RatingOrder("p_at_least", 3.0))
    assert top.tolist() == [[2, 1, 3, 0]]
    two_users = np.array([[True, True], [False, True]])
    best, _ = best_by_rating(p, two_users, scale, 2, RatingOrder())
    assert best.tolist() == [[1, 0], [1, -1]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"candidates": "some"}, "candidates must be"),
        ({"by": "magic"}, "by must be"),
        ({"by": "expected", "quantile": 1.0}, "quantile must lie"),
        ({"n": 0}, "n must be"),
    ],
)
def test_wrong_options_are_refused(model, recommender, options, says: str) -> None:
    for each in (model, recommender):
        with pytest.raises(ArgumentError, match=says):
            each.recommend(RATINGS.user_ids[0], **options)


def test_what_only_a_recommender_knows_is_refused_by_a_rating_model(model, recommender) -> None:
    user = RATINGS.user_ids[0]
    with pytest.raises(ArgumentError, match="'recommended', which only a Recommender knows"):
        model.recommend(user, by="recommended")
    with pytest.raises(ArgumentError, match="only a Recommender knows what users are likely"):
        model.recommend(user, candidates="likely")
    with pytest.raises(ArgumentError, match="n_candidates must be"):
        recommender.recommend(user, by="expected", candidates="likely", n_candidates=0)


def test_nothing_left_to_recommend(model) -> None:
    user = RATINGS.user_ids[0]
    rated = RATINGS.of_user(user)["item"]
    empty = model.recommend(user, 5, by="expected", candidates=rated)
    assert empty.columns.tolist() == ["item", "score", "expected"]
    assert len(empty) == 0
    assert len(model.recommend(user, 5, candidates=rated)) == 0
