"""Memory that a fit of the rating predictor takes, beside what it promises for ``max_memory``.

    python pipelines/speed/bench_memory.py [--presets full fast large] [--sizes 1500x1000x60000 ...]

A size is a number of users, of items and of invented ratings. Every fit has a process of its own,
which first fits a few ratings, so that compiled code and libraries are in memory already. Measured
is by how much the largest resident memory during the fit exceeds that before it.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.experiments.timing import peak_memory
from ordrec.rating.presets import gigabytes
from ordrec.recommend import RatingPredictor

SIZES = {
    "full": ["1500x1000x60000", "2500x2000x60000", "1500x3500x80000"],
    "fast": ["1500x1000x60000", "600x1500x120000", "1000x4000x60000"],
    "large": ["2000x1500x1000000", "3000x2000x500000", "30000x3000x150000"],
}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--presets", nargs="+", choices=SIZES, default=list(SIZES))
    options.add_argument("--sizes", nargs="+", help="for all presets")
    options.add_argument("--jobs", type=int, help="threads; all cores by default")
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.alone:
        print(json.dumps(measured(chosen.presets[0], chosen.sizes[0], chosen.jobs)))
        return
    print(f"{'preset':8s} {'users':>8s} {'items':>8s} {'ratings':>9s} {'promised':>9s} ", end="")
    print(f"{'measured':>9s} {'ratio':>6s}")
    for preset in chosen.presets:
        for size in chosen.sizes or SIZES[preset]:
            own = [sys.executable, __file__, "--alone", "--presets", preset, "--sizes", size]
            own += [] if chosen.jobs is None else ["--jobs", str(chosen.jobs)]
            done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout)
            users, items, ratings = size.split("x")
            print(f"{preset:8s} {users:>8s} {items:>8s} {ratings:>9s} ", end="")
            print(f"{row['promised']:9.3f} {row['measured']:9.3f} ", end="")
            print(f"{row['measured'] / row['promised']:6.2f}", flush=True)


def measured(preset: Any, size: str, jobs: int | None) -> dict[str, float]:
    """Return the promise and the measured peak of one fit, in gigabytes."""
    warm_up = RatingPredictor(preset=preset, max_iter=1, n_jobs=jobs)
    warm_up.fit(ratings_of(60, 50, 900))
    ratings = ratings_of(*map(int, size.split("x")))
    _ = ratings.user_counts, ratings.item_counts
    gc.collect()
    before = resident()
    model = RatingPredictor(preset=preset, max_iter=1, n_jobs=jobs, max_memory=1e6)
    model.fit(ratings)
    peak = peak_memory()
    return {"promised": gigabytes(preset, ratings), "measured": peak - before}


def ratings_of(n_users: int, n_items: int, n_ratings: int) -> Ratings:
    """Invented ratings."""
    return synthetic_ratings(n_users, n_items, n_ratings=n_ratings, seed=0)


def resident() -> float:
    """Gigabytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e9


if __name__ == "__main__":
    main()
