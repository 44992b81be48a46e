"""Published experiments in their quick form: complete, and as the papers say."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from ordrec.data import Ratings
from ordrec.datasets import OrdinalTable, synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation import EvaluationResult
from ordrec.experiments.published import in_words
from ordrec.experiments.recorded import cells_of
from ordrec.experiments.runner import list_pipelines, pipelines_folder, published_csv, reproduce
from ordrec.ordinal import NPSVOR

PIPELINES = list_pipelines()
PUBLISHED = sorted(published_csv("any").parent.glob("*.csv"))
PAPERS = [
    "amazon-beauty", "anime-events", "document-tags", "elliot-ml-1m", "gpor-eachmovie",
    "gpor-genes",
    "gpor-synthetic", "gpor-tables", "letor-ohsumed", "lists", "logistic-limits",
    "ml-100k-folds", "ml-1m", "monti", "next-ml-1m", "next-picks", "npsvor-clusters",
    "npsvor-epsilon", "npsvor-movielens", "npsvor-scaling", "npsvor-tables", "npsvor-times",
    "npsvor-tolerances", "orboost-artificial", "orboost-rounds", "orboost-tables", "orboost-trees",
    "per-user",
    "svor-grading", "svor-ohsumed", "svor-scaling", "svor-table1", "svor-table2",
    "uncertainty-ml-1m", "user-time",
]  # fmt: skip
ARTIFICIAL = [
    "gpor-genes", "gpor-synthetic", "logistic-limits", "npsvor-clusters", "orboost-artificial",
]  # fmt: skip
BUNDLED = "per-user"


def run(name: str, folder: Path, data: Path | None = None):
    said: list[str] = []
    found = reproduce(name, data=data, quick=True, out=folder, echo=said.append)
    if isinstance(found.result, EvaluationResult):
        assert found.complete, found.result.failures["error"].tolist()
    assert found.findings
    assert (folder / "results.csv").stat().st_size > 0
    assert (folder / "report.html").stat().st_size > 0
    assert_has_a_table(name, folder)
    return found, said


def assert_has_a_table(name: str, folder: Path) -> None:
    """The page of benchmarks can show what this run would keep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "pipelines" / "page"))
        from benchmark_tables import TABLES
    make = next(make for table, make in TABLES.items() if table.startswith(name))
    table = make(cells_of(folder))
    assert table.size
    assert not (table == "-").all(axis=None)


def test_every_experiment_of_the_papers_is_there() -> None:
    assert list(PIPELINES) == PAPERS


def test_names_and_files_agree() -> None:
    for name, pipeline in PIPELINES.items():
        *folders, file = pipeline.path.relative_to(pipelines_folder()).with_suffix("").parts
        family = folders[1:] if folders[0] == "papers" else []
        assert "_".join([*family, file]) == name.replace("-", "_")


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_numbers_have_one_form(path: Path) -> None:
    assert path.stem in PIPELINES
    frame = pd.read_csv(path)
    assert list(frame) == ["table", "metric", "data", "model", "mean", "standard_error"]
    wide = frame["data"] == "yahoo-music"  # ratings of 1..100
    assert frame["mean"].where(~wide, frame["mean"] / 25).between(0, 3).all()
    assert not frame.duplicated(["metric", "data", "model"]).any()


def test_every_experiment_has_published_numbers_or_words() -> None:
    path = published_csv("in_words").with_suffix(".toml")
    words = tomllib.loads(path.read_text())
    assert set(words) <= set(PIPELINES)
    assert {path.stem for path in PUBLISHED} | set(words) | {BUNDLED} == set(PIPELINES)
    for name in words:
        assert in_words(path, name)
        assert set(words[name]) <= {"judged", "notes", "says"}


def test_losses_tend_to_the_hinge() -> None:
    module = PIPELINES["logistic-limits"].load()
    table = module.limits(module.invented())
    for _, part in table.groupby(["loss", "threshold"]):
        distances = part.sort_values("sharpness")["distance"]
        assert distances.is_monotonic_decreasing
        assert distances.iloc[-1] < 0.05


