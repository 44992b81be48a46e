"""Douban, Flixster and Yahoo Music on the splits of Monti, Bronstein and Bresson (2017).

3,000 users and 3,000 items each; models know ids only (several of the published ones also use the
social or feature graphs). No time of a rating is known. The ratings of Yahoo Music, 1..100, are put
into ten bins that are made from its training part; RMSE and MAE are those of the ratings
themselves.

The quick form does not look at the test parts: it holds out a tenth of Flixster's training part.
Anything that is to be chosen is chosen there.

Published numbers are in ``published/monti.csv``, each with its source. The released code of
GLocal-K keeps the epoch with the lowest *test* error, so that its numbers were chosen on test data;
for the others this is not known.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.errors import DataError
from ordrec.evaluation import EvaluationResult, HoldOut, PublishedFolds
from ordrec.experiments.published import published_numbers
from ordrec.experiments.rating_benchmarks import benchmark, means_with_errors, rmse_in_words
from ordrec.experiments.runner import Reproduction, among, data_folder, main, published_csv
from ordrec.report.html import TableSection

NAME = "monti"
TITLE = "Rating prediction on Douban, Flixster and Yahoo Music, published splits"
SOURCE = "Monti, Bronstein and Bresson 2017, splits; GC-MC, IGMC, GRAPE, IMC-GAE, GLocal-K"
TIME = "about five minutes on two cores"

SCALES = {
    "douban": Scale.regular(1, 5),
    "flixster": Scale.regular(0.5, 5, 0.5),
    "yahoo-music": None,  # in bins
}
LOWEST, HIGHEST = 1, 100  # of Yahoo Music
INNER_SHARE = 0.1


def run(
    *, data, trials, jobs, quick, out: Path, sets=tuple(SCALES), models=("bias", "factors", "full")
) -> Reproduction:
    """Run the published split of each set; quick: factors on an inner split of Flixster."""
    folder = data_folder(data, "monti-splits")
    if quick:
        sets, models = ("flixster",), ("bias", "factors")
    results = []
    for name in among(sets, list(SCALES)):
        ratings = load_split(folder, name)
        split: PublishedFolds | HoldOut = PublishedFolds(("published",))
        if quick:
            ratings, split = ratings.select(~ratings.folds["published"]), HoldOut(INNER_SHARE)
        results.append(benchmark(ratings, split, models, ("ids",), store=out / "cells", jobs=jobs))
    result = EvaluationResult.joined(results)
    findings = rmse_in_words(result.frame) + ([] if quick else best_published(result.frame))
    return Reproduction(
        result,
        findings,
        sections=[
            TableSection("All metrics", means_with_errors(result.frame)),
            published_numbers(published_csv(NAME)),
        ],
        usual=False,
    )


def load_split(folder: Path, name: str) -> Ratings:
    """Return the ratings of one set, whose published test part is the fold ``published``."""
    path = folder / f"{name.replace('-', '_')}.csv.gz"
    try:
        frame = pd.read_csv(path, usecols=["user", "item", "rating", "part"])
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a table user,item,rating,part ({error})") from None
    test = (frame.pop("part") == "test").to_numpy()
    scale = SCALES[name]
    if scale is None:
        scale = Scale.binned(frame["rating"][~test], low=LOWEST, high=HIGHEST)
    return Ratings.from_frame(frame, scale=scale, folds={"published": test}, name=name)


def best_published(frame: pd.DataFrame) -> list[str]:
    """Return for each set how our lowest RMSE compares with the lowest published one."""
    theirs = pd.read_csv(published_csv(NAME))
    lines = []
    for name, ours in frame[frame["metric"] == "rmse"].groupby("data", sort=False):
        own = ours.loc[ours["value"].idxmin()]
        rival = theirs[(theirs["data"] == name) & (theirs["metric"] == "rmse")]
        best = rival.loc[rival["mean"].idxmin()]
        lines.append(
            f"{name}: {own['model']} {own['value']:.4f}, lowest published {best['mean']:g} "
            f"({best['model']}), {100 * (own['value'] / best['mean'] - 1):+.1f} %"
        )
    return lines


if __name__ == "__main__":
    main(NAME)
