"""Table V and figure 6 of Wang et al. (2017): seconds of cross-validation of ten methods.

The sets, methods and grid of tables II and III (see ``npsvor_tables.py``): 49 settings on five
folds, and the final fits, on the first partition of each set, with one thread. All methods share
the kernel matrices of a search, and compiling does not count. The seconds of the paper, of MATLAB
and C programs on another machine, are lost in its scan; what it says of them is compared.

``--sets`` runs some of the sets only; ``--sets stock`` has a time of the authors' program.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ordrec.evaluation import Experiment
from ordrec.experiments.cross_validated import CrossValidated
from ordrec.experiments.runner import Reproduction, among, list_pipelines, main
from ordrec.report.figures import MARKERS, PALETTE, blank
from ordrec.report.html import FigureSection, TableSection

NAME = "npsvor-times"
TITLE = "Seconds of cross-validation of ten ordinal methods"
SOURCE = "Wang, Shi, Niu and Tian 2017, section V-C, table V and figure 6"
TIME = "about twenty minutes of one processor without four large sets, which take days"

QUICK_SETS = ("contact-lenses", "toy", "SWD")
BINARY = ["SVC1V1", "SVC1VA", "CSSVC", "SVMOP"]  # decompositions into binary problems
LARGE = 500  # training rows above which a set is in figure 6


def run(*, data, trials, jobs, quick, out: Path, sets=()) -> Reproduction:
    """Run one partition of each set, or ``trials``; quick: three sets, small grid."""
    tables = list_pipelines()["npsvor-tables"].load()
    known = (*tables.SURVEY, *tables.DISCRETISED, tables.DEMONSTRATED)
    names = among(sets or (QUICK_SETS if quick else tables.SURVEY + tables.DISCRETISED), known)
    models = {
        name: CrossValidated(method, tables.grid(name, quick), ("mze", "mae"))
        for name, method in tables.PAPER.items()
    }
    problems = [tables.problem(data, name) for name in names]
    experiment = Experiment(
        models, problems, metrics=["mae"], store=out / "cells", max_folds=trials or 1
    )
    with threadpool_limits(1):
        for name, method in tables.PAPER.items():  # what is done once in a process does not count
            first = CrossValidated(method, tables.grid(name, True), n_folds=2)
            first.fit(np.arange(12.0)[:, None], np.repeat([1, 2, 3], 4))
        result = experiment.run(n_jobs=jobs)
    frame = result.frame.assign(metric="seconds", value=result.frame["fit_seconds"])
    frame = frame.sort_values("n_train", kind="stable")
    seconds = frame.pivot_table(
        index=["n_train", "data"], columns="model", values="value", sort=False
    )[list(models)]
    large = seconds[seconds.index.get_level_values("n_train") > LARGE]
    sections = [
        TableSection(
            "Seconds of a search",
            seconds.round(2),
            "Five-fold cross-validation of all settings and the final fits, one thread; means over "
            "the partitions. Sets in order of their training rows. " + tables.RIVALS,
        )
    ]
    if len(large):
        sections.append(
            FigureSection(f"More than {LARGE} training rows", picture(large), "seconds-of-a-search")
        )
    result = replace(result, frame=frame)
    return Reproduction(result, findings(seconds), sections=sections, usual=False)


def findings(seconds: pd.DataFrame) -> list[str]:
    """Return how the time of NPSVOR compares, on small and on large sets."""
    rows = seconds.index.get_level_values("n_train")
    found = []
    for text, part, claim in (
        (f"up to {LARGE} training rows", seconds[rows <= LARGE], "slower"),
        (f"more than {LARGE} training rows", seconds[rows > LARGE], "quite efficient"),
    ):
        if not len(part):
            continue
        ratio = np.exp(np.log(part[["NPSVOR"]].to_numpy() / part[BINARY]).to_numpy().mean())
        total = part.sum()
        found.append(
            f"{text} (sets: {len(part)}): NPSVOR takes {ratio:.2f} times as long as the binary "
            f"decompositions (geometric mean; published: {claim}); in all {total['NPSVOR']:.1f} s, "
            f"place {int(total.rank()['NPSVOR'])} of {len(total)}; fastest {total.idxmin()} "
            f"{total.min():.1f} s"
        )
    return found


def picture(seconds: pd.DataFrame):
    """Draw seconds of each method over the sets, in order of their training rows."""
    figure, axes = blank(height=4.2)
    axis = axes[0, 0]
    for number, (name, column) in enumerate(seconds.items()):
        style = {"marker": MARKERS[number % len(MARKERS)], "color": PALETTE[number % len(PALETTE)]}
        axis.plot(range(len(column)), column, markersize=4, linewidth=1, label=name, **style)
    labels = [f"{name}\n{rows}" for rows, name in seconds.index]
    axis.set_xticks(range(len(labels)), labels, fontsize=7, rotation=30 * (len(labels) > 8))
    axis.set_yscale("log")
    axis.set_ylabel("seconds of a search")
    axis.set_xlabel("set and training rows")
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    return figure


if __name__ == "__main__":
    main(NAME)
