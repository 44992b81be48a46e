"""Lists of ten items beside peers: several draws, paired differences, lists of picks from files.

Models are compared on the same splits in the same run. A split is drawn once per seed: which of the
ratings that a user gave in the same second are held out is drawn, too, unless ties are said to be
in the order of the file.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.choice.ease import EASE
from ordrec.choice.mixture import ChoiceMixture
from ordrec.choice.ordered import OrderedChoice
from ordrec.choice.popularity import Popularity
from ordrec.data import Ratings
from ordrec.errors import DataError
from ordrec.evaluation.problems.ratings import RatingsProblem
from ordrec.evaluation.result import EvaluationResult
from ordrec.evaluation.run import Experiment
from ordrec.evaluation.significance.bootstrap import bootstrap_interval
from ordrec.evaluation.splits.ratings import split_from_name

__all__ = [
    "FUTURE_METRICS",
    "LAST_METRICS",
    "ListTask",
    "calibration_findings",
    "dated_users",
    "list_models",
    "long_histories",
    "paired_findings",
    "read_sequences",
    "run_task",
    "thinned",
]

FUTURE_METRICS = ("graded_ndcg@10", "pick_calibration@10")
LAST_METRICS = ("pick_ndcg@10", "hit_rate@10", "pick_calibration@10")
SEEDS = (21, 22, 23)
LONG_HISTORY = 5  # ratings of a user
PLAIN_EASE, ORDERED = "EASE, left out", "OrderedChoice"


@dataclass(frozen=True)
class ListTask:
    """Ratings, how they are split, and what is measured.

    Attributes
    ----------
    ratings : Ratings
        With the name of the task.
    split : str
        As in `ordrec.evaluation.split_from_name`.
    metrics : tuple of str
    seeds : tuple of int
    """

    ratings: Ratings
    split: str
    metrics: tuple[str, ...]
    seeds: tuple[int, ...] = SEEDS

    def drawn(self, times: int | None) -> ListTask:
        """Return the task with the first so many of its seeds."""
        return self if times is None else replace(self, seeds=self.seeds[:times])


def list_models(names: Sequence[str] = (), n_jobs: int = 1) -> dict[str, Any]:
    """Return the models that are compared, by name; all of them, or those named.

    Examples
    --------
    >>> list(list_models())
    ['popularity', 'EASE, left out', 'ChoiceMixture', 'OrderedChoice']
    """
    models = {
        "popularity": Popularity(),
        PLAIN_EASE: EASE(n_jobs=n_jobs),
        "ChoiceMixture": ChoiceMixture(n_jobs=n_jobs),
        ORDERED: OrderedChoice(n_jobs=n_jobs),
    }
    return {name: model for name, model in models.items() if not names or name in names}


def run_task(
    task: ListTask, models: Mapping[str, Any], store: Path, jobs: int | None = None
) -> tuple[EvaluationResult, list[str]]:
    """Measure the models on each draw of a split; return the values and the paired differences."""
    lowest = float(task.ratings.scale.values[0])
    results = []
    for seed in task.seeds:
        splitter = split_from_name(task.split, random_state=seed)
        problem = RatingsProblem(task.ratings, splitter, ranking_users="all", like=lowest)
        experiment = Experiment(models, [problem], metrics=task.metrics, seeds=(seed,), store=store)
        results.append(experiment.run(n_jobs=jobs))
    lines, short = [], bool((task.ratings.user_counts < LONG_HISTORY).any())
    for metric in task.metrics:
        if metric.startswith("pick_calibration"):
            lines += calibration_findings(results, metric, task.ratings.name)
        else:
            lines += paired_findings(results, metric, task.ratings.name)
            lines += long_histories(results, metric, task.ratings) if short else []
    return _seeds_joined(results), lines


def _seeds_joined(results: Sequence[EvaluationResult]) -> EvaluationResult:
    joined = EvaluationResult.joined(results)
    joined.manifest["seeds"] = sorted({s for r in results for s in r.manifest["seeds"]})
    return joined


def paired_findings(
    results: Iterable[EvaluationResult], metric: str, name: str, model: str = ORDERED
) -> list[str]:
    """Return the differences between a model and all others, with 95 % intervals over users.

    A user's values on several draws are kept together.
    """
    of_model: dict[str, list[pd.Series]] = {}
    for number, result in enumerate(results):
        for other, _, found in result.measured:
            for (users, measured, average), sums in found.sums.items():
                if (users, measured, average) == ("all", metric, "macro"):
                    values = pd.Series(sums.sums / sums.counts, index=sums.users)
                    of_model.setdefault(other, []).append(values.add_prefix(f"{number} "))
    whole = {other: pd.concat(parts) for other, parts in of_model.items()}
    lines = []
    for other, values in whole.items():
        line = f"{name}: {metric} {other} {values.mean():.4f}"
        if other != model and model in whole:
            both = (whole[model] - values).dropna()
            users = both.index.str.split(" ").str[1]
            low, mean, high = bootstrap_interval(both.to_numpy(), users.to_numpy())
            line += f", {model} minus it {mean:+.4f} [{low:+.4f}, {high:+.4f}]"
        lines.append(line)
    return lines


def calibration_findings(results: Iterable[EvaluationResult], metric: str, name: str) -> list[str]:
    """Return expected over observed hits, their standard errors over users, and how many hits.

    A user's hits on several draws are kept together.
    """
    of_model: dict[str, list[pd.DataFrame]] = {}
    for result in results:
        for model, _, found in result.measured:
            for (users, measured, _), sums in found.sums.items():
                if (users, measured) == ("all", metric):
                    own = pd.DataFrame({"expected": sums.sums, "hits": sums.counts}, sums.users)
                    of_model.setdefault(model, []).append(own)
    lines = []
    for model, parts in of_model.items():
        of_user = pd.concat(parts).groupby(level=0).sum()
        expected, hits = of_user.sum()
        if hits:
            wrong = of_user["expected"] - expected / hits * of_user["hits"]
            error = np.sqrt(float(wrong @ wrong)) / hits
            lines.append(
                f"{name}: {metric} {model} {expected / hits:.4f}, standard error {error:.4f}, "
                f"{hits:.0f} hits"
            )
    return lines


def long_histories(results: Iterable[EvaluationResult], metric: str, ratings: Ratings) -> list[str]:
    """Return the means over the users with at least five ratings, whom others test on alone."""
    values: dict[str, list[pd.Series]] = {}
    for result in results:
        for model, _, found in result.measured:
            for (users, measured, average), sums in found.sums.items():
                if (users, measured, average) == ("all", metric, "macro"):
                    long = ratings.user_counts[sums.users] >= LONG_HISTORY
                    values.setdefault(model, []).append(pd.Series((sums.sums / sums.counts)[long]))
    return [
        f"{ratings.name}: {metric} {model} {pd.concat(parts).mean():.4f} over the users with "
        f"{LONG_HISTORY} or more ratings, {parts[0].size} of them"
        for model, parts in values.items()
    ]


# ---- data -------------------------------------------------------------------------------------


def dated_users(ratings: Ratings) -> Ratings:
    """Return the ratings of the users all of whose ratings have a known time.

    Examples
    --------
    >>> frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2],
    ...                       "rating": [1, 2, 3, 4], "timestamp": [9, 5, 0, 2]})
    >>> dated_users(Ratings.from_frame(frame)).user_ids.tolist()
    [1]
    """
    if ratings.timestamps is None:
        raise DataError(f"{ratings.name} has no times")
    unknown = np.unique(ratings.users[ratings.timestamps == 0])
    if not unknown.size:
        return ratings
    return ratings.select(~np.isin(ratings.users, unknown)).compact().renamed(ratings.name)


def thinned(ratings: Ratings, n_ratings: int, seed: int = 0) -> Ratings:
    """Return so many of the ratings, drawn at random."""
    kept = np.zeros(ratings.n_ratings, dtype=np.bool_)
    kept[np.random.default_rng(seed).choice(ratings.n_ratings, n_ratings, replace=False)] = True
    return ratings.select(kept).compact().renamed(f"{ratings.name}, {n_ratings} ratings")


def read_sequences(train: Path, test: Path, name: str, *, dated: bool) -> Ratings:
    """Read picks from two text files with a line per user: the user, then the items.

    The user is set off by a colon or a space. Flags of the test part are the published fold
    ``"test"``.

    Parameters
    ----------
    train, test : path
        May be compressed with gzip.
    name : str
    dated : bool
        Whether the items of a line are in the order of time, those of ``test`` last: their places
        are then the times.
    """
    parts = [_picks_of(path) for path in (train, test)]
    picks = pd.concat(parts, keys=range(2), names=["part", None]).reset_index("part")
    columns = ["user", "item"]
    if dated:
        picks = picks.sort_values(["user", "part"], kind="stable")
        picks["timestamp"] = picks.groupby("user").cumcount() + 1
        columns.append("timestamp")
    twice = picks.duplicated(["user", "item"])
    if twice.any():
        row = picks[twice].iloc[0]
        raise DataError(f"{name}: user {row['user']} has item {row['item']} twice")
    picks = picks.sort_values(["user", "item"], kind="stable")
    return Ratings.from_frame(
        picks[columns], rating=None, folds={"test": (picks["part"] == 1).to_numpy()}, name=name
    )


def _picks_of(path: Path) -> pd.DataFrame:
    users, items = [], []
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for number, line in enumerate(lines, 1):
            try:
                user, *own = map(int, line.replace(":", " ").split())
            except ValueError:
                raise DataError(f"{path}, line {number}: a user and items expected") from None
            users += [user] * len(own)
            items += own
    return pd.DataFrame({"user": users, "item": items})
