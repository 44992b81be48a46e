"""Marks show which blocks ran, also in processes that are started; a line has its tests.

A mutant is made in memory, on disk, or, in a compiled loop, by compiling again: each is noticed.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutations.marks import MEMORY, blocks_of, loops_of, prepare
from mutations.traces import Traces
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
def test_a_process_marks_the_blocks_that_it_runs(
    folder: Path, number: int, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = json.loads((folder / "blocks.json").read_text())
    (folder / "marks").write_bytes(bytes(blocks["blocks"]))
    environment = os.environ | {"PYTHONPATH": str(folder), MEMORY: str(folder / "marks")}
    code = MAIN.format(folder=str(folder))
    subprocess.run([sys.executable, "-c", code, str(number)], env=environment, check=True)
    first = blocks["files"][str(folder / "ordrec" / "signs.py")]
    marks = (folder / "marks").read_bytes()[first : first + 4]
    assert [place for place, mark in enumerate(marks) if mark] == ran


def record(folder: Path, file: str, package: str, lines: list[list[object]]) -> None:
    (folder / "traces").mkdir(exist_ok=True)
    (folder / "traces" / f"{file}.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in [["digest", package], *lines])
    )


def test_the_tests_of_a_line_and_of_a_compiled_line(folder: Path) -> None:
    (folder / "imports.json").write_text(json.dumps(["now.json", {"signs.py": [3]}]))
    (folder / "now.json").write_text(json.dumps({"signs.py": "a"}))
    (folder / "before.json").write_text(json.dumps({"signs.py": "b"}))
    ran = {"minus": [0, 1], "zero": [0]}
    tests = [["test", f"a.py::{name}", 0.1, [], {"signs.py": ran[name]}] for name in ran]
    record(folder, "a.py", "now.json", tests)
    made = ["fixture", "b.py::model::0", 2.0, [], {"signs.py": [3]}]
    using = [["test", f"b.py::{name}", 0.1, ["b.py::model::0"], {}] for name in ("c", "d")]
    record(folder, "b.py", "now.json", [made, *using])
    record(folder, "c.py", "before.json", [["test", "c.py::e", 0.1, [], {"signs.py": [2]}]])
    traces = Traces(folder, folder / "ordrec", {"signs.py": "a"})

    def through(line: str) -> set[str]:
        return traces.through("signs.py", LINES[line])

    assert through("    if number < 0:") == {"a.py::minus", "a.py::zero", "c.py::e"}
    assert through("        return -1") == {"a.py::minus", "c.py::e"}
    assert through("        return k + 1") == {"c.py::e"}  # recorded when the file was another
    assert through("        return number") == {"b.py::c", "b.py::d", "c.py::e"}
    assert traces.at_import("signs.py", LINES["    return loop(number)"])
    assert not traces.at_import("signs.py", LINES["        return -1"])
    (folder / "before.json").unlink()
    (folder / "traces" / "c.py.jsonl").unlink()
    assert Traces(folder, folder / "ordrec", {"signs.py": "a"}).untested() == (
        [("runtime/compiling.py", 1), ("signs.py", LINES["        return k + 1"])], 5
    )  # fmt: skip
    assert traces.tests["b.py::c"].cost() == pytest.approx(2.1)
    assert traces.tests["b.py::c"].cost({"b.py::model::0"}) == pytest.approx(0.1)


def test_blocks_of_the_package_are_found_and_compiled_loops_have_none() -> None:
    loops = ROOT / "ordrec" / "linalg" / "small.py"
    assert list(blocks_of(ast.parse(loops.read_text()))) == []
    assert len(list(blocks_of(ast.parse((TESTS / "mutations" / "marks.py").read_text())))) > 10


def test_what_numba_compiles_is_decorated_or_handed_to_it() -> None:
    source = "def a(): pass\n\ndef b(): pass\n\n@fast\ndef c(): pass\n\n@other\ndef d(): pass\n"
    source += "fast = compiled_with(fastmath=True)\nready: Any = intrinsic(b)\n"
    assert [loop.name for loop in loops_of(ast.parse(source))] == ["b", "c"]
