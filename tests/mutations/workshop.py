"""A copy of the package in which one mutation at a time is made, and tests run against it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutations.mutation import Mutation

__all__ = ["Workshop", "mutated"]

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
SECONDS = 600  # a mutation that makes the tests run longer is noticed, too
PASSED, FAILED = 0, 1  # exit codes of pytest; others mean that the tests did not run


def mutated(source: str, mutation: Mutation) -> str:
    """The text of a file after a mutation, whose place must be unique."""
    assert source.count(mutation.old) == 1, (
        f"{mutation.name}: {mutation.old!r} occurs {source.count(mutation.old)} times in "
        f"ordrec/{mutation.file}: copy the line as it is now, or take the mutation out"
    )
    return source.replace(mutation.old, mutation.new)


class Workshop:
    """The copy, in a folder that contains what the package looks for beside itself."""

    def __init__(self, folder: Path):
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__", "*.nb?")
        shutil.copytree(ROOT / "ordrec", folder / "ordrec", ignore=ignored)
        for beside in ("data", "pipelines"):
            (folder / beside).symlink_to(ROOT / beside)

    def noticed(self, mutation: Mutation) -> bool:
        """Whether one of the mutation's tests fails."""
        file = self.folder / "ordrec" / mutation.file
        with self._changed(file, mutation):
            # numba looks at the file of a function, not at those of what it calls
            loops = "ordrec.runtime.compiling" in file.read_text()
            with self._cache("alone" if loops else "shared") as cache:
                code = self.run(mutation.tests.split(), cache, compiled=mutation.compiled)
        assert code in (PASSED, FAILED), f"{mutation.name}: pytest ended with code {code}"
        return code == FAILED

    def run(self, tests: list[str], cache: str, *, compiled: bool) -> int:
        """Run tests against the copy; the exit code of pytest, or that of a failure if it hangs."""
        environment = os.environ | {
            "PYTHONPATH": f"{self.folder}{os.pathsep}{TESTS}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": cache,
            "NUMBA_DISABLE_JIT": str(int(not compiled)),
            "ORDREC_HYPOTHESIS": "first failure",
        }
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "-c", str(ROOT / "pyproject.toml"),
            "--rootdir", str(ROOT), "--no-header", "--tb=line",
            *(f"{TESTS}/{test}" for test in tests),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, env=environment, cwd=self.folder, timeout=SECONDS, capture_output=True
            )
        except subprocess.TimeoutExpired:
            return FAILED
        if done.returncode not in (PASSED, FAILED):
            print(done.stdout.decode()[-2000:], done.stderr.decode()[-2000:])
        return done.returncode

    @contextmanager
    def _changed(self, file: Path, mutation: Mutation) -> Iterator[None]:
        source = file.read_text()
        file.write_text(mutated(source, mutation))
        try:
            yield
        finally:
            file.write_text(source)

    @contextmanager
    def _cache(self, kind: str) -> Iterator[str]:
        if kind == "shared":
            yield str(self.folder / "compiled")
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as alone:
            yield alone