def test_genes_come_from_a_file_of_the_user(tmp_path: Path) -> None:
    module = PIPELINES["gpor-genes"].load()
    assert module.expression(None, "", "", ()).name == "invented expression data"
    assert module.expression(tmp_path, "", "", ()).X.shape == (50, 500)
    (tmp_path / "genes.csv").write_text("g1,g2,y\n0.5,1,1\n0.25,2,2\n")
    assert module.expression(tmp_path, "", "", ()).feature_names == ["g1", "g2"]
    other = tmp_path / "other.csv"
    other.write_text("g1,grade\n0.5,low\n0.25,high\n0.1,low\n")
    table = module.expression(tmp_path, str(other), "grade", ("low", "high"))
    assert table.y.tolist() == [1, 2, 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARTIFICIAL)
def test_experiments_on_invented_data(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("ORDREC_DATA", raising=False)
    found, _ = run(name, tmp_path)
    if name == "npsvor-clusters":
        mze = found.result[found.result["metric"] == "mze"].groupby("model")["value"].mean()
        assert mze["nearest mean"] < mze["NPSVOR"] < mze["SVORIM"] < mze["SVR"]


def test_planes_of_clusters_lie_where_their_rank_is_nearest() -> None:
    module = PIPELINES["npsvor-clusters"].load()
    X, y, *_ = module.draw(0)
    model = module.NPSVOR(**module.LINEAR).fit(X, y)
    values = X @ module.planes(model, X)[:, :2].T + module.planes(model, X)[:, 2]
    np.testing.assert_allclose(np.abs(values), model.predict_distances(X), atol=1e-9)


def test_one_run_has_the_errors_at_all_tolerances() -> None:
    module = PIPELINES["npsvor-tolerances"].load()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) * [1.0, 20.0]
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=120), [-0.7, 0.1, 0.9])
    table = OrdinalTable(X, y, ["a", "b"], 4)
    parts = [(np.arange(60), np.arange(60, 120))]
    frame = module.errors_on_the_way(
        0, table, parts, {"C1": 3.0, "gamma": 0.4}, [1e-9, 1e-2, 1.0], 40
    )
    assert len(frame) == 9 * 2
    chosen = frame[frame["metric"] == "mae"].set_index(["absolute", "relative"])
    for tol in (1e-9, 1e-2, 1.0):
        model = NPSVOR(
            3.0, gamma=0.4, scaling="standard", solver="algorithm-2", tol=tol, max_iter=40
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[:60], y[:60])
        row = chosen.loc[(tol, tol)]
        assert row["value"] == np.abs(model.predict(X[60:]) - y[60:]).mean()
        assert row["steps"] == model.n_iter_
        assert row["reached"] == model.converged_ == (tol > 1e-9)
    assert chosen["steps"].loc[(1e-9, 1.0)] <= chosen["steps"].loc[(1e-9, 1e-2)]


def test_times_of_npsvor_beside_binary_decompositions() -> None:
    module = PIPELINES["npsvor-times"].load()
    index = pd.MultiIndex.from_tuples(
        [(100, "small"), (600, "large"), (900, "larger")], names=["n_train", "data"]
    )
    seconds = pd.DataFrame(2.0, index=index, columns=[*module.BINARY, "SVORIM"])
    small, large = module.findings(seconds.assign(NPSVOR=[4.0, 1.0, 4.0]))
    assert "(sets: 1): NPSVOR takes 2.00 times as long" in small
    assert "(sets: 2): NPSVOR takes 1.00 times as long" in large
    assert "5.0 s, place 6 of 6; fastest SVC1V1 4.0 s" in large


def test_sets_of_23_and_their_significant_wins() -> None:
    module = PIPELINES["npsvor-tables"].load()
    assert len(set(module.SURVEY + module.DISCRETISED)) == 23
    # five partitions decide by rank sums, six by signed ranks; in "equal" nobody wins
    rows = [
        (data, fold, model, "mae", value + 0.001 * fold)
        for data, folds in (("few", 5), ("many", 6), ("equal", 6))
        for fold in range(folds)
        for model, value in (("a", 0.1), ("b", 0.1 if data == "equal" else 0.2))
    ]
    frame = pd.DataFrame(rows, columns=["data", "fold", "model", "metric", "value"])
    result = EvaluationResult(frame.assign(seed=0, average="micro"), pd.DataFrame(), {})
    found = module.counts(result, "mae")
    assert found.loc["a"].tolist() == [2, 1, 0]
    assert found.loc["b"].tolist() == [0, 1, 2]


