"""Workers that are killed, full disks, and folders that are not writable."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from support import parallel_tasks
from support.experiment_models import NoisyThreshold, striped_table

from ordrec import Ratings, save
from ordrec.datasets import synthetic_ratings
from ordrec.errors import OrdrecError, StorageError, WorkerLost
from ordrec.evaluation import Experiment, TableProblem
from ordrec.recommend import (
    OrderedChoice,
    OrdinalFactors,
    Recommender,
    fit_scan,
    make_model,
    recommend_scan,
)
from ordrec.report.figures import save_figure
from ordrec.runtime.parallel import Engine, dask_cluster, run_all
from ordrec.runtime.parallel.dask_cluster import SentOutcome
from ordrec.storage.parts import PartStore

TABLE = np.random.default_rng(0).normal(size=(400, 400))


@pytest.fixture
def cluster_of(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a cluster of n processes, which are restarted when they are killed."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=request.param,
        threads_per_worker=1,
        processes=True,
        memory_limit="1GiB",
        dashboard_address=":0",
    ) as cluster:
        yield cluster.scheduler_address


def experiment(store: Path | None = None, sleep: float = 0.0) -> Experiment:
    models = {"a": NoisyThreshold(0.1, sleep=sleep), "b": NoisyThreshold(0.3, sleep=sleep)}
    return Experiment(models, [TableProblem(striped_table())], seeds=[0, 1], store=store)


def without_seconds(result: Any) -> Any:
    return result.frame.drop(columns=["fit_seconds", "predict_seconds"])


# ---- workers -----------------------------------------------------------------------------------


def test_processes_that_die_are_replaced_and_the_results_complete(tmp_path: Path) -> None:
    expected = [parallel_tasks.row_sum(task, TABLE, 0.5) for task in range(40)]
    shared = (TABLE, 0.5, tmp_path, (3, 25))
    found = run_all(parallel_tasks.die_once, range(40), shared=shared, engine="processes", n_jobs=2)
    assert found == expected
    assert sorted(p.name for p in tmp_path.iterdir()) == ["died-25", "died-3"]


@pytest.mark.parametrize("cluster_of", [1, 2], indirect=True)
def test_dask_workers_that_die_are_replaced_and_the_results_complete(
    cluster_of: str, tmp_path: Path
) -> None:
    """With one worker, shared data is lost with it and has to be sent again."""
    expected = [parallel_tasks.row_sum(task, TABLE, 0.5) for task in range(40)]
    shared = (TABLE, 0.5, tmp_path, (13,))
    engine = Engine("dask", cluster_of)
    assert run_all(parallel_tasks.die_once, range(40), shared=shared, engine=engine) == expected
    assert [p.name for p in tmp_path.iterdir()] == ["died-13"]


@pytest.mark.parametrize("cluster_of", [2], indirect=True)
def test_a_worker_killed_during_a_fit_from_disk_changes_no_list(
    cluster_of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All loops of the choice model and all visits of the factors run on the cluster."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("ordrec.models.workplace.LITTLE_WORK", -1)
    synthetic_ratings(60, 40, n_ratings=1200, dated=True, seed=3).to_partitions(
        tmp_path / "ratings", rows_per_part=400
    )
    scan = Ratings.scan(tmp_path / "ratings")
    killed: list[str] = []

    def kill_one(done: int, total: int, text: str) -> None:
        if text == "histories written":
            with distributed.Client(cluster_of, set_as_default=False) as client:
                pids = client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
            killed.append(text)

    def lists(name: str, **options: Any) -> bytes:
        rating = OrdinalFactors(n_factors=2, max_iter=2, symmetric=False)
        ready = Recommender(choice=OrderedChoice(n_factors=3), rating=rating)
        model = fit_scan(ready, scan, rows=300, **options)
        options.pop("progress", None)
        return recommend_scan(model, scan, tmp_path / f"{name}.csv", 5, **options).read_bytes()

    there = lists("there", engine=Engine("dask", cluster_of), progress=kill_one)
    assert killed == ["histories written"]
    assert there == lists("here")


def test_a_result_that_dask_calls_lost_on_its_way_is_computed_again() -> None:
    """Dask's executor takes what has arrived for an error then, and unpacks it."""
    executor = pytest.importorskip("distributed.cfexecutor")
    loop = pytest.importorskip("tornado.ioloop").IOLoop(make_current=False)

    class Arrived:
        status = "lost"

        async def _result(self, raiseit: bool) -> SentOutcome:
            return SentOutcome(3)

    seen: Future[SentOutcome] = Future()
    loop.run_sync(lambda: executor._cascade_future(Arrived(), seen))
    loop.close()
    with pytest.raises(CancelledError, match="on the way"):  # which is in `DaskPool.lost`
        seen.result(timeout=0)
    assert SentOutcome(3).unpack() == 3


