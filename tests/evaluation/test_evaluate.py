from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import (
    decide,
    evaluate,
    mae,
    measure_from_name,
    metric_names,
    mze,
    rmse,
    split_from_name,
)
from ordrec.ratings import Ratings, Scale
from ordrec.recommend import BiasModel

COLUMNS = [
    "data", "model", "split", "fold", "n_test", "n_cold_users", "n_cold_items", "n_cold_ratings",
    "given", "fit_seconds", "predict_seconds", "metric", "average", "decision", "value", "n",
    "seed",
]  # fmt: skip


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    rng = np.random.default_rng(0)
    pairs = rng.permutation(30 * 20)[:400]
    taste, quality = rng.normal(size=30), rng.normal(size=20)
    latent = 3 + taste[pairs // 20] + quality[pairs % 20] + 0.5 * rng.normal(size=400)
    frame = pd.DataFrame(
        {
            "user": [f"u{u}" for u in pairs // 20],
            "item": pairs % 20,
            "rating": np.clip(np.rint(latent), 1, 5),
            "timestamp": rng.integers(1, 1000, 400),
        }
    )
    folds = {"x": np.arange(400) < 100}
    return Ratings.from_frame(frame, scale=Scale.regular(1, 5), folds=folds, name="made up")


class Oracle:
    """Knows one distribution and says it about everything."""

    def __init__(self, row):
        self.row = row

    def fit(self, ratings):
        return self

    def predict(self, users, items):
        return np.full(len(users), 1.0)

    def predict_proba(self, users, items):
        return np.tile(self.row, (len(users), 1))


def value(result, model, metric, average="micro"):
    frame = result.frame
    chosen = frame[
        (frame["model"] == model) & (frame["metric"] == metric) & (frame["average"] == average)
    ]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_numbers_are_those_of_fitting_and_measuring_by_hand(ratings):
    result = evaluate(ratings, ["bias"], "holdout:0.25", metrics=["rmse", "int_mae", "mze"], seed=3)
    [fold] = split_from_name("holdout:0.25", seed=3).split(ratings)
    test = fold.test
    said = (
        BiasModel()
        .fit(fold.train)
        .predict(ratings.user_ids.take(test.users), ratings.item_ids.take(test.items))
    )
    rounded = ratings.scale.nearest(said)
    assert value(result, "bias", "rmse").value == rmse(test.values, said)
    assert value(result, "bias", "int_mae").value == mae(test.values, rounded)
    assert value(result, "bias", "mze").value == mze(test.values, rounded)
    macro = value(result, "bias", "rmse", "macro")
    assert macro.value == pytest.approx(rmse(test.values, said, groups=test.users))
    assert macro.n == np.unique(test.users).size
    assert value(result, "bias", "rmse").n == 100


def test_every_row_says_how_it_was_measured(ratings):
    result = evaluate(ratings, ["mean", "histogram", "als"], "kfold:3", metrics=_all_metrics())
    assert list(result.frame.columns) == COLUMNS
    assert set(result.frame["fold"]) == {"1", "2", "3"}
    assert set(result.frame["data"]) == {"made up"}
    assert set(result.frame["split"]) == {"kfold:3"}
    kinds = result.frame.groupby("model")["metric"].unique()
    ranking = {"ndcg@5", "precision@5", "recall@5", "map", "mrr", "fcp"}
    distribution = {"log_loss", "rps", "brier", "ece", "ece_cumulative"}
    assert set(kinds["als"]) == ranking
    assert set(kinds["histogram"]) == set(_all_metrics())
    assert set(kinds["mean"]) == set(_all_metrics()) - distribution


def _all_metrics() -> list[str]:
    return [name.replace("@k", "@5") for name in metric_names()]


def test_auto_takes_the_best_decision_for_each_metric(ratings):
    row = np.array([0.40, 0.05, 0.05, 0.20, 0.30])  # mode 1, median 3, mean 2.95
    model = {"oracle": Oracle(row)}
    metrics = ["rmse", "int_mae", "mze", "log_loss"]
    auto = evaluate(ratings, model, "fold:x", metrics=metrics)
    [fold] = split_from_name("fold:x").split(ratings)
    y = fold.test.values
    assert value(auto, "oracle", "rmse").value == pytest.approx(rmse(y, np.full(100, 2.95)))
    assert value(auto, "oracle", "int_mae").value == pytest.approx(mae(y, np.full(100, 3)))
    assert value(auto, "oracle", "mze").value == pytest.approx(mze(y, np.full(100, 1)))
    decisions = dict(zip(auto.frame["metric"], auto.frame["decision"], strict=True))
    assert decisions == {"rmse": "mean", "int_mae": "median", "mze": "mode", "log_loss": "none"}
    fixed = evaluate(ratings, model, "fold:x", metrics=metrics, decision="mode")
    assert value(fixed, "oracle", "int_mae").value == pytest.approx(mae(y, np.full(100, 1)))
    assert value(fixed, "oracle", "int_mae").decision == "mode"


def test_decisions_on_a_distribution():
    scale = Scale([1, 2, 4])
    p = np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2]])
    np.testing.assert_allclose(decide(p, scale, "mean"), [2.0, 3.0, 2.0])
    np.testing.assert_array_equal(decide(p, scale, "median"), [1, 4, 2])
    np.testing.assert_array_equal(decide(p, scale, "mode"), [1, 4, 1])
    with pytest.raises(ArgumentError, match='"mean", "median" or "mode"'):
        decide(p, scale, "auto")


