"""`fold_in` replaces the ratings of known users, and says so; `update` adds to them."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest

from ordrec.datasets import synthetic_ratings
from ordrec.evaluation import StrongGeneralisation, evaluate
from ordrec.recommend import EASE, BiasModel, ItemKNN, OrdinalFactors, RatingPredictor, Recommender

RATINGS = synthetic_ratings(30, 20, n_ratings=300, seed=1)
FACTORS = OrdinalFactors(rank=2, pattern=2, n_iter=3)
MODELS = {
    "factors": FACTORS,
    "predictor": RatingPredictor(preset="fast"),
    "knn": ItemKNN(),
    "bias": BiasModel(),
    "ease": EASE(),
    "recommender": Recommender(choice=EASE(), rating=FACTORS),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: Any) -> Any:
    return MODELS[request.param].fit(RATINGS)


def of(*users: Any) -> pd.DataFrame:
    return pd.DataFrame({"user": users, "item": RATINGS.item_ids[0], "rating": 5})


def test_known_users_are_counted_once(fitted: Any) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted.fold_in(of(3, 7, 999))
    texts = [str(each.message) for each in told if "replaces all ratings" in str(each.message)]
    assert len(texts) == 1, texts
    assert "2 of 3 users" in texts[0]
    assert "such as 3" in texts[0]
    assert ("call update" in texts[0]) == hasattr(fitted, "update")
    assert told[-1].filename == __file__


def test_new_users_and_updates_are_nothing_to_speak_of(fitted: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.fold_in(of(998, 999))
        if hasattr(fitted, "update"):
            fitted.update([3, 3, 999], RATINGS.item_ids[:3].tolist(), [4, 4, 5])


def test_evaluation_folds_in_on_purpose() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(RATINGS, [BiasModel()], StrongGeneralisation())
