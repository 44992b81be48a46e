"""What the usual commands take: CPU seconds, memory, model files; and what a fit promises to take.

    python pipelines/speed/bench_memory.py [--data FOLDER] [--only ROW ...] [--stages]
    python pipelines/speed/bench_memory.py --promises [--presets full fast large] [--sizes ...]

The first prints one line per row of `ROWS`, each of which is a command of `ordrec` in
a process of its own: CPU seconds, the largest memory of the process, and where a model is saved,
the size of its file, the seconds that a new process takes to load it and to make a list with it,
and the largest memory of that process. With ``--stages``, what each stage of a fit took follows.
Real data are read from ``--data``, by default the folder ORDREC_DATA; invented ones have the users,
items and ratings of Ciao and of Book-Crossing, and as many rare items. Compiled code is in the
cache already, but for the rows called cold.

The second prints, for fits of the rating predictor to invented ratings of six shapes, the memory
that they take beside what `max_memory` is compared with. A size is a number of users, of items and
of ratings; see `SIZES`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = {  # users, items and ratings; the fourth number is the share of rare items and users
    "square": "1500x1200x70000",
    "long": "9000x500x90000",
    "wide": "500x9000x90000",
    "thin": "9000x12000x60000x0.6",
    "one user": "800x3000x30000x0.0x3000",
    "one item": "3000x800x30000x0.0x-3000",
}
SIZES = {
    "full": list(SHAPES.values()),
    "fast": list(SHAPES.values()),
    "large": [*SHAPES.values(), "2000x1500x1000000", "30000x30000x250000x0.4"],
}
CIAO = {"n_users": 7_400, "n_items": 91_000, "n_ratings": 226_000, "rare_items": 0.8}
CROSSING = {
    "n_users": 78_000, "n_items": 186_000, "n_ratings": 434_000, "n_ranks": 10,
    "rare_items": 0.85, "rare_users": 0.7,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    goal : str
        CPU seconds, gigabytes and megabytes that the row should stay below.
    command : tuple of str
        Arguments of ``ordrec``; DATA and MODEL are replaced by paths.
    data : str
        A folder below ``--data``, a bundled data set, or the name of invented ratings.
    cold : bool
        Whether the compile cache is empty.
    load : bool
        Whether the saved model is loaded by a process of its own.
    """

    goal: str
    command: tuple[str, ...]
    data: str
    cold: bool = False
    load: bool = True
    arguments: dict[str, Any] = field(default_factory=dict)


FIT = ("fit", "DATA", "-o", "MODEL", "--overwrite", "--quiet")
PREDICTOR = (*FIT, "-m", "predictor", "--set", "preset=full")
ROWS = {
    "evaluate": Row("1.0 GB", ("evaluate",), "", load=False),
    "evaluate, cold": Row("30 s, 1.0 GB", ("evaluate",), "", cold=True, load=False),
    "fit, ML-100K": Row("20 s, 0.6 GB, 10 MB, 1 s", FIT, "ml-100k"),
    "factors, 226,000 x 91,000": Row("40 s, 1.2 GB", (*FIT, "-m", "factors"), "ciao"),
    "full, MovieTweetings": Row("2.0 GB", PREDICTOR, "movietweetings-100k"),
    "fit, ML-1M": Row("120 s, 2.5 GB, 60 MB, 2 s", FIT, "ml-1m"),
    "fit, 434,000 x 186,000": Row("240 s, 3.0 GB, 100 MB", FIT, "crossing"),
    "full with side data, ML-1M": Row("600 s, 4.0 GB", PREDICTOR, "ml-1m"),
}