def test_decisions_minimise_the_expected_loss_they_are_meant_for():
    rng = np.random.default_rng(1)
    scale = Scale.regular(1, 5)
    p = rng.dirichlet(np.ones(5), size=200)
    absolute = np.abs(scale.values[:, None] - scale.values)
    wrong = (scale.values[:, None] != scale.values).astype(float)
    for decision, cost in (("median", absolute), ("mode", wrong)):
        chosen = scale.ranks_of(decide(p, scale, decision)) - 1
        expected = p @ cost.T
        np.testing.assert_allclose(expected[np.arange(200), chosen], expected.min(axis=1))


def test_held_out_users_are_folded_in_or_trained_on_and_the_table_says_which(ratings):
    result = evaluate(ratings, ["bias", "mean"], "strong:0.3", metrics=["mae"])
    assert value(result, "bias", "mae").given == "folded in"
    assert value(result, "mean", "mae").given == "in training"
    assert value(result, "bias", "mae").n_cold_users > 0


def test_models_that_ask_for_times_get_them(ratings):
    class Clock(Oracle):
        def predict_proba(self, users, items, timestamps=None):
            assert timestamps is not None
            assert len(timestamps) == len(users)
            return super().predict_proba(users, items)

    evaluate(ratings, {"clock": Clock(np.full(5, 0.2))}, metrics=["mae"])


def test_given_models_stay_unfitted_and_get_their_own_names(ratings):
    model = BiasModel()
    result = evaluate(ratings, [model, "mean"], metrics=["mae"])
    assert list(result.summary().index) == ["BiasModel", "mean"]
    assert not hasattr(model, "mean_")


def test_seed_reaches_split_and_model(ratings):
    result = evaluate(ratings, ["als"], metrics=["fcp"], seed=5)
    assert "seed=5" in result.split
    assert "random_state=5" in result.models["als"]


def test_progress_is_told_before_each_fit_and_at_the_end(ratings):
    told: list[tuple[int, int, str]] = []
    evaluate(
        ratings, ["mean", "bias"], "kfold:2", metrics=["mae"], progress=lambda *a: told.append(a)
    )
    assert [(done, total) for done, total, _ in told] == [(i, 4) for i in range(5)]
    assert told[1][2] == "bias, fold 1"


def test_summary_is_the_mean_over_folds(ratings):
    result = evaluate(ratings, ["als", "bias"], "kfold:3", metrics=["mae", "ndcg@5"])
    table = result.summary()
    frame = result.frame.query("model == 'bias' and metric == 'mae' and average == 'micro'")
    assert table.loc["bias", "mae"] == pytest.approx(frame["value"].mean())
    assert np.isnan(table.loc["als", "mae"])
    assert table.loc["als", "ndcg@5"] > 0
    assert {"fit_seconds", "predict_seconds"} < set(table.columns)
    assert result.averages() == {"ndcg@5": "macro", "mae": "micro"}
    macro = result.summary("macro").loc["bias", "mae"]
    assert macro != table.loc["bias", "mae"]
    with pytest.raises(ArgumentError, match='"micro" or "macro"'):
        result.summary("mean")


