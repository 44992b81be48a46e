"""Every option of a command reaches the call that it stands for, and none is invented.

The call is replaced by one that notes what it is given. Each command is run with another value than
the default for every option, and without options, when the call must be given its own defaults.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ordrec.evaluation
import ordrec.recommend
from ordrec import save
from ordrec.cli import app
from ordrec.cli.parameters import in_options
from ordrec.data import Ratings
from ordrec.datasets import load_ratings, synthetic_ratings
from ordrec.recommend import EASE, HeldOut, OrdinalFactors

# what a command decides by itself: it has engines by name, and shows what goes on
OWN = {"n_jobs", "engine", "progress", "store", "finished", "metrics"}


class ArrivedError(Exception):
    """What a call was given, by the names of its parameters."""


def noting(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call that ends with what it is given."""

    @functools.wraps(call)
    def noted(*arguments: Any, **options: Any) -> None:
        bound = inspect.signature(call).bind(*arguments, **options)
        raise ArrivedError(bound.arguments)

    return noted


def arrived(monkeypatch: pytest.MonkeyPatch, home: Any, name: str, *words: Any) -> dict[str, Any]:
    """What a command gives to the function or method of that name."""
    call = getattr(home, name)
    monkeypatch.setattr(home, name, noting(call))
    done = CliRunner().invoke(app, [str(word) for word in words])
    monkeypatch.setattr(home, name, call)
    assert isinstance(done.exception, ArrivedError), (done.exception, done.output)
    return dict(done.exception.args[0])


