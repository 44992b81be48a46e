"""Section V-C of Wang et al. (2017): ten methods on the 17 survey sets.

The paper has six discretised regression sets besides; which, is lost in the scan with table I.

Thirty published stratified partitions of each set; Gaussian kernel; C (C1 = C2 of NPSVOR) and
gamma from 10^-3 .. 10^3 by five-fold cross-validation on the measure that is reported, so
every method is tuned twice. Significant wins, draws and losses by Wilcoxon's test over the
partitions of each set; average ranks, Friedman's test and the critical-difference diagram over
the sets. The numbers of tables II and III are missing in the scan of the paper: what is
checked are its statements about them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.datasets import load_table
from ordrec.evaluation import Experiment, ExperimentResult, TableProblem
from ordrec.evaluation.experiment.cross_validated import CrossValidated
from ordrec.evaluation.significance import friedman, win_draw_loss
from ordrec.experiments.runner import Reproduction, data_folder, main
from ordrec.ordinal import NPSVOR, SVOREX, SVORIM
from ordrec.ordinal.baselines import CSSVC, OPBE, REDSVM, SVC1V1, SVC1VA, SVMOP, SVRanks
from ordrec.report.html import TableSection

NAME = "npsvor-tables"
TITLE = "Ten ordinal methods on the 17 survey sets"
SOURCE = "Wang, Shi, Niu and Tian 2017, section V-C, tables II to IV and figure 5"
TIME = "many hours (a day on two processors); a stopped run continues"

SETS = [
    "contact-lenses", "pasture", "squash-stored", "squash-unstored", "tae", "newthyroid",
    "balance-scale", "SWD", "car", "bondrate", "toy", "eucalyptus", "LEV", "automobile",
    "winequality-red", "ESL", "ERA",
]  # fmt: skip
QUICK_SETS = ["contact-lenses", "pasture", "squash-stored", "squash-unstored"]
QUICK_C, QUICK_GAMMA = [10.0], [0.001, 0.1]
METHODS = {
    "SVC1V1": SVC1V1(), "SVC1VA": SVC1VA(), "SVR": SVRanks(), "CSSVC": CSSVC(),
    "SVMOP": SVMOP(), "SVOREX": SVOREX(), "SVORIM": SVORIM(), "REDSVM": REDSVM(),
    "OPBE": OPBE(), "NPSVOR": NPSVOR(epsilon=0.2),
}  # fmt: skip


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run thirty partitions as published; quick: two, of the four smallest sets, small grid."""
    folder = data_folder(data, "ordinal-survey")
    names = QUICK_SETS if quick else SETS
    problems = [TableProblem(load_table(folder / f"{name}.csv")) for name in names]
    models = {
        name: CrossValidated(method, grid(method, quick), ("mze", "mae"))
        for name, method in METHODS.items()
    }
    experiment = Experiment(
        models,
        problems,
        metrics=["mze", "mae"],
        store=out / "cells",
        max_folds=trials or (2 if quick else None),
    )
    result = experiment.run(n_jobs=jobs)
    findings, sections = [], []
    for metric, claim in (("mze", "second best"), ("mae", "best")):
        means = result.means(metric).dropna(axis=1)
        test = friedman(means)
        place = int(test.ranks.rank(method="min")["NPSVOR"])
        findings.append(
            f"{metric}: NPSVOR has average rank {test.ranks['NPSVOR']:.2f}, place {place} of "
            f"{len(test.ranks)} (published: {claim}); Friedman p = {test.p:.2g}"
        )
        sections.append(
            TableSection(
                f"Significant wins, draws and losses by {metric}",
                counts(result, metric).assign(average_rank=test.ranks),
                "Wilcoxon's signed-rank test at 5 % over the partitions of each set, against "
                "each of the other methods.",
            )
        )
    return Reproduction(result, findings, sections=sections)


def grid(method, quick: bool):
    """Return the paper's grid, or two settings."""
    if not quick:
        return "npsvor-paper"
    return {"C1" if isinstance(method, NPSVOR) else "C": QUICK_C, "gamma": QUICK_GAMMA}


def counts(result: ExperimentResult, metric: str) -> pd.DataFrame:
    """Return wins, draws and losses of each method, sorted by wins minus losses."""
    scores = result.scores(metric)
    rows = {}
    for method in scores:
        pairs = [win_draw_loss(scores, method, other) for other in scores if other != method]
        rows[method] = dict(
            zip(("wins", "draws", "losses"), np.sum(pairs, axis=0).tolist(), strict=True)
        )
    table = pd.DataFrame(rows).T
    return table.iloc[np.argsort(table["losses"] - table["wins"], kind="stable")]


if __name__ == "__main__":
    main(NAME)
