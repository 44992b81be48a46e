"""Ratings of 0..100 through every model: bins inside, the units of the ratings outside."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import load, save
from ordrec.cli import app
from ordrec.data import Ratings, Scale
from ordrec.errors import DataError
from ordrec.evaluation import HoldOut, StrongGeneralisation, evaluate, measure_from_name
from ordrec.evaluation.manifest import ratings_checksum
from ordrec.evaluation.metrics.measure_types import graded
from ordrec.evaluation.metrics.outcome import Outcome
from ordrec.recommend import EASE, BiasModel, GlobalMean, Recommender, make_model

MODELS = [
    "mean", "histogram", "bias", "item-knn", "factors", "predictor-fast", "per-user-logistic",
    "recommender-fast",
]  # fmt: skip


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Good and bad items, generous and strict users, and a liking for round numbers."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((40, 25)) < 0.6)
    taste = 55 + 12 * rng.standard_normal(40)[users] + 18 * rng.standard_normal(25)[items]
    rating = np.clip(taste + 8 * rng.standard_normal(users.size), 0, 100)
    rating = np.where(rng.random(users.size) < 0.5, rating.round(-1), rating.round())
    return pd.DataFrame({"user": users, "item": items, "rating": rating})


@pytest.fixture(scope="module")
def ratings(frame) -> Ratings:
    return Ratings.from_frame(frame, scale=Scale.binned(frame["rating"], low=0, high=100))


@pytest.fixture(scope="module")
def parts(ratings) -> tuple[Ratings, Ratings]:
    split = next(HoldOut(0.2).split(ratings))
    return split.train, split.test


@pytest.mark.parametrize("name", MODELS)
def test_models_predict_in_the_units_of_the_ratings(name, parts, tmp_path):
    train, test = parts
    model = make_model(name).fit(train)
    pairs = test.user_ids.take(test.users), test.item_ids.take(test.items)
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(*pairs)
        assert p.shape == (test.n_ratings, train.scale.n_ranks)
        predicted = p @ model.scale_.values
    else:
        predicted = model.predict(*pairs)
    assert predicted.min() >= 0
    assert predicted.max() <= 100
    error = np.sqrt(np.mean((predicted - test.values) ** 2))
    assert error <= 1.02 * test.values.std()
    if name in ("bias", "predictor-fast", "recommender-fast"):
        assert error < 0.75 * test.values.std()
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.scale_ == model.scale_
    np.testing.assert_array_equal(again.predict(*pairs), model.predict(*pairs))


@pytest.mark.parametrize("name", ["bias", "item-knn", "predictor-fast", "recommender-fast"])
def test_new_users_are_read_by_value(name, parts):
    train, _ = parts
    model = make_model(name).fit(train)
    rows = {"user": 1000, "item": np.arange(6), "rating": [97.0, 31, 64, 88, 12, 55]}
    alone = Ratings.from_frame(pd.DataFrame(rows))  # on a scale of its own, without bins
    declared = Ratings.from_frame(pd.DataFrame(rows), scale=model.scale_)
    pairs = np.full(5, 1000), np.arange(10, 15)
    predicted = model.fold_in(alone).predict(*pairs)
    np.testing.assert_array_equal(predicted, model.fold_in(declared).predict(*pairs))
    assert not np.allclose(predicted, model.predict(*pairs))


def test_new_users_with_ratings_outside_are_refused(parts):
    model = Recommender(EASE(), rating="factors").fit(parts[0])
    outside = pd.DataFrame({"user": 1000, "item": [1, 2], "rating": [50.0, 101.0]})
    with pytest.raises(DataError, match=r"row 1: rating 101 is not on the declared scale"):
        model.fold_in(Ratings.from_frame(outside))
    with pytest.raises(DataError, match="value 101 is not on the scale"):
        model.update(1000, 1, 101)
    assert isinstance(model.update(1000, 1, 99.5), Recommender)


# ---- evaluation ------------------------------------------------------------------------


def test_values_of_bins_are_means_of_the_training_ratings(ratings, parts):
    train, test = parts
    assert train.scale == test.scale != ratings.scale
    alone = Scale.binned(train.values, low=0, high=100)
    assert np.array_equal(train.scale.edges, alone.edges)  # test ratings have no part in them
    for level, mean in enumerate(train.scale.values):
        assert mean == pytest.approx(train.values[train.levels == level].mean())
    split = next(StrongGeneralisation(0.3, random_state=1).split(ratings))
    both = split.train_and_given()
    assert both.n_ratings == both.values.size == split.train.n_ratings + split.given.n_ratings
    assert set(both.values) <= set(ratings.values)


def test_errors_are_those_of_the_ratings_themselves(ratings, parts):
    train, test = parts
    predicted = BiasModel().fit(train).predict(test.users, test.items)
    outcome = Outcome(test, ratings=predicted)
    error = predicted - test.values
    rmse, mae = (measure_from_name(name).value(outcome, "micro", "")[0] for name in ("rmse", "mae"))
    assert rmse == pytest.approx(np.sqrt(np.mean(error**2)))
    assert mae == pytest.approx(np.mean(np.abs(error)))
    mze, _ = measure_from_name("mze").value(outcome, "micro", "")
    assert mze == np.mean(test.scale.levels_of(np.clip(predicted, 0, 100)) != test.levels)
    result = evaluate(ratings, {"bias": BiasModel()}, split=HoldOut(0.2), metrics=["rmse"])
    value = result.frame.query("average == 'micro' and users == 'all'")["value"].iloc[0]
    assert value == pytest.approx(rmse)
    assert "bins of 0..100" in result.manifest["scale"]


def test_whole_bins_are_liked(ratings):
    like = ratings.scale.liked_from
    liked = graded(ratings, "liked", None) == 1
    assert liked.tolist() == (ratings.levels >= 7).tolist()  # the upper fifth and the one below
    assert (ratings.scale.values >= like).tolist() == [False] * 7 + [True] * 3


def test_checksums_see_ratings_and_bins(ratings):
    other = Ratings(
        ratings.users, ratings.items, ratings.levels, scale=ratings.scale,
        user_ids=ratings.user_ids, item_ids=ratings.item_ids,
        binned_values=np.append(ratings.values[:-1], 0),
    )  # fmt: skip
    assert ratings_checksum(ratings) == ratings_checksum(ratings.renamed("other"))
    assert ratings_checksum(ratings) != ratings_checksum(other)


# ---- the command line ------------------------------------------------------------------


def test_the_command_line_takes_fine_ratings(frame, tmp_path):
    def run(*words) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    data, model, pairs = tmp_path / "fine.csv", tmp_path / "model", tmp_path / "pairs.csv"
    frame.to_csv(data, index=False)
    frame[["user", "item"]].head(50).to_csv(pairs, index=False)
    said = "different ratings between 0 and 100 were put into 10 bins"
    with pytest.warns(UserWarning, match=said):
        run("fit", data, "-o", model, "--model", "predictor-fast")
    table = pd.read_csv(io.StringIO(run("predict", model, pairs, "--proba")))
    assert len([name for name in table if name.startswith("p_")]) == 10
    assert np.corrcoef(table["expected"], frame["rating"][:50])[0, 1] > 0.8
    assert table["expected"].between(0, 100).all()
    with pytest.warns(UserWarning, match=said):
        run("evaluate", data, "--models", "mean,bias", "--metrics", "rmse,mze",
            "-o", tmp_path / "result.csv")  # fmt: skip
    result = pd.read_csv(tmp_path / "result.csv").query("users == 'all' and average == 'micro'")
    rmse = result.query("metric == 'rmse'").set_index("model")["value"]
    assert 5 < rmse["bias"] < rmse["mean"] < 40
    with pytest.warns(UserWarning, match=said):
        run("data", "partition", data, tmp_path / "parts")
    run("predict-all", model, tmp_path / "parts", "-o", tmp_path / "predictions")
    found = pd.concat(map(pd.read_parquet, (tmp_path / "predictions").glob("part-*.parquet")))
    actual = found.merge(frame, on=["user", "item"])
    assert actual["actual"].tolist() == actual["rating_y"].tolist()
    assert np.corrcoef(found["expected"], found["actual"])[0, 1] > 0.7


def test_the_note_is_one_line_on_standard_error(frame, tmp_path):
    frame.to_csv(tmp_path / "fine.csv", index=False)
    words = ["data", "partition", "fine.csv", "parts"]
    done = subprocess.run(
        [sys.executable, "-m", "ordrec.cli", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("ordrec: ")
    assert "were put into 10 bins" in line


@dataclass(eq=False)
class Recorder(GlobalMean):
    """Remembers what it was fitted to."""

    seen: ClassVar[list[Ratings]] = []

    def fit(self, ratings: Ratings) -> Recorder:
        self.seen.append(ratings)
        return super().fit(ratings)


def test_other_test_ratings_do_not_change_what_models_are_trained_on() -> None:
    """The bins are cut in the training part; once they were cut in all ratings."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"user": np.arange(600) % 30, "item": np.arange(600) // 30, "rating": rng.random(600)}
    )
    Recorder.seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # says that there are bins
        evaluate(Ratings.from_frame(frame), {"m": Recorder()}, metrics=["mae"], split="holdout:0.3")
        train = Recorder.seen[-1]
        pairs = {*zip(train.users.tolist(), train.items.tolist(), strict=True)}
        rows = zip(frame["user"], frame["item"], strict=True)
        inside = np.array([pair in pairs for pair in rows])
        assert 0 < inside.sum() < 600
        # all test ratings but the ends, which say how far the scale reaches, become others
        ends = frame["rating"].isin([frame["rating"].min(), frame["rating"].max()])
        changed = ~inside & ~ends
        frame.loc[changed, "rating"] = 0.4 + frame.loc[changed, "rating"] / 4
        evaluate(Ratings.from_frame(frame), {"m": Recorder()}, metrics=["mae"], split="holdout:0.3")
    again = Recorder.seen[-1]
    np.testing.assert_array_equal(again.users, train.users)
    np.testing.assert_array_equal(again.levels, train.levels)
    np.testing.assert_allclose(again.scale.edges, train.scale.edges)
    np.testing.assert_allclose(again.scale.values, train.scale.values)
