"""Results as tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordrec.evaluation.metrics.measures import as_losses
from ordrec.evaluation.result import EvaluationResult, Standing
from ordrec.evaluation.tuning.model import TunedModel

__all__ = ["dataset_table", "pipeline_table", "print_summary", "summary_tables", "tuning_table"]

BORDER = 3  # of a column: two blanks and a line
SIGNS = {"±": "+-"}  # for terminals that can show ASCII only


def print_summary(
    console: Console, result: EvaluationResult, average: str = "micro", users: str = "all"
) -> None:
    """Print `summary_tables`, and what they show in footnotes as wide as the terminal."""
    plain = not _shows(console, "".join(SIGNS))
    for table in summary_tables(result, average, users, plain=plain, width=console.width):
        console.print(table)
    notes = " ".join(filter(None, [result.caption(average, users), result.test_caption()]))
    console.print(_spelt(notes, plain), style="dim", highlight=False, markup=False)


def summary_tables(
    result: EvaluationResult,
    average: str = "micro",
    users: str = "all",
    *,
    plain: bool = False,
    width: int | None = None,
) -> list[Table]:
    """Return one row per model and one column per metric, half the interval below each value.

    The best value of a column is bold; ``~`` follows those that are not significantly worse. What
    does not fit beside the other columns goes into a further table.

    Parameters
    ----------
    result : EvaluationResult
    average, users : str
        As in `EvaluationResult.summary`.
    plain : bool
        Whether the tables consist of ASCII characters.
    width : int, optional
        Of the terminal; one table by default.
    """
    summary, standings = result.summary(average, users), result.standings(average, users)
    failed = set() if result.complete else set(result.failures["model"])
    names = [f"{model} (failed)" if model in failed else str(model) for model in summary.index]
    columns: dict[str, list[str]] = {}
    for column in map(str, summary.columns):
        best = _best(summary[column])
        columns[column.replace("_seconds", " s")] = [
            _spelt(_cell(column, value, best, standings.get((column, str(model)))), plain)
            for model, value in summary[column].items()
        ]
    title = None if result.user_groups == ["all"] else f"{users} users, {average}"
    return [
        _table_of(title if number == 0 else None, names, {key: columns[key] for key in part})
        for number, part in enumerate(_parts_that_fit(names, columns, width))
    ]


def _table_of(title: str | None, names: list[str], columns: dict[str, list[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("model", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for row, name in enumerate(names):
        table.add_row(name, *(cells[row] for cells in columns.values()))
    return table


def _parts_that_fit(
    names: list[str], columns: dict[str, list[str]], width: int | None
) -> list[list[str]]:
    """Cut the columns into parts that fit into the width beside the names of the models."""
    beside = 1 + max(map(len, ["model", *names])) + BORDER
    parts: list[list[str]] = [[]]
    used = beside
    for column, cells in columns.items():
        lines = [line for cell in cells for line in Text.from_markup(cell).plain.split("\n")]
        needed = max(map(len, [column, *lines])) + BORDER
        if width is not None and parts[-1] and used + needed > width:
            parts.append([])
            used = beside
        parts[-1].append(column)
        used += needed
    return parts


def tuning_table(found: TunedModel, n_rows: int) -> Table:
    """Return the best settings of a search, best first, and the defaults, marked by ``*``.

    Parameters
    ----------
    found : TunedModel
    n_rows : int
        The number of settings shown, besides the defaults.
    """
    tried = found.table[found.table["error"] == ""]
    order = as_losses(found.metric, tried["score"]).sort_values(kind="stable").index
    shown = [number for place, number in enumerate(order) if place < n_rows or number == 0]
    skipped = ("score", "seconds", "error")
    names = [
        str(name)
        for name in found.table.columns
        if name not in skipped and not str(name).startswith("fold ")
    ]
    table = Table()
    for title in (found.metric, *names, "s"):
        table.add_column(title, justify="right", overflow="fold")
    for place, number in enumerate(shown):
        row = tried.loc[number]
        score = f"{row['score']:.4f}{'*' if number == 0 else ' '}"
        values = [_parameter(row[name]) for name in names]
        bold = "bold" if place == 0 else None
        table.add_row(score, *values, f"{row['seconds']:.1f}", style=bold)
    return table


def _parameter(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shows(console: Console, text: str) -> bool:
    """Whether a console can show a text."""
    try:
        text.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _spelt(text: str, plain: bool) -> str:
    for sign, spelling in SIGNS.items() if plain else ():
        text = text.replace(sign, spelling)
    return text


def dataset_table(rows: list[tuple[str, str, str, str]]) -> Table:
    """Return a table of data sets: name, title, size, and where they were found."""
    table = Table()
    for title in ("name", "data set", "size", "found"):
        table.add_column(title, no_wrap=title == "name", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def pipeline_table(pipelines: Iterable[Any]) -> Table:
    """Return a table of published experiments: name, title, source, and running time."""
    table = Table()
    for title in ("name", "experiment", "published in", "takes"):
        table.add_column(title, no_wrap=title == "name", overflow="fold")
    for pipeline in pipelines:
        table.add_row(pipeline.name, pipeline.title, pipeline.source, pipeline.time)
    return table


def _best(values: pd.Series) -> float:
    name = str(values.name)
    if name.endswith("_seconds") or values.count() < 2:
        return np.nan
    return float(values[as_losses(name, values).idxmin()])


def _cell(column: str, value: float, best: float, standing: Standing | None) -> str:
    if np.isnan(value):
        return "-"
    if column.endswith("_seconds"):
        return f"{value:.2f}"
    text = f"{value:.4f}"
    if np.isclose(value, best, rtol=0, atol=5e-5):
        text = f"[bold]{text}[/bold]"
    if standing is None:
        return text
    return f"{text}{standing.mark}\n[dim]±{standing.half_width:.4f}[/dim]"
