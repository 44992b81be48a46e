"""The search of a rating model's parameters: defaults first, budgets, methods, spaces."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler

from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation import Between, evaluate, tune_model
from ordrec.evaluation.run import Interrupted
from ordrec.evaluation.tuning import model as tuning_model
from ordrec.evaluation.tuning.spaces import default_space
from ordrec.rating.process.model import ProcessPredictor
from ordrec.rating.thresholds.model import PersonalThresholds
from ordrec.recommend import BiasModel, GlobalMean, OrdinalFactors, make_model
from ordrec.recommend.registry import MODELS

NAMES = [entry.name for entry in MODELS if entry.name and entry.home.startswith("ordrec.")]
DAMPINGS = {"user_damping": [1.0, 15.0, 30.0], "item_damping": [1.0, 10.0]}


@pytest.fixture(scope="module")
def ratings():
    return synthetic_ratings(40, 30, n_ratings=600, seed=0)


def test_a_grid_finds_the_best_on_the_inner_splits(ratings):
    calls = []
    found = tune_model(ratings, "bias", DAMPINGS, progress=lambda *news: calls.append(news))
    assert found.method == "grid"
    assert len(found.table) == 6  # the defaults are one of them, and tried once
    assert tuple(found.table.loc[0, ["user_damping", "item_damping"]]) == (15.0, 10.0)
    assert found.best_score == found.table["score"].min() < found.default_score
    models = {"found": BiasModel(**found.best_params), "default": BiasModel()}
    same = evaluate(ratings, models, "kfold:3", metrics=["rmse"], n_resamples=0).summary()
    assert same.loc["found", "rmse"] == pytest.approx(found.best_score)
    assert same.loc["default", "rmse"] == pytest.approx(found.default_score)
    expected = BiasModel(**found.best_params).fit(ratings).predict([1, 2], [3, 4])
    np.testing.assert_array_equal(found.model.predict([1, 2], [3, 4]), expected)
    assert calls[0] == (0, 20, "the defaults")
    assert calls[1][2].startswith("best rmse")
    assert calls[-1][:2] == (20, 20)


def test_the_defaults_win_if_nothing_is_better(ratings):
    found = tune_model(ratings, "bias", {"item_damping": [1e6, 1e7]}, n_trials=3)
    assert found.best_params == {}
    assert found.best_score == found.default_score
    assert found.model.item_damping == 10.0


def test_higher_is_better_where_it_is(ratings):
    found = tune_model(ratings, "ease", {"user_power": [0.0, 1.0]}, refit=False)
    assert found.metric == "graded_ndcg@10"
    assert found.best_score == found.table["score"].max()
    assert not hasattr(found.model, "item_ids_")


@pytest.mark.parametrize("method", ["random", "optuna"])
def test_draws_depend_on_the_seed_alone(ratings, method):
    if method == "optuna":
        pytest.importorskip("optuna")
    space = DAMPINGS | {"user_damping": Between(1, 50, log=True)}
    one, two, other = (
        tune_model(ratings, "bias", space, n_trials=6, method=method, seed=seed, refit=False)
        for seed in (1, 1, 2)
    )
    columns = list(space)
    pd.testing.assert_frame_equal(one.table[columns], two.table[columns])
    assert not one.table[columns].equals(other.table[columns])
    assert len(one.table.drop_duplicates(columns)) == 6
    assert one.table["user_damping"].between(1, 50).all()


def test_a_small_space_is_exhausted(ratings):
    found = tune_model(ratings, "bias", DAMPINGS, n_trials=50, method="random", refit=False)
    assert len(found.table) == 6


def test_without_optuna_settings_are_random(ratings, monkeypatch):
    monkeypatch.setattr(tuning_model, "_has_optuna", lambda: False)
    found = tune_model(ratings, "bias", n_trials=2, refit=False)
    assert found.method == "random"


def test_the_budget(ratings):
    assert len(tune_model(ratings, "bias", seconds=0.0, refit=False).table) == 1
    assert len(tune_model(ratings, "bias", n_trials=1, refit=False).table) == 1


@dataclass
class Fragile(GlobalMean):
    """Fails unless ``strength`` is 1."""

    strength: int = 1

    def fit(self, ratings):
        if self.strength != 1:
            raise ArithmeticError("too strong")
        return super().fit(ratings)


def test_settings_that_fail_are_recorded_and_never_win(ratings):
    found = tune_model(ratings, Fragile(), {"strength": [1, 2]})
    assert found.table["error"].tolist() == ["", "ArithmeticError: too strong"]
    assert found.best_params == {}
    with pytest.raises(ArithmeticError):
        tune_model(ratings, Fragile(strength=2), {"strength": [1, 2]})


def test_ctrl_c_keeps_what_was_tried(ratings):
    def press(done: int, total: int, text: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as interrupted:
        tune_model(ratings, "bias", DAMPINGS, progress=press)
    assert len(interrupted.value.result.table) == 3


class Bare:
    def fit(self, ratings):
        return self

    def predict(self, users, items):
        return np.full(len(users), 3.0)


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        ("mean", {}, "no parameters of GlobalMean are searched by default"),
        ("bias", {"space": {"n_factors": [1, 2]}}, "BiasModel has no parameter 'n_factors'"),
        ("bias", {"space": {"tol": "small"}}, "tol must be a Between or a list"),
        ("bias", {"method": "luck"}, "method must be one of"),
        ("bias", {"method": "grid"}, "a grid needs lists of values: user_damping is a range"),
        ("bias", {"n_trials": 0}, "n_trials must be at least 1"),
        ("bias", {"metric": "log_loss"}, "none of the metrics log_loss applies to BiasModel"),
        (BiasModel, {}, r"model 'BiasModel' is a class: make a model of it with \(\)"),
        (Bare(), {}, "Bare has no get_params and set_params"),
    ],
)
def test_mistakes(ratings, model, options, says):
    with pytest.raises(ArgumentError, match=says):
        tune_model(ratings, model, **options)


@pytest.mark.parametrize(("low", "high", "log"), [(2, 1, False), (0, 1, True), (0, np.inf, False)])
def test_ranges_that_are_none(low, high, log):
    with pytest.raises(ArgumentError, match="a range goes from a number to a higher one"):
        Between(low, high, log=log)


def test_default_spaces_hold_real_parameters():
    searched = set()
    for name in NAMES:
        try:
            model = make_model(name)
        except ImportError:
            continue
        if hasattr(model, "search_space"):
            searched.add(type(model).__name__)
            space = default_space(model)
            for setting in ParameterSampler(dict(space), 4, random_state=0):
                model.set_params(**setting)
    assert searched >= {
        "BiasModel", "ItemKNN", "OrdinalFactors", "RatingPredictor", "PerUserPredictor",
        "Recommender", "ChoiceMixture", "EASE", "ImplicitALS",
    }  # fmt: skip
    for home in (ProcessPredictor, PersonalThresholds):
        assert default_space(home())
    assert set(default_space(OrdinalFactors(pattern=0))) == {"n_factors", "symmetric"}
    assert "preset" not in default_space(make_model("predictor-fast"))  # it is fast by name


@dataclass
class Declared(GlobalMean):
    depth: int = 3
    width: float = 1.0
    kind: str = "a"
    search_space: ClassVar[dict[str, Any]] = {
        "depth": (1, 9), "width": (1, 100, "log"), "kind": ["a", "b"]
    }  # fmt: skip


def test_a_class_declares_what_is_searched():
    assert default_space(Declared()) == {
        "depth": Between(1, 9, whole=True),
        "width": Between(1, 100, log=True),
        "kind": ["a", "b"],
    }
    assert set(default_space(Declared(depth=4))) == {"width", "kind"}


def test_only_kernels_that_a_model_takes_are_tried(ratings):
    from ordrec.recommend import PerUserPredictor

    space = default_space(PerUserPredictor())
    assert set(space["kernel"]) == {"pearson", "pooled"}
    for kernel in space["kernel"]:
        PerUserPredictor(kernel=kernel, min_ratings=10).fit(ratings)


@pytest.mark.parametrize("name", NAMES)
def test_every_model_can_be_cloned_with_other_parameters(name):
    try:
        model = make_model(name)
    except ImportError as error:
        pytest.skip(str(error))
    again = clone(model)
    assert type(again) is type(model)
    assert again.get_params(deep=False).keys() == inspect.signature(type(model)).parameters.keys()
