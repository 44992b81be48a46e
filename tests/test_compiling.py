"""Where compiled code is kept."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ordrec.compiling import _private_folder

PACKAGE = Path(__file__).parent.parent / "ordrec"
FIT = """
import numpy as np
from ordrec.kernels._squares import pairwise_squares
from ordrec.recommend.baselines.item_knn import ItemKNN
print(pairwise_squares(np.ones((2, 1)), np.zeros((1, 1))).ravel().tolist())
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
