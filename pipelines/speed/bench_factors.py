"""Time, memory and accuracy of OrdinalFactors against the number of ratings.

    python pipelines/speed/bench_factors.py [--ratings 1000000 5000000] [--factors 32] [--sweeps 30]
                                      [--side] [--threads 2] [--data FOLDER]

Synthetic ratings on ten ranks, in the proportions of MovieLens 25M (160 ratings per user, 60,000
items at most). One line per size: wall-clock seconds, CPU seconds and peak memory of a fit, up and
down the scale, and an extrapolation to 25 million ratings and twenty sweeps, as time and memory are
proportional to the ratings (a fit of one sweep separates the work done once from that of every
sweep). The number of factors is the one that the model takes for 25 million ratings, unless given.
With --side, users and items have side tables: a number, a category of ten, and labels.

With --data, MovieLens 100K in that folder: the published fold u1 compared with the baselines, and,
within its training part, means over five draws of

* new items and new users, 15 % of each left out with all their ratings: side data against the
  histogram of all ratings;
* the width of the pattern of who rated what, on a tenth of the ratings;
* permuted ratings, which nothing predicts: the log-loss against that of the histogram.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec import Ratings
from ordrec.datasets import load_movielens, synthetic_ratings
from ordrec.evaluation import evaluate
from ordrec.experiments.timing import first_run, peak_memory
from ordrec.rating.factors.rows import SMALLER
from ordrec.recommend import OrdinalFactors, make_model
from ordrec.report.tables import print_summary

WANTED = 25_000_000
DRAWS, NEW_SHARE, TEST_SHARE = 5, 0.15, 0.1
LABELS = ["|".join(sorted(pair)) for pair in zip("abcdefgh", "bcdefgha", strict=True)]


def main() -> None:
    """Print one line per size, and the comparison with the baselines."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--ratings", type=int, nargs="*", default=[1_000_000])
    options.add_argument("--factors", type=int, default=SMALLER[0])
    options.add_argument("--sweeps", type=int, default=OrdinalFactors.max_iter, help="at most")
    options.add_argument("--side", action="store_true", help="with side tables")
    options.add_argument("--threads", type=int, help="all cores by default")
    options.add_argument("--data", type=Path, help="folder with ml-100k")
    chosen = options.parse_args()
    if chosen.sweeps < 2:
        options.error("--sweeps must be at least 2 to extrapolate")
    model = OrdinalFactors(n_factors=chosen.factors, max_iter=chosen.sweeps, n_jobs=chosen.threads)
    first_run(model.fit, synthetic_ratings(50, 40, n_ratings=500))
    for n_ratings in chosen.ratings:
        print(size_line(model, n_ratings, chosen.side), flush=True)
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
        known = ratings.select(~ratings.folds["u1"])
        print(f"means over {DRAWS} draws within the training part of u1: RMSE / log-loss")
        for side in ("item", "user"):
            print_newcomers(known, side)
        print_patterns(known)
        print_noise(known)


def print_newcomers(ratings: Ratings, side: str) -> None:
    """Print how well items or users without ratings are predicted."""
    codes, n_rows = (
        (ratings.items, ratings.n_items) if side == "item" else (ratings.users, ratings.n_users)
    )
    ours, histogram = [], []
    for draw in range(DRAWS):
        new = np.random.default_rng(draw).random(n_rows) < NEW_SHARE
        train, test = ratings.select(~new[codes]), ratings.select(new[codes])
        ours.append(errors(OrdinalFactors(use_time=False).fit(train), test))
        histogram.append(errors(make_model("histogram").fit(train), test))
    print(f"new {side}s: side data {mean(ours)}, histogram {mean(histogram)}", flush=True)


def print_patterns(ratings: Ratings) -> None:
    """Print the effect of the width of the pattern."""
    for pattern in (0, 32, 128):
        found = []
        for draw in range(DRAWS):
            train, test = held_out(ratings, draw)
            model = OrdinalFactors(pattern=pattern, use_time=False, use_side=False)
            found.append(errors(model.fit(train), test))
        print(f"pattern {pattern}: {mean(found)}", flush=True)


