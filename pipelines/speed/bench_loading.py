"""Time and memory of loading ratings.

Two claims, each measured in its own process:

* ``ratings.dat`` of the size of MovieLens 1M loads within 1.5 times what
  ``pandas.read_csv`` takes for the same rows as csv;
* 25 million rows of ``ratings.csv`` load within 2500 MB of memory.

Run ``python pipelines/speed/bench_loading.py`` (``--rows`` for fewer large rows). The files are
synthetic and in a temporary folder; with ``--ml-1m PATH`` the real ratings are used.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.datasets import load_movielens, synthetic_ratings

ROUNDS = 9
PIECE = 1_000_000


def main() -> None:
    """Measure both claims and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=25_000_000, help="rows of the large file")
    parser.add_argument("--ml-1m", type=Path, help="folder or zip of MovieLens 1M")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        _load_and_report(options.load)
        return
    with tempfile.TemporaryDirectory(prefix="ordrec-bench-") as folder:
        compare_speed(Path(folder), options.ml_1m)
        measure_memory(Path(folder), options.rows)


def compare_speed(folder: Path, real: Path | None) -> None:
    """Time `load_movielens` on ratings.dat against `pandas.read_csv` on the same rows."""
    if real is not None:
        frame = load_movielens(real).to_frame().astype({"rating": np.int64})
    else:
        ratings = synthetic_ratings(6_040, 3_706, n_ratings=1_000_209, dated=True, seed=1)
        frame = ratings.to_frame().astype({"rating": np.int64})
    frame.to_csv(folder / "same.csv", index=False)
    text = (folder / "same.csv").read_text().split("\n", 1)[1]
    (folder / "ratings.dat").write_text(text.replace(",", "::"))
    ours = lambda: load_movielens(folder / "ratings.dat")  # noqa: E731
    theirs = lambda: pd.read_csv(folder / "same.csv")  # noqa: E731
    first = _seconds(ours), _seconds(theirs)
    print(f"first reading: load_movielens {first[0]:.2f} s, pandas.read_csv {first[1]:.2f} s")
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(ROUNDS)]  # alternating
    ratio = statistics.median(a / b for a, b in times)
    best = [1e3 * min(column) for column in zip(*times, strict=True)]
    print(
        f"{len(frame)} rows of ratings.dat: load_movielens {best[0]:.0f} ms, pandas.read_csv "
        f"{best[1]:.0f} ms (best of {ROUNDS}); median ratio {ratio:.2f} (goal: at most 1.5)"
    )


def measure_memory(folder: Path, n_rows: int) -> None:
    """Load a csv of the given length in a fresh process and print its peak memory."""
    file = folder / "ratings.csv"
    _write_large(file, n_rows)
    print(f"{n_rows} rows of ratings.csv, {file.stat().st_size / 1e6:.0f} MB:", flush=True)
    subprocess.run([sys.executable, __file__, "--load", str(file)], check=True)


def _write_large(file: Path, n_rows: int) -> None:
    n_users, n_items = max(n_rows // 154, 1), max(n_rows // 423, 200)  # the shape of ML-25M
    ratings = synthetic_ratings(
        n_users, n_items, n_ratings=n_rows, n_ranks=10, n_factors=2, dated=True, seed=2
    )
    times = ratings.timestamps
    assert times is not None
    with open(file, "w", encoding="utf-8") as out:
        out.write("userId,movieId,rating,timestamp\n")
        rng = np.random.default_rng(3)
        for start in range(0, n_rows, PIECE):  # shuffled, because sorted rows are easier to check
            rows = start + rng.permutation(min(PIECE, n_rows - start))
            pd.DataFrame(
                {
                    "user": ratings.users[rows] + 1,
                    "item": ratings.items[rows] + 1,
                    "rating": (ratings.levels[rows] + 1) / 2,
                    "timestamp": times[rows],
                }
            ).to_csv(out, index=False, header=False)


def _load_and_report(file: Path) -> None:
    before = _peak_mb()
    start = time.perf_counter()
    ratings = load_movielens(file)
    print(
        f"  {ratings}\n  loaded in {time.perf_counter() - start:.1f} s, peak memory "
        f"{_peak_mb():.0f} MB ({before:.0f} MB before loading; goal: at most 2500)"
    )


def _peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss also counts the parent before exec
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
