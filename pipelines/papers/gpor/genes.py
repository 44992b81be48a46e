"""Section 6.4 of Chu and Ghahramani (2005): ranking genes by an ARD linear kernel.

On each training part the weights of an ARD linear kernel are chosen by evidence, the genes
are ranked by them, and GPOR with a plain linear kernel is trained on the 1, 2, 4, 8, ... best, and
beside it SVORIM, with C by five-fold cross-validation; the error on the test part is shown against
the number of genes. The ranking sees the training part only. Four times five stratified folds.

The paper's expression data are not available. Your own data are read from ``genes.csv`` in the
data folder (one row per sample, one column per gene, the grade 1, 2, ... in the column ``y``) or
from the file given by ``--file expression.csv --label grade --levels low,middle,high``;
otherwise synthetic data are used: ten genes that follow the grade of fifty samples, and 490 that
do not.

With many more genes than samples, maximal evidence selects any genes that separate the training
samples; the ascent is therefore stopped after a few iterations, when the weights differ but have
not yet converged (``--steps``).
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from ordrec.datasets import OrdinalTable, load_table
from ordrec.evaluation import Experiment, TableProblem
from ordrec.experiments.cross_validated import CrossValidated
from ordrec.experiments.runner import Reproduction, main
from ordrec.ordinal import GPOR, SVORIM
from ordrec.report.figures import curves
from ordrec.report.html import FigureSection, TableSection
from ordrec.runtime.parallel import run_all

NAME = "gpor-genes"
TITLE = "Grades from the expression of the genes that an ARD kernel ranks highest"
SOURCE = "Chu and Ghahramani 2005, section 6.4"
TIME = "about a minute with the synthetic data"

FOLDS, REPEATS = 5, 4
GRID = {"C": 10.0 ** np.arange(-3, 4)}
TOP = 10


class BestGenes(ClassifierMixin, BaseEstimator):
    """A model on the features that the ARD linear kernel of a GPOR ranks highest.

    The model is a GPOR of the same inference, or SVORIM (``inference="svm"``), for which the
    ranking is Laplace's.
    """

    def __init__(self, n_genes: int, inference: str = "laplace", steps: int = 5, classes=None):
        self.n_genes = n_genes
        self.inference = inference
        self.steps = steps
        self.classes = classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> BestGenes:
        """Rank the genes, then train on the best."""
        self.scaler_ = StandardScaler().fit(X)
        X = self.scaler_.transform(X)
        support_vectors = self.inference == "svm"
        inference = "laplace" if support_vectors else self.inference
        self.order_ = ranking(X, y, inference, self.steps, self.classes)
        model = GPOR("linear", inference=inference, classes=self.classes)
        if support_vectors:
            machine = SVORIM(kernel="linear")
            model = CrossValidated(machine, GRID, standardise=False, classes=self.classes)
        self.model_ = model.fit(X[:, self.order_[: self.n_genes]], y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted grades."""
        chosen = self.scaler_.transform(X)[:, self.order_[: self.n_genes]]
        return self.model_.predict(chosen)


