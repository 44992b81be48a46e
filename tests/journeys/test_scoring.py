"""Own splits, own predictions and own metrics, through the command line and through Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec.cli import app
from ordrec.cli.parameters import in_options
from ordrec.datasets import load_ratings
from ordrec.evaluation import evaluate


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words: object) -> str:
    """The message that the command line prints."""
    found = run(*words)
    assert found.exception is not None
    assert not isinstance(found.exception, SystemExit), found.output
    return in_options(found.exception)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A table cut into training, validation and test files, with texts for ids."""
    rng = np.random.default_rng(0)
    pairs = rng.permutation(30 * 20)[:360]
    latent = 3 + rng.normal(size=30)[pairs // 20] + rng.normal(size=20)[pairs % 20]
    frame = pd.DataFrame(
        {
            "user": [f"{u:03d}" for u in pairs // 20],
            "item": pairs % 20,
            "rating": np.clip(np.rint(latent + rng.normal(size=360) / 2), 1, 5).astype(int),
        }
    )
    for name, part in {"train": frame[:240], "valid": frame[240:280], "test": frame[280:]}.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    pd.concat([frame[280:], frame[:2]]).to_csv(tmp_path / "leaking.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same_values(path: Path, result) -> None:
    """The results in a json file, which has 15 digits, are those of a result."""
    written = pd.DataFrame(json.loads(path.read_text())["results"])
    columns = ["model", "fold", "metric", "average", "users"]
    assert written[columns].to_numpy().tolist() == result.frame[columns].to_numpy().tolist()
    np.testing.assert_allclose(written["value"].astype(float), result.frame["value"], rtol=1e-12)


# ---- one's own split -------------------------------------------------------------------------


def test_own_files_give_the_numbers_of_the_python_call(folder):
    words = ["evaluate", "train.csv", "--test", "test.csv", "-m", "bias,ease", "-o", "r.json"]
    found = run(*words)
    assert found.exit_code == 0, found.output
    assert "own parts (240 training, 80 test ratings)" in " ".join(found.output.split())
    parts = {name: load_ratings(folder / f"{name}.csv") for name in ("train", "test", "valid")}
    result = evaluate(parts["train"], ["bias", "ease"], test=parts["test"])
    same_values(folder / "r.json", result)
    found = run(*words, "--valid", "valid.csv")
    result = evaluate(parts["train"], ["bias", "ease"], test=parts["test"], valid=parts["valid"])
    assert found.exit_code == 0, found.output
    same_values(folder / "r.json", result)


def test_several_pairs_are_folds(folder):
    found = run(
        "evaluate", "train.csv", "--test", "test.csv", "--train", "test.csv", "--test", "valid.csv",
        "-m", "bias", "--metrics", "rmse", "-o", "r.csv",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    table = pd.read_csv(folder / "r.csv")
    assert sorted(set(table["fold"])) == [1, 2]
    assert set(table["split"]) == {"own"}


def test_parts_that_overlap_are_refused_with_the_rows(folder):
    said = refused("evaluate", "train.csv", "--test", "leaking.csv", "-m", "mean")
    assert "row 80 of the test part: user" in said
    assert "row 0 of the training part (2 in all)" in said


def test_options_of_parts_that_do_not_go_together(folder):
    assert "name the test part with --test" in refused("evaluate", "train.csv", "--valid", "v.csv")
    assert "leave out one" in refused(
        "evaluate", "train.csv", "--test", "test.csv", "-s", "kfold:5"
    )
    assert "no such file" in refused("evaluate", "train.csv", "--test", "none.csv")
    said = refused("evaluate", "train.csv", "--test", "test.csv", "-o", "test.csv")
    assert "is also the input test.csv" in said


# ---- predictions of other libraries ----------------------------------------------------------


@pytest.fixture
def predicted(folder) -> Path:
    """Predicted ratings as Surprise names them, distributions, and lists; ids are texts."""
    rng = np.random.default_rng(1)
    test = pd.read_csv(folder / "test.csv", dtype={"user": str})
    pairs = test[["user", "item"]]
    surprise = pairs.rename(columns={"user": "uid", "item": "iid"})
    surprise.assign(est=test["rating"] + rng.normal(size=80) / 3).to_csv(
        "surprise.csv", index=False
    )
    p = pd.DataFrame(rng.dirichlet(np.ones(5), 80), columns=[f"p_{k}" for k in range(1, 6)])
    pairs.join(p).to_parquet("ordinal.parquet")
    rows = [(u, i, p) for u in sorted(set(test["user"])) for p, i in enumerate(range(12), start=1)]
    pd.DataFrame(rows, columns=["user", "item", "rank"]).to_csv("lists.csv", index=False)
    return folder


def test_files_side_by_side_against_a_reference(predicted):
    found = run(
        "score", "surprise.csv", "theirs=ordinal.parquet", "test.csv", "--train", "train.csv",
        "-m", "bias", "--against", "bias", "-o", "r.json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    said = " ".join(found.output.split())
    assert "worse than bias" in said
    written = json.loads((predicted / "r.json").read_text())
    assert list(written["models"]) == ["surprise", "theirs", "bias"]
    verdicts = {
        row["model"]: row["verdict"]
        for row in written["comparison"]
        if (row["metric"], row["average"]) == ("rmse", "micro")
    }
    assert verdicts == {"surprise": "better", "theirs": "worse", "bias": "reference"}
    test = pd.read_csv("test.csv")
    est = pd.read_csv("surprise.csv")["est"]
    rmse = np.sqrt(((est - test["rating"]) ** 2).mean())
    table = pd.DataFrame(written["results"]).set_index(["model", "metric", "average"])["value"]
    assert table["surprise", "rmse", "micro"] == pytest.approx(rmse)


def test_lists_of_another_library(predicted):
    found = run("score", "lists.csv", "test.csv", "--train", "train.csv", "-o", "r.csv")
    assert found.exit_code == 0, found.output
    values = pd.read_csv("r.csv").set_index("metric")["value"]
    known = pd.read_csv("train.csv", dtype={"user": str}).groupby("user")["item"].agg(set)
    test = pd.read_csv("test.csv", dtype={"user": str}).groupby("user")["item"].agg(set)
    hits = [
        bool(set([i for i in range(12) if i not in known[user]][:10]) & items)
        for user, items in test.items()
    ]
    assert values["hit_rate@10"] == pytest.approx(np.mean(hits))


def test_scores_are_refused_with_the_remedy(predicted):
    assert "last the file of test ratings" in refused("score", "test.csv")
    assert "--train" in refused("score", "lists.csv", "test.csv", "-m", "bias")
    assert "write NAME=FILE" in refused("score", "lists.csv", "lists.csv", "test.csv")
    assert "no such file" in refused("score", "none.csv", "test.csv")
    assert "--against must be one of surprise" in refused(
        "score", "surprise.csv", "test.csv", "--against", "ease"
    )
    said = refused("score", "surprise.csv", "train.csv")
    assert "no prediction for user" in said
    assert "is also the input" in refused("score", "lists.csv", "test.csv", "-o", "lists.csv")


# ---- one's own metrics, and what can be saved ------------------------------------------------

OWN_METRICS = """
import numpy as np

def worst(true, predicted):
    return np.abs(true - predicted).max()

def first(listed, picked):
    return float(listed[0] in picked)

number = 3
"""


def test_own_metrics_and_saved_tables(folder):
    (folder / "my_metrics.py").write_text(OWN_METRICS)
    users = pd.DataFrame({"user": [f"{u:03d}" for u in range(30)], "sex": ["f", "m"] * 15})
    users.to_csv("users.csv", index=False)
    found = run(
        "evaluate", "train.csv", "--test", "test.csv", "-m", "bias,ease", "--users", "users.csv",
        "--metrics", "hit_rate@1,my_metrics:worst:lower,my_metrics:first:higher:lists",
        "--by-group", "sex", "--overlap", "5", "-o", "r.csv",
        "--save-users", "users_out.parquet", "--save-predictions", "predicted.csv",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    said = " ".join(found.output.split())
    assert "sex=f users" in said
    assert "common to the first 5 items" in said
    table = pd.read_csv("r.csv").set_index(["users", "model", "metric", "average"])["value"]
    kept = pd.read_csv("predicted.csv")
    bias = kept[kept["model"] == "bias"]
    apart = (bias["rating"] - bias["prediction"]).abs()
    assert table["all", "bias", "worst", "micro"] == pytest.approx(apart.max())
    hits = table["sex=f", "ease", "hit_rate@1", "macro"]
    assert table["sex=f", "ease", "first", "macro"] == pytest.approx(hits)
    users_out = pd.read_parquet("users_out.parquet")
    assert set(users_out["metric"]) == {"hit_rate@1", "worst", "first"}
    again = run(
        "evaluate", "train.csv", "--test", "test.csv", "-m", "bias", "--metrics", "mae",
        "--save-users", "users_out.parquet", "--save-predictions", "predicted.csv",
    )  # fmt: skip
    assert again.exit_code == 0, again.output  # earlier outputs are replaced


def test_wrong_own_metrics_are_refused(folder):
    (folder / "my_metrics.py").write_text(OWN_METRICS)
    words = ["evaluate", "train.csv", "--test", "test.csv", "-m", "mean", "--metrics"]
    assert "my_metrics:worst:higher or :lower" in refused(*words, "my_metrics:worst")
    assert "has no 'missing'" in refused(*words, "my_metrics:missing:lower")
    assert "is no function" in refused(*words, "my_metrics:number:lower")
    assert "no module" in refused(*words, "not_there:worst:lower")
    said = refused(*words, "mae", "--save-users", "users.txt")
    assert "written as .csv or .parquet" in said
    said = refused(*words, "mae", "--save-predictions", "train.csv")
    assert "is also the input" in said
    assert "--by-group must be a column" in refused(*words, "mae", "--by-group", "sex")


def test_the_help_names_all_splits():
    help_text = " ".join(run("evaluate", "--help").output.split())
    for name in ("holdout:0.2,5", "last:1", "user-time:0.2,file", "cold-items:0.1", "strong:0.2"):
        assert name in help_text.replace("- ", "-"), name


def test_ties_and_cold_items_on_the_command_line(folder):
    frame = pd.read_csv("train.csv").assign(timestamp=7)
    frame.to_csv("dated.csv", index=False)
    found = run("evaluate", "dated.csv", "-s", "last:1,file", "-m", "mean", "--metrics", "mae")
    assert found.exit_code == 0, found.output
    assert "ties='file'" in " ".join(found.output.split())
    words = ["-m", "popularity", "--metrics", "cold_recall@2,recall@2"]
    found = run("evaluate", "dated.csv", "-s", "cold-items:0.2", *words)
    assert found.exit_code == 0, found.output
    assert "cold_recall@2" in found.output


def test_propensities_on_the_command_line(folder):
    users, items = np.indices((30, 20)).reshape(2, -1)
    table = {"user": [f"{u:03d}" for u in users], "item": items, "propensity": 0.2 + items / 40}
    pd.DataFrame(table).to_csv("p.csv", index=False)
    words = ["evaluate", "train.csv", "--test", "test.csv", "-m", "bias", "--metrics", "mae"]
    found = run(*words, "--propensity", "p.csv", "--average", "snips", "-o", "r.json")
    assert found.exit_code == 0, found.output
    assert "inverse propensities, given" in " ".join(found.output.split())
    parts = {name: load_ratings(folder / f"{name}.csv") for name in ("train", "test")}
    result = evaluate(
        parts["train"], ["bias"], test=parts["test"], metrics=["mae"],
        propensity=pd.DataFrame(table),
    )  # fmt: skip
    same_values(folder / "r.json", result)
    assert "needs --propensity" in refused(*words, "--average", "ips")
    assert "--propensity must be" in refused(*words, "--propensity", "fame")
