"""Lists from ratings on disk: the fit of a recommender and lists of ten for everybody.

    python pipelines/speed/scale_lists.py [--millions 1 4] [--model recommender] [--jobs 2]
        [--max-memory 4] [--factors 32] [--folder FOLDER]

For each size, in a process of its own: synthetic ratings with MovieLens 25M's proportions (one user
for every 154 ratings, one item for every 424) are written to a folder, partitioned by user; the
model is fitted to nine tenths of the ratings, block by block; lists of ten are made for all users,
and measured on the last tenth. The table has processor seconds of each step and the largest memory
of the process. The last lines have the exponents of the growth.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ordrec import Ratings
from ordrec.choice.ordered import OrderedChoice
from ordrec.data.on_disk.partitions import write_partitions
from ordrec.datasets import synthetic_chunks
from ordrec.evaluation import evaluate_scan
from ordrec.experiments.timing import peak_memory
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.recommend import HeldOut, Recommender, fit_scan, make_model, recommend_scan

PER_USER, PER_ITEM = 154, 424
STEPS = "write", "fit", "lists"


def main() -> None:
    """Print a line for each size, and the exponents."""
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--millions", type=float, nargs="+", default=[1, 4])
    options.add_argument("--model", default="recommender")
    options.add_argument("--factors", type=int, help="of the rating model; its default if omitted")
    options.add_argument("--max-memory", type=float, default=4.0)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--folder", type=Path, help="where to put the temporary folder")
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.alone:
        print(json.dumps(measured(round(chosen.millions[0] * 1e6), chosen)))
        return
    rows: list[dict[str, Any]] = []
    for millions in chosen.millions:
        own = [sys.executable, __file__, "--alone", "--millions", str(millions)]
        for name in ("model", "factors", "max_memory", "jobs", "folder"):
            if getattr(chosen, name) is not None:
                own += [f"--{name.replace('_', '-')}", str(getattr(chosen, name))]
        done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    if len(rows) > 1:
        first, last = rows[0], rows[-1]
        grown = math.log(last["ratings"] / first["ratings"])
        for step in STEPS[1:]:
            print(f"{step}: exponent {math.log(last[step] / first[step]) / grown:.2f}")


def measured(n_ratings: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds, memory and quality of one size."""
    n_users, n_items = max(n_ratings // PER_USER, 60), max(n_ratings // PER_ITEM, 40)
    found: dict[str, Any] = {"ratings": n_ratings, "users": n_users, "items": n_items}
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        folder, clock = Path(place), Clock()
        chunks = synthetic_chunks(n_users, n_items, n_ratings=n_ratings, seed=0)
        write_partitions(chunks, folder / "ratings", rows_per_part=2_000_000)
        scan = Ratings.scan(folder / "ratings")
        found["write"] = clock.lap()
        model = fit_scan(
            made(chosen), scan, held_out=HeldOut(0.1), folder=folder, n_jobs=chosen.jobs
        )
        found |= {"fit": clock.lap(), "fit GB": round(peak_memory(), 2)}
        path = recommend_scan(model, scan, folder / "lists.parquet", 10)
        found |= {"lists": clock.lap(), "GB": round(peak_memory(), 2)}
        found["MB of lists"] = round(path.stat().st_size / 1e6, 1)
        if n_ratings <= 5e6:  # held-out ratings are joined with lists in memory
            result = evaluate_scan(model, scan, folder / "measured", metrics=["recall@10"])
            found["recall@10"] = round(float(result.summary().iloc[0]["recall@10"]), 4)
    return found


def made(chosen: argparse.Namespace) -> Any:
    """Return the model, not fitted."""
    if chosen.model != "recommender":
        return make_model(chosen.model)
    choice = OrderedChoice(max_memory=chosen.max_memory, n_jobs=chosen.jobs)
    sized = {} if chosen.factors is None else {"n_factors": chosen.factors}
    return Recommender(choice=choice, rating=OrdinalFactors(**sized, n_jobs=chosen.jobs))


class Clock:
    """Processor seconds of this process and of those that it waited for."""

    def __init__(self) -> None:
        self._before = self._now()

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        before, self._before = self._before, self._now()
        return round(self._before - before, 1)

    def _now(self) -> float:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
