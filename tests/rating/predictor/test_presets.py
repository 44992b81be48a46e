"""Which preset is fitted, and that a large model does all that the others do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.two_taste_ratings import entropy, ids, log_loss, parts, two_taste_ratings

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.rating import presets as sizes
from ordrec.rating.presets import chosen_preset, gigabytes
from ordrec.rating.process.preparation import Preparation, SideFeatures, memory_parts
from ordrec.recommend import HeldOut, RatingPredictor, make_model, predict_scan

RATINGS = two_taste_ratings(n_users=30, n_items=20)


NEEDED = {"full": 4.0, "fast": 2.0, "large": 1.0}


@pytest.fixture
def needs(monkeypatch) -> None:
    """Fits that take given gigabytes."""
    monkeypatch.setattr(sizes, "gigabytes", lambda preset, ratings: NEEDED[preset])


@pytest.mark.usefixtures("needs")
@pytest.mark.parametrize(
    ("preset", "most_ratings", "limit", "chosen", "wanted"),
    [
        ("auto", 10**9, 8.0, "full", None),
        ("auto", 100, 8.0, "fast", None),
        ("auto", 10**9, 3.0, "fast", "full"),
        ("auto", 10**9, 1.5, "large", "full"),
        ("auto", 100, 1.5, "large", "fast"),
        ("full", 100, 8.0, "full", None),
        ("full", 10**9, 3.0, "fast", "full"),
        ("full", 10**9, 1.5, "large", "full"),
        ("fast", 10**9, 2.0, "fast", None),
        ("fast", 10**9, 1.5, "large", "fast"),
        ("large", 10**9, 1.5, "large", None),
    ],
)
def test_size_and_memory_choose_the_preset(
    monkeypatch, preset: str, most_ratings: int, limit: float, chosen: str, wanted: str | None
) -> None:
    monkeypatch.setattr(sizes, "FULL_RATINGS", most_ratings)
    monkeypatch.setattr(sizes, "AUTO_GIGABYTES", 100.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert chosen_preset(preset, RATINGS, limit) == chosen
    assert len(said) == (wanted is not None)
    if wanted is not None:
        needed = f'{NEEDED[wanted]:.2g} GB as preset="{wanted}"'
        message = str(said[0].message)
        assert f'{needed}, and max_memory is {limit:g}: fitted as preset="{chosen}"' in message


@pytest.mark.usefixtures("needs")
def test_auto_takes_no_more_than_a_laptop_has_to_spare(monkeypatch, recwarn) -> None:
    monkeypatch.setattr(sizes, "AUTO_GIGABYTES", 3.0)
    assert chosen_preset("auto", RATINGS, 8.0) == "fast"
    assert not recwarn.list  # nobody asked for more
    assert chosen_preset("full", RATINGS, 8.0) == "full"


@pytest.mark.usefixtures("needs")
@pytest.mark.parametrize("preset", ["auto", "full", "fast", "large"])
def test_a_fit_that_cannot_stay_below_the_limit_is_refused_with_its_figure(preset: str) -> None:
    with pytest.raises(DataError, match=r'take 1 GB or more, as preset="large", and max_memory is'):
        RatingPredictor(preset=preset, max_memory=0.5).fit(RATINGS)


@pytest.mark.usefixtures("needs")
def test_the_warning_names_the_line_of_the_caller() -> None:
    with pytest.warns(UserWarning, match='fitted as preset="large"') as said:
        model = RatingPredictor(preset="fast", max_memory=1.5).fit(RATINGS)
    assert said[0].filename == __file__
    assert (model.preset_, model.process_model_) == ("large", None)
    assert model.preset == "fast"  # what was asked for stays


def test_wrong_parameters_are_refused() -> None:
    wrong: dict[str, Any]
    for wrong in ({"preset": "slow"}, {"learn": "no"}, {"use_time": "yes"}, {"max_iter": 0}):
        with pytest.raises(ArgumentError, match=f"{next(iter(wrong))} must be"):
            RatingPredictor(**wrong).fit(RATINGS)


def test_presets_by_their_names() -> None:
    assert make_model("predictor").preset == "auto"
    assert make_model("predictor-fast").preset == "fast"
    assert make_model("predictor", preset="large").preset == "large"


# ---- large ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large() -> RatingPredictor:
    train, _ = parts(two_taste_ratings(dated=True))
    titles = pd.DataFrame({"title": [f"Film {k}" for k in train.item_ids]}, index=train.item_ids)
    return RatingPredictor(preset="large").fit(train.with_side_tables(item_table=titles))


def test_a_large_model_is_its_factors(large) -> None:
    train, test = parts(two_taste_ratings(dated=True))
    assert large.process_model_ is None
    assert large.pool_weights_ == (0.0, 1.0)
    for times in (None, test.timestamps):
        assert np.array_equal(
            large.predict_proba(*ids(test), times), large.factors_.predict_proba(*ids(test), times)
        )
    assert log_loss(large, test) < entropy(train, test) - 0.1


def test_a_large_model_takes_in_users_and_ratings(large) -> None:
    new = pd.DataFrame({"user": 7, "item": [501, 502, 900], "rating": [5.0, 1.0, 4.0]})
    for model in (
        large.fold_in(Ratings.from_frame(new, scale=large.scale_)),
        large.update(new["user"], new["item"], new["rating"]),
    ):
        expected = model.predict_proba([7] * 2, [501, 502]) @ large.scale_.values
        assert expected[0] > expected[1]
        table = model.predict_frame(pd.DataFrame({"user": [7, 100], "item": [900, 500]}))
        assert table[["known_user", "known_item"]].all(axis=None)
        assert 900 not in set(model.recommend(7, 100)["item"])
        assert not {501, 502} & set(model.recommend(7, 100)["item"])
        assert model.explain(7, 503).table["contribution"].sum() == pytest.approx(
            model.explain(7, 503).expected
        )
    assert not large._known([7], [900])[0].any()


def test_a_large_model_in_a_file(large, tmp_path) -> None:
    model = large.update(7, 501, 5.0)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.preset_ == "large"
    users, items = [7, 100, -1], [503, 504, 505]
    assert np.array_equal(again.predict_proba(users, items), model.predict_proba(users, items))
    pd.testing.assert_frame_equal(again.explain(7, 503).table, model.explain(7, 503).table)
    assert again.titles_ == model.titles_
    assert len(again.recommend(7, 3)) == 3


def test_a_large_model_on_ratings_on_disk(large, tmp_path) -> None:
    ratings = two_taste_ratings(dated=True)
    ratings.to_partitions(tmp_path / "ratings", rows_per_part=200)
    held = HeldOut(0.2)
    found = predict_scan(large, Ratings.scan(tmp_path / "ratings"), held, tmp_path / "out")
    history, wanted = held.parted(ratings)
    expected = large.fold_in(history).predict_proba(*ids(wanted)) @ ratings.scale.values
    table = pd.concat(list(found.frames()))
    np.testing.assert_allclose(table["expected"], expected, rtol=1e-5)


def test_the_estimate_counts_pairs_and_not_their_square() -> None:
    """Twice the users and items, in two worlds, take twice the memory and not four times."""
    one = two_taste_ratings(n_users=60, n_items=40).to_frame()[["user", "item", "rating"]]
    other = one.assign(user=one["user"] + 10_000, item=one["item"] + 10_000)
    single, double = Ratings.from_frame(one), Ratings.from_frame(pd.concat([one, other]))
    for two_sided in (True, False):
        config = Preparation(two_sided=two_sided)
        kept, solving = memory_parts(single, SideFeatures(), config)
        kept_twice, solving_twice = memory_parts(double, SideFeatures(), config)
        assert kept_twice == pytest.approx(2 * kept, rel=0.03)
        assert solving < solving_twice <= 2 * solving
    for preset in ("full", "fast", "large"):
        assert gigabytes(preset, single) <= gigabytes(preset, double)
