"""MovieLens 1M, nine tenths to train, ten random splits.

One split is not a result: the differences between publications are about as large as those between
splits. Means over ten draws with standard errors; ``--trials`` runs fewer. ``large`` is
`RatingPredictor` without the process, ``fast`` with that over a user's items, each with
ids only and with side data. No model knows when a test rating was given. Weights are learnt within
each training part.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.datasets import load_movielens
from ordrec.evaluation import HoldOut
from ordrec.experiments.published import published_numbers
from ordrec.experiments.rating_benchmarks import (
    benchmark,
    means_with_errors,
    rmse_in_words,
    warm_up,
)
from ordrec.experiments.runner import Reproduction, among, data_folder, main, published_csv
from ordrec.report.html import TableSection

NAME = "ml-1m"
TITLE = "Rating prediction on MovieLens 1M, 90/10, ten random splits"
SOURCE = "the split of most publications, drawn anew"
TIME = "about an hour on two cores"

TEST_SHARE, TRIALS = 0.1, 10
QUICK_USERS = 600


def run(
    *,
    data,
    trials,
    jobs,
    quick,
    out: Path,
    models=("bias", "fast", "large"),
    inputs=("ids", "side"),
) -> Reproduction:
    """Run ten splits; quick: biases and ``large`` on one split of a tenth of the users."""
    ratings = load_movielens(data_folder(data, "ml-1m"))
    if quick:
        models, inputs, trials = ("bias", "large"), ("ids",), 1
        ratings = ratings.select(ratings.users < QUICK_USERS).compact()
    warm_up(ratings, models, jobs)
    result = benchmark(
        ratings,
        HoldOut(TEST_SHARE, repeats=max(trials or 0, TRIALS)),
        models,
        among(inputs, ("ids", "side"), "kind of input"),
        store=out / "cells",
        max_folds=trials,
        jobs=jobs,
    )
    return Reproduction(
        result,
        rmse_in_words(result.frame),
        sections=[
            TableSection("Means over the splits", means_with_errors(result.frame)),
            published_numbers(published_csv(NAME)),
        ],
        usual=False,
    )


if __name__ == "__main__":
    main(NAME)
