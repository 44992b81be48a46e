"""Section 6.2 of Chu and Ghahramani (2005): the benchmark tables.

* Nine tables cut into 5 and into 10 intervals of equal length: SVORIM (SVM) against GPOR with
  Laplace's approximation and with EP.
* Seven large tables cut into 10 ranks of equal size, 50 to 200 training rows: Gaussian process
  regression on the ranks (GPR) beside them, and Wilcoxon's rank sum test, the paper's, of GPOR
  against both rivals over the partitions.

Gaussian kernel, features standardised by the training part, twenty published partitions. The
Gaussian processes choose their parameters by evidence; SVORIM by five-fold cross-validation on
the coarse and fine grid of its paper, on the measure that is reported. MZE and MAE are those of
the most probable rank, the log-loss is the paper's NLL. The digits are missing in the scan of
the paper: ``--published`` takes a csv with them (columns table, metric, data, model, mean and
standard_error); otherwise only its conclusions in words are checked.

``--sets`` and ``--methods`` run some of them only, such as ``--methods Laplace,EP``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.datasets import load_table
from ordrec.evaluation import EvaluationResult, Experiment, TableProblem
from ordrec.evaluation.significance import rank_sum
from ordrec.experiments.cross_validated import CrossValidated
from ordrec.experiments.published import beside_published, within
from ordrec.experiments.runner import Reproduction, among, data_folder, main
from ordrec.ordinal import GPOR, SVORIM
from ordrec.ordinal.baselines import GPRanks
from ordrec.report.html import TableSection

NAME = "gpor-tables"
TITLE = "Support vectors, Laplace and EP on the benchmark tables"
SOURCE = "Chu and Ghahramani 2005, section 6.2 and its tables of test results"
TIME = "about two hours of one processor"

LENGTH = [
    "diabetes", "pyrim", "triazines", "wisconsin", "machine", "autompg", "housing", "stock",
    "abalone",
]  # fmt: skip
FREQUENCY = ["bank1", "bank2", "computer1", "computer2", "calhousing", "census1", "census2"]
QUICK_SETS = ("diabetes", "pyrim", "bank1", "bank2")
PROCESSES = {
    "Laplace": make_pipeline(StandardScaler(), GPOR(inference="laplace")),
    "EP": make_pipeline(StandardScaler(), GPOR(inference="ep")),
    "EP bound": make_pipeline(StandardScaler(), GPOR(inference="ep", objective="variational")),
}
GPR = {"GPR": make_pipeline(StandardScaler(), GPRanks())}
SVM = {"SVM": CrossValidated(SVORIM(), "svor-paper", ("mze", "mae"))}
METHODS = SVM | GPR | PROCESSES
LEVEL = 0.05


def run(*, data, trials, jobs, quick, out: Path, sets=(), methods=(), published="") -> Reproduction:
    """Run twenty partitions; quick: two, of two sets of either kind."""
    chosen = among(methods or list(METHODS), list(METHODS), "method")
    names = among(sets or (QUICK_SETS if quick else LENGTH + FREQUENCY), LENGTH + FREQUENCY)
    length, frequency = problems(data, names)
    results = []

    def measure(models, on: list[TableProblem], metrics: list[str]) -> None:
        models = {name: model for name, model in models.items() if name in chosen}
        if not (models and on):
            return
        experiment = Experiment(
            models,
            on,
            metrics=metrics,
            store=out / "cells",
            max_folds=trials or (2 if quick else None),
        )
        results.append(experiment.run(n_jobs=jobs))

    measure(SVM, length + frequency, ["mze", "mae"])
    measure(GPR, frequency, ["mze", "mae"])
    measure(PROCESSES, length + frequency, ["mze", "mae", "log_loss"])
    result = EvaluationResult.joined(results)
    comparison = beside_published(result.frame, published) if published else None
    findings = [] if comparison is None else [within(comparison)]
    findings += in_words(result)
    sections = []
    if frequency and chosen == list(METHODS):
        tests = significance(result, [problem.name for problem in frequency])
        for rival, claim in (("SVM", "six of the seven"), ("GPR", "clearly superior")):
            against = tests.xs(rival, level="against")
            for ours in PROCESSES:
                part = against.xs(ours, level="GPOR")
                better = ((part["p"] < LEVEL) & (part["mze gained"] > 0)).sum()
                findings.append(
                    f"{ours} significantly better than {rival} by MZE on {better} of "
                    f"{len(part)} sets of equal frequency (published: {claim})"
                )
        sections.append(
            TableSection(
                "Against the rivals",
                tests,
                "Mean MZE of the rival minus that of GPOR, and p of Wilcoxon's rank sum test "
                "over the partitions, on the sets cut into ranks of equal size.",
            )
        )
    return Reproduction(result, findings, comparison, sections)


def problems(data: Path | None, names: list[str]) -> tuple[list[TableProblem], list[TableProblem]]:
    """Return the tables of either kind, named after set and number of ranks."""
    length, frequency = [], []
    for name in (name for name in LENGTH if name in names):
        path = data_folder(data, "ordinal-regression-length") / f"{name}.csv"
        for bins in (5, 10):
            table = load_table(path, label=f"y{bins}")
            length.append(TableProblem(replace(table, name=f"{name}, {bins} intervals")))
    for name in (name for name in FREQUENCY if name in names):
        path = data_folder(data, "ordinal-regression-frequency") / f"{name}.csv.gz"
        table = load_table(path, label="y10")
        frequency.append(TableProblem(replace(table, name=f"{name}, 10 ranks")))
    return length, frequency


def in_words(result: EvaluationResult) -> list[str]:
    """Return the paper's conclusions about its tables, counted over the sets."""
    sentences = []
    for metric in ("mze", "mae"):
        means = result.means(metric)
        if "SVM" not in means:
            continue
        ahead = [
            f"{way} on {int((means[way] <= means['SVM']).sum())}"
            for way in PROCESSES
            if way in means
        ]
        if ahead:
            sentences.append(
                f"{metric}: at or below SVM: {', '.join(ahead)} of {len(means)} sets "
                "(published: often better)"
            )
    for metric in ("mze", "mae", "log_loss"):
        means = result.means(metric)
        for other, said in (("Laplace", " (published: closely matching)"), ("EP bound", "")):
            if "EP" in means and other in means:
                apart = means[other] - means["EP"]
                sentences.append(
                    f"{metric}: {other} minus EP {apart.mean():+.4f} on average over "
                    f"{len(means)} sets, at most {apart.abs().max():.4f} apart{said}"
                )
    return sentences


def significance(result: EvaluationResult, names: list[str]) -> pd.DataFrame:
    """Compare each GPOR with each rival over the partitions."""
    scores, rows = result.scores("mze"), {}
    for name in names:
        values = scores.loc[name]
        for ours in PROCESSES:
            for rival in ("GPR", "SVM"):
                rows[name, ours, rival] = {
                    "mze gained": (values[rival] - values[ours]).mean(),
                    "p": rank_sum(values[ours], values[rival]).p,
                    "partitions": len(values),
                }
    frame = pd.DataFrame.from_dict(rows, orient="index").astype({"partitions": int})
    return frame.rename_axis(["data", "GPOR", "against"])


if __name__ == "__main__":
    main(NAME)
