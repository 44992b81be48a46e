"""A copy of the package in which one mutant at a time is made, and tests run against it.

Most of the time of a short run of pytest is the import of numpy, scipy, pandas and scikit-learn.
They are imported once, here; every run of tests is a fork of this process, which imports the
mutated package anew.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
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

from mutations.operators import Mutant

__all__ = ["ROOT", "TESTS", "Workshop", "nearest_tests"]

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
# seconds of processor time
SECONDS = 300  # of the tests named after a module; a mutant that makes them run longer is noticed
FOLDER_SECONDS = 60  # of other tests: those that have not failed by then did not notice
CROWD = 10  # how many times longer that may take on a crowded machine, or where a test only waits
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

    def noticed(self, file: str, mutant: Mutant) -> bool:
        """Whether a test near the file fails once the mutant is in it, and passes without it."""
        nearest = nearest_tests(file)
        with self._made(file, mutant) as cache:
            for number, tests in enumerate(nearest):
                # what has run before need not run again
                left_out = [each for each in nearest[:number] if each.startswith(f"{tests}/")]
                alone = Path(tests).stem.startswith("test") and Path(file).stem in tests
                seconds = SECONDS if alone else FOLDER_SECONDS
                code, failed = self._run(tests, cache, seconds, left_out)
                if code == LATE and alone:
                    return True
                if code not in (PASSED, NOTHING, LATE):
                    break
            else:
                return False
        return all(self._passes(each) for each in failed)

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
            if "ordrec.runtime.compiling" in source:
                _copy_compiled(self.folder / "compiled", own, _importers(file) | {file})
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
            code, _ = self._run(test, str(self.folder / "compiled"), SECONDS, [])
            self._sound[test] = code in (PASSED, NOTHING)
        return self._sound[test]

    def _run(
        self, tests: str, cache: str, seconds: float, left_out: list[str]
    ) -> tuple[int, list[str]]:
        """The exit code of pytest, and the tests that failed."""
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if not child:
            _test(tests, self.folder, cache, seconds, left_out, sender)
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
    tests: str, folder: Path, cache: str, seconds: float, left_out: list[str], sender: Any
) -> None:
    """Run tests in this process, which is a fork and ends here."""
    os.setsid()
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(seconds + time.process_time()), int(seconds) + 999)
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
    failures = _Failures()
    command = [
        "-x", "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "--no-header",
        "--tb=no", "-p", "no:xdist", f"{TESTS}/{tests}",
        *(f"--ignore={TESTS / each}" for each in left_out),
    ]  # fmt: skip
    code = FAILED
    try:
        code = int(pytest.main(command, plugins=[failures]))
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