def check_defaults(call: Callable[..., Any], given: dict[str, Any]) -> None:
    """Without options a call is given its own defaults."""
    parameters = inspect.signature(call).parameters
    for name, value in given.items():
        if parameters[name].default is not inspect.Parameter.empty and name not in OWN:
            assert value == parameters[name].default, name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ratings, tables, pairs, lists of ids, and two models."""
    place = tmp_path_factory.mktemp("options")
    ratings = synthetic_ratings(30, 20, n_ratings=300, seed=1)
    frame = ratings.to_frame().assign(timestamp=1_500_000_000 + 86_400 * np.arange(300))
    frame.to_csv(place / "ratings.csv", index=False)
    kinds = pd.DataFrame({"item": range(20), "kind": [["a", "b"][k % 2] for k in range(20)]})
    kinds.to_csv(place / "items.csv", index=False)
    branches = pd.DataFrame({"user": range(30), "branch": [["n", "s"][k % 2] for k in range(30)]})
    branches.to_csv(place / "users.csv", index=False)
    pd.DataFrame({"user": [0, 3], "item": [1, 2]}).to_csv(place / "pairs.csv", index=False)
    pd.DataFrame({"item": [4, 5]}).to_csv(place / "some.csv", index=False)
    pd.DataFrame({"user": [4, 9]}).to_csv(place / "those.csv", index=False)
    load_ratings(place / "ratings.csv").to_partitions(place / "parts", rows_per_part=100)
    with_kinds = ratings.with_side_tables(item_table=kinds)
    factors = OrdinalFactors(n_factors=2, pattern=2, max_iter=2)
    save(factors.fit(with_kinds), place / "factors")
    save(EASE().fit(with_kinds), place / "ease")
    return place


def test_evaluate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = folder / "ratings.csv"
    given = arrived(
        monkeypatch, ordrec.evaluation, "evaluate", "evaluate", table, "-m", "bias,mean",
        "--set", "bias.user_damping=3", "--split", "kfold:4", "--metrics", "mae,recall@3",
        "--decision", "mode", "--candidates", "rated", "--ranking-users", "7", "--like", "3",
        "--times", "known", "--cold", "2", "--users", folder / "users.csv", "--items",
        folder / "items.csv", "--by-group", "branch", "--propensity", "popularity", "--against",
        "mean", "--overlap", "2", "--jobs", "3", "--engine", "threads", "--seed", "5",
    )  # fmt: skip
    ratings, models = given.pop("ratings"), given.pop("models")
    assert "branch" in ratings.user_table
    assert "kind" in ratings.item_table
    assert list(models) == ["bias", "mean"]
    assert models["bias"].user_damping == 3
    assert str(given.pop("engine")).startswith("Engine(name='threads'")
    del given["finished"]
    assert given == {
        "split": "kfold:4", "metrics": ["mae", "recall@3"], "decision": "mode",
        "candidates": "rated", "ranking_users": 7, "like": 3.0, "times": "known", "cold_users": 2,
        "groups": "branch", "propensity": "popularity", "against": "mean", "seed": 5, "n_jobs": 3,
        "keep_predictions": True, "store": None,
    }  # fmt: skip
    given = arrived(monkeypatch, ordrec.evaluation, "evaluate", "evaluate", table, "-m", "mean")
    check_defaults(ordrec.evaluation.evaluate, given)


@pytest.mark.parametrize("option", ["--report", "--save-predictions"])
def test_evaluate_keeps_predictions_where_they_are_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, option: str, tmp_path: Path
) -> None:
    file = tmp_path / ("x.html" if option == "--report" else "x.csv")
    words = ["evaluate", folder / "ratings.csv", "-m", "mean", option, file]
    assert arrived(monkeypatch, ordrec.evaluation, "evaluate", *words)["keep_predictions"] is True


def test_tune(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["tune", folder / "ratings.csv", "-m", "factors"]
    given = arrived(
        monkeypatch, ordrec.evaluation, "tune_model", *words, "--set", "max_iter=4", "--search",
        "n_factors=2,3", "--search", "pattern=4", "--metric", "log_loss", "--split", "kfold:2",
        "--trials", "3", "--seconds", "9", "--method", "random", "--seed", "5",
        "-o", tmp_path / "m",
    )  # fmt: skip
    model = given.pop("model")
    assert model.max_iter == 4
    assert given.pop("ratings").n_ratings == 300
    space = given.pop("space")
    assert {name: list(values) for name, values in space.items()} == {
        "n_factors": [2, 3],
        "pattern": [4],
    }
    assert given == {
        "metric": "log_loss", "split": "kfold:2", "n_trials": 3, "seconds": 9.0,
        "method": "random", "refit": True, "seed": 5,
    }  # fmt: skip
    given = arrived(monkeypatch, ordrec.evaluation, "tune_model", *words)
    assert given.pop("refit") is False  # nothing is written
    check_defaults(ordrec.evaluation.tune_model, given)


def test_fit_all(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["fit-all", folder / "parts", "-o", tmp_path / "m"]
    given = arrived(
        monkeypatch, ordrec.recommend, "fit_scan", *words, "--model", "factors", "--set",
        "max_iter=4", "--users", folder / "users.csv", "--items", folder / "items.csv",
        "--blocks", tmp_path / "b", "--hold-out", "0.25", "--jobs", "3", "--engine", "threads",
    )  # fmt: skip
    assert given.pop("model").max_iter == 4
    assert given.pop("scan").n_ratings == 300
    assert given.pop("held_out") == HeldOut(0.25)
    assert "branch" in given.pop("user_table")
    assert "kind" in given.pop("item_table")
    assert str(given.pop("engine")).startswith("Engine(name='threads'")
    del given["progress"]
    assert given == {"folder": tmp_path / "b", "n_jobs": 3}
    check_defaults(
        ordrec.recommend.fit_scan, arrived(monkeypatch, ordrec.recommend, "fit_scan", *words)
    )


def test_predict_all(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["predict-all", folder / "factors", folder / "parts", "-o", tmp_path / "p"]
    more = ["--hold-out", "0.25", "--jobs", "3", "--engine", "threads"]
    given = arrived(monkeypatch, ordrec.recommend, "predict_scan", *words, *more)
    assert HeldOut(0.25) in given.values()
    assert given["n_jobs"] == 3
    assert str(given["engine"]).startswith("Engine(name='threads'")
    assert tmp_path / "p" in given.values()
    given = arrived(monkeypatch, ordrec.recommend, "predict_scan", *words)
    assert HeldOut() in given.values()
    given = arrived(
        monkeypatch, ordrec.recommend, "predict_scan", *words, "--pairs", folder / "pairs.csv"
    )
    frames = [value for value in given.values() if isinstance(value, pd.DataFrame)]
    assert [list(frame["item"]) for frame in frames] == [[1, 2]]


def test_evaluate_all(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["evaluate-all", folder / "factors", folder / "parts", "-o", tmp_path / "p"]
    given = arrived(
        monkeypatch, ordrec.evaluation, "evaluate_scan", *words, "--of", "ratings", "--metrics",
        "mae,rmse", "-n", "7", "--jobs", "3", "--engine", "threads",
    )  # fmt: skip
    assert tmp_path / "p" in given.values()
    assert str(given["engine"]).startswith("Engine(name='threads'")
    assert {name: given[name] for name in ("of", "metrics", "length", "n_jobs")} == {
        "of": "ratings", "metrics": ["mae", "rmse"], "length": 7, "n_jobs": 3,
    }  # fmt: skip
    given = arrived(monkeypatch, ordrec.evaluation, "evaluate_scan", *words)
    check_defaults(ordrec.evaluation.evaluate_scan, given)


FILTERS = ["--at-most", "kind=2", "--include-rated"]


def test_recommend_to_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["recommend", folder / "factors", "--user", "4"]
    given = arrived(
        monkeypatch, OrdinalFactors, "recommend", *words, "-n", "3", "--by", "expected",
        "--candidates", "all", "--exclude", folder / "some.csv", "--only", folder / "items.csv",
        *FILTERS,
    )  # fmt: skip
    assert list(given.pop("exclude")) == [4, 5]
    assert list(given.pop("only")) == list(range(20))
    del given["self"]
    assert given == {
        "user": 4, "n": 3, "by": "expected", "at_most": {"kind": 2}, "include_rated": True,
    }  # fmt: skip
    given = arrived(monkeypatch, OrdinalFactors, "recommend", *words)
    check_defaults(OrdinalFactors.recommend, given)


@pytest.mark.parametrize("who", ["all", "those.csv", "parts"])
def test_recommend_to_many(
    folder: Path, monkeypatch: pytest.MonkeyPatch, who: str, tmp_path: Path
) -> None:
    home, name = (
        (ordrec.recommend, "recommend_scan")
        if who == "parts"
        else (OrdinalFactors, "recommend_all")
    )
    many = who if who == "all" else folder / who
    given = arrived(
        monkeypatch, home, name, "recommend", folder / "factors", "--for", many, "-n", "3",
        "--exclude", folder / "some.csv", "-o", tmp_path / "l.csv", "--overwrite", "--jobs", "3",
        "--engine", "threads", *FILTERS,
    )  # fmt: skip
    options = given.pop("options", {}) | given
    assert list(options["exclude"]) == [4, 5]
    wanted = {"at_most": {"kind": 2}, "include_rated": True, "n": 3, "n_jobs": 3,
              "overwrite": True}  # fmt: skip
    assert {key: options[key] for key in wanted} == wanted
    assert str(options["engine"]).startswith("Engine(name='threads'")
    assert tmp_path / "l.csv" in options.values()
    if who == "those.csv":
        assert list(options["users"]) == [4, 9]
    elif who == "all":
        assert options["users"] is None


def test_recommend_new_items(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A share of new items is for models that know some; others say so in words."""
    for words, name in (
        (["--user", "4"], "recommend"),
        (["--for", "all", "-o", tmp_path / "l.csv"], "recommend_all"),
    ):
        asked = ["recommend", folder / "ease", *words, "--explore", "0.25"]
        with monkeypatch.context() as knows_some:
            knows_some.setattr(EASE, "item_filter", lambda self, **options: None)
            assert arrived(monkeypatch, EASE, name, *asked)["explore"] == 0.25
        asked[1] = folder / "factors"
        refused = CliRunner().invoke(app, [str(word) for word in asked])
        assert "--explore" in in_options(refused.exception)
        assert "no new items to list" in str(refused.exception)


