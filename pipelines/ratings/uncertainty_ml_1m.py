"""Uncertainty of rating predictions on MovieLens 1M by the protocol of Coscrato and Bridge (2023).

Items with fewer than five ratings are removed, which leaves 999,611 ratings. The test part is the
last fifth of the ratings of 1,000 users drawn at random, the validation part the last tenth of
what is left of every user. The authors' draw is not known (the released program numbers users in
an order that depends on how a sort treats equal times), so that the parts have other sizes than
theirs: 871,984, 93,970 and 33,657 ratings.

The metrics are those of the released program: correlations of absolute errors and uncertainties,
the reliability prediction index, the area under the curve for errors of more than one star (over
all test ratings; the program averages two halves), and the difference between the RMSE of the least
sure and of the surest twentieth. The published numbers are the best of each column of the table,
of several methods.

OrdinalFactors is fitted to the training part, without the validation part; like the published
methods it knows who rated what, but neither when nor anything about users and items. How uncertain
a distribution is can be measured in several ways; the one that is best on the validation part is
compared with the published numbers, and all are shown.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.datasets import load_movielens
from ordrec.evaluation.manifest import ratings_checksum
from ordrec.evaluation.metrics import uncertainty
from ordrec.experiments.published import beside_published
from ordrec.experiments.runner import Reproduction, data_folder, main, published_csv
from ordrec.ordinal.conformal import Calibration
from ordrec.ordinal.uncertainty import SPREADS, shortest_interval, spread
from ordrec.recommend import OrdinalFactors
from ordrec.report.html import TableSection
from ordrec.runtime.progress import report

NAME = "uncertainty-ml-1m"
TITLE = "Whether errors are large where predictions are unsure, on MovieLens 1M"
SOURCE = "Coscrato and Bridge 2023, ACM Transactions on Recommender Systems, MovieLens 1M"
TIME = "about two minutes of one processor for each draw of test users"

TEST_USERS, TEST_SHARE, VALIDATION_SHARE, LEAST_RATINGS = 1000, 0.2, 0.1, 5
COVERAGE = 0.9
LARGE = 1.0  # stars
METRICS = {
    "unc_pearson": uncertainty.pearson_of_errors,
    "unc_spearman": uncertainty.spearman_of_errors,
    "unc_rpi": uncertainty.reliability_index,
    "unc_auc": lambda errors, unsure: uncertainty.large_error_auc(errors, unsure, LARGE),
    "unc_rmse_spread": uncertainty.rmse_spread,
}
QUICK = {"n_factors": 4, "pattern": 4, "max_iter": 2}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run one draw of test users, or as many as ``trials``; quick: a small model, two sweeps."""
    ratings = frequent_items(load_movielens(data_folder(data, "ml-1m")))
    rows, findings = [], []
    for draw in range(trials or 1):
        report(draw, trials or 1, f"draw {draw}")
        found, said = one_draw(ratings, draw, quick, jobs)
        rows += found
        findings += said
    frame = pd.DataFrame(rows)
    chosen = frame[frame["chosen"]].assign(data="ml-1m")
    comparison = beside_published(chosen, published_csv(NAME), keys=("data",))
    table = frame.pivot_table("value", ["draw", "measure"], "metric", sort=False)
    return Reproduction(
        frame,
        findings,
        comparison,
        sections=[TableSection("All measures of uncertainty", table)],
        checksums={"ml-1m": ratings_checksum(ratings)},
    )


def one_draw(ratings: Ratings, draw: int, quick: bool, jobs) -> tuple[list[dict], list[str]]:
    """Fit to one draw; return the rows of the table and sentences."""
    train, validation, test = parts(ratings, draw)
    size = QUICK if quick else {}
    model = OrdinalFactors(use_time=False, use_side=False, n_jobs=jobs, **size).fit(train)
    held, new = (distributions(model, part) for part in (validation, test))
    values = np.asarray(ratings.scale.values, dtype=np.float64)
    measured = {measure: scores(held, validation, values, measure) for measure in SPREADS}
    chosen = best_of(measured)
    rows = []
    for measure in SPREADS:
        of_test = scores(new, test, values, measure)
        for metric, value in of_test.items():
            rows.append(
                {
                    "draw": draw,
                    "measure": measure,
                    "chosen": measure == chosen,
                    "metric": metric,
                    "value": value,
                    "validation": measured[measure][metric],
                }
            )
    levels = np.asarray(test.levels)
    calibrated = Calibration.of(held, np.asarray(validation.levels), COVERAGE).intervals(new)
    said = [
        f"draw {draw}: {train.n_ratings} training, {validation.n_ratings} validation and "
        f"{test.n_ratings} test ratings; chosen on the validation part: {chosen}"
    ]
    for name, ends in {"own": shortest_interval(new, COVERAGE), "conformal": calibrated}.items():
        inside = uncertainty.interval_coverage(levels, ends)
        said.append(
            f"{name} intervals for {COVERAGE:.0%}: {inside:.1%} of the test ratings are inside, "
            f"{uncertainty.interval_size(ends):.2f} of {values.size} ratings on average"
        )
    return rows, said


def frequent_items(ratings: Ratings) -> Ratings:
    """Return the ratings of items that have enough of them."""
    counts = np.bincount(ratings.items, minlength=ratings.n_items)
    return ratings.select(np.flatnonzero(counts[ratings.items] >= LEAST_RATINGS))


def parts(ratings: Ratings, draw: int) -> tuple[Ratings, Ratings, Ratings]:
    """Return the training, the validation and the test part."""
    counts = np.bincount(ratings.users, minlength=ratings.n_users)
    rated = np.flatnonzero(counts)
    users = np.random.default_rng(draw).choice(
        rated, size=min(TEST_USERS, rated.size // 2), replace=False
    )
    n_test = np.zeros(ratings.n_users, dtype=np.int64)
    n_test[users] = (TEST_SHARE * counts[users]).astype(np.int64)
    n_validation = (VALIDATION_SHARE * (counts - n_test)).astype(np.int64)
    order = np.lexsort((ratings.timestamps, ratings.users))
    from_last = np.empty(ratings.n_ratings, dtype=np.int64)  # 0 for a user's last rating
    ends = np.cumsum(counts)
    from_last[order] = ends[ratings.users[order]] - 1 - np.arange(ratings.n_ratings)
    own_test, own_validation = n_test[ratings.users], n_validation[ratings.users]
    test = from_last < own_test
    validation = ~test & (from_last < own_test + own_validation)
    train = ~test & ~validation
    return tuple(ratings.select(np.flatnonzero(rows)) for rows in (train, validation, test))


def distributions(model: OrdinalFactors, part: Ratings) -> np.ndarray:
    """Return what the model predicts, without the times of the ratings."""
    return model.predict_proba(part.user_ids[part.users], part.item_ids[part.items])


def scores(p: np.ndarray, part: Ratings, values: np.ndarray, measure) -> dict[str, float]:
    """Return all metrics for one measure of uncertainty."""
    errors = np.abs(part.values - p @ values)
    unsure = spread(p, values, measure)
    return {"rmse": float(np.sqrt(np.mean(errors**2)))} | {
        name: metric(errors, unsure) for name, metric in METRICS.items()
    }


def best_of(measured: dict[str, dict[str, float]]) -> str:
    """Return the measure whose metrics are nearest to the best ones, on average."""
    table = pd.DataFrame(measured).loc[list(METRICS)]
    return str((table.div(table.max(axis=1), axis=0)).mean().idxmax())


if __name__ == "__main__":
    main(NAME)
