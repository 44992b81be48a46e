"""A model counts the weights of ratings, or says once that it ignores them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.peers.sklearn import SklearnModel
from ordrec.recommend import (
    BiasModel,
    OrdinalFactors,
    PersonalThresholds,
    ProcessPredictor,
    RatingPredictor,
    Recommender,
    make_model,
)

PLAIN = synthetic_ratings(25, 20, n_ratings=260, seed=1)
RATINGS = Ratings.from_frame(
    PLAIN.to_frame().assign(w=np.random.default_rng(0).integers(1, 5, 260) / 4),
    scale=PLAIN.scale,
    weight="w",
)
NEW = Ratings.from_frame(
    pd.DataFrame({"user": 777, "item": PLAIN.item_ids[:3], "rating": [5, 4, 1], "w": [1, 0.1, 1]}),
    scale=PLAIN.scale,
    weight="w",
)
SMALL = {"n_factors": 2, "pattern": 2, "max_iter": 3}
REMEDY = (
    " ignores the weights of the ratings, all of which count as 1: pass weight=None, or take "
    'OrdinalFactors ("factors") or PerUserPredictor ("per-user-logistic"), which count them'
)
IGNORING = {
    "GlobalMean": make_model("mean"),
    "RatingHistogram": make_model("histogram"),
    "BiasModel": make_model("bias"),
    "ItemKNN": make_model("item-knn"),
    "EASE": make_model("ease"),
    "ImplicitALS": make_model("als", n_factors=2),
    "ChoiceMixture": make_model("choice", n_factors=2),
    "Popularity": make_model("popularity"),
    "ProcessPredictor": ProcessPredictor("fast"),
    "PersonalThresholds": PersonalThresholds(BiasModel()),
    "SklearnModel": SklearnModel(Ridge()),
}


def said_by(step: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = step()
    return result, [str(each.message) for each in said if "weights" in str(each.message)]


@pytest.mark.parametrize("name", IGNORING)
def test_who_ignores_weights_says_so_once_and_does(name: str) -> None:
    model = IGNORING[name]
    fitted, said = said_by(lambda: model.fit(RATINGS))
    assert said == [name + REMEDY]
    ask = "predict" if hasattr(model, "predict") else "scores"
    pairs = [3] * 20, PLAIN.item_ids
    answer = getattr(fitted, ask)(*pairs)
    unweighted, said = said_by(lambda: model.fit(PLAIN))
    assert said == []
    np.testing.assert_array_equal(answer, getattr(unweighted, ask)(*pairs))
    if hasattr(model, "fold_in"):
        assert said_by(lambda: unweighted.fold_in(NEW))[1] == [name + REMEDY]


def test_factors_and_models_per_user_count_them() -> None:
    for model in (OrdinalFactors(**SMALL), make_model("per-user-logistic")):  # type: ignore[arg-type]
        p, said = said_by(lambda model=model: model.fit(RATINGS).predict_proba([3], [4]))
        assert said == []
        assert not np.allclose(p, model.fit(PLAIN).predict_proba([3], [4]), atol=1e-3)
    factors = OrdinalFactors(**SMALL).fit(RATINGS)  # type: ignore[arg-type]
    assert said_by(lambda: factors.fold_in(NEW))[1] == []
    # a list needs a choice model, which nobody asked about weights
    assert said_by(lambda: factors.fold_in(NEW).recommend(777, 3))[1] == []


def test_a_pool_says_that_its_process_ignores_them() -> None:
    says = ["the process of RatingPredictor, unlike its factors," + REMEDY]
    model, said = said_by(lambda: RatingPredictor("fast").fit(RATINGS))
    assert said == says
    assert model.factors_.known_ratings().weights is not None
    folded, said = said_by(lambda: model.fold_in(NEW))
    assert said == says
    alone = model.factors_.fold_in(NEW).predict_proba([777], [4])
    assert np.array_equal(folded.factors_.predict_proba([777], [4]), alone)
    large, said = said_by(lambda: RatingPredictor("large").fit(RATINGS))
    assert said == []
    assert said_by(lambda: large.fold_in(NEW))[1] == []


def test_a_recommender_hands_them_on() -> None:
    model = Recommender(choice=make_model("ease"), rating=OrdinalFactors(**SMALL))  # type: ignore[arg-type]
    fitted, said = said_by(lambda: model.fit(RATINGS))
    assert said == ["EASE" + REMEDY]
    assert fitted.rating_.known_ratings().weights is not None
    assert said_by(lambda: fitted.fold_in(NEW))[1] == ["EASE" + REMEDY]
