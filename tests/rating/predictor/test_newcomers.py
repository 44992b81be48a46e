"""Users and items that were not in training: strangers, newcomers, ids without ratings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.two_taste_ratings import ids, parts, two_taste_ratings

from ordrec.data import Ratings
from ordrec.datasets import load_dataset
from ordrec.errors import ArgumentError, DataError
from ordrec.recommend import RatingHistogram, RatingPredictor

PRESETS = ["full", "fast", "large"]
TRAIN, TEST = parts(two_taste_ratings())
STRANGER, NOTHING = -1, -7


@pytest.fixture(scope="module")
def models() -> dict[str, RatingPredictor]:
    return {
        preset: RatingPredictor(preset=preset, learn="defaults").fit(TRAIN)  # type: ignore[arg-type]
        for preset in PRESETS
    }


def new_ratings(user: Any, items: list[Any], values: list[float], **more: Any) -> Ratings:
    frame = pd.DataFrame({"user": user, "item": items, "rating": values})
    return Ratings.from_frame(frame, **more)


def is_sound(p: np.ndarray) -> bool:
    """Whether rows are distributions in which every rating is possible and none is certain."""
    return bool(np.allclose(p.sum(axis=1), 1.0) and (p > 1e-6).all() and (p < 0.99).all())


@pytest.mark.parametrize("preset", PRESETS)
def test_strangers_are_left_to_the_factors(models, preset: str) -> None:
    model = models[preset]
    users, items = [STRANGER, 100, STRANGER, "x", None], [500, NOTHING, NOTHING, "y", 501]
    p = model.predict_proba(users, items)
    assert is_sound(p)
    assert np.array_equal(p, model.factors_.predict_proba(users, items))
    frame = model.predict_frame(pd.DataFrame({"user": users[:3], "item": items[:3]}))
    assert frame["known_user"].tolist() == [False, True, False]
    assert frame["known_item"].tolist() == [True, False, False]
    assert np.allclose(frame["rating"], p[:3] @ TRAIN.scale.values)


@pytest.mark.parametrize("preset", PRESETS)
def test_an_unknown_user_is_told_what_is_thought_of_an_item(models, preset: str) -> None:
    expected = models[preset].predict_proba([STRANGER] * 30, TRAIN.item_ids) @ TRAIN.scale.values
    mean = np.bincount(TRAIN.items, TRAIN.values) / np.maximum(TRAIN.item_counts, 1)
    assert np.corrcoef(expected, mean)[0, 1] > 0.9


@pytest.mark.parametrize("preset", PRESETS)
def test_new_items_come_with_fold_in_and_update(models, preset: str) -> None:
    """Everybody who rates the one item well and the other badly is believed."""
    model, values = models[preset], TRAIN.scale.values
    raters = TRAIN.user_ids[:12].tolist()
    good = model.update(raters + raters, [900] * 12 + [901] * 12, [5.0] * 12 + [1.0] * 12)
    p = good.predict_proba([STRANGER, STRANGER, 130, 130], [900, 901, 900, 901])
    assert is_sound(p)
    assert p[0] @ values > p[1] @ values + 0.5
    assert p[2] @ values > p[3] @ values + 0.5
    assert good.item_ids_[-2:].tolist() == [900, 901]
    assert good._known([130], [900])[1].all()
    assert 900 in set(good.recommend(130, 100, by="expected")["item"])
    assert 900 not in set(good.recommend(raters[0], 100, by="expected")["item"])
    assert 900 not in model.item_ids_
    # nobody else is touched
    others = TEST.select(~np.isin(TEST.user_ids.take(TEST.users), raters))
    assert np.array_equal(good.predict_proba(*ids(others)), model.predict_proba(*ids(others)))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_user_of_new_items_alone_is_left_to_the_factors(models, preset: str) -> None:
    ratings = new_ratings(STRANGER, [-1, -2], [5.0, 1.0], scale=TRAIN.scale)
    folded = models[preset].fold_in(ratings)
    items = TRAIN.item_ids[:9]
    p = folded.predict_proba([STRANGER] * 9, items)
    assert is_sound(p)
    assert np.array_equal(p, folded.factors_.predict_proba([STRANGER] * 9, items))
    assert folded.predict_frame(pd.DataFrame({"user": [STRANGER], "item": items[:1]}))[
        "known_user"
    ].all()


@pytest.mark.parametrize("preset", PRESETS)
def test_fold_in_and_update_agree(models, preset: str) -> None:
    model = models[preset]
    items, given = [500, 503, 900, 510], [5.0, 1.0, 3.0, 4.0]
    folded = model.fold_in(new_ratings(7, items, given, scale=TRAIN.scale))
    at_once = model.update([7] * 4, items, given)
    one_by_one = model.update([7] * 3, [500, 503, 900], [5.0, 1.0, 2.0]).update(
        [7, 7], [900, 510], [3.0, 4.0]
    )
    users, asked = [7] * 31, [*TRAIN.item_ids, 900]
    p = folded.predict_proba(users, asked)
    np.testing.assert_allclose(at_once.predict_proba(users, asked), p, atol=1e-9)
    # a new item that came before the last rating was read a little differently
    np.testing.assert_allclose(one_by_one.predict_proba(users, asked), p, atol=0.05)
    assert sorted(one_by_one.item_ids_.take(one_by_one.history_of(7)[0])) == sorted(items)
    with pytest.raises(ArgumentError, match="must pair up"):
        model.update([7, 8], [500], [5.0])


def test_update_moves_the_prediction_towards_the_rating(models) -> None:
    model, values = models["fast"], TRAIN.scale.values
    item = model.recommend(107, 100)["item"].iloc[-1]
    before = model.predict_proba([107], [item]) @ values
    after = model.update(107, item, 5.0)
    assert (after.predict_proba([107], [item]) @ values) > before
    assert (model.predict_proba([107], [item]) @ values) == before
    assert item not in set(after.recommend(107, 100)["item"])


def test_ratings_are_read_by_value(models) -> None:
    """Whoever gave 3, 4 and 5 and loads them without a scale has not given 1, 2 and 3."""
    items, given = [500, 501, 502], [3.0, 4.0, 5.0]
    unscaled = new_ratings(7, items, given)
    scaled = new_ratings(7, items, given, scale=TRAIN.scale)
    assert unscaled.scale != TRAIN.scale
    for model in models.values():
        one, two = model.fold_in(unscaled), model.fold_in(scaled)
        assert np.array_equal(
            one.predict_proba([7] * 30, TRAIN.item_ids), two.predict_proba([7] * 30, TRAIN.item_ids)
        )
        assert one.history_of(7)[1].tolist() == [2, 3, 4]
        with pytest.raises(DataError, match=r"3\.5 is not on the (declared )?scale"):
            model.fold_in(new_ratings(7, items, [3.0, 3.5, 4.0]))
        with pytest.raises(DataError, match=r"9 is not on the (declared )?scale"):
            model.update(7, 500, 9.0)


def test_side_data_of_new_items_are_used() -> None:
    """Items of two kinds, one of them liked by all; of new ones only the kind is known."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((50, 40)) < 0.5)
    rating = np.clip(np.round(rng.normal(np.where(items % 2, 4.2, 1.8))), 1, 5)
    frame = pd.DataFrame({"user": users, "item": items, "rating": rating})
    kinds = pd.DataFrame({"kind": np.where(np.arange(40) % 2, "good", "bad")}, index=range(40))
    model = RatingPredictor(preset="fast").fit(
        Ratings.from_frame(frame, scale=range(1, 6), item_table=kinds)
    )
    new = Ratings.from_frame(
        pd.DataFrame({"user": [0], "item": [1], "rating": [4]}),
        scale=range(1, 6),
    )._replaced(
        item_ids=pd.Index([1, 70, 71]),
        item_table=pd.DataFrame({"kind": ["good", "good", "bad"]}, index=[1, 70, 71]),
    )
    p = model.fold_in(new).predict_proba([3, 3, STRANGER, STRANGER], [70, 71, 70, 71])
    expected = p @ model.scale_.values
    assert is_sound(p)
    assert expected[0] > expected[1] + 0.5
    assert expected[2] > expected[3] + 0.5