@pytest.mark.slow
def test_models_of_users_on_the_bundled_ratings(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("ORDREC_DATA", raising=False)
    found, said = run(BUNDLED, tmp_path)
    assert set(found.result["model"]) > {"biases, rounded", "own median", "gpor, mean"}
    assert any("best gpor, mean" in line for line in said)


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("name", ["ml-100k", "eachmovie"])
def test_models_of_users_beat_rounded_biases(name: str, real_data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    reproduce(
        BUNDLED, data=real_data, quick=True, out=tmp_path, echo=said.append,
        ratings=str(real_data / name),
    )  # fmt: skip
    assert any("20 ratings: 4 of 4 models beat rounded biases" in line for line in said)


def test_a_users_model_needs_more_ratings_than_it_is_trained_on() -> None:
    module = PIPELINES[BUNDLED].load()
    ratings = synthetic_ratings(30, 40, n_ratings=600, seed=0)
    train, test = module.draw(ratings, 10, 5, seed=1)
    targets = np.unique(test.users)
    assert train.user_counts[targets].tolist() == [10] * 5
    assert train.n_ratings + test.n_ratings == 600
    with pytest.raises(ArgumentError, match="have 40 ratings or fewer: lower users or sizes"):
        module.draw(ratings, 40, 5, seed=1)
    with pytest.raises(ArgumentError, match="sizes must be whole numbers from 2, got 20,few"):
        module.whole(["20", "few"])


def test_baselines_of_users_by_hand() -> None:
    module = PIPELINES[BUNDLED].load()
    frame = pd.DataFrame(
        {"user": list("aaaabbb"), "item": [1, 2, 3, 4, 1, 2, 3], "rating": [1, 2, 4, 5, 3, 3, 5]}
    )
    ratings = Ratings.from_frame(frame, scale=range(1, 6))
    train, test = ratings.select(np.arange(7) != 3), ratings.select(np.arange(7) == 3)
    found = module.baselines(train, test)
    assert found["own median"].tolist() == [2.0]
    errors = module.user_errors(found["own median"], test)
    assert errors[["metric", "value", "n_test"]].to_numpy().tolist() == [
        ["mae", 3.0, 1],
        ["mze", 1.0, 1],
    ]


@pytest.mark.realdata
def test_thresholds_of_the_grading_example(real_data: Path, tmp_path: Path) -> None:
    found, said = run("svor-grading", tmp_path, real_data)
    table = found.result.set_index("model")
    assert table.loc["SLA", "b2"] < table.loc["SLA", "b1"] - 1e-3
    assert table.loc["EXC", "b2"] == pytest.approx(table.loc["EXC", "b1"], abs=1e-3)
    assert table.loc["IMC", "b2"] > table.loc["IMC", "b1"] + 0.1
    assert not [line for line in said if "NO (" in line]


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize(
    "name", [name for name in PIPELINES if name not in [*ARTIFICIAL, BUNDLED, "svor-grading"]]
)
def test_experiments_on_real_data(name: str, real_data: Path, tmp_path: Path) -> None:
    found, _ = run(name, tmp_path, real_data)
    if name == "elliot-ml-1m":  # one fold of five: it is easier than the mean of all
        assert (found.comparison["difference"].abs() < 0.006).all()
        assert len(found.comparison) == 3
    if name == "document-tags":
        ndcg = found.result.query("metric == 'ndcg@10'").set_index("model")["value"]
        assert ndcg["features and ordinal logistic"] > ndcg["BM25 alone"]
        assert ndcg["BM25 alone"] > ndcg["without the query"]
    if name == "letor-ohsumed":
        ndcg = found.result.means("ndcg@10").loc["ohsumed-letor"]
        assert ndcg["ordinal logistic"] > 0.4410  # ListNet
        assert (tmp_path / "runs" / "ordinal-logistic.run").exists()
