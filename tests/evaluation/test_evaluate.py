from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from naive.naive_metrics import by_ir_measures

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import (
    decide,
    evaluate,
    mae,
    mean_average_precision,
    mean_reciprocal_rank,
    measure_from_name,
    metric_names,
    mze,
    ndcg,
    precision_at,
    recall_at,
    rmse,
    split_from_name,
)
from ordrec.evaluation.metrics.measures import UserSums
from ordrec.evaluation.problems.base import Measurement
from ordrec.evaluation.significance import bootstrap_interval
from ordrec.evaluation.significance.against_best import against_best
from ordrec.recommend import BiasModel, make_model
from ordrec.report.evaluation import evaluation_report

COLUMNS = [
    "data", "model", "split", "fold", "n_test", "n_cold_users", "n_cold_items", "n_cold_ratings",
    "given", "fit_seconds", "predict_seconds", "metric", "average", "users", "decision",
    "candidates", "value", "n", "seed",
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
        (frame["model"] == model)
        & (frame["metric"] == metric)
        & (frame["average"] == average)
        & (frame["users"] == "all")
    ]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_numbers_are_those_of_fitting_and_measuring_by_hand(ratings):
    result = evaluate(ratings, ["bias"], "holdout:0.25", metrics=["rmse", "int_mae", "mze"], seed=3)
    [fold] = split_from_name("holdout:0.25", random_state=3).split(ratings)
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
    ranking = {
        "ndcg@5", "precision@5", "recall@5", "map", "mrr", "fcp", "hit_rate@5", "graded_ndcg@5",
        "pick_ndcg@5", "liked_ndcg@5", "liked_recall@5", "net_ndcg@5", "disliked@5", "coverage@5",
        "gini@5", "novelty@5", "popularity@5", "long_tail@5",
    }  # fmt: skip
    distribution = {"log_loss", "rps", "brier", "ece", "ece_cumulative"}
    distribution |= {n for n in _all_metrics() if n.startswith(("uncertainty_", "interval_"))}
    # of models whose lists have p_pick, of cold items, and of tables of items
    picks = {"pick_calibration@5", "cold_recall@5", "diversity@5"}
    assert set(kinds["als"]) == ranking
    assert set(kinds["histogram"]) == set(_all_metrics()) - picks
    assert set(kinds["mean"]) == set(_all_metrics()) - distribution - picks


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
    np.testing.assert_allclose(decide(p, "mean", scale.values), [2.0, 3.0, 2.0])
    np.testing.assert_array_equal(decide(p, "median", scale.values), [1, 4, 2])
    np.testing.assert_array_equal(decide(p, "mode", scale.values), [1, 4, 1])
    with pytest.raises(ValueError, match='"mode", "median", "mean"'):
        decide(p, "auto", scale.values)


def test_decisions_minimise_the_expected_loss_they_are_meant_for():
    rng = np.random.default_rng(1)
    scale = Scale.regular(1, 5)
    p = rng.dirichlet(np.ones(5), size=200)
    absolute = np.abs(scale.values[:, None] - scale.values)
    wrong = (scale.values[:, None] != scale.values).astype(float)
    for decision, cost in (("median", absolute), ("mode", wrong)):
        chosen = scale.ranks_of(decide(p, decision, scale.values)) - 1
        expected = p @ cost.T
        np.testing.assert_allclose(expected[np.arange(200), chosen], expected.min(axis=1))


def test_held_out_users_are_folded_in_or_trained_on_and_the_table_says_which(ratings):
    result = evaluate(ratings, ["bias", "mean"], "strong:0.3", metrics=["mae"])
    assert value(result, "bias", "mae").given == "folded in"
    assert value(result, "mean", "mae").given == "in training"
    assert value(result, "bias", "mae").n_cold_users > 0


