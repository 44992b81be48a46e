"""Seconds of every estimator and rating model with its default threads and with other numbers.

    python pipelines/speed/bench_threads.py

A line for each model, with the shortest of ``--repeats`` fits and predictions as

    default / n_jobs=1 / n_jobs=-1 / OMP_NUM_THREADS=1

Each column is a process of its own, without any other setting, as a user would start it; the
columns of a model take turns, so that other work on the machine meets all of them. The first fit
of a process, which loads compiled code, is not counted: `bench_cold.py` is about that one. A model
without a parameter n_jobs has two columns. The last column is the default over the better one of
n_jobs=1 and n_jobs=-1 (over OMP_NUM_THREADS=1 for models without n_jobs), at most 1.2 by the
rules of `ordrec.runtime.parallel`. SVC of scikit-learn, on the same rows, is there for comparison.

Estimators are fitted to ``--rows`` rows of an invented table with five ranks, rating models to
the bundled MovieLens ratings, or to ``--ratings`` of them.
"""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

COLUMNS = ("default", "n_jobs=1", "n_jobs=-1", "OMP_NUM_THREADS=1")
LIMIT = 1.2
SLOW = {"GPOR": 500, "GPRanks": 500, "OPBE": 500, "ORBoost": 300, "RankBoostAE": 300}
# rows of those that would take minutes otherwise
PEERS = ("surprise-svd", "surprise-knn", "implicit-bpr", "myfm", "ridge")  # not of this package


def estimators() -> dict[str, Any]:
    """Return the classes of the ordinal estimators, and SVC, by name."""
    from sklearn.svm import SVC

    import ordrec.ordinal as ordinal
    from ordrec.ordinal.base import OrdinalClassifier

    named = {name: getattr(ordinal, name) for name in sorted(ordinal.__all__)}
    own = {
        name: kind
        for name, kind in named.items()
        if inspect.isclass(kind) and issubclass(kind, OrdinalClassifier)
    }
    return {"SVC": SVC} | own


def rating_models() -> dict[str, Callable[..., Any]]:
    """Return the factories of the rating models by name."""
    from importlib import import_module

    from ordrec.recommend.registry import MODELS

    found = {}
    for entry in MODELS:
        if entry.name and entry.name not in PEERS:
            module, _, attribute = entry.home.partition(":")
            found[entry.name] = getattr(import_module(module), attribute)
    return found


def takes_jobs(factory: Callable[..., Any]) -> bool:
    """Return whether a model has a number of threads to choose."""
    return "n_jobs" in inspect.signature(factory).parameters


def work_of(name: str, column: str, chosen: argparse.Namespace) -> Callable[[], None]:
    """Return the fit and predictions of one model as a function."""
    import numpy as np

    options = {"n_jobs": int(column.partition("=")[2])} if column.startswith("n_jobs") else {}
    if name in rating_models():
        from ordrec.datasets import load_dataset

        ratings: Any = load_dataset("ml-latest-small-2016")
        if chosen.ratings:
            few = np.random.default_rng(0).permutation(ratings.n_ratings)[: chosen.ratings]
            ratings = ratings.select(np.sort(few)).compact()
        users = ratings.user_ids.take(ratings.users[:20_000])
        items = ratings.item_ids.take(ratings.items[:20_000])

        def rate() -> None:
            model = rating_models()[name](**options).fit(ratings)
            (getattr(model, "predict", None) or model.scores)(users, items)

        return rate
    rows = min(chosen.rows, SLOW.get(name, chosen.rows))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 8))
    latent = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=rows)
    y = np.digitize(latent, np.quantile(latent, [0.2, 0.4, 0.6, 0.8]))

    def classify() -> None:
        estimators()[name](**options).fit(X, y).predict(X)

    return classify


def serve(name: str, column: str, chosen: argparse.Namespace) -> None:
    """Fit once, then print the seconds of one more fit for every line of the input."""
    warnings.simplefilter("ignore")
    work = work_of(name, column, chosen)
    work()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        work()
        print(time.perf_counter() - start, flush=True)


def shortest(name: str, columns: list[str], chosen: argparse.Namespace) -> dict[str, float]:
    """Return the shortest time of each column, a process each, in turns."""
    options = ["--rows", str(chosen.rows), "--ratings", str(chosen.ratings)]
    workers = {}
    for column in columns:
        limit = {"OMP_NUM_THREADS": "1"} if column == COLUMNS[-1] else {}
        workers[column] = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, column, *options],
            env=os.environ | limit,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        workers[column].stdout.readline()  # type: ignore[union-attr]
    found = dict.fromkeys(columns, float("inf"))
    for _ in range(chosen.repeats):
        for column, worker in workers.items():
            worker.stdin.write("again\n")  # type: ignore[union-attr]
            worker.stdin.flush()  # type: ignore[union-attr]
            took = float(worker.stdout.readline() or "nan")  # type: ignore[union-attr]
            found[column] = min(found[column], took)
    for worker in workers.values():
        worker.communicate()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="", help="names, separated by commas; all by default")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--ratings", type=int, default=0, help="how many; 0 for all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--serve", nargs=2, metavar=("MODEL", "COLUMN"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(*chosen.serve, chosen)
        return
    known = estimators() | rating_models()
    print(f"{'model':<20}" + "".join(f"{column:>19}" for column in COLUMNS) + f"{'ratio':>8}")
    for name in chosen.models.split(",") if chosen.models else known:
        jobs = takes_jobs(known[name])
        columns = list(COLUMNS) if jobs else [COLUMNS[0], COLUMNS[-1]]
        found = shortest(name, columns, chosen)
        others = COLUMNS[1:3] if jobs else COLUMNS[3:]
        ratio = found["default"] / min(found[column] for column in others)
        cells = [f"{found[column]:.3f}" if column in found else "-" for column in COLUMNS]
        mark = "" if ratio <= LIMIT else "  above 1.2"
        print(f"{name:<20}" + "".join(f"{cell:>19}" for cell in cells), end="")
        print(f"{ratio:8.2f}{mark}", flush=True)


if __name__ == "__main__":
    main()
