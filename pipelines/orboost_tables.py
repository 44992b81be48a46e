"""Tables 1 and 2 of Lin & Li (2006), next to what ordrec measures.

    python pipelines/orboost_tables.py --data FOLDER [--sets pyrim,machine] [--trials 20]
                                       [--rounds 2000] [--jobs 2] [--out results.csv]

Eight regression tables cut into ten ranks of equal frequency, RankBoost-AE, ORBoost-LR and
ORBoost-All with perceptrons and with sigmoids, 20 trials of 2000 rounds. The four small sets
use the published partitions; the four large ones, whose partitions were not published at
these sizes, fresh stratified draws of the paper's size. FOLDER (by default ORDREC_DATA)
holds ``ordinal-regression-frequency``.

Every cell shows ordrec's mean and standard error over the trials, then the paper's. A star
marks a difference of more than two standard errors (both errors combined); a single trial
has none, and no stars.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from ordrec.datasets.tables import OrdinalTable, load_table
from ordrec.ordinal.boosting import ORBoost, RankBoostAE

PUBLISHED = Path(__file__).parent / "published" / "orboost-tables.csv"
DRAWN = {"bank2": 3000, "computer2": 4000, "calhousing": 5000, "census2": 6000}
SETS = ["pyrim", "machine", "housing", "abalone", *DRAWN]
BASES = ("perceptron", "sigmoid")
ALGORITHMS = ("RankBoost-AE", "ORBoost-LR", "ORBoost-All")


def main() -> None:
    """Run the trials and print both tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--sets", default=",".join(SETS), help="comma-separated, from the default")
    options.add_argument("--trials", type=int, default=20)
    options.add_argument("--rounds", type=int, default=2000)
    options.add_argument("--jobs", type=int, default=1, help="trials run side by side")
    options.add_argument("--out", help="csv for the result of each trial")
    chosen = options.parse_args()
    if not chosen.data:
        options.error("name the data folder with --data or ORDREC_DATA")
    folder = Path(chosen.data) / "ordinal-regression-frequency"
    work = [
        (name, trial, algorithm, base)
        for name in chosen.sets.split(",")
        for trial in range(chosen.trials)
        for algorithm in ALGORITHMS
        for base in BASES
    ]
    started = time.perf_counter()
    rows = Parallel(n_jobs=chosen.jobs)(
        delayed(one_trial)(folder, chosen.rounds, *task) for task in work
    )
    results = pd.DataFrame(rows)
    if chosen.out:
        results.to_csv(chosen.out, index=False)
    report(results)
    minutes = (time.perf_counter() - started) / 60
    print(f"\n{len(work)} fits of {chosen.rounds} rounds in {minutes:.1f} minutes; seconds a fit:")
    print(results.groupby("data", sort=False)["seconds"].mean().round(1).to_string())


def one_trial(folder: Path, rounds: int, name: str, trial: int, algorithm: str, base: str) -> dict:
    """Fit on one training part, measure on the rest."""
    table = load_table(
        folder / f"{name}.csv.gz",
        label="y10",
        partitions=False if name in DRAWN else folder / f"{name}.train-rows-10.txt",
    )
    train, test = draw(table, DRAWN[name], trial) if name in DRAWN else table.split(trial)
    model = boosted(algorithm, base, rounds, trial)
    started = time.perf_counter()
    model.fit(table.X[train], table.y[train])
    seconds = time.perf_counter() - started
    off = np.abs(model.predict(table.X[test]) - table.y[test])
    return {
        "data": name,
        "trial": trial,
        "algorithm": algorithm,
        "base": base,
        "MZE": np.mean(off > 0),
        "MAE": np.mean(off),
        "seconds": seconds,
    }


def draw(table: OrdinalTable, size: int, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """A training part with the same number of rows of every rank, and the rest."""
    rng = np.random.default_rng(trial)
    share = size // table.n_ranks
    train = np.concatenate(
        [
            rng.permutation(np.flatnonzero(table.y == rank))[:share]
            for rank in range(1, table.n_ranks + 1)
        ]
    )
    return train, np.setdiff1d(np.arange(table.y.size), train)


def boosted(algorithm: str, base: str, rounds: int, trial: int) -> ORBoost | RankBoostAE:
    """The estimator of a column."""
    if algorithm == "RankBoost-AE":
        return RankBoostAE(base, n_estimators=rounds, random_state=trial)
    margins = "all" if algorithm == "ORBoost-All" else "left-right"
    return ORBoost(margins, base, n_estimators=rounds, random_state=trial)


def report(results: pd.DataFrame) -> None:
    """Print both tables, and how many cells agree."""
    published = pd.read_csv(PUBLISHED).set_index(["measure", "data", "algorithm", "base"])
    columns = [(algorithm, base) for algorithm in ALGORITHMS for base in BASES]
    near = {"MZE": 0, "MAE": 0}
    grouped = results.groupby(["data", "algorithm", "base"], sort=False)
    mean = grouped[["MZE", "MAE"]].mean()
    error = grouped[["MZE", "MAE"]].std() / np.sqrt(grouped[["MZE"]].count().to_numpy())
    names = list(dict.fromkeys(results["data"]))
    for number, measure in ((1, "MZE"), (2, "MAE")):
        print(f"\nTable {number}: {measure}, ordrec (mean ± standard error) | paper")
        print(" " * 11 + "".join(f"{f'{a} {b}':<32}" for a, b in columns))
        for name in names:
            cells = []
            for column in columns:
                cell = (name, *column)
                paper = published.loc[(measure, *cell)]
                off = abs(mean.loc[cell, measure] - paper["mean"])
                limit = 2 * np.hypot(error.loc[cell, measure], paper["standard_error"])
                near[measure] += off <= limit
                cells.append(
                    f"{mean.loc[cell, measure]:.3f}±{error.loc[cell, measure]:.3f}"
                    f"{'*' if off > limit else ' '}"
                    f"| {paper['mean']:.3f}±{paper['standard_error']:.3f}"
                )
            print(f"{name:<11}" + "".join(f"{cell:<32}" for cell in cells))
    for measure, count in near.items() if error.notna().all(axis=None) else ():
        print(f"{measure}: {count} of {len(names) * len(columns)} cells within two standard errors")
    findings(mean)


def findings(mean: pd.DataFrame) -> None:
    """The paper's three conclusions, counted over sets and bases."""
    wide = {measure: mean[measure].unstack("algorithm") for measure in ("MZE", "MAE")}
    fewer = (wide["MZE"]["ORBoost-LR"] <= wide["MZE"]["ORBoost-All"]).mean()
    smaller = (wide["MAE"]["ORBoost-All"] <= wide["MAE"]["ORBoost-LR"]).mean()
    print(
        f"ORBoost-LR has the lower MZE in {fewer:.0%}, ORBoost-All the lower MAE in {smaller:.0%}"
    )
    for measure, table in wide.items():
        worst = (table.idxmax(axis=1) == "RankBoost-AE").mean()
        print(f"RankBoost-AE has the highest {measure} of the three in {worst:.0%}")


if __name__ == "__main__":
    main()
