"""Section 4.2 of Chu and Keerthi (2007): time against the number of training rows.

California housing cut into 5 and into 10 ranks of equal size; Gaussian kernel with kappa = 1,
C = 100; SVOREX, SVORIM and epsilon-SVR (epsilon 0.1) on ever more rows. The slope of a line
through log time and log n is the exponent of the cost. The paper's programs were SMO; ordrec's
default is an interior-point method, so exponents and ratios are for comparison only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.datasets import load_table
from ordrec.evaluation import Experiment, TableProblem
from ordrec.ordinal import SVOREX, SVORIM
from ordrec.ordinal.baselines import SVRanks
from ordrec.report.figures import curves
from ordrec.report.html import FigureSection, TableSection
from ordrec.report.reproduce import Reproduction, announce, data_folder, main

NAME = "svor-scaling"
TITLE = "Training time of SVOREX, SVORIM and SVR against the number of rows"
SOURCE = "Chu and Keerthi 2007, section 4.2 and figure 4"
TIME = "roughly half an hour"

SIZES = [100, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000]
QUICK_SIZES = [100, 200, 400, 800]
PUBLISHED = "published exponents: 2.13 to 2.33 for EXC and IMC, about 2.40 for SVR"


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """One draw of each size unless more trials are asked for."""
    path = data_folder(data, "ordinal-regression-frequency") / "calhousing.csv.gz"
    sizes = QUICK_SIZES if quick else SIZES
    problems = []
    for bins in (5, 10):
        table = load_table(path, label=f"y{bins}", partitions=False)
        problems.append(
            TableProblem.drawn(replace(table, name=f"{bins} ranks"), sizes, trials or 1)
        )
    parameters = {"C": 100.0, "kernel": "rbf", "gamma": 0.5}
    models = {
        name: make_pipeline(StandardScaler(), model(**parameters))
        for name, model in {"SVR": SVRanks, "EXC": SVOREX, "IMC": SVORIM}.items()
    }
    # Compilation is paid once and is no part of the question.
    few, table = problems[0].parts[0][0], problems[0].table
    for model in models.values():
        model.fit(table.X[few], table.y[few])
    experiment = Experiment(models, problems, store=out / "cells")
    result = experiment.run(n_jobs=jobs, progress=announce)
    once = result.frame[result.frame["metric"] == "mze"].assign(
        series=lambda f: f["model"] + ", " + f["data"]
    )
    largest = (
        once[once["n_train"] == max(sizes)].groupby("series", sort=False)["fit_seconds"].mean()
    )
    slopes = once.groupby("series", sort=False)[["n_train", "fit_seconds"]].apply(
        lambda part: np.polyfit(np.log(part["n_train"]), np.log(part["fit_seconds"]), 1)[0]
    )
    findings = [
        "exponents of time in n: " + ", ".join(f"{k} {v:.2f}" for k, v in slopes.items()),
        PUBLISHED,
        f"at n = {max(sizes)}: EXC takes {largest['EXC, 5 ranks'] / largest['SVR, 5 ranks']:.1f} "
        "times as long as SVR (published: about 2), IMC with 10 ranks "
        f"{largest['IMC, 10 ranks'] / largest['IMC, 5 ranks']:.1f} times as long as with 5 "
        "(published: about 5)",
    ]
    figure = curves(
        once,
        "n_train",
        "fit_seconds",
        by="series",
        logarithmic=True,
        labels=("training rows", "seconds"),
    )
    return Reproduction(
        result,
        findings,
        sections=[
            FigureSection("Time against size", figure, "scaling", PUBLISHED),
            TableSection("Exponents", slopes.to_frame("exponent"), PUBLISHED),
        ],
        usual=False,
    )


if __name__ == "__main__":
    main(NAME)
