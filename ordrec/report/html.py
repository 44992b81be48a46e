"""Reports as one html file that contains its tables and figures and needs no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ordrec.evaluation.metrics.measures import as_losses, higher_is_better
from ordrec.evaluation.result import EvaluationResult
from ordrec.report.figures import (
    box_plots,
    critical_difference_diagram,
    inline_svg,
    save_figure,
    time_against_accuracy,
)
from ordrec.runtime.files import make_folder, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FigureGrid",
    "FigureSection",
    "Report",
    "Section",
    "TableSection",
    "experiment_report",
    "means_table",
]

WIDE = 80  # letters in the headings above which a table may be transposed
LONG = 24  # letters in a line of a cell above which it is text, and wrapped
MANY = 4  # columns above which a table becomes a list of cards in a narrow window
_TITLES = {
    "mze": "Mean zero-one error (mze)",
    "mae": "Mean absolute error (mae)",
    "rmse": "Root mean squared error (rmse)",
    "log_loss": "Negative log-likelihood (log_loss)",
}


@dataclass(frozen=True)
class TableSection:
    """A table of a report: a frame with its index as the first column.

    ``mark`` takes a row's name, a column's name and the value and returns "best", "far" or "". A
    ``folded`` table is shown when its title is clicked, and on paper.
    """

    title: str
    frame: pd.DataFrame
    caption: str = ""
    text: str = ""
    mark: Callable[[Any, Any, Any], str] | None = None
    folded: bool = False


@dataclass(frozen=True)
class FigureSection:
    """A figure of a report; ``name`` is also the name of its files."""

    title: str
    figure: Figure
    name: str
    caption: str = ""
    text: str = ""


@dataclass(frozen=True)
class FigureGrid:
    """Small figures side by side, as many as the window has room for.

    ``figures`` are triples: a name (of the files, too), a text for screen readers, and the figure.
    """

    title: str
    figures: list[tuple[str, str, Figure]]
    caption: str = ""
    text: str = ""


Section = TableSection | FigureSection | FigureGrid


class Cell(NamedTuple):
    """The text of a table cell and its style."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Report:
    """The content of a page.

    Attributes
    ----------
    title : str
    lead : list of str
        Paragraphs below the title.
    sections : list of TableSection, FigureSection or FigureGrid
    manifest : dict
        As in `EvaluationResult`.
    failures : DataFrame, optional
        Cells that failed, shown first.
    notes : list of str
        Paragraphs about how the results came about, which are folded.
    """

    title: str
    lead: list[str]
    sections: Sequence[Section]
    manifest: dict[str, Any] = field(default_factory=dict)
    failures: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)

    def html(self) -> str:
        """Return the page as html."""
        import jinja2

        source = resources.files("ordrec.report").joinpath("template.html").read_text("utf-8")
        template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        failed = pd.DataFrame() if self.failures is None else self.failures
        return template.from_string(source).render(
            report=self,
            sections=[_rendered(section) for section in self.sections],
            facts=_facts(self.manifest),
            n_failed=len(failed),
            failures=_grouped(failed),
        )

    def write(self, folder: str | Path) -> Path:
        """Write ``report.html`` and every figure as svg and pdf; return the path of the page."""
        folder = make_folder(folder)
        for section in self.sections:
            for name, _, figure in _figures_of(section):
                save_figure(figure, folder / "figures" / name)
        return write_text(folder / "report.html", self.html())


def experiment_report(
    result: EvaluationResult,
    title: str,
    *,
    lead: list[str] | None = None,
    average: str | None = None,
) -> Report:
    """Return the usual report of an experiment.

    It has a table of means with standard errors and box plots for each metric, a
    critical-difference diagram for at least three models on at least four data sets, and time
    against the first metric.

    Parameters
    ----------
    result : EvaluationResult
    title : str
    lead : list of str, optional
    average : {"micro", "macro"}, optional
        The average to show for metrics that have both.
    """
    sections: list[Section] = []
    averages = result.available_averages()
    metrics = list(averages)
    for metric in metrics:
        measured = averages[metric]
        chosen = average if average in measured else measured[0]
        sections.append(means_table(result, metric, chosen))
        rows = result.frame[result.frame["average"] == chosen]
        if rows.groupby(["data", "model"]).size().max() > len(metrics):
            sections.append(
                FigureSection(
                    f"{metric} over the folds",
                    box_plots(rows, metric),
                    f"box-{_plain(metric)}",
                    "Boxes from the first to the third quartile, a line at the median, whiskers to "
                    "the last value within 1.5 times the box.",
                )
            )
        means = result.means(metric, chosen).dropna(axis=1)
        if means.shape[1] >= 3 and means.shape[0] >= 4:
            sections.append(
                FigureSection(
                    f"Average ranks by {metric}",
                    critical_difference_diagram(means, higher_is_better=higher_is_better(metric)),
                    f"ranks-{_plain(metric)}",
                    "Average rank over the data sets; 1 is best. A bar joins models that "
                    "Nemenyi's test at 5 % cannot distinguish.",
                )
            )
    if metrics and result.frame["model"].nunique() > 1:
        sections.append(
            FigureSection(
                "Time against accuracy",
                time_against_accuracy(result.frame, metrics[0]),
                "time",
                f"Mean seconds per fit, without compilation, and mean {metrics[0]}, over all data "
                "sets and folds.",
            )
        )
    return Report(title, lead or [], sections, result.manifest, result.failures)


