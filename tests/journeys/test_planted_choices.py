"""Whatever is chosen automatically is chosen well, where the right answer was planted.

Every chooser is also asked the opposite: with the sign of its criterion turned around it must give
another answer, so that a chooser which does not look at its criterion cannot pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from ordrec.choice.choosing import Chosen
from ordrec.choice.inner_splits import climb_by_doubling
from ordrec.datasets import synthetic_ratings
from ordrec.evaluation import Candidates, evaluate, tune_model
from ordrec.ordinal import GPOR, SVORIM, tune
from ordrec.ordinal.gpor import model as gpor
from ordrec.recommend import BiasModel, GlobalMean

RATINGS = synthetic_ratings(40, 25, n_ratings=500, seed=0)


@pytest.mark.parametrize("planted", [0.5, 25.0, 800.0])
def test_a_ridge_is_climbed_to_from_either_side(planted: float) -> None:
    for start in (planted / 16, planted, planted * 8):
        best, tried = climb_by_doubling(lambda value: -abs(np.log(value / planted)), start)
        assert best == pytest.approx(planted)
        assert tried[best] == max(tried.values())
        away, _ = climb_by_doubling(lambda value: abs(np.log(value / planted)), start * 2)
        assert abs(np.log(away / planted)) > 5


def test_a_climb_ends_with_a_step_that_gains_little() -> None:
    qualities = {100.0: 0.50, 50.0: 0.49, 200.0: 0.51, 400.0: 0.512, 800.0: 0.60}
    best, tried = climb_by_doubling(qualities.__getitem__, 100.0, 0.005)
    assert best == 400.0  # .4 per cent better than 200, which was 2 per cent better than 100
    assert list(tried) == [100.0, 50.0, 200.0, 400.0]
    qualities[1600.0] = 0.55
    assert climb_by_doubling(qualities.__getitem__, 100.0, 0.003)[0] == 800.0
    flat, tried = climb_by_doubling(lambda value: -np.inf, 100.0)
    assert (flat, len(tried)) == (100.0, 3)


def test_the_best_lists_are_chosen_unless_a_simpler_model_is_as_good() -> None:
    quality = np.random.default_rng(0).random(400)
    planted = {"simple": quality, "good": quality + 0.3, "better": quality + 0.5}
    assert Chosen.among(planted).name == "better"
    assert Chosen.among({name: -values for name, values in planted.items()}).name == "simple"
    assert Chosen.among({"simple": quality, "same": quality}).name == "simple"


class Wrong(BiasModel):
    """Predicts the worst rating, and lists first what is best last."""

    def predict(self, users: Any, items: Any) -> np.ndarray:
        low, high = self.scale_.low, self.scale_.high
        return np.clip(low + high - super().predict(users, items), low, high)


@pytest.mark.parametrize("metric", ["mae", "rmse", "tau"])
def test_candidates_are_chosen_by_the_direction_of_the_metric(metric: str) -> None:
    """In both orders, and against the values that an evaluation finds."""
    better, worse = BiasModel(), Wrong()
    for models in ({"a": better, "b": worse}, {"b": worse, "a": better}):
        candidates = Candidates(models, metric, n_folds=2)
        result = evaluate(RATINGS, {"chosen": candidates}, metrics=[metric])
        alone = evaluate(RATINGS, {"a": better, "b": worse}, metrics=[metric]).summary()[metric]
        assert result.summary()[metric].iloc[0] == pytest.approx(alone["a"])
        assert alone["a"] != pytest.approx(alone["b"])


@dataclass(eq=False)
class Planted(GlobalMean):
    """Is right if its parameter is, and the further off the further that is."""

    place: float = 0.0
    best: ClassVar[float] = 4.0

    def predict(self, users: Any, items: Any) -> np.ndarray:
        error = min(abs(self.place - self.best) / 4, 1.0)
        middle = (self.scale_.low + self.scale_.high) / 2
        return np.full(len(users), (1 - error) * middle + error * self.scale_.low)


def test_a_search_finds_the_planted_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    space = {"place": [0.0, 2.0, 4.0, 6.0, 8.0]}
    for best in (4.0, 6.0):
        monkeypatch.setattr(Planted, "best", best)
        found = tune_model(RATINGS, Planted(), space, metric="rmse", split="kfold:2", method="grid")
        assert found.best_params == {"place": best}
        assert found.best_score < found.default_score


def test_a_kernel_of_the_right_width_is_found() -> None:
    """Labels that alternate along a line need a narrow kernel, a slope a wide one."""
    order = np.random.default_rng(0).permutation(60)  # folds may be runs of rows
    x = np.linspace(0, 1, 60)[order, None]
    grid = {"gamma": [0.01, 300.0]}
    for y, width in (((np.arange(60) // 5) % 2, 300.0), ((np.arange(60) >= 30) * 1, 0.01)):
        found = tune(SVORIM(C=100.0), x, y[order], grid, cv=3)
        if width == 300.0:
            assert found.best_params["gamma"] == 300.0
        else:
            assert found.best_score <= 0.1


def test_the_best_of_several_ascents_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    made: list[Any] = []
    real = gpor.maximise

    def remembered(*given: Any, **options: Any) -> Any:
        made.append(real(*given, **options))
        return made[-1]

    monkeypatch.setattr(gpor, "maximise", remembered)
    model = GPOR(n_restarts=2, random_state=1, max_iter=8).fit(X, y)
    assert len(made) == 3
    best = max(made, key=lambda ascent: ascent.value)
    np.testing.assert_array_equal(model.theta_, best.theta)
