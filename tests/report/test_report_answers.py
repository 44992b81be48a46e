"""Figures, pages and printed tables show what they showed when they were recorded."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from rich.console import Console
from support.invented_by_taste import invented_by_taste
from support.recorded_answers import compare_with_record, recorded_names

from ordrec.evaluation import HoldOut, KFold, evaluate, tune_model
from ordrec.evaluation.result import EvaluationResult
from ordrec.report.evaluation import evaluation_report
from ordrec.report.figures import (
    box_plots,
    critical_difference_diagram,
    curves,
    reliability_diagram,
    time_against_accuracy,
)
from ordrec.report.tables import overlap_table, print_summary, tuning_table

RECORD = Path(__file__).with_suffix(".json")
SCORES = pd.DataFrame(
    np.random.default_rng(0).random((6, 4)) + np.array([0, 0.2, 0.9, 1.0]), columns=list("abcd")
)
FRAME = pd.DataFrame(
    [
        {"data": data, "model": model, "metric": "mae", "n_train": n, "fit_seconds": n * 0.1 + k,
         "value": 1.0 + 0.1 * k - 0.01 * n + (0.2 if data == "two" else 0.0)}
        for data in ("one", "two", "three")
        for k, model in enumerate("abcdefgh")
        for n in (5, 10, 20)
    ]
)  # fmt: skip
LEVELS, P = np.arange(200) % 4, np.random.default_rng(1).dirichlet(np.ones(4), 200)
FIGURES: dict[str, Callable[[], Figure]] = {
    "boxes": lambda: box_plots(FRAME, "mae"),
    "boxes by size": lambda: box_plots(FRAME[FRAME["model"] < "c"], "mae", by="n_train"),
    "curves": lambda: curves(FRAME, "n_train", "value"),
    "logarithmic": lambda: curves(FRAME, "n_train", "value", logarithmic=True, labels=("n", "m")),
    "reliability": lambda: reliability_diagram(LEVELS, P),
    "small reliability": lambda: reliability_diagram(LEVELS, P, bins=5, title="small"),
    "ranks": lambda: critical_difference_diagram(SCORES),
    "seconds": lambda: time_against_accuracy(FRAME, "mae"),
}


def drawn(figure: Figure) -> dict[str, Any]:
    """What a figure is made of."""
    axes = []
    for axis in figure.axes:
        lines = [
            [line.get_xydata(), to_hex(line.get_color()), line.get_linewidth(), line.get_marker(),
             line.get_linestyle(), line.get_markersize()]
            for line in axis.lines
        ]  # fmt: skip
        axes.append(
            {
                "title": axis.get_title(),
                "labels": [axis.get_xlabel(), axis.get_ylabel()],
                "limits": [axis.get_xlim(), axis.get_ylim()],
                "scales": [axis.get_xscale(), axis.get_yscale()],
                "ticks": [tick.get_text() for tick in axis.get_xticklabels()],
                "lines": lines,
                "texts": [[text.get_text(), *text.get_position()] for text in axis.texts],
                "points": [np.asarray(each.get_offsets()) for each in axis.collections],
                "patches": [to_hex(patch.get_facecolor()) for patch in axis.patches],
                "visible": [axis.axison, *(side.get_visible() for side in axis.spines.values())],
            }
        )
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes)]
    words = [[each.get_text() for each in legend.get_texts()] for legend in legends if legend]
    return {"size": figure.get_size_inches(), "axes": axes, "legends": words}


@pytest.mark.parametrize("name", FIGURES)
def test_recorded_answers_of_figures(name: str) -> None:
    found = drawn(FIGURES[name]())
    if name == "ranks":  # scikit-posthocs draws its bars in the order of a set
        del found["axes"][0]["lines"]
    compare_with_record(RECORD, name, found)


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(
            invented_by_taste(dated=True, described=True), ["bias", "histogram", "popularity"],
            split=KFold(2), metrics=["mae", "rmse", "rps", "ndcg@5", "recall@3"],
            keep_predictions=True,
        )  # fmt: skip


def timeless(text: str) -> str:
    """A text without seconds, versions and sizes of this machine."""
    return re.sub(r"\d+(\.\d+)? ?(s|ms|MB|GB|seconds)\b", "T", text)


def test_recorded_answers_of_printed_tables(result: EvaluationResult) -> None:
    console = Console(width=170, force_terminal=False)
    with console.capture() as printed:
        for average in ("micro", "macro"):
            print_summary(console, result, average)
        console.print(overlap_table(result, 3))
    seconds = re.compile(r" +[0-9.]+ │ +[0-9.]+ │$")  # of fits and predictions
    said = [seconds.sub("", line) for line in printed.get().splitlines()]
    compare_with_record(RECORD, "printed", said)


def test_recorded_answers_of_a_page(result: EvaluationResult) -> None:
    report = evaluation_report(result, "a title")
    sections = [
        [
            type(section).__name__,
            getattr(section, "title", ""),
            timeless(str(getattr(section, "note", ""))),
        ]
        for section in report.sections
    ]
    tables = [
        section.frame.drop(columns=["s", "fit s", "predict s"], errors="ignore").astype(str)
        for section in report.sections
        if isinstance(getattr(section, "frame", None), pd.DataFrame)
    ]
    said = {"verdict": report.verdict if hasattr(report, "verdict") else [], "sections": sections}
    compare_with_record(RECORD, "page", said | {"tables": tables})


def test_recorded_answers_of_a_search() -> None:
    found = tune_model(
        invented_by_taste(), "bias", {"user_damping": [1.0, 5.0], "item_damping": [2.0, 30.0]},
        split=HoldOut(0.3), metric="rmse",
    )  # fmt: skip
    table = tuning_table(found, 3)
    columns = [[timeless(str(cell)) for cell in column.cells] for column in table.columns[:-1]]
    scores = found.table.drop(columns="seconds").astype({"score": float})
    compare_with_record(RECORD, "search", {"shown": columns, "table": scores})


def test_every_record_has_a_test() -> None:
    assert recorded_names(RECORD) == {*FIGURES, "printed", "page", "search"}
