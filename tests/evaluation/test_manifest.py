"""Which commit a result was computed at."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from sklearn.linear_model import Ridge
from support.experiment_models import striped_table

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
