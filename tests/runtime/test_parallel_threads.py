"""Models fitted in several threads at once are those fitted alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ordrec.datasets import synthetic_ratings
from ordrec.ordinal import (
    GPOR,
    NPSVOR,
    SVOREX,
    SVORIM,
    SVORSLA,
    ORBoost,
    OrdinalLogistic,
    RankBoostAE,
)
from ordrec.ordinal.baselines import CSSVC, OPBE, REDSVM, SVC1V1, SVMOP, GPRanks, PRank, SVRanks
from ordrec.ordinal.tuning import tune
from ordrec.recommend import make_model
from ordrec.runtime.parallel.spans import spans_of

N_THREADS = 4

ORDINAL = {
    "SVORIM": SVORIM,
    "SVOREX": SVOREX,
    "SVORSLA": SVORSLA,
    "NPSVOR": NPSVOR,
    "NPSVOR, 2 threads": lambda: NPSVOR(n_jobs=2),
    "GPOR": GPOR,
    "logistic": OrdinalLogistic,
    "ORBoost": lambda: ORBoost(n_estimators=20, random_state=0),
    "RankBoostAE": lambda: RankBoostAE(n_estimators=20, random_state=0),
    "SVC": SVC1V1,
    "CSSVC": CSSVC,
    "SVMOP": SVMOP,
    "REDSVM": REDSVM,
    "OPBE": OPBE,
    "GPRanks": GPRanks,
    "SVRanks": SVRanks,
    "PRank": lambda: PRank(random_state=0),
}
RATING = {
    "bias": {},
    "item-knn": {},
    "factors": {"n_jobs": 2, "n_factors": 4},
    "als": {},
    "per-user-svor": {"n_jobs": 2},
    "per-user-logistic": {},
    "predictor-fast": {"n_jobs": 2},
    "predictor": {"n_jobs": 2, "max_iter": 1},
}


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """The same work with different data in several threads, started together."""
    start = threading.Barrier(N_THREADS)

    def one(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(N_THREADS) as threads:
        return list(threads.map(one, range(N_THREADS)))


@pytest.mark.parametrize("name", ORDINAL)
def test_ordinal_estimators(name: str) -> None:
    def work(number: int) -> np.ndarray:
        rng = np.random.default_rng(number % 2)
        X = rng.normal(size=(60, 4))
        y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=60), [-0.6, 0.6])
        return ORDINAL[name]().fit(X, y).predict(rng.normal(size=(40, 4)))

    alone = [work(number) for number in range(2)]
    for number, found in enumerate(at_once(work)):
        np.testing.assert_array_equal(found, alone[number % 2])


@pytest.mark.parametrize("name", RATING)
def test_rating_models(name: str) -> None:
    def work(number: int) -> np.ndarray:
        ratings = synthetic_ratings(40, 30, n_ratings=600, seed=number % 2)
        users, items = np.repeat(ratings.user_ids, 3), np.resize(ratings.item_ids, 120)
        model = make_model(name, **RATING[name]).fit(ratings)
        return model.scores(users, items) if name == "als" else model.predict(users, items)

    alone = [work(number) for number in range(2)]
    for number, found in enumerate(at_once(work)):
        np.testing.assert_array_equal(found, alone[number % 2])


def test_tuning() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    grid = {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}

    def work(number: int) -> Any:
        return tune(SVORIM(), X, y, grid, cv=3, n_jobs=2).table

    alone = work(0)
    assert all(table.equals(alone) for table in at_once(work))


def test_the_threads_of_blas_are_what_they_were() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    ratings = synthetic_ratings(30, 20, n_ratings=300, seed=0)
    with threadpool_limits(2, "blas"):
        before = threads()
        at_once(lambda number: make_model("factors", n_factors=2 + number).fit(ratings))
        assert threads() == before


def test_spans_are_about_equal_and_cover_everything() -> None:
    assert spans_of(np.array([1.0, 1.0, 1.0, 1.0]), 2) == [(0, 2), (2, 4)]
    assert spans_of(np.array([4.0, 1.0, 1.0, 2.0]), 2) == [(0, 1), (1, 4)]
    assert spans_of(np.array([1.0, 9.0]), 4) == [(0, 2)]
    assert spans_of(np.zeros(3), 2) == [(0, 3)]
    assert spans_of(np.zeros(0), 2) == []
    rng = np.random.default_rng(0)
    for n in (1, 7, 100):
        costs = rng.random(n)
        spans = spans_of(costs, 5)
        assert [a for a, _ in spans] == [0, *(b for _, b in spans[:-1])]
        assert spans[-1][1] == n
        assert max(costs[a:b].sum() for a, b in spans) <= costs.sum() / 5 + costs.max()
