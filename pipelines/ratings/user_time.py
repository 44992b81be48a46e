"""The latest fifth of each user's ratings, beside a random fifth.

A random split lets a model interpolate: it knows what a user thought the day after. Who is asked
tomorrow is asked as in a split by time within users, which is harder. Both stand here side by side,
and in either a model may know when the test rating was given (``time``) or not (``side``). Random
splits are drawn three times, or ``--trials`` times.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.datasets import load_dataset
from ordrec.evaluation import EvaluationResult, HoldOut, UserTime
from ordrec.experiments.rating_benchmarks import (
    benchmark,
    means_with_errors,
    rmse_in_words,
)
from ordrec.experiments.runner import Reproduction, among, main
from ordrec.report.html import TableSection

NAME = "user-time"
TITLE = "Rating prediction for the latest fifth of each user's ratings, and for a random fifth"
SOURCE = "user-time splits of MovieLens 100K, MovieLens latest-small 2016 and MovieTweetings"
TIME = "about twenty-five minutes on two cores"

SETS = ("ml-100k", "ml-latest-small-2016", "movietweetings-100k")
TEST_SHARE, TRIALS = 0.2, 3
QUICK_USERS = 150


def run(
    *, data, trials, jobs, quick, out: Path, sets=SETS, models=("bias", "factors", "full")
) -> Reproduction:
    """Run both splits of three sets; quick: biases and factors on some bundled ratings."""
    if quick:
        sets, models, trials = ("ml-latest-small-2016",), ("bias", "factors"), 1
    random = HoldOut(TEST_SHARE, repeats=max(trials or 0, TRIALS))
    results = []
    for name in among(sets, SETS):
        ratings = load_dataset(name, folder=data, offline=True)
        if quick:
            ratings = ratings.select(ratings.users < QUICK_USERS).compact()
        for splitter in (random, UserTime(TEST_SHARE)):
            result = benchmark(
                ratings,
                splitter,
                models,
                ("side", "time"),
                store=out / "cells",
                max_folds=trials,
                jobs=jobs,
            )
            results.append(result)
    result = EvaluationResult.joined(results)
    return Reproduction(
        result,
        rmse_in_words(result.frame),
        sections=[TableSection("By split", means_with_errors(result.frame))],
        usual=False,
    )


if __name__ == "__main__":
    main(NAME)
