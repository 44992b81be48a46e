"""Time, memory and error of the kernel methods with landmarks (``n_landmarks=``).

    python pipelines/speed/bench_landmarks.py [--data FOLDER] [--sections error,growth]
        [--models SVORIM,SVOREX,OrdinalLogistic,NPSVOR,GPOR] [--sizes 10000,30000,100000]
        [--landmarks 100] [--million] [--rows 10000] [--counts 100,300,1000]

* error: the exact kernel against more and more landmarks, SVORIM on 10,000 rows of California
  housing and of census (16 features), five ranks, C = 10, gamma = 1 / features; errors on the
  other rows;
* growth: rows of 10 features, drawn; seconds of each model with 100 landmarks, the exponent of
  time at most 1.1, 100,000 rows in under 60 s. ``--million`` adds 1,000,000 rows: under 10 minutes
  and 8 GB.

Seconds are given twice, by the clock and of the processors: on a busy machine only the latter say
something about the method. GPOR maximises the evidence in five iterations.
FOLDER (by default ORDREC_DATA) holds ``ordinal-regression-frequency``; growth needs no data.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ordrec.data.formats.tables import load_table
from ordrec.experiments.timing import first_run, peak_memory
from ordrec.ordinal import GPOR, NPSVOR, SVOREX, SVORIM, OrdinalLogistic

SECTIONS = ("error", "growth")
SETS = ("calhousing", "census2")
MODELS: dict[str, Callable[..., Any]] = {
    "SVORIM": SVORIM,
    "SVOREX": SVOREX,
    "OrdinalLogistic": lambda **options: OrdinalLogistic(kernel="rbf", **options),
    "NPSVOR": NPSVOR,
    "GPOR": lambda **options: GPOR(max_iter=5, **options),
}
MILLION = 1_000_000


class Spent(NamedTuple):
    """Seconds by the clock and of all processors."""

    clock: float
    processor: float


def main() -> None:
    """Measure the requested sections."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--sections", default=",".join(SECTIONS))
    options.add_argument("--models", default=",".join(MODELS))
    options.add_argument("--sizes", default="10000,30000,100000")
    options.add_argument("--landmarks", type=int, default=100)
    options.add_argument("--million", action="store_true", help="also 1,000,000 rows")
    options.add_argument("--rows", type=int, default=10_000, help="training rows of error")
    options.add_argument("--counts", default="100,300,1000", help="landmarks of error")
    chosen = options.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # GPOR is stopped early on purpose
    wanted = chosen.sections.split(",")
    if "error" in wanted:
        if not chosen.data:
            options.error("name the data folder with --data or ORDREC_DATA")
        counts = [int(m) for m in chosen.counts.split(",")]
        first_run(warm_up)
        for name in SETS:
            error(Path(chosen.data) / "ordinal-regression-frequency", name, chosen.rows, counts)
    if "growth" in wanted:
        sizes = [int(n) for n in chosen.sizes.split(",")] + [MILLION] * chosen.million
        for name in chosen.models.split(","):
            growth(name, sizes, chosen.landmarks)


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[Spent, Any]:
    """Return the time of one call and its value."""
    clock, processor = time.perf_counter(), time.process_time()
    value = work(*arguments)
    return Spent(time.perf_counter() - clock, time.process_time() - processor), value


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of 10 features and five ranks, a nonlinear rule with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    score = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * X[:, 3] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, [-0.9, -0.3, 0.3, 0.9])


def warm_up() -> None:
    """Compile, or load, what is timed below, on few rows."""
    for m in (10, None):
        SVORIM(n_landmarks=m, random_state=0).fit(*drawn(500))


def error(folder: Path, name: str, n: int, counts: list[int]) -> None:
    """Print errors and objectives with landmarks next to those of the exact kernel."""
    table = load_table(folder / f"{name}.csv.gz", label="y5", partitions=False)
    order = np.random.default_rng(0).permutation(table.y.size)
    train, test = order[:n], order[n:]
    print(f"\n{name}, {n} rows of {table.X.shape[1]} features, {test.size} to test: SVORIM")
    print("| landmarks | test MAE | test MZE | objective | left out | gap | s | processor s |")
    print("|---|---|---|---|---|---|---|---|")
    for m in [*counts, None]:
        model = SVORIM(C=10.0, gamma=1.0 / table.X.shape[1], n_landmarks=m, random_state=0)
        spent, _ = timed(model.fit, table.X[train], table.y[train])
        wrong = np.abs(model.predict(table.X[test]) - table.y[test])
        print(
            f"| {m or 'exact'} | {wrong.mean():.4f} | {(wrong > 0).mean():.4f} | "
            f"{model.objective_:.0f} | {model.left_out_:.4f} | "
            f"{model.dual_gap_ / model.objective_:.0e} | {spent.clock:.1f} | "
            f"{spent.processor:.1f} |",
            flush=True,
        )


def growth(name: str, sizes: list[int], m: int) -> None:
    """Print seconds and memory of one model for more and more rows."""
    print(f"\n{name}, {m} landmarks, rows of 10 features")
    new, truth = drawn(5000, seed=1)
    first_run(MODELS[name](n_landmarks=10, random_state=0).fit, *drawn(500))
    processor = []
    for n in sizes:
        model = MODELS[name](n_landmarks=m, random_state=0)
        spent, _ = timed(model.fit, *drawn(n))
        processor.append(spent.processor)
        wrong = np.abs(model.predict(new) - truth).mean()
        peak = peak_memory()
        print(
            f"{n:>9} rows: {spent.clock:8.1f} s, {spent.processor:8.1f} s of processors, "
            f"{model.n_iter_} iterations, test MAE {wrong:.4f}, peak memory {peak:.1f} GB",
            flush=True,
        )
        if n == 100_000:
            verdict("100,000 rows: s of processors", spent.processor, 60.0)
        if n == MILLION:
            verdict("1,000,000 rows: s of processors", spent.processor, 600.0)
            verdict("1,000,000 rows: GB", peak, 8.0)
    if len(sizes) > 1:
        slope = np.polyfit(np.log(sizes), np.log(processor), 1)[0]
        verdict("exponent of processor time", slope, 1.1)


def verdict(what: str, value: float, limit: float) -> None:
    """Print a number, its limit, and whether it is met."""
    print(f"{what}: {value:.2f}, at most {limit:.2f}: {'yes' if value <= limit else 'NO'}")


if __name__ == "__main__":
    main()
