"""Columns of any kind and name in a `ProcessPredictor`: used, said, declared, kept in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.rating.process import preparation
from ordrec.rating.process.model import ProcessPredictor
from ordrec.rating.process.preparation import SideFeatures

N_USERS, N_ITEMS = 60, 40


def shop(seed: int = 0) -> Ratings:
    """Ratings by users who like one maker and one price range; a few by each user."""
    rng = np.random.default_rng(seed)
    maker = np.arange(N_ITEMS) % 4
    price = 10.0 + 90.0 * rng.random(N_ITEMS)
    region = np.arange(N_USERS) % 2
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.3)
    liking = rng.normal(size=(N_USERS, 4)) + region[:, None] * [2.0, -2.0, 0.0, 0.0]
    score = (
        3.0
        + liking[users, maker[items]]
        + rng.choice([-1, 1], N_USERS)[users] * np.where(price[items] > 55.0, 0.7, -0.7)
    )
    frame = pd.DataFrame(
        {"user": users, "item": items, "rating": np.clip(np.round(score), 1, 5).astype(int)}
    )
    item_table = pd.DataFrame(
        {
            "item_id": np.arange(N_ITEMS),
            "maker": np.array(["Ahti", "Bore", "Caso", "Dino"])[maker],
            "price": price,
            "name": [f"Article {k}" for k in range(N_ITEMS)],
        }
    )
    user_table = pd.DataFrame({"user": np.arange(N_USERS), "region": np.array(["N", "S"])[region]})
    return Ratings.from_frame(
        frame, scale=range(1, 6), item_table=item_table, user_table=user_table
    )


def halves(ratings: Ratings) -> tuple[Ratings, Ratings]:
    held = np.random.default_rng(1).random(ratings.n_ratings) < 0.5
    return ratings.select(~held), ratings.select(held)


def log_loss(model: ProcessPredictor, test: Ratings) -> float:
    p = model.predict_proba(test.user_ids.take(test.users), test.item_ids.take(test.items))
    return float(-np.mean(np.log(p[np.arange(test.n_ratings), test.levels])))


@pytest.mark.parametrize("preset", ["fast", "full"])
def test_columns_of_any_name_make_predictions_better(preset) -> None:
    train, test = halves(shop())
    model = ProcessPredictor(preset, learn="defaults").fit(train)
    plain = ProcessPredictor(preset, learn="defaults", use_side=False).fit(train)
    assert log_loss(model, test) < log_loss(plain, test) - 0.01
    assert {"item.labels", "item.numbers"} <= set(model.weights_)
    assert plain.side_columns_ == {}
    assert model.side_columns_ == {
        "user": {"region": "categorical"},
        "item": {
            "maker": "categorical",
            "price": "numeric",
            "name": "ignored: nearly every value is different",
        },
    }


def test_kinds_are_declared_and_stored(tmp_path) -> None:
    ratings = shop()
    kinds = {"name": "text", "price": "ignore"}
    model = ProcessPredictor("fast", side_kinds=kinds).fit(ratings)
    assert model.side_columns_["item"] == {
        "name": "text",
        "maker": "categorical",
        "price": "ignored: as declared",
    }
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.side_columns_ == model.side_columns_
    assert again.side_kinds == kinds
    assert again.fit(ratings).weights_ == model.weights_
    with pytest.raises(ArgumentError, match="no side table has a column 'brand'"):
        ProcessPredictor("fast", side_kinds={"brand": "text"}).fit(ratings)


def test_a_table_of_which_nothing_can_be_used_is_warned_of() -> None:
    ratings = shop()
    useless = ratings.item_table[["name"]]
    with pytest.warns(UserWarning, match="no column of the item table can be used: {'name': 'ign"):
        SideFeatures.of(ratings._replaced(item_table=useless))


def test_columns_count_by_what_they_have_to_do_with_the_ratings() -> None:
    rng = np.random.default_rng(2)
    noise = pd.DataFrame({f"noise {k}": rng.choice(["S", "L"], N_ITEMS) for k in range(6)})
    ratings = shop().with_side_tables(item_table=noise)
    plain, side = SideFeatures.of(shop()), SideFeatures.of(ratings)
    labels = side.item["labels"] @ side.item["labels"].T
    np.testing.assert_allclose(np.diag(labels), 1.0)
    maker = plain.item["labels"] @ plain.item["labels"].T
    assert sorted(np.unique(maker.round(9))) == [0.0, 1.0]
    assert labels[maker > 0.5].min() > 2 * labels[maker < 0.5].mean()


def test_a_column_without_weight_is_left_out_and_said(monkeypatch) -> None:
    monkeypatch.setattr(preparation, "block_weights", lambda *given: np.eye(len(given[-1]))[0])
    side = SideFeatures.of(shop())
    assert set(side.item) == {"labels"}  # maker comes first, price second
    assert side.columns["item"]["maker"] == "categorical"
    assert side.columns["item"]["price"] == "ignored: nothing to do with the ratings"
