"""Ratings and events together: lists and ratings of anime-5k with and without what was watched.

anime-5k has 419,943 ratings and 520,609 titles that its users have watched, all rated ones among
them. What was watched and not rated is given to models as events (`Ratings.with_events`). A fifth
of the ratings is held out at random, and nobody has an event of what is held out. Lists of ten are
measured by NDCG with gains ``2^rank - 1``, ratings by their RMSE. No list has what the user has
rated in training or has watched, whether or not its model knows of it, so that nothing is gained by
leaving it out.

"views": the model is fitted with the events; "views of others": with those of another user, drawn
at random, which say nothing. Differences are to the same model without events, with 95 % intervals
over users; one user's values on several draws are kept together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd

from ordrec.choice.als import ImplicitALS
from ordrec.choice.ease import EASE
from ordrec.choice.mixture import ChoiceMixture
from ordrec.data import Ratings
from ordrec.errors import DatasetMissing
from ordrec.evaluation import EvaluationResult
from ordrec.evaluation.problems.ratings import RatingsProblem
from ordrec.evaluation.run import Experiment
from ordrec.evaluation.significance.bootstrap import bootstrap_interval
from ordrec.evaluation.splits.ratings import HoldOut
from ordrec.experiments.runner import Reproduction, among, main
from ordrec.rating.factors.model import OrdinalFactors

NAME = "anime-events"
TITLE = "Ratings and events together: anime-5k with and without what was watched"
SOURCE = "own split; no published numbers"
TIME = "about an hour"

SEEDS = (31, 32, 33)
METRICS = ("graded_ndcg@10", "rmse")
MODELS = {
    "EASE": EASE(n_jobs=1),
    "ImplicitALS": ImplicitALS(n_jobs=1),
    "ChoiceMixture": ChoiceMixture(n_jobs=1),
    "OrdinalFactors": OrdinalFactors(n_jobs=1),
}
ARMS = ("", ", views", ", views of others")
QUICK_USERS = 400


class WithArm:
    """A model that is fitted without events, with them, or with those of others."""

    def __init__(self, model: Any, arm: str):
        self.model, self.arm = model, arm

    def fit(self, ratings: Ratings) -> Self:
        """Fit the model to the ratings, and to the events of its arm."""
        if self.arm == ARMS[0]:
            ratings = ratings.without_events()
        elif self.arm == ARMS[2]:
            ratings = ratings.with_strangers(0, seed=0)
        self.model.fit(ratings)
        return self

    def __repr__(self) -> str:
        return f"{self.model!r}{self.arm or ', without events'}"

    def __getattr__(self, name: str) -> Any:
        if name == "model" or name.startswith("__"):  # not while it is copied
            raise AttributeError(name)
        return getattr(self.model, name)


def run(*, data, trials, jobs, quick, out: Path, models=()) -> Reproduction:
    """Run the named models, or all; trials: draws of the split. Quick: some users, one draw."""
    ratings = watched(data)
    if quick:
        ratings = ratings.select(ratings.users < QUICK_USERS).compact()
    names = among(models, MODELS, "model") if models else list(MODELS)
    arms = {f"{name}{arm}": WithArm(MODELS[name], arm) for name in names for arm in ARMS}
    results = []
    for seed in SEEDS[: 1 if quick else trials]:
        problem = RatingsProblem(ratings, HoldOut(0.2, random_state=seed), ranking_users="all")
        experiment = Experiment(
            arms, [problem], metrics=METRICS, seeds=(seed,), store=out / "cells"
        )
        results.append(experiment.run(n_jobs=jobs))
    joined = EvaluationResult.joined(results)
    joined.manifest["seeds"] = list(SEEDS[: len(results)])
    lines = [line for name in names for line in differences(results, name)]
    return Reproduction(joined, lines)


def watched(data: Path | None) -> Ratings:
    """Read the ratings, with what was watched and not rated as events."""
    if data is None or not (data / "anime-5k").is_dir():
        raise DatasetMissing("anime-5k: put its files into the folder of data sets")
    ratings, views = (
        pd.read_csv(data / "anime-5k" / f"anime_{part}.dat.gz", sep="\t")
        for part in ("ratings", "history")
    )
    ratings.columns, views.columns = ["user", "item", "rating"], ["user", "item", "count"]
    views = views.drop_duplicates(["user", "item"]).assign(kind="watched")
    known = Ratings.from_frame(ratings, scale=range(1, 11), name="anime-5k")
    return known.with_events(views)


def differences(results: Sequence[EvaluationResult], model: str) -> list[str]:
    """Return what the events bring to a model, and those of others."""
    lines = []
    for metric, average in (("graded_ndcg@10", "macro"), ("rmse", "micro")):
        of_arm: dict[str, list[pd.DataFrame]] = {}
        for number, result in enumerate(results):
            for name, _, found in result.measured:
                sums = found.sums.get(("all", metric, average))
                if sums is not None:
                    users = pd.Index([f"{user} {number}" for user in sums.users])
                    values = pd.DataFrame({"sum": sums.sums, "n": sums.counts}, index=users)
                    of_arm.setdefault(name, []).append(values)
        if model not in of_arm:
            continue
        without = pd.concat(of_arm[model])
        for arm in ARMS[1:]:
            own = pd.concat(of_arm[model + arm])
            gain = (own["sum"] - without["sum"]) / without["n"].mean()
            users = gain.index.str.split(" ").str[0].to_numpy()
            low, mean, high = bootstrap_interval(gain.to_numpy(), users)
            what = "mean squared error" if metric == "rmse" else metric
            before = without["sum"].sum() / without["n"].sum()
            lines.append(
                f"{model}{arm}: {what} {before + mean:.4f}, without {before:.4f}, "
                f"difference {mean:+.4f} [{low:+.4f}, {high:+.4f}]"
            )
    return lines


if __name__ == "__main__":
    main(NAME)
