"""Ratings larger than memory: time, memory and accuracy against the number of ratings.

    python pipelines/speed/scale.py [--millions 1 5 25 50] [--jobs 2] [--sample N] [--factors 32]
                              [--one-way] [--folder FOLDER]

For each size, in processes of its own: synthetic ratings of 20,000 items and one user for every
hundred ratings are written to a folder that is deleted afterwards, partitioned by user;
OrdinalFactors is fitted to nine tenths of every user's ratings, block by block, or to those of
``--sample`` users in memory; and the last tenth is predicted from them. The table has
wall-clock and CPU seconds of each step, the peak memory of all processes together (shared memory
counted once; Linux only), and the errors beside those of the model that generated the ratings,
which no other model can beat, and of the item means. The last line has the exponents of the growth.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec import Ratings
from ordrec.data.on_disk.partitions import write_partitions
from ordrec.data.on_disk.scan import RatingsScan
from ordrec.datasets import LatentModel, latent_model, synthetic_chunks, synthetic_ratings
from ordrec.recommend import HeldOut, OrdinalFactors, ScanPredictions, fit_scan, predict_scan

RATINGS_PER_USER = 100
STEPS = ["write", "fit", "predict"]
TIMES = [f"{step}{kind}" for step in STEPS for kind in ("", " CPU")]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--millions", type=float, nargs="*", default=[1, 5, 25, 50])
    options.add_argument("--items", type=int, default=20_000)
    options.add_argument("--sample", type=int, help="users to fit on, in memory")
    options.add_argument("--one-way", action="store_true", help="fit up the scale only")
    options.add_argument("--factors", type=int, default=OrdinalFactors.n_factors)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--folder", type=Path, help="where to put the temporary folder")
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.alone:
        (millions,) = chosen.millions
        print(json.dumps(measure(round(millions * 1e6), chosen)))
        return
    rows = []
    for millions in chosen.millions:
        own = [sys.executable, __file__, "--alone", "--millions", str(millions)]
        for name in ("items", "sample", "factors", "jobs", "folder"):
            if getattr(chosen, name) is not None:
                own += [f"--{name}", str(getattr(chosen, name))]
        own += ["--one-way"] * chosen.one_way
        done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout))
        print(json.dumps(rows[-1]), flush=True)
    table = pd.DataFrame(rows).set_index("ratings", drop=False)
    print(f"\n{table.astype(object).T.to_string(header=False)}")
    if len(table) > 1:
        print(f"\nseconds grow with the exponents {exponents(table)}")


def measure(n_ratings: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return one row of the table."""
    n_users = n_ratings // RATINGS_PER_USER
    started = time.perf_counter()
    compile_everything()
    spent = time.perf_counter() - started
    print(f"first run of all steps, on little data: {spent:.1f} s", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder, Watch() as watch:
        with watch.step("write"):
            write_partitions(
                synthetic_chunks(n_users, chosen.items, n_ratings=n_ratings), f"{folder}/ratings"
            )
        scan = Ratings.scan(f"{folder}/ratings")
        held_out = HeldOut(0.1)
        model = OrdinalFactors(
            n_factors=chosen.factors,
            n_jobs=chosen.jobs,
            symmetric=not chosen.one_way,
            use_time=False,
        )
        with watch.step("fit"):
            if chosen.sample is None:
                fit_scan(
                    model, scan, held_out=held_out, folder=chosen.folder, n_jobs=chosen.jobs,
                    progress=lambda done, total, text: print(text, file=sys.stderr, flush=True),
                )  # fmt: skip
            else:
                model.fit(held_out.parted(scan.sample_users(chosen.sample))[0])
        with watch.step("predict"):
            found = predict_scan(model, scan, held_out, f"{folder}/found", n_jobs=chosen.jobs)
        errors = compare(found, latent_model(n_users, chosen.items), item_means(scan))
        stored = sum(file.stat().st_size for file in Path(folder).rglob("*.parquet"))
    processes = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    largest = max(resource.getrusage(which).ru_maxrss for which in processes)
    return {
        "ratings": n_ratings,
        "users": n_users,
        "sweeps": len(model.loss_),
        **{step: round(watch.seconds[step], 1) for step in TIMES},
        "total": round(sum(watch.seconds[step] for step in STEPS), 1),
        "total CPU": round(sum(watch.seconds[f"{step} CPU"] for step in STEPS), 1),
        "peak GB": round(watch.peak / 1e9, 2),
        "largest process GB": round(largest / 1e6, 2),
        "stored GB": round(stored / 1e9, 2),
        **errors,
    }


def compile_everything() -> None:
    """Run all steps on little data, so that compilation is timed apart."""
    with tempfile.TemporaryDirectory() as folder:
        synthetic_ratings(50, 40, n_ratings=500).to_partitions(f"{folder}/ratings")
        scan = Ratings.scan(f"{folder}/ratings")
        model = fit_scan(OrdinalFactors(max_iter=2), scan)
        predict_scan(model, scan, HeldOut(0.1), f"{folder}/found")


def item_means(scan: RatingsScan) -> np.ndarray:
    """Return the mean rating of each item, 0 where it has none."""
    counts, sums = np.zeros(scan.n_items), np.zeros(scan.n_items)
    for chunk in scan:
        counts += np.bincount(chunk.items, minlength=scan.n_items)
        sums += np.bincount(chunk.items, chunk.values, scan.n_items)
    return sums / np.maximum(counts, 1)


def compare(found: ScanPredictions, truth: LatentModel, means: np.ndarray) -> dict[str, float]:
    """Return errors of the model, the true model and the item means on held-out ratings."""
    totals = dict.fromkeys(("RMSE", "of truth", "of item means", "MAE", "MAE of truth"), 0.0)
    log_losses = {"log-loss": 0.0, "log-loss of truth": 0.0}
    for frame in found.frames():
        actual = frame["actual"].to_numpy()
        rows, levels = np.arange(actual.size), actual.astype(int) - 1
        p = truth.probabilities(frame["user"].to_numpy(), frame["item"].to_numpy())
        stars = np.arange(1, p.shape[1] + 1)
        median = 1 + (p.cumsum(axis=1) < 0.5).sum(axis=1)
        totals["RMSE"] += np.sum((frame["expected"] - actual) ** 2)
        totals["of truth"] += np.sum((p @ stars - actual) ** 2)
        totals["of item means"] += np.sum((means[frame["item"]] - actual) ** 2)
        totals["MAE"] += np.abs(frame["rating"] - actual).sum()
        totals["MAE of truth"] += np.abs(median - actual).sum()
        own = frame[[f"p_{star}" for star in stars]].to_numpy()
        log_losses["log-loss"] -= np.log(np.maximum(own[rows, levels], 1e-9)).sum()
        log_losses["log-loss of truth"] -= np.log(p[rows, levels]).sum()
    roots = {name: math.sqrt(totals[name] / found.n_pairs) for name in list(totals)[:3]}
    rest = {name: value / found.n_pairs for name, value in (totals | log_losses).items()}
    return {name: round(float(value), 4) for name, value in (rest | roots).items()}


def exponents(table: pd.DataFrame) -> str:
    """Return the slopes of log seconds against log ratings as a text."""
    log_size = np.log(table["ratings"])
    slopes = {
        step: np.polyfit(log_size, np.log(table[step].clip(lower=0.1)), 1)[0]
        for step in [*TIMES, "total", "total CPU"]
    }
    return ", ".join(f"{step} {slope:.2f}" for step, slope in slopes.items())


class Watch:
    """Watch over the memory and CPU time of this process and its descendants.

    Attributes
    ----------
    peak : int
        The peak of their total memory in bytes.
    seconds : dict
        Wall-clock and CPU seconds of each step.
    """

    def __init__(self, every: float = 0.2):
        self.peak, self.seconds = 0, {}
        self._busy: dict[int, float] = {}
        self._every, self._over = every, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Record the seconds of a step."""
        start, busy = time.perf_counter(), self._processors()
        yield
        self.seconds[name] = time.perf_counter() - start
        self.seconds[f"{name} CPU"] = self._processors() - busy
        print(f"{name}: {self.seconds[name]:.1f} s", file=sys.stderr, flush=True)

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            self._look()

    def _look(self) -> None:
        memory = 0
        for pid, seconds in family().items():
            self._busy[pid] = seconds
            memory += proportional_memory(pid)
        self.peak = max(self.peak, memory)

    def _processors(self) -> float:
        self._look()
        return sum(self._busy.values())  # finished processes with their last known value


def family() -> dict[int, float]:
    """Return this process and its descendants by id, with their CPU seconds."""
    children: dict[int, list[int]] = {}
    busy: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        busy[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    found, waiting = {}, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        found[pid] = busy.get(pid, 0.0)
        waiting += children.get(pid, [])
    return found


def proportional_memory(pid: int) -> int:
    """Return the memory of a process in bytes; a page shared by k processes counts 1 / k."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