def test_caption_and_print_name_the_numbers(ratings):
    result = evaluate(ratings, ["histogram", "bias"], "time:0.3", metrics=["mae", "mze", "ndcg@5"])
    caption = result.caption()
    for part in (
        "made up, GlobalTime(test_size=0.3), 1 fold",
        "unseen in training:",
        "micro for mae mze, macro for ndcg@5",
        "Decision 'auto': mean for mae ndcg@5, mode for mze",
        "Models without probabilities",
    ):
        assert part in caption
    assert caption in repr(result)


def test_json_and_csv_hold_the_whole_frame(ratings, tmp_path):
    result = evaluate(ratings, ["mean", "bias"], metrics=["mae", "tau"])
    content = json.loads(result.to_json(tmp_path / "result.json").read_text())
    assert content["models"]["mean"] == "GlobalMean()"
    assert content["split"] == "HoldOut(test_size=0.2, repeats=1, seed=0)"
    assert len(content["results"]) == len(result.frame)
    assert content["results"][2]["metric"] == "tau"
    assert content["results"][2]["value"] is None  # a constant has no tau: null, not NaN
    again = pd.read_csv(result.to_csv(tmp_path / "result.csv"), keep_default_na=False)
    assert list(again.columns) == list(result.frame.columns)
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "result.csv"}


def test_a_failed_write_leaves_the_old_file(ratings, tmp_path, monkeypatch):
    result = evaluate(ratings, ["mean"], metrics=["mae"])
    path = tmp_path / "result.csv"
    path.write_text("old")

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("ordrec.files.os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        result.to_csv(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ArgumentError, match="no folder .*: make it first"):
        result.to_csv(tmp_path / "nowhere" / "result.csv")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"models": ["bais"]}, "unknown model 'bais': did you mean 'bias'?"),
        ({"models": []}, "at least one model"),
        ({"models": ["bias", "bias"]}, "two models are called 'bias'"),
        ({"models": {"x": object()}}, "neither predict(users, items) nor scores(users, items)"),
        ({"metrics": ["maee"]}, "unknown metric 'maee': did you mean 'mae'?"),
        ({"metrics": ["ndcg"]}, "did you mean 'ndcg@10'?"),
        ({"metrics": ["ndcg@k"]}, "unknown metric 'ndcg@k'"),
        ({"metrics": ["ndcg@0"]}, "unknown metric 'ndcg@0'"),
        ({"metrics": []}, "at least one name"),
        ({"models": ["als"], "metrics": ["mae"]}, "none of the metrics mae applies to als"),
        ({"decision": "best"}, 'decision must be "auto"'),
        ({"split": "halves"}, "unknown split 'halves'"),
    ],
)
def test_wrong_arguments_are_named(ratings, arguments, text):
    with pytest.raises(ArgumentError) as caught:
        evaluate(**({"ratings": ratings, "models": ["mean"]} | arguments))
    assert text in str(caught.value)


def test_models_that_answer_nonsense_are_named(ratings):
    class Short(Oracle):
        def predict_proba(self, users, items):
            return np.full((len(users), 4), 0.25)

    class Blank:
        def fit(self, ratings):
            return self

        def predict(self, users, items):
            return np.full(len(users), np.nan)

    with pytest.raises(DataError, match=r"'short' answered with shape \(80, 4\) instead of"):
        evaluate(ratings, {"short": Short(None)})
    with pytest.raises(DataError, match="'blank' gave 80 predictions that are not finite"):
        evaluate(ratings, {"blank": Blank()})


def test_metrics_with_a_cut_carry_it():
    assert measure_from_name("precision@3").options == {"relevant_from": 3.0, "k": 3}
    assert measure_from_name("ndcg@7").name == "ndcg@7"


@pytest.mark.realdata
def test_baselines_on_the_first_fold_of_movielens(real_data):
    from ordrec.datasets import load_movielens

    ratings = load_movielens(real_data / "ml-100k")
    result = evaluate(ratings, ["mean", "bias", "item-knn"], "fold:u1", metrics=["rmse", "int_mae"])
    table = result.summary()
    assert table.loc["mean", "rmse"] == pytest.approx(1.154, abs=0.001)
    assert table.loc["bias", "rmse"] == pytest.approx(0.960, abs=0.002)
    # Surprise's kNN-Baseline on items: RMSE .9359, rounded MAE .6950.
    assert table.loc["item-knn", "rmse"] == pytest.approx(0.9359, abs=0.002)
    assert table.loc["item-knn", "int_mae"] == pytest.approx(0.6950, abs=0.002)
