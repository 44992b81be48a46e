"""No command writes over its inputs, nor over a file that is not its own unless told to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from ordrec.cli import app
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.experiments.runner import reproduce


def run(*words: str | Path):
    return CliRunner().invoke(app, [str(word) for word in words])


def refusal(*words: str | Path) -> str:
    done = run(*words)
    assert isinstance(done.exception, ArgumentError), (done.exception, done.output)
    return str(done.exception)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Ratings and models that no test changes."""
    folder = tmp_path_factory.mktemp("made")
    rows = [(u, i, 1 + (u + i) % 5) for u in range(12) for i in range(10) if (u * i) % 3]
    pd.DataFrame(rows, columns=["user", "item", "rating"]).to_csv(folder / "r.csv", index=False)
    for model in ("bias", "popularity", "predictor-fast"):
        done = run("fit", folder / "r.csv", "-o", folder / f"{model}.ordrec", "-m", model)
        assert done.exit_code == 0, done.output
    judged = pd.DataFrame([(q, d, (q + d) % 3, d * q % 7) for q in range(6) for d in range(5)])
    judged.columns = ["query", "document", "grade", "length"]
    judged.to_csv(folder / "judged.csv", index=False)
    words = ["rank", "fit", folder / "judged.csv", "-m", "OrdinalLogistic", "-o"]
    done = run(*words, folder / "ranker.ordrec")
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n")
    (tmp_path / "items.csv").write_text("item\n2\n")
    (tmp_path / "users.csv").write_text("user\n2\n")
    (tmp_path / "said.csv").write_text("user,item,prediction\n1,2,3.5\n")
    (tmp_path / "test.csv").write_text("user,item,rating\n1,2,3\n")
    (tmp_path / "new.csv").write_text("query,document,length\n1,a,3\n1,b,2\n")
    return tmp_path


OVER_INPUT = [
    ["fit", "r.csv", "-m", "mean", "-o", "r.csv"],
    ["predict", "bias.ordrec", "pairs.csv", "-o", "pairs.csv"],
    ["predict", "bias.ordrec", "pairs.csv", "-o", "bias.ordrec"],
    ["evaluate", "r.csv", "-m", "mean", "-o", "r.csv"],
    ["recommend", "popularity.ordrec", "-u", "1", "--only", "items.csv", "-o", "items.csv"],
    ["recommend", "popularity.ordrec", "-u", "1", "--exclude", "items.csv", "-o", "items.csv"],
    ["recommend", "popularity.ordrec", "--for", "users.csv", "-o", "users.csv"],
    ["explain", "predictor-fast.ordrec", "-u", "1", "-i", "2", "-o", "predictor-fast.ordrec"],
    ["similar", "popularity.ordrec", "-i", "2", "-o", "popularity.ordrec"],
    ["tune", "r.csv", "-m", "bias", "-o", "r.csv"],
    ["rank", "fit", "judged.csv", "-o", "judged.csv"],
    ["rank", "predict", "ranker.ordrec", "new.csv", "-o", "new.csv"],
    ["rank", "predict", "ranker.ordrec", "new.csv", "-o", "ranker.ordrec"],
    ["rank", "explain", "ranker.ordrec", "new.csv", "-o", "new.csv"],
    ["rank", "update", "ranker.ordrec", "judged.csv", "-o", "judged.csv"],
    ["rank", "evaluate", "judged.csv", "-m", "ridge", "-o", "judged.csv"],
    ["rank", "evaluate", "judged.csv", "-m", "ridge", "--per-query", "judged.csv"],
]


@pytest.mark.parametrize("way", ["plain", "symbolic link", "hard link"])
@pytest.mark.parametrize("words", OVER_INPUT, ids=lambda words: f"{words[0]} {words[-1]}")
def test_an_input_is_never_replaced(folder: Path, monkeypatch, words: list[str], way: str) -> None:
    monkeypatch.chdir(folder)
    source = Path(words[-1])
    before, target = source.read_bytes(), source
    if way != "plain":
        target = Path(f"other{source.suffix}")
        (os.symlink if way == "symbolic link" else os.link)(source, target)
    says = refusal(*words[:-1], target, "--overwrite")
    assert "is also the input" in says
    assert source.read_bytes() == before


def test_a_file_of_an_input_folder_is_never_replaced(folder: Path) -> None:
    data = folder / "data"
    assert run("data", "partition", folder / "r.csv", data).exit_code == 0
    part = next(data.glob("part-*"))
    before = part.read_bytes()
    says = refusal("fit", data, "-m", "mean", "-o", part, "--overwrite")
    assert "is a file of the input" in says
    assert part.read_bytes() == before
    assert run("fit", data, "-m", "mean", "-o", data / "new.ordrec").exit_code == 0


