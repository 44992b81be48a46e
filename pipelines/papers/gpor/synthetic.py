"""Section 6.1 of Chu and Ghahramani (2005): three algorithms on a synthetic set of three ranks.

Points of the plane in three ranks, at a lower and at a higher level of noise, Gaussian kernel.
SVORIM with parameters by five-fold
cross-validation, GPOR with Laplace's approximation and with EP, whose parameters come from the
evidence. The two Gaussian processes give a distribution: their log-loss is shown beside the
errors, and a figure shows the most probable rank. (The paper shows its own points in a figure
only.)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ordrec.data.formats.tables import OrdinalTable
from ordrec.evaluation import Experiment, TableProblem
from ordrec.experiments.cross_validated import CrossValidated
from ordrec.experiments.runner import Reproduction, main
from ordrec.ordinal import GPOR, SVORIM
from ordrec.report.figures import INK, PALETTE, blank
from ordrec.report.html import FigureSection

NAME = "gpor-synthetic"
TITLE = "Support vectors, Laplace and EP on three synthetic ranks"
SOURCE = "Chu and Ghahramani 2005, section 6.1 and the figure there"
TIME = "under a minute"

NOISE = {"low noise": 0.2, "high noise": 0.7}
GRID = {"C": 10.0 ** np.arange(-1, 4), "gamma": 10.0 ** np.arange(-2, 2)}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run ten draws of 60 training points at either level of noise; quick: three."""
    draws = trials or (3 if quick else 10)
    problems = [TableProblem.drawn(synthetic(560, level), [60], draws) for level in NOISE]
    models = {
        "SVM": CrossValidated(SVORIM(), GRID, "mze"),
        "Laplace": GPOR(inference="laplace"),
        "EP": GPOR(inference="ep"),
    }
    metrics = ["mze", "mae", "log_loss"]
    experiment = Experiment(models, problems, metrics=metrics, store=out / "cells")
    result = experiment.run(n_jobs=jobs)
    findings = []
    for name, errors in result.means("mze").iterrows():
        losses = result.means("log_loss").loc[name].dropna()
        findings += [
            f"{name}, MZE: " + ", ".join(f"{m} {value:.4f}" for m, value in errors.items()),
            f"{name}, log-loss: " + ", ".join(f"{m} {value:.4f}" for m, value in losses.items()),
            f"{name}: EP at least as good as Laplace by log-loss: "
            f"{'yes' if losses['EP'] <= losses['Laplace'] else 'no'}",
        ]
    sections = [
        FigureSection(
            f"Regions of the three ranks, {problem.name}",
            regions(models, problem.table, problem.parts[0][0]),
            f"regions-{problem.name.split()[0]}",
            CAPTION,
        )
        for problem in problems
    ]
    return Reproduction(result, findings, sections=sections)


CAPTION = "Training points of the first draw; lines between the regions of the predicted ranks."


def synthetic(n: int, level: str = "low noise") -> OrdinalTable:
    """Return a table with three ranks around two curved lines, at a level of noise."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (n, 2))
    latent = X[:, 0] + np.sin(1.5 * X[:, 1]) + NOISE[level] * rng.standard_normal(n)
    return OrdinalTable(X, np.digitize(latent, [-0.7, 0.7]) + 1, ["x1", "x2"], 3, name=level)


def regions(models, table: OrdinalTable, train: np.ndarray):
    """Draw one panel per algorithm."""
    figure, axes = blank(1, len(models), width=9.0, height=3.2)
    side = np.linspace(-2, 2, 60)
    grid = np.array([(a, b) for b in side for a in side])
    X, y = table.X[train], table.y[train]
    for axis, (name, model) in zip(axes[0], models.items(), strict=True):
        ranks = model.fit(X, y).predict(grid).reshape(side.size, side.size)
        axis.contourf(side, side, ranks, levels=[0.5, 1.5, 2.5, 3.5], colors=PALETTE, alpha=0.3)
        axis.contour(side, side, ranks, levels=[1.5, 2.5], colors=INK, linewidths=0.8)
        for rank in (1, 2, 3):
            axis.scatter(*X[y == rank].T, s=14, color=PALETTE[rank - 1])
        axis.set_title(name)
        axis.set_aspect("equal")
    return figure


if __name__ == "__main__":
    main(NAME)