def main() -> None:
    """Print the table, or that of the promises."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", type=Path, default=os.environ.get("ORDREC_DATA"))
    options.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    options.add_argument("--keep", type=Path, help="folder in which models are kept")
    options.add_argument("--stages", action="store_true", help="of fits: CPU seconds and memory")
    options.add_argument("--promises", action="store_true")
    options.add_argument("--presets", nargs="+", choices=SIZES, default=list(SIZES))
    options.add_argument("--sizes", nargs="+", help="for all presets")
    options.add_argument("--jobs", type=int, help="threads; all cores by default")
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.alone:
        print(json.dumps(measured(chosen.presets[0], chosen.sizes[0], chosen.jobs)))
    elif chosen.load:
        print(json.dumps(loaded(chosen.load)))
    elif chosen.write:
        write_invented(*chosen.write)
    elif chosen.promises:
        print_promises(chosen.presets, chosen.sizes, chosen.jobs)
    else:
        print_paths(chosen.only, chosen.data, chosen.keep, chosen.stages)


# ---- the usual commands ----------------------------------------------------------------------


def print_paths(names: list[str], data: Path | None, keep: Path | None, stages: bool) -> None:
    """Print what each command takes."""
    columns = f"{'CPU s':>7s} {'GB':>6s} {'file MB':>8s} {'load s':>7s} {'list s':>7s} {'GB':>6s}"
    print(f"{'':28s} {columns}  goal", flush=True)
    with tempfile.TemporaryDirectory(prefix="ordrec-bench-") as temporary:
        folder = Path(temporary) if keep is None else keep
        for name in names:
            print_path(name, ROWS[name], data, folder, stages)


def print_path(name: str, row: Row, data: Path | None, folder: Path, stages: bool) -> None:
    """Print what one command takes."""
    source = row.data
    if source in ("ciao", "crossing"):
        source = str(folder / f"{row.data}.csv")
        if not Path(source).exists():
            own = [sys.executable, __file__, "--write", row.data, source]
            subprocess.run(own, check=True)
    elif source:
        if data is None or not (data / source).exists():
            print(f"{name:28s} no folder {source} in --data")
            return
        source = str(data / source)
    model = folder / f"{name.replace(', ', '-').replace(' ', '-').replace(',', '')}.ordrec"
    command = [{"DATA": source, "MODEL": str(model)}.get(part, part) for part in row.command]
    if stages and row.load:
        command.append("--verbose")
    environment = dict(os.environ)
    if row.cold:
        cache = folder / "cold"
        shutil.rmtree(cache, ignore_errors=True)
        environment["NUMBA_CACHE_DIR"] = str(cache)
    seconds, peak, said = run(command, environment)
    line = f"{name:28s} {seconds:7.1f} {peak:6.2f}"
    if model.exists():
        line += f" {model.stat().st_size / 1e6:8.1f}"
        own = [sys.executable, __file__, "--load", str(model)]
        done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        line += f" {found['seconds']:7.2f} {found['list']:7.2f} {found['peak']:6.2f}"
    print(f"{line:68s}  {row.goal}", flush=True)
    if stages and row.load:
        print(said, flush=True)


def run(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """CPU seconds and the largest memory, in gigabytes, of one ``ordrec`` command; what it said."""
    command = [sys.executable, "-m", "ordrec.cli", *arguments]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"ordrec {' '.join(arguments)} failed:\n{errors}")
    unit = 1 if sys.platform == "darwin" else 1024
    return used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 1e9, errors


def loaded(file: Path) -> dict[str, float]:
    """CPU seconds of loading a model and of a list, libraries being imported; the peak after it."""
    import ordrec.recommend
    import ordrec.recommend.recommender  # noqa: F401
    from ordrec import load

    started = time.process_time()
    model = load(file)
    seconds = time.process_time() - started
    user, started = model.user_ids_[0], time.process_time()
    if hasattr(model, "recommend"):
        model.recommend(user)
    listed = time.process_time() - started
    return {"seconds": seconds, "list": listed, "peak": peak_memory()}


def write_invented(name: str, file: str) -> None:
    """Write invented ratings as a csv file."""
    from ordrec.datasets import synthetic_long_tail

    counts = {"ciao": CIAO, "crossing": CROSSING}[name]
    synthetic_long_tail(**counts).to_frame().to_csv(file, index=False)  # type: ignore[arg-type]


# ---- promises --------------------------------------------------------------------------------


def print_promises(presets: list[str], sizes: list[str] | None, jobs: int | None) -> None:
    """Print what `max_memory` is compared with, beside what fits take."""
    print(f"{'preset':8s} {'users':>8s} {'items':>8s} {'ratings':>9s} {'promised':>9s} ", end="")
    print(f"{'measured':>9s} {'ratio':>6s}")
    for preset in presets:
        for size in sizes or SIZES[preset]:
            own = [sys.executable, __file__, "--alone", "--presets", preset, "--sizes", size]
            own += [] if jobs is None else ["--jobs", str(jobs)]
            done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout)
            users, items, ratings = size.split("x")[:3]
            print(f"{preset:8s} {users:>8s} {items:>8s} {ratings:>9s} ", end="")
            print(f"{row['promised']:9.3f} {row['measured']:9.3f} ", end="")
            print(f"{row['measured'] / row['promised']:6.2f}", flush=True)


def measured(preset: Any, size: str, jobs: int | None) -> dict[str, float]:
    """Return the promise and the measured peak of one fit, in gigabytes.

    A few ratings are fitted first, so that compiled code and libraries are in memory already.
    Measured is by how much the largest resident memory during the fit exceeds that before it.
    """
    from ordrec.rating.presets import gigabytes
    from ordrec.recommend import RatingPredictor

    warm_up = RatingPredictor(preset=preset, max_iter=1, n_jobs=jobs)
    warm_up.fit(ratings_of("60x50x900"))
    ratings = ratings_of(size)
    _ = ratings.user_counts, ratings.item_counts
    gc.collect()
    before = resident()
    model = RatingPredictor(preset=preset, max_iter=1, n_jobs=jobs, max_memory=1e6)
    model.fit(ratings)
    peak = peak_memory()
    # the kernel counts the two a little differently: a fit that took nothing is not below 0
    return {"promised": gigabytes(preset, ratings), "measured": max(peak - before, 0.0)}


def ratings_of(size: str) -> Any:
    """Invented ratings: users, items, ratings, the share of rare ones, and what one has more.

    The last number is that of the ratings of a further user, or, below 0, of a further item.
    """
    import pandas as pd

    from ordrec.data import Ratings
    from ordrec.datasets import synthetic_long_tail, synthetic_ratings

    n_users, n_items, n_ratings, rare, more = (*map(float, size.split("x")), 0.0, 0.0)[:5]
    counts = {"n_ratings": int(n_ratings), "seed": 0}
    if rare:
        shares = {"rare_items": rare, "rare_users": rare}
        return synthetic_long_tail(int(n_users), int(n_items), **counts, **shares)
    ratings = synthetic_ratings(int(n_users), int(n_items), **counts)  # type: ignore[arg-type]
    if not more:
        return ratings
    codes, same = np.arange(abs(int(more))), np.zeros(abs(int(more)), np.int64)
    users, items = (same + int(n_users), codes) if more > 0 else (codes, same + int(n_items))
    levels = np.random.default_rng(1).integers(0, 5, codes.size)
    frame = ratings.to_frame()
    one = pd.DataFrame({"user": users, "item": items, "rating": ratings.scale.values[levels]})
    return Ratings.from_frame(pd.concat([frame, one]))


def resident() -> float:
    """Gigabytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e9


def peak_memory() -> float:
    """Largest memory of this process so far, in gigabytes."""
    from ordrec.experiments import timing

    return timing.peak_memory()


if __name__ == "__main__":
    main()
