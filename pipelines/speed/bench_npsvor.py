"""Time of NPSVOR against scikit-learn's one-against-one SVC on the same rows.

California housing, 5 ranks of equal frequency, gamma 1, C 100 (section V-D of the paper), the
paper's own solver compared with the exact one, and both libraries with their defaults:

    python pipelines/speed/bench_npsvor.py --data DATA --rows 2000 10000

DATA is the folder of data sets, with ordinal-regression-frequency inside. Every line is from one
run; CPU seconds are printed too, because wall-clock time depends on what else runs. Nothing is
set that a user would not set: SVC uses one core, NPSVOR all of them or, where its line says so,
one (``n_jobs=1``). Its first fit, which loads compiled code, is on a line of its own. The gap is
the relative distance of the primal objective from a solve to a thousandth of the tolerance
(``--tight``). That and the paper's solver are omitted above 5000 rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.svm import SVC

from ordrec.experiments.timing import first_run
from ordrec.ordinal.npsvor import NPSVOR

SLOW_ROWS = 5000
REPEATS = 5


def california(data: Path, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised features and ranks 1 to 5 of ``rows`` rows drawn at random."""
    table = pd.read_csv(data / "ordinal-regression-frequency" / "calhousing.csv.gz")
    table = table.sample(rows, random_state=seed)
    return table.filter(regex=r"^x\d+$").to_numpy(), table["y5"].to_numpy()


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the least wall-clock and CPU seconds of a few fits, of one where a fit is long."""
    found = []
    for _ in range(REPEATS if len(y) <= SLOW_ROWS else 1):
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--tight", action="store_true")
    options = parser.parse_args()
    first_run(NPSVOR().fit, *california(options.data, 1600))

    print(f"{'rows':>6} {'model':<22} {'wall s':>8} {'ratio':>6} {'CPU s':>8} {'ratio':>6}", end="")
    print(f" {'violation':>10} {'rel. gap':>9} {'from best':>9} {'iterations':>10}")
    for rows in options.rows:
        X, y = california(options.data, rows)
        reference = timed(SVC(C=100, gamma=1.0, cache_size=2000), X, y)
        print(f"{rows:6d} {'SVC one-against-one':<22} {reference[0]:8.2f} {1:6.2f} ", end="")
        print(f"{reference[1]:8.2f} {1:6.2f}")
        best = np.nan
        if options.tight and rows <= SLOW_ROWS:
            tight = NPSVOR(C1=100, gamma=1.0, tol=1e-6)
            timed(tight, X, y)
            best = tight.objective_
        models = {
            "NPSVOR": NPSVOR(C1=100, gamma=1.0),
            "NPSVOR, one core": NPSVOR(C1=100, gamma=1.0, n_jobs=1),
            "NPSVOR tol 1e-2": NPSVOR(C1=100, gamma=1.0, tol=1e-2),
        }
        if rows <= SLOW_ROWS:
            published = NPSVOR(C1=100, gamma=1.0, solver="admm", tol=1e-2)
            models["ADMM, as published"] = published
        for name, model in models.items():
            wall, cpu = timed(model, X, y)
            print(f"{rows:6d} {name:<22} {wall:8.2f} {wall / reference[0]:6.2f} ", end="")
            print(f"{cpu:8.2f} {cpu / reference[1]:6.2f} {model.violation_:10.2g} ", end="")
            print(f"{model.dual_gap_ / model.objective_:9.2g} ", end="")
            print(f"{model.objective_ / best - 1:9.1e} {model.n_iter_:10d}", flush=True)
        reference = timed(SVC(), X, y)
        for name, model in {
            "SVC()": SVC(),
            "NPSVOR()": NPSVOR(),
            "NPSVOR(n_jobs=1)": NPSVOR(n_jobs=1),
        }.items():
            wall, cpu = reference if name == "SVC()" else timed(model, X, y)
            print(f"{rows:6d} {name:<22} {wall:8.2f} {wall / reference[0]:6.2f} ", end="")
            print(f"{cpu:8.2f} {cpu / reference[1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
