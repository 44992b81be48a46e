"""Lists of the rating predictor: candidates, and what lists are ordered by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec import load, save
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.lists.best import Order, best_items
from ordrec.recommend import ChoiceMixture, RatingPredictor, Recommender

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


def test_the_default_is_the_list_of_a_recommender(model, choice) -> None:
    whole = Recommender(choice=ChoiceMixture(), rating=RatingPredictor(preset="fast")).fit(RATINGS)
    for user in [*RATINGS.user_ids[:5], "nobody"]:
        found, expected = model.recommend(user, 6), whole.recommend(user, 6)
        assert found["item"].tolist() == expected["item"].tolist()
        for ours, theirs in (("score", "score"), ("p_pick", "p_pick"), ("p_like", "p_like")):
            np.testing.assert_allclose(found[ours], expected[theirs], rtol=1e-4)
    few = RATINGS.item_ids[:6].tolist()
    assert set(model.recommend("nobody", 10, candidates=few)["item"]) == set(few)


@pytest.mark.parametrize("name", ["likely", "implicit"])
def test_likely_candidates_are_those_of_the_choice_model(model, choice, name: str) -> None:
    for user in RATINGS.user_ids[:5]:
        found = model.recommend(user, 20, by="expected", candidates=name, n_candidates=8)
        assert set(found["item"]) == set(choice.recommend(user, 8)["item"])
        assert not set(RATINGS.of_user(user)["item"]) & set(found["item"])
        assert len(found) == 8
        given = model.recommend(user, 20, by="expected", candidates=found["item"])
        pd.testing.assert_frame_equal(
            found.sort_values("item", ignore_index=True),
            given.sort_values("item", ignore_index=True),
        )
        assert (np.diff(found["score"]) <= 0).all()


def test_enough_candidates_are_all_items(model) -> None:
    user = RATINGS.user_ids[7]
    two_stages = model.recommend(user, 1000, by="expected", candidates="likely", n_candidates=1000)
    pd.testing.assert_frame_equal(two_stages, model.recommend(user, 1000, by="expected"))


def test_the_choice_model_is_fitted_once_and_shared(monkeypatch, tmp_path) -> None:
    fresh = RatingPredictor(preset="fast").fit(RATINGS)
    save(fresh, tmp_path / "fresh")
    fits = []
    usual = ChoiceMixture.fit
    monkeypatch.setattr(ChoiceMixture, "fit", lambda self, r: fits.append(1) or usual(self, r))
    newer = fresh.update("newcomer", RATINGS.item_ids[2], 5.0)
    lists = [m.recommend("newcomer", 5)
             for m in (newer, fresh, newer.update(0, RATINGS.item_ids[3], 1.0), newer)]  # fmt: skip
    assert len(fits) == 1
    assert lists[0].equals(lists[3])
    assert not lists[0].equals(lists[1])  # without a rating: what is popular
    assert RATINGS.item_ids[2] not in set(lists[0]["item"])
    again = load(tmp_path / "fresh").update("newcomer", RATINGS.item_ids[2], 5.0)
    pd.testing.assert_frame_equal(again.recommend("newcomer", 5), lists[0])
    assert len(fits) == 2


def test_orders() -> None:
    scale = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    p = np.array([[0.1, 0.2, 0.4, 0.2, 0.1], [0.4, 0.0, 0.0, 0.0, 0.6]])
    assert Order("expected", None, 0.25).values(p, scale).tolist() == pytest.approx([3.0, 3.4])
    assert Order("p_at_least", None, 0.25).values(p, scale).tolist() == pytest.approx([0.3, 0.6])
    assert Order("p_at_least", 3, 0.25).values(p, scale).tolist() == pytest.approx([0.7, 0.6])
    assert Order("lower_quantile", None, 0.25).values(p, scale).tolist() == [2.0, 1.0]


def test_ties_are_ordered_by_the_expected_rating() -> None:
    scale = np.array([1.0, 2.0, 3.0])
    p = np.array([[0.3, 0.7, 0.0], [0.5, 0.0, 0.5], [0.3, 0.2, 0.5], [0.0, 1.0, 0.0]])
    listed = best_items(pd.Index(list("abcd")), p, scale, 3, Order("lower_quantile", None, 0.25))
    assert listed["item"].tolist() == ["d", "c", "b"]  # c, b and a have the value 1
    assert listed["score"].tolist() == [2.0, 1.0, 1.0]
    assert listed["expected"].tolist() == pytest.approx([2.0, 2.2, 2.0])
    top = best_items(pd.Index(list("abcd")), p, scale, 4, Order("p_at_least", 3.0, 0.25))
    assert top["item"].tolist() == ["c", "b", "d", "a"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"candidates": "some"}, "candidates must be"),
        ({"by": "expected", "candidates": "likely", "n_candidates": 0}, "n_candidates must be"),
        ({"by": "magic"}, "by must be"),
        ({"by": "expected", "quantile": 1.0}, "quantile must lie"),
        ({"n": 0}, "n must be"),
    ],
)
def test_wrong_options_are_refused(model, options, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        model.recommend(RATINGS.user_ids[0], **options)


def test_nothing_left_to_recommend(model) -> None:
    user = RATINGS.user_ids[0]
    rated = RATINGS.of_user(user)["item"]
    empty = model.recommend(user, 5, by="expected", candidates=rated)
    assert empty.columns.tolist() == ["item", "score", "expected"]
    assert len(empty) == 0
    assert len(model.recommend(user, 5, candidates=rated)) == 0
