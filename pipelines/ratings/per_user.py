"""Train a rating predictor for each user from the ratings of other users, and report MAE and MZE.

    ordrec reproduce per-user [--set ratings=DATA] [--set estimators=svorim,gpor] ...
    python pipelines/ratings/per_user.py [DATA] [--estimators svorim,gpor]
                                 [--features mean,low-rank] [--sizes 20,40,80]
                                 [--users 40] [--trials 3]

1. Load the ratings: DATA is a name of 'ordrec data list', a folder or a file.
2. Keep a given number of ratings of each of the most active users, and all ratings of the others.
3. Fill the user-rating matrix: with item means, or by a weighted low-rank estimate (EM).
4. Build kernels between items, for every user without their own column: Pearson's correlation,
   co-ratings, the item factors of `implicit`, and the items' means, so that the rest describes how
   the user departs from them. Their weights, equal for all users, maximise the pooled evidence.
5. Train an ordinal model for each user. C and alpha, equal for all users, are chosen by five-fold
   cross-validation; GPOR has the noise and the thresholds of the pooled evidence.
6. Predict the users' other ratings; report MAE and MZE beside what needs no estimator: damped
   biases, rounded, and the median of the user's own ratings.

Every choice is made within the training ratings. The setting is that of Chu and Ghahramani (2005,
section 6.3) and Wang et al. (2017, section V-E), for many users in place of one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.datasets import read_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation.manifest import ratings_checksum
from ordrec.experiments.runner import Reproduction, among, main
from ordrec.features.low_rank.model import LowRankEM
from ordrec.ordinal import GPOR, NPSVOR, SVOREX, SVORIM, ORBoost, OrdinalLogistic
from ordrec.recommend import BiasModel, PerUserPredictor
from ordrec.report.figures import box_plots
from ordrec.report.html import FigureSection, TableSection
from ordrec.runtime.progress import report

NAME = "per-user"
TITLE = "A rating predictor for each user, from the ratings of other users"
SOURCE = "after Chu and Ghahramani 2005, section 6.3, and Wang et al. 2017, section V-E"
TIME = "about twenty minutes"

STEPS = [0.1, 0.3, 1.0, 3.0, 10.0]
ESTIMATORS = {  # each with the grid that its setting is chosen from
    "svorim": (SVORIM(), {"C": STEPS}),
    "svorex": (SVOREX(), {"C": STEPS}),
    "npsvor": (NPSVOR(), {"C1": STEPS}),
    "gpor": (GPOR(inference="ep", decision="median"), None),
    "logistic": (OrdinalLogistic("all", kernel="precomputed"), {"alpha": STEPS}),
    "orboost": (ORBoost(base="stump", random_state=0), {"n_estimators": [10, 30, 100]}),
}
FEATURES = {"mean": "mean", "low-rank": LowRankEM(n_factors=20, tol=1e-3, random_state=0)}


def run(
    *,
    data,
    trials,
    jobs,
    quick,
    out: Path,
    ratings: str = "ml-latest-small-2016",
    estimators=("svorim", "npsvor", "gpor", "logistic"),
    features=("mean", "low-rank"),
    sizes=("20", "40", "80"),
    users: int = 40,
    seed: int = 0,
) -> Reproduction:
    """Run three trials of each size; quick: ten users, one trial, 20 ratings, means only."""
    loaded = read_ratings(ratings, folder=data)
    if quick:
        features, sizes, users, trials = ("mean",), ("20",), min(users, 10), trials or 1
    runs = [(size, trial) for size in whole(sizes) for trial in range(trials or 3)]
    models = [
        (filled, kind)
        for filled in among(features, list(FEATURES), "imputation")
        for kind in among(estimators, list(ESTIMATORS), "estimator")
    ]
    rows, choices = [], []
    for done, (size, trial) in enumerate(runs):
        report(done, len(runs), f"{size} training ratings, trial {trial + 1}")
        train, test = draw(loaded, size, users, seed + trial)
        cell = {"data": loaded.name, "n_train": size, "trial": trial + 1}
        for name, predicted in baselines(train, test).items():
            rows.append(user_errors(predicted, test).assign(**cell, model=name))
        sources: dict = {}  # of kernels and features, shared by the estimators
        for filled, kind in models:
            estimator, grid = ESTIMATORS[kind]
            model = PerUserPredictor(
                estimator, sources.get(filled, FEATURES[filled]), "pooled",
                min_ratings=2, n_jobs=jobs, grid=grid,
            ).fit(train, users=test.user_ids.take(np.unique(test.users)))  # fmt: skip
            sources[filled] = model.source_
            name = f"{kind}, {filled}"
            predicted = model.predict(*pairs(test))
            rows.append(user_errors(predicted, test).assign(**cell, model=name))
            choices.append(cell | {"model": name} | chosen(model))
    frame = pd.concat(rows, ignore_index=True)
    table = summary(frame)
    sections = [
        TableSection("Errors in ranks", table, "Pooled over test ratings; mean ± sd of users."),
        TableSection("What was chosen", pd.DataFrame(choices), "Within the training ratings."),
        *(
            FigureSection(
                f"{metric} of users",
                box_plots(frame, metric, by="n_train", label="training ratings of the user"),
                f"box-{metric}",
            )
            for metric in ("mae", "mze")
        ),
    ]
    lines = [repr(loaded), *table.to_string(index=False).splitlines(), *verdicts(frame)]
    return Reproduction(
        frame,
        lines,
        sections=sections,
        checksums={loaded.name: ratings_checksum(loaded)},
        cells=of_trials(frame),
    )


def whole(sizes) -> list[int]:
    """Return training sizes as numbers."""
    if not all(str(size).isdecimal() and int(size) > 1 for size in sizes):
        raise ArgumentError(f"sizes must be whole numbers from 2, got {','.join(map(str, sizes))}")
    return [int(size) for size in sizes]


def draw(ratings: Ratings, size: int, n_users: int, seed: int) -> tuple[Ratings, Ratings]:
    """Return training ratings (``size`` of each target user, all of the others) and the rest."""
    random = np.random.default_rng(seed)
    targets = np.argsort(-ratings.user_counts, kind="stable")[:n_users]
    if ratings.user_counts[targets].min() <= size:
        raise ArgumentError(
            f"some of the {n_users} most active users have {size} ratings or fewer: lower users "
            "or sizes"
        )
    held_out = np.isin(ratings.users, targets)
    for user in targets:
        held_out[random.choice(ratings.rows_of_user(user), size, replace=False)] = False
    return ratings.select(~held_out), ratings.select(held_out)


def pairs(test: Ratings):
    """Return the ids of the users and of the items of all ratings."""
    return test.user_ids.take(test.users), test.item_ids.take(test.items)


def baselines(train: Ratings, test: Ratings) -> dict[str, np.ndarray]:
    """Return predictions that need no estimator."""
    users, items = pairs(test)
    own = train.to_frame().groupby("user")["rating"].quantile(0.5, interpolation="lower")
    return {
        "biases, rounded": test.scale.nearest(BiasModel().fit(train).predict(users, items)),
        "own median": own.reindex(users).to_numpy(),
    }


def user_errors(predicted: np.ndarray, test: Ratings) -> pd.DataFrame:
    """Return the mean absolute error (in ranks) and the zero-one error of each user."""
    distance = np.abs(test.scale.ranks_of(predicted) - test.ranks)
    frame = pd.DataFrame({"user": pairs(test)[0], "mae": distance, "mze": distance > 0})
    means = frame.groupby("user").agg(
        n_test=("mae", "size"), mae=("mae", "mean"), mze=("mze", "mean")
    )
    return means.reset_index().melt(["user", "n_test"], var_name="metric")


def chosen(model: PerUserPredictor) -> dict:
    """Return what was chosen for all users: the estimator's setting and the kernel's weights."""
    return getattr(model, "setting_", {}) | {
        f"weight of {part}": f"{weight:.2g}" for part, weight in model.kernel_weights_.items()
    }


def pooled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the errors over all test ratings, by size and model, one column per metric."""
    weighted = frame.assign(value=frame["value"] * frame["n_test"])
    sums = weighted.groupby(["n_train", "model", "metric"], sort=False)[["value", "n_test"]].sum()
    return (sums["value"] / sums["n_test"]).unstack()


