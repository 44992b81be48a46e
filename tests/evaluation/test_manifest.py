"""Which commit a result was computed at."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from support.experiment_models import striped_table

from ordrec.data import Ratings
from ordrec.evaluation import Experiment, TableProblem, manifest
from ordrec.evaluation import run as module


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_of_a_checkout_and_changes_of_its_code(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert manifest._commit(tmp_path) == ""
    git("init", "-q")
    assert manifest._commit(tmp_path) == ""  # no commit yet
    for folder in ("ordrec", "pipelines/results"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ordrec" / "a.py").write_text("1\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    commit = git("rev-parse", "--short=10", "HEAD")
    (tmp_path / "README.md").write_text("no code\n")
    (tmp_path / "pipelines" / "results" / "cells.csv").write_text("value\n")
    assert manifest._commit(tmp_path) == commit
    (tmp_path / "ordrec" / "a.py").write_text("2\n")
    assert manifest._commit(tmp_path) == commit + manifest.CHANGED


def test_cells_of_an_earlier_run_keep_their_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_at(commit: str, max_folds: int) -> list[str]:
        monkeypatch.setattr(module, "circumstances", lambda: {"commit": commit})
        problem = TableProblem(striped_table())
        experiment = Experiment({"r": Ridge()}, [problem], store=tmp_path, max_folds=max_folds)
        return experiment.run().manifest["commits"]

    assert run_at("first", 1) == ["first"]
    assert run_at("second", 2) == ["first", "second"]
    assert run_at("third", 1) == ["first"]


def test_the_checksum_of_ratings_sees_all_that_a_result_depends_on() -> None:
    n = 12
    users, items = np.divmod(np.arange(n), 4)
    frame = pd.DataFrame({"user": users, "item": items, "rating": 1.0 + np.arange(n) % 5})
    frame = frame.assign(timestamp=10 + np.arange(n), weight=(1.0 + np.arange(n)) / n)

    def checksum(changed: pd.DataFrame, scale: object = range(1, 6), **columns: object) -> str:
        columns = {"timestamp": "timestamp", "weight": "weight"} | columns
        return manifest.ratings_checksum(Ratings.from_frame(changed, scale=scale, **columns))

    def with_last(name: str, value: object) -> pd.DataFrame:
        changed = frame.copy()
        changed.loc[n - 1, name] = value
        return changed

    assert checksum(frame) == checksum(frame.copy())
    others = {
        "user": checksum(with_last("user", 9)),
        "item": checksum(with_last("item", 9)),
        "rating": checksum(with_last("rating", 5.0)),
        "time": checksum(with_last("timestamp", 99)),
        "weight": checksum(with_last("weight", 0.5)),
        "no times": checksum(frame, timestamp=None),
        "no weights": checksum(frame, weight=None),
        "scale": checksum(frame, range(6)),
        "one less": checksum(frame.iloc[:-1]),
    }
    assert len({*others.values(), checksum(frame)}) == len(others) + 1
