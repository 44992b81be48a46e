"""The last item of each user of Amazon Beauty, beside published sequential recommenders.

Picks without ratings, in the order of time; the last one of each of 22,363 users is held out and
ranked among all items that the user has not picked before. Everything else is training: published
models set one more item of each user aside to choose parameters by.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.experiments.list_benchmarks import (
    LAST_METRICS,
    ListTask,
    list_models,
    read_sequences,
    run_task,
)
from ordrec.experiments.published import published_numbers
from ordrec.experiments.runner import Reproduction, data_folder, main, published_csv

NAME = "amazon-beauty"
TITLE = "The next item on Amazon Beauty"
SOURCE = "Klenitskiy and Vasilev 2023"
TIME = "about an hour"

QUICK_USERS = 2_000


def run(*, data, trials, jobs, quick, out: Path, models=()) -> Reproduction:
    """Run the published split; quick: a part of the users."""
    folder = data_folder(data, "amazon-beauty")
    ratings = read_sequences(
        folder / "train.txt.gz", folder / "test.txt.gz", "Amazon Beauty", dated=True
    )
    if quick:
        ratings = ratings.select(ratings.users < QUICK_USERS).compact().core(3)
    task = ListTask(ratings.renamed("Amazon Beauty"), "last:1", LAST_METRICS, seeds=(21,))
    result, lines = run_task(task, list_models(models), out / "cells", jobs)
    lines.insert(0, f"{ratings.n_users} users, {ratings.n_items} items, {ratings.n_ratings} picks")
    return Reproduction(result, lines, sections=[published_numbers(published_csv(NAME))])


if __name__ == "__main__":
    main(NAME)
