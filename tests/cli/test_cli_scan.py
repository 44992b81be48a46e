"""Ratings in a folder of partitions, from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import load
from ordrec.cli import app
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.recommend import HeldOut


def ordrec(*words: str | Path):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A csv of ratings, its partitions, and a model of some of the users."""
    place = tmp_path_factory.mktemp("scan")
    ratings = synthetic_ratings(80, 30, n_ratings=1200, seed=1)
    frame = pd.DataFrame(
        {
            "user": ratings.user_ids[ratings.users],
            "item": ratings.item_ids[ratings.items],
            "rating": ratings.values,
        }
    )
    frame.to_csv(place / "ratings.csv", index=False)
    done = ordrec("data", "partition", place / "ratings.csv", place / "parts", "--rows", "300")
    assert done.exit_code == 0, done.output
    done = ordrec(
        "fit", place / "parts", "-o", place / "model.ordrec", "-m", "factors",
        "--set", "n_factors=4", "--sample-users", "40",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return place


def predictions(path: Path) -> pd.DataFrame:
    parts = [pd.read_parquet(file) for file in sorted(path.glob("part-*.parquet"))]
    return pd.concat(parts, ignore_index=True)


def test_everybody_is_predicted_for_and_a_second_call_changes_nothing(folder: Path) -> None:
    words = ["predict-all", folder / "model.ordrec", folder / "parts", "-o", folder / "out"]
    first = ordrec(*words)
    assert first.exit_code == 0, first.output
    frame = predictions(folder / "out")
    assert f"{len(frame):,} predictions" in first.output
    assert 60 < len(frame) < 180  # a tenth of 1200
    assert frame["user"].nunique() > 40  # more than the model was fitted to
    assert np.isfinite(frame["expected"]).all()
    times = {file: file.stat().st_mtime_ns for file in (folder / "out").glob("part-*")}
    assert ordrec(*words).output == first.output
    assert {file: file.stat().st_mtime_ns for file in times} == times


def test_pairs_of_a_file_on_two_processes(folder: Path) -> None:
    (folder / "pairs.csv").write_text("user,item\n3,4\n70,5\n")
    done = ordrec(
        "predict-all", folder / "model.ordrec", folder / "parts", "-o", folder / "asked",
        "--pairs", folder / "pairs.csv", "--engine", "processes", "--jobs", "2",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert set(predictions(folder / "asked")["user"]) == {3, 70}


def test_a_folder_of_partitions_is_data_for_every_command(folder: Path) -> None:
    done = ordrec("evaluate", folder / "parts", "-m", "bias", "--metrics", "rmse", "--quiet")
    assert done.exit_code == 0, done.output


def test_a_model_without_fold_in_is_refused(folder: Path) -> None:
    ordrec("fit", folder / "ratings.csv", "-o", folder / "mean.ordrec", "-m", "mean")
    done = ordrec("predict-all", folder / "mean.ordrec", folder / "parts", "-o", folder / "no")
    assert isinstance(done.exception, ArgumentError)
    assert "cannot take in new users" in str(done.exception)
    assert not (folder / "no").exists()


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_the_share_of_predicted_ratings_is_that_asked_for(folder: Path, share: float) -> None:
    out = folder / f"held {share}"
    done = ordrec(
        "predict-all", folder / "model.ordrec", folder / "parts", "-o", out, "--hold-out", share
    )
    assert done.exit_code == 0, done.output
    frame = predictions(out)
    assert len(frame) == pytest.approx(1200 * share, abs=50)
    held, given = HeldOut(share).parted(Ratings.scan(folder / "parts").collect())[::-1]
    assert len(frame) == held.n_ratings
    pairs = set(zip(frame["user"], frame["item"], strict=True))
    left = held.user_ids.take(held.users), held.item_ids.take(held.items)
    assert pairs == set(zip(*left, strict=True))
    assert given.n_ratings + held.n_ratings == 1200
    words = ["predict-all", folder / "model.ordrec", folder / "parts", "-o", folder / "no"]
    wrong = ordrec(*words, "--hold-out", "1.5")
    assert wrong.exit_code != 0
    assert "between 0 and 1" in str(wrong.exception)


def test_a_model_of_all_users_is_fitted_on_disk(folder, tmp_path):
    items = tmp_path / "items.csv"
    pd.DataFrame({"item": range(30), "kind": list("abc") * 10}).to_csv(items, index=False)
    model = tmp_path / "all.ordrec"
    found = ordrec(
        "fit-all", folder / "parts", "-o", model, "--set", "n_factors=2", "--set", "max_iter=2",
        "--items", items, "--blocks", tmp_path / "blocks", "--engine", "threads", "--jobs", "2",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    fitted = load(model)
    assert fitted.side_columns_["item"] == {"kind": "categorical"}
    assert len(fitted.user_ids_) == 0
    predicted = ordrec("predict-all", model, folder / "parts", "-o", tmp_path / "out")
    assert predicted.exit_code == 0, predicted.output
    again = ordrec("fit-all", folder / "parts", "-o", model, "--set", "n_factors=0")
    assert isinstance(again.exception, ArgumentError)
    assert "n_factors must be at least 1" in str(again.exception)
