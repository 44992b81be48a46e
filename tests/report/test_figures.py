"""Figures: they show the numbers given, and equal figures make equal files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ordrec.errors import ArgumentError
from ordrec.report.figures import (
    box_plots,
    critical_difference_diagram,
    curves,
    inline_svg,
    reliability_diagram,
    save_figure,
    time_against_accuracy,
)

NOISE = iter(np.random.default_rng(0).random(12) / 10)
FRAME = pd.DataFrame(
    [
        {"data": d, "model": m, "metric": "mae", "value": v + next(NOISE), "n_train": n,
         "fit_seconds": s}
        for d in ("one", "two")
        for m, v, s in (("a", 0.5, 0.1), ("b", 0.8, 10.0))
        for n in (10, 20, 30)
    ]
)  # fmt: skip


def test_boxes_stand_at_the_medians() -> None:
    axis = box_plots(FRAME, "mae").axes[0]
    lines = [line.get_ydata() for line in axis.lines]
    medians = FRAME.groupby(["model", "data"])["value"].median()
    for value in medians:
        assert any(np.allclose(line, value) for line in lines)
    assert [t.get_text() for t in axis.get_xticklabels()] == ["one", "two"]


def test_boxes_by_another_column_in_the_order_given() -> None:
    axis = box_plots(FRAME, "mae", by="n_train", groups=[30, 10]).axes[0]
    assert [t.get_text() for t in axis.get_xticklabels()] == ["30", "10"]


def test_curves_go_through_the_means() -> None:
    frame = pd.concat([FRAME, FRAME.query("data == 'one'").assign(value=2.0)])  # not the medians
    axis = curves(frame, "n_train", "value", logarithmic=True, labels=("rows", "error")).axes[0]
    expected = frame[frame["model"] == "a"].groupby("n_train")["value"].mean()
    assert any(
        np.allclose(line.get_ydata(), expected) for line in axis.lines if line.get_xdata().size == 3
    )
    assert axis.get_xscale() == axis.get_yscale() == "log"
    assert [t.get_text() for t in axis.get_xticklabels()] == ["10", "20", "30"]
    assert axis.get_ylabel() == "error"


def test_one_axis_alone_may_be_logarithmic() -> None:
    axis = curves(FRAME, "n_train", "value", logarithmic="x").axes[0]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "linear")


def test_long_names_stay_within_the_figure() -> None:
    frame = FRAME.assign(model=FRAME["model"] * 30)
    figure = box_plots(frame, "mae")
    figure.draw_without_rendering()
    legend, whole = figure.legends[0].get_window_extent(), figure.bbox
    assert legend.x0 >= whole.x0
    assert legend.x1 <= whole.x1


def test_a_calibrated_model_lies_on_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 20_000)
    levels = (p.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    diagonal, observed = reliability_diagram(levels, p).axes[0].lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    x, y = observed.get_xdata(), observed.get_ydata()
    assert x.size >= 9
    assert np.abs(x - y).max() < 0.05
    sure = reliability_diagram(levels, np.eye(4)[rng.integers(0, 4, 20_000)]).axes[0].lines[1]
    assert sure.get_ydata()[-1] == pytest.approx(0.25, abs=0.02)


def test_ranks_are_written_beside_the_models() -> None:
    scores = pd.DataFrame({"good": [1.0, 1, 1, 1], "fair": [2.0, 2, 2, 3], "poor": [3.0, 3, 3, 2]})
    figure = critical_difference_diagram(scores)
    words = " ".join(text.get_text() for text in figure.axes[0].texts)
    for part in ("good (1.00)", "fair (2.25)", "(2.75) poor"):
        assert part in words
    assert "critical difference" in figure.axes[0].get_title()


def test_time_against_accuracy_has_a_point_a_model() -> None:
    points = time_against_accuracy(FRAME, "mae").axes[0].collections
    assert [p.get_offsets()[0, 0] for p in points] == pytest.approx([0.1, 10.0])


def test_equal_figures_make_equal_files(tmp_path: Path) -> None:
    one = save_figure(box_plots(FRAME, "mae"), tmp_path / "one", ("svg", "pdf", "png"))
    two = save_figure(box_plots(FRAME, "mae"), tmp_path / "two", ("svg", "pdf", "png"))
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_inline_figures_have_a_name_of_their_own_and_words_for_it() -> None:
    svg = inline_svg(box_plots(FRAME, "mae"), "mine", 'errors "of" both')
    assert svg.startswith('<svg role="img" aria-label="errors &quot;of&quot; both"')
    assert 'id="mine-figure_1"' in svg
    assert svg.count("<svg") == 1


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no values"):
        box_plots(FRAME, "rmse")
    with pytest.raises(ArgumentError, match="shapes"):
        reliability_diagram([0, 1], np.ones((3, 2)))
    with pytest.raises(ArgumentError, match="svg, pdf or png"):
        save_figure(time_against_accuracy(FRAME, "mae"), tmp_path / "x", ("gif",))


@pytest.mark.parametrize(("length", "angle"), [(60, 0.0), (61, 30.0)])
def test_names_that_take_more_than_sixty_characters_are_turned(length: int, angle: float) -> None:
    figure = box_plots(FRAME.assign(data="x" * length), "mae")
    assert {label.get_rotation() for label in figure.axes[0].get_xticklabels()} == {angle}