def of_trials(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the errors over all test ratings of each trial, in the form of an experiment."""
    keys = ["data", "n_train", "trial", "model", "metric"]
    weighted = frame.assign(value=frame["value"] * frame["n_test"])
    sums = weighted.groupby(keys, sort=False)[["value", "n_test"]].sum()
    return sums.assign(value=sums["value"] / sums["n_test"]).reset_index()


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return errors pooled over all test ratings, and averaged over users with deviation."""
    of_users = frame.groupby(["n_train", "model", "metric"], sort=False)["value"]
    spread = of_users.agg(lambda v: f"{v.mean():.3f} ± {v.std():.3f}").unstack()
    return (
        pooled(frame)
        .round(4)
        .join(spread.add_suffix(" of users"))
        .sort_index(level="n_train", sort_remaining=False)
        .reset_index()
    )


def verdicts(frame: pd.DataFrame) -> list[str]:
    """Say for each size which models beat rounded biases in both errors."""
    found = []
    for size, errors in pooled(frame).groupby("n_train", sort=True):
        errors = errors.droplevel("n_train")
        bias = errors.loc["biases, rounded"]
        models = errors.drop(["biases, rounded", "own median"])
        better = (models < bias).all(axis=1)
        found.append(
            f"{size} ratings: {better.sum()} of {len(models)} models beat rounded biases in MAE "
            f"and MZE; best {models['mae'].idxmin()}, MAE {models['mae'].min():.4f} against "
            f"{bias['mae']:.4f}"
        )
    return found


if __name__ == "__main__":
    main(NAME)
