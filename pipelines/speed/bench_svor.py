"""Time of SVORIM and SVOREX compared with scikit-learn's SVR.

    python pipelines/speed/bench_svor.py --data FOLDER
        [--sections ratio,growth,small,cache,linear,tune]
        [--sizes 2000,5000] [--growth 1000,2000,5000,10000] [--large 20000]

California housing, gamma = 1, C = 100, the same rows for all; SVR with epsilon 0.1 and a
cache of 2 GB. Every claim is a ratio measured in one run, all cores allowed:

* ratio: at most 0.4 of SVR's time at 2000 rows, 0.6 at 5000 and 0.65 at 10,000, 5 and 10 ranks,
  relative duality gap at most 1e-4; 10 ranks at most 1.5 times the time of 5;
* growth: exponent of time from 1000 to 10,000 rows no higher than SVR's;
* large: 20,000 rows within 8 GB (not among the default sections: some minutes);
* small: under 5 ms for a problem of 300 rows with its Gram matrix given;
* cache: a second process compiles nothing;
* linear: a linear kernel on all rows, solved through its features, compared with the same problem
  solved through its Gram matrix and with SVR on 3000 rows;
* tune: the paper's search on 300 rows in at most a third of the time of two GridSearchCV,
  with the same winner.

FOLDER (by default ORDREC_DATA) holds ``ordinal-regression-frequency``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from ordrec.data.formats.tables import OrdinalTable, load_table
from ordrec.experiments.timing import peak_memory
from ordrec.kernels import Gaussian
from ordrec.ordinal.svor.model import SVOREX, SVORIM
from ordrec.ordinal.svor.problems import solve_explicit, solve_implicit
from ordrec.ordinal.tuning import FINE_STEPS, tune

SECTIONS = ("ratio", "growth", "small", "cache", "linear", "tune")
LIMITS = {2000: 0.4, 5000: 0.6, 10_000: 0.65}
MODELS = {"SVORIM": SVORIM, "SVOREX": SVOREX}


def main() -> None:
    """Measure the requested sections."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--sections", default=",".join(SECTIONS), help="also: large")
    options.add_argument("--sizes", default="2000,5000")
    options.add_argument("--growth", default="1000,2000,5000,10000")
    options.add_argument("--large", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    if not chosen.data:
        options.error("name the data folder with --data or ORDREC_DATA")
    folder = Path(chosen.data) / "ordinal-regression-frequency"
    california = {
        n_ranks: load_table(folder / "calhousing.csv.gz", label=f"y{n_ranks}", partitions=False)
        for n_ranks in (5, 10)
    }
    rng = np.random.default_rng(chosen.seed)
    warm_up(california, rng)
    wanted = chosen.sections.split(",")
    if "ratio" in wanted:
        ratios(california, [int(n) for n in chosen.sizes.split(",")], rng)
    if "growth" in wanted:
        growth(california, [int(n) for n in chosen.growth.split(",")], rng)
    if "large" in wanted:
        large(california, chosen.large, rng)
    if "small" in wanted:
        small(california, rng)
    if "cache" in wanted:
        cache()
    if "linear" in wanted:
        linear(california[5], rng)
    if "tune" in wanted:
        tuning(load_table(folder / "housing.csv.gz", label="y5"), rng)


def rows_of(table: OrdinalTable, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a random part of the table."""
    rows = rng.choice(table.y.size, n, replace=False)
    return table.X[rows], table.y[rows]


def seconds(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Return the wall-clock time of one call and its value."""
    started = time.perf_counter()
    value = work(*arguments, **options)
    return time.perf_counter() - started, value


def warm_up(california: dict[int, OrdinalTable], rng: np.random.Generator) -> None:
    """Compile, or load compiled code from disk."""
    spent = 0.0
    for n in (300, 1100):
        X, y = rows_of(california[5], n, rng)
        spent += sum(seconds(model().fit, X, y)[0] for model in MODELS.values())
    print(f"first fits of this process, not in what follows: {spent:.1f} s")


def fits(california: dict[int, OrdinalTable], n: int, rng: np.random.Generator) -> dict:
    """Return times of SVR and both models, with 5 and 10 ranks, on the same rows."""
    times: dict = {}
    rows = rng.choice(california[5].y.size, n, replace=False)
    for n_ranks, table in california.items():
        X, y = table.X[rows], table.y[rows]
        svr = SVR(C=100.0, gamma=1.0, epsilon=0.1, cache_size=2000)
        times["SVR", n_ranks] = seconds(svr.fit, X, y)[0]
        for name, model in MODELS.items():
            fitted = model(C=100.0, gamma=1.0)
            times[name, n_ranks], _ = seconds(fitted.fit, X, y)
            gap = fitted.dual_gap_ / fitted.objective_
            ratio = times[name, n_ranks] / times["SVR", n_ranks]
            print(
                f"{n:>6} rows, {n_ranks:>2} ranks: {name} {times[name, n_ranks]:7.2f} s, "
                f"SVR {times['SVR', n_ranks]:7.2f} s, ratio {ratio:.2f}; {fitted.n_iter_} "
                f"iterations, gap {gap:.0e}, violation {fitted.violation_:.0e}, "
                f"converged {fitted.converged_}"
            )
    return times


def ratios(california: dict[int, OrdinalTable], sizes: list[int], rng: Any) -> None:
    """Print times relative to SVR, and times with 10 ranks relative to 5."""
    print("\nTime relative to SVR")
    for n in sizes:
        times = fits(california, n, rng)
        worst = max(times[m, r] / times["SVR", r] for m in MODELS for r in (5, 10))
        verdict(f"{n} rows: largest ratio", worst, LIMITS.get(n))
        for name in MODELS:
            verdict(f"{n} rows: {name}, 10 ranks over 5", times[name, 10] / times[name, 5], 1.5)


def growth(california: dict[int, OrdinalTable], sizes: list[int], rng: Any) -> None:
    """Print slopes of log time over log size."""
    print("\nGrowth")
    times = [fits(california, n, rng) for n in sizes]
    for key in times[0]:
        slope = np.polyfit(np.log(sizes), np.log([t[key] for t in times]), 1)[0]
        ends = np.log(times[-1][key] / times[0][key]) / np.log(sizes[-1] / sizes[0])
        print(f"{key[0]}, {key[1]} ranks: exponent {slope:.2f} (between the ends {ends:.2f})")


def large(california: dict[int, OrdinalTable], n: int, rng: Any) -> None:
    """Print the peak memory of one large fit."""
    X, y = rows_of(california[5], n, rng)
    took, model = seconds(SVORIM(C=100.0, gamma=1.0).fit, X, y)
    peak = peak_memory()
    print(f"\n{n} rows: {took:.0f} s, converged {model.converged_}")
    verdict("peak memory in GB", peak, 8.0)


def small(california: dict[int, OrdinalTable], rng: Any) -> None:
    """Print milliseconds of problems of 300 rows."""
    print("\n300 rows, Gram matrix given: median of 40 fits")
    for n_ranks, table in california.items():
        drawn = [rows_of(table, 300, rng) for _ in range(40)]
        # all kernels first: the threads of BLAS go on spinning after each
        problems = [(Gaussian(1.0)(X), y - 1) for X, y in drawn]
        for name, solve in (("IMC", solve_implicit), ("EXC", solve_explicit)):
            spent = [1e3 * seconds(solve, K, y, n_ranks, C=100.0)[0] for K, y in problems]
            verdict(f"{name}, {n_ranks} ranks: ms per fit", float(np.median(spent)), 5.0)
            print(f"    (fastest {min(spent):.2f}, slowest {max(spent):.2f})")


def cache() -> None:
    """Time the first fit of a new process."""
    code = (
        "import time, numpy as np\n"
        "from ordrec.ordinal.svor.model import SVORIM\n"
        "X = np.random.default_rng(0).normal(size=(100, 3)); y = np.digitize(X[:, 0], [-1, 1])\n"
        "t = time.perf_counter(); SVORIM().fit(X, y); first = time.perf_counter() - t\n"
        "t = time.perf_counter(); SVORIM().fit(X, y); print(first, time.perf_counter() - t)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = map(float, run.stdout.split())
    print(f"\nA new process: first fit {first:.2f} s, second {1e3 * second:.1f} ms")


def linear(table: OrdinalTable, rng: Any) -> None:
    """Time a linear kernel, by its features and by its Gram matrix."""
    print("\nLinear kernel, C = 1")
    X, y = rows_of(table, 3000, rng)
    svr, _ = seconds(SVR(kernel="linear", cache_size=2000).fit, X, y)
    for name, model in MODELS.items():
        by_features, fitted = seconds(model(kernel="linear").fit, X, y)
        by_gram, other = seconds(model(kernel="precomputed").fit, X @ X.T, y)
        print(
            f"3000 rows: {name} {by_features:.3f} s, by the Gram matrix {by_gram:.2f} s, "
            f"SVR {svr:.2f} s; objectives {fitted.objective_:.4f} and {other.objective_:.4f}"
        )
        took, fitted = seconds(model(kernel="linear").fit, table.X, table.y)
        gap = fitted.dual_gap_ / fitted.objective_
        print(f"{table.y.size} rows: {name} {took:.2f} s, gap {gap:.0e}")


def tuning(housing: OrdinalTable, rng: Any) -> None:
    """Compare the paper's search with two plain grid searches."""
    print("\nThe paper's search, 300 rows, 5 folds")
    X, y = rows_of(housing, 300, rng)
    for name, model in MODELS.items():
        plain, winner = seconds(plain_search, model(), X, y)
        for n_jobs in (1, 2):
            took, found = seconds(tune, model(), X, y, n_jobs=n_jobs)
            same = all(np.isclose(found.best_params[key], winner[key]) for key in winner)
            print(
                f"{name}: plain {plain:.2f} s, tune {took:.2f} s ({n_jobs} threads); same "
                f"winner: {same}"
            )
            verdict(f"{name}: ratio", took / plain, 1 / 3)


def plain_search(model: Any, X: np.ndarray, y: np.ndarray) -> dict:
    """Search a coarse and then a fine grid with scikit-learn."""
    powers = np.arange(-3.0, 4.0)
    grid = {"C": 10.0**powers, "gamma": 10.0 ** (powers - np.log10(2.0))}
    scoring = "neg_mean_absolute_error"
    best = GridSearchCV(model, grid, cv=5, scoring=scoring, refit=False).fit(X, y).best_params_
    fine = {name: 10.0 ** (np.log10(value) + FINE_STEPS) for name, value in best.items()}
    return GridSearchCV(model, fine, cv=5, scoring=scoring).fit(X, y).best_params_


def verdict(what: str, value: float, limit: float | None) -> None:
    """Print a number, its limit, and whether it is met."""
    if limit is None:
        print(f"{what}: {value:.2f}")
    else:
        print(f"{what}: {value:.2f}, at most {limit:.2f}: {'yes' if value <= limit else 'NO'}")


if __name__ == "__main__":
    main()
