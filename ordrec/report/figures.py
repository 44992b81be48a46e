"""Figures of results, and writing them to files and pages.

Every function returns a new matplotlib figure; none of them uses pyplot's state or opens a
window.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.evaluation.drawing import INK, PALETTE, STYLE, blank
from ordrec.runtime.extras import import_extra
from ordrec.runtime.files import make_folder, replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "PALETTE",
    "blank",
    "box_plots",
    "critical_difference_diagram",
    "curves",
    "inline_svg",
    "reliability_diagram",
    "save_figure",
    "time_against_accuracy",
]

MARKERS = "osD^vPX<>*"


def box_plots(
    frame: pd.DataFrame,
    metric: str,
    *,
    by: str = "data",
    groups: Sequence[Any] | None = None,
    label: str = "",
) -> Figure:
    """Draw boxes of a metric over folds and seeds, one colour per model, grouped by data set.

    Parameters
    ----------
    frame : DataFrame
        Tidy results with the columns ``model``, ``metric``, ``value`` and ``by``.
    metric : str
    by : str
        The column that defines the groups along the horizontal axis.
    groups : sequence, optional
        The groups to show, in this order.
    label : str
        The label of the horizontal axis.
    """
    chosen = _values_of(frame, metric)
    names = list(chosen[by].unique()) if groups is None else list(groups)
    models = list(chosen["model"].unique())
    figure, axes = blank(width=max(4.0, min(11.0, 1.5 + 0.28 * len(names) * (len(models) + 1))))
    axis, step = axes[0, 0], 0.8 / len(models)
    for number, model in enumerate(models):
        of_model = chosen[chosen["model"] == model]
        boxes = [of_model.loc[of_model[by] == name, "value"].to_numpy() for name in names]
        places = np.arange(len(names)) + (number - (len(models) - 1) / 2) * step
        colour = PALETTE[number % len(PALETTE)]
        drawn = axis.boxplot(
            boxes,
            positions=places,
            widths=0.85 * step,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": INK},
            boxprops={"facecolor": colour, "edgecolor": colour},
            whiskerprops={"color": colour},
            capprops={"color": colour},
            flierprops={"marker": ".", "markeredgecolor": colour, "markersize": 3},
        )
        drawn["boxes"][0].set_label(str(model))
    turned = max(len(str(name)) for name in names) * len(names) > 60
    axis.set_xticks(range(len(names)), [str(name) for name in names], rotation=30 * turned)
    axis.set_xlabel(label)
    axis.set_ylabel(metric)
    _legend_below(figure, axis, len(models))
    return figure


def curves(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    by: str = "model",
    logarithmic: bool | Literal["x"] = False,
    labels: tuple[str, str] | None = None,
) -> Figure:
    """Draw lines of means over ``x``, one per model, with bars of one standard error.

    With ``logarithmic=True`` both axes are logarithmic, with "x" only the horizontal one.
    """
    figure, axes = blank()
    axis = axes[0, 0]
    for number, (name, part) in enumerate(frame.groupby(by, sort=False)):
        grouped = part.groupby(x)[y]
        means, errors = grouped.mean(), grouped.sem().fillna(0.0)
        axis.errorbar(
            means.index,
            means,
            yerr=errors,
            marker=MARKERS[number % len(MARKERS)],
            color=PALETTE[number % len(PALETTE)],
            markersize=4,
            capsize=2,
            label=str(name),
        )
    if logarithmic:
        axis.set_xscale("log")
        axis.set_yscale("linear" if logarithmic == "x" else "log")
    places = np.unique(frame[x])
    if logarithmic and len(places) <= 12:
        axis.set_xticks(places, [f"{place:g}" for place in places], fontsize=8)
        axis.minorticks_off()
    axis.set_xlabel(labels[0] if labels else x)
    axis.set_ylabel(labels[1] if labels else y)
    _legend_below(figure, axis, frame[by].nunique())
    return figure


def reliability_diagram(
    levels: Any, probabilities: Any, *, bins: int = 10, title: str = ""
) -> Figure:
    """Draw observed frequencies against predicted probabilities.

    Parameters
    ----------
    levels : array of int
        True zero-based ranks.
    probabilities : array of shape (n, n_ranks)
        The probabilities of all ranks are taken together; bars at the bottom show how many
        fall into each bin. The diagonal is perfect calibration.
    bins : int
    title : str
        A diagram with a title is small, to stand beside others, and has no legend.
    """
    levels, p = np.asarray(levels), np.asarray(probabilities, dtype=float)
    if p.ndim != 2 or levels.shape != (p.shape[0],):
        raise ArgumentError(f"shapes do not fit: levels {levels.shape}, probabilities {p.shape}")
    happened = (levels[:, None] == np.arange(p.shape[1])).ravel()
    predicted = p.ravel()
    bin_of = np.minimum((predicted * bins).astype(int), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean_predicted = np.bincount(bin_of, predicted, bins) / count
        mean_happened = np.bincount(bin_of, happened, bins) / count
    figure, axes = blank(width=2.4, height=2.4) if title else blank(width=4.2, height=3.8)
    axis = axes[0, 0]
    axis.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":", label="perfect")
    filled = count > 0
    axis.plot(
        mean_predicted[filled],
        mean_happened[filled],
        marker="o",
        markersize=3.5 if title else 6,
        color=PALETTE[0],
        label="observed",
    )
    axis.bar(
        (np.arange(bins) + 0.5) / bins,
        0.15 * count / count.max(),
        width=0.8 / bins,
        color=PALETTE[0],
        alpha=0.3,
        label="share of predictions (not to scale)",
    )
    axis.set_xlabel("predicted probability")
    axis.set_ylabel("observed frequency")
    if title:
        axis.set_title(title, loc="left")
        axis.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        axis.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    else:
        _legend_below(figure, axis, 3)
    return figure


def critical_difference_diagram(
    scores: pd.DataFrame, *, higher_is_better: bool = False, level: float = 0.05
) -> Figure:
    """Draw average ranks on a line; bars join models that Nemenyi's test cannot distinguish.

    Parameters
    ----------
    scores : DataFrame
        One row per data set, one column per model.
    higher_is_better : bool
    level : float
    """
    import matplotlib

    from ordrec.evaluation.significance import average_ranks, critical_difference, nemenyi

    posthocs = import_extra("scikit_posthocs", "scikit-posthocs", "experiments")
    ranks = average_ranks(scores, higher_is_better=higher_is_better)
    figure, axes = blank(width=6.6, height=1.2 + 0.22 * len(ranks))
    with matplotlib.rc_context(STYLE):
        posthocs.critical_difference_diagram(
            ranks,
            nemenyi(scores),
            alpha=level,
            ax=axes[0, 0],
            label_fmt_left="{label} ({rank:.2f})",
            label_fmt_right="({rank:.2f}) {label}",
            color_palette={str(m): PALETTE[i % len(PALETTE)] for i, m in enumerate(ranks.index)},
            crossbar_props={"color": INK, "marker": "", "linewidth": 2.5},
        )
    apart = critical_difference(scores.shape[1], scores.shape[0], level)
    axes[0, 0].set_title(f"average rank; critical difference {apart:.2f}", color=INK, pad=18)
    return figure


def time_against_accuracy(frame: pd.DataFrame, metric: str) -> Figure:
    """Draw one point per model: mean seconds per fit (logarithmic) and mean of a metric."""
    chosen = _values_of(frame, metric)
    means = chosen.groupby("model", sort=False)[["fit_seconds", "value"]].mean()
    figure, axes = blank(width=5.4, height=3.4)
    axis = axes[0, 0]
    for number, (model, point) in enumerate(means.iterrows()):
        axis.scatter(
            max(point["fit_seconds"], 1e-4),
            point["value"],
            color=PALETTE[number % len(PALETTE)],
            marker=MARKERS[number % len(MARKERS)],
            s=45,
            label=str(model),
        )
    axis.set_xscale("log")
    axis.set_xlabel("seconds to fit (mean per fold)")
    axis.set_ylabel(metric)
    _legend_below(figure, axis, len(means))
    return figure


# ---- files and pages ---------------------------------------------------------------------


def save_figure(
    figure: Figure, stem: str | Path, formats: Iterable[str] = ("svg", "pdf")
) -> list[Path]:
    """Write a figure as ``stem.svg``, ``stem.pdf``, ... on white and return the paths."""
    import matplotlib

    stem = Path(stem)
    make_folder(stem.parent)
    paths = []
    for name in formats:
        if name not in ("svg", "pdf", "png"):
            raise ArgumentError(f"figures are written as svg, pdf or png, not {name!r}")
        path = stem.with_name(f"{stem.name}.{name}")
        # No dates in the files, so that equal figures make equal files.
        no_dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[name]
        with matplotlib.rc_context(STYLE), replace_file(path) as part:
            figure.savefig(part, facecolor="white", dpi=150, metadata=no_dates)
        paths.append(path)
    return paths


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """Return the figure as an svg element that takes the text colour and width of a page.

    Parameters
    ----------
    figure : Figure
    name : str
        Prefix of all identifiers, so that those of several figures on a page differ.
    description : str
        The text for screen readers.
    """
    import html

    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    width = re.search(r'width="([\d.]+)pt"', text)
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r'id="', f'id="{name}-', text)
    text = re.sub(r'(url\(|href=")#', rf"\g<1>#{name}-", text)
    text = text.replace(INK, "currentColor")
    size = f"max-width:{float(width[1]) * 1.4:.0f}px" if width else ""
    label = html.escape(description, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}" style="{size}"', 1).strip()


def _values_of(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    chosen = frame[frame["metric"] == metric]
    if chosen.empty:
        raise ArgumentError(f"there are no values of {metric!r} to draw")
    return chosen


def _legend_below(figure: Figure, axis: Any, count: int) -> None:
    if count > 1:
        handles, labels = axis.get_legend_handles_labels()
        longest = max(len(label) for label in labels)
        columns = int(np.clip(figure.get_figwidth() / (0.6 + 0.075 * longest), 1, 4))
        rows = -(-len(labels) // columns)
        figure.set_figheight(figure.get_figheight() + 0.17 * max(0, rows - 2))
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            labelcolor=INK,
        )
