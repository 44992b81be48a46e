"""Which tests run through which lines of the package, and how long they take.

Recorded by running all tests once (`Recorder`), with the marks of `mutations.marks`. A loop that
numba compiles has no marks: the lines that call it stand for it.
"""

from __future__ import annotations

import ast
import bisect
import builtins
import json
import resource
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

from mutations.marks import BLOCKS, MARKS, blocks_of, loops_of
from numba.core import event

__all__ = ["Recorder", "Traces", "forget"]

TRACES = "traces.jsonl"  # a line per test: name, seconds, seconds of compiling, blocks by file


class Recorder:
    """A plugin of pytest that notes the blocks and the processor time of every test."""

    def __init__(self, folder: Path):
        self.marks = getattr(builtins, MARKS)
        firsts = json.loads((folder / BLOCKS).read_text())
        self.files = [str(Path(path).relative_to(folder / "ordrec")) for path in firsts]
        self.firsts = list(firsts.values())
        self.lines = (folder / TRACES).open("a", buffering=1)
        self.clock = _Clock()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.marks[:] = bytes(len(self.marks))
        self.clock.start()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        seconds, marks = self.clock.seconds(), self.marks[:]
        ran: dict[str, list[int]] = {}
        place = marks.find(1)
        while place >= 0:
            file = bisect.bisect(self.firsts, place) - 1
            ran.setdefault(self.files[file], []).append(place - self.firsts[file])
            place = marks.find(1, place + 1)
        name = nodeid.removeprefix("tests/")
        self.lines.write(json.dumps([name, seconds, self.clock.compiling, ran]) + "\n")


class _Clock(event.Listener):
    """Processor time of this process and those it started, without that of compiling."""

    def __init__(self) -> None:
        self.depth, self.compiling = 0, 0.0
        event.register("numba:compile", self)

    def start(self) -> None:
        self.begun, self.compiling = _processor_time(), 0.0

    def seconds(self) -> float:
        return round(max(_processor_time() - self.begun - self.compiling, 0.0), 3)

    def on_start(self, event: Any) -> None:
        self.since = self.since if self.depth else _processor_time()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if not self.depth:
            self.compiling = round(self.compiling + _processor_time() - self.since, 3)


def _processor_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def forget(folder: Path, tests: set[str]) -> None:
    """Drop what was recorded of files of tests."""
    path = folder / TRACES
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    path.write_text("".join(each for each in lines if each[2:].split("::")[0] not in tests))


class Traces:
    """What was recorded in a folder, for the files of a package.

    Of files that have changed since, the blocks are unknown: tests that ran through any of them are
    those of every line.
    """

    def __init__(self, folder: Path, package: Path, stale: Collection[str] = ()):
        self.package, self.stale = package, stale
        self.seconds: dict[str, float] = {}
        self._tests: dict[str, list[list[str]]] = {}  # of each file, the tests of each block
        for line in (folder / TRACES).read_text().splitlines():
            test, seconds, _, ran = json.loads(line)
            self.seconds[test] = seconds
            for file, blocks in ran.items():
                tests = self._tests.setdefault(file, [])
                tests += [[] for _ in range(max(blocks) + 1 - len(tests))]
                for block in blocks:
                    tests[block].append(test)

    def through(self, file: str, line: int) -> set[str]:
        """The tests that run through a line, or call the loop that it is in."""
        if file in self.stale:
            return {test for tests in self._tests.get(file, []) for test in tests}
        loop = self.loop_at(file, line)
        if loop is not None:
            return self._calling(file, loop, set())
        blocks = blocks_of(_tree(self.package / file))
        spans = [(block[0].lineno, block[-1].end_lineno or 0) for block in blocks]
        around = [
            (stop - start, number)
            for number, (start, stop) in enumerate(spans)
            if start <= line <= stop
        ]
        if not around:
            return set()
        block, tests = min(around)[1], self._tests.get(file, [])
        return set(tests[block]) if block < len(tests) else set()

    def loop_at(self, file: str, line: int) -> str | None:
        """The name of the compiled loop that a line belongs to, if it does."""
        for function in loops_of(_tree(self.package / file)):
            if function.lineno <= line <= (function.end_lineno or line):
                return function.name
        return None

    def _calling(self, file: str, name: str, seen: set[tuple[str, str]]) -> set[str]:
        """The tests that run through lines that name a compiled loop."""
        if (file, name) in seen:
            return set()
        seen.add((file, name))
        found: set[str] = set()
        for path in self.package.rglob("*.py"):
            if name not in path.read_text():
                continue
            other, tree = str(path.relative_to(self.package)), _tree(path)
            if other != file and name not in _imported(tree):
                continue
            loops = {(each.lineno, each.end_lineno): each.name for each in loops_of(tree)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and node.id == name:
                    inside = [loops[a, b] for a, b in loops if a <= node.lineno <= (b or a)]
                    found |= (
                        self._calling(other, inside[0], seen)
                        if inside
                        else self.through(other, node.lineno)
                    )
        return found


@lru_cache(None)
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _imported(tree: ast.Module) -> set[str]:
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
