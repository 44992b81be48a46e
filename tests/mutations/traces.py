"""Which tests run through which lines of the package, and how long they take.

Recorded by running all tests once (`Recorder`), with the marks of `mutations.marks`, and kept in a
file for each file of tests: a stopped recording goes on there, and a file of tests that changes is
recorded again alone. What a fixture runs through counts for every test that uses it, and not only
for the first. A loop that numba compiles has no marks: the lines that call it stand for it.
"""

from __future__ import annotations

import ast
import bisect
import builtins
import importlib
import json
import os
import resource
import signal
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from mutations.marks import BLOCKS, MARKS, blocks_of, loops_of
from numba.core import event

__all__ = [
    "IMPORTS",
    "Recorder",
    "Test",
    "Traces",
    "module_names",
    "record_imports",
    "recorded_digest",
]

PARTS = "traces"  # the folder: a file for each file of tests
IMPORTS = "imports.json"  # the digests, and what ran when all modules were imported
LONGEST = 10.0  # seconds of processor time: a test that takes more is stopped, and is of no use


class TooLong(BaseException):
    """Stops a test; nothing that is tested catches it."""


class _Marks:
    """The marks in memory, by file of the package."""

    def __init__(self, folder: Path):
        self.memory = getattr(builtins, MARKS)
        firsts = json.loads((folder / BLOCKS).read_text())["files"]
        self.files = [str(Path(path).relative_to(folder / "ordrec")) for path in firsts]
        self.firsts = list(firsts.values())

    def clear(self) -> None:
        self.memory[:] = bytes(len(self.memory))

    def bytes(self) -> bytes:
        return bytes(self.memory[:])

    def add(self, marks: bytes) -> None:
        self.memory[:] = bytes(map(max, marks, self.memory[:]))

    def ran(self) -> dict[str, list[int]]:
        """The numbers of the blocks that are marked."""
        marks, ran = self.bytes(), {}  # type: tuple[bytes, dict[str, list[int]]]
        place = marks.find(1)
        while place >= 0:
            file = bisect.bisect(self.firsts, place) - 1
            ran.setdefault(self.files[file], []).append(place - self.firsts[file])
            place = marks.find(1, place + 1)
        return ran


def record_imports(folder: Path, package: str) -> None:
    """Note what runs when all modules are imported, in this process."""
    marks = _Marks(folder)
    for name in module_names(folder / "ordrec"):
        importlib.import_module(name)
    (folder / IMPORTS).write_text(json.dumps([package, marks.ran()]))


def module_names(package: Path) -> list[str]:
    """All modules of the package that can be imported for their names."""
    paths = sorted(path.relative_to(package.parent) for path in package.rglob("*.py"))
    names = [
        ".".join(path.with_suffix("").parts) for path in paths if "pipelines" not in path.parts
    ]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


