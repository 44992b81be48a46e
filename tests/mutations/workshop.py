"""A copy of the package in which one mutant at a time is made, and tests run against it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutations.operators import Mutant

__all__ = ["ROOT", "TESTS", "Workshop", "nearest_tests"]

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
SECONDS = 600  # a mutant that makes the tests run longer is noticed, too
PASSED, FAILED = 0, 1  # exit codes of pytest; others mean that the tests did not run


def nearest_tests(file: str) -> list[str]:
    """Folders and files of tests for a module, given below ``ordrec``: the nearest first.

    Examples
    --------
    >>> nearest_tests("linalg/lapack.py")
    ['linalg/test_lapack.py', 'linalg']
    """
    path = Path(file)
    found = []
    folder = path.parent
    while str(folder) != "." and not (TESTS / folder).is_dir():
        folder = folder.parent
    named = sorted((TESTS / folder).glob(f"test*{path.stem}*.py"))
    found += [str(each.relative_to(TESTS)) for each in named if folder.parts]
    while folder.parts:
        found.append(str(folder))
        folder = folder.parent
    return list(dict.fromkeys(found)) or ["journeys", "cli"]


class Workshop:
    """The copy, in a folder that contains what the package looks for beside itself."""

    def __init__(self, folder: Path):
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__", "*.nb?")
        shutil.copytree(ROOT / "ordrec", folder / "ordrec", ignore=ignored)
        for beside in ("data", "pipelines"):
            (folder / beside).symlink_to(ROOT / beside)

    def noticed(self, file: str, mutant: Mutant) -> bool:
        """Whether a test near the file fails once the mutant is in it."""
        path = self.folder / "ordrec" / file
        source = path.read_text()
        # numba looks at the file of a function, not at those of what it calls: code compiled
        # with the mutant in it must not be found by the next one
        loops = "ordrec.runtime.compiling" in source
        path.write_text(mutant.applied(source))
        try:
            with self._cache(alone=loops) as cache:
                return any(self._fails(tests, cache) for tests in nearest_tests(file))
        finally:
            path.write_text(source)

    def passes(self, tests: str) -> bool:
        """Whether tests pass without any mutant; they must, or their failures mean nothing."""
        with self._cache(alone=False) as cache:
            return not self._fails(tests, cache)

    def _fails(self, tests: str, cache: str) -> bool:
        environment = os.environ | {
            "PYTHONPATH": f"{self.folder}{os.pathsep}{TESTS}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": cache,
            "ORDREC_HYPOTHESIS": "first failure",
        }
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "-c", str(ROOT / "pyproject.toml"),
            "--rootdir", str(ROOT), "--no-header", "--tb=line", f"{TESTS}/{tests}",
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, env=environment, cwd=self.folder, timeout=SECONDS, capture_output=True
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode not in (PASSED, 5)  # 5: no test was chosen

    @contextmanager
    def _cache(self, *, alone: bool) -> Iterator[str]:
        if not alone:
            yield str(self.folder / "compiled")
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            yield own