def run(
    *, data, trials, jobs, quick, out: Path, file="", label="", levels=(), steps=5, inference=""
) -> Reproduction:
    """Run twenty folds with SVM, Laplace's approximation and EP; quick: five, without EP."""
    table = expression(data, file, label, levels)
    wanted = trials or (FOLDS if quick else FOLDS * REPEATS)
    repeats = -(-wanted // FOLDS)
    parts = [
        part
        for repeat in range(repeats)
        for part in StratifiedKFold(FOLDS, shuffle=True, random_state=repeat).split(
            table.X, table.y
        )
    ][:wanted]
    problem = TableProblem(table, parts, split_name=f"{repeats} x {FOLDS} folds")
    n_genes = table.X.shape[1]
    counts = [*2 ** np.arange(int(np.ceil(np.log2(n_genes)))), n_genes]
    ways = [inference] if inference else ["laplace", "svm"] if quick else ["laplace", "ep", "svm"]
    models = {
        f"{way}, {count}": BestGenes(int(count), way, steps) for way in ways for count in counts
    }
    experiment = Experiment(models, [problem], store=out / "cells")
    result = experiment.run(n_jobs=jobs)
    frame = result.frame.assign(
        inference=result.frame["model"].str.split(", ").str[0],
        genes=result.frame["model"].str.split(", ").str[1].astype(int),
    )
    findings = [f"{table.name}: {table.X.shape[0]} samples, {n_genes} genes"]
    for way, part in frame[frame["metric"] == "mae"].groupby("inference", sort=False):
        means = part.groupby("genes")["value"].mean()
        findings.append(
            f"{way}: MAE {means.iloc[-1]:.4f} with all genes, {means.min():.4f} with the best "
            f"{means.idxmin()} (published: a few genes do better than all)"
        )
    frequent = most_often(table, parts, "laplace" if ways[0] == "svm" else ways[0], steps, jobs)
    findings.append(
        f"among the {TOP} best in all {len(parts)} rankings: "
        + (", ".join(frequent.index[frequent["rankings"] == len(parts)]) or "no gene")
    )
    sections = [
        FigureSection(
            f"{metric} against the number of genes",
            curves(
                frame[frame["metric"] == metric],
                "genes",
                "value",
                by="inference",
                logarithmic="x",
                labels=("genes, best first", metric),
            ),
            f"genes-{metric}",
            "Mean and standard error over the test parts.",
        )
        for metric in ("mae", "mze")
    ]
    sections.append(
        TableSection(
            "Genes that are often at the top",
            frequent.head(15),
            f"Number of the {len(parts)} rankings in which a gene is among the {TOP} best.",
        )
    )
    return Reproduction(result, findings, sections=sections, usual=False)


def expression(data: Path | None, file: str, label: str, levels) -> OrdinalTable:
    """Return the user's data, or synthetic data."""
    path = Path(file).expanduser() if file else None
    if path is None and data is not None and (data / "genes.csv").exists():
        path = data / "genes.csv"
    if path is None:
        return invented()
    return load_table(path, label=label or None, levels=levels or None, partitions=False)


def invented(n: int = 50, n_genes: int = 500, n_relevant: int = 10) -> OrdinalTable:
    """Return a table with a few genes that follow the grade of the samples and many that do not."""
    rng = np.random.default_rng(0)
    X, grade = rng.normal(size=(n, n_genes)), rng.normal(size=n)
    X[:, :n_relevant] = 0.8 * grade[:, None] + 0.6 * X[:, :n_relevant]
    y = 1 + np.digitize(grade + 0.3 * rng.normal(size=n), [-0.5, 0.7])
    names = [f"relevant {v}" if v < n_relevant else f"gene {v}" for v in range(n_genes)]
    return OrdinalTable(X, y, names, 3, name="invented expression data")


def ranking(X: np.ndarray, y: np.ndarray, inference: str, steps: int, classes) -> np.ndarray:
    """Return the columns of standardised features, the most relevant first."""
    model = GPOR("ard-linear", inference=inference, max_iter=steps, classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
        return model.fit(X, y).select_features(X.shape[1])


def ranking_of_part(
    train: np.ndarray, X: np.ndarray, y: np.ndarray, inference: str, steps: int, classes
) -> np.ndarray:
    """Return the ranking of the genes by the training rows of a fold."""
    return ranking(StandardScaler().fit_transform(X[train]), y[train], inference, steps, classes)


def most_often(table: OrdinalTable, parts, inference: str, steps: int, jobs: int) -> pd.DataFrame:
    """Return how often each gene is among the best, most often first."""
    classes = np.arange(1, table.n_ranks + 1)
    shared = (table.X, table.y, inference, steps, classes)
    orders = run_all(ranking_of_part, [train for train, _ in parts], shared=shared, n_jobs=jobs)
    seen = Counter(table.feature_names[v] for order in orders for v in order[:TOP])
    frame = pd.DataFrame(seen.most_common(), columns=["gene", "rankings"])
    return frame.set_index("gene")


if __name__ == "__main__":
    main(NAME)
