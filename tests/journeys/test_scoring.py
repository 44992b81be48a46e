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
    assert "row 0 of the training part (2 such rows)" in said


def test_options_of_parts_that_do_not_go_together(folder):
    assert "name the test part with --test" in refused("evaluate", "train.csv", "--valid", "v.csv")
    assert "leave out one" in refused(
        "evaluate", "train.csv", "--test", "test.csv", "-s", "kfold:5"
    )
    assert "no such file" in refused("evaluate", "train.csv", "--test", "none.csv")
    said = refused("evaluate", "train.csv", "--test", "test.csv", "-o", "test.csv")
    assert "is also the input test.csv" in said