@pytest.mark.parametrize("times", ["unknown", "known"])
def test_the_times_of_test_ratings_are_given_to_models_only_if_asked(ratings, times, tmp_path):
    class Clock(Oracle):
        def predict_proba(self, users, items, timestamps=None):
            assert (timestamps is None) == (times == "unknown")
            assert times == "unknown" or len(timestamps) == len(users)
            return super().predict_proba(users, items)

    models = {"clock": Clock(np.full(5, 0.2))}
    asked = {} if times == "unknown" else {"times": times}
    result = evaluate(ratings, models, metrics=["mae"], on_error="raise", **asked)
    words = f"Times: those of the test ratings are {times} to the models."
    assert words in result.caption()
    assert words in evaluation_report(result).html()
    assert json.loads(result.to_json(tmp_path / "r.json").read_text())["times"] == times
    undated = evaluate(ratings.without_timestamps(), models, metrics=["mae"], **asked)
    assert "Times:" not in undated.caption()
    with pytest.raises(ArgumentError, match='times must be "unknown" or "known"'):
        evaluate(ratings, models, times="soon")


def test_given_models_stay_unfitted_and_get_their_own_names(ratings):
    model = BiasModel()
    result = evaluate(ratings, [model, "mean"], metrics=["mae"])
    assert list(result.summary().index) == ["BiasModel", "mean"]
    assert not hasattr(model, "mean_")


def test_distributions_are_kept_on_request(ratings):
    models = {"histogram": "histogram", "bias": "bias"}
    result = evaluate(ratings, models, "kfold:2", metrics=["mae"], keep_predictions=True)
    assert list(result.distributions) == ["histogram"]  # the other has none
    levels, p = result.distributions["histogram"]
    folds = list(split_from_name("kfold:2").split(ratings))
    assert levels.tolist() == [level for fold in folds for level in fold.test.levels.tolist()]
    first = make_model("histogram").fit(folds[0].train).distribution_
    np.testing.assert_allclose(p[: folds[0].test.n_ratings], [first] * folds[0].test.n_ratings)
    assert p.shape == (ratings.n_ratings, ratings.scale.n_ranks)
    assert not evaluate(ratings, ["histogram"], metrics=["mae"]).distributions


def test_seed_reaches_split_and_model(ratings):
    result = evaluate(ratings, ["als"], metrics=["fcp"], seed=5)
    assert "random_state=5" in result.split
    assert "random_state=5" in result.models["als"]


