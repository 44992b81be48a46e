"""Ratings of items that a model does not know are used, or somebody says what became of them."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.recommend import (
    BiasModel,
    HeldOut,
    ItemKNN,
    OrdinalFactors,
    ProcessPredictor,
    RatingPredictor,
    predict_scan,
)

RATINGS = synthetic_ratings(25, 20, n_ratings=260, seed=1)
LEFT_OUT = "2 of 3 ratings are of items that the model does not know, such as 901, and are left out"


def of_a_newcomer(items: list[Any], values: list[float], scale: Any = RATINGS.scale) -> Ratings:
    return Ratings.from_frame(
        pd.DataFrame({"user": 777, "item": items, "rating": values}), scale=scale
    )


def said_by(step: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return step(), [str(each.message) for each in said]


@pytest.fixture(scope="module")
def process() -> ProcessPredictor:
    return ProcessPredictor(preset="fast").fit(RATINGS)


@pytest.fixture(scope="module")
def pool() -> RatingPredictor:
    return RatingPredictor(preset="fast").fit(RATINGS)


ITEMS, VALUES = [int(RATINGS.item_ids[0]), 901, 902], [5.0, 1.0, 2.0]


def test_a_process_says_what_it_leaves_out(process) -> None:
    folded, said = said_by(lambda: process.fold_in(of_a_newcomer(ITEMS, VALUES)))
    assert said == [f"ProcessPredictor: {LEFT_OUT}"]
    updated, said = said_by(lambda: process.update([777] * 3, ITEMS, VALUES))
    assert said == [f"ProcessPredictor: {LEFT_OUT}"]  # once for all of them
    alone, said = said_by(lambda: process.fold_in(of_a_newcomer(ITEMS[:1], VALUES[:1])))
    assert said == []
    pairs = [777] * RATINGS.n_items, RATINGS.item_ids
    for model in (folded, updated):
        np.testing.assert_array_equal(model.predict_proba(*pairs), alone.predict_proba(*pairs))


def test_a_pool_loses_nothing_and_says_nothing(pool) -> None:
    for step in (
        lambda: pool.fold_in(of_a_newcomer(ITEMS, VALUES)),
        lambda: pool.update([777] * 3, ITEMS, VALUES),
    ):
        model, said = said_by(step)
        assert said == []
        assert model.item_ids_[-2:].tolist() == [901, 902]


def test_a_pool_without_factors_says_what_it_leaves_out(pool) -> None:
    bare = copy.copy(pool)  # as files of version 0.1 load
    bare.factors_ = None
    assert said_by(lambda: bare.fold_in(of_a_newcomer(ITEMS, VALUES)))[1] == [
        f"ProcessPredictor: {LEFT_OUT}"
    ]
    assert said_by(lambda: bare.update([777] * 3, ITEMS, VALUES))[1] == [
        f"ProcessPredictor: {LEFT_OUT}"
    ]


def test_biases_count_ratings_of_unknown_items() -> None:
    model = BiasModel().fit(RATINGS)
    folded, said = said_by(lambda: model.fold_in(of_a_newcomer([901, 902], [1.0, 1.0])))
    assert said == []
    assert folded.predict([777], [ITEMS[0]])[0] < model.predict([777], [ITEMS[0]])[0]


def test_neighbours_of_unknown_items_there_are_none() -> None:
    model = ItemKNN().fit(RATINGS)
    folded, said = said_by(lambda: model.fold_in(of_a_newcomer(ITEMS, VALUES)))
    assert said == [
        "ItemKNN: " + LEFT_OUT.replace("are left out", "count in the biases of their users alone")
    ]
    assert folded.predict([777], [901])[0] == folded.bias_.predict([777], [901])[0]


def test_a_scan_says_once_which_items_are_left_out(tmp_path) -> None:
    RATINGS.to_partitions(tmp_path / "ratings", rows_per_part=100)
    scan = Ratings.scan(tmp_path / "ratings")
    held = HeldOut(0.2)
    train, _ = held.parted(RATINGS)
    some = train.select(train.items > 2).compact()
    model = OrdinalFactors(n_factors=2, pattern=2, max_iter=2).fit(some)
    _, said = said_by(lambda: predict_scan(model, scan, held, tmp_path / "out"))
    (unknown,) = said
    assert unknown.startswith("3 of 20 items in ")
    assert "users are folded in without their ratings of these" in unknown
    whole = OrdinalFactors(n_factors=2, pattern=2, max_iter=2).fit(train)
    assert said_by(lambda: predict_scan(whole, scan, held, tmp_path / "all"))[1] == []
