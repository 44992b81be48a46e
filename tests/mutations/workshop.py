"""A copy of the package in which one mutant at a time is made, and tests run against it.

Most of the time of a short run of pytest is the import of numpy, scipy, pandas and scikit-learn.
They are imported once, here, and so is the package; every run of tests is a fork of this process
in which the function with the mutant gets other code. Only where that is not enough, in compiled
loops and in what runs when a module is imported, does the fork import the package anew.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import hashlib
import importlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
from mutations.marks import prepare, starting_with
from mutations.operators import Mutant
from mutations.traces import (
    IMPORTS,
    Recorder,
    Traces,
    module_names,
    record_imports,
    recorded_digest,
)

__all__ = ["ROOT", "TESTS", "Workshop", "nearest_tests"]

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
# seconds of processor time
SECONDS = 10.0  # of the tests that are run for a mutant
NEAR_SHARE = 0.7  # of these, for tests in the folder of the module
COMPILING = 120.0  # to compile loops again, if the mutant is in one
STARTING = 15.0  # to import the package and the tests; with it, the tests may take
SLOWER = 3.0  # times longer than without a mutant: one that makes them run longer is noticed
FILE_SECONDS = 0.3  # to import a file of tests
RECORDING = 9000.0  # of a folder of tests
ROOM = b"\n" + b" " * 399  # at the end of a file, which a mutant may take
CROWD = 4  # how many times longer that may take on a crowded machine, or where a test only waits
NOT_NEAR = (  # test other things, or draw at random
    "fuzz", "mutations", "peers", "pipelines", "test_architecture.py", "test_boundscheck.py",
    "test_docs.py", "test_parameter_names.py",
)  # fmt: skip
PASSED, FAILED, NOTHING = 0, 1, 5  # exit codes of pytest; others mean that the tests did not run
LATE = -1
IMPORTED_ONCE = (
    "pytest", "hypothesis", "numpy", "scipy.sparse", "scipy.stats", "scipy.optimize",
    "scipy.special", "pandas", "sklearn.base", "sklearn.svm", "sklearn.utils.estimator_checks",
    "typer.testing", "rich", "narwhals", "pytest_benchmark.plugin", "anyio.pytest_plugin",
    "_hypothesis_pytestplugin", "platformdirs.pytest_plugin",
)  # fmt: skip


def nearest_tests(file: str) -> list[str]:
    """Files and folders of tests for a module, given below ``ordrec``: the nearest first.

    First come the tests that are named after the module, then those of the folder that mention a
    public name of it, then the whole folder.

    Examples
    --------
    >>> nearest_tests("linalg/lapack.py")[::2]
    ['linalg/test_lapack.py', 'linalg']
    """
    path = Path(file)
    found = []
    folder = path.parent
    while str(folder) != "." and not (TESTS / folder).is_dir():
        folder = folder.parent
    if not folder.parts:
        return ["journeys", "cli"]
    named = sorted((TESTS / folder).glob(f"test*{path.stem.rstrip('s')}*.py"))
    found += [str(each.relative_to(TESTS)) for each in named]
    names = _public_names(ROOT / "ordrec" / file) | {
        ".".join(("ordrec", *path.with_suffix("").parts))
    }
    counts = {
        str(each.relative_to(TESTS)): sum(name in text for name in names)
        for each in sorted((TESTS / folder).rglob("test*.py"))
        for text in [each.read_text()]
    }
    mentioning = sorted((each for each in counts if counts[each]), key=lambda each: -counts[each])
    return list(dict.fromkeys([*found, *mentioning, str(folder)]))


def _public_names(file: Path) -> set[str]:
    """What a module defines that tests may speak of, methods included."""
    tree = ast.parse(file.read_text())
    defined = (ast.FunctionDef, ast.ClassDef)
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, defined) and not node.name.startswith("_") and len(node.name) > 5
    } - {"predict", "fold_in", "update", "recommend", "explain", "predict_proba"}


class Workshop:
    """The copy, in a folder that contains what the package looks for beside itself."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        for beside in ("data", "pipelines"):
            if not (self.folder / beside).is_symlink():
                (self.folder / beside).symlink_to(ROOT / beside)
        self.digests = _digests(ROOT / "ordrec", "*.py")
        self._copy_package()
        (self.folder / "compiled").mkdir(exist_ok=True)
        os.environ["NUMBA_CACHE_DIR"] = str(self.folder / "compiled")
        for name in IMPORTED_ONCE:
            importlib.import_module(name)
        self._sound: dict[str, bool] = {}

    def _copy_package(self) -> None:
        """Write what has changed since the copy was made, with room for mistakes.

        numba takes compiled code for outdated if the size or the time of a file has changed, which
        no mutant changes here.
        """
        files = {file: ROOT / "ordrec" / file for file in self.digests}
        for path in (self.folder / "ordrec").rglob("*.py"):
            if str(path.relative_to(self.folder / "ordrec")) not in files:
                path.unlink()
        for path in (ROOT / "ordrec").rglob("*"):
            target = self.folder / "ordrec" / path.relative_to(ROOT / "ordrec")
            if path.is_file() and "__pycache__" not in path.parts:
                target.parent.mkdir(parents=True, exist_ok=True)
                content = path.read_bytes() + (ROOM if path.suffix == ".py" else b"")
                if not target.exists() or target.read_bytes() != content:
                    target.write_bytes(content)

    def record(self, folders: Collection[str] = ()) -> None:
        """Run all tests that are new or have changed, and note which lines they run through."""
        prepare(self.folder)
        package = self._package_part()
        imports = self.folder / IMPORTS
        if not imports.exists() or json.loads(imports.read_text())[0] != package:
            self._in_a_fork(lambda sender: sender.send(self._record_imports(package)), RECORDING)
        due: dict[str, dict[str, str]] = {}
        for test, digest in _digests(TESTS, "test_*.py").items():
            folder = Path(test).parts[0]
            wanted = folder in folders if folders else folder not in NOT_NEAR
            if wanted and recorded_digest(self.folder, test) != digest:
                due.setdefault(folder, {})[test] = digest
        for folder, tests in due.items():
            print(f"recording {len(tests)} files of tests in {folder}", flush=True)
            self._record(tests, package)
            for test in tests:  # the process has died, or this file ended the run
                if recorded_digest(self.folder, test) != tests[test]:
                    self._record({test: tests[test]}, package)
                if recorded_digest(self.folder, test) != tests[test]:
                    print(f"not recorded: {test}", flush=True)

    def _package_part(self) -> str:
        """Keep the digests of the package's files in a file that is named after them."""
        text = json.dumps(self.digests, indent=0)
        part = f"package-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        (self.folder / part).write_text(text)
        return part

    def _record_imports(self, package: str) -> None:
        self._begin(fresh=True)
        starting_with(self.folder / f"marks-{os.getpid()}")
        record_imports(self.folder, package)

    def _record(self, tests: dict[str, str], package: str) -> None:
        def run(sender: Any) -> None:
            self._begin(fresh=True)
            starting_with(self.folder / f"marks-{os.getpid()}")
            sys.dont_write_bytecode = False  # of tests; marked modules never leave any
            sender.send(_pytest(list(tests), [Recorder(self.folder, tests, package)]))

        self._in_a_fork(run, RECORDING)

    def ready(self) -> None:
        """Read what was recorded, and import the package for what mutants change in memory."""
        self.traces = Traces(self.folder, ROOT / "ordrec", self.digests)
        self._begin(fresh=True)
        sys.dont_write_bytecode = True  # a mutant would be taken for what was there before it
        for name in module_names(self.folder / "ordrec"):
            importlib.import_module(name)
        sys.path[:0] = [str(TESTS)]
        numba.njit(lambda number: number + 1)(1)  # what numba prepares before the first function
        for name in _imported_by_tests():
            with contextlib.suppress(Exception):  # what is not installed; some tests ask first
                importlib.import_module(name)
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for function in [each for each in gc.get_objects() if type(each) is FunctionType]:
            code = function.__code__
            if code.co_filename.startswith(str(self.folder)):
                key = (code.co_filename, code.co_qualname, code.co_firstlineno)
                self._functions.setdefault(key, []).append(function)

    def _begin(self, *, fresh: bool) -> None:
        """Make this process one in which tests can run on the copy."""
        os.environ |= {
            "PYTHONPATH": f"{self.folder}{os.pathsep}{TESTS}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "ORDREC_HYPOTHESIS": "first failure",
        }
        os.chdir(self.folder)
        sys.path[:0] = [str(self.folder)]
        if fresh:
            for name in [name for name in sys.modules if name.split(".")[0] == "ordrec"]:
                del sys.modules[name]
            importlib.invalidate_caches()
            numba.core.config.reload_config()

    def noticed(self, file: str, mutant: Mutant, further: float = 0.0) -> bool | None:
        """Whether a test near the file fails once the mutant is in it, and passes without it.

        None if that cannot be said, because tests do not run to their end without it either. Where
        the first tests do not notice it, others are run for so many ``further`` seconds.
        """
        tests, seconds = self.chosen(file, mutant.line)
        found = self._noticed_by(tests, seconds, file, mutant)
        if found is False and further:
            more, seconds = self.chosen(file, mutant.line, further)
            return self._noticed_by(
                [each for each in more if each not in tests], seconds, file, mutant
            )
        return found

    def _noticed_by(
        self, tests: list[str], seconds: float, file: str, mutant: Mutant
    ) -> bool | None:
        changed = self._changed_functions(file, mutant)
        limit = STARTING + SLOWER * seconds
        limit += COMPILING * (self.traces.loop_at(file, mutant.line) is not None)
        while tests:
            with self._made(file, mutant) as cache:
                code, failed = self._run(tests, limit, cache, changed)
            if code in (PASSED, NOTHING):
                return False
            if code == LATE or not failed:  # or their process has died, or they were not collected
                code, _ = self._run(tests, limit)
                return True if code in (PASSED, NOTHING) else None
            unsound = [each for each in failed if not self._passes(each)]
            if not unsound:
                return True
            tests = [each for each in tests if each not in unsound]
        return False

    def chosen(self, file: str, line: int, most: float = SECONDS) -> tuple[list[str], float]:
        """The tests to run for a line, the nearest and cheapest first, and their seconds.

        Behind them come others of the same files, which may use what these have made.
        """
        tests = self.traces.tests
        through = self.traces.through(file, line)
        nearest = nearest_tests(file)
        loop = self.traces.loop_at(file, line)
        if loop is not None:  # tests may call it themselves
            calling = {each for each in _test_files() if loop in (TESTS / each).read_text()}
            through = through | {test for test in tests if test.split("::")[0] in calling}
        if not through:  # what runs at import, or in other processes
            through = {test for test in tests if test.split("::")[0] in nearest[:3]}

        def far(test: str) -> int:
            place = next((n for n, each in enumerate(nearest) if test.startswith(each)), None)
            return 2 if place is None else int(place > 0)

        files = {test.split("::")[0] for test in through}
        beside = {test for test in tests if test.split("::")[0] in files} - through
        found: dict[str, list[str]] = {}  # by file, so that what its tests share is made once
        made: set[str] = set()
        total = 0.0
        for group, limit in (
            ({test for test in through if far(test) < 2}, NEAR_SHARE * most),
            (through, most),
            (beside, most),
        ):
            for test in sorted(group, key=lambda test: (far(test), tests[test].cost(), test)):
                file_of_tests = test.split("::")[0]
                cost = tests[test].cost(made) + FILE_SECONDS * (file_of_tests not in found)
                known = test in found.get(file_of_tests, [])
                if not known and total + cost <= limit:
                    found.setdefault(file_of_tests, []).append(test)
                    made |= set(tests[test].fixtures)
                    total += cost
        return [test for group in found.values() for test in group], total

    def _changed_functions(self, file: str, mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
        """The functions of this process that a mutant changes, with the code they get.

        None if that is not enough: compiled loops, and what runs when modules are imported.
        """
        if self.traces.loop_at(file, mutant.line) or self.traces.at_import(file, mutant.line):
            return []
        path = self.folder / "ordrec" / file
        codes = list(_codes(compile(mutant.applied(path.read_text()), str(path), "exec")))
        within = [
            code
            for code in codes
            if code.co_qualname == mutant.function and code.co_firstlineno <= mutant.line
        ]
        code = max(within, key=lambda code: code.co_firstlineno)
        key = (code.co_filename, code.co_qualname, code.co_firstlineno)
        return [(function, code) for function in self._functions.get(key, [])]

    @contextlib.contextmanager
    def _made(self, file: str, mutant: Mutant) -> Iterator[Path]:
        """Write the mutant into the copy, and name the folder of compiled code to use with it."""
        path = self.folder / "ordrec" / file
        source, times = path.read_text(), path.stat()
        own = self.folder / "compiled-with-mutant"
        changed = mutant.applied(source)
        spare = len(changed.encode()) - len(source.encode())
        assert spare <= len(ROOM), mutant
        try:
            path.write_text(
                changed[: len(changed) - spare] if spare > 0 else changed + " " * -spare
            )
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            # numba looks at the file of a function, not at those of what it calls: code compiled
            # with the mutant in it must not be found by the next one, nor the other way round
            if self.traces.loop_at(file, mutant.line):
                _copy_compiled(self.folder / "compiled", own, _importers(file) | {file})
                yield own
            else:
                yield self.folder / "compiled"
        finally:
            path.write_text(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            shutil.rmtree(own, ignore_errors=True)

    def _passes(self, test: str) -> bool:
        """Whether a test passes without any mutant; it must, or its failure means nothing."""
        if test not in self._sound:
            self._sound[test] = self._run([test], RECORDING)[0] in (PASSED, NOTHING)
        return self._sound[test]

    def _run(
        self,
        tests: list[str],
        seconds: float,
        cache: Path | None = None,
        changed: Sequence[tuple[FunctionType, CodeType]] = (),
    ) -> tuple[int, list[str]]:
        """The exit code of pytest, and the tests that failed."""

        def run(sender: Any) -> None:
            os.environ["NUMBA_CACHE_DIR"] = str(cache or self.folder / "compiled")
            for function, code in changed:
                function.__code__ = code
            if not changed and cache is not None:
                self._begin(fresh=True)
            gc.freeze()  # what is here already is never garbage
            _pytest(tests, [_Failures(sender)], "-x")

        return self._in_a_fork(run, seconds) or (FAILED, [])

    def _in_a_fork(self, do: Callable[[Any], None], seconds: float) -> Any:
        """What a copy of this process sends; none if it ends before, LATE if it takes too long."""
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if not child:
            os.setsid()
            limit = int(seconds + time.process_time()) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 9999))
            with (self.folder / "output").open("w") as said:
                for stream in (1, 2):
                    os.dup2(said.fileno(), stream)
            try:
                do(sender)
            finally:
                os._exit(0)
        sender.close()
        answer = None
        try:
            answer = receiver.recv() if receiver.poll(CROWD * seconds) else (LATE, [])
        except EOFError:  # the process has died
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            receiver.close()
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        return (LATE, []) if late else answer