def test_cold_users_are_predicted_no_worse_than_by_the_histogram() -> None:
    """On a part of the bundled ratings, in which a fifth of the users is kept back."""
    whole = load_dataset("ml-latest-small-2016", offline=True)
    some = whole.select((whole.users < 100) & (whole.item_counts >= 40)[whole.items]).compact()
    cold = some.users % 5 == 0
    train, test = some.select(~cold), some.select(cold)
    rows = np.arange(test.n_ratings)
    histogram = RatingHistogram().fit(train).predict_proba(*ids(test))
    p = RatingPredictor(preset="fast").fit(train).predict_proba(*ids(test))
    ours, theirs = (-np.log(of[rows, test.levels]).mean() for of in (p, histogram))
    assert ours < theirs
    assert is_sound(p)


@pytest.mark.parametrize("preset", PRESETS)
def test_ids_without_ratings_in_training(preset: str) -> None:
    """A split leaves users and items without ratings behind: nothing is known of them."""
    without = TRAIN.select((TRAIN.users != 3) & (TRAIN.items != 4))
    model = RatingPredictor(preset=preset, learn="defaults").fit(without)  # type: ignore[arg-type]
    user, item = TRAIN.user_ids[3], TRAIN.item_ids[4]
    p = model.predict_proba([user, user, 100], [item, 500, item])
    assert is_sound(p)
    known_user, known_item = model._known([user, 100], [item, 500])
    assert known_user.tolist() == known_item.tolist() == [False, True]
    assert item not in set(model.recommend(100, 100, by="expected")["item"])