class Cluster:
    """What `DaskPool` uses of a client whose workers die while they are sent something."""

    status = "running"

    def __init__(self, first: str):
        self.loop = SimpleNamespace(asyncio_loop=asyncio.new_event_loop())
        self.workers, self.failures = {"a": 1, "b": 1}, [first]
        self.thread = threading.Thread(target=self.loop.asyncio_loop.run_forever)
        self.thread.start()

    async def scatter(self, content: Any, **options: Any) -> list[Any]:
        if self.failures:
            self.workers = {"a": 1}
            if self.failures.pop() == "hangs":
                await asyncio.Event().wait()
            raise KeyError("tuple-1f2e3d")
        return [SimpleNamespace(status="finished", content=content)]

    def nthreads(self) -> dict[str, int]:
        return self.workers

    def wait_for_workers(self, n: int, timeout: float) -> None:
        """There are some."""

    def get_executor(self, pure: bool) -> str:
        return "executor"

    def close(self) -> None:
        self.loop.asyncio_loop.call_soon_threadsafe(self.loop.asyncio_loop.stop)
        self.thread.join()
        self.loop.asyncio_loop.close()


@pytest.mark.parametrize("first", ["hangs", "raises"])
def test_shared_objects_are_sent_again_if_a_dask_worker_dies_meanwhile(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "SEND_SECONDS", 0.05)
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.02)
    pool = object.__new__(dask_cluster.DaskPool)
    pool._content, pool._client = (abs, (1,)), Cluster(first)
    try:
        pool.renew()
    finally:
        pool._client.close()
    assert pool._held.content == [(abs, (1,))]
    assert pool._executor == "executor"


def test_a_task_that_always_kills_its_process_is_given_up() -> None:
    with pytest.raises(WorkerLost, match=r"task \d+: \d+: its worker died again and again"):
        run_all(parallel_tasks.always_die, range(4), shared=(0,), engine="processes", n_jobs=1)
    assert run_all(abs, [-1], engine="processes", n_jobs=1) == [1]


@pytest.mark.slow
@pytest.mark.parametrize("cluster_of", [2], indirect=True)
def test_a_task_that_always_kills_its_dask_worker_is_given_up(cluster_of: str) -> None:
    with pytest.raises(WorkerLost, match="its worker died again and again"):
        run_all(parallel_tasks.always_die, range(4), shared=(0,), engine=Engine("dask", cluster_of))


def test_a_worker_killed_from_outside_costs_an_experiment_nothing(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        """Kill a busy worker as soon as a few cells are finished."""
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("*.json"))) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        for child in psutil.Process().children(recursive=True):
            if "loky" in " ".join(child.cmdline()) and "tracker" not in " ".join(child.cmdline()):
                child.send_signal(signal.SIGKILL)
                killed.append(child.pid)
                return

    killer = threading.Thread(target=kill_one)
    killer.start()
    result = experiment(tmp_path, sleep=0.1).run(n_jobs=2)
    killer.join()
    assert len(killed) == 1
    assert result.complete
    assert len(PartStore(tmp_path)) == 24
    # The parameter sleep changes the key of the cell, not its result.
    assert without_seconds(result).equals(without_seconds(experiment().run()))


