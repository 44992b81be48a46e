"""The result of an evaluation: a tidy frame, its summaries and captions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.evaluation.drawing import interval_chart
from ordrec.evaluation.example_users import ExampleUser
from ordrec.evaluation.latex import latex_table
from ordrec.evaluation.significance.against_best import COLUMNS as COMPARISON_COLUMNS
from ordrec.evaluation.summary_table import SummaryTable
from ordrec.evaluation.tidy_result import TidyResult
from ordrec.runtime.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "EvaluationResult", "Standing"]

COLUMNS = [
    "data", "model", "split", "fold", "n_test", "n_cold_users", "n_cold_items", "n_cold_ratings",
    "given", "fit_seconds", "predict_seconds", "metric", "average", "users", "decision",
    "candidates", "value", "n", "seed",
]  # fmt: skip


class Standing(NamedTuple):
    """Half the interval of a value, and whether it is not significantly worse than the best."""

    half_width: float
    tied: bool

    @property
    def mark(self) -> str:
        """The mark behind the value in a table."""
        return "~" if self.tied else ""


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult(TidyResult):
    """The result of `ordrec.evaluation.evaluate`.

    Attributes
    ----------
    frame : DataFrame
        One row per model, fold, metric, average and group of users, with the columns ``data
        model split fold n_test n_cold_users n_cold_items n_cold_ratings given fit_seconds
        predict_seconds metric average users decision candidates value n seed``. ``average`` is
        "micro" (pooled over ratings) or "macro" (mean over users); ``users`` is "all", "warm" or
        "cold"; ``n`` is the number of ratings or users averaged; ``decision`` is what turned a
        distribution into a rating, "point" for a model without distributions, "none" where the
        distribution itself is measured; ``candidates`` is what a ranking metric ranks;
        ``n_cold_...`` count users, items and ratings unseen in training.
    split : str
        The split with all its parameters.
    decision : str
        As requested.
    seed : int
    models : dict of str
        The name of each model and its parameters.
    comparison : DataFrame
        Intervals, and tests against the best model, from
        `ordrec.evaluation.significance.against_best`.
    failures : DataFrame
        ``data model split fold error`` of each model that failed on a fold.
    manifest : dict
        Versions, command, data checksum, seed.
    distributions : dict of str
        Levels and predicted distributions of the test ratings, for each model that has them, if
        ``keep_distributions`` was set.
    examples : dict of str
        Five users as each model sees them, in its first fold (`ExampleUser`), likewise.
    """

    frame: pd.DataFrame
    split: str
    decision: str
    seed: int
    models: dict[str, str]
    comparison: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=COMPARISON_COLUMNS)
    )
    failures: pd.DataFrame = field(default_factory=pd.DataFrame)
    manifest: dict[str, Any] = field(default_factory=dict)
    distributions: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    examples: dict[str, list[ExampleUser]] = field(default_factory=dict)

    @property
    def times(self) -> str:
        """Whether models saw the times of the test ratings, "known" or "unknown"; "none" without.

        Results of earlier versions, which do not say, have "none" too.
        """
        about = str(self.manifest.get("times", "")).split()
        return next((word for word in ("known", "unknown") if word in about), "none")

    @property
    def user_groups(self) -> list[str]:
        """The groups of users that were measured: "all" and, if present, "warm" and "cold"."""
        return [group for group in ("all", "warm", "cold") if (self.frame["users"] == group).any()]

    def summary(self, average: str = "micro", users: str = "all") -> pd.DataFrame:
        """Return means over the folds: one row per model, one column per metric, and seconds.

        A metric without the requested average appears with the one it has (see `averages`).
        Values are NaN where a metric does not apply to a model, or the model failed. Printed, the
        table fits a terminal of 80 columns.
        """
        averages = self.averages(average)
        shown = self._shown(averages, users)
        means = shown.groupby(["model", "metric"])["value"].mean()
        table = means.unstack().reindex(index=list(self.models), columns=list(averages))
        table = table.join(self._mean_seconds(["model"]))
        table.columns.name = None
        return SummaryTable(table)

    def averages(self, average: str = "micro") -> dict[str, str]:
        """Return the average that `summary` shows for each metric."""
        if average not in ("micro", "macro"):
            raise ArgumentError(f'average must be "micro" or "macro", got {average!r}')
        return {
            metric: average if average in measured else measured[0]
            for metric, measured in self.available_averages().items()
        }

    def standings(
        self, average: str = "micro", users: str = "all"
    ) -> dict[tuple[str, str], Standing]:
        """Return how certain the values of `summary` are, by metric and model."""
        averages = self.averages(average)
        chosen = self.comparison[self.comparison["users"] == users]
        chosen = chosen[chosen["average"] == chosen["metric"].map(averages)]
        half = (chosen["high"] - chosen["low"]) / 2
        tied = chosen["verdict"] == "tied"
        keys = zip(chosen["metric"].astype(str), chosen["model"].astype(str), strict=True)
        found = zip(half.tolist(), tied.tolist(), strict=True)
        return {key: Standing(*each) for key, each in zip(keys, found, strict=True)}

    def intervals(self, average: str = "micro", users: str = "all") -> pd.DataFrame:
        """Return the values of `summary`, one row each, with their intervals and verdicts.

        Returns
        -------
        DataFrame
            ``metric``, ``model``, ``value``, ``low``, ``high`` and ``verdict`` ("best", "tied",
            "worse"); the last three are empty where nothing was tested.
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
            f"fold{'s' if len(folds) > 1 else ''}, {n_test} test ratings; unseen in training: "
            f"{cold_users} users, {cold_items} items, {cold} test ratings. Averages: {by_average}."
        )
        if by_decision:
            text += f" Decision {self.decision!r}: {by_decision}."
        if (self.frame["decision"] == "point").any():
            text += " Models without probabilities: their number, rounded where a rank is needed."
        if self.times != "none":
            text += f" Times: {self.manifest['times']}."
        ranked = self.frame[self.frame["candidates"] == "catalogue"]
        if len(ranked):
            macro = ranked[ranked["average"] == "macro"]
            n_users = (macro if len(macro) else ranked).groupby("model", sort=False)["n"].max()
            fewest, most = n_users.min(), n_users.max()
            text += (
                f" {' '.join(ranked['metric'].unique())}: over the whole catalogue except what the "
                f"user rated in training, {'' if fewest == most else f'{fewest} to '}{most} users."
            )
        if users != "all":
            text += f" Here {users} users only; cold: {self.manifest['cold users']}."
        return text

    def test_caption(self) -> str:
        """Return what intervals and marks mean; empty where there are none."""
        if self.comparison.empty:
            return ""
        return (
            "±: half the 95 % interval, from draws of whole users with replacement. Best in bold; "
            "~: not significantly worse than the best (difference over the same draws of users, "
            "two-sided, 5 %, Holm's steps over the models)."
        )

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
        standings = self.standings(average, users)
        return latex_table(shown, standings, digits=digits, caption=caption, label=label)

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

    def _shown(self, averages: dict[str, str], users: str) -> pd.DataFrame:
        if users not in ("all", "warm", "cold"):
            raise ArgumentError(f'users must be "all", "warm" or "cold", got {users!r}')
        chosen = self.frame[self.frame["users"] == users]
        return chosen[chosen["average"] == chosen["metric"].map(averages)]

    def __repr__(self) -> str:
        return f"<EvaluationResult {self.caption()}\n{self.summary()}>"


def _listed(groups: dict[str, str]) -> str:
    """Write ``{"mae": "micro", "fcp": "macro"}`` as ``micro for mae, macro for fcp``."""
    names: dict[str, list[str]] = {}
    for metric, group in groups.items():
        names.setdefault(group, []).append(metric)
    return ", ".join(f"{group} for {' '.join(metrics)}" for group, metrics in names.items())
