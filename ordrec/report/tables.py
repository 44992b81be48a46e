"""Results as tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordrec.errors import visible
from ordrec.evaluation.metrics.measures import as_losses
from ordrec.evaluation.result import EvaluationResult
from ordrec.evaluation.tuning.model import TunedModel

__all__ = [
    "dataset_table",
    "overlap_table",
    "pipeline_table",
    "print_summary",
    "summary_tables",
    "tuning_table",
]

SIGNS = {"±": "+-"}  # for terminals that can show ASCII only


def print_summary(
    console: Console, result: EvaluationResult, average: str = "micro", users: str = "all"
) -> None:
    """Print `summary_tables`, and what they show in footnotes as wide as the terminal."""
    plain = not _shows(console, "".join(SIGNS))
    for table in summary_tables(result, average, users, plain=plain, width=console.width):
        console.print(table)
    notes = " ".join(filter(None, [result.caption(average, users), result.test_caption()]))
    console.print(_spelt(visible(notes), plain), style="dim", highlight=False, markup=False)


def summary_tables(
    result: EvaluationResult,
    average: str = "micro",
    users: str = "all",
    *,
    plain: bool = False,
    width: int | None = None,
) -> list[Table]:
    """Return the table of a result, see `ordrec.evaluation.table.ResultTable.rich`.

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
    return result.table(average, users).rich(
        title=None if result.user_groups == ["all"] else f"{users} users, {average}",
        failed=() if result.complete else set(result.failures["model"]),
        width=width,
        sign=_spelt("±", plain),
    )


def overlap_table(result: EvaluationResult, k: int) -> Table:
    """Return which share of the first ``k`` items of a list each two models have in common."""
    table = Table(title=f"common to the first {k} items, with 95 % intervals", title_justify="left")
    for name in ("model", "other", "overlap", "from", "to"):
        table.add_column(name, justify="left" if name in ("model", "other") else "right")
    shared = result.overlap(k)
    numbers = shared[["overlap", "low", "high"]].to_numpy()
    for model, other, row in zip(shared["model"], shared["other"], numbers, strict=True):
        table.add_row(_name(model), _name(other), *(f"{number:.4f}" for number in row))
    return table


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


def _name(text: str) -> Text:
    """A name of a stranger's, in which nothing is taken for a sign of the terminal or of rich."""
    return Text(visible(text))


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
