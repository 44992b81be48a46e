"""Section V-B of Wang et al. (2017): the tolerances at which Algorithm 2 stops.

California housing and census, five ranks of equal size; the printed algorithm with the absolute and
the relative tolerance of (19) and (20) from 1e-10 to 1 each, as in figure 4; C1 = C2 and gamma by
five-fold cross-validation of 1000 training rows (the paper fixes them likewise, on all rows). The
iterations do not depend on the tolerances, so that one run gives the errors at all of them: those
of the first iteration at which the algorithm would stop, or of the last one, 5000, where it would
not. The paper finds stable errors from 1e-1 down and recommends 1e-2.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.datasets import OrdinalTable, load_table
from ordrec.evaluation import TableProblem
from ordrec.experiments.runner import Reproduction, data_folder, main
from ordrec.kernels import Gaussian
from ordrec.ordinal import NPSVOR
from ordrec.ordinal.gram.matrix import DenseGram
from ordrec.ordinal.npsvor.admm import ADMM, Residuals, balanced
from ordrec.ordinal.npsvor.problem import mean_bias, planes_for
from ordrec.ordinal.scaling import Standardisation
from ordrec.ordinal.tuning import tune
from ordrec.report.figures import curves
from ordrec.report.html import FigureSection, TableSection
from ordrec.runtime.parallel import run_all

NAME = "npsvor-tolerances"
TITLE = "Errors of NPSVOR against the tolerances of its algorithm"
SOURCE = "Wang, Shi, Niu and Tian 2017, section V-B and figure 4"
TIME = "about forty minutes of one processor"

SETS = {"calhousing": 5000, "census2": 6000}
GRID = {"C1": 10.0 ** np.arange(-3, 4), "gamma": 10.0 ** np.arange(-3, 4)}
QUICK_GRID = {"C1": [1.0, 10.0], "gamma": [0.01, 0.1]}
EXPONENTS = list(range(-10, 1))
QUICK_EXPONENTS = [-6, -2, -1, 0]
MAX_STEPS, QUICK_STEPS = 5000, 500
EPSILON, ETA = 0.2, 1.0  # the paper's
METRICS = {"mze": lambda away: float(np.mean(away > 0)), "mae": lambda away: float(away.mean())}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run five draws; quick: one draw of 200 rows, four tolerances."""
    folder = data_folder(data, "ordinal-regression-frequency")
    tolerances = [10.0**exponent for exponent in (QUICK_EXPONENTS if quick else EXPONENTS)]
    frames, findings, checksums = [], [], {}
    for name, size in SETS.items():
        table = load_table(folder / f"{name}.csv.gz", label="y5", partitions=False)
        problem = TableProblem.drawn(table, [200 if quick else size], trials or (1 if quick else 5))
        checksums[name] = problem.checksum()
        drawn = np.random.default_rng(0).permutation(problem.parts[0][0])[:1000]
        few = Standardisation.of(table.X[drawn])(table.X[drawn])
        grid = QUICK_GRID if quick else GRID
        found = tune(NPSVOR(), few, table.y[drawn], grid, metric="mae").best_params
        findings.append(f"{name}: C1 = C2 = {found['C1']:g}, gamma = {found['gamma']:g}")
        shared = (table, problem.parts, found, tolerances, QUICK_STEPS if quick else MAX_STEPS)
        parts = run_all(errors_on_the_way, range(len(problem.parts)), shared=shared, n_jobs=jobs)
        frames += [part.assign(data=name) for part in parts]
    frame = pd.concat(frames, ignore_index=True)
    equal = frame[frame["absolute"] == frame["relative"]].assign(
        tolerance=lambda f: f["absolute"], series=lambda f: f["metric"] + ", " + f["data"]
    )
    means = equal.groupby(["series", "tolerance"], sort=False)["value"].mean().unstack()
    steps = equal.groupby(["series", "tolerance"], sort=False)["steps"].mean().unstack()
    for series, row in means.iterrows():
        least = row.index.min()
        findings.append(
            f"{series}: {row[1.0]:.4f} at 1, {row[0.1]:.4f} at 0.1, {row[0.01]:.4f} at 0.01, "
            f"{row[least]:.4f} at {least:g} (published: stable from 0.1 down); "
            f"{steps.loc[series, 0.01]:.0f} iterations at 0.01"
        )
    figure = curves(
        equal, "tolerance", "value", by="series", logarithmic="x", labels=("tolerance", "error")
    )
    sections = [FigureSection("Errors against both tolerances alike", figure, "tolerances")]
    for (name, metric), part in frame.groupby(["data", "metric"], sort=False):
        surface = part.pivot_table(index="absolute", columns="relative", values="value")
        sections.append(
            TableSection(
                f"{metric} of {name} against the absolute and the relative tolerance",
                surface.round(4),
                "Means over the draws; a row for each absolute tolerance, as in figure 4.",
            )
        )
    return Reproduction(frame, findings, sections=sections, checksums=checksums)


def errors_on_the_way(
    trial: int,
    table: OrdinalTable,
    parts: list,
    parameters: dict,
    tolerances: list[float],
    max_steps: int,
) -> pd.DataFrame:
    """Return the errors on the test part for each pair of tolerances, from one run."""
    train, test = parts[trial]
    scaling = Standardisation.of(table.X[train])
    X, new = scaling(table.X[train]), scaling(table.X[test])
    classes, ranks = np.unique(table.y[train], return_inverse=True)
    kernel = Gaussian(float(parameters["gamma"]))
    gram, cost = DenseGram(kernel(X)), np.full(train.size, float(parameters["C1"]))
    planes = planes_for(ranks, np.arange(classes.size), cost, cost, EPSILON)
    admm = ADMM(gram, planes, ETA, as_printed=True)
    to_new = kernel(new, X)

    def errors() -> dict[str, float]:
        z = balanced(planes, admm.z)
        distances = np.abs(to_new @ z + mean_bias(planes, z, gram.times(z)))
        away = np.abs(distances.argmin(axis=1) - np.searchsorted(classes, table.y[test]))
        return {metric: measure(away) for metric, measure in METRICS.items()}

    open_pairs = [(a, r) for a in tolerances for r in tolerances]
    rows = []
    while open_pairs:
        residuals = admm.advance()
        last = admm.n_iter == max_steps
        met = [pair for pair in open_pairs if last or stops(residuals, train.size, *pair)]
        if not met:
            continue
        measured = errors()
        rows += [
            (trial + 1, *pair, admm.n_iter, stops(residuals, train.size, *pair), metric, value)
            for pair in met
            for metric, value in measured.items()
        ]
        open_pairs = [pair for pair in open_pairs if pair not in met]
    columns = ["trial", "absolute", "relative", "steps", "reached", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def stops(residuals: Residuals, n: int, absolute: float, relative: float) -> bool:
    """Whether (19) and (20) hold for all ranks."""
    floor = np.sqrt(n) * absolute
    return bool(
        np.all(residuals.primal <= floor + relative * residuals.size)
        and np.all(residuals.dual <= floor + relative * residuals.pull)
    )


if __name__ == "__main__":
    main(NAME)
