"""The result of an evaluation or an experiment: a tidy frame, its summaries and captions."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation.drawing import interval_chart
from ordrec.evaluation.metrics.outcome import UserSums
from ordrec.evaluation.problems.base import Measurement
from ordrec.evaluation.problems.example_users import ExampleUser
from ordrec.evaluation.significance.against_best import COLUMNS as COMPARISON_COLUMNS
from ordrec.evaluation.significance.bootstrap import bootstrap_interval
from ordrec.evaluation.splits.own import TEST_ALONE
from ordrec.evaluation.table import ResultTable, Standing, SummaryTable
from ordrec.runtime.files import make_folder, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "EvaluationResult"]

COLUMNS = [
    "data", "model", "split", "fold", "n_test", "n_cold_users", "n_cold_items", "n_cold_ratings",
    "given", "fit_seconds", "predict_seconds", "metric", "average", "users", "decision",
    "candidates", "value", "n", "seed",
]  # fmt: skip
AVERAGES = ("micro", "macro", "ips", "snips")
CELL = ["data", "model", "split", "fold", "seed"]  # the columns that name a cell


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult:
    """The result of `ordrec.evaluation.evaluate` or of an `ordrec.evaluation.Experiment`.

    Attributes
    ----------
    frame : DataFrame
        One row per data set, model, fold, seed, metric, average and group of users. The columns of
        an evaluation of ratings are ``data model split fold n_test n_cold_users n_cold_items
        n_cold_ratings given fit_seconds predict_seconds metric average users decision candidates
        value n seed``; other problems leave some out, and an experiment adds ``chosen``, the
        candidate that inner cross-validation selected, and ``warnings``. ``average`` is
        "micro" (pooled over ratings), "macro" (mean over users), or with propensities "ips" and
        "snips" (weighted by their inverse); ``users`` is "all", "warm" or
        "cold"; ``n`` is the number of ratings or users averaged; ``decision`` is what turned a
        distribution into a rating, "point" for a model without distributions, "none" where the
        distribution itself is measured; ``candidates`` is what a ranking metric ranks;
        ``n_cold_...`` count users, items and ratings unseen in training.
    failures : DataFrame
        ``data model split fold seed error`` of each model that failed on a fold.
    manifest : dict
        Versions, command, models, checksums of the data, splits, seeds, and the commits that the
        values were computed at (several where a run continued an earlier one).
    comparison : DataFrame
        Intervals, and tests against the best model or a reference, from
        `ordrec.evaluation.significance.against_best`.
    distributions : dict of str
        Levels and predicted distributions of the test ratings, for each model that has them, if
        ``keep_predictions`` was set.
    examples : dict of str
        Five users as each model sees them, in its first fold (`ExampleUser`), likewise.
    measured : list of (model, fold, Measurement)
        What `per_user` and `predictions` are made of.
    ratings : Ratings, optional
        What was evaluated on, for the ids of users and items.
    """

    unit: ClassVar[str] = "users"  # what is averaged over and drawn
    subject: ClassVar[str] = "Rating models"
    reported: ClassVar[tuple[str, ...]] = ("micro", "macro")  # averages with a table in a report

    frame: pd.DataFrame
    failures: pd.DataFrame = field(default_factory=pd.DataFrame)
    manifest: dict[str, Any] = field(default_factory=dict)
    comparison: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=COMPARISON_COLUMNS)
    )
    distributions: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    examples: dict[str, list[ExampleUser]] = field(default_factory=dict)
    measured: list[tuple[str, str, Measurement]] = field(default_factory=list)
    ratings: Ratings | None = None

    @classmethod
    def joined(cls, results: Sequence[EvaluationResult]) -> EvaluationResult:
        """Return several results as one; versions, command and time are those of the first.

        Where a data set has another split or protocol in each, both are named.
        """
        manifest = dict(results[0].manifest)
        for other in results[1:]:
            for name in ("models", "data", "splits"):
                manifest[name] = _both(manifest[name], other.manifest[name])
            for name in ("cells", "cells_from_store"):
                manifest[name] += other.manifest[name]
            manifest["commits"] = sorted({*manifest["commits"], *other.manifest["commits"]})
        return cls(
            pd.concat([result.frame for result in results], ignore_index=True),
            pd.concat([result.failures for result in results], ignore_index=True),
            manifest,
        )

    # ---- how it came about ----------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether no model failed on any fold."""
        return self.failures.empty

    @property
    def models(self) -> dict[str, str]:
        """The name of each model and its parameters."""
        return self.manifest.get("models", {})

    @property
    def split(self) -> str:
        """The split with all its parameters."""
        return str(self.manifest.get("split", "; ".join(self.manifest.get("splits", {}).values())))

    @property
    def decision(self) -> str:
        """What turned distributions into ratings, as requested."""
        return str(self.manifest.get("decision", ""))

    @property
    def seed(self) -> int:
        """The first seed."""
        return int(self.manifest.get("seeds", [0])[0])

    @property
    def reference(self) -> str:
        """The model that others were compared with; empty if that is the best by each metric."""
        return str(self.manifest.get("against", ""))

    @property
    def times(self) -> str:
        """Whether models saw the times of test ratings, "known" or "unknown"; "none" without."""
        about = str(self.manifest.get("times", "")).split()
        return next((word for word in ("known", "unknown") if word in about), "none")

    # ---- one set of ratings ---------------------------------------------------------------------

    @property
    def user_groups(self) -> list[str]:
        """The groups of users that were measured: "all" and others, such as "warm" and "cold"."""
        if "users" not in self.frame:
            return ["all"] if len(self.frame) else []
        return [str(group) for group in self.frame["users"].unique()]

    def summary(self, average: str = "micro", users: str = "all") -> pd.DataFrame:
        """Return means over the folds: one row per model, one column per metric, and seconds.

        A metric without the requested average appears with the one it has (see `averages`).
        Values are NaN where a metric does not apply to a model, or the model failed. Printed, the
        table fits a terminal of 80 columns and has half intervals, and marks of the tests.
        """
        averages = self.averages(average)
        shown = self._shown(averages, users)
        means = shown.groupby(["model", "metric"])["value"].mean()
        models = list(self.models) or list(self.frame["model"].unique())
        table = means.unstack().reindex(index=models, columns=list(averages))
        table = table.join(self._mean_seconds(["model"]))
        table.columns.name = None
        summary = SummaryTable(table)
        summary.standings, summary.note = self.standings(average, users), self.test_caption()
        return summary

    def averages(self, average: str = "micro") -> dict[str, str]:
        """Return the average that `summary` shows for each metric."""
        if average not in AVERAGES:
            raise ArgumentError(f"average must be one of {', '.join(AVERAGES)}, got {average!r}")
        return {
            metric: average if average in measured else measured[0]
            for metric, measured in self.available_averages().items()
        }

    def available_averages(self) -> dict[str, list[str]]:
        """Return the averages that were measured for each metric, in the order of the frame."""
        pairs = self.frame[["metric", "average"]].drop_duplicates()
        available: dict[str, list[str]] = {}
        for metric, average in zip(pairs["metric"], pairs["average"], strict=True):
            available.setdefault(metric, []).append(average)
        return available

    def standings(
        self, average: str = "micro", users: str = "all"
    ) -> dict[tuple[str, str], Standing]:
        """Return how certain the values of `summary` are, by metric and model."""
        averages = self.averages(average)
        chosen = self.comparison[self.comparison["users"] == users]
        chosen = chosen[chosen["average"] == chosen["metric"].map(averages)]
        half = (chosen["high"] - chosen["low"]) / 2
        signs = {"tied": "~"} | ({"better": "+", "worse": "-"} if self.reference else {})
        marks = chosen["verdict"].map(lambda verdict: signs.get(verdict, ""))
        keys = zip(chosen["metric"].astype(str), chosen["model"].astype(str), strict=True)
        found = zip(half.tolist(), marks.tolist(), strict=True)
        return {key: Standing(*each) for key, each in zip(keys, found, strict=True)}

    def intervals(self, average: str = "micro", users: str = "all") -> pd.DataFrame:
        """Return the values of `summary`, one row each, with their intervals and verdicts.

        Returns
        -------
        DataFrame
            ``metric``, ``model``, ``value``, ``low``, ``high`` and ``verdict`` ("best", "tied",
            "worse"; against a reference "reference", "better", "tied", "worse"); the last three
            are empty where nothing was tested.
        """
        averages = self.averages(average)
        means = self.summary(average, users)[list(averages)].rename_axis("model").reset_index()
        values = means.melt("model", var_name="metric", value_name="value").dropna()
        tested = self.comparison[self.comparison["users"] == users]
        tested = tested[tested["average"] == tested["metric"].map(averages)]
        columns = ["metric", "model", "low", "high", "verdict"]
        joined = values.merge(tested[columns], how="left", on=["metric", "model"])
        return joined.astype({"low": float, "high": float}).fillna({"verdict": ""})

    def caption(self, average: str = "micro", users: str = "all") -> str:
        """Return a text about `summary`: data, split, cold counts, decisions, averages."""
        if self.frame.empty:
            return f"{self.split}: nothing could be measured."
        folds = self.frame.drop_duplicates("fold")
        n_test, cold_users, cold_items, cold = (
            int(folds[f"n_{what}"].sum())
            for what in ("test", "cold_users", "cold_items", "cold_ratings")
        )
        by_average = _listed(self.averages(average))
        decided = self.frame[~self.frame["decision"].isin(["none", "point"])]
        by_decision = _listed(dict(zip(decided["metric"], decided["decision"], strict=True)))
        text = (
            f"{self.frame['data'].iloc[0]}, {self.split}, {len(folds)} "
            f"fold{'s' if len(folds) > 1 else ''}, {n_test} test ratings"
        )
        if not self.split.startswith(TEST_ALONE):
            text += (
                f"; unseen in training: {cold_users} users, {cold_items} items, {cold} test ratings"
            )
        text += f". Averages: {by_average}."
        if self.frame["model"].nunique() > 1:
            text += " Seconds: each model alone, so that work two models share counts in both."
        if by_decision:
            text += f" Decision {self.decision!r}: {by_decision}."
        if (self.frame["decision"] == "point").any():
            text += " Models without probabilities: their number, rounded where a rank is needed."
        if self.times != "none":
            text += f" Times: {self.manifest['times']}."
        ranked = self.frame[self.frame["candidates"] == "catalogue"]
        if len(ranked):
            macro = ranked[ranked["average"] == "macro"]
            n_users = (macro if len(macro) else ranked)["n"].max()
            same = "the same user" if n_users == 1 else f"the same {n_users} users"
            text += (
                f" {' '.join(ranked['metric'].unique())}: over the whole catalogue except what the "
                f"user rated in training, {same} for all models."
            )
        if average in ("ips", "snips"):
            text += f" Weights: inverse propensities, {self.manifest.get('propensities', '')}."
        if users in ("warm", "cold"):
            text += f" Here {users} users only; cold: {self.manifest['cold users']}."
        elif users != "all":
            text += f" Here users with {users} only."
        return text

    def test_caption(self) -> str:
        """Return what intervals and marks mean; empty where there are none."""
        if self.comparison.empty:
            return ""
        if self.reference:
            return (
                f"±: half the 95 % interval, from draws of whole {self.unit} with replacement. "
                f"Best in bold; +, -: significantly better, worse than {self.reference} "
                f"(difference over the same draws of {self.unit}, two-sided, 5 %, Holm's steps "
                "over the models); ~: neither."
            )
        return (
            f"±: half the 95 % interval, from draws of whole {self.unit} with replacement. Best in "
            "bold; ~: not significantly worse than the best (difference over the same draws of "
            f"{self.unit}, two-sided, 5 %, Holm's steps over the models)."
        )

    def table(self, average: str = "micro", users: str = "all") -> ResultTable:
        """Return the values of `summary` with their `standings`, to be shown anywhere."""
        return ResultTable.of(self.summary(average, users), self.standings(average, users))

    def to_latex(
        self,
        average: str = "micro",
        users: str = "all",
        *,
        metrics: Iterable[str] | None = None,
        digits: int = 3,
        caption: str = "",
        label: str = "",
    ) -> str:
        r"""Return a table for a paper, with half intervals, the best in bold, and marks.

        Parameters
        ----------
        average, users : str
            As in `summary`.
        metrics : iterable of str, optional
            Which metrics to show, in this order; all by default.
        digits : int
            Behind the decimal point.
        caption, label : str
            With either, the tabular stands in a table whose caption also explains the signs.

        Returns
        -------
        str
            LaTeX for the package booktabs. A dagger marks values that are not significantly worse
            than the best.

        Examples
        --------
        >>> from ordrec.datasets import synthetic_ratings
        >>> from ordrec.evaluation import evaluate
        >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
        >>> result = evaluate(ratings, ["mean", "bias"], metrics=["rmse", "fcp"])
        >>> print(result.to_latex(metrics=["rmse"]).splitlines()[3])
        model & rmse $\downarrow$ \\
        """
        shown = self.summary(average, users)[self._chosen(metrics)].dropna(axis=1, how="all")
        table = ResultTable.of(shown, self.standings(average, users), digits)
        return table.latex(caption, label, self.reference)

    def plot(
        self,
        average: str = "micro",
        users: str = "all",
        *,
        metrics: Iterable[str] | None = None,
    ) -> Figure:
        """Draw a panel per metric: a dot per model with its 95 % interval, the best on top.

        Parameters
        ----------
        average, users : str
            As in `summary`.
        metrics : iterable of str, optional
            Which metrics to show, in this order; all by default.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it; ``figure.savefig("result.pdf")`` writes it. Blue is the best,
            turquoise not significantly worse, grey significantly worse or not tested.
        """
        chosen = self._chosen(metrics)
        values = self.intervals(average, users)
        values = values[values["metric"].isin(chosen)]
        order = values["metric"].map(chosen.index)
        return interval_chart(values.loc[order.sort_values(kind="stable").index])

    def _chosen(self, metrics: Iterable[str] | None) -> list[str]:
        """The metrics that were asked for, which must have been measured."""
        measured = list(self.averages())
        chosen = measured if metrics is None else list(metrics)
        for metric in chosen:
            if metric not in measured:
                raise ArgumentError(
                    f"{metric!r} was not measured: choose from {', '.join(measured)}"
                )
        return chosen

    # ---- users and ratings one by one -----------------------------------------------------------

    def per_user(self) -> pd.DataFrame:
        """Return the values of each user, for metrics that are made of such values.

        Returns
        -------
        DataFrame
            ``model fold users metric average user value n``: the value of a user, and the number
            of ratings, or 1, by which it is weighted in the mean over users (squares are averaged
            for a pooled ``rmse``).
        """
        ratings = self._evaluated()
        frames = [
            pd.DataFrame(
                {
                    "model": model,
                    "fold": fold,
                    "users": users,
                    "metric": metric,
                    "average": average,
                    "user": ratings.user_ids.take(sums.users),
                    "value": _user_values(sums),
                    "n": sums.counts,
                }
            )
            for model, fold, found in self.measured
            for (users, metric, average), sums in found.sums.items()
        ]
        if not frames:
            columns = ["model", "fold", "users", "metric", "average", "user", "value", "n"]
            return pd.DataFrame(columns=columns)
        return pd.concat(frames, ignore_index=True)

    def predictions(self) -> pd.DataFrame:
        """Return what each model predicted for each test rating, if ``keep_predictions`` was set.

        Returns
        -------
        DataFrame
            ``model fold user item rating`` and, as far as a model has them, ``prediction`` (the
            expected rating), ``score``, ``place`` in the catalogue (missing where it was not
            ranked) and ``p_1, p_2, ...``, the probabilities of ratings.
        """
        ratings = self._evaluated()
        frames = []
        for model, fold, found in self.measured:
            kept = found.predictions
            if kept is None:
                continue
            columns: dict[str, Any] = {
                "model": model,
                "fold": fold,
                "user": ratings.user_ids.take(kept["users"]),
                "item": ratings.item_ids.take(kept["items"]),
            }
            columns |= {
                name: kept[name] for name in ("rating", "prediction", "score") if name in kept
            }
            if "place" in kept:
                ranked = (kept["place"] > 0) & (kept["place"] <= len(ratings.item_ids))
                columns["place"] = np.where(ranked, kept["place"], np.nan)
            if "p" in kept:
                names = [f"p_{value:g}" for value in kept["scale"]]
                columns |= dict(zip(names, kept["p"].T, strict=True))
            frames.append(pd.DataFrame(columns))
        if not frames:
            raise ArgumentError("predictions were not kept: evaluate with keep_predictions=True")
        return pd.concat(frames, ignore_index=True)

    def overlap(self, k: int = 10, *, level: float = 0.95, seed: int = 0) -> pd.DataFrame:
        """Return how much the lists of two models have in common, if ``keep_predictions`` was set.

        Parameters
        ----------
        k : int
            Length of the lists, at most 20 unless a metric has longer ones.
        level, seed
            As in `ordrec.evaluation.significance.bootstrap_interval`.

        Returns
        -------
        DataFrame
            ``model other overlap low high``: the number of items that are among the first ``k`` of
            both models over ``k``, as a mean over users, with an interval over draws of users.
        """
        lists: dict[str, dict[tuple[str, int], set[int]]] = {}
        for model, fold, found in self.measured:
            kept = found.predictions or {}
            if "list_items" in kept:
                if kept["list_items"].shape[1] < min(k, len(self._evaluated().item_ids)):
                    raise ArgumentError(f"k must be at most {kept['list_items'].shape[1]}, got {k}")
                for user, items in zip(kept["list_users"], kept["list_items"], strict=True):
                    mine = lists.setdefault(model, {})
                    mine[fold, int(user)] = {int(item) for item in items[:k] if item >= 0}
        if not lists:
            raise ArgumentError(
                "lists were not kept: evaluate with keep_predictions=True and a metric of lists, "
                "such as ndcg@10"
            )
        rows = []
        for model, other in itertools.combinations(lists, 2):
            both = [key for key in lists[model] if key in lists[other]]
            shared = [len(lists[model][key] & lists[other][key]) / k for key in both]
            users = [user for _, user in both]
            if len(set(users)) > 1:
                low, mean, high = bootstrap_interval(shared, users, level=level, seed=seed)
            else:
                low, mean, high = float("nan"), float(np.mean(shared)), float("nan")
            rows.append((model, other, mean, low, high))
        return pd.DataFrame(rows, columns=["model", "other", "overlap", "low", "high"])

    def _evaluated(self) -> Ratings:
        if self.ratings is None:
            raise ArgumentError("there are no users here: this is not an evaluation on ratings")
        return self.ratings

    # ---- several data sets and seeds ------------------------------------------------------------

    def scores(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Return values for paired comparisons, one column per model.

        There is one row per data set, fold and seed.
        Where the metric has several averages, ``average`` must name one.
        """
        chosen = self._of(metric, average)
        wide = chosen.pivot(index=["data", "fold", "seed"], columns="model", values="value")
        keys = chosen[["data", "fold", "seed"]].drop_duplicates()
        return wide.loc[[tuple(key) for key in keys.to_numpy()], list(chosen["model"].unique())]

    def means(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Return means over folds and seeds: one row per data set, one column per model."""
        return self._by_data(metric, average).mean().loc[self._data_order(metric)]

    def errors(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Return standard errors of `means`; NaN where there is only one fold and seed."""
        return self._by_data(metric, average).sem().loc[self._data_order(metric)]

    def seconds(self) -> pd.DataFrame:
        """Return mean seconds per cell: rows are model and data, columns fit and predict."""
        return self._mean_seconds(["model", "data"])

    def _of(self, metric: str, average: str | None) -> pd.DataFrame:
        chosen = self._of_users("all")
        chosen = chosen[chosen["metric"] == metric]
        if average is not None:
            chosen = chosen[chosen["average"] == average]
        if chosen.empty:
            known = ", ".join(self.frame["metric"].unique()) or "none at all"
            raise ArgumentError(f"there are no values of {metric!r} here, only of {known}")
        if chosen["average"].nunique() > 1:
            raise ArgumentError(f'{metric} has several averages: ask for "micro" or "macro"')
        return chosen

    def _by_data(self, metric: str, average: str | None) -> Any:
        return self.scores(metric, average).groupby(level="data")

    def _data_order(self, metric: str) -> list[str]:
        return list(self.frame.loc[self.frame["metric"] == metric, "data"].unique())

    # ---- files ----------------------------------------------------------------------------------

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the frame, completely or not at all, and return the path."""
        return write_text(path, self.frame.to_csv(index=False))

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write the frame and the manifest, completely or not at all, and return the path."""
        from ordrec import __version__

        records = json.loads(self.frame.to_json(orient="records", double_precision=15))
        content = {
            "ordrec": __version__,
            "split": self.split,
            "decision": self.decision,
            "times": self.times,
            "seed": self.seed,
            "models": self.models,
            "circumstances": self.manifest,
            "failures": self.failures.to_dict("records"),
            "comparison": json.loads(
                self.comparison.to_json(orient="records", double_precision=15)
            ),
            "results": records,
        }
        return write_text(path, json.dumps(content, indent=1) + "\n")

    def write(self, folder: str | Path) -> Path:
        """Write ``results.csv``, ``failures.csv`` and ``manifest.json`` into a folder."""
        folder = make_folder(folder)
        write_text(folder / "results.csv", self.frame.to_csv(index=False))
        write_text(folder / "failures.csv", self.failures.to_csv(index=False))
        write_text(folder / "manifest.json", json.dumps(self.manifest, indent=1) + "\n")
        return folder

    def _mean_seconds(self, by: Sequence[str]) -> pd.DataFrame:
        """Return the mean seconds to fit and to predict, one row per group of folds."""
        folds = self.frame.drop_duplicates(["data", "model", "fold", "seed"])
        grouped = folds.groupby(list(by), sort=False)
        return grouped[["fit_seconds", "predict_seconds"]].mean()

    def _of_users(self, users: str) -> pd.DataFrame:
        """The rows of a group of users; problems without groups have all of them."""
        if "users" not in self.frame:
            return self.frame if users == "all" else self.frame[:0]
        return self.frame[self.frame["users"] == users]

    def _shown(self, averages: dict[str, str], users: str) -> pd.DataFrame:
        if users not in ("all", "warm", "cold", *self.user_groups):
            raise ArgumentError(
                f"users must be one of {', '.join(self.user_groups)}, got {users!r}"
            )
        chosen = self._of_users(users)
        return chosen[chosen["average"] == chosen["metric"].map(averages)]

    @property
    def _describes_one_evaluation(self) -> bool:
        """Whether the columns of an evaluation of one set of ratings are all there."""
        return set(COLUMNS) <= set(self.frame) and self.frame["data"].nunique() <= 1

    def __repr__(self) -> str:
        if self._describes_one_evaluation:
            return f"<EvaluationResult {self.caption()}\n{self.summary()}>"
        data, models = self.frame["data"].nunique(), self.frame["model"].nunique()
        return (
            f"<EvaluationResult: {models} models, {data} data sets, {len(self.frame)} values, "
            f"{len(self.failures)} failed cells>"
        )

    def _repr_html_(self) -> str | None:
        """The table in a notebook; None, for the text, where there are several data sets."""
        if not self._describes_one_evaluation:
            return None
        return self.table().html(" ".join(filter(None, [self.caption(), self.test_caption()])))


def _user_values(sums: UserSums) -> np.ndarray:
    """Return each user's own value; NaN for a user who adds nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(sums.counts > 0, sums.sums / sums.counts, np.nan)
    return np.sqrt(values) if sums.root else values


def _listed(groups: dict[str, str]) -> str:
    """Write ``{"mae": "micro", "fcp": "macro"}`` as ``micro for mae, macro for fcp``."""
    names: dict[str, list[str]] = {}
    for metric, group in groups.items():
        names.setdefault(group, []).append(metric)
    return ", ".join(f"{group} for {' '.join(metrics)}" for group, metrics in names.items())


def _both(first: dict[str, str], second: dict[str, str]) -> dict[str, str]:
    """Return all entries; where both have different texts, one after the other."""
    merged = dict(first)
    for name, text in second.items():
        known = merged.get(name, text)
        merged[name] = known if text in known.split("; ") else f"{known}; {text}"
    return merged
