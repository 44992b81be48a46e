"""What all tests share: where the real data sets are, and how hypothesis draws its examples.

Runs are reproducible, except with ORDREC_HYPOTHESIS=explore, which draws other and more examples
each time and prints how to repeat a failure. "first failure" does not look for a smaller one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "ordrec",
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("ordrec"), derandomize=False, max_examples=500, print_blob=True
)
settings.register_profile(
    "first failure", settings.get_profile("ordrec"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("ORDREC_HYPOTHESIS", "ordrec"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets named by ORDREC_DATA; the test is skipped without it."""
    folder = os.environ.get("ORDREC_DATA")
    if not folder:
        pytest.skip("set ORDREC_DATA to the folder of real data sets to run this test")
    return Path(folder)


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of invented samples, one for each file format."""
    return Path(__file__).parent.parent / "data" / "samples"


@pytest.fixture
def ordrec(capsys: Any, monkeypatch: Any) -> Iterator[Callable[..., Any]]:
    """The command line in this process: ``ordrec(*words)`` has a code, and what it said."""
    from support.commands import commands

    yield from commands(capsys, monkeypatch)


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The address of a cluster of two processes, which all tests share that need one."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    # without the memory manager, which drops copies from workers that are idle for a moment
    with dask.config.set({"distributed.scheduler.active-memory-manager.start": False}):
        cluster = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit="1GiB",
            dashboard_address=":0",
        )
    with cluster:
        yield cluster.scheduler_address
