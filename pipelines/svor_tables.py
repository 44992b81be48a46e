"""Tables 1 and 2 of Chu & Keerthi (2007), next to what ordrec measures.

    python pipelines/svor_tables.py --data FOLDER [--sets pyrim,machine] [--ranks 5,10]
                                    [--trials 20] [--jobs 2] [--out results.csv]

Regression tables cut into 5 (table 1) and 10 (table 2) ranks of equal frequency; SVORSLA,
SVOREX and SVORIM with a Gaussian kernel, C and kappa chosen on the paper's coarse and fine
grids by 5-fold cross-validation of each training part, once for the zero-one and once for
the absolute error; 20 partitions. FOLDER (by default ORDREC_DATA) holds
``ordinal-regression-frequency``; its partitions have the paper's sizes but are not the
paper's draws.

Every cell shows ordrec's mean and standard error over the trials, the paper's, and the
difference in standard errors (both combined). A star marks more than two.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from ordrec.datasets.tables import load_table
from ordrec.ordinal.svor.model import SVOREX, SVORIM, SVORSLA
from ordrec.ordinal.tuning import tune

PUBLISHED = Path(__file__).parent / "published" / "svor-tables.csv"
SETS = ["pyrim", "machine", "housing", "abalone"]
MODELS = {"SLA": SVORSLA, "EXC": SVOREX, "IMC": SVORIM}
PAPER_TRIALS = 20


def main() -> None:
    """Run the trials and print both tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--sets", default=",".join(SETS), help="comma-separated, from the default")
    options.add_argument("--ranks", default="5,10", help="5 (table 1), 10 (table 2) or both")
    options.add_argument("--trials", type=int, default=PAPER_TRIALS)
    options.add_argument("--jobs", type=int, default=1, help="trials run side by side")
    options.add_argument("--out", help="csv for the result of each trial")
    chosen = options.parse_args()
    if not chosen.data:
        options.error("name the data folder with --data or ORDREC_DATA")
    folder = Path(chosen.data) / "ordinal-regression-frequency"
    work = [
        (name, int(n_ranks), trial, algorithm)
        for name in chosen.sets.split(",")
        for n_ranks in chosen.ranks.split(",")
        for algorithm in MODELS
        for trial in range(chosen.trials)
        if not (algorithm == "SLA" and n_ranks == "5")  # table 1 has no SLA
    ]
    started = time.perf_counter()
    rows = Parallel(n_jobs=chosen.jobs)(delayed(one_trial)(folder, *task) for task in work)
    results = pd.DataFrame(rows)
    if chosen.out:
        results.to_csv(chosen.out, index=False)
    report(results)
    minutes = (time.perf_counter() - started) / 60
    print(f"\n{len(work)} trials in {minutes:.1f} minutes; seconds a trial (two searches each):")
    print(results.groupby(["data", "n_ranks"], sort=False)["seconds"].mean().round(1).to_string())


def one_trial(folder: Path, name: str, n_ranks: int, trial: int, algorithm: str) -> dict:
    """Tune on one training part for each measure, and measure on the rest."""
    table = load_table(folder / f"{name}.csv.gz", label=f"y{n_ranks}")
    train, test = table.split(trial)
    row = {"data": name, "n_ranks": n_ranks, "algorithm": algorithm, "trial": trial}
    started = time.perf_counter()
    for measure in ("MZE", "MAE"):
        model = MODELS[algorithm](classes=np.arange(1, n_ranks + 1))
        found = tune(model, table.X[train], table.y[train], "svor-paper", metric=measure.lower())
        off = np.abs(found.estimator.predict(table.X[test]) - table.y[test])
        row[measure] = np.mean(off > 0) if measure == "MZE" else np.mean(off)
        row[f"{measure} C"] = found.best_params["C"]
        row[f"{measure} kappa"] = 2 * found.best_params["gamma"]
    return row | {"seconds": time.perf_counter() - started}


def report(results: pd.DataFrame) -> None:
    """Print what was run of both tables, and how many cells agree."""
    published = pd.read_csv(PUBLISHED).set_index(["n_ranks", "measure", "data", "algorithm"])
    grouped = results.groupby(["n_ranks", "data", "algorithm"], sort=False)
    mean = grouped[["MZE", "MAE"]].mean()
    error = grouped[["MZE", "MAE"]].std().fillna(0.0)
    error = error.div(np.sqrt(grouped["trial"].count()), axis=0)
    close = total = 0
    for n_ranks in dict.fromkeys(results["n_ranks"]):
        part = results[results["n_ranks"] == n_ranks]
        algorithms = list(dict.fromkeys(part["algorithm"]))
        for measure in ("MZE", "MAE"):
            print(f"\nTable {n_ranks // 5}: {n_ranks} ranks, {measure}: ordrec | paper, difference")
            print(" " * 10 + "".join(f"{algorithm:<38}" for algorithm in algorithms))
            for name in dict.fromkeys(part["data"]):
                cells = []
                for algorithm in algorithms:
                    ours = mean.loc[(n_ranks, name, algorithm), measure]
                    ours_error = error.loc[(n_ranks, name, algorithm), measure]
                    paper = published.loc[(n_ranks, measure, name, algorithm)]
                    paper_error = paper["standard_deviation"] / np.sqrt(PAPER_TRIALS)
                    apart = (ours - paper["mean"]) / np.hypot(ours_error, paper_error)
                    close, total = close + (abs(apart) <= 2), total + 1
                    mark = " " if abs(apart) <= 2 else "*"
                    cells.append(
                        f"{ours:.3f}±{ours_error:.3f} | {paper['mean']:.3f}±{paper_error:.3f} "
                        f"{apart:+.1f}{mark}"
                    )
                print(f"{name:<10}" + "".join(f"{cell:<38}" for cell in cells))
    print(f"\n{close} of {total} cells within two standard errors")


if __name__ == "__main__":
    main()
