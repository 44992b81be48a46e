"""Section 4.1 of Chu and Keerthi (2007): three ways to order the thresholds.

Twenty-four students with grades D, C and B, two features (the mathematics score and the grade
in the prerequisite course), Gaussian kernel with kappa = 0.5, C = 1. Without constraints (SLA)
the two thresholds are out of order, the explicit constraints (EXC) make them equal, the
implicit ones (IMC) keep them in order. A figure shows the latent score and the thresholds.
"""

from __future__ import annotations

from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from ordrec.datasets import load_table
from ordrec.experiments.runner import Reproduction, data_folder, main
from ordrec.ordinal import SVOREX, SVORIM, SVORSLA
from ordrec.report.figures import INK, PALETTE, blank
from ordrec.report.html import FigureSection, TableSection

NAME = "svor-grading"
TITLE = "Grades of 24 students: thresholds out of order, equal, and in order"
SOURCE = "Chu and Keerthi 2007, section 4.1 and figure 3"
TIME = "a few seconds"

GAMMA = 0.25  # the paper's kappa is twice that
GRADES = {2: "D", 3: "C", 4: "B"}
MODELS = {"SLA": SVORSLA, "EXC": SVOREX, "IMC": SVORIM}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Fit the three machines once; there are no trials to repeat."""
    table = load_table(data_folder(data, "student-grades") / "grades.csv")
    kept = np.isin(table.y, list(GRADES))
    X, y = table.X[kept], table.y[kept]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    fitted = {
        name: model(C=1.0, kernel="rbf", gamma=GAMMA, tol=1e-6).fit(X, y)
        for name, model in MODELS.items()
    }
    found = pd.DataFrame(
        [
            {
                "model": name,
                "b1": model.thresholds_[0],
                "b2": model.thresholds_[1],
                "wrong": int((model.predict(X) != y).sum()),
                "objective": model.objective_,
            }
            for name, model in fitted.items()
        ]
    )
    gap = (found["b2"] - found["b1"]).set_axis(found["model"])
    findings = [
        f"{len(y)} students; grades {', '.join(f'{GRADES[g]}: {(y == g).sum()}' for g in GRADES)}",
        _checked("SLA: b2 < b1, out of order", gap["SLA"] < 0, gap["SLA"]),
        _checked("EXC: b1 = b2", abs(gap["EXC"]) < 1e-3, gap["EXC"]),
        _checked("IMC: b1 < b2", gap["IMC"] > 1e-3, gap["IMC"]),
    ]
    return Reproduction(
        found,
        findings,
        checksums={"student-grades": joblib.hash([table.X, table.y])},
        sections=[
            TableSection("Thresholds", found.set_index("model")),
            FigureSection(
                "The latent score and its cuts",
                contours(fitted, X, y),
                "contours",
                "Dashed: the first threshold; solid: the second. Both features standardised.",
            ),
        ],
    )


def _checked(claim: str, holds: bool, gap: float) -> str:
    return f"{claim}: {'yes' if holds else 'NO'} (b2 - b1 = {gap:.4f})"


def contours(fitted, X: np.ndarray, y: np.ndarray):
    """Draw one panel per machine: students, and lines where the score equals a threshold."""
    figure, axes = blank(1, len(fitted), width=9.0, height=3.4)
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    grid = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 80))
    points = np.column_stack([g.ravel() for g in grid])
    for axis, (name, model) in zip(axes[0], fitted.items(), strict=True):
        score = model.predict_latent(points).reshape(grid[0].shape)
        axis.contourf(*grid, score, levels=12, cmap="Greys", alpha=0.35)
        for threshold, style in zip(model.thresholds_, ("dashed", "solid"), strict=True):
            axis.contour(*grid, score, levels=[threshold], colors=INK, linestyles=style)
        for number, (grade, letter) in enumerate(GRADES.items()):
            of_grade = X[y == grade]
            axis.scatter(
                *of_grade.T, color=PALETTE[number], marker="os^"[number], s=22, label=letter
            )
        first, second = model.thresholds_
        axis.set_title(f"{name}: b1 = {first:.3f}, b2 = {second:.3f}")
        axis.set_xlabel("score in mathematics")
    axes[0, 0].set_ylabel("grade in the prerequisite")
    axes[0, 0].legend(frameon=False, labelcolor=INK, loc="lower right")
    return figure


if __name__ == "__main__":
    main(NAME)
