"""The report of an evaluation: tables with intervals, time against accuracy, reliability."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ordrec.evaluation.metrics.measures import as_losses
from ordrec.evaluation.result import EvaluationResult, Standing
from ordrec.report.figures import reliability_diagram, time_against_accuracy
from ordrec.report.html import FigureSection, Report, TableSection

__all__ = ["evaluation_report"]


def evaluation_report(result: EvaluationResult, title: str = "") -> Report:
    """Return a page about the result of `ordrec.evaluation.evaluate`.

    It has tables of both averages for all users and, if there are cold users, for warm and cold
    users separately; seconds against the first metric; and a reliability diagram of each model
    whose distributions were kept.

    Parameters
    ----------
    result : EvaluationResult
    title : str
        By default made from the name of the data.
    """
    names = ", ".join(result.manifest.get("data", {}))
    sections: list[TableSection | FigureSection] = [
        _table(result, average, users)
        for users in result.user_groups
        for average in ("micro", "macro")
    ]
    if not result.frame.empty:
        first = result.frame["metric"].iloc[0]
        average = result.averages()[first]
        rows = result.frame[(result.frame["users"] == "all") & (result.frame["average"] == average)]
        sections.append(
            FigureSection(
                "Time against accuracy",
                time_against_accuracy(rows, first),
                "time",
                f"Mean seconds per fit and mean {first} ({average}) over the folds.",
            )
        )
    for number, (model, (levels, probabilities)) in enumerate(result.distributions.items()):
        sections.append(
            FigureSection(
                f"Reliability of {model}",
                reliability_diagram(levels, probabilities),
                f"reliability-{number}",
                f"{len(levels)} test ratings, the probabilities of all their ranks together.",
            )
        )
    lead = [result.caption(), result.test_caption()]
    return Report(
        title or f"Rating models on {names}",
        [text for text in lead if text],
        sections,
        result.manifest,
        result.failures,
    )


def _table(result: EvaluationResult, average: str, users: str) -> TableSection:
    """Return values with half intervals; the best is bold, ~ marks those not worse."""
    summary, standings = result.summary(average, users), result.standings(average, users)
    shown, best = {}, {}
    for column, values in summary.items():
        name = str(column)
        if name.endswith("_seconds"):
            shown[name.replace("_seconds", " s")] = values.map("{:.2f}".format)
            continue
        best[name] = as_losses(name, values).min()
        shown[name] = pd.Series(
            {
                model: _cell(values[model], standings.get((name, str(model))))
                for model in values.index
            }
        )
    names = {"all": "All users", "warm": "Warm users", "cold": "Cold users"}
    return TableSection(
        f"{names[users]}, {average} average",
        pd.DataFrame(shown).rename_axis("model"),
        f"Metrics without a {average} average appear with the one they have."
        + ("" if users == "all" else f" Cold: {result.manifest['cold users']}."),
        mark=lambda row, column, _: (
            "best"
            if column in best and as_losses(column, summary.loc[row, column]) == best[column]
            else ""
        ),
    )


def _cell(value: float, standing: Standing | None) -> str:
    if np.isnan(value):
        return ""
    if standing is None:
        return f"{value:.4f}"
    return f"{value:.4f}{standing.mark} ± {standing.half_width:.4f}"
