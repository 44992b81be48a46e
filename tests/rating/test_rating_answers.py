"""What every rating model answers, with each of its parameters changed, is as recorded."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.invented_by_taste import DAY, invented_by_taste
from support.recorded_answers import compare_with_record, recorded_names
from support.small_pieces import make_pieces_small

from ordrec.data import Ratings, Scale
from ordrec.features import LowRankEM
from ordrec.ordinal import SVORIM, OrdinalLogistic
from ordrec.rating.presets import gigabytes
from ordrec.rating.process.preparation import Preparation, SideFeatures, memory_parts
from ordrec.recommend import (
    BiasModel,
    ConformalRatings,
    GlobalMean,
    ItemKNN,
    OrdinalFactors,
    PersonalThresholds,
    PerUserPredictor,
    ProcessPredictor,
    RatingHistogram,
    RatingPredictor,
)

RECORD = Path(__file__).with_suffix(".json")
RATINGS = {
    "plain": invented_by_taste(),
    "dated": invented_by_taste(dated=True),
    "whole": invented_by_taste(dated=True, described=True),
    "weighted": invented_by_taste(weighted=True),
}
USERS = [100, 103, 103, 111, 999, 105, 999]
ITEMS = ["i00", "i05", "i17", "i02", "i05", "none", "none"]
WHEN = 1_100_000_000 + DAY * np.array([10, 500, 800, 300, 400, 20, 900])
small_factors = partial(OrdinalFactors, n_factors=3, pattern=4, max_iter=6)
process = partial(ProcessPredictor, learn="defaults")

MODELS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "mean": (GlobalMean, ["plain", "weighted"]),
    "histogram": (RatingHistogram, ["plain", "weighted"]),
    "histogram damping=3": (partial(RatingHistogram, damping=3.0), ["plain"]),
    "bias": (BiasModel, ["plain", "weighted"]),
    "bias damped": (partial(BiasModel, user_damping=3.0, item_damping=2.0), ["plain"]),
    "knn": (ItemKNN, ["plain"]),
    "knn cosine": (partial(ItemKNN, k=3, similarity="cosine", damping=4.0), ["plain"]),
    "factors": (small_factors, ["plain", "dated", "whole", "weighted"]),
    "factors by themselves": (partial(OrdinalFactors, max_iter=6), ["plain"]),
    "factors asymmetric": (partial(small_factors, symmetric=False), ["plain"]),
    "factors median": (partial(small_factors, decision="median"), ["plain"]),
    "process full": (process, ["plain", "dated", "whole"]),
    "process fast": (partial(process, preset="fast"), ["plain", "dated", "whole"]),
    "process learnt": (
        partial(ProcessPredictor, preset="fast", learn="hold-out", max_iter=2), ["dated", "whole"],
    ),
    "process without refit": (partial(process, preset="fast", refit=False), ["plain"]),
    "predictor full": (partial(RatingPredictor, "full", learn="defaults"), ["whole"]),
    "predictor fast": (partial(RatingPredictor, "fast"), ["plain", "whole"]),
    "predictor large": (partial(RatingPredictor, "large"), ["dated"]),
    "per user": (partial(PerUserPredictor, min_ratings=5), ["plain"]),
    "per user logistic": (
        partial(PerUserPredictor, OrdinalLogistic(kernel="precomputed"), min_ratings=5), ["plain"],
    ),
    "per user pooled": (partial(PerUserPredictor, kernel="pooled", min_ratings=5), ["plain"]),
    "per user, by rows": (
        partial(PerUserPredictor, SVORIM(), features=LowRankEM(3, random_state=0), min_ratings=5),
        ["plain"],
    ),
    "thresholds": (partial(PersonalThresholds, BiasModel(), n_splits=3), ["plain"]),
    "thresholds wide": (
        partial(
            PersonalThresholds, BiasModel(), n_splits=2, threshold_sd=0.6, user_sd=0.5,
            item_sd=0.4, decision="median",
        ),
        ["plain"],
    ),
    "conformal": (partial(ConformalRatings, small_factors(), calibration=0.3), ["plain"]),
}  # fmt: skip
WAYS = [(name, data) for name, (_, kinds) in MODELS.items() for data in kinds]


def answers(model: Any, users: Any = USERS, items: Any = ITEMS) -> dict[str, Any]:
    """What a model says of pairs, known and unknown, then and at no time."""
    said: dict[str, Any] = {}
    for method in ("predict", "predict_proba", "predict_interval"):
        ask = getattr(model, method, None)
        if ask is not None and (method != "predict_interval" or hasattr(model, "predict_proba")):
            said[method] = ask(users, items)
            if "timestamps" in inspect.signature(ask).parameters:
                said[f"{method}, dated"] = ask(users, items, WHEN[: len(users)])
    return said


def of_a_user(model: Any) -> dict[str, Any]:
    """Lists, reasons and what is said after new ratings, as far as the model gives any."""
    said: dict[str, Any] = {}
    if hasattr(model, "explain"):
        said["reasons"] = model.explain(103, "i05").table
    if hasattr(model, "update"):
        said["updated"] = answers(model.update(103, "i16", 1), [103] * 3, ITEMS[:3])
    if hasattr(model, "fold_in"):
        rated = {"user": ["new"] * 3, "item": ["i01", "i04", "i09"], "rating": [5, 1, 4]}
        new = Ratings.from_frame(pd.DataFrame(rated), scale=Scale.regular(1, 5))
        said["folded in"] = answers(model.fold_in(new), ["new"] * 3, ITEMS[:3])
    return said


@pytest.mark.parametrize(("name", "data"), WAYS)
def test_recorded_answers_of_rating_models(name: str, data: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name][0]().fit(RATINGS[data])
        said = answers(model) | of_a_user(model)
    close = 5e-3 if name == "process learnt" else 1e-4  # whose search ends at a loose tolerance
    compare_with_record(RECORD, f"{name}, {data}", said, rtol=close, atol=close / 10)


@pytest.mark.parametrize(("name", "data"), WAYS)
def test_recorded_answers_do_not_depend_on_the_size_of_pieces(monkeypatch, name, data) -> None:
    make_pieces_small(monkeypatch)
    test_recorded_answers_of_rating_models(name, data)


def test_every_record_has_a_test() -> None:
    assert recorded_names(RECORD) == {"memory", *(f"{name}, {data}" for name, data in WAYS)}


def test_recorded_answers_of_estimates_of_memory() -> None:
    said: dict[str, Any] = {
        f"{data}, {preset}": gigabytes(preset, ratings) * 1e6
        for data, ratings in RATINGS.items()
        for preset in ("full", "fast", "large")
    }
    whole = RATINGS["whole"]
    for two_sided in (False, True):
        parts = memory_parts(whole, SideFeatures(), Preparation(two_sided=two_sided))
        said[f"two sides: {two_sided}"] = [1e6 * part for part in parts]
    compare_with_record(RECORD, "memory", said)