def means_table(result: EvaluationResult, metric: str, average: str | None = None) -> TableSection:
    """Return means ± standard errors, one row per data set; the best of a row is marked.

    Where the names of the models would make the table too wide and there are fewer data sets,
    the table is transposed.
    """
    means, errors = result.means(metric, average), result.errors(metric, average)
    losses = as_losses(metric, means)
    best = losses.min(axis=1)
    mean_texts = means.map(lambda value: "" if np.isnan(value) else f"{value:.4f}")
    error_texts = errors.map(
        lambda value: "" if np.isnan(value) else f" ±\N{NO-BREAK SPACE}{value:.4f}"
    )
    texts = mean_texts + error_texts
    named = "" if average is None else f", {average} average"
    transposed = sum(len(str(model)) for model in means) > WIDE and len(means) < means.shape[1]

    def mark(row: Any, column: Any, _: Any) -> str:
        data, model = (column, row) if transposed else (row, column)
        return "best" if losses.loc[data, model] == best[data] else ""

    return TableSection(
        _TITLES.get(metric, metric),
        texts.T if transposed else texts,
        f"Mean over folds and seeds ± its standard error{named}. "
        f"{'Higher' if higher_is_better(metric) else 'Lower'} is better; the best of a "
        f"{'column' if transposed else 'row'} is bold.",
        mark=mark,
    )


def _figures_of(section: Section) -> list[tuple[str, str, Figure]]:
    """Name, description and figure of each figure of a section."""
    if isinstance(section, FigureSection):
        return [(section.name, section.title, section.figure)]
    return section.figures if isinstance(section, FigureGrid) else []


def _rendered(section: Section) -> dict[str, Any]:
    shared = {"title": section.title, "caption": section.caption, "text": section.text}
    if not isinstance(section, TableSection):
        drawn = [inline_svg(figure, name, said) for name, said, figure in _figures_of(section)]
        grid = isinstance(section, FigureGrid)
        return shared | {"svgs": drawn, "kind": "grid" if grid else "", "folded": False}
    frame, mark = section.frame, section.mark
    rows = []
    for position, name in enumerate(frame.index):
        cells = [Cell(str(part), "name") for part in (name if isinstance(name, tuple) else (name,))]
        for column in frame.columns:
            value = frame[column].iloc[position]
            kind = mark(name, column, value) if mark is not None else ""
            words = isinstance(value, str) and max(map(len, value.split("\n"))) > LONG
            cells.append(Cell(_text(value), "text" if words else kind))
        rows.append(cells)
    kinds = {cell.kind for cells in rows for cell in cells}
    names = [
        Cell(str(column), "text" if any(cells[place].kind == "text" for cells in rows) else "")
        for place, column in enumerate(frame.columns, frame.index.nlevels)
    ]
    levels = ["" if name is None else str(name) for name in frame.index.names]
    return shared | {
        "svgs": [],
        "folded": section.folded,
        "kind": "cards" if len(names) > MANY or "text" in kinds else "",
        "levels": levels,
        "columns": names,
        "rows": rows,
    }


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def _grouped(failures: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one row for all folds and seeds on which a model failed with the same error."""
    if failures.empty:
        return []
    counted = failures.groupby(["model", "data", "error"], sort=False).size()
    return counted.rename("cells").reset_index().to_dict("records")  # type: ignore[return-value]


def _facts(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of a name and a text, in the order of the manifest."""
    names = {"data": "data checksums", "cells_from_store": "cells taken from earlier runs"}
    facts = []
    for name, value in manifest.items():
        if isinstance(value, dict):
            value = "; ".join(f"{key}: {item}" for key, item in value.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        facts.append((names.get(name, name), str(value)))
    return facts


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
