"""Terminals that show ASCII only, narrow ones, and outputs that are closed or full."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from ordrec.cli import app
from ordrec.cli.outputs import table_writer
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation import evaluate
from ordrec.recommend import BiasModel
from ordrec.report.tables import overlap_table, print_summary
from ordrec.runtime.progress import progress

COMMAND = [sys.executable, "-m", "ordrec.cli"]


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("terminal") / "ratings.csv"
    rows = [(u, i, 1 + (u + i) % 5) for u in range(12) for i in range(10) if (u * i) % 3]
    pd.DataFrame(rows, columns=["user", "item", "rating"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["PYTHONIOENCODING", "LC_ALL"],
)
def test_an_ascii_terminal_gets_ascii(table: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*COMMAND, "evaluate", str(table), "-m", "mean,bias", "--metrics", "mae"],
        capture_output=True,
        env=os.environ | environment,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode("ascii")
    assert "+-0." in shown
    assert "+-: half the 95 % interval" in " ".join(shown.split())  # wherever the line breaks


def test_footnotes_are_as_wide_as_the_terminal() -> None:
    result = evaluate(synthetic_ratings(20, 15, n_ratings=200), ["mean", "bias"], metrics=["mae"])
    for width in (50, 90):
        stream = io.StringIO()
        print_summary(Console(file=stream, width=width), result)
        lines = stream.getvalue().splitlines()
        assert "±0." in stream.getvalue()
        assert max(map(len, lines)) <= width
        notes = lines[next(k for k, line in enumerate(lines) if line.startswith("synthetic")) :]
        assert all(len(line) > width - 20 for line in notes[:-1]), notes


def test_output_that_nobody_can_read_is_an_error(table: Path) -> None:
    words = [*COMMAND, "data", "list"]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
    assert done.returncode == 2
    assert done.stderr == "ordrec: standard output: is closed: name another place\n"
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert "No space left" in done.stderr
    words = [*COMMAND, "evaluate", str(table), "-m", "mean", "--metrics", "mae", "--quiet"]
    quiet = subprocess.run(words, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert (quiet.returncode, quiet.stderr) == (0, b"")  # nothing to print, nothing lost


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("user_damping=", "has no value"),
        ("user_damping=1e999", "1e999 is not a finite number"),
        ("user_damping=NaN", "NaN is not a finite number"),
        ("user_damping=abc", "user_damping is a number, 15.0 by default"),
        ("max_iter=true", "max_iter is a whole number, 200 by default"),
        ("max_iter=[1]", "max_iter is a whole number"),
        ("max_iter=1.5", "max_iter is a whole number"),
    ],
)
def test_settings_that_are_no_values_are_refused_in_words(
    table: Path, tmp_path: Path, setting: str, says: str
) -> None:
    words = ["fit", str(table), "-m", "bias", "-o", str(tmp_path / "m.ordrec"), "--set", setting]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ArgumentError), done.exception
    assert says in str(done.exception)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("n_factors=abc", "n_factors is a whole number or null, null by default"),
        ("use_time=1", "use_time is true or false or auto, auto by default"),
        ("symmetric=no", "symmetric is true or false, true by default"),
        ("side_kinds=number", "side_kinds is a list or table of values or null, null by default"),
    ],
)
def test_the_kinds_of_settings_are_said(
    table: Path, tmp_path: Path, setting: str, says: str
) -> None:
    words = ["fit", str(table), "-m", "factors", "-o", str(tmp_path / "m"), "--set", setting]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ArgumentError), done.exception
    assert str(done.exception).endswith(says)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_number_is_cut_off(width: int) -> None:
    """Once a table of twelve columns had cells such as "0.…" at 80 characters."""
    ratings = synthetic_ratings(30, 20, n_ratings=300, seed=0)
    result = evaluate(ratings, ["mean", "histogram"], n_resamples=20)
    console = Console(width=width, file=io.StringIO())
    print_summary(console, result)
    text = console.file.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for value in result.summary().loc["histogram"].dropna().iloc[:-2]:
        assert f"{value:.4f}" in text
    assert text.count("histogram") == {60: 3, 80: 2, 200: 1}[width]


HOSTILE = "\x1b[2Jmean [red]\u202e"


def test_names_neither_control_the_terminal_nor_the_layout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A column of a stranger's predictions is a name, too."""
    ratings = synthetic_ratings(20, 15, n_ratings=200, seed=0)
    models = {HOSTILE: BiasModel(), "mean": BiasModel()}
    result = evaluate(
        ratings, models, metrics=["mae", "ndcg@3"], against=HOSTILE, keep_predictions=True
    )
    console = Console(width=200, file=io.StringIO(), force_terminal=True)
    print_summary(console, result)
    console.print(overlap_table(result, 3))
    shown = console.file.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)  # colours
    for text in (plain, str(result.summary())):
        assert "\\x1b[2Jmean [red]\\u202e" in text
        assert not set(text) & set("\x1b\u202e")
    with progress(HOSTILE, verbose=True) as stage:
        stage(0, 1, HOSTILE)
    said = capsys.readouterr().err
    assert "\\x1b[2Jmean" in said
    assert not set(said) & set("\x1b\u202e")


def test_a_person_gets_fewer_digits_than_a_file(monkeypatch, capsys) -> None:
    table = pd.DataFrame({"item": ["a"], "expected": [3.760519821884435]})
    table_writer(None, "lists")(table)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table_writer(None, "lists")(table)
    assert capsys.readouterr().out.splitlines()[1::2] == ["a,3.760519821884435", "a,3.7605"]


@pytest.mark.parametrize("terminal", [False, True])
def test_the_documentation_is_opened_for_people_alone(monkeypatch, tmp_path, terminal) -> None:
    docs = import_module("ordrec.cli.docs")  # the package has a function of that name
    opened: list[str] = []
    (tmp_path / "index.html").write_text("")
    monkeypatch.setattr(docs, "BUILT", tmp_path / "index.html")
    monkeypatch.setattr(docs.webbrowser, "open", opened.append)
    monkeypatch.setattr(docs.sys.stdout, "isatty", lambda: terminal)
    docs.docs()
    assert opened == [(tmp_path / "index.html").as_uri()] * terminal
