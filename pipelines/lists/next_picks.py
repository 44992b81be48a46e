"""What people pick next: lists that know the order of histories, beside models that do not.

"latest fifth": the latest fifth of each user's ratings is held out and lists of ten are measured
by NDCG with gains ``2^rank - 1``. "last": the last rating of each user is held out and lists are
measured by NDCG with gain 1 and by how many of them have it. Lists are made of the whole catalogue
without what the user has rated. Which of the ratings of one second come last is drawn, once per
seed: 21, 22 and 23. "EASE, left out" is plain EASE whose ridge is chosen by leave-one-out; the
mixture is told what the held-out part is, and forgets the order. Everything is chosen within the
training parts.

The sets on few ratings are parts of MovieLens 100K, drawn at random, once each. "any fifth": a
random fifth of each user's ratings is held out, for which no order counts.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.datasets import load_dataset
from ordrec.evaluation import EvaluationResult
from ordrec.experiments.list_benchmarks import (
    FUTURE_METRICS,
    LAST_METRICS,
    ListTask,
    list_models,
    run_task,
    thinned,
)
from ordrec.experiments.runner import Reproduction, among, main

NAME = "next-picks"
TITLE = "What people pick next: lists of ten that know the order of histories"
SOURCE = "own splits; no published numbers"
TIME = "about an hour"

DATA = {
    "MovieLens 100K": "ml-100k",
    "latest-small 2016": "ml-latest-small-2016",
    "MovieTweetings": "movietweetings-100k",
}
SPLITS = {
    "latest fifth": ("user-time:0.2", FUTURE_METRICS),
    "last": ("last:1", LAST_METRICS),
    "any fifth": ("user-holdout:0.2", FUTURE_METRICS),
}
TASKS = {
    "100k-latest": ("MovieLens 100K", "latest fifth", 0),
    "small-latest": ("latest-small 2016", "latest fifth", 0),
    "tweetings-latest": ("MovieTweetings", "latest fifth", 0),
    "100k-last": ("MovieLens 100K", "last", 0),
    "tweetings-last": ("MovieTweetings", "last", 0),
    "100k-30000-latest": ("MovieLens 100K", "latest fifth", 30_000),
    "100k-30000-any": ("MovieLens 100K", "any fifth", 30_000),
    "100k-6000-latest": ("MovieLens 100K", "latest fifth", 6_000),
    "100k-6000-any": ("MovieLens 100K", "any fifth", 6_000),
    "tweetings-any": ("MovieTweetings", "any fifth", 0),
}
QUICK = "100k-6000-latest"


def run(*, data, trials, jobs, quick, out: Path, sets=(), models=()) -> Reproduction:
    """Run the named tasks, or all; trials: draws of each. Quick: a small set, one draw."""
    chosen = (QUICK,) if quick else among(sets, TASKS, "set") if sets else tuple(TASKS)
    results, lines = [], []
    for name in chosen:
        result, said = run_task(
            task(name, data, 1 if quick else trials), list_models(models), out / "cells", jobs
        )
        results.append(result)
        lines += said
    return Reproduction(EvaluationResult.joined(results), lines)


def task(name: str, data: Path | None, trials: int | None) -> ListTask:
    """Return the ratings, thinned if so asked, with the split and the metrics."""
    label, part, n_ratings = TASKS[name]
    split, metrics = SPLITS[part]
    ratings = load_dataset(DATA[label], folder=data, offline=True).renamed(label)
    if n_ratings:
        ratings = thinned(ratings, n_ratings)
    return ListTask(ratings.renamed(f"{ratings.name}, {part}"), split, metrics).drawn(trials)


if __name__ == "__main__":
    main(NAME)
