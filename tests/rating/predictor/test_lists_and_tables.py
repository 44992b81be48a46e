"""What a fitted `RatingPredictor` says: predictions, tables, lists, decisions."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from support.two_taste_ratings import entropy, ids, log_loss, parts, two_taste_ratings

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError
from ordrec.recommend import ProbabilityModel, RatingPredictor

PRESETS = ["full", "fast", "large"]
TRAIN, TEST = parts(two_taste_ratings())


@pytest.fixture(scope="module")
def fitted() -> dict[str, RatingPredictor]:
    return {
        preset: RatingPredictor(preset=preset, learn="defaults").fit(TRAIN)  # type: ignore[arg-type]
        for preset in PRESETS
    }


@pytest.mark.parametrize("preset", PRESETS)
def test_it_predicts(fitted, preset: str) -> None:
    model = fitted[preset]
    assert isinstance(model, ProbabilityModel)
    p = model.predict_proba(*ids(TEST))
    assert np.allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()
    assert log_loss(model, TEST) < entropy(TRAIN, TEST) - 0.15
    assert np.allclose(model.predict(*ids(TEST)), p @ TEST.scale.values)
    error = np.abs(p @ TEST.scale.values - TEST.values).mean()
    assert error < 0.85 * np.abs(TEST.values - np.median(TRAIN.values)).mean()


@pytest.mark.parametrize("preset", PRESETS)
def test_batch_equals_single(fitted, preset: str) -> None:
    users, items = ids(TEST)
    whole = fitted[preset].predict_proba(users, items)
    for k in (0, 7, 30):
        one = fitted[preset].predict_proba(users[k : k + 1], items[k : k + 1])
        assert np.allclose(whole[k], one[0], atol=1e-9)
    assert fitted[preset].predict_proba([], []).shape == (0, 5)


@pytest.mark.parametrize("preset", PRESETS)
def test_tables(fitted, preset: str) -> None:
    table = pd.DataFrame({"user": [100, -1, 100, -1], "item": [500, 500, -7, -7]})
    frame = fitted[preset].predict_frame(table)
    assert frame["known_user"].tolist() == [True, False, True, False]
    assert frame["known_item"].tolist() == [True, True, False, False]
    assert np.isfinite(frame["expected"]).all()
    assert np.array_equal(frame["rating"], frame["expected"])
    columns = [f"p_{k}" for k in range(1, 6)]
    assert np.allclose(frame[columns].sum(axis=1), 1.0)
    assert np.array_equal(
        frame[columns], fitted[preset].predict_proba(table["user"], table["item"])
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_recommendations(fitted, preset: str) -> None:
    model = fitted[preset]
    rated = set(TRAIN.of_user(103)["item"])
    for by in ("expected", "p_at_least", "lower_quantile"):
        best = model.recommend(103, 5, by=by)
        assert len(best) == 5
        assert not rated & set(best["item"])
        assert (np.diff(best["score"]) <= 1e-12).all()
    everything = model.recommend(103, 1000)
    assert set(everything["item"]) == set(TRAIN.item_ids[TRAIN.item_counts > 0]) - rated
    expected = model.predict_proba([103] * len(everything), everything["item"]) @ TRAIN.scale.values
    assert np.allclose(everything["expected"], expected)
    few = model.recommend(103, 3, candidates=[501, 502])
    assert set(few["item"]) <= {501, 502}
    assert len(model.recommend(-1, 3)) == 3
    with pytest.raises(ArgumentError, match="by must be"):
        model.recommend(103, 3, by="magic")


@pytest.mark.parametrize("preset", PRESETS)
def test_rated_items_of_a_known_user_folded_in_again_are_not_listed(fitted, preset: str) -> None:
    again = fitted[preset].fold_in(TRAIN.select(TRAIN.users == 5))
    assert not set(again.recommend(105, 100)["item"]) & set(TRAIN.of_user(105)["item"])


def test_lists_do_not_depend_on_who_was_asked_first() -> None:
    small = two_taste_ratings(n_users=25, n_items=15)
    lists = []
    for first in ("model", "copy"):
        model = RatingPredictor(preset="large").fit(small)
        copy = model.update([7] * 8, range(500, 508), [5.0] * 8)
        (model if first == "model" else copy).recommend(100, 3)
        lists.append(model.recommend(100, 15))
    pd.testing.assert_frame_equal(*lists)


def test_lists_of_users_with_new_items_are_made_without_a_warning(fitted) -> None:
    model = fitted["fast"].update([103, 103], [900, 901], [5.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.recommend(103, 5)) == 5


def test_times_of_lists() -> None:
    dated = two_taste_ratings(n_users=25, n_items=15, dated=True)
    model = RatingPredictor(preset="large").fit(dated)
    listed = model.recommend(103, 4, by="expected", timestamp=14_000)
    p = model.predict_proba([103] * len(listed), listed["item"], [14_000] * len(listed))
    assert np.allclose(listed["expected"], p @ dated.scale.values)
    assert not np.allclose(model.predict_proba([103] * len(listed), listed["item"]), p)


@pytest.mark.parametrize("preset", ["full", "large"])
def test_numbers_do_not_depend_on_threads_and_are_the_same_each_time(preset: str) -> None:
    """For "fast" see `test_hold_out`."""
    dated = two_taste_ratings(5, n_users=25, n_items=20, dated=True)
    models = [
        RatingPredictor(preset=preset, max_iter=1, n_jobs=n).fit(dated)  # type: ignore[arg-type]
        for n in (1, 3, 3)
    ]
    new = [[7, 7, 100], [501, 900, 900], [5.0, 1.0, 2.0], [12_000, 12_000, 13_000]]
    for later in (models, [model.update(*new) for model in models]):
        first, *others = later
        for times in (None, dated.timestamps):
            p = first.predict_proba(*ids(dated), times)
            for other in others:
                assert np.array_equal(other.predict_proba(*ids(dated), times), p)
        for other in others:
            assert other.pool_weights_ == first.pool_weights_
            assert other.explain(7, 503).table.equals(first.explain(7, 503).table)


def test_decisions(fitted) -> None:
    model = fitted["fast"]
    p = model.predict_proba(*ids(TEST))
    assert model.decision == "mean"
    least_half = (np.cumsum(p, axis=1) >= 0.5).argmax(axis=1)
    for decision, expected in (
        ("median", TEST.scale.values[least_half]),
        ("mode", TEST.scale.values[p.argmax(axis=1)]),
        ("mean", p @ TEST.scale.values),
        (1.0 - np.eye(5), TEST.scale.values[p.argmax(axis=1)]),
    ):
        model.decision = decision
        assert np.allclose(model.predict(*ids(TEST)), expected)
    model.decision = "mean"


@pytest.mark.parametrize("scale", [Scale.regular(0.5, 5, 0.5), Scale([0, 1]), Scale([-1, 0, 7])])
def test_any_scale(scale: Scale) -> None:
    train, test = parts(two_taste_ratings(8, scale=scale))
    model = RatingPredictor(preset="fast", decision="median").fit(train)
    assert model.predict_proba(*ids(test)).shape == (test.n_ratings, scale.n_ranks)
    assert set(model.predict(*ids(test))) <= set(scale.values)
    assert log_loss(model, test) < entropy(train, test)


def test_all_ratings_equal() -> None:
    frame = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 2], "rating": 4.0})
    ratings = Ratings.from_frame(frame, scale=range(1, 6))
    for preset in PRESETS:
        model = RatingPredictor(preset=preset, decision="mode").fit(ratings)  # type: ignore[arg-type]
        assert model.predict([1, 9], [3, 9]).tolist() == [4.0, 4.0]


def test_ids_and_times_must_pair_up(fitted) -> None:
    model = fitted["fast"]
    with pytest.raises(ArgumentError, match="pair up"):
        model.predict_proba([100], [500, 501])
    with pytest.raises(ArgumentError, match="pair up"):
        model.predict_proba([100, 101], [500, 501], [1])
    with pytest.raises(ArgumentError, match="sequences of ids"):
        model.predict_proba(100, 500)
