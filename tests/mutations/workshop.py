"""A copy of the package in which one mutant at a time is made, and tests run against it.

Most of the time of a short run of pytest is the import of numpy, scipy, pandas and scikit-learn.
They are imported once, here; every run of tests is a fork of this process, which imports the
mutated package anew.
"""

from __future__ import annotations

import ast
import contextlib
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
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from mutations.marks import FOLDER as MARKED
from mutations.marks import mark_blocks, prepare
from mutations.operators import Mutant
from mutations.traces import Recorder, Traces, forget

__all__ = ["ROOT", "TESTS", "Workshop", "nearest_tests"]

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
# seconds of processor time
SECONDS = 12.0  # of the tests that are run for a mutant
NEAR_SECONDS = 8.0  # of these, for tests in the folder of the module
COMPILING = 120.0  # to compile loops again, if the mutant is in a file of loops
STARTING = 15.0  # to import the package and the tests; with it, the tests may take
SLOWER = 3.0  # times longer than without a mutant: one that makes them run longer is noticed
FILE_SECONDS = 0.3  # to import a file of tests
RECORDING = 9000.0  # of a folder of tests
CROWD = 10  # how many times longer that may take on a crowded machine, or where a test only waits
NOT_NEAR = (  # test other things, or draw at random
    "fuzz", "mutations", "peers", "pipelines", "test_architecture.py", "test_boundscheck.py",
    "test_docs.py", "test_parameter_names.py",
)  # fmt: skip
PASSED, FAILED, NOTHING = 0, 1, 5  # exit codes of pytest; others mean that the tests did not run
LATE = -1
IMPORTED_ONCE = (
    "pytest", "hypothesis", "numpy", "scipy.sparse", "scipy.stats", "scipy.optimize",
    "scipy.special", "pandas", "sklearn.base", "sklearn.svm", "sklearn.utils.estimator_checks",
    "numba", "typer.testing", "rich", "narwhals",
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
        self.folder = folder
        if not (folder / "ordrec").exists():  # a folder of an earlier run keeps its compiled code
            for beside in ("data", "pipelines"):
                (folder / beside).symlink_to(ROOT / beside)
        ignored = shutil.ignore_patterns("__pycache__", "*.nb?")
        shutil.copytree(ROOT / "ordrec", folder / "ordrec", ignore=ignored, dirs_exist_ok=True)
        self._sound: dict[str, bool] = {}
        for name in IMPORTED_ONCE:
            importlib.import_module(name)

    def record(self) -> None:
        """Run all tests that are new or have changed, and note which lines they run through."""
        prepare(self.folder)
        noted = self.folder / "recorded.json"
        known = json.loads(noted.read_text()) if noted.exists() else {"tests": {}, "sources": {}}
        sources = _digests(ROOT / "ordrec", "*.py")
        due: dict[str, dict[str, str]] = {}
        for test, digest in _digests(TESTS, "test_*.py").items():
            if known["tests"].get(test) != digest and Path(test).parts[0] not in NOT_NEAR:
                due.setdefault(Path(test).parts[0], {})[test] = digest
        for folder, tests in due.items():
            print(f"recording the tests of {folder}", flush=True)
            forget(self.folder, set(tests))
            self._run(list(tests), str(self.folder / "compiled"), RECORDING, recorded=True)
            known["tests"] |= tests
            known["sources"] = sources | known["sources"]
            noted.write_text(json.dumps(known))
        stale = {file for file, digest in sources.items() if known["sources"].get(file) != digest}
        self.traces = Traces(self.folder, ROOT / "ordrec", stale)

    def noticed(self, file: str, mutant: Mutant) -> bool:
        """Whether a test near the file fails once the mutant is in it, and passes without it."""
        tests, seconds = self.chosen(file, mutant.line)
        limit = STARTING + SLOWER * seconds + COMPILING * _has_loops(file)
        while tests:
            with self._made(file, mutant) as cache:
                code, failed = self._run(tests, cache, limit)
            if code in (PASSED, NOTHING):
                return False
            if code == LATE:
                return True
            if not failed:  # the tests could not be collected, or their process has died
                code, _ = self._run(tests, str(self.folder / "compiled"), limit)
                return code in (PASSED, NOTHING)
            unsound = [each for each in failed if not self._passes(each)]
            if not unsound:
                return True
            tests = [each for each in tests if each not in unsound]
        return False

    def chosen(self, file: str, line: int) -> tuple[list[str], float]:
        """The tests to run for a line, the nearest and cheapest first, and their seconds."""
        through = self.traces.through(file, line)
        nearest = nearest_tests(file)
        if not through:  # what runs at import, or in other processes
            return [each for each in nearest[:3] if each.endswith(".py")], SECONDS

        def far(test: str) -> int:
            place = next((n for n, each in enumerate(nearest) if test.startswith(each)), None)
            return 2 if place is None else int(place > 0)

        found: dict[str, list[str]] = {}  # by file, so that what its tests share is made once
        total = 0.0
        for near, limit in ((True, NEAR_SECONDS), (False, SECONDS)):
            for test in sorted(through, key=lambda test: (far(test), self.traces.seconds[test])):
                file_of_tests = test.split("::")[0]
                cost = self.traces.seconds[test] + FILE_SECONDS * (file_of_tests not in found)
                known = test in found.get(file_of_tests, [])
                if (far(test) == 2) is not near and not known and total + cost <= limit:
                    found.setdefault(file_of_tests, []).append(test)
                    total += cost
        return [test for tests in found.values() for test in tests], total

    @contextlib.contextmanager
    def _made(self, file: str, mutant: Mutant) -> Iterator[str]:
        """Write the mutant into the copy, and name the folder of compiled code to use with it."""
        path = self.folder / "ordrec" / file
        source, times = path.read_text(), path.stat()
        path.write_text(mutant.applied(source))
        own = self.folder / "compiled-with-mutant"
        try:
            # numba looks at the file of a function, not at those of what it calls: code compiled
            # with the mutant in it must not be found by the next one, nor the other way round
            if _has_loops(file):
                callers = _importers(file) if self.traces.loop_at(file, mutant.line) else set()
                _copy_compiled(self.folder / "compiled", own, callers | {file})
                yield str(own)
            else:
                yield str(self.folder / "compiled")
        finally:
            path.write_text(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            shutil.rmtree(own, ignore_errors=True)

    def _passes(self, test: str) -> bool:
        """Whether a test passes without any mutant; it must, or its failure means nothing."""
        if test not in self._sound:
            code, _ = self._run([test], str(self.folder / "compiled"), RECORDING)
            self._sound[test] = code in (PASSED, NOTHING)
        return self._sound[test]

    def _run(
        self, tests: list[str], cache: str, seconds: float, *, recorded: bool = False
    ) -> tuple[int, list[str]]:
        """The exit code of pytest, and the tests that failed."""
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if not child:
            _test(tests, self.folder, cache, seconds, sender, recorded)
        sender.close()
        code, failed = LATE, []
        try:
            if receiver.poll(CROWD * seconds):
                code, failed = receiver.recv()
        except EOFError:  # the process has died, which is a failure unless it ran out of time
            code = FAILED
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            receiver.close()
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        return (LATE if late else code), failed


def _test(
    tests: list[str], folder: Path, cache: str, seconds: float, sender: Any, recorded: bool
) -> None:
    """Run tests in this process, which is a fork and ends here."""
    os.setsid()
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(seconds + time.process_time()), int(seconds) + 9999)
    )
    with open(os.devnull, "w") as nothing:
        for stream in (1, 2):
            os.dup2(nothing.fileno(), stream)
    os.environ |= {
        "PYTHONPATH": f"{folder}{os.pathsep}{TESTS}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": cache,
        "ORDREC_HYPOTHESIS": "first failure",
    }
    os.chdir(folder)
    sys.path[:0] = [str(folder)]
    for name in [name for name in sys.modules if name.split(".")[0] == "ordrec"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    import numba
    import pytest

    numba.core.config.reload_config()
    plugins: list[Any] = [failures := _Failures()]
    if recorded:
        os.environ[MARKED] = str(folder)
        mark_blocks()
        plugins.append(Recorder(folder))
    command = [
        *([] if recorded else ["-x"]), "-q", "-c", str(ROOT / "pyproject.toml"),
        "--rootdir", str(ROOT), "--no-header", "--tb=no", "-p", "no:xdist",
        *(f"{TESTS}/{each}" for each in tests),
    ]  # fmt: skip
    code = FAILED
    try:
        code = int(pytest.main(command, plugins=plugins))
    finally:
        sender.send((code, failures.names))
        os._exit(0)


class _Failures:
    """Notes which tests failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names.append(report.nodeid.removeprefix("tests/"))


def _has_loops(file: str) -> bool:
    return "ordrec.runtime.compiling" in (ROOT / "ordrec" / file).read_text()


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
