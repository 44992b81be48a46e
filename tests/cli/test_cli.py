"""The commands as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import __version__
from ordrec.cli import app


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [(u, i, 1 + (u + i) % 5) for u in range(12) for i in range(10) if (u * i) % 3]
    path = tmp_path / "ratings.csv"
    pd.DataFrame(rows, columns=["user", "item", "rating"]).to_csv(path, index=False)
    return path


def test_evaluate_prints_a_table_and_writes_files(ordrec, table: Path, tmp_path: Path) -> None:
    done = ordrec(
        "evaluate", str(table), "-m", "mean,bias", "--split", "kfold:3",
        "-o", str(tmp_path / "r.json"), "-o", str(tmp_path / "r.csv"),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "int_mae" in done.out
    assert "3 folds" in done.out
    frame = pd.read_csv(tmp_path / "r.csv")
    assert set(frame["model"]) == {"mean", "bias"}
    assert frame["fold"].nunique() == 3
    assert json.loads((tmp_path / "r.json").read_text())["decision"] == "auto"


def test_quiet_prints_nothing(table: Path) -> None:
    """In a process of its own, whose imports print nothing either."""
    words = ["evaluate", str(table), "-m", "mean", "--quiet"]
    done = subprocess.run([sys.executable, "-m", "ordrec.cli", *words], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["evaluate", "no/such/file.csv"], "no such file"),
        (["evaluate", "ml-100m"], "did you mean"),
        (["evaluate", "-m", "biass"], "did you mean 'bias'"),
        (["evaluate", "-m", ","], "names nothing"),
        (["evaluate", "-m", "mean", "--split", "kfold:x"], "kfold"),
        (["evaluate", "-m", "mean", "--metrics", "maee"], "mae"),
        (["evaluate", "-m", "mean", "--decision", "coin"], "decision"),
        (["evaluate", "-o", "results.xlsx"], ".csv or .json"),
        (["evaluate", "-o", "no/such/folder/r.csv"], "does not exist"),
        (["data", "describe", "netflix"], "netflix"),
        (["data", "fetch", "eachmovie", "--offline"], "terms"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    ordrec, words: list[str], says: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORDREC_DATA", raising=False)
    done = ordrec(*words)
    assert done.code == 2
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_an_unreadable_file_names_the_file(ordrec, tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(b"user,item,rating\n1,2\n3,4,x\n")
    done = ordrec("evaluate", str(path))
    assert done.code == 2
    assert "broken.csv" in done.err


def test_data_commands(ordrec) -> None:
    listed = ordrec("data", "list")
    assert listed.code == 0
    assert "ml-1m" in listed.out
    described = ordrec("data", "describe", "ml-latest-small-2016")
    assert "100004 ratings" in described.out


@pytest.mark.parametrize("words", [[], ["rank"], ["data"], ["evaluate"], ["data", "list"]])
def test_every_help_text_is_there(ordrec, words: list[str]) -> None:
    done = ordrec(*words, "--help")
    assert done.code == 0
    assert "Usage" in done.out


@pytest.mark.parametrize("words", [[], ["rank"], ["data"]])
def test_lists_of_commands_fit_a_terminal(words: list[str]) -> None:
    said = CliRunner().invoke(app, [*words, "--help"], terminal_width=80).output
    assert "..." not in said.partition("Commands:")[2]
    assert max(map(len, said.splitlines())) <= 80


def test_the_version_is_that_of_the_package(ordrec) -> None:
    done = ordrec("--version")
    assert done.code == 0, done.err
    assert done.out == f"ordrec {__version__}\n"