class Recorder:
    """A plugin of pytest that notes the blocks and the processor time of every test that passes.

    A part begins with the digest of its file of tests and the name of the file in which the
    digests of the package's files are. Then follow fixtures and tests: kind, name, seconds, names
    of fixtures, numbers of blocks by file.
    """

    def __init__(self, folder: Path, digests: Mapping[str, str], package: str):
        self.marks = _Marks(folder)
        self.folder, self.digests, self.package = folder / PARTS, digests, package
        self.folder.mkdir(exist_ok=True)
        self.clock = _Clock()
        self.fixtures: dict[str, list[Any]] = {}
        self.lines: dict[str, dict[str, list[Any]]] = {}  # of files that are not written yet
        self.written: set[str] = set()
        self.passed, self.used = False, []
        signal.signal(signal.SIGPROF, self._stop_if_too_long)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.marks.clear()
        self.clock.start()
        self.in_fixtures, self.depth, self.used, self.passed = 0.0, 0, [], False
        signal.setitimer(signal.ITIMER_PROF, LONGEST)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        before, begun = self.marks.bytes(), self.clock.seconds()
        self.marks.clear()
        self.depth += 1
        try:
            return (yield)
        finally:
            self.depth -= 1
            seconds = round(self.clock.seconds() - begun, 3)
            self.in_fixtures += 0.0 if self.depth else seconds
            name = _instance(fixturedef, request.param_index)
            self.fixtures[name] = ["fixture", name, seconds, [], self.marks.ran()]
            self.marks.add(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        try:
            result = yield
            self.passed = True
            return result
        finally:
            indices = item.callspec.indices if hasattr(item, "callspec") else {}
            self.used = [
                _instance(each, indices.get(each.argname, 0))
                for each in item._request._fixture_defs.values()
                if each.scope != "function"
            ]

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = round(max(self.clock.seconds() - self.in_fixtures, 0.0), 3)
        name = nodeid.removeprefix("tests/")
        lines = self.lines.setdefault(_file(name), {})
        if self.passed:
            lines |= {each: self.fixtures[each] for each in self.used if each in self.fixtures}
            lines[name] = ["test", name, seconds, self.used, self.marks.ran()]
        self._write(all_but=_file(name))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in (0, 1):  # others mean that not all tests have run
            for file in self.digests.keys() - self.written:
                self.lines.setdefault(file, {})
            self._write()

    def _stop_if_too_long(self, *_: object) -> None:
        left = LONGEST - self.clock.seconds()  # compiling does not count
        if left > 0:
            signal.setitimer(signal.ITIMER_PROF, left + 0.1)
        else:
            raise TooLong

    def _write(self, all_but: str = "") -> None:
        """Write the parts of files of tests that are done."""
        for file in [file for file in self.lines if file != all_but]:
            lines = [[self.digests[file], self.package], *self.lines.pop(file).values()]
            part = self.folder / f"{os.getpid()}.new"
            part.write_text("".join(json.dumps(line) + "\n" for line in lines))
            part.rename(_part(self.folder.parent, file))
            self.written.add(file)


def _file(test: str) -> str:
    return test.split("::")[0]


def _instance(fixture: Any, index: int) -> str:
    return f"{fixture.baseid}::{fixture.argname}::{index}"


def _part(folder: Path, file: str) -> Path:
    return folder / PARTS / (file.replace("/", "--") + ".jsonl")


def recorded_digest(folder: Path, file: str) -> str | None:
    """The digest of a file of tests when it was recorded."""
    path = _part(folder, file)
    if not path.exists():
        return None
    with path.open() as lines:
        return str(json.loads(lines.readline())[0])


class _Clock(event.Listener):
    """Processor time of this process and those it started, without that of compiling."""

    def __init__(self) -> None:
        self.depth, self.begun, self.compiling = 0, 0.0, 0.0
        event.register("numba:compile", self)

    def start(self) -> None:
        self.begun, self.compiling = _processor_time(), 0.0

    def seconds(self) -> float:
        now = _processor_time()
        running = now - self.since if self.depth else 0.0
        return max(now - self.begun - self.compiling - running, 0.0)

    def on_start(self, event: Any) -> None:
        self.since = self.since if self.depth else _processor_time()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if not self.depth:
            self.compiling += _processor_time() - self.since


def _processor_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Test:
    """What is known of a test: its own seconds, and the fixtures that it shares with others."""

    def __init__(self, seconds: float, fixtures: dict[str, float]):
        self.seconds, self.fixtures = seconds, fixtures

    def cost(self, made: Collection[str] = ()) -> float:
        """Its seconds, if some fixtures are made already."""
        return self.seconds + sum(cost for name, cost in self.fixtures.items() if name not in made)


class Traces:
    """What was recorded in a folder, for the files of a package.

    Of files that have changed since a file of tests was recorded, the blocks are unknown: its tests
    that ran through any of them are those of every line.
    """

    def __init__(self, folder: Path, package: Path, digests: Mapping[str, str]):
        self.package = package
        self.tests: dict[str, Test] = {}
        self._tests: dict[str, list[set[str]]] = {}  # of each file, the tests of each block
        self._anywhere: dict[str, set[str]] = {}  # of changed files
        self._imports = json.loads((folder / IMPORTS).read_text())[1]
        for part in sorted((folder / PARTS).glob("*.jsonl")):
            (_, then), *lines = map(json.loads, part.read_text().splitlines())
            known = json.loads((folder / then).read_text())
            changed = {file for file, digest in digests.items() if known.get(file) != digest}
            fixtures = {line[1]: line for line in lines if line[0] == "fixture"}
            for kind, test, seconds, uses, ran in lines:
                if kind == "test":
                    used = [fixtures[name] for name in uses if name in fixtures]
                    self.tests[test] = Test(seconds, {each[1]: each[2] for each in used})
                    for blocks in (ran, *(each[4] for each in used)):
                        self._add(test, blocks, changed)

    def _add(self, test: str, ran: Mapping[str, list[int]], changed: set[str]) -> None:
        for file, blocks in ran.items():
            if file in changed:
                self._anywhere.setdefault(file, set()).add(test)
                continue
            tests = self._tests.setdefault(file, [])
            tests += [set() for _ in range(max(blocks) + 1 - len(tests))]
            for block in blocks:
                tests[block].add(test)

    def through(self, file: str, line: int) -> set[str]:
        """The tests that run through a line, or call the loop that it is in."""
        loop = self.loop_at(file, line)
        found = self._at(file, line) if loop is None else self._calling(file, loop, set())
        return found

    def at_import(self, file: str, line: int) -> bool:
        """Whether a line runs when its module, or another, is imported."""
        return self._block(file, line) in self._imports.get(file, [])

    def untested(self) -> tuple[list[tuple[str, int]], int]:
        """Files and lines of the blocks that no test runs through, and how many blocks there are.

        Those that end by raising an error, and abstract methods, are left out.
        """
        found, n_blocks = [], 0
        for path in sorted(self.package.rglob("*.py")):
            file = str(path.relative_to(self.package))
            imported, tests = self._imports.get(file, []), self._tests.get(file, [])
            for number, block in enumerate(blocks_of(_tree(path))):
                n_blocks += 1
                ran = number in imported or (number < len(tests) and tests[number])
                if not ran and file not in self._anywhere and not _ends_there(block):
                    found.append((file, block[0].lineno))
        return found, n_blocks

    def _at(self, file: str, line: int) -> set[str]:
        changed, block = self._anywhere.get(file, set()), self._block(file, line)
        tests = self._tests.get(file, [])
        return changed | tests[block] if block is not None and block < len(tests) else changed

    def _block(self, file: str, line: int) -> int | None:
        """The number of the block that a line belongs to."""
        spans = [
            (block[0].lineno, block[-1].end_lineno or 0)
            for block in blocks_of(_tree(self.package / file))
        ]
        around = [
            (stop - start, number)
            for number, (start, stop) in enumerate(spans)
            if start <= line <= stop
        ]
        return min(around)[1] if around else None

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
                        else self._at(other, node.lineno)
                    )
        return found


@lru_cache(None)
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _ends_there(block: list[ast.stmt]) -> bool:
    """Whether a block raises an error, or says what a method is for and no more."""
    says = [isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in block]
    return all(says) or isinstance(block[-1], ast.Raise)


def _imported(tree: ast.Module) -> set[str]:
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
