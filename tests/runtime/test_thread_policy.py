"""The rules of `ordrec.runtime.parallel` on how threads share the cores."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from support import parallel_tasks
from threadpoolctl import threadpool_info, threadpool_limits

import ordrec.ordinal as ordinal
from ordrec.datasets import synthetic_ratings
from ordrec.ordinal.base import OrdinalClassifier
from ordrec.recommend import make_model
from ordrec.runtime.parallel import (
    Engine,
    blas_for,
    free_cores,
    loop_threads,
    one_blas_thread,
    run_all,
    worker_count,
)
from ordrec.runtime.parallel.blas import LARGE_MATRIX

ESTIMATORS = [
    kind
    for name in ordinal.__all__
    if inspect.isclass(kind := getattr(ordinal, name)) and issubclass(kind, OrdinalClassifier)
]


def blas_threads() -> set[int]:
    """Numbers of threads of the BLAS libraries that have any; solvers may bring others along."""
    return {
        pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas" and pool.get("threading_layer") != "disabled"
    }


@pytest.fixture(autouse=True)
def _three_cores(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine with three cores, all of which BLAS may use."""
    monkeypatch.setattr("loky.cpu_count", lambda: 3)
    with threadpool_limits(3, "blas"):
        yield


def test_by_default_a_model_has_all_cores_that_blas_may_use() -> None:
    assert worker_count(None) == worker_count(-1) == 3
    with threadpool_limits(1, "blas"):
        assert (worker_count(None), worker_count(-1), worker_count(2)) == (1, 3, 2)
    with threadpool_limits(8, "blas"):
        assert worker_count(None) == 3


def test_negative_numbers_count_from_all_cores() -> None:
    assert [worker_count(n) for n in (-1, -2, -3, -4, -9)] == [3, 2, 1, 1, 1]


def test_a_blas_without_threads_takes_none_from_the_model() -> None:
    pytest.importorskip("scs")  # brings such a library along
    code = (
        "import scipy.linalg, scs\nfrom ordrec.runtime.parallel import worker_count\n"
        "from threadpoolctl import threadpool_info, threadpool_limits\n"
        "import loky\nloky.cpu_count = lambda: 3\n"
        "with threadpool_limits(3, 'blas'):\n    print(worker_count(None))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3"]


def test_holding_blas_takes_no_threads_from_the_model() -> None:
    with one_blas_thread(), one_blas_thread():
        assert worker_count(None) == 3
        assert blas_threads() == {1}
    with threadpool_limits(2, "blas"), one_blas_thread():
        assert worker_count(None) == 2


def test_tasks_come_one_after_the_other_by_default() -> None:
    assert Engine("auto").resolve(None) == ("serial", 1)
    assert Engine("auto").resolve(-1) == ("processes", 3)
    assert Engine("threads").resolve(None) == ("threads", 3)
    assert run_all(lambda task: worker_count(None), [0, 1]) == [3, 3]


def test_a_worker_has_one_core() -> None:
    at_once = threading.Barrier(2)

    def seen(task: int) -> tuple[int, list[bool]]:
        at_once.wait()
        with loop_threads(2) as inner:
            here = [place == threading.get_ident() for place in inner.map(thread_of, range(2))]
        found = free_cores(8), here
        at_once.wait()  # for the other task is still there
        return found

    with loop_threads(2) as threads:
        assert list(threads.map(seen, [1, 2])) == [(1, [True, True])] * 2
    assert run_all(seen, [1, 2], engine="threads", n_jobs=2) == [(1, [True, True])] * 2
    assert free_cores(8) == 8


def thread_of(_: int) -> int:
    return threading.get_ident()


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_the_last_tasks_have_the_cores_of_idle_workers(engine: str) -> None:
    shares = run_all(
        parallel_tasks.last_shares, [(1, None)] * 3 + [(3, None)], engine=engine, n_jobs=3
    )
    assert shares[3] == (3, 3, [1, 1])
    assert run_all(parallel_tasks.last_shares, [(3, 2)], engine=engine, n_jobs=3) == [
        (3, 2, [1, 1])
    ]
    assert worker_count(None) == 3


def test_one_thread_is_the_one_that_asks() -> None:
    def fails(_: int) -> None:
        raise ValueError("as asked")

    with loop_threads(1) as here:
        assert list(here.map(lambda _: threading.get_ident(), [0])) == [threading.get_ident()]
        failed = here.submit(fails, 0)
        with pytest.raises(ValueError, match="as asked"):
            failed.result()
        assert worker_count(None) == 3  # no worker has been made of this thread


def test_blas_has_its_threads_for_large_matrices_only() -> None:
    with blas_for(LARGE_MATRIX - 1):
        assert blas_threads() == {1}
    with blas_for(LARGE_MATRIX):
        assert blas_threads() == {3}


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_blas_has_one_thread_in_every_fit(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    validated = kind._validate_fit  # type: ignore[attr-defined]

    def watched(self: Any, *args: Any, **options: Any) -> Any:
        seen.append(blas_threads())
        return validated(self, *args, **options)

    X = np.linspace(-1.0, 1.0, 12)[:, None]
    monkeypatch.setattr(kind, "_validate_fit", watched)
    kind().fit(X, np.repeat([1, 2, 3], 4))
    assert set.union(*seen) == {1}
    assert blas_threads() == {3}


def test_blas_has_one_thread_while_a_fit_looks_at_what_it_has_learnt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[set[int]] = []
    predict = ordinal.SVORIM.predict_ranks

    def watched(self: Any, X: Any) -> Any:
        seen.append(blas_threads())
        return predict(self, X)

    monkeypatch.setattr(ordinal.SVORIM, "predict_ranks", watched)
    ordinal.SVORIM().fit(np.linspace(-1.0, 1.0, 12)[:, None], np.repeat([1, 2, 3], 4))
    assert set.union(*seen) == {1}


def test_blas_has_one_thread_in_a_large_fit_with_threads_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[set[int]] = []
    solve = ordinal.SVORIM._solve_gram

    def watched(self: Any, *args: Any, **options: Any) -> Any:
        seen.append(blas_threads())
        return solve(self, *args, **options)

    monkeypatch.setattr(ordinal.SVORIM, "_solve_gram", watched)
    X = np.linspace(-1.0, 1.0, LARGE_MATRIX)[:, None]
    ordinal.SVORIM(kernel="linear").fit(X, np.repeat([1, 2, 3], LARGE_MATRIX // 3))
    assert set.union(*seen) == {1}


@pytest.mark.parametrize("name", ["als", "ease", "per-user-logistic"])
def test_predictions_do_not_depend_on_the_number_of_threads(name: str) -> None:
    ratings = synthetic_ratings(40, 30, n_ratings=700, seed=3)
    found = []
    for n_jobs in (None, 1):
        model = make_model(name, n_jobs=n_jobs).fit(ratings)
        score = getattr(model, "predict", None) or model.scores
        found.append(score(ratings.user_ids[:20], ratings.item_ids[:20]))
    np.testing.assert_array_equal(*found)