def test_progress_is_reported_before_each_fit_and_at_the_end(ratings):
    calls: list[tuple[int, int, str]] = []
    evaluate(
        ratings, ["mean", "bias"], "kfold:2", metrics=["mae"], progress=lambda *a: calls.append(a)
    )
    assert [(done, total) for done, total, _ in calls] == [(i, 4) for i in range(5)]
    assert calls[1][2] == "bias, fold 1"


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
    with pytest.raises(ArgumentError, match="micro, macro, ips, snips"):
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
    assert content["split"] == "HoldOut(test_size=0.2, repeats=1, random_state=0)"
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

    monkeypatch.setattr("ordrec.runtime.files.os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        result.to_csv(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ArgumentError, match=r"no folder .*: make it first"):
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
        ({"candidates": "some"}, 'candidates must be "catalogue" or "rated"'),
        ({"cold_users": -1}, "cold_users must not be negative"),
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

    with pytest.raises(DataError, match=r"'short' returned shape \(80, 4\) instead of"):
        evaluate(ratings, {"short": Short(None)}, on_error="raise")
    with pytest.raises(DataError, match="'blank' returned 80 predictions that are not finite"):
        evaluate(ratings, {"blank": Blank()}, on_error="raise")
    result = evaluate(ratings, {"short": Short(None), "bias": "bias", "blank": Blank()})
    assert not result.complete
    assert set(result.frame["model"]) == {"bias"}
    assert result.failures["model"].tolist() == ["short", "blank"]
    assert result.failures["error"][0].startswith("DataError: model 'short' returned shape")
    assert np.isnan(result.summary().loc["blank"]).all()
    assert set(result.comparison["model"]) == {"bias"}


def test_nothing_but_failures_is_still_a_result(ratings, tmp_path):
    class Fails(Oracle):
        def fit(self, ratings):
            raise RuntimeError("no, thank you")

    result = evaluate(ratings, {"bad": Fails(None)}, "kfold:2")
    assert result.failures["error"].tolist() == ["RuntimeError: no, thank you"] * 2
    assert result.summary().index.tolist() == ["bad"]
    assert "nothing could be measured" in result.caption()
    assert len(json.loads(result.to_json(tmp_path / "r.json").read_text())["failures"]) == 2


def test_processes_side_by_side_find_the_same(ratings):
    def found(n_jobs):
        result = evaluate(ratings, ["bias", "histogram"], "kfold:2", metrics=["mae"], n_jobs=n_jobs)
        assert not result.failures.size
        return result

    alone, together = found(1), found(2)
    seconds = ["fit_seconds", "predict_seconds"]
    pd.testing.assert_frame_equal(
        alone.frame.drop(columns=seconds), together.frame.drop(columns=seconds)
    )
    pd.testing.assert_frame_equal(alone.comparison, together.comparison)
    with pytest.raises(ArgumentError, match="n_jobs must not be 0"):
        found(0)


# ---- the whole catalogue -----------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_side_by_side_long_fits_start_first_and_tables_keep_their_order(ratings, n_jobs):
    class Long(BiasModel):
        takes_long = True

    calls = []
    result = evaluate(
        ratings, {"quick": BiasModel(), "long": Long()}, metrics=["mae"], n_jobs=n_jobs,
        engine="threads" if n_jobs > 1 else None,
        progress=lambda done, total, text: calls.append(text),
    )  # fmt: skip
    assert calls[0] == ("quick, fold 1" if n_jobs == 1 else "long, fold 1")
    assert list(dict.fromkeys(result.frame["model"])) == ["quick", "long"]


class Knows:
    """Scores items by a table of its own."""

    def __init__(self, table):
        self.table = table

    def fit(self, ratings):
        self.users, self.items = ratings.user_ids, ratings.item_ids
        return self

    def scores(self, users, items):
        return self.table[self.users.get_indexer(users), self.items.get_indexer(items)]


@pytest.mark.parametrize("ties", [False, True])
def test_catalogue_metrics_are_those_of_the_whole_list(ratings, ties):
    """Against the metrics of a list, through ir-measures, with everything unrated irrelevant."""
    rng = np.random.default_rng(4)
    table = rng.normal(size=(30, 20))
    table = np.round(table) if ties else table
    metrics = ["ndcg@3", "map", "mrr", "precision@3", "recall@3"]
    result = evaluate(ratings, {"knows": Knows(table)}, "holdout:0.3", metrics=metrics)
    [fold] = split_from_name("holdout:0.3").split(ratings)
    relevance = np.zeros((30, 20))
    relevance[fold.test.users, fold.test.items] = fold.test.levels
    open_to = np.ones((30, 20), dtype=bool)
    open_to[fold.train.users, fold.train.items] = False
    asked = np.unique(fold.test.users)
    open_to[np.setdiff1d(np.arange(30), asked)] = False
    users, items = np.nonzero(open_to)
    # Ties stand in one random order of the items: hand it over as what breaks them.
    order = np.empty(20)
    order[np.random.default_rng(0).permutation(20)] = np.arange(20)
    scores = table[users, items] - 1e-6 * order[items]
    listed = relevance[users, items]
    expected = {
        "ndcg@3": ndcg(listed, scores, groups=users, k=3),
        "map": mean_average_precision(listed, scores, groups=users, relevant_from=3),
        "mrr": mean_reciprocal_rank(listed, scores, groups=users, relevant_from=3),
        "precision@3": precision_at(listed, scores, groups=users, k=3, relevant_from=3),
        "recall@3": recall_at(listed, scores, groups=users, k=3, relevant_from=3),
    }
    theirs = {"map": "AP", "mrr": "RR", "precision@3": "P@3", "recall@3": "R@3"}
    for name in metrics:
        row = value(result, "knows", name, "macro")
        assert row.value == pytest.approx(expected[name], abs=1e-12), name
        assert row.candidates == "catalogue"
        if name in theirs:
            found = by_ir_measures(theirs[name], listed >= 3, scores, users)
            assert row.value == pytest.approx(found, abs=1e-12), name


def test_items_of_the_training_part_are_not_candidates(ratings):
    """A model that puts what the user has rated first loses nothing by it."""
    [fold] = split_from_name("holdout:0.3").split(ratings)
    table = np.zeros((30, 20))
    table[fold.test.users, fold.test.items] = 1.0 + fold.test.levels
    with_known = table.copy()
    with_known[fold.train.users, fold.train.items] = 100.0
    models = {"a": Knows(table), "b": Knows(with_known)}
    result = evaluate(ratings, models, "holdout:0.3", metrics=["ndcg@5", "map"])
    for model in models:
        assert value(result, model, "ndcg@5", "macro").value == 1.0
        assert value(result, model, "map", "macro").value == 1.0


def test_rated_items_alone_are_ranked_if_that_is_asked_for(ratings):
    metrics = ["ndcg@5", "fcp"]
    rated = evaluate(ratings, ["bias"], metrics=metrics, candidates="rated")
    whole = evaluate(ratings, ["bias"], metrics=metrics)
    assert value(rated, "bias", "ndcg@5", "macro").candidates == "rated"
    assert (
        value(rated, "bias", "ndcg@5", "macro").value
        > value(whole, "bias", "ndcg@5", "macro").value
    )
    for average in ("micro", "macro"):
        assert (
            value(rated, "bias", "fcp", average).value == value(whole, "bias", "fcp", average).value
        )


def test_a_sample_of_users_is_ranked_for(ratings):
    result = evaluate(ratings, ["bias", "mean"], metrics=["recall@5", "mae"], ranking_users=7)
    n_ranked = value(result, "bias", "recall@5", "macro").n
    assert 3 <= n_ranked <= 7  # recall is undefined without a relevant item
    assert value(result, "bias", "mae").n == 80
    assert f"{n_ranked} users" in result.caption()
    with pytest.raises(ArgumentError, match="ranking_users"):
        evaluate(ratings, ["bias"], ranking_users=0)


# ---- warm and cold users -----------------------------------------------------------------


def test_cold_users_are_measured_apart(ratings):
    [fold] = split_from_name("time:0.3").split(ratings)
    counts = fold.train.user_counts[fold.test.users]
    limit = int(np.median(counts))
    result = evaluate(
        ratings, ["bias", "mean"], "time:0.3", metrics=["mae", "ndcg@5"], cold_users=limit
    )
    assert result.user_groups == ["all", "warm", "cold"]
    said = BiasModel().fit(fold.train).predict(
        ratings.user_ids.take(fold.test.users), ratings.item_ids.take(fold.test.items)
    )  # fmt: skip
    for users, rows in (("warm", counts > limit), ("cold", counts <= limit)):
        found = result.frame.query(
            "model == 'bias' and metric == 'mae' and average == 'micro' and users == @users"
        )
        assert found["value"].item() == pytest.approx(mae(fold.test.values[rows], said[rows]))
        assert found["n"].item() == rows.sum()
        assert result.summary("micro", users).loc["bias", "mae"] == found["value"].item()
        assert f"Here {users} users only; cold: at most {limit} training" in result.caption(
            "micro", users
        )
    with pytest.raises(ArgumentError, match="one of all, warm, cold"):
        result.summary("micro", "new")


def test_ratings_given_for_fold_in_make_a_user_warm(ratings):
    result = evaluate(ratings, ["bias"], "strong:0.3", metrics=["mae"])
    assert result.user_groups == ["all"]


# ---- intervals and tests -----------------------------------------------------------------


def test_values_of_the_comparison_are_those_of_the_summary(ratings):
    metrics = ["rmse", "mae", "mze", "rps", "fcp", "ndcg@5", "tau", "kappa"]
    result = evaluate(ratings, ["bias", "histogram"], "kfold:3", metrics=metrics)
    found = result.comparison.set_index(["metric", "average", "model"])["value"]
    assert ("kappa", "micro", "bias") not in found.index  # not a mean of users
    for average in ("micro", "macro"):
        table = result.summary(average)
        for metric, average_of in result.averages(average).items():
            for model in ("bias", "histogram"):
                if (metric, average_of, model) in found.index:
                    expected = table.loc[model, metric]
                    assert found[metric, average_of, model] == pytest.approx(expected)


def test_intervals_are_those_of_drawing_users(ratings):
    result = evaluate(ratings, ["bias"], metrics=["mae"], n_resamples=4000)
    [fold] = split_from_name("holdout:0.2").split(ratings)
    said = BiasModel().fit(fold.train).predict(
        ratings.user_ids.take(fold.test.users), ratings.item_ids.take(fold.test.items)
    )  # fmt: skip
    errors = np.abs(said - fold.test.values)
    expected = bootstrap_interval(errors, fold.test.users, n_resamples=4000)
    row = result.comparison.query("average == 'micro'").iloc[0]
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high), abs=0.01)
    assert result.standings()["mae", "bias"].half_width > 0
    assert evaluate(ratings, ["bias"], metrics=["mae"], n_resamples=0).comparison.empty


