"""The predictor on MovieLens 100K, official fold u1: no worse than what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ordrec.data import Ratings
from ordrec.datasets import load_movielens
from ordrec.evaluation.metrics.measures import Outcome, measure_from_name
from ordrec.rating.process.model import ProcessPredictor

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


def figures(model: ProcessPredictor, ratings: Ratings, timed: bool) -> dict[str, float]:
    test = ratings.select(ratings.folds["u1"])
    model.fit(ratings.select(~ratings.folds["u1"]))
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
    p = model.predict_proba(users, items, test.timestamps if timed else None)
    outcome = Outcome(test, probabilities=p)
    wanted = {
        name: measure_from_name(name) for name in ("rmse", "int_mae", "mze", "log_loss", "ece")
    }
    return {name: m.value(outcome, "micro", m.decision)[0] for name, m in wanted.items()}


@pytest.fixture(scope="module")
def movielens(real_data: Path) -> Ratings:
    return load_movielens(real_data / "ml-100k")


def test_fast_beats_factorisation_machines_on_ids(movielens: Ratings) -> None:
    model = ProcessPredictor(preset="fast", use_side=False, use_time=False, n_jobs=-1)
    found = figures(model, movielens, timed=False)
    assert found["int_mae"] < 0.6643
    assert found["mze"] < 0.5421
    assert found["log_loss"] < 1.2186
    assert found["ece"] < 0.02


@pytest.mark.parametrize(
    ("inputs", "rmse", "log_loss"),
    [("ids", 0.888, 1.184), ("side", 0.882, 1.178), ("time", 0.869, 1.163)],
)
def test_full_reaches_the_study(
    movielens: Ratings, inputs: str, rmse: float, log_loss: float
) -> None:
    model = ProcessPredictor(
        use_side=inputs != "ids",
        use_time="auto" if inputs == "time" else False,
        learn="defaults",
        n_jobs=-1,
    )
    found = figures(model, movielens, timed=inputs == "time")
    assert found["rmse"] < rmse
    assert found["log_loss"] < log_loss
    assert found["ece"] < 0.015


def test_permuted_ratings_predict_nothing(movielens: Ratings) -> None:
    train = ~movielens.folds["u1"]
    levels = movielens.levels.copy()
    levels[train] = np.random.default_rng(0).permutation(levels[train])
    model = ProcessPredictor(preset="fast", use_side=False, use_time=False, n_jobs=-1)
    shuffled = movielens._replaced(levels=levels)
    share = np.bincount(movielens.levels[train]) / train.sum()
    test = movielens.levels[movielens.folds["u1"]]
    assert figures(model, shuffled, timed=False)["log_loss"] > -np.log(share)[test].mean() - 0.005