def _pytest(tests: list[str], plugins: list[Any], *options: str) -> int:
    """Run tests in this process, and nothing else after it."""
    import pytest

    command = [
        *options, "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT),
        "--no-header", "--tb=no", "-p", "no:xdist", *(f"{TESTS}/{each}" for each in tests),
    ]  # fmt: skip
    return int(pytest.main(command, plugins=plugins))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions of a file."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class _Failures:
    """Notes which tests failed, and sends that; then the process ends, for there is no more."""

    def __init__(self, sender: Any) -> None:
        self.names: list[str] = []
        self.sender = sender

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names.append(report.nodeid.removeprefix("tests/"))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.sender.send((int(exitstatus), self.names))
        os._exit(0)


def _imported_by_tests() -> set[str]:
    """What tests import, but for other tests."""
    found = set()
    for path in TESTS.rglob("*.py"):
        if path.relative_to(TESTS).parts[0] not in NOT_NEAR:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    found |= {each.name for each in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module)
    return {name for name in found if not name.split(".")[-1].startswith("test_")}


@lru_cache
def _test_files() -> list[str]:
    return [str(path.relative_to(TESTS)) for path in sorted(TESTS.rglob("test_*.py"))]


def _digests(folder: Path, pattern: str) -> dict[str, str]:
    """Digests of the files below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob(pattern))
    }


def _copy_compiled(source: Path, target: Path, changed: set[str]) -> None:
    """Link the compiled code of all files but some."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    # a folder of compiled code is named after the folder of the file and a hash of its path
    outdated = {(Path("ordrec", each).parent.name, Path(each).stem) for each in changed}
    for folder in source.iterdir() if source.exists() else ():
        (target / folder.name).mkdir()
        for file in folder.iterdir():
            if (folder.name.rsplit("_", 1)[0], file.name.split(".")[0]) not in outdated:
                os.link(file, target / folder.name / file.name)


@lru_cache
def _imports() -> dict[str, set[str]]:
    """What each file imports of the package, as files."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "ordrec").rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ordrec."):
                module = "/".join(str(node.module).split(".")[1:])
                names |= {f"{module}.py"} | {f"{module}/{each.name}.py" for each in node.names}
        found[str(path.relative_to(ROOT / "ordrec"))] = names
    return found


def _importers(file: str) -> set[str]:
    """All files that import a file, directly or by others."""
    found, waiting = set(), [file]
    while waiting:
        one = waiting.pop()
        new = {other for other, names in _imports().items() if one in names} - found
        found |= new
        waiting += new
    return found
