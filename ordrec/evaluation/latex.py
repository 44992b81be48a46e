"""Tables of results as LaTeX, for papers; they need the package booktabs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ordrec.evaluation.metrics.measures import as_losses, higher_is_better

__all__ = ["escaped", "latex_table"]

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
}  # fmt: skip
TIED = r"$^{\dagger}$"


def escaped(text: str) -> str:
    r"""Return a text as LaTeX prints it, on one line.

    Examples
    --------
    >>> print(escaped("item_knn 50%"))
    item\_knn 50\%
    """
    return "".join(SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def latex_table(
    summary: pd.DataFrame,
    standings: Mapping[tuple[str, str], tuple[float, bool]],
    *,
    digits: int = 3,
    caption: str = "",
    label: str = "",
) -> str:
    """Return a table with one row per model and one column per metric.

    Parameters
    ----------
    summary : DataFrame
        Values, one row per model and one column per metric; NaN where there is none.
    standings : mapping of (metric, model) to (float, bool)
        Half the interval of a value, and whether it is not significantly worse than the best.
    digits : int
        Behind the decimal point.
    caption, label : str
        With either, the tabular is put into a table, whose caption also explains the signs.
    """
    head = ["model", *(f"{escaped(str(name))} {_arrow(str(name))}" for name in summary.columns)]
    lines = [rf"\begin{{tabular}}{{l{'r' * summary.shape[1]}}}", r"\toprule", _row(head)]
    lines.append(r"\midrule")
    best = {str(name): as_losses(str(name), summary[name]).min() for name in summary.columns}
    for model, values in summary.iterrows():
        cells = [escaped(str(model))]
        for name, value in values.items():
            leads = as_losses(str(name), value) == best[str(name)]
            cells.append(_cell(value, standings.get((str(name), str(model))), leads, digits))
        lines.append(_row(cells))
    lines += [r"\bottomrule", r"\end{tabular}"]
    signs = "Best in bold."
    if standings:
        signs += rf" $\pm$ half the 95\,\% interval; {TIED} not significantly worse than the best."
    if not (caption or label):
        return "\n".join([f"% needs \\usepackage{{booktabs}}. {signs}", *lines]) + "\n"
    said = f"{escaped(caption).rstrip('.')}. {signs}" if caption else signs
    named = [rf"\label{{{label}}}"] if label else []
    table = [r"\begin{table}", r"\centering", rf"\caption{{{said}}}", *named, *lines]
    return "\n".join([*table, r"\end{table}"]) + "\n"


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _arrow(metric: str) -> str:
    if float(as_losses(metric, 1.0)) == 0:
        return r"$\rightarrow 1$"
    return r"$\uparrow$" if higher_is_better(metric) else r"$\downarrow$"


def _cell(value: float, standing: tuple[float, bool] | None, leads: bool, digits: int) -> str:
    if np.isnan(value):
        return "--"
    text = f"{value:.{digits}f}"
    if leads:
        text = rf"\textbf{{{text}}}"
    if standing is None:
        return text
    half, tied = standing
    return rf"{text}{TIED if tied else ''} {{\scriptsize$\pm${half:.{digits}f}}}"
