"""Marks show which blocks ran, also in processes that are started; a line has its tests."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutations.marks import FOLDER, blocks_of, prepare
from mutations.traces import Traces, forget
from mutations.workshop import ROOT, TESTS

SOURCE = '''"""A package."""

from __future__ import annotations

from ordrec.runtime.compiling import compiled_with

fast = compiled_with(fastmath=True)


def sign(number):
    """Of a number."""
    if number < 0:
        return -1
    for k in range(number):
        return k + 1
    return 0


@fast
def loop(number):
    if number:
        return number
    return 1


def call(number):
    return loop(number)
'''
LINES = {line: number for number, line in enumerate(SOURCE.splitlines(), 1)}
MAIN = """
import sys
sys.path.insert(0, {folder!r})
import ordrec.signs
ordrec.signs.sign(int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ordrec" / "runtime").mkdir(parents=True)
    for name in ("ordrec", "ordrec/runtime"):
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "ordrec/runtime/compiling.py").write_text(
        "def compiled_with(**_): return lambda f: f"
    )
    (tmp_path / "ordrec" / "signs.py").write_text(SOURCE)
    prepare(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("number", "ran"), [(-1, [0, 1]), (1, [0, 2]), (0, [0])])
def test_a_process_marks_the_blocks_that_it_runs(folder: Path, number: int, ran: list[int]) -> None:
    environment = os.environ | {"PYTHONPATH": str(folder), FOLDER: str(folder)}
    code = MAIN.format(folder=str(folder))
    subprocess.run([sys.executable, "-c", code, str(number)], env=environment, check=True)
    first = json.loads((folder / "blocks.json").read_text())[str(folder / "ordrec" / "signs.py")]
    marks = (folder / "marks").read_bytes()[first : first + 4]
    assert [place for place, mark in enumerate(marks) if mark] == ran


def test_the_tests_of_a_line_and_of_a_compiled_line(folder: Path) -> None:
    (folder / "traces.jsonl").write_text(
        "".join(
            json.dumps([test, 0.1, 0.0, {"signs.py": blocks}]) + "\n"
            for test, blocks in {"a.py::minus": [0, 1], "a.py::zero": [0], "b.py::c": [3]}.items()
        )
    )
    traces = Traces(folder, folder / "ordrec")
    assert traces.through("signs.py", LINES["    if number < 0:"]) == {"a.py::minus", "a.py::zero"}
    assert traces.through("signs.py", LINES["        return -1"]) == {"a.py::minus"}
    assert traces.through("signs.py", LINES["        return k + 1"]) == set()
    assert traces.through("signs.py", LINES["        return number"]) == {"b.py::c"}
    forget(folder, {"a.py"})
    assert Traces(folder, folder / "ordrec").seconds == {"b.py::c": 0.1}


def test_blocks_of_the_package_are_found_and_compiled_loops_have_none() -> None:
    loops = ROOT / "ordrec" / "linalg" / "small.py"
    assert list(blocks_of(ast.parse(loops.read_text()))) == []
    assert len(list(blocks_of(ast.parse((TESTS / "mutations" / "marks.py").read_text())))) > 10