def test_a_model_as_good_as_the_best_is_tied_and_a_worse_one_is_not(ratings):
    models = {"best": BiasModel(), "same": BiasModel(), "worse": "mean"}
    result = evaluate(ratings, models, "kfold:4", metrics=["rmse"])
    table = result.comparison.query("average == 'micro'").set_index("model")
    assert sorted(table["verdict"][["best", "same"]]) == ["best", "tied"]
    assert table["verdict"]["worse"] == "worse"
    assert table["adjusted_p"]["worse"] < 0.01
    assert result.standings()["rmse", "worse"].mark == ""
    assert "Holm" in result.test_caption()


def test_p_values_are_two_sided_and_exact_on_three_users():
    """Worse for two users, better for one: of three draws, two or three fall on the one user
    with a chance of 7/27, and the p-value is twice that."""
    key, users, ones = ("all", "mae", "macro"), np.arange(3), np.ones(3)
    losses = {"best": np.array([1.0, 0.0, 0.0]), "other": np.array([0.0, 1.0, 1.0])}
    measured = {
        name: [Measurement(sums={key: UserSums(users, loss, ones)})]
        for name, loss in losses.items()
    }
    table = against_best(measured, n_resamples=20_000).set_index("model")
    assert table.loc["other", "p"] == pytest.approx(2 * 7 / 27, abs=0.02)
    assert table.loc["other", "difference"] == pytest.approx(1 / 3)
    assert np.isnan(table.loc["best", "p"])


