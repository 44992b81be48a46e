"""The table of a result: computed once, shown as text, on a terminal, as html and as LaTeX."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from ordrec.errors import visible
from ordrec.evaluation.metrics.measures import as_losses, direction

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["ResultTable", "Standing", "SummaryTable", "best_value", "escaped"]

WIDTH = 80  # characters of a line of text
BORDER = 3  # of a column on a terminal: two blanks and a line
SECONDS = "_seconds"  # ending of the names of columns that are not metrics
PRINTED_ALIKE = 5e-5  # values that differ by less are equally good
NARROW = "\N{NARROW NO-BREAK SPACE}"
DAGGER = r"$^{\dagger}$"
LATEX_MARKS = {"": "", "~": DAGGER, "+": "$^{+}$", "-": "$^{-}$"}
LATEX_ARROWS = {"↓": r"$\downarrow$", "↑": r"$\uparrow$"}
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
}  # fmt: skip


class Standing(NamedTuple):
    """Half the interval of a value, and the mark behind it.

    ``~`` is not significantly worse than the best; against a reference, ``+`` is significantly
    better, ``-`` significantly worse and ``~`` neither.
    """

    half_width: float
    mark: str = ""


class TableCell(NamedTuple):
    """A value with as many digits as are shown, whether it is the best, and how certain it is."""

    text: str
    best: bool = False
    standing: Standing | None = None
    half_width: str = ""


@dataclass(frozen=True)
class ResultTable:
    """One row per model and one column per metric, with half intervals, best values and marks.

    Attributes
    ----------
    models : list of str
    columns : dict of str to list of TableCell
        By metric, and ``fit_seconds`` and ``predict_seconds``; a cell without a value has no text.
    """

    models: list[str]
    columns: dict[str, list[TableCell]]

    @classmethod
    def of(
        cls,
        summary: pd.DataFrame,
        standings: Mapping[tuple[str, str], Standing] | None = None,
        digits: int = 4,
    ) -> ResultTable:
        """Return the table of values, one row per model and one column per metric.

        Parameters
        ----------
        summary : DataFrame
            NaN where a metric does not apply to a model.
        standings : mapping of (metric, model) to Standing, optional
        digits : int
            Behind the decimal point; seconds have two.
        """
        standings = standings or {}
        columns = {}
        for name in map(str, summary.columns):
            values = summary[name]
            shown = 2 if name.endswith(SECONDS) else digits
            best = best_value(values)
            cells = []
            for model, value in values.items():
                standing = standings.get((name, str(model)))
                leads = bool(np.isclose(value, best, rtol=0, atol=PRINTED_ALIKE))
                half = "" if standing is None else f"{standing.half_width:.{shown}f}"
                cell = TableCell(f"{value:.{shown}f}", leads, standing, half)
                cells.append(TableCell("") if np.isnan(value) else cell)
            columns[name] = cells
        return cls([str(model) for model in summary.index], columns)

    @property
    def tested(self) -> bool:
        """Whether any value has an interval."""
        return any(cell.standing for cells in self.columns.values() for cell in cells)

    # ---- text and terminal ---------------------------------------------------------------------

    def text(self, width: int = WIDTH) -> str:
        """Return text, with half intervals and marks; several blocks of columns if too wide."""
        names = [_shortened(visible(model)) for model in self.models]
        texts = pd.DataFrame(
            {_heading(name): [_plain_text(cell) for cell in cells]
             for name, cells in self.columns.items()},
            index=names,
        )  # fmt: skip
        widths = {name: max([len(name), *map(len, texts[name])]) + 2 for name in texts.columns}
        blocks = _fitting(widths, max(map(len, names), default=0), width)
        return "\n\n".join(texts[block].to_string(line_width=10 * width) for block in blocks)

    def rich(
        self,
        *,
        title: str | None = None,
        failed: Collection[str] = (),
        width: int | None = None,
        sign: str = "±",
    ) -> list[Table]:
        """Return tables for a terminal, half the interval below each value.

        The best value of a column is bold; ``~`` follows those that are not significantly worse.
        What does not fit beside the other columns goes into a further table.

        Parameters
        ----------
        title : str, optional
        failed : collection of str
            Models that are marked.
        width : int, optional
            Of the terminal; one table by default.
        sign : str
            Before half an interval.
        """
        from rich.table import Table
        from rich.text import Text

        names = [
            visible(f"{model} (failed)" if model in failed else model) for model in self.models
        ]
        beside = 1 + max(map(len, ["model", *names])) + BORDER
        blocks = [list(self.columns)]
        if width is not None:
            widths = {
                name: BORDER
                + max(
                    len(_heading(name)),
                    *(len(cell.text) + len(_mark(cell)) for cell in cells),
                    *(len(sign + cell.half_width) for cell in cells if cell.standing),
                    1,
                )
                for name, cells in self.columns.items()
            }
            blocks = _fitting(widths, beside, width)
        tables = []
        for number, block in enumerate(blocks):
            table = Table(title=title if number == 0 else None, title_justify="left")
            table.add_column("model", no_wrap=True)
            for name in block:
                table.add_column(_heading(name), justify="right", no_wrap=True)
            for row, name in enumerate(names):
                table.add_row(Text(name), *(_rich_cell(self.columns[c][row], sign) for c in block))
            tables.append(table)
        return tables

    # ---- html ----------------------------------------------------------------------------------

    def frame(self) -> pd.DataFrame:
        """Return the texts for a page: arrows in the headings, half intervals below the values."""
        texts = {
            _arrow_heading(name): [_page_text(cell) for cell in cells]
            for name, cells in self.columns.items()
        }
        return pd.DataFrame(texts, index=pd.Index(self.models, name="model"))

    def is_best(self, model: Any, heading: Any) -> bool:
        """Whether the value in a column of `frame` is the best."""
        headings = {_arrow_heading(name): cells for name, cells in self.columns.items()}
        return headings[str(heading)][self.models.index(str(model))].best

    def html(self, caption: str = "") -> str:
        """Return a table for a notebook."""
        heads = "".join(f"<th>{html.escape(_arrow_heading(name))}</th>" for name in self.columns)
        rows = []
        for row, model in enumerate(self.models):
            cells = "".join(_html_cell(cells[row]) for cells in self.columns.values())
            rows.append(f"<tr><th>{html.escape(model)}</th>{cells}</tr>")
        said = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        return (
            f"<table>{said}<thead><tr><th>model</th>{heads}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )

    # ---- LaTeX ---------------------------------------------------------------------------------

    def latex(self, caption: str = "", label: str = "", against: str = "") -> str:
        """Return the table for the package booktabs; a dagger marks what is not worse.

        Against a reference, signs mark what is significantly better or worse. With a caption or a
        label, the tabular stands in a table whose caption explains the signs.
        """
        heads = [f"{escaped(name)} {_latex_arrow(name)}" for name in self.columns]
        lines = [
            rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
            r"\toprule",
            _latex_row(["model", *heads]),
            r"\midrule",
        ]
        for row, model in enumerate(self.models):
            cells = [_latex_cell(cells[row]) for cells in self.columns.values()]
            lines.append(_latex_row([escaped(model), *cells]))
        lines += [r"\bottomrule", r"\end{tabular}"]
        signs = "Best in bold."
        if self.tested and against:
            signs += (
                rf" $\pm$ half the 95\,\% interval; $^{{+}}$, $^{{-}}$ significantly better, worse "
                rf"than {escaped(against)}; {DAGGER} neither."
            )
        elif self.tested:
            signs += (
                rf" $\pm$ half the 95\,\% interval; {DAGGER} not significantly worse than the best."
            )
        if not (caption or label):
            return "\n".join([f"% needs \\usepackage{{booktabs}}. {signs}", *lines]) + "\n"
        said = f"{escaped(caption).rstrip('.')}. {signs}" if caption else signs
        named = [rf"\label{{{label}}}"] if label else []
        table = [r"\begin{table}", r"\centering", rf"\caption{{{said}}}", *named, *lines]
        return "\n".join([*table, r"\end{table}"]) + "\n"


class SummaryTable(pd.DataFrame):
    """A frame of results. Printed, no line is longer than 80 characters and nothing is left out.

    What is made of it, such as a selection, is an ordinary frame.

    Attributes
    ----------
    standings : mapping of (metric, model) to Standing
        Half intervals and marks, which are printed behind the values.
    note : str
        What they mean, which is printed below the table.
    """

    _metadata: ClassVar = ["standings", "note"]
    standings: Mapping[tuple[str, str], Standing] = {}
    note: str = ""

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def __str__(self) -> str:
        text = ResultTable.of(self, self.standings).text()
        note = visible(self.note.replace("Best in bold", "Best: *"))
        return "\n".join([text, *textwrap.wrap(note, WIDTH)])

    __repr__ = __str__


def best_value(values: pd.Series) -> float:
    """Return the best value of a metric, by its name; NaN for seconds, or if there is only one.

    Examples
    --------
    >>> best_value(pd.Series([0.2, 0.7, 0.5], name="ndcg@10"))
    0.7
    """
    name = str(values.name)
    if name.endswith(SECONDS) or values.count() < 2:
        return float("nan")
    return float(values[as_losses(name, values).idxmin()])


def escaped(text: str) -> str:
    r"""Return a text as LaTeX prints it, on one line.

    Examples
    --------
    >>> print(escaped("item_knn 50%"))
    item\_knn 50\%
    """
    return "".join(LATEX_SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def _heading(column: str) -> str:
    return column.replace(SECONDS, " s")


def _arrow_heading(column: str) -> str:
    return _heading(column) if column.endswith(SECONDS) else f"{column}{NARROW}{direction(column)}"


def _mark(cell: TableCell) -> str:
    return "" if cell.standing is None else cell.standing.mark


def _shortened(name: str) -> str:
    return name if len(name) <= WIDTH // 2 else f"{name[: WIDTH // 2 - 3]}..."


def _fitting(widths: Mapping[str, int], beside: int, width: int) -> list[list[str]]:
    """Cut the columns into blocks that fit into the width beside the names of the models."""
    blocks: list[list[str]] = [[]]
    used = beside
    for column, needed in widths.items():
        if blocks[-1] and used + needed > width:
            blocks.append([])
            used = beside
        blocks[-1].append(column)
        used += needed
    return blocks


def _plain_text(cell: TableCell) -> str:
    if cell.standing is None:
        return cell.text or "-"
    best = "*" if cell.best else cell.standing.mark
    return f"{cell.text}{best} ±{cell.half_width}"


def _rich_cell(cell: TableCell, sign: str) -> str:
    text = f"[bold]{cell.text}[/bold]" if cell.best else cell.text or "-"
    if cell.standing is None:
        return text
    return f"{text}{cell.standing.mark}\n[dim]{sign}{cell.half_width}[/dim]"


def _page_text(cell: TableCell) -> str:
    if cell.standing is None:
        return cell.text
    return f"{cell.text}{cell.standing.mark}\n±{NARROW}{cell.half_width}"


def _html_cell(cell: TableCell) -> str:
    text = html.escape(_page_text(cell)).replace("\n", "<br>")
    return f"<td><b>{text}</b></td>" if cell.best else f"<td>{text}</td>"


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_arrow(metric: str) -> str:
    arrow = direction(metric)
    return LATEX_ARROWS.get(arrow) or rf"$\rightarrow {arrow.split()[-1]}$"


def _latex_cell(cell: TableCell) -> str:
    if not cell.text:
        return "--"
    text = rf"\textbf{{{cell.text}}}" if cell.best else cell.text
    if cell.standing is None:
        return text
    mark = LATEX_MARKS[cell.standing.mark]
    return rf"{text}{mark} {{\scriptsize$\pm${cell.half_width}}}"