def print_noise(ratings: Ratings) -> None:
    """Print the errors on permuted ratings."""
    ours, histogram = [], []
    for draw in range(DRAWS):
        levels = np.random.default_rng(draw).permutation(ratings.levels)
        permuted = Ratings(
            ratings.users, ratings.items, levels,
            scale=ratings.scale, user_ids=ratings.user_ids, item_ids=ratings.item_ids,
        )  # fmt: skip
        train, test = held_out(permuted, draw)
        model = OrdinalFactors(use_time=False, use_side=False).fit(train)
        ours.append(errors(model, test))
        histogram.append(errors(make_model("histogram").fit(train), test))
    print(f"permuted ratings: {mean(ours)}, histogram {mean(histogram)}", flush=True)


def held_out(ratings: Ratings, draw: int) -> tuple[Ratings, Ratings]:
    """Return a training part and a test part."""
    test = np.random.default_rng(draw).random(ratings.n_ratings) < TEST_SHARE
    return ratings.select(~test), ratings.select(test)


def errors(model: Any, test: Ratings) -> tuple[float, float]:
    """Return RMSE and log-loss."""
    p = model.predict_proba(test.user_ids.take(test.users), test.item_ids.take(test.items))
    rmse = np.sqrt(np.mean((p @ test.scale.values - test.values) ** 2))
    return float(rmse), float(-np.log(p[np.arange(len(test)), test.levels]).mean())


def mean(found: list[tuple[float, float]]) -> str:
    """Return the means over the draws in words."""
    return " / ".join(f"{value:.4f}" for value in np.mean(found, axis=0))


def with_side(ratings: Ratings) -> Ratings:
    """Return the ratings with random side tables."""
    rng = np.random.default_rng(0)

    def table(ids: pd.Index) -> pd.DataFrame:
        columns = {
            "number": rng.normal(size=len(ids)),
            "category": rng.choice(list("klmnopqrst"), len(ids)),
            "labels": rng.choice(LABELS, len(ids)),
        }
        return pd.DataFrame(columns, index=ids)

    return ratings.with_side_tables(table(ratings.user_ids), table(ratings.item_ids))


def size_line(model: OrdinalFactors, n_ratings: int, side: bool) -> str:
    """Fit a model and return a line about its time and memory."""
    before = peak_memory()
    ratings = synthetic_ratings(
        n_ratings // 160, min(60_000, n_ratings // 200), n_ratings=n_ratings, n_ranks=10
    )
    if side:
        ratings = with_side(ratings)
    wall, cpu = seconds_of(model, ratings)
    n_sweeps = model.loss_.size
    _, first = seconds_of(replace(model, max_iter=1), ratings)
    after = peak_memory()
    each = (cpu - first) / (n_sweeps - 1)
    expected = WANTED / n_ratings * (first + 19 * each) / 60
    part = ratings.select(np.arange(min(n_ratings, 100_000)))
    started = time.perf_counter()
    model.predict_proba(part.user_ids.take(part.users), part.item_ids.take(part.items))
    seconds = time.perf_counter() - started
    return (
        f"{n_ratings:,} ratings, {ratings.n_users:,} users, {ratings.n_items:,} items, "
        f"{model.n_factors} factors, {n_sweeps} sweeps: fit {wall:.1f} s, {cpu:.1f} CPU seconds, "
        f"peak memory {after:.2f} GB, {len(part) / seconds:,.0f} predictions per second; 25 "
        f"million and 20 sweeps would take {expected:.1f} CPU minutes and "
        f"{before + WANTED / n_ratings * (after - before):.1f} GB"
    )


def seconds_of(model: OrdinalFactors, ratings: Ratings) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of a fit."""
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(ratings)
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
