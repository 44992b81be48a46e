"""Section V-D of Wang et al. (2017): ten methods on California housing, 100 to 10,000 rows.

Five ranks of equal size, Gaussian kernel with gamma = 1, C = 100 for all methods; errors and
time against the number of training rows: nineteen of them, as in the paper, which does not list
them.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.datasets import load_table
from ordrec.evaluation import Experiment, TableProblem
from ordrec.experiments.runner import Reproduction, data_folder, main
from ordrec.ordinal import NPSVOR, SVOREX, SVORIM
from ordrec.ordinal.baselines import CSSVC, OPBE, REDSVM, SVC1V1, SVC1VA, SVMOP, SVRanks
from ordrec.report.figures import curves
from ordrec.report.html import FigureSection

NAME = "npsvor-scaling"
TITLE = "Ten ordinal methods on ever more rows: errors and time"
SOURCE = "Wang, Shi, Niu and Tian 2017, section V-D and figure 7"
TIME = "about twenty minutes of one processor"

SIZES = np.geomspace(100, 10_000, 19).round(-1).astype(int).tolist()
QUICK_SIZES = [100, 300]
METHODS = {
    "SVC1V1": SVC1V1, "SVC1VA": SVC1VA, "SVR": SVRanks, "CSSVC": CSSVC, "SVMOP": SVMOP,
    "SVOREX": SVOREX, "SVORIM": SVORIM, "REDSVM": REDSVM, "OPBE": OPBE,
}  # fmt: skip


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run one draw of each size, or ``trials`` of them."""
    path = data_folder(data, "ordinal-regression-frequency") / "calhousing.csv.gz"
    table = load_table(path, label="y5", partitions=False)
    sizes = QUICK_SIZES if quick else SIZES
    problem = TableProblem.drawn(table, sizes, trials or 1)
    models = {
        name: make_pipeline(StandardScaler(), method(C=100.0, kernel="rbf", gamma=1.0))
        for name, method in METHODS.items()
    }
    models["NPSVOR"] = make_pipeline(
        StandardScaler(), NPSVOR(C1=100.0, epsilon=0.2, kernel="rbf", gamma=1.0)
    )
    few = problem.parts[0][0]
    started = time.perf_counter()
    for model in models.values():
        model.fit(table.X[few], table.y[few])
    print(f"first fits, not in what follows: {time.perf_counter() - started:.1f} s")
    result = Experiment(models, [problem], store=out / "cells").run(n_jobs=jobs)
    frame = result.frame
    largest = frame[frame["n_train"] == max(sizes)]
    findings = [f"at n = {max(sizes)}:"]
    for metric in ("mze", "mae"):
        at = largest[largest["metric"] == metric].groupby("model", sort=False)["value"].mean()
        findings.append(
            f"{metric}: NPSVOR {at['NPSVOR']:.4f}, rank {int(at.rank()['NPSVOR'])} of {len(at)}; "
            f"best {at.idxmin()} {at.min():.4f} (published: NPSVOR best from 1000 rows on)"
        )
    seconds = largest.groupby("model", sort=False)["fit_seconds"].mean()
    findings.append(
        f"time: NPSVOR {seconds['NPSVOR']:.2f} s, rank {int(seconds.rank()['NPSVOR'])} of "
        f"{len(seconds)} (published: faster than all but SVC1V1)"
    )
    sections = [
        FigureSection(
            f"{metric} against size",
            curves(
                frame[frame["metric"] == metric],
                "n_train",
                "value",
                labels=("training rows", metric),
            ),
            f"size-{metric}",
        )
        for metric in ("mze", "mae")
    ]
    sections.append(
        FigureSection(
            "Time against size",
            curves(
                frame[frame["metric"] == "mae"],
                "n_train",
                "fit_seconds",
                logarithmic=True,
                labels=("training rows", "seconds"),
            ),
            "time-size",
            "Seconds of fits after a first one of each model; compilation is not in them.",
        )
    )
    return Reproduction(result, findings, sections=sections, usual=False)


if __name__ == "__main__":
    main(NAME)