COMMANDS = {
    "m.ordrec": ["fit", "r.csv", "-m", "mean", "-o"],
    "f.ordrec": ["fit-all", "parts", "--set", "n_factors=2", "--set", "max_iter=1", "-o"],
    "p.csv": ["predict", "bias.ordrec", "pairs.csv", "-o"],
    "e.csv": ["evaluate", "r.csv", "-m", "mean", "--metrics", "mae", "-q", "-o"],
    "e.json": ["evaluate", "r.csv", "-m", "mean", "--metrics", "mae", "-q", "-o"],
    "e.html": ["evaluate", "r.csv", "-m", "mean", "--metrics", "mae", "-q", "--report"],
    "l.csv": ["recommend", "popularity.ordrec", "-u", "1", "-o"],
    "all.csv": ["recommend", "popularity.ordrec", "--for", "all", "-o"],
    "all.parquet": ["recommend", "popularity.ordrec", "--for", "all", "-o"],
    "x.csv": ["explain", "predictor-fast.ordrec", "-u", "1", "-i", "2", "-o"],
    "s.csv": ["similar", "predictor-fast.ordrec", "-i", "2", "-o"],
    "u.ordrec": ["update", "popularity.ordrec", "test.csv", "-o"],
    "t.ordrec": ["tune", "r.csv", "-m", "bias", "--trials", "2", "-q", "-o"],
    "score.csv": ["score", "test.csv", "said.csv", "--metrics", "mae", "-q", "-o"],
    "score.html": ["score", "test.csv", "said.csv", "--metrics", "mae", "-q", "--report"],
    "r.ordrec": ["rank", "fit", "judged.csv", "-m", "OrdinalLogistic", "-o"],
    "re.csv": ["rank", "evaluate", "judged.csv", "-m", "ridge", "-q", "-o"],
    "re.html": ["rank", "evaluate", "judged.csv", "-m", "ridge", "-q", "--report"],
    "rq.csv": ["rank", "evaluate", "judged.csv", "-m", "ridge", "-q", "--per-query"],
    "rp.csv": ["rank", "predict", "ranker.ordrec", "new.csv", "-o"],
    "rx.csv": ["rank", "explain", "ranker.ordrec", "new.csv", "-o"],
    "ru.ordrec": ["rank", "update", "ranker.ordrec", "judged.csv", "-o"],
}


def commands_with(option: str) -> set[str]:
    """The names of all commands that have an option."""

    def below(command: Any, name: str) -> Iterator[str]:
        for word, inner in getattr(command, "commands", {}).items():
            yield from below(inner, f"{name} {word}".strip())
        if option in {each for parameter in command.params for each in parameter.opts}:
            yield name

    return set(below(get_command(app), ""))


def name_of(words: list[str]) -> str:
    return " ".join(words[:2] if words[0] == "rank" else words[:1])


