"""MovieLens 100K on its five official folds u1 to u5.

Most publications report u1 alone, which is harder than the other four: both u1 and the mean of all
folds are shown. Models know ids only, side data (genres, years, demographics) too, or also when
ratings were given, that of the test rating included (see
``ordrec/experiments/rating_benchmarks.py``). Weights and settings are learnt within each training
part. ``--models`` takes other names, such as those of peers: ``--models full,myfm``.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.datasets import load_movielens
from ordrec.evaluation import PublishedFolds
from ordrec.experiments.published import published_numbers
from ordrec.experiments.rating_benchmarks import (
    INPUTS,
    benchmark,
    means_with_errors,
    rmse_in_words,
    warm_up,
)
from ordrec.experiments.runner import Reproduction, among, data_folder, main, published_csv
from ordrec.report.html import TableSection

NAME = "ml-100k-folds"
TITLE = "Rating prediction on MovieLens 100K, official folds, ids, side data and dates"
SOURCE = "GroupLens, MovieLens 100K, u1 to u5"
TIME = "about a quarter of an hour on two cores"

FOLDS = ("u1", "u2", "u3", "u4", "u5")


def run(
    *,
    data,
    trials,
    jobs,
    quick,
    out: Path,
    models=("bias", "factors", "fast", "full"),
    inputs=INPUTS,
) -> Reproduction:
    """Run five folds; quick: biases and factors on u1."""
    ratings = load_movielens(data_folder(data, "ml-100k"))
    chosen = ("bias", "factors") if quick else tuple(models)
    warm_up(ratings, chosen, jobs)
    result = benchmark(
        ratings,
        PublishedFolds(FOLDS),
        chosen,
        among(inputs, INPUTS, "kind of input"),
        store=out / "cells",
        max_folds=1 if quick else trials,
        jobs=jobs,
    )
    first = result.frame[result.frame["fold"] == "1"]
    return Reproduction(
        result,
        rmse_in_words(first, "on u1"),
        sections=[
            TableSection("Fold u1", means_with_errors(first)),
            TableSection("Means over the folds", means_with_errors(result.frame)),
            published_numbers(published_csv(NAME)),
        ],
        usual=False,
    )


if __name__ == "__main__":
    main(NAME)
