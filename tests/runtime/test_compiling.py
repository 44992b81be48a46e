"""Where compiled code is kept."""

from __future__ import annotations

import gc
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config, njit
from numba.core import event

from ordrec.runtime.compiling import _private_folder

PACKAGE = Path(__file__).parents[2] / "ordrec"
FIT = """
import numpy as np
from ordrec.kernels.distances import squared_distances
from ordrec.rating.baselines.item_knn import ItemKNN
print(squared_distances(np.ones((2, 1)), np.zeros((1, 1))).ravel().tolist())
"""


DOUBLE = """
from ordrec.runtime.compiling import compiled

@compiled
def double(x):
    return 2 * x

print(double(3), bool(double.stats.cache_hits))
"""


@pytest.fixture
def read_only_install(tmp_path: Path) -> dict[str, str]:
    """An environment with a copy of the package and no place to write to but ``temporary``.

    Files stand where folders would have to be made: that stops the superuser as well.
    """
    shutil.copytree(PACKAGE, tmp_path / "ordrec", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [tmp_path / "ordrec", *(tmp_path / "ordrec").rglob("*/")]:
        if folder.is_dir():
            (folder / "__pycache__").touch()
    (tmp_path / "temporary").mkdir()
    (tmp_path / "home").touch()
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "temporary"),
    }


def test_compiled_code_falls_back_to_a_temporary_folder(read_only_install: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIT],
        env=read_only_install,
        cwd=read_only_install["PYTHONPATH"],  # which Python searches first
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[1.0, 1.0]"
    temporary = Path(read_only_install["TMPDIR"])
    assert run.stderr.count("compiled code is kept in") == 1
    assert "NUMBA_CACHE_DIR" in run.stderr
    assert list(temporary.rglob("*.nbi"))


def test_the_folder_is_private_and_stays_the_same(tmp_path: Path) -> None:
    folder = _private_folder(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert _private_folder(tmp_path) == folder
    folder.chmod(0o777)  # someone else could have put code there
    assert _private_folder(tmp_path) != folder


# ---- files of compiled code ----------------------------------------------------------------


FACTORS = """
import hashlib
from ordrec.datasets import synthetic_ratings
from ordrec.recommend import OrdinalFactors

ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=3)
model = OrdinalFactors(n_factors=3, pattern=3, max_iter=8).fit(ratings)
p = model.predict_proba(ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items))
print(hashlib.sha256(p.tobytes()).hexdigest())
"""


def started(folder: Path, program: str = DOUBLE) -> subprocess.Popen[str]:
    (folder / "program.py").write_text(program)
    os.utime(folder / "program.py", (1e9, 1e9))  # numba compiles again where the source is newer
    return subprocess.Popen(
        [sys.executable, str(folder / "program.py")],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    return out.strip()


def test_two_processes_fill_one_cache(tmp_path: Path) -> None:
    both = [started(tmp_path) for _ in range(2)]
    assert [answer(process)[:1] for process in both] == ["6", "6"]
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb?")}
    assert {file.suffix for file in files} == {".nbi", ".nbc"}
    assert answer(started(tmp_path)) == "6 True"
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb?")} == files


def test_half_a_file_of_compiled_code_is_written_anew(tmp_path: Path) -> None:
    assert answer(started(tmp_path)) == "6 False"
    for ending, part in ((".nbi", 0.0), (".nbi", 0.9), (".nbc", 0.0), (".nbc", 0.5)):
        [file] = tmp_path.rglob(f"*{ending}")
        file.write_bytes(file.read_bytes()[: int(part * file.stat().st_size)])
        file.with_name(f"{file.name}.tmp.0123").touch()  # what a killed writer leaves
        assert answer(started(tmp_path)) == "6 False"
    assert answer(started(tmp_path)) == "6 True"


def test_code_from_the_cache_gives_the_digits_of_code_just_compiled(tmp_path: Path) -> None:
    assert answer(started(tmp_path, FACTORS)) == answer(started(tmp_path, FACTORS))


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")  # type: ignore[attr-defined]
@pytest.mark.parametrize("collects", [True, False])
def test_garbage_waits_until_a_function_and_what_it_calls_are_compiled(collects: bool) -> None:
    seen = []

    class Look(event.Listener):
        def on_start(self, event: event.Event) -> None:
            seen.append(gc.isenabled())

        def on_end(self, event: event.Event) -> None:
            pass

    called = njit(lambda x: x + 1)
    calling = njit(lambda x: called(x) + called(1.0 * x))
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with event.install_listener("numba:compile", Look()):
            assert calling(1) == 4
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
    assert len(seen) == 3
    assert not any(seen[1:])
