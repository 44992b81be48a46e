"""The benchmark tables of Chu and Ghahramani (2005), section 6.2.

    python pipelines/gpor_tables.py length --data FOLDER [--trials 20] [--jobs 2]
    python pipelines/gpor_tables.py frequency --data FOLDER --sets bank1 computer1 --trials 5

``length``: nine sets cut into 5 and 10 intervals of equal length, GPOR with Laplace and EP.
``frequency``: seven large sets cut into ranks of equal size, 50 to 200 training rows, GPOR
against Gaussian process regression on the ranks and SVORIM (five-fold cross-validation over
the paper's coarse 7 x 7 grid; its fine grid is left out), with Wilcoxon's signed-rank test
over the partitions on MZE.

Features are standardised by the training part. MZE, MAE and NLL are means over the
partitions with standard errors; MAE is that of the mode, as in the paper, and of the median.
The scan of the paper has lost its digits: to see its values beside ours, pass them with
``--published`` as a csv of the columns set, bins, method, measure, value.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import wilcoxon
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from ordrec.datasets import OrdinalTable, load_table
from ordrec.ordinal.baselines.gpr import GPRanks
from ordrec.ordinal.decisions import decide
from ordrec.ordinal.gpor import GPOR
from ordrec.ordinal.svor.model import SVORIM

LENGTH = ["abalone", "autompg", "diabetes", "housing", "machine", "pyrim", "stock"]
LENGTH += ["triazines", "wisconsin"]
FREQUENCY = ["bank1", "bank2", "calhousing", "census1", "census2", "computer1", "computer2"]
GRID = {"C": 10.0 ** np.arange(-3, 4), "gamma": 0.5 * 10.0 ** np.arange(-3, 4)}  # kappa / 2
MEASURES = ["mze", "mae", "mae_median", "nll"]


def main() -> None:
    """Run the fits that were asked for, print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("experiment", choices=["length", "frequency"])
    options.add_argument("--data", type=Path, default=Path(os.environ.get("ORDREC_DATA", "data")))
    options.add_argument("--sets", nargs="+", help="default: all of the experiment")
    options.add_argument(
        "--bins", nargs="+", type=int, choices=[5, 10], help="default: the paper's"
    )
    options.add_argument("--trials", type=int, default=20, help="partitions, at most 20")
    options.add_argument("--inference", nargs="+", choices=["laplace", "ep"])
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--published", type=Path, help="csv of reference values")
    options.add_argument("--out", type=Path, help="csv for the result of every single fit")
    chosen = options.parse_args()
    frame = run(chosen)
    if chosen.out:
        frame.to_csv(chosen.out, index=False)
    with pd.option_context("display.width", 200, "display.max_columns", 20):
        print(summary(frame, chosen.published).to_string())
        if chosen.experiment == "frequency":
            print(f"\n{significance(frame).to_string(index=False)}")
    cpu = frame["seconds"].sum()
    print(f"\n{len(frame)} fits, {cpu:.0f} s of fitting and predicting in {chosen.jobs} processes")


def run(chosen: argparse.Namespace) -> pd.DataFrame:
    """One row a set, number of bins, partition and method."""
    frequency = chosen.experiment == "frequency"
    methods = list(chosen.inference or ["laplace", "ep"]) + (["gpr", "svorim"] if frequency else [])
    folder = chosen.data / f"ordinal-regression-{chosen.experiment}"
    tasks = []
    for name in chosen.sets or (FREQUENCY if frequency else LENGTH):
        for bins in chosen.bins or ([10] if frequency else [5, 10]):
            suffix = ".csv.gz" if frequency else ".csv"
            table = load_table(folder / f"{name}{suffix}", label=f"y{bins}")
            for trial in range(min(chosen.trials, len(table.partitions))):
                for method in methods:
                    tasks.append(delayed(one_fit)(table, bins, trial, method))
    return pd.DataFrame(Parallel(n_jobs=chosen.jobs)(tasks))


