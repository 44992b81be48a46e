"""The last rating of each user of MovieLens 1M, and the latest fifth, beside published figures.

Published figures are for the last rating, ranked among all items that the user has not rated, and
leave ratings of the same second in the order of the file. "last, ties as in the file" does the
same; "last" and "latest fifth" put such ratings into random orders, three of them. The order of
the file is not known to anybody who recommends, and decides which item is the last for a quarter
of the users.

Users with a rating of unknown time are left out. A copy of the data that lacks times has fewer
users than the published figures are of; the findings say how many there are.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.datasets import load_dataset
from ordrec.evaluation import EvaluationResult
from ordrec.experiments.list_benchmarks import (
    FUTURE_METRICS,
    LAST_METRICS,
    ListTask,
    dated_users,
    list_models,
    run_task,
)
from ordrec.experiments.published import published_numbers
from ordrec.experiments.runner import Reproduction, among, main, published_csv

NAME = "next-ml-1m"
TITLE = "What people pick next on MovieLens 1M"
SOURCE = "Klenitskiy and Vasilev 2023, and benchmarks of sequential recommenders"
TIME = "about an hour"

PARTS = {
    "last": ("last:1", LAST_METRICS),
    "last, ties as in the file": ("last:1,file", LAST_METRICS),
    "latest fifth": ("user-time:0.2", FUTURE_METRICS),
}
N_USERS = 6_040
QUICK_USERS = 400


def run(*, data, trials, jobs, quick, out: Path, parts=(), models=()) -> Reproduction:
    """Run three draws; quick: the last ratings of a few users, one draw."""
    ratings = dated_users(load_dataset("ml-1m", folder=data, offline=True))
    lines = [f"{ratings.n_users} of {N_USERS} users have known times"]
    if quick:
        ratings = ratings.select(ratings.users < QUICK_USERS).compact()
    results = []
    for part in ("last",) if quick else among(parts, PARTS, "part") if parts else PARTS:
        split, metrics = PARTS[part]
        task = ListTask(ratings.renamed(f"MovieLens 1M, {part}"), split, metrics)
        drawn = task.drawn(1 if quick or "file" in split else trials)
        result, said = run_task(drawn, list_models(models), out / "cells", jobs)
        results.append(result)
        lines += said
    return Reproduction(
        EvaluationResult.joined(results), lines, sections=[published_numbers(published_csv(NAME))]
    )


if __name__ == "__main__":
    main(NAME)
