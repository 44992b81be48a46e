"""The campaigns over altered files, and the loops behind them, with every index checked.

Without NUMBA_BOUNDSCHECK an index outside an array reads or writes whatever is there. Code
compiled with it must not be kept with other code, as numba does not tell them apart, so each run
has a cache of its own; it takes minutes, most of them to compile.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CAMPAIGNS = {
    "model files": [
        "fuzz/test_fuzz_models.py", "hostile/test_altered_models.py", "storage/test_model_files.py",
    ],
    "tables": ["fuzz/test_fuzz_frames.py", "fuzz/test_fuzz_loaders.py"],
    "rating models": ["rating/test_rating_contract.py", "choice/test_ranking_contract.py"],
    "processes": ["rating/process"],
    "factors": ["rating/factors/test_row_updates.py", "rating/factors/test_drift.py"],
    "kernels": ["kernels", "linalg", "features"],
    "ordinal": [
        "ordinal/svor/test_svor_solver.py", "ordinal/npsvor/test_npsvor_solver.py",
        "ordinal/boosting/test_boosting_learners.py", "ordinal/boosting/test_boosting_losses.py",
        "ordinal/logistic/test_logistic_objective.py", "ordinal/gpor/test_gpor_inference.py",
        "ordinal/test_thresholds_fitted.py", "ordinal/baselines/test_baselines.py",
    ],
}  # fmt: skip


def test_the_campaigns_name_tests_that_exist() -> None:
    for names in CAMPAIGNS.values():
        for name in names:
            assert (TESTS / name).exists(), name


@pytest.mark.boundscheck
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_no_loop_leaves_its_arrays(campaign: str, tmp_path: Path) -> None:
    faulthandler.cancel_dump_traceback_later()  # it is no sign of a fault that this takes long
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *(str(TESTS / name) for name in CAMPAIGNS[campaign]),
        ],
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]


def test_an_index_outside_its_array_is_noticed(tmp_path: Path) -> None:
    """So that the campaigns can fail: the variable reaches our loops."""
    (tmp_path / "loop.py").write_text(
        "import numpy as np\nfrom ordrec.runtime.compiling import compiled\n"
        "@compiled\ndef beyond(x):\n    return x[x.size]\nbeyond(np.ones(3))\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "loop.py")],
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "IndexError" in done.stderr
