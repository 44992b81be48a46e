"""Section 6.1 of Chu and Ghahramani (2005): three algorithms on a synthetic set of three ranks.

Points of the plane in three ranks, Gaussian kernel. SVORIM with parameters by five-fold
cross-validation, GPOR with Laplace's approximation and with EP, whose parameters come from the
evidence. The two Gaussian processes give a distribution: their log-loss is shown beside the
errors, and a figure shows the most probable rank. (The paper shows its own points in a figure
only.)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ordrec.datasets.tables import OrdinalTable
from ordrec.evaluation import Experiment, TableProblem
from ordrec.evaluation.experiment.cross_validated import CrossValidated
from ordrec.experiments.runner import Reproduction, main
from ordrec.ordinal import GPOR, SVORIM
from ordrec.report.figures import INK, PALETTE, blank
from ordrec.report.html import FigureSection

NAME = "gpor-synthetic"
TITLE = "Support vectors, Laplace and EP on three synthetic ranks"
SOURCE = "Chu and Ghahramani 2005, section 6.1 and the figure there"
TIME = "under a minute"

GRID = {"C": 10.0 ** np.arange(-1, 4), "gamma": 10.0 ** np.arange(-2, 2)}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run ten draws of 60 training points; quick: three."""
    table = synthetic(560)
    problem = TableProblem.drawn(table, [60], trials or (3 if quick else 10))
    models = {
        "SVM": CrossValidated(SVORIM(), GRID, "mze"),
        "Laplace": GPOR(inference="laplace"),
        "EP": GPOR(inference="ep"),
    }
    metrics = ["mze", "mae", "log_loss"]
    experiment = Experiment(models, [problem], metrics=metrics, store=out / "cells")
    result = experiment.run(n_jobs=jobs)
    losses = result.means("log_loss").loc["synthetic"]
    errors = result.means("mze").loc["synthetic"]
    findings = [
        "MZE: " + ", ".join(f"{name} {value:.4f}" for name, value in errors.items()),
        "log-loss: " + ", ".join(f"{name} {value:.4f}" for name, value in losses.items()),
        f"EP at least as good as Laplace by log-loss: "
        f"{'yes' if losses['EP'] <= losses['Laplace'] else 'no'}",
    ]
    figure = regions(models, table, problem.parts[0][0])
    return Reproduction(
        result,
        findings,
        sections=[FigureSection("Regions of the three ranks", figure, "regions", CAPTION)],
    )


CAPTION = "Training points of the first draw; lines between the regions of the predicted ranks."


def synthetic(n: int) -> OrdinalTable:
    """Return a table with three ranks around two curved lines, with a little noise."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (n, 2))
    latent = X[:, 0] + np.sin(1.5 * X[:, 1]) + 0.2 * rng.standard_normal(n)
    return OrdinalTable(X, np.digitize(latent, [-0.7, 0.7]) + 1, ["x1", "x2"], 3, name="synthetic")


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