def test_every_command_that_writes_is_tried() -> None:
    tried = {name_of(words) for words in COMMANDS.values()}
    assert tried == commands_with("--overwrite")
    assert {name_of(words) for words in OF_MODELS} == commands_with("--max-memory") - {"serve"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_strangers_file_is_replaced_only_when_asked(folder: Path, monkeypatch, name: str) -> None:
    """Here ratings stand under the name of the output; the own output is replaced without ado."""
    monkeypatch.chdir(folder)
    if "parts" in COMMANDS[name]:
        assert run("data", "partition", "r.csv", "parts").exit_code == 0
    Path(name).write_bytes(Path("r.csv").read_bytes())
    assert "--overwrite" in refusal(*COMMANDS[name], name)
    assert Path(name).read_bytes() == Path("r.csv").read_bytes()
    for words in (["--overwrite"], []):
        done = run(*COMMANDS[name], name, *words)
        assert done.exit_code == 0, (done.output, done.exception)
        assert Path(name).read_bytes() != Path("r.csv").read_bytes()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_strangers_file_is_seen_before_any_work(folder: Path, monkeypatch, name: str) -> None:
    """Nothing is computed for hours and then thrown away: here the input is not even readable."""
    monkeypatch.chdir(folder)
    words = COMMANDS[name]
    Path(name).write_bytes(Path("r.csv").read_bytes())
    if words[0] == "fit-all":
        monkeypatch.setattr("ordrec.recommend.fit_scan", lambda *_, **__: pytest.fail("fits"))
        assert run("data", "partition", "r.csv", "parts").exit_code == 0
    else:
        for column in ("rating", "grade", "item", "document"):
            for file in Path().glob("*.csv"):
                if file.name != name:
                    file.write_text(file.read_text().replace(column, "unknown"))
    assert "--overwrite" in refusal(*words, name)


OF_MODELS = [
    ["predict", "bias.ordrec", "pairs.csv"],
    ["recommend", "popularity.ordrec", "-u", "1"],
    ["explain", "predictor-fast.ordrec", "-u", "1", "-i", "2"],
    ["similar", "popularity.ordrec", "-i", "2"],
    ["update", "popularity.ordrec", "test.csv", "-o", "out"],
    ["predict-all", "bias.ordrec", "parts", "-o", "out"],
    ["evaluate-all", "bias.ordrec", "parts", "-o", "out"],
    ["rank", "predict", "ranker.ordrec", "new.csv"],
    ["rank", "explain", "ranker.ordrec", "new.csv"],
    ["rank", "update", "ranker.ordrec", "judged.csv", "-o", "out"],
]


@pytest.mark.parametrize("words", OF_MODELS, ids=name_of)
def test_memory_for_models_is_bounded(folder: Path, monkeypatch, words: list[str]) -> None:
    monkeypatch.chdir(folder)
    done = run(*words, "--max-memory", "0.0000001")
    assert isinstance(done.exception, ModelFileError)
    assert "max_memory is 1e-07" in str(done.exception)


def test_an_empty_file_is_nobodys(folder: Path) -> None:
    (folder / "m.ordrec").touch()
    assert run("fit", folder / "r.csv", "-m", "mean", "-o", folder / "m.ordrec").exit_code == 0


def test_a_reproduction_does_not_write_over_other_peoples_results(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("mine")
    with pytest.raises(ArgumentError, match=r"results\.csv that no experiment wrote"):
        reproduce("gpor-synthetic", quick=True, out=tmp_path)
    assert (tmp_path / "results.csv").read_text() == "mine"


def left_with(*words: str | Path) -> int:
    from ordrec.cli import main

    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.mark.parametrize("option", ["--items", "--users"])
@pytest.mark.parametrize("link", [False, True])
def test_side_tables_are_never_replaced(
    option: str, link: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ratings = tmp_path / "r.csv"
    ratings.write_text("user,item,rating\n1,1,5\n1,2,3\n2,1,4\n")
    side = tmp_path / "side.csv"
    side.write_text("user,item,x\n1,1,2\n2,2,4\n")
    output = side
    if link:
        output = tmp_path / "link.csv"
        output.symlink_to(side)
    before = side.read_bytes()
    assert left_with("fit", ratings, "-m", "bias", option, side, "-o", output, "--overwrite") == 2
    assert "is also the input" in capsys.readouterr().err
    assert left_with("evaluate", ratings, option, side, "-o", output, "--overwrite") == 2
    assert left_with("tune", ratings, "-m", "bias", option, side, "-o", output, "--overwrite") == 2
    assert side.read_bytes() == before


def test_a_replaced_model_keeps_its_permissions(tmp_path: Path) -> None:
    ratings = tmp_path / "r.csv"
    ratings.write_text("user,item,rating\n1,1,5\n1,2,3\n2,1,4\n")
    model = tmp_path / "m.ordrec"
    assert left_with("fit", ratings, "-m", "bias", "-o", model, "-q") == 0
    model.chmod(0o600)
    assert left_with("fit", ratings, "-m", "bias", "-o", model, "-q") == 0
    assert model.stat().st_mode & 0o777 == 0o600
    model.chmod(0o664)
    assert left_with("fit", ratings, "-m", "bias", "-o", model, "-q") == 0
    assert model.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("only_results", [False, True])
def test_a_full_disk_does_not_lose_what_was_measured(
    only_results: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import errno

    ratings = tmp_path / "r.csv"
    rows = "".join(f"{u},{i},{1 + (u + i) % 5}\n" for u in range(8) for i in range(8))
    ratings.write_text("user,item,rating\n" + rows)
    replace, n_written = os.replace, 0

    def full(source: Path, target: Path) -> None:
        nonlocal n_written
        if not Path(target).is_relative_to(tmp_path):  # compiled code
            return replace(source, target)
        n_written += 1
        if Path(target).suffix == ".csv" or (n_written > 4 and not only_results):
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    code = left_with("evaluate", ratings, "-m", "mean,bias", "-o", tmp_path / "out.csv")
    said = capsys.readouterr()
    assert code == 2
    assert "make room on that disk" in said.err
    assert "mean" in said.out
    assert "int_mae" in said.out
