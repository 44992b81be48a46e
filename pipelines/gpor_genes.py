"""Ranking genes by an ARD linear kernel, as in Chu and Ghahramani (2005), section 6.4.

    python pipelines/gpor_genes.py                              an invented data set
    python pipelines/gpor_genes.py expression.csv --label grade [--levels low mid high]

On each training part the weights of an ARD linear kernel are raised by evidence, the genes
ranked by them, and GPOR with a plain linear kernel is trained on the 1, 2, 4, 8, ... best.
Printed is the error on the test parts against the number of genes, mean and deviation over
the trials, and the genes that are most often at the top. The ranking sees the training part only.

With many more genes than samples the evidence ends up choosing whatever separates the
training samples; the ascent is therefore stopped after a few iterations, when the weights
have moved apart but not yet settled (``--steps``).
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from ordrec.datasets import OrdinalTable, load_table
from ordrec.ordinal.gpor import GPOR


def main() -> None:
    """Load or invent the data, print errors and genes."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("file", nargs="?", type=Path, help="csv: a row a sample, a column a gene")
    options.add_argument("--label", help="the column of the grade")
    options.add_argument("--levels", nargs="+", help="the grades, lowest first")
    options.add_argument("--inference", choices=["laplace", "ep"], default="laplace")
    options.add_argument("--steps", type=int, default=5, help="iterations of the ranking")
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--trials", type=int, default=4, help="repetitions of the folds")
    options.add_argument("--jobs", type=int, default=2)
    chosen = options.parse_args()
    table = invented()
    if chosen.file:
        table = load_table(chosen.file, label=chosen.label, levels=chosen.levels, partitions=False)
    parts = [
        part
        for trial in range(chosen.trials)
        for part in StratifiedKFold(chosen.folds, shuffle=True, random_state=trial).split(
            table.X, table.y
        )
    ]
    outcomes = Parallel(n_jobs=chosen.jobs)(
        delayed(one_part)(table, train, test, chosen.inference, chosen.steps)
        for train, test in parts
    )
    errors = pd.concat([errors for errors, _ in outcomes])
    print(f"{table.name}: {table.X.shape[0]} samples, {table.X.shape[1]} genes, {chosen.inference}")
    print(errors.groupby("genes").agg(["mean", "std"]).round(4).to_string())
    seen = Counter(name for _, best in outcomes for name in best)
    print(f"\namong the ten best, of {len(parts)} rankings:")
    for name, times in seen.most_common(15):
        print(f"  {name}: {times}")


def one_part(
    table: OrdinalTable, train: np.ndarray, test: np.ndarray, inference: str, steps: int
) -> tuple[pd.DataFrame, list[str]]:
    """Rank on the training part, then test growing sets of the best genes."""
    centre, spread = table.X[train].mean(axis=0), table.X[train].std(axis=0)
    varies = spread > 1e-9 * np.abs(centre)  # a constant column has a spread of rounding errors
    X = (table.X - centre) / np.where(varies, spread, 1.0)
    classes = np.arange(1, table.n_ranks + 1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # stopped early on purpose, in mid-ascent
        ranking = GPOR("ard-linear", inference=inference, max_iter=steps, classes=classes)
        order = ranking.fit(X[train], table.y[train]).select_features(X.shape[1])
        rows = []
        for count in (*2 ** np.arange(int(np.log2(X.shape[1])) + 1), X.shape[1]):
            columns = order[:count]
            model = GPOR("linear", inference=inference, classes=classes)
            model.fit(X[np.ix_(train, columns)], table.y[train])
            off = np.abs(model.predict(X[np.ix_(test, columns)]) - table.y[test])
            rows.append({"genes": count, "mze": (off > 0).mean(), "mae": off.mean()})
    return pd.DataFrame(rows), [table.feature_names[v] for v in order[:10]]


def invented(n: int = 50, n_genes: int = 500, n_relevant: int = 10) -> OrdinalTable:
    """Ten genes that follow the grade of fifty samples, and 490 that do not."""
    rng = np.random.default_rng(0)
    X, grade = rng.normal(size=(n, n_genes)), rng.normal(size=n)
    X[:, :n_relevant] = 0.8 * grade[:, None] + 0.6 * X[:, :n_relevant]
    y = 1 + np.digitize(grade + 0.3 * rng.normal(size=n), [-0.5, 0.7])
    names = [f"relevant {v}" if v < n_relevant else f"gene {v}" for v in range(n_genes)]
    return OrdinalTable(X, y, names, 3, name="invented expression data")


if __name__ == "__main__":
    main()
