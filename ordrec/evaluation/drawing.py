"""The style of all figures, and the chart of a result: values of models with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ordrec.evaluation.metrics.measures import as_losses, direction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["INK", "PALETTE", "STYLE", "blank", "interval_chart"]

# Middle tones that differ on white and on black, and for most colour-blind readers.
PALETTE = (
    "#3b82c4", "#d9822b", "#2f9e6e", "#c2558f", "#8a7bd1", "#b39a1e", "#4aa3b5", "#a0674b",
    "#7f8c8d", "#d45d5d",
)  # fmt: skip
INK = "#1f2328"  # becomes the colour of the text of a page
STYLE: dict[Any, Any] = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.size": 9,
    "legend.frameon": False,
    "patch.edgecolor": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "ordrec",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
BEST, TIED, WORSE, BETTER = PALETTE[0], PALETTE[6], PALETTE[8], PALETTE[2]
MOST_ACROSS = 3  # panels in a row
LETTER = 0.075  # inches


def blank(
    rows: int = 1, columns: int = 1, *, width: float = 6.4, height: float = 3.6
) -> tuple[Figure, Any]:
    """Return an empty figure in ordrec's style and its axes as a two-dimensional array.

    Examples
    --------
    >>> figure, axes = blank(1, 2)
    >>> axes.shape
    (1, 2)
    """
    import matplotlib

    from ordrec.evaluation.notebook_figure import NotebookFigure

    with matplotlib.rc_context(STYLE):
        figure = NotebookFigure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


def interval_chart(values: pd.DataFrame, across: int = MOST_ACROSS) -> Figure:
    """Draw one panel per metric: a dot per model with its interval, the best model on top.

    Parameters
    ----------
    values : DataFrame
        Columns ``metric``, ``model``, ``value``, ``low``, ``high`` (NaN without interval) and
        ``verdict`` ("best", "tied", "worse" or ""; or "reference" and "better").
    across : int
        The largest number of panels in a row.
    """
    metrics = list(values["metric"].unique())
    columns = min(across, len(metrics))
    rows = -(-len(metrics) // columns)
    tall = 0.75 + 0.24 * int(values.groupby("metric").size().max())
    names = LETTER * max(len(str(model)) for model in values["model"])
    figure, axes = blank(rows, columns, width=columns * (2.1 + names), height=rows * tall)
    for axis in axes.ravel()[len(metrics) :]:
        axis.remove()
    for axis, metric in zip(axes.ravel(), metrics, strict=False):
        _panel(axis, metric, values[values["metric"] == metric])
    return figure


def _panel(axis: Any, metric: str, values: pd.DataFrame) -> None:
    order = as_losses(metric, values["value"]).sort_values(ascending=False, kind="stable").index
    for place, row in enumerate(values.loc[order].itertuples()):
        colour = {"best": BEST, "reference": BEST, "tied": TIED, "better": BETTER}.get(
            str(row.verdict), WORSE
        )
        axis.plot([row.low, row.high], [place, place], color=colour, linewidth=2, alpha=0.6)
        axis.plot([row.value], [place], "o", color=colour, markersize=5)
    axis.set_yticks(range(len(values)), [str(model) for model in values.loc[order, "model"]])
    axis.set_ylim(-0.6, len(values) - 0.4)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color=INK, alpha=0.12, linewidth=0.6)
    axis.locator_params(axis="x", nbins=4)
    axis.set_title(f"{metric} {direction(metric)}", loc="left")