def test_explain_and_similar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["explain", folder / "factors", "-u", "4", "-i", "2"]
    given = arrived(monkeypatch, OrdinalFactors, "explain", *words, "--timestamp", "1500000000")
    del given["self"]
    assert list(given.values()) == [4, 2, 1_500_000_000]
    given = arrived(monkeypatch, OrdinalFactors, "explain", *words)
    del given["self"]
    assert list(given.values()) == [4, 2, None]
    words = ["similar", folder / "factors", "--item", "4"]
    given = arrived(monkeypatch, OrdinalFactors, "similar_items", *words, "-n", "3")
    assert (given["item"], given["n"]) == (4, 3)
    given = arrived(monkeypatch, OrdinalFactors, "similar_items", *words)
    check_defaults(OrdinalFactors.similar_items, given)


def test_partition(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["data", "partition", folder / "ratings.csv", tmp_path / "parts"]
    tables = ["--items", folder / "items.csv", "--users", folder / "users.csv"]
    given = arrived(monkeypatch, Ratings, "to_partitions", *words, "--rows", "70", *tables)
    ratings = given.pop("self")
    assert list(given.values()) == [tmp_path / "parts", 70]
    assert "kind" in ratings.item_table
    assert "branch" in ratings.user_table
    given = arrived(monkeypatch, Ratings, "to_partitions", *words)
    check_defaults(Ratings.to_partitions, given)
