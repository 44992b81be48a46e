"""The tool on a small package of its own: each kind of mutant is noticed, or not, as planted."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutations.workshop import ROOT, TESTS

SIGNS = """from __future__ import annotations

import subprocess
import sys

from ordrec.runtime.compiling import compiled


def watched(number):
    return number + 1


def unwatched(number):
    return number * 7


def by_fixture(number):
    return number - 3


def at_import():
    return 10 // 5


TWO = at_import()


@compiled
def loop(numbers):
    total = 0.0
    for k in range(numbers.size):
        total += numbers[k]
    return total


def in_another_process():
    code = "from ordrec.signs import unseen_here; print(unseen_here())"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)


def unseen_here():
    return 2 ** 5
"""
TESTED = """import numpy as np
import pytest
from ordrec import signs


def test_sound_but_failing_by_itself():
    assert signs.watched(1) == 3


def test_watched():
    assert signs.watched(1) == 2


def test_unwatched():
    assert signs.unwatched(0) == 0


@pytest.fixture(scope="module")
def made():
    return signs.by_fixture(4)


def test_that_makes_the_fixture(made):
    pass


def test_that_looks_at_the_fixture(made):
    assert made == 1


def test_import():
    assert signs.TWO == 2


def test_loop():
    assert signs.loop(np.array([1.0, 2.0])) == 3.0


def test_another_process():
    assert signs.in_another_process() == 32
"""
NOTICED = {
    "number + 1 -> number - 1": True,
    "number * 7 -> number / 7": False,
    "number - 3 -> number + 3": True,
    "10 // 5 -> 10 * 5": True,
    "total += numbers[k] -> total -= numbers[k]": True,
    "2 ** 5 -> 2 * 5": True,
}


@pytest.mark.slow
def test_mutants_are_noticed_as_planted(tmp_path: Path) -> None:
    runtime = tmp_path / "ordrec" / "runtime"
    runtime.mkdir(parents=True)
    for folder in (runtime, runtime.parent):
        (folder / "__init__.py").touch()
    (runtime / "compiling.py").write_text(
        "from numba import njit\n\ncompiled = njit(cache=True)\n"  # its name finds the loops
    )
    (tmp_path / "ordrec" / "signs.py").write_text(SIGNS)
    tests = tmp_path / "tests"
    shutil.copytree(TESTS / "mutations", tests / "mutations")
    shutil.copy(TESTS / "conftest.py", tests)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tests / "test_signs.py").write_text(TESTED)
    out = tmp_path / "mutants.csv"
    command = [
        sys.executable, str(tests / "mutations" / "run.py"), "--sample", "1000", "--out", str(out),
        "--folder", str(tmp_path / "copy"),
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert run.returncode == 0, run.stderr
    with out.open(newline="") as file:
        decided = {
            row["mutant"].split(" ", 1)[1]: row["noticed"] == "1" for row in csv.DictReader(file)
        }
    assert {mutant: decided[mutant] for mutant in NOTICED} == NOTICED
    assert "survived: signs.py unwatched:14 number * 7 -> number / 7" in run.stdout
    again = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert again.returncode == 0, again.stderr
    assert "recording" not in again.stdout  # neither tests nor mutants are run again
    assert again.stdout.splitlines()[-1] == run.stdout.splitlines()[-1]
