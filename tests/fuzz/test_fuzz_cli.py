"""Any arguments of ``ordrec`` do something, or are refused in one line with exit code 1 or 2."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
import zipfile

import pandas as pd
import pytest
import typer
from fuzz.campaign import both_runs, explore
from hypothesis import strategies as st

from ordrec import save
from ordrec.cli import app, main
from ordrec.data import download
from ordrec.datasets import load_ratings
from ordrec.errors import DatasetMissing
from ordrec.recommend import make_model

JUNK = [
    "", " ", "-", "--", "-1", "0", "1", "7", "0.2", "1e9", "99999999999999999999", "nan", "inf",
    "x", "a,b", ",", "=", "a=b", "k=1", "kfold:2", "holdout:0.2", "holdout:", "kfold:-1", ":", "..",
    "/", ".", "/dev/null", "é\udc80", "😀", "a\nb", "*", "~", "%s", "{}", "[red]", "x" * 5000,
    "mean", "median", "micro", "macro", "mae", "rmse,mae", "none", "null", "--help", "auto",
]  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder with tiny ratings, pairs, models and other files."""
    folder = tmp_path_factory.mktemp("cli")
    rows = [(u, i, 1 + (u * i) % 5) for u in range(8) for i in range(6) if (u + i) % 3]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    frame.to_csv(folder / "good.csv", index=False)
    frame[["user", "item"]].head(5).to_csv(folder / "pairs.csv", index=False)
    frame.rename(columns={"item": "thing"}).to_csv(folder / "columns.csv", index=False)
    frame.replace({"rating": {3: "three"}}).to_csv(folder / "words.csv", index=False)
    (folder / "empty.csv").write_bytes(b"")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    with zipfile.ZipFile(folder / "good.zip", "w") as archive:
        archive.write(folder / "good.csv", "good.csv")
    (folder / "broken.zip").write_bytes((folder / "good.zip").read_bytes()[:80])
    ratings = load_ratings(folder / "good.csv")
    for name, options in (("bias", {}), ("mean", {}), ("als", {"n_factors": 2, "n_iter": 2})):
        save(make_model(name, **options).fit(ratings), folder / f"{name}.ordrec")
    (folder / "cut.ordrec").write_bytes((folder / "bias.ordrec").read_bytes()[:500])
    (folder / "folder").mkdir()
    return folder


def files(places):
    there = sorted(str(path) for path in places.iterdir())
    return [*there, "no/such.csv", "no/such/folder/x.csv"]


def commands(group, path=()):
    """Every command with the words that lead to it."""
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))
# Commands that take long or need other machines are only called with invalid arguments.
QUICK = {
    "models": ["mean", "bias", "mean,histogram", "biass", "item-knn", ",", "mean,mean", ""],
    "model": ["mean", "bias", "item-knn", "histogram", "biass", "", "als,mean"],
    "name": ["", "nothing", "svor", "../x", "eachmovie", "netflix", "ml-1m", "x" * 300],
    "jobs": ["1", "0", "-3", "x", "1.5", ""],
    "report": ["no/such/folder/r.html", "", "/", "r.docx"],
    "split": ["holdout:0.3", "kfold:2", "time:0.2", "leave-out:1", "strong:0.5", "user-holdout:0.5",
              "fold:none", "kfold:1", "kfold:999", "kfold:x", "holdout:0", "holdout:1.5", ""],
    "metrics": ["mae", "rmse,int_mae", "nothing", "mae,mae", ",", "log_loss", "ndcg@3", "ndcg@x"],
    "engine": ["serial", "threads", "x", ""],
    "scheduler": ["", "x"],
    "settings": ["damping=3", "user_damping=2", "a=b", "=", "user_damping=x", "user_damping=-1"],
}  # fmt: skip
NEVER_LEFT_OUT = {"fit": "model", "evaluate": "models"}  # their defaults take minutes here


@st.composite
def command_lines(draw, places):
    """A command, and for each of its parameters nothing, something sensible or something odd."""
    path = draw(st.sampled_from(sorted(COMMANDS)))
    words = list(path)
    for parameter in COMMANDS[path].params:
        needed = NEVER_LEFT_OUT.get(path[-1]) == parameter.name
        argument = parameter.param_type_name == "argument"
        keep = parameter.name == "data" and argument  # else the bundled ratings are read
        if not (needed or keep) and draw(st.integers(0, 3)) < (1 if argument else 2):
            continue
        sensible = QUICK.get(parameter.name, files(places))
        if parameter.name == "model" and argument:
            sensible = files(places)
        elif path == ("reproduce",) and parameter.name == "data":
            sensible = ["no/such/folder", str(places)]
        odd = draw(st.integers(0, 3)) == 0 and parameter.name not in ("jobs", "model", "models")
        value = draw(st.sampled_from(JUNK if odd else sensible))
        if argument:
            words.append(value)
        elif parameter.bare_type is bool:
            words.append(draw(st.sampled_from(parameter.opts)))
        else:
            words += [draw(st.sampled_from(parameter.opts)), value]
    if draw(st.integers(0, 5)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(st.sampled_from(JUNK)))
    if draw(st.integers(0, 12)) == 0:
        words.append(draw(st.sampled_from(["--nothing", "-z", "--seed=x", "--help", "extra"])))
    return words


def outcome(words, monkeypatch):
    """Exit code and what was printed."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "argv", ["ordrec", *words])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


@both_runs
def test_every_command_line_is_answered(run, places, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise DatasetMissing("there is no network in this test: get the file elsewhere")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORDREC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ORDREC_DATA", raising=False)
    monkeypatch.setattr(download, "fetch_file", refuse)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)  # would never end

    def check(words):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code, _, said = outcome(words, monkeypatch)
        assert code in (0, 1, 2), code
        assert "Traceback" not in said
        if code:
            said = re.sub(r"\Aordrec: loading .*\n", "", said)  # which 'serve' says beforehand
            assert len(said.strip().splitlines()) == 1, said
            assert said.startswith("ordrec: "), said
            assert 15 < len(said) < 2000, said

    explore("command line", run, check, command_lines(places))
