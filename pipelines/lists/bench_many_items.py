"""EASE and the choice mixture with many items: seconds, memory, and what few nearest items cost.

    python pipelines/lists/bench_many_items.py [--items 4000 10000 25000 60000] [--jobs 1]
        [--models ease mixture] [--loss 25 50 100 200] [--seed 11] [--data FOLDER] [--quick]

Each size is measured in a process of its own, for its peak memory. The ratings are invented: a
hundred by each of twice as many users as items, but at most 20,000 users; the popularity of the
items is a power law, as uneven as in MovieLens. ``weights`` is how many weights EASE has: the
square of the items, or, where these do not fit into ``max_memory``, those on the nearest items.
``before`` and ``peak`` are the largest memory before and after the fit.

``--loss``: on ml-1m (user-holdout:0.2), graded NDCG@10 of EASE with the powers of the mixture when
each item is regressed on the so many nearest items, compared with regressions on all of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from topn_measures import Truth, ten_best

from ordrec.choice.ease import EASE
from ordrec.choice.mixture import ChoiceMixture
from ordrec.data import Ratings
from ordrec.datasets import load_dataset, synthetic_ratings
from ordrec.evaluation.significance.bootstrap import bootstrap_interval
from ordrec.evaluation.splits.ratings import UserHoldOut
from ordrec.experiments.timing import first_run, peak_memory

RATINGS_PER_USER = 100
POPULARITY = 0.8  # exponent: as on ml-1m, a tenth of the items has 44 % of the ratings


def main() -> None:
    """Measure the sizes, then the loss."""
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--items", nargs="*", type=int, default=[4000, 10_000, 25_000, 60_000])
    options.add_argument("--models", nargs="+", default=["ease", "mixture"])
    options.add_argument("--loss", nargs="*", type=int, default=[25, 50, 100, 200])
    options.add_argument("--max-memory", type=float, default=EASE().max_memory)
    options.add_argument("--jobs", type=int, help="threads; all cores by default")
    options.add_argument("--seed", type=int, default=11)
    options.add_argument("--quick", action="store_true", help="few items, invented ratings")
    options.add_argument("--one", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        measure(chosen.one, chosen.items[0], chosen)
        return
    if chosen.quick:
        chosen.items, chosen.loss, chosen.max_memory = [300], [10], 0.001
    if chosen.items:
        print(
            f"{'items':>7s} {'model':8s} {'ratings':>9s} {'weights':>10s} {'fit':>8s} {'CPU':>8s} "
            f"{'list ms':>8s} {'before':>7s} {'peak GB':>8s}"
        )
    for n_items in chosen.items:
        for model in chosen.models:
            alone(model, n_items, chosen)
    if chosen.loss:
        loss(chosen)


def alone(model: str, n_items: int, chosen: argparse.Namespace) -> None:
    """Measure one size in a new process."""
    command = [
        sys.executable, str(Path(__file__).resolve()), "--one", model, "--items", str(n_items),
        "--max-memory", str(chosen.max_memory),
    ]  # fmt: skip
    command += [] if chosen.jobs is None else ["--jobs", str(chosen.jobs)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    last = (found.stderr.strip().splitlines() or ["no message"])[-1]
    said = found.stdout.rstrip() if found.returncode == 0 else f"failed: {last}"
    print(said, flush=True)


def measure(name: str, n_items: int, chosen: argparse.Namespace) -> None:
    """Print the row of one model and size."""
    model = made(name, chosen.max_memory, chosen.jobs)
    first_run(made(name, chosen.max_memory, chosen.jobs).fit, invented(200))
    ratings = invented(n_items)
    before = peak_memory()
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(ratings)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    started = time.perf_counter()
    n_listed = min(200, ratings.n_users)
    ten_best(model, np.arange(n_listed))
    spent = 1e3 * (time.perf_counter() - started) / n_listed
    weights = getattr(model, "ease_", model).weights_
    n_weights = weights.nnz if sparse.issparse(weights) else weights.size
    print(
        f"{n_items:7d} {name:8s} {ratings.n_ratings:9d} {n_weights:10d} {wall:8.1f} {cpu:8.1f} "
        f"{spent:8.2f} {before:7.2f} {peak_memory():8.2f}"
    )


def made(name: str, max_memory: float, n_jobs: int | None) -> Any:
    """Return a model that is not fitted."""
    kind: Any = {"ease": EASE, "mixture": ChoiceMixture}[name]
    return kind(max_memory=max_memory, n_jobs=n_jobs)


def invented(n_items: int) -> Ratings:
    """Return ratings of so many items by twice as many users as items, up to 20,000 users."""
    n_users = min(2 * n_items, 20_000)
    return synthetic_ratings(
        n_users,
        n_items,
        n_ratings=min(RATINGS_PER_USER, n_items // 4) * n_users,
        popularity=POPULARITY,
        seed=0,
    )


def loss(chosen: argparse.Namespace) -> None:
    """Print what it costs to regress each item on the nearest items only."""
    ratings = (
        synthetic_ratings(150, 120, n_ratings=4000, seed=1)
        if chosen.quick
        else load_dataset("ml-1m", folder=chosen.data, offline=True).without_timestamps()
    )
    split = next(iter(UserHoldOut(0.2, random_state=chosen.seed).split(ratings)))
    truth = Truth.of(split.test)
    n_enough = int((split.train.item_counts >= EASE().min_ratings).sum())
    print(f"\n{ratings.name}, user-holdout:0.2, seed {chosen.seed}: {n_enough} items in EASE")
    too_little = 15.0 * n_enough**2 / 1e9  # gigabytes, for a solution with all items
    full = np.empty(0)
    for n_nearest in [None, *sorted(chosen.loss, reverse=True)]:
        kind: dict[str, Any] = {"user_power": 0.5, "item_power": 0.25, "n_jobs": chosen.jobs}
        if n_nearest is not None:
            kind |= {"n_nearest": n_nearest, "max_memory": too_little}
        started = time.process_time()
        model = EASE(**kind).fit(split.train)
        spent = time.process_time() - started
        values = truth.measured(ten_best(model, truth.users)[0])["graded"]
        full = full if full.size else values
        low, mean, high = bootstrap_interval(values - full)
        said = "all other items" if n_nearest is None else f"{n_nearest} nearest items"
        print(
            f"on {said}, ridge {model.regularization_:g}, {spent:.0f} CPU s: graded NDCG@10 "
            f"{values.mean():.4f}, minus all {mean:+.4f} [{low:+.4f} {high:+.4f}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
