"""Experiments: complete, deterministic, continued after a kill, undisturbed by failing cells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.experiment_models import Fails, NoisyThreshold, striped_table

from ordrec.datasets import OrdinalTable, load_letor, synthetic_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import (
    Candidates,
    EvaluationResult,
    Experiment,
    QueryProblem,
    RatingsProblem,
    TableProblem,
    evaluate,
    mae,
    ndcg,
)
from ordrec.evaluation.problems.base import Measurement
from ordrec.evaluation.run import Cell, stored_measurement
from ordrec.experiments.cross_validated import CrossValidated
from ordrec.storage.parts import PartStore

HERE = Path(__file__).parent
SLOW_RUN = """
import sys
from support.experiment_models import NoisyThreshold, striped_table
from ordrec.evaluation import Experiment, TableProblem
models = {"a": NoisyThreshold(0.1, sleep=0.05), "b": NoisyThreshold(0.3, sleep=0.05)}
Experiment(models, [TableProblem(striped_table())], seeds=[0, 1], store=sys.argv[1]).run()
"""


def without_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns=["fit_seconds", "predict_seconds"])


def two_models(sleep: float = 0.05) -> dict[str, NoisyThreshold]:
    return {"a": NoisyThreshold(0.1, sleep=sleep), "b": NoisyThreshold(0.3, sleep=sleep)}


def test_one_row_a_model_data_fold_seed_and_metric() -> None:
    problems = [TableProblem(striped_table("one")), TableProblem(striped_table("two", 40, 2))]
    experiment = Experiment(two_models(0), problems, metrics=["mae", "mze"], seeds=[0, 7])
    frame = experiment.run().frame
    assert len(experiment) == 2 * 2 * (6 + 2)
    assert len(frame) == 2 * len(experiment)
    assert not frame.duplicated(["model", "data", "fold", "seed", "metric"]).any()
    assert (frame["fit_seconds"] >= 0).all()


def test_values_are_those_of_fitting_by_hand() -> None:
    table = striped_table()
    frame = Experiment(two_models(0), [TableProblem(table)], seeds=[5]).run().frame
    train, test = table.split(2)
    model = NoisyThreshold(0.3, random_state=5).fit(table.X[train], table.y[train])
    row = frame.query("model == 'b' and fold == '3' and metric == 'mae'")
    assert row["value"].item() == mae(table.y[test], model.predict(table.X[test]))
    assert row["n_test"].item() == test.size


def test_a_killed_run_continues_where_it_was(tmp_path: Path) -> None:
    store, fits = tmp_path / "cells", tmp_path / "fits"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path]),
        "ORDREC_TEST_FITS": str(fits),
    }
    run = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(store)], env=environment)
    deadline = time.monotonic() + 120
    while not store.is_dir() or len(PartStore(store)) < 5:
        assert run.poll() is None, "finished before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    kept = len(PartStore(store))
    assert 5 <= kept < 24
    fits.unlink()
    subprocess.run([sys.executable, "-c", SLOW_RUN, str(store)], env=environment, check=True)
    assert len(fits.read_text().split()) == 24 - kept

    models, problem = two_models(), TableProblem(striped_table())
    continued = Experiment(models, [problem], seeds=[0, 1], store=store).run()
    assert continued.manifest["cells_from_store"] == 24
    fresh = Experiment(two_models(), [problem], seeds=[0, 1]).run()
    pd.testing.assert_frame_equal(without_seconds(continued.frame), without_seconds(fresh.frame))


def test_processes_side_by_side_find_the_same(tmp_path: Path) -> None:
    problem = TableProblem(striped_table())
    models = {"a": Ridge(), "b": LogisticRegression()}
    alone = Experiment(models, [problem], max_folds=2).run()
    together = Experiment(models, [problem], max_folds=2, store=tmp_path).run(n_jobs=2)
    pd.testing.assert_frame_equal(without_seconds(alone.frame), without_seconds(together.frame))
    assert len(PartStore(tmp_path)) == 4


def test_a_failing_cell_is_recorded_and_tried_again(tmp_path: Path) -> None:
    models = {"bad": Fails(), "good": Ridge()}
    result = Experiment(models, [TableProblem(striped_table())], store=tmp_path).run()
    assert not result.complete
    assert set(result.frame["model"]) == {"good"}
    assert result.failures["error"].tolist() == ["RuntimeError: no, thank you"] * 6
    again = Experiment(models, [TableProblem(striped_table())], store=tmp_path).run()
    assert again.manifest["cells_from_store"] == 6
    assert len(again.failures) == 6


def test_a_training_part_with_one_class_fails_alone() -> None:
    table = striped_table()
    lowest = np.flatnonzero(table.y == 1)
    parts = [table.split(0), (lowest, np.setdiff1d(np.arange(table.y.size), lowest))]
    result = Experiment(
        {"logistic": LogisticRegression()}, [TableProblem(table, parts)], metrics=["mae"]
    ).run()
    assert result.frame["fold"].tolist() == ["1"]
    assert result.failures["fold"].tolist() == ["2"]
    assert "class" in result.failures["error"][0]


@pytest.mark.parametrize("change", ["model", "data", "metrics", "seed"])
def test_whatever_changes_the_outcome_changes_the_cell(tmp_path: Path, change: str) -> None:
    def run(changed: str = "") -> int:
        model = NoisyThreshold(0.2 if changed == "model" else 0.1)
        table = striped_table(n=50 if changed == "data" else 60)
        metrics = ["mae", "mze"] if changed == "metrics" else ["mae"]
        seeds = [1 if changed == "seed" else 0]
        problem = TableProblem(table)
        experiment = Experiment(
            {"m": model}, [problem], metrics=metrics, seeds=seeds, store=tmp_path
        )
        return experiment.run().manifest["cells_from_store"]

    assert run() == 0
    assert run() == 6
    assert run(change) == 0


def test_a_damaged_cell_is_computed_again(tmp_path: Path) -> None:
    problem = TableProblem(striped_table())
    first = Experiment({"r": Ridge()}, [problem], store=tmp_path).run()
    victim = next(iter(tmp_path.glob("*.part")))
    victim.write_bytes(victim.read_bytes()[:-40])
    second = Experiment({"r": Ridge()}, [problem], store=tmp_path).run()
    assert second.manifest["cells_from_store"] == 5
    pd.testing.assert_frame_equal(without_seconds(first.frame), without_seconds(second.frame))


def test_a_store_writes_whole_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, cell = PartStore(tmp_path), asdict(Cell("m", "d", "s", "1", 0))

    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ordrec.runtime.files.os.replace", broken)
    with pytest.raises(KeyboardInterrupt):
        store.put(cell, *Measurement().to_arrays())
    assert list(tmp_path.iterdir()) == []


def test_rows_of_another_cell_or_without_a_value_are_as_good_as_none(tmp_path: Path) -> None:
    cell = Cell("m", "d", "s", "1", 0)
    good = cell.about | {"metric": "mae", "value": 0.5}
    assert stored_rows(tmp_path, cell, [good]) == [good]
    for bad in (good | {"model": "other"}, good | {"value": "0.5"}, {"metric": "mae", "value": 1}):
        assert stored_rows(tmp_path, cell, [good, bad]) is None


def stored_rows(
    folder: Path, cell: Cell, rows: list[dict[str, Any]]
) -> list[dict[str, Any]] | None:
    """The rows as an experiment reads them after they were written."""
    store = PartStore(folder)
    store.put(asdict(cell), {}, {"rows": rows, "sums": [], "examples": [], "commit": ""})
    found = stored_measurement(store, cell)
    return None if found is None else found.rows


# ---- selection ---------------------------------------------------------------------------


def test_candidates_are_chosen_on_training_rows_only() -> None:
    """A candidate that is perfect on the test rows and wrong on training rows never wins."""
    table = striped_table()
    train, test = table.split(0)
    wrong = OrdinalTable(table.X, table.y.copy(), ["a", "b"], 3, [train], "wrong")
    wrong.y[train] = 4 - table.y[train]
    candidates = Candidates(
        {"right": _Fixed(0.3, 0.6, up=True), "reversed": _Fixed(0.3, 0.6, up=False)}, "mae"
    )
    result = Experiment({"best": candidates}, [TableProblem(wrong)], metrics=["mae"]).run()
    assert result.frame["chosen"].tolist() == ["reversed"]
    assert result.frame["value"].item() == mae(table.y[test], 4 - table.y[test])


class _Fixed(NoisyThreshold):
    def __init__(self, low: float, high: float, up: bool):
        self.low, self.high, self.up = low, high, up

    def fit(self, X, y):
        return self

    def predict(self, X):
        ranks = np.digitize(X[:, 0], [self.low, self.high]) + 1
        return ranks if self.up else 4 - ranks


def test_the_best_of_a_grid_by_mean_over_inner_folds() -> None:
    problem = TableProblem(striped_table())
    grid = Candidates.grid(NoisyThreshold(), {"noise": [0.5, 0.0, 0.3]}, "mae", n_folds=3)
    frame = Experiment({"grid": grid}, [problem], metrics=["mae"], max_folds=2).run().frame
    assert set(frame["chosen"]) == {"noise=0.0"}


def test_inner_folds_cover_the_training_rows_once() -> None:
    problem = TableProblem(striped_table())
    inner = problem.training("1", 5, seed=1)
    assert isinstance(inner, TableProblem)
    assert inner.parts is not None
    held = np.sort(np.concatenate([test for _, test in inner.parts]))
    assert held.tolist() == list(range(30))


# ---- the three kinds of problem ----------------------------------------------------------


def test_ratings_give_the_rows_of_evaluate() -> None:
    ratings = synthetic_ratings(30, 20, n_ratings=300, seed=2)
    result = Experiment(
        {"mean": "mean", "bias": "bias"},
        [RatingsProblem(ratings, "kfold:3")],
        metrics=["rmse", "ndcg@5"],
    ).run()
    expected = evaluate(ratings, ["mean", "bias"], "kfold:3", metrics=["rmse", "ndcg@5"]).frame
    expected = expected[expected["users"] == "all"]
    columns = ["model", "fold", "metric", "average", "value"]
    ours = result.frame[columns].sort_values(columns).reset_index(drop=True)
    pd.testing.assert_frame_equal(
        ours, expected[columns].sort_values(columns).reset_index(drop=True)
    )
    assert result.means("rmse", "micro").shape == (1, 2)
    with pytest.raises(ArgumentError, match="averages"):
        result.means("rmse")


def test_rating_models_are_selected_within_the_training_ratings() -> None:
    ratings = synthetic_ratings(30, 20, n_ratings=300, seed=2)
    best = Candidates({"mean": "mean", "bias": "bias"}, "rmse", n_folds=2)
    frame = Experiment({"best": best}, [RatingsProblem(ratings)], metrics=["rmse"]).run().frame
    assert set(frame["chosen"]) == {"bias"}


class _FirstFeature:
    def fit(self, X, y, queries):
        self.queries_ = set(queries)
        return self

    def scores(self, X, queries):
        assert not self.queries_ & set(queries)
        return X[:, 0]


def test_queries_are_ranked_on_test_queries() -> None:
    rng = np.random.default_rng(0)
    queries = np.repeat(np.arange(8), 10)
    y = rng.integers(0, 3, 80)
    X = rng.random((80, 2)) + y[:, None] / 3
    rows = np.arange(80)
    parts = [(rows[queries < 6], rows[:0], rows[queries >= 6])]
    problem = QueryProblem(X, y, queries, parts)
    frame = Experiment({"first": _FirstFeature()}, [problem]).run().frame
    value = frame.set_index("metric").loc["ndcg@10", "value"]
    test = queries >= 6
    assert value == ndcg(y[test], X[test, 0], groups=queries[test], discount="letor")
    inner = problem.training("1", 3, seed=0)
    assert isinstance(inner, QueryProblem)
    held = np.sort(np.concatenate([test for *_, test in inner.parts]))
    assert held.tolist() == list(range(60))


def test_rankings_are_what_was_measured(tmp_path: Path) -> None:
    """Written as a run and read by ir-measures, ties and all."""
    from ordrec.documents import RelevanceRanker
    from ordrec.documents.trec import measure_run, write_qrels, write_run

    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(120, 2)))  # whole numbers: many equal scores
    y = np.clip(np.round(X[:, 0] + rng.normal(size=120)), 0, 2).astype(int)
    queries = rng.permutation(np.repeat(np.arange(6), 20))
    rows = np.arange(120)
    train, test = rows[queries < 3], rows[queries >= 3]
    names = np.array([f"d{row}" for row in rows])
    problem = QueryProblem(X, y, queries, [(train, rows[:0], test)], documents=names)
    model = RelevanceRanker(Ridge())
    ranking = problem.ranking(model, "1")
    assert ranking["query"].tolist() == sorted(queries[test].tolist())
    assert ranking.groupby("query")["rank"].apply(list).tolist() == [list(range(1, 21))] * 3
    for _, part in ranking.groupby("query"):
        assert part["score"].is_monotonic_decreasing
        assert part["score"].duplicated().any()
    measured = {row["metric"]: row["value"] for row in problem.measure(model, "1", ["map"], 0)}
    assert measure_run(ranking, ranking, ["AP"])["AP"].mean() == pytest.approx(measured["map"])
    write_run(ranking, tmp_path / "a.run")
    write_qrels(ranking, tmp_path / "qrels.txt")
    assert len((tmp_path / "a.run").read_text().splitlines()) == 60
    unnamed = QueryProblem(X, y, queries, [(train, rows[:0], test)]).ranking(model, "1")
    assert [f"d{row}" for row in unnamed["document"]] == ranking["document"].tolist()


def test_ranks_absent_from_training_are_declared_and_probabilities_measured() -> None:
    from ordrec.ordinal import OrdinalLogistic

    table = striped_table()
    low = np.flatnonzero(table.y < 3)
    parts = [(low[:20], np.setdiff1d(np.arange(60), low[:20]))]
    models = {"logistic": make_pipeline(StandardScaler(), OrdinalLogistic())}
    result = Experiment(models, [TableProblem(table, parts)], metrics=["mae", "log_loss"]).run()
    assert result.complete, result.failures["error"].tolist()
    assert result.frame["metric"].tolist() == ["mae", "log_loss"]
    assert np.isfinite(result.frame["value"]).all()


def test_a_model_without_probabilities_has_no_log_loss() -> None:
    from ordrec.ordinal import SVORIM

    result = Experiment(
        {"svm": SVORIM()},
        [TableProblem(striped_table())],
        metrics=["mae", "log_loss"],
        max_folds=1,
    ).run()
    assert result.frame["metric"].tolist() == ["mae"]


# ---- results and refusals ----------------------------------------------------------------


def test_written_results_come_back(tmp_path: Path) -> None:
    result = Experiment({"r": Ridge(), "bad": Fails()}, [TableProblem(striped_table())]).run()
    folder = result.write(tmp_path / "new")
    assert len(pd.read_csv(folder / "results.csv")) == len(result.frame)
    assert len(pd.read_csv(folder / "failures.csv")) == 6
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["data"]["stripes"] == TableProblem(striped_table()).checksum()
    assert "numpy" in manifest["versions"]


def test_means_and_standard_errors_over_folds() -> None:
    result = Experiment(two_models(0), [TableProblem(striped_table())]).run()
    scores = result.scores("mae")
    assert scores.shape == (6, 2)
    assert result.means("mae").loc["stripes", "b"] == pytest.approx(scores["b"].mean())
    assert result.errors("mae").loc["stripes", "b"] == pytest.approx(
        scores["b"].std(ddof=1) / np.sqrt(6)
    )


def test_refusals(tmp_path: Path) -> None:
    problem = TableProblem(striped_table())
    with pytest.raises(ArgumentError, match="at least one"):
        Experiment({}, [problem])
    with pytest.raises(ArgumentError, match="same name"):
        Experiment({"r": Ridge()}, [problem, problem])
    with pytest.raises(ArgumentError, match="max_folds"):
        Experiment({"r": Ridge()}, [problem], max_folds=0)
    with pytest.raises(ArgumentError, match="pickled"):
        Experiment({"r": lambda: None}, [problem], store=tmp_path / "cells").run()
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="is a file"):
        PartStore(tmp_path / "file")
    with pytest.raises(ArgumentError, match="at least one model"):
        Candidates({}, "mae")
    bare = OrdinalTable(np.zeros((4, 1)), np.array([1, 2, 1, 2]), ["x"], 2)
    with pytest.raises(DataError, match="no partitions"):
        len(Experiment({"r": Ridge()}, [TableProblem(bare)]))
    unknown = Experiment({"r": Ridge()}, [problem], metrics=["nonsense"]).run()
    assert "unknown metrics" in unknown.failures["error"][0]


# ---- draws, joined results, tuned estimators ---------------------------------------------


def test_drawn_parts_have_the_sizes_asked_for() -> None:
    table = striped_table()
    problem = TableProblem.drawn(table, [5, 20], trials=3)
    assert problem.folds == ["5/1", "5/2", "5/3", "20/1", "20/2", "20/3"]
    assert problem.split == "drawn:5,20"
    assert TableProblem.drawn(table, range(5, 15), trials=1).split == "drawn:5..14"
    assert problem.parts is not None
    for name, (train, test) in zip(problem.folds, problem.parts, strict=True):
        assert train.size == int(name.split("/")[0])
        assert sorted([*train, *test]) == list(range(60))
        assert np.unique(table.y[train]).size > 1
    again = TableProblem.drawn(table, [20], trials=1)
    assert again.parts is not None
    assert again.parts[0][0].tolist() == problem.parts[3][0].tolist()
    with pytest.raises(ArgumentError, match="cannot draw 60"):
        TableProblem.drawn(table, [60], trials=1)
    constant = OrdinalTable(table.X, np.ones(60, dtype=int), ["a", "b"], 3)
    with pytest.raises(DataError, match="nothing to learn"):
        TableProblem.drawn(constant, [5], trials=1)


def test_joined_results_count_all_cells() -> None:
    problem = TableProblem(striped_table())
    parts = [
        Experiment({"r": Ridge(), "bad": Fails()}, [problem], metrics=[metric]).run()
        for metric in ("mae", "mze")
    ]
    whole = EvaluationResult.joined(parts)
    assert whole.manifest["cells"] == 24
    assert len(whole.failures) == 12
    assert whole.means("mze").equals(parts[1].means("mze"))


def test_cross_validated_sees_the_training_part_only_and_declares_ranks() -> None:
    from ordrec.ordinal import SVORIM

    table = striped_table()
    low = np.flatnonzero(table.y < 3)[:25]
    parts = [(low, np.setdiff1d(np.arange(60), low))]
    grid = {"C": [0.001, 10.0], "gamma": [0.5]}
    model = CrossValidated(SVORIM(), grid, "mze", n_folds=3)
    result = Experiment({"tuned": model}, [TableProblem(table, parts)]).run()
    assert result.complete, result.failures["error"].tolist()
    fitted = model.fit(table.X[low], table.y[low])
    assert fitted.best_params_["C"] == 10.0
    # Scaling by the training part: the same rows among others give the same answer.
    assert fitted.predict(table.X[:5]).tolist() == fitted.predict(table.X)[:5].tolist()
    assert fitted.scaler_.n_samples_seen_ == 25


def test_each_metric_is_measured_on_the_model_tuned_for_it() -> None:
    from ordrec.ordinal import SVORIM

    table = striped_table()
    parts = [(np.arange(0, 40), np.arange(40, table.y.size))]
    grid = {"C": [0.01, 1.0, 100.0], "gamma": [0.01, 1.0]}
    both = CrossValidated(SVORIM(), grid, ("mze", "mae"), n_folds=3)
    problem = TableProblem(table, parts)
    result = Experiment({"both": both}, [problem], metrics=["mze", "mae"]).run()
    for metric in ("mze", "mae"):
        alone = CrossValidated(SVORIM(), grid, metric, n_folds=3)  # type: ignore[arg-type]
        single = Experiment({"alone": alone}, [problem], metrics=[metric]).run()
        assert result.means(metric)["both"].tolist() == single.means(metric)["alone"].tolist()
        alone.fit(table.X[:40], table.y[:40])
        assert both.fit(table.X[:40], table.y[:40]).for_metric(metric).best_params_ == (
            alone.best_params_
        )


def test_parts_may_have_names() -> None:
    rows = np.arange(striped_table().X.shape[0])
    parts = [(rows[::2], rows[1::2]), (rows[1::2], rows[::2])]
    problem = TableProblem(striped_table(), parts, ["even", "odd"], "halves")
    assert problem.folds == ["even", "odd"]
    result = Experiment({"ridge": Ridge()}, [problem], metrics=["mae"]).run()
    assert result.frame["fold"].tolist() == ["even", "odd"]
    assert set(result.frame["split"]) == {"halves"}
    unnamed = Experiment({"ridge": Ridge()}, [TableProblem(striped_table(), parts)]).run()
    values = unnamed.frame.query("metric == 'mae'").sort_values("fold")["value"]
    assert values.tolist() == result.frame["value"].tolist()


def test_seconds_are_means_over_folds_and_seeds() -> None:
    frame = pd.DataFrame({"model": ["a", "a", "a", "b"], "data": ["x", "x", "y", "x"]})
    frame = frame.assign(fold=["1", "2", "1", "1"], seed=0, split="s")
    frame = pd.concat([frame.assign(metric=metric, value=0.0) for metric in ("mae", "mze")])
    frame["fit_seconds"] = [1.0, 3.0, 5.0, 7.0] * 2
    frame["predict_seconds"] = [0.1, 0.3, 0.5, 0.7] * 2
    seconds = EvaluationResult(frame, pd.DataFrame(), {}).seconds()
    assert seconds.loc[("a", "x")].tolist() == pytest.approx([2.0, 0.2])
    assert seconds.loc[("a", "y")].tolist() == pytest.approx([5.0, 0.5])
    assert seconds.loc[("b", "x")].tolist() == pytest.approx([7.0, 0.7])


def test_letor_comes_with_its_folds(samples: Path) -> None:
    letor = load_letor(samples / "letor")
    problem = QueryProblem.from_letor(letor)
    assert (problem.name, problem.split, len(problem.folds)) == (letor.name, "letor-folds", 5)
    for (train, valid, test), ours in zip(letor.folds(), problem.parts, strict=True):
        for theirs, rows in zip((train, valid, test), ours, strict=True):
            np.testing.assert_array_equal(theirs, rows)
    np.testing.assert_array_equal(problem.X, letor.X)
    np.testing.assert_array_equal(problem.y, letor.y)
    np.testing.assert_array_equal(problem.queries, letor.queries)
    named = replace(letor, documents=np.arange(letor.y.size))
    np.testing.assert_array_equal(QueryProblem.from_letor(named).documents, named.documents)
    nameless = replace(letor, documents=np.full(letor.y.size, -1))
    assert QueryProblem.from_letor(nameless).documents is None
