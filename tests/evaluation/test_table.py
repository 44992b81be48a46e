"""Results for papers and terminals: LaTeX, figures, and printed tables."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.evaluation_results import made_result

from ordrec.errors import ArgumentError
from ordrec.evaluation.drawing import PALETTE

ODD = 'a_b & 50% #1 ~^\\{x} <y> |z| "q" $'
RATINGS = {"good": 0.8, "fair": 0.9, ODD: 1.2}
LISTS = {"good": 0.1, "fair": 0.3}


def rows_of(latex: str) -> dict[str, list[str]]:
    """The cells of each row, by its first cell."""
    body = latex[latex.index(r"\toprule") : latex.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    cells = [re.split(r" (?<!\\)& ", line.removesuffix(r" \\")) for line in lines]
    return {first: rest for first, *rest in cells}


def test_the_latex_table_has_intervals_bold_and_marks() -> None:
    result = made_result({"rmse": RATINGS, "ndcg@10": LISTS}, tied=(("rmse", "fair"),))
    rows = rows_of(result.to_latex(digits=2))
    small = r" {\scriptsize$\pm$0.02}"
    assert rows["model"] == [r"rmse $\downarrow$", r"ndcg@10 $\uparrow$"]
    assert rows["good"] == [r"\textbf{0.80}" + small, "0.10" + small]
    assert rows["fair"] == [r"0.90$^{\dagger}$" + small, r"\textbf{0.30}" + small]
    odd = r"a\_b \& 50\% \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}\{x\} "
    odd += r"\textless{}y\textgreater{} \textbar{}z\textbar{} ''q'' \$"
    assert rows[odd] == ["1.20" + small, "--"]


def test_a_caption_makes_a_table_and_explains_the_signs() -> None:
    result = made_result({"rmse": RATINGS})
    bare = result.to_latex()
    assert bare.startswith("% needs \\usepackage{booktabs}.")
    assert r"\begin{table}" not in bare
    table = result.to_latex(caption="Models on A_B.", label="tab:ab")
    assert r"\caption{Models on A\_B. Best in bold. $\pm$ half the 95\,\% interval;" in table
    assert r"\label{tab:ab}" in table
    assert table.endswith("\\end{tabular}\n\\end{table}\n")


def test_untested_results_have_no_intervals() -> None:
    latex = made_result({"rmse": {"good": 0.8, "fair": 0.9}}, tested=False).to_latex()
    assert r"\pm" not in latex
    assert r"good & \textbf{0.800} \\" in latex


def test_metrics_are_chosen_and_unknown_ones_refused() -> None:
    result = made_result({"rmse": RATINGS, "mae": RATINGS, "ndcg@10": LISTS})
    rows = rows_of(result.to_latex(metrics=["ndcg@10", "rmse"]))
    assert rows["model"] == [r"ndcg@10 $\uparrow$", r"rmse $\downarrow$"]
    with pytest.raises(ArgumentError, match="'mze' was not measured: choose from rmse, mae, ndcg"):
        result.to_latex(metrics=["mze"])
    with pytest.raises(ArgumentError, match="was not measured"):
        result.plot(metrics=["mze"])


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_takes_the_table(tmp_path: Path) -> None:
    tables = [
        made_result({"rmse": RATINGS, "ndcg@10": LISTS}).to_latex(caption=ODD),
        made_result({"pick_calibration@10": {"good": 1.1, "fair": 0.7}}).to_latex(),
    ]
    start = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    file = tmp_path / "paper.tex"
    file.write_text(start + "\n".join(tables) + "\\end{document}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", file.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if "booktabs.sty' not found" in done.stdout:
        pytest.skip("no booktabs on this machine")
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_plot_shows_values_intervals_and_verdicts() -> None:
    result = made_result({"rmse": RATINGS, "ndcg@10": LISTS}, tied=(("rmse", "fair"),))
    figure = result.plot(metrics=["ndcg@10", "rmse"])
    assert [axis.get_title("left") for axis in figure.axes] == ["ndcg@10 ↑", "rmse ↓"]
    lists, errors = figure.axes
    assert [text.get_text() for text in errors.get_yticklabels()] == [ODD, "fair", "good"]
    assert [text.get_text() for text in lists.get_yticklabels()] == ["good", "fair"]
    drawn = {
        (float(np.mean(line.get_xdata())), line.get_color())
        for line in errors.lines
        if len(line.get_xdata()) == 1
    }
    assert drawn == {(0.8, PALETTE[0]), (0.9, PALETTE[6]), (1.2, PALETTE[8])}
    bars = [line.get_xdata() for line in errors.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(sorted(np.ravel(bars)), [0.78, 0.82, 0.88, 0.92, 1.18, 1.22])


def test_a_printed_summary_fits_80_columns_and_leaves_nothing_out() -> None:
    metrics = ["rmse", "mae", "int_mae", "mze", "log_loss", "rps", "ece", "ndcg@10", "fcp"]
    names = {"logistic regression for each user": 0.8, "predictor-fast": 0.75, "x" * 60: 0.9}
    result = made_result(dict.fromkeys(metrics, names) | {"hit_rate@10": {"x" * 60: 1}})
    table = result.summary()
    for text in (str(table), repr(table)):
        assert max(map(len, text.splitlines())) <= 80
        assert "..." not in text.replace("x" * 37 + "...", "")
        for name in (*metrics, "hit_rate@10", "fit s", "predict s"):
            assert name in text
    assert str(table) in repr(result)
    assert isinstance(table, pd.DataFrame)
    assert type(table[["rmse"]]) is pd.DataFrame
    assert "0.7500" in str(table)
    assert " - " in str(table)
