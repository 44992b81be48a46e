"""Rennie (2005): limits of the ordinal logistic losses, and how the two threshold forms differ.

The generalised logistic loss with growing sharpness, and the shifted one with a growing margin,
approach the hinge losses of SVORIM (all thresholds) and SVOREX (immediate ones): the distance of
their solutions to those of the support vector machines goes to zero. On data where ranks are
missing in between, the immediate-threshold form may put thresholds out of order, the
all-threshold form never does. The note has no experiments. On the published survey sets, where they
are available, the all-threshold form should have the lower absolute error.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.data.formats.tables import OrdinalTable
from ordrec.datasets import load_table
from ordrec.evaluation import Experiment, TableProblem
from ordrec.experiments.runner import Reproduction, main
from ordrec.ordinal import SVOREX, SVORIM, OrdinalLogistic
from ordrec.report.figures import curves
from ordrec.report.html import FigureSection

NAME = "logistic-limits"
TITLE = "Ordinal logistic losses on their way to the hinge"
SOURCE = "Rennie 2005, sections 2 to 4"
TIME = "under a minute"

SHARPNESS = [1.0, 3.0, 10.0, 30.0, 100.0]
SETS = ["tae", "newthyroid", "balance-scale", "LEV", "ERA", "SWD"]
MACHINES = {"all": SVORIM, "immediate": SVOREX}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Measure the limits on synthetic data and compare both forms, on survey sets if available."""
    distances = limits(invented())
    last = distances[distances["sharpness"] == SHARPNESS[-1]].set_index(["loss", "threshold"])
    first = distances[distances["sharpness"] == SHARPNESS[0]].set_index(["loss", "threshold"])
    findings = [
        f"{loss} loss, {reach} threshold: distance to the hinge solution {before:.3f} at "
        f"{SHARPNESS[0]:g}, {last.loc[(loss, reach), 'distance']:.4f} at {SHARPNESS[-1]:g}"
        for (loss, reach), before in first["distance"].items()
    ]
    distances["series"] = distances["loss"] + ", " + distances["threshold"]
    sections = [
        FigureSection(
            "Distance to the support vector machine",
            curves(
                distances,
                "sharpness",
                "distance",
                by="series",
                logarithmic=True,
                labels=("sharpness or margin", "distance of the scores"),
            ),
            "limits",
            "Root mean square difference of the margins at all thresholds, SVORIM for all and "
            "SVOREX for immediate thresholds.",
        )
    ]
    models = {
        f"{reach} thresholds": make_pipeline(StandardScaler(), OrdinalLogistic(threshold=reach))
        for reach in MACHINES
    }
    result = Experiment(
        models,
        problems(data, quick),
        store=out / "cells",
        max_folds=trials or (3 if quick else None),
    ).run(n_jobs=jobs)
    for metric, better in (("mae", "all thresholds"), ("mze", "immediate thresholds")):
        means = result.means(metric)
        other = next(name for name in means if name != better)
        wins = int((means[better] <= means[other]).sum())
        findings.append(f"{metric}: {better} at least as good on {wins} of {len(means)} sets")
    return Reproduction(result, findings, sections=sections)


def invented() -> OrdinalTable:
    """Return a table with four ranks along a noisy direction of the plane."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    y = np.digitize(X @ [1.0, 0.5] + 0.4 * rng.standard_normal(120), [-1.0, 0.0, 1.0]) + 1
    parts = [np.sort(rng.permutation(120)[:80]) for _ in range(10)]
    return OrdinalTable(X, y, ["x1", "x2"], 4, parts, "invented")


def limits(table: OrdinalTable) -> pd.DataFrame:
    """Return how far the scores of each loss are from those of the machine it tends to."""
    rows = []
    for reach, machine in MACHINES.items():
        hinge = machine(C=1.0, kernel="linear", tol=1e-6).fit(table.X, table.y)
        wanted = margins(hinge, table.X)
        for sharpness in SHARPNESS:
            # The shifted loss is scaled by its margin, and so are solution and penalty.
            shifted = OrdinalLogistic(reach, "shifted", margin=sharpness, alpha=1 / sharpness)
            generalised = OrdinalLogistic(reach, "generalised", sharpness=sharpness, alpha=1.0)
            for loss, model, unit in (
                ("generalised", generalised, 1.0),
                ("shifted", shifted, sharpness),
            ):
                found = margins(model.fit(table.X, table.y), table.X) / unit
                distance = float(np.sqrt(np.mean((found - wanted) ** 2)))
                rows.append((loss, reach, sharpness, distance))
    return pd.DataFrame(rows, columns=["loss", "threshold", "sharpness", "distance"])


def margins(model, X: np.ndarray) -> np.ndarray:
    """Return score minus threshold, for all thresholds."""
    return model.predict_latent(X)[:, None] - model.thresholds_


def problems(data: Path | None, quick: bool) -> list[TableProblem]:
    """Return the survey sets if they are available, otherwise the synthetic table."""
    folder = None if data is None else data / "ordinal-survey"
    if folder is None or not folder.is_dir():
        return [TableProblem(invented())]
    names = SETS[:3] if quick else SETS
    return [TableProblem(load_table(folder / f"{name}.csv")) for name in names]


if __name__ == "__main__":
    main(NAME)
