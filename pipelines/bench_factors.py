"""Time, memory and accuracy of OrdinalFactors against the number of ratings.

    python pipelines/bench_factors.py [--ratings 1000000 5000000] [--rank 32] [--sweeps 30]
                                      [--threads 2] [--data FOLDER]

Synthetic ratings on ten ranks, in the proportions of MovieLens 25M (160 ratings per user, 60,000
items at most). One line per size: wall-clock seconds, CPU seconds and peak memory of a fit, up and
down the scale, and an extrapolation to 25 million ratings and twenty sweeps, as time and memory are
proportional to the ratings (a fit of one sweep separates the work done once from that of every
sweep). The rank is the one that the model takes for 25 million ratings, unless given. With --data,
the published fold u1 of MovieLens 100K in that folder, compared with the baselines.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from first_run import first_run

from ordrec import Ratings
from ordrec.datasets import load_movielens, synthetic_ratings
from ordrec.evaluation import evaluate
from ordrec.recommend import OrdinalFactors
from ordrec.recommend.factors.model import RANK
from ordrec.report.tables import print_summary

WANTED = 25_000_000


def main() -> None:
    """Print one line per size, and the comparison with the baselines."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--ratings", type=int, nargs="*", default=[1_000_000])
    options.add_argument("--rank", type=int, default=RANK)
    options.add_argument("--sweeps", type=int, default=OrdinalFactors.n_iter, help="at most")
    options.add_argument("--threads", type=int, help="all cores by default")
    options.add_argument("--data", type=Path, help="folder with ml-100k")
    chosen = options.parse_args()
    if chosen.sweeps < 2:
        options.error("--sweeps must be at least 2 to extrapolate")
    model = OrdinalFactors(rank=chosen.rank, n_iter=chosen.sweeps, n_jobs=chosen.threads)
    first_run(model.fit, synthetic_ratings(50, 40, n_ratings=500))
    for n_ratings in chosen.ratings:
        print(size_line(model, n_ratings), flush=True)
    if chosen.data:
        from rich.console import Console

        ratings = load_movielens(chosen.data / "ml-100k")
        models = {
            "bias": "bias",
            "item-knn": "item-knn",
            "histogram": "histogram",
            "factors": model,
        }
        print_summary(Console(), evaluate(ratings, models, "fold:u1"), "micro")


def size_line(model: OrdinalFactors, n_ratings: int) -> str:
    """Fit a model and return a line about its time and memory."""
    before = peak_memory()
    ratings = synthetic_ratings(
        n_ratings // 160, min(60_000, n_ratings // 200), n_ratings=n_ratings, n_ranks=10
    )
    wall, cpu = seconds_of(model, ratings)
    n_sweeps = model.loss_.size
    _, first = seconds_of(replace(model, n_iter=1), ratings)
    after = peak_memory()
    each = (cpu - first) / (n_sweeps - 1)
    expected = WANTED / n_ratings * (first + 19 * each) / 60
    part = ratings.select(np.arange(min(n_ratings, 100_000)))
    started = time.perf_counter()
    model.predict_proba(part.user_ids.take(part.users), part.item_ids.take(part.items))
    seconds = time.perf_counter() - started
    return (
        f"{n_ratings:,} ratings, {ratings.n_users:,} users, {ratings.n_items:,} items, rank "
        f"{model.rank}, {n_sweeps} sweeps: fit {wall:.1f} s, {cpu:.1f} CPU seconds, peak "
        f"memory {after:.2f} GB, {len(part) / seconds:,.0f} predictions per second; 25 million and "
        f"20 sweeps would take {expected:.1f} CPU minutes and "
        f"{before + WANTED / n_ratings * (after - before):.1f} GB"
    )


def seconds_of(model: OrdinalFactors, ratings: Ratings) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of a fit."""
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(ratings)
    return time.perf_counter() - wall, time.process_time() - cpu


def peak_memory() -> float:
    """Return the peak memory of this process, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
