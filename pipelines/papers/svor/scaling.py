"""Section 4.2 of Chu and Keerthi (2007): time against the number of training rows.

California housing cut into 5 and into 10 ranks of equal size; Gaussian kernel with kappa = 1,
C = 100; SVOREX, SVORIM and epsilon-SVR (epsilon 0.1) on 28 numbers of rows from 100 to 5000, as
many as in the paper (which does not list them). The slope of a line through log time and log n is
the exponent of the cost. The paper's programs were SMO, which is timed here on at most 1000 rows
("EXC by SMO"); EXC and IMC are by ordrec's default, an interior-point method. If skordinal is
installed, which wraps a program of the paper's first author, it is timed on at most 1000 rows, too.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.datasets import load_table
from ordrec.evaluation import EvaluationResult, Experiment, TableProblem
from ordrec.experiments.runner import Reproduction, data_folder, main
from ordrec.ordinal import SVOREX, SVORIM
from ordrec.ordinal.baselines import SVRanks
from ordrec.report.figures import curves
from ordrec.report.html import FigureSection, TableSection

NAME = "svor-scaling"
TITLE = "Training time of SVOREX, SVORIM and SVR against the number of rows"
SOURCE = "Chu and Keerthi 2007, section 4.2 and figure 4"
TIME = "about four minutes of one processor, more where skordinal is timed too"

SIZES = np.geomspace(100, 5000, 28).round(-1).astype(int).tolist()
QUICK_SIZES = [100, 200, 400, 800]
SLOW_ROWS = 1000  # of SMO and of skordinal
PARAMETERS = {"C": 100.0, "kernel": "rbf", "gamma": 0.5}
TIMED = "Seconds of fits after a first one of each model; compilation is not in them"
PUBLISHED = "published exponents: 2.13 to 2.33 for EXC and IMC, about 2.40 for SVR"


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run one draw of each size, or ``trials`` of them."""
    path = data_folder(data, "ordinal-regression-frequency") / "calhousing.csv.gz"
    sizes = QUICK_SIZES if quick else SIZES
    tables = [
        replace(load_table(path, label=f"y{bins}", partitions=False), name=f"{bins} ranks")
        for bins in (5, 10)
    ]
    models = {
        name: make_pipeline(StandardScaler(), model(**PARAMETERS))
        for name, model in {"SVR": SVRanks, "EXC": SVOREX, "IMC": SVORIM}.items()
    }
    slow = {
        f"{name} by SMO": make_pipeline(StandardScaler(), model(**PARAMETERS, solver="smo"))
        for name, model in {"EXC": SVOREX, "IMC": SVORIM}.items()
    }
    results = []
    for timed, most_rows in ((models, max(sizes)), (slow | peers(), SLOW_ROWS)):
        drawn = [
            TableProblem.drawn(table, [n for n in sizes if n <= most_rows], trials or 1)
            for table in tables
        ]
        # Compile before anything is timed.
        few = drawn[0].parts[0][0]
        for model in timed.values():
            model.fit(tables[0].X[few], tables[0].y[few])
        experiment = Experiment(timed, drawn, store=out / "cells")
        results.append(experiment.run(n_jobs=jobs))
    result = EvaluationResult.joined(results)
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
        *against_peers(once),
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
            FigureSection("Time against size", figure, "scaling", f"{TIMED}; {PUBLISHED}."),
            TableSection("Exponents", slopes.to_frame("exponent"), PUBLISHED),
        ],
        usual=False,
    )


def peers() -> dict:
    """Return the same two machines of skordinal, if it is installed."""
    if find_spec("skordinal") is None:
        return {}
    from skordinal.classifiers import SVOR

    return {
        f"{name} of skordinal": make_pipeline(
            StandardScaler(), SVOR(**PARAMETERS, constraints=constraints)
        )
        for name, constraints in {"EXC": "explicit", "IMC": "implicit"}.items()
    }


def against_peers(once: pd.DataFrame) -> list[str]:
    """Return how many times as long skordinal takes, on the largest number of common rows."""
    theirs = once[once["model"].str.endswith("skordinal")]
    if theirs.empty:
        return ["skordinal is not installed: not timed"]
    n = theirs["n_train"].max()
    seconds = once[once["n_train"] == n].groupby("series", sort=False)["fit_seconds"].mean()
    ratios = []
    for name in theirs["series"].unique():
        ours = name.replace(" of skordinal", "")
        ratios.append(f"{ours}: {seconds[name] / seconds[ours]:.0f}")
    return [f"at n = {n} skordinal takes this many times as long: {'; '.join(ratios)}"]


if __name__ == "__main__":
    main(NAME)
