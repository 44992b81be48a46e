"""Published experiments by name: found, run, compared, written, refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from support.experiment_models import Fails, striped_table
from typer.testing import CliRunner

from ordrec.cli import app
from ordrec.errors import ArgumentError, DataError, DatasetMissing
from ordrec.evaluation import Experiment, TableProblem
from ordrec.experiments import runner as module
from ordrec.experiments.published import beside_published, published_section, within
from ordrec.experiments.runner import Pipeline, Reproduction, list_pipelines, reproduce

INVENTED = '''
"""An invented experiment."""
import pandas as pd
from joblib import Parallel, delayed
from ordrec.experiments.runner import Reproduction

NAME = "invented"
TITLE = "Squares"
SOURCE = "nobody"
TIME = "no time"


def square(x):
    return x * x


def run(*, data, trials, jobs, quick, out):
    values = Parallel(n_jobs=jobs)(delayed(square)(x) for x in range(trials or 3))
    return Reproduction(pd.DataFrame({"value": values}), [f"sum {sum(values)}"])
'''


@pytest.fixture
def invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "invented.py").write_text(INVENTED)
    (folder / "not_a_pipeline.py").write_text("NAME = 'nothing'\n")
    monkeypatch.setattr(module, "pipelines_folder", lambda: folder)
    return folder


def test_pipelines_are_found_without_running_them(invented: Path) -> None:
    (invented / "poison.py").write_text(
        INVENTED.replace("invented", "poison") + "\nraise SystemExit\n"
    )
    assert list(list_pipelines()) == ["invented", "poison"]


def test_every_pipeline_here_keeps_the_contract() -> None:
    found = list_pipelines()
    assert "svor-grading" in found
    for pipeline in found.values():
        assert callable(pipeline.load().run), pipeline.name


def test_a_pipeline_runs_in_other_processes_and_writes(invented: Path, tmp_path: Path) -> None:
    said: list[str] = []
    found = reproduce("invented", trials=4, jobs=2, out=tmp_path / "out", echo=said.append)
    assert found.complete
    assert "sum 14" in said
    assert pd.read_csv(tmp_path / "out" / "results.csv")["value"].tolist() == [0, 1, 4, 9]
    assert "Squares" in (tmp_path / "out" / "report.html").read_text()


def test_circumstances_of_a_run_are_written(invented: Path, tmp_path: Path) -> None:
    text = INVENTED.replace("quick, out):", "quick, out, sets=()):")
    added = '], checksums={"toy": "hash"}, cells=pd.DataFrame({"value": [7]}))'
    (invented / "invented.py").write_text(text.replace("])\n", added + "\n"))
    out = tmp_path / "out"
    reproduce("invented", trials=2, out=out, echo=lambda line: None, sets="a,b")
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["experiment"] == {
        "name": "invented",
        "trials": 2,
        "quick": False,
        "options": {"sets": ["a", "b"]},
    }
    assert manifest["data"] == {"toy": "hash"}
    assert manifest["commits"] == [manifest["commit"]]
    assert pd.read_csv(out / "cells.csv")["value"].tolist() == [7]
    (invented / "invented.py").write_text(text)
    reproduce("invented", out=out, echo=lambda line: None)
    assert not (out / "cells.csv").exists()  # it was that of the earlier run


def test_what_a_paper_says_in_words_is_printed(invented: Path, tmp_path: Path) -> None:
    (invented / "published").mkdir()
    words = invented / "published" / "in_words.toml"
    words.write_text('[invented]\nsays = ["section 1: squares grow"]\nnotes = ["ours, too"]\n')
    said: list[str] = []
    reproduce("invented", out=tmp_path / "out", echo=said.append)
    assert said[-3:-1] == ["published: section 1: squares grow", "note: ours, too"]
    assert "squares grow" in (tmp_path / "out" / "report.html").read_text()
    words.write_text("[invented\n")
    with pytest.raises(DataError, match="not a toml file"):
        reproduce("invented", out=tmp_path / "out")


def test_the_command_line(invented: Path, tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["reproduce", "--list"])
    assert "invented" in listed.output
    assert "Squares" in listed.output
    ran = CliRunner().invoke(app, ["reproduce", "invented", "-o", str(tmp_path / "o"), "--quick"])
    assert ran.exit_code == 0, ran.output
    assert "sum 5" in ran.output
    words = ["reproduce", "invented", "-o", str(tmp_path / "p"), "--trials", "5"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert "sum 30" in ran.output  # of the squares of 0 to 4
    assert len(pd.read_csv(tmp_path / "p" / "results.csv")) == 5


def test_a_failed_cell_makes_the_exit_code_one(
    invented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Experiment({"bad": Fails(), "ridge": Ridge()}, [TableProblem(striped_table())]).run()

    class Module:
        @staticmethod
        def run(**_: object) -> Reproduction:
            return Reproduction(result)

    monkeypatch.setattr(Pipeline, "load", lambda self: Module)
    ran = CliRunner().invoke(app, ["reproduce", "invented", "-o", str(tmp_path / "o")])
    assert ran.exit_code == 1
    assert "6 cells failed" in ran.output
    assert "6 cells failed" in (tmp_path / "o" / "report.html").read_text()


def test_a_pipeline_may_have_options_of_its_own(
    invented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    text = INVENTED.replace("quick, out):", "quick, out, sets=(), power=2, file=''):")
    (invented / "invented.py").write_text(text.replace('[f"sum', '[f"{sets} {power} {file!r} sum'))
    assert list_pipelines()["invented"].options() == {"sets": (), "power": 2, "file": ""}
    with pytest.raises(ArgumentError, match="no option colour: it has sets, power, file"):
        reproduce("invented", colour="red")
    with pytest.raises(ArgumentError, match="power takes int, not 'two'"):
        reproduce("invented", power="two")
    options = ["--set", "sets=a, b", "--set", "power=3", "-o", str(tmp_path / "cli")]
    ran = CliRunner().invoke(app, ["reproduce", "invented", *options])
    assert "('a', 'b') 3 '' sum 5" in ran.output
    command = ["x", "--out", str(tmp_path / "o"), "--sets", "a, b", "--power", "3", "--file", "f"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as left:
        module.main("invented")
    assert left.value.code == 0
    assert "('a', 'b') 3 'f' sum 5" in capsys.readouterr().out
    ran = CliRunner().invoke(app, ["reproduce", "invented", "--set", "sets=20", *options[2:]])
    assert "('20',) 3 '' sum 5" in ran.output
    with pytest.raises(ArgumentError, match="no data set is called 'c'"):
        module.among(["a", "c"], ["a", "b"])


def test_an_option_named_ratings_is_the_argument_of_the_script(
    invented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    text = INVENTED.replace("quick, out):", "quick, out, ratings='bundled'):")
    (invented / "invented.py").write_text(text.replace('[f"sum', '[f"{ratings} sum'))
    for given, expected in (["mine.csv"], "mine.csv sum 5"), ([], "bundled sum 5"):
        monkeypatch.setattr(sys, "argv", ["x", *given, "--out", str(tmp_path / "o")])
        with pytest.raises(SystemExit):
            module.main("invented")
        assert expected in capsys.readouterr().out


def test_means_are_printed_by_size_where_there_are_several() -> None:
    rows = [
        {"data": d, "n_train": n, "model": m, "metric": "mae", "value": float(n)}
        for m in "ab"
        for d in ("x", "y")
        for n in (20, 10)
    ]
    frame = pd.DataFrame(rows)
    wanted = [(d, n, m) for d in ("x", "y") for n in (10, 20) for m in "ab"]
    assert module._means(frame).index.tolist() == wanted
    once = frame[frame["n_train"] == 10]
    assert module._means(once).index.tolist() == [(d, m) for d in ("x", "y") for m in "ab"]


def test_refusals(invented: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="did you mean invented"):
        reproduce("invent")
    with pytest.raises(ArgumentError, match="trials"):
        reproduce("invented", trials=0)
    with pytest.raises(ArgumentError, match="jobs"):
        reproduce("invented", jobs=0)
    with pytest.raises(DatasetMissing, match="no such folder"):
        reproduce("invented", data=tmp_path / "nowhere")
    with pytest.raises(DatasetMissing, match="student-grades"):
        module.data_folder(tmp_path, "student-grades")


def test_a_file_is_also_a_script(tmp_path: Path) -> None:
    path = list_pipelines()["svor-grading"].path
    ran = subprocess.run(
        [sys.executable, str(path), "--data", str(tmp_path), "--out", str(tmp_path / "o")],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert "student-grades" in ran.stderr


# ---- beside the published numbers --------------------------------------------------------


def test_differences_are_in_combined_standard_errors(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(
        "table,metric,data,model,mean,standard_error\n"
        "1,mae,x,a,0.5,0.04\n1,mae,x,b,0.9,\n2,mze,x,a,0.1,0.01\n"
    )
    values = {"a": [0.50, 0.55, 0.60, 0.65, 0.70], "b": [0.9] * 5}
    frame = pd.DataFrame(
        [
            {"metric": "mae", "data": "x", "model": m, "value": v}
            for m, each in values.items()
            for v in each
        ]
    )
    found = beside_published(frame, path)
    assert len(found) == 2
    row = found.loc[("mae", "x", "a")]
    error = np.std(values["a"], ddof=1) / np.sqrt(5)
    assert row["in_errors"] == pytest.approx(0.1 / np.hypot(error, 0.04))
    assert np.isnan(found.loc[("mae", "x", "b"), "in_errors"])
    assert within(found) == (
        "1 of 1 published numbers met within 2 standard errors; 0 lower, 0 higher"
    )
    section = published_section(found, "a paper")
    assert section.frame["in standard errors"].tolist() == [f"{row['in_errors']:+.1f}", ""]
    assert section.mark is not None
    assert section.mark(("mae", "x", "a"), "in standard errors", None) == ""
    assert section.mark(("mae", "x", "b"), "in standard errors", None) == ""
    found["in_errors"] = -2.5
    assert section.mark(("mae", "x", "a"), "in standard errors", None) == "far"
    assert section.mark(("mae", "x", "a"), "ours", None) == ""


def test_few_trials_are_not_compared_in_standard_errors(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text("table,metric,data,model,mean,standard_error\n1,mae,x,a,0.5,0.03\n")
    frame = pd.DataFrame({"metric": "mae", "data": "x", "model": "a", "value": [0.6, 0.6, 0.7]})
    found = beside_published(frame, path)
    assert found["difference"].item() == pytest.approx(1.9 / 3 - 0.5)
    assert found["in_errors"].isna().all()
    assert within(found).startswith("fewer than 5 trials")


def test_a_file_of_published_numbers_must_have_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text("table,metric,data,mean\n")
    frame = pd.DataFrame({"metric": [], "data": [], "model": [], "value": []})
    with pytest.raises(DataError, match="no column 'model'"):
        beside_published(frame, path)


def test_a_quick_run_is_not_written_over_the_whole_one(
    invented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for quick in (False, True):
        reproduce("invented", quick=quick, echo=lambda line: None)
    written = {path.parent.name: json.loads(path.read_text())["experiment"]["quick"]
               for path in (tmp_path / "reproduced").glob("*/manifest.json")}  # fmt: skip
    assert written == {"invented": False, "invented-quick": True}


@pytest.mark.parametrize("last", ["results.csv", "manifest.json", "report.html"])
def test_a_run_that_was_killed_while_it_wrote_goes_on(
    invented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """What it left was taken for a stranger's."""
    out, real = tmp_path / "out", module.write_text

    def dying(path: Path, text: str) -> Path:
        if path.name == last and (out / "results.csv").exists() != (last == "results.csv"):
            raise KeyboardInterrupt
        return real(path, text)

    monkeypatch.setattr(module, "write_text", dying)
    monkeypatch.setattr(
        module.Report, "write", lambda self, folder: dying(Path(folder) / "report.html", "")
    )
    with pytest.raises(KeyboardInterrupt):
        reproduce("invented", out=out, echo=lambda line: None)
    monkeypatch.undo()
    monkeypatch.setattr(module, "pipelines_folder", lambda: invented)
    reproduce("invented", out=out, echo=lambda line: None)
    assert pd.read_csv(out / "results.csv")["value"].tolist() == [0, 1, 4]
    assert (out / "report.html").exists()
