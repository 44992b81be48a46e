"""Every rating model keeps the contract of rating models."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import pytest
from contracts.rating_contract import RatingContract, pytest_generate_tests  # noqa: F401
from sklearn.linear_model import LogisticRegression

from ordrec.recommend import (
    EASE,
    BiasModel,
    OrdinalFactors,
    PersonalThresholds,
    ProcessPredictor,
    SklearnModel,
    make_model,
)
from ordrec.recommend.registry import MODELS

small_factors = partial(OrdinalFactors, n_factors=3, pattern=4, max_iter=8)
RATING_MODELS = {
    "mean": partial(make_model, "mean"),
    "histogram": partial(make_model, "histogram"),
    "bias": partial(make_model, "bias"),
    "item-knn": partial(make_model, "item-knn"),
    "factors": small_factors,
    "recommender": partial(make_model, "recommender", choice=EASE(), rating=small_factors()),
    "recommender-fast": partial(make_model, "recommender-fast"),
    "per-user-svor": partial(make_model, "per-user-svor"),
    "per-user-logistic": partial(make_model, "per-user-logistic"),
    "predictor": partial(make_model, "predictor", learn="defaults"),
    "predictor-fast": partial(make_model, "predictor-fast"),
    "surprise-svd": partial(make_model, "surprise-svd"),
    "surprise-knn": partial(make_model, "surprise-knn"),
    "myfm": partial(make_model, "myfm", n_factors=2, n_iter=20),
    "ridge": partial(make_model, "ridge"),
}
UNNAMED = {
    "process": partial(ProcessPredictor, learn="defaults"),
    "thresholds": partial(PersonalThresholds, BiasModel(), n_splits=3),
    "classifier": partial(SklearnModel, LogisticRegression(max_iter=500)),
}


MADE_OF_OTHERS = "is made of models that are tested themselves"
DRAWN = "another library's, which draws in the order of the rows"


class TestRatingModels(RatingContract):
    models: ClassVar = RATING_MODELS | UNNAMED
    constant: ClassVar = {"mean", "histogram"}
    least: ClassVar = {"per-user-svor": 0.08, "per-user-logistic": 0.08}
    rounding: ClassVar = {"process": 0.25, "predictor-fast": 0.25, "thresholds": 0.25}
    by_code: ClassVar = {"factors"}
    exempt: ClassVar = {
        **dict.fromkeys(["recommender", "recommender-fast", "predictor"], MADE_OF_OTHERS),
        **dict.fromkeys(["surprise-svd", "myfm"], DRAWN),
    }


def test_every_registered_model_keeps_a_contract() -> None:
    from choice.test_ranking_contract import RANKING_MODELS

    named = {entry.name for entry in MODELS if entry.home.startswith("ordrec.")} - {""}
    assert named == set(RATING_MODELS) | set(RANKING_MODELS)
    for name in RANKING_MODELS:
        assert not hasattr(make_model(name), "predict"), f"{name} rates, too"
    with pytest.raises(AttributeError):
        make_model("ease").predict  # noqa: B018
