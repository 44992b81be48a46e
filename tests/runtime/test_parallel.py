"""Engines: the same numbers everywhere, errors with names, nothing left behind."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  its BLAS is to be seen by threadpoolctl
from support import parallel_tasks
from support.experiment_models import NoisyThreshold, striped_table
from threadpoolctl import threadpool_info

from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, OrdrecWarning, WorkerLost
from ordrec.evaluation import Experiment, TableProblem
from ordrec.ordinal import SVORIM
from ordrec.ordinal.tuning import tune
from ordrec.recommend import PerUserPredictor
from ordrec.runtime.parallel import (
    Engine,
    default_engine,
    one_blas_thread,
    run,
    run_all,
    worker_count,
)
from ordrec.runtime.parallel.running import Flight, _once_more
from ordrec.runtime.parallel.spans import SMALL, over_spans

OTHERS = ["threads", "processes", "dask"]  # than serial
TABLE = np.random.default_rng(0).normal(size=(400, 400))  # more than a megabyte: mapped


@pytest.fixture
def engine_of(cluster: str) -> Callable[[str], Engine]:
    return lambda name: Engine("dask", cluster) if name == "dask" else Engine(name)


# ---- the same everywhere -------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_results_are_those_of_a_loop(engine_of: Any, name: str, n_jobs: int) -> None:
    expected = [parallel_tasks.row_sum(task, TABLE, 0.5) for task in range(30)]
    options = {"shared": (TABLE, 0.5), "engine": engine_of(name), "n_jobs": n_jobs}
    assert run_all(parallel_tasks.row_sum, range(30), **options) == expected


def test_serial_results_come_in_order() -> None:
    assert list(run(pow, iter([5, 3]), shared=(2,))) == [(0, 25), (1, 9)]


@pytest.mark.parametrize("name", OTHERS)
def test_an_experiment_is_the_same_on_every_engine(engine_of: Any, name: str) -> None:
    def frame(**options: Any) -> Any:
        models = {"a": NoisyThreshold(0.1), "b": NoisyThreshold(0.3)}
        problem = TableProblem(striped_table())
        result = Experiment(models, [problem], seeds=[0, 1]).run(**options)
        return result.frame.drop(columns=["fit_seconds", "predict_seconds"])

    assert frame(n_jobs=2, engine=engine_of(name)).equals(frame())


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("gamma", [[0.1, 1.0], ["scale"]])
def test_tuning_is_the_same_on_every_engine(engine_of: Any, name: str, gamma: list) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=60), [-0.5, 0.5])
    grid = {"C": [0.1, 1.0, 10.0], "gamma": gamma}
    one = tune(SVORIM(), X, y, grid, cv=3)
    two = tune(SVORIM(), X, y, grid, cv=3, n_jobs=2, engine=engine_of(name))
    assert one.table.equals(two.table)
    np.testing.assert_array_equal(one.estimator.dual_coef_, two.estimator.dual_coef_)


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_users_are_the_same_on_every_engine(engine_of: Any, name: str) -> None:
    ratings = synthetic_ratings(40, 30, n_ratings=700, seed=2)
    users, items = np.repeat(ratings.user_ids, 3), np.resize(ratings.item_ids, 120)
    one = PerUserPredictor().fit(ratings)
    two = PerUserPredictor(n_jobs=2, engine=engine_of(name)).fit(ratings)
    assert len(one.models_) > 20
    for user, model in one.models_.items():
        np.testing.assert_array_equal(model.dual_coef_, two.models_[user].dual_coef_)
    np.testing.assert_array_equal(one.predict(users, items), two.predict(users, items))


# ---- workers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["processes", "dask"])
def test_work_is_done_elsewhere_and_arrays_are_mapped(engine_of: Any, name: str) -> None:
    import os

    options = {"engine": engine_of(name), "n_jobs": 2}
    found = run_all(parallel_tasks.where, range(20), shared=(TABLE,), **options)
    assert os.getpid() not in {process for process, _ in found}
    assert {mapped for _, mapped in found} == {name == "processes"}


def test_mapped_arrays_are_what_compiled_code_knows(tmp_path: Path) -> None:
    from ordrec.runtime.parallel.processes import read_shared, write_shared

    fortran, small = np.asfortranarray(TABLE), np.arange(3)
    write_shared(tmp_path, {"a": TABLE, "same": [TABLE], "f": fortran, "small": small})
    read = read_shared(tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 2
    for name, array in [("a", TABLE), ("f", fortran), ("small", small)]:
        assert type(read[name]) is np.ndarray
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED"):
            assert read[name].flags[flag] == array.flags[flag]
        np.testing.assert_array_equal(read[name], array)
    read["a"][0] = 0.0  # is this worker's own affair
    np.testing.assert_array_equal(read_shared(tmp_path)["a"], TABLE)


@pytest.mark.parametrize("name", ["processes", "dask"])
def test_what_is_shared_goes_to_each_worker_once(engine_of: Any, name: str, tmp_path: Path) -> None:
    travelling = parallel_tasks.Travelling(tmp_path / "log")
    options = {"engine": engine_of(name), "n_jobs": 2}
    workers = run_all(parallel_tasks.hold, range(40), shared=(travelling,), **options)
    arrived = (tmp_path / "log").read_text().split()
    assert len(set(workers)) <= 2
    assert {int(process) for process in arrived} >= set(workers)
    assert len(arrived) == len(set(arrived))


@pytest.mark.parametrize("name", ["serial", *OTHERS])
def test_blas_has_one_thread_in_a_task(engine_of: Any, name: str) -> None:
    options = {"engine": engine_of(name), "n_jobs": 2}
    assert set(run_all(parallel_tasks.blas_threads, range(4), **options)) == {1}


@pytest.mark.parametrize("name", OTHERS)
def test_a_task_within_a_task_stays_where_it_is(engine_of: Any, name: str) -> None:
    found = run_all(parallel_tasks.nested, [1, 2], engine=engine_of(name), n_jobs=2)
    assert found == [(True, 4), (True, 6)]
    assert worker_count(3) == 3


@pytest.mark.parametrize("name", OTHERS)
def test_tasks_are_taken_as_they_are_needed(engine_of: Any, name: str) -> None:
    taken = []
    tasks = (taken.append(k) or k for k in range(200))
    for done, _ in enumerate(run(abs, tasks, engine=engine_of(name), n_jobs=2), start=1):
        assert len(taken) <= done + 4
    assert len(taken) == 200


def test_progress_counts_to_the_end() -> None:
    calls: list[tuple[int, int, str]] = []

    def progress(*call: Any) -> None:
        calls.append(call)

    run_all(abs, [-1, -2], engine="threads", n_jobs=1, progress=progress, label=lambda k: f"<{k}>")
    assert calls == [(1, 2, "<-1>"), (2, 2, "<-2>")]
    calls.clear()
    run_all(abs, iter([-1, -2]), progress=progress)
    assert calls == [(1, 1, "-1"), (2, 2, "-2")]


@pytest.mark.parametrize("name", ["serial", *OTHERS])
def test_warnings_are_heard_here(engine_of: Any, name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_all(parallel_tasks.warn, range(3), engine=engine_of(name), n_jobs=2)
    messages = sorted(str(w.message) for w in caught if w.category is RuntimeWarning)
    assert messages == [f"task {k} did not converge: 0.25 left" for k in range(3)]


@pytest.mark.parametrize("name", ["serial", *OTHERS])
def test_warnings_keep_the_parameters_that_they_name(engine_of: Any, name: str) -> None:
    with pytest.warns(OrdrecWarning, match="pass scale=7") as caught:
        run_all(parallel_tasks.warn_of_a_parameter, [7], engine=engine_of(name), n_jobs=2)
    assert caught[0].message.parameters == ("scale",)


# ---- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["serial", *OTHERS])
def test_an_error_names_its_task_and_ends_the_others(
    engine_of: Any, name: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    options = {"engine": engine_of(name), "n_jobs": 2}
    with pytest.raises(KeyError, match="the 3 is not there") as caught:
        run_all(parallel_tasks.fail_at, range(1000), shared=(3, log), **options)
    assert "task 3: 3" in caught.value.__notes__
    assert len(log.read_text().split()) < 50
    assert run_all(parallel_tasks.fail_at, range(3), shared=(3, log), **options) == [0, 1, 2]


@pytest.mark.parametrize("name", ["processes", "dask"])
def test_an_error_that_cannot_be_pickled_is_reported_in_words(engine_of: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match="NotToBePickled: this and that") as caught:
        run_all(parallel_tasks.fail_oddly, [0], engine=engine_of(name), n_jobs=2)
    assert any("in fail_oddly" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("name", OTHERS)
def test_an_iterator_closed_early_ends_the_work(engine_of: Any, name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    results = run(
        parallel_tasks.fail_at, range(1000), shared=(-1, log), engine=engine_of(name), n_jobs=2
    )
    next(results)
    results.close()
    assert len(log.read_text().split()) < 50


def test_engines_that_make_no_sense() -> None:
    for engine in ["fast", "threads:tcp://a", "dask:", 3]:
        with pytest.raises(ArgumentError):
            run(abs, [1], engine=engine)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="n_jobs"):
        run(abs, [1], n_jobs=0)
    assert worker_count(-1000) == 1


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ArgumentError, match=r"pip install 'ordrec\[dask\]'"):
        run_all(abs, [1], engine="dask")


def test_nobody_answers_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("ordrec.runtime.parallel.dask_cluster.CONNECT_SECONDS", 1)
    for address in ["tcp://127.0.0.1:9", "127.0.0.1:9", "no://where", "tcp://:x"]:
        with pytest.raises(WorkerLost, match=f"no Dask scheduler answers at {address}"):
            run_all(abs, [1], engine=f"dask:{address}")


def test_a_client_that_found_nobody_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    made = []

    class Watched(distributed.Client):  # type: ignore[misc, name-defined]
        def __init__(self, *arguments: object, **options: object) -> None:
            made.append(self)
            super().__init__(*arguments, **options)

    monkeypatch.setattr("ordrec.runtime.parallel.dask_cluster.CONNECT_SECONDS", 1)
    monkeypatch.setattr("distributed.Client", Watched)
    for address in ["tcp://127.0.0.1:9", "no://where", "tcp://:x"]:
        with pytest.raises(WorkerLost):
            run_all(abs, [1], engine=f"dask:{address}")
    assert [client.status for client in made] == ["closed"] * 3


def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("ordrec.runtime.parallel.dask_cluster.WORKER_SECONDS", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        address = empty.scheduler_address
        with pytest.raises(WorkerLost, match=f"{address} has no workers"):
            run_all(abs, [1], engine=Engine("dask", address))


def test_a_client_that_is_given_is_left_open(cluster: str) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster, set_as_default=False) as client:
        for _ in range(2):
            assert run_all(abs, [-1, -2], engine=Engine("dask", client)) == [1, 2]
        assert client.status == "running"


# ---- BLAS ------------------------------------------------------------------------------------


def test_the_last_to_leave_restores_the_threads_of_blas() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    from threadpoolctl import threadpool_limits

    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def second() -> None:
        first_in.wait()
        with one_blas_thread():
            second_in.set()
            first_out.wait()
            seen.append(threads())

    seen: list[list[int]] = []
    with threadpool_limits(2, "blas"):
        before = threads()
        other = threading.Thread(target=second)
        other.start()
        with one_blas_thread():
            first_in.set()
            second_in.wait()
        first_out.set()
        other.join()
        assert set(seen[0]) == {1}
        assert threads() == before


# ---- the command line ------------------------------------------------------------------------


def test_options_name_an_engine() -> None:
    from ordrec.cli.options import engine_of as chosen

    assert chosen("auto", None) == Engine()
    assert chosen("auto", "tcp://a:1") == chosen("dask", "tcp://a:1") == Engine("dask", "tcp://a:1")
    with pytest.raises(ArgumentError, match="--scheduler is for --engine dask"):
        chosen("threads", "tcp://a:1")
    with pytest.raises(ArgumentError, match="unknown engine 'spark'"):
        chosen("spark", None)


def test_a_default_engine_is_for_those_who_name_none() -> None:
    with default_engine("threads"):
        assert Engine.of(None) == Engine("threads")
        assert Engine.of("serial") == Engine("serial")
    assert Engine.of(None) == Engine()


def test_a_task_has_as_many_attempts_as_its_engine_allows() -> None:
    lost = CancelledError("gone")
    for attempts in (1, 2, 3):
        flight = Flight(4, "x")
        for _ in range(attempts - 1):
            flight = _once_more(flight, attempts, lost, str)
        assert flight == Flight(4, "x", attempts)
        with pytest.raises(WorkerLost, match="task 4: x: its worker died"):
            _once_more(flight, attempts, lost, str)


def test_threads_are_started_for_work_that_takes_longer_than_starting_them() -> None:
    def where(first: int, stop: int) -> tuple[int, int, str]:
        return first, stop, threading.current_thread().name

    here = threading.current_thread().name
    assert over_spans(where, np.array([SMALL / 2, SMALL / 2]), 2) == [(0, 2, here)]
    many = over_spans(where, np.full(8, SMALL), 2)
    assert [span[:2] for span in many] == [(k, k + 1) for k in range(8)]
    assert here not in {name for *_, name in many}