def one_fit(table: OrdinalTable, bins: int, trial: int, method: str) -> dict[str, Any]:
    """Fit on one training part, measure on its test part."""
    train, test = table.split(trial)
    centre, spread = table.X[train].mean(axis=0), table.X[train].std(axis=0)
    varies = spread > 1e-9 * np.abs(centre)  # a constant column has a spread of rounding errors
    X = (table.X - centre) / np.where(varies, spread, 1.0)
    classes = np.arange(1, table.n_ranks + 1)
    with threadpool_limits(1), warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        begun = time.perf_counter()
        model = make_model(method, X.shape[1], classes).fit(X[train], table.y[train])
        found = measure(model, X[test], table.y[test])
        seconds = time.perf_counter() - begun
    where = {"set": table.name, "bins": bins, "trial": trial, "method": method}
    return where | found | {"seconds": seconds, "warnings": len(complaints)}


def make_model(method: str, n_features: int, classes: np.ndarray) -> Any:
    """GPOR by inference, or one of its rivals; all with a Gaussian kernel."""
    if method == "gpr":
        return GPRanks(gamma=0.5 / n_features, classes=classes)
    if method == "svorim":
        return GridSearchCV(SVORIM(classes=classes), GRID, scoring="neg_mean_absolute_error", cv=5)
    return GPOR(inference=method, classes=classes)


def measure(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """MZE and MAE of the prediction (GPOR's is the mode), MAE of the median, and NLL."""
    if not isinstance(model, GPOR):
        wrong = np.abs(model.predict(X) - y)
        return {"mze": float((wrong > 0).mean()), "mae": float(wrong.mean())}
    p = model.predict_proba(X)
    off = {how: np.abs(decide(p, how) + 1 - y) for how in ("mode", "median")}
    loss = -np.log(np.maximum(p[np.arange(y.size), y - 1], np.finfo(float).tiny))
    return {
        "mze": float((off["mode"] > 0).mean()),
        "mae": float(off["mode"].mean()),
        "mae_median": float(off["median"].mean()),
        "nll": float(loss.mean()),
    }


def summary(frame: pd.DataFrame, published: Path | None) -> pd.DataFrame:
    """Mean and standard error of every measure, reference values beside them."""
    keys = ["set", "bins", "method"]
    groups = frame.groupby(keys)
    table = pd.DataFrame(index=groups.size().index)
    reference = pd.read_csv(published).set_index([*keys, "measure"])["value"] if published else None
    for name in MEASURES:
        if name not in frame or frame[name].isna().all():
            continue
        mean, error = groups[name].mean(), groups[name].sem()
        table[name] = [_with_error(*pair) for pair in zip(mean, error, strict=True)]
        if reference is not None and name in reference.index.get_level_values("measure"):
            known = reference.xs(name, level="measure").reindex(table.index)
            table[f"{name} published"] = known
    table["seconds"] = groups["seconds"].mean().round(2)
    table["warnings"] = groups["warnings"].sum()
    return table


def _with_error(mean: float, error: float) -> str:
    return "" if np.isnan(mean) else f"{mean:.4f} ± {error:.4f}"


def significance(frame: pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon's signed-rank test of each GPOR against its rivals, partition by partition."""
    rows = []
    for (name, bins), part in frame.groupby(["set", "bins"]):
        errors = part.pivot(index="trial", columns="method", values="mze")
        for ours in (m for m in ("laplace", "ep") if m in errors):
            for rival in ("gpr", "svorim"):
                difference = errors[rival] - errors[ours]
                p = wilcoxon(difference).pvalue if difference.any() else 1.0
                row = {"set": name, "bins": bins, "gpor": ours, "against": rival}
                rows.append(row | {"mze gained": difference.mean(), "p": p, "n": len(errors)})
    return pd.DataFrame(rows).round(4)


if __name__ == "__main__":
    main()