@pytest.mark.slow
def test_a_scheduler_that_dies_is_reported(tmp_path: Path) -> None:
    """The error comes in bounded time, after the finished results were handed over."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    base = [os.environ.get("PYTHON", "python"), "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*base, "distributed.cli.dask_scheduler", "--scheduler-file", str(file), "--port", "0",
         "--no-dashboard"], **quiet)  # type: ignore[call-overload]  # fmt: skip
    worker = subprocess.Popen(
        [*base, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-dashboard",
         "--nthreads", "1"], **quiet)  # type: ignore[call-overload]  # fmt: skip
    try:
        while not file.exists():
            time.sleep(0.1)
        time.sleep(0.5)
        import json

        address = json.loads(file.read_text())["address"]
        threading.Timer(8.0, scheduler.kill).start()
        with pytest.raises(OrdrecError, match=re.escape(address)):
            run_all(time.sleep, [0.2] * 200, engine=f"dask:{address}")
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


# ---- disks ---------------------------------------------------------------------------------------


def mounted(folder: Path, options: str) -> Path:
    """A small file system in memory on a folder; needs permission to mount."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no command mount here")
    if done.returncode != 0:
        pytest.skip(f"mounting is not permitted here ({done.stderr.strip()})")
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 128 kilobytes."""
    yield mounted(tmp_path, "size=128k")
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody may write to, not even root."""
    yield mounted(tmp_path, "size=128k,ro")
    subprocess.run(["umount", str(tmp_path)], check=True)


@contextmanager
def short_files() -> Iterator[None]:
    """No file may be longer than a kilobyte: simulates a full disk without mounting one.

    Not a fixture: pytest writes to files of its own before those are undone.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def fill(folder: Path, leave: int) -> Path:
    """Fill a disk except for some bytes."""
    ballast = folder / "ballast"
    room = os.statvfs(folder)
    ballast.write_bytes(b"x" * (room.f_bavail * room.f_frsize - leave))
    return ballast


def test_an_experiment_on_a_full_disk_keeps_its_cells_and_goes_on(small_disk: Path) -> None:
    store = small_disk / "cells"
    store.mkdir()
    ballast = fill(small_disk, leave=5 * os.statvfs(small_disk).f_frsize)
    with pytest.raises(
        StorageError, match=r"make room .* finished cells are kept in .*cells"
    ) as caught:
        experiment(store).run()
    kept = len(PartStore(store))
    assert 0 < kept < 24
    assert f"{kept} finished cells" in str(caught.value)
    assert not [name for name in os.listdir(store) if name.startswith(".")]
    ballast.unlink()
    continued = experiment(store).run()
    assert continued.manifest["cells_from_store"] == kept
    assert without_seconds(continued).equals(without_seconds(experiment().run()))


def savers() -> dict[str, Any]:
    """Everything that is saved, as functions of a folder; each writes more than a kilobyte."""
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot([1, 2, 3])
    result = experiment().run()
    model = make_model("bias").fit(synthetic_ratings(100, 100, n_ratings=2000, seed=0))
    return {
        "experiment": result.write,
        "model": lambda folder: save(model, folder / "model.ordrec"),
        "figure": lambda folder: save_figure(figure, folder / "figure", ["svg"]),
        "cells": lambda folder: experiment(folder / "cells").run(),
    }


@pytest.mark.parametrize("what", ["experiment", "model", "figure"])
def test_a_full_disk_leaves_the_old_file(what: str, small_disk: Path) -> None:
    save = savers()[what]
    save(small_disk)
    before = {path: path.read_bytes() for path in small_disk.rglob("*") if path.is_file()}
    ballast = fill(small_disk, leave=0)
    with pytest.raises(StorageError, match=r"make room .*The file that was there is unchanged"):
        save(small_disk)
    ballast.unlink()
    assert {p: p.read_bytes() for p in small_disk.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("what", ["experiment", "model", "figure"])
def test_files_that_may_not_grow_are_not_there_at_all(what: str, tmp_path: Path) -> None:
    save = savers()[what]
    with (
        short_files(),
        pytest.raises(StorageError, match=r"raise the limit .*Nothing was written"),
    ):
        save(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["experiment", "model", "figure", "cells"])
def test_a_folder_that_may_not_be_written_to_is_named(what: str, read_only: Path) -> None:
    with pytest.raises(StorageError, match=f"{read_only}.*choose a folder that can be written to"):
        savers()[what](read_only)


@pytest.mark.parametrize("what", ["experiment", "model", "figure", "cells"])
def test_a_path_below_a_file_is_no_folder(what: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OrdrecError, match="file"):
        savers()[what](tmp_path / "file")