def test_intervals_have_the_level_asked_for():
    """Of two users, draws have the mean 0, 0.5 or 1, with chances of 1/4, 1/2 and 1/4."""
    key = ("all", "mae", "macro")
    sums = UserSums(np.arange(2), np.array([0.0, 1.0]), np.ones(2))
    measured = {"a": [Measurement(sums={key: sums})]}
    for level, ends in ((0.05, (0.0, 1.0)), (0.7, (0.5, 0.5))):
        [row] = against_best(measured, level=level).to_dict("records")
        assert (row["low"], row["high"]) == ends


def test_chance_alone_is_seldom_significant():
    """Two models that are random in the same way differ significantly in about 5 % of cases.

    Of 400 cases, 20 are expected, with a deviation of 4.4; one-sided p-values would find 40.
    """
    rng = np.random.default_rng(0)
    found, key, users = [], ("all", "mae", "macro"), np.arange(60)
    for seed in range(400):
        sums = {name: UserSums(users, rng.random(60), np.ones(60)) for name in ("a", "b")}
        measured = {name: [Measurement(sums={key: sums[name]})] for name in sums}
        table = against_best(measured, n_resamples=400, seed=seed)
        found.append((table["verdict"] == "worse").any())
    assert 8 <= sum(found) <= 32


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
