"""Choice models on Gowalla, 40,981 items: Recall@20 and NDCG@20 on the split of NGCF and LightGCN.

    python pipelines/lists/gowalla.py [--data FOLDER] [--models ease ease-scaled mixture]
        [--nearest 50] [--jobs 2] [--quick]

All items that a user has not picked in training are ranked. Recall is the share of the user's test
items in the list, NDCG has binary gains and ideal lists of at most 20 items; both are means over
users. All parameters are chosen in training. ``ease`` is as published; ``ease-scaled`` has the
powers 0.5 and 0.25 that the mixture uses. Published on this split: EASE .1765 / .1467, SLIM .1699 /
.1382, ItemCF .1570 / .1214, LightGCN .1830 / .1554, SimpleX .1872 / .1557, BSPM-EM .1920 / .1597.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.choice.ease import EASE
from ordrec.choice.mixture import ChoiceMixture
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.experiments.timing import peak_memory
from ordrec.models.base import codes_of

LENGTH = 20


def main() -> None:
    """Print a line for each model."""
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--models", nargs="+", default=["ease", "ease-scaled", "mixture"])
    options.add_argument("--nearest", type=int, default=EASE().n_nearest)
    options.add_argument("--jobs", type=int, help="threads; all cores by default")
    options.add_argument("--quick", action="store_true", help="invented picks")
    chosen = options.parse_args()
    if chosen.quick:
        frame = synthetic_ratings(80, 60, n_ratings=1500, seed=2).to_frame()[["user", "item"]]
        train, test = frame[::2], frame[1::2]
    else:
        folder = Path(chosen.data) / "gowalla"
        train, test = (picks_of(folder / f"{part}.txt.gz") for part in ("train", "test"))
    ratings = Ratings.from_frame(train, rating=None)
    print(f"{ratings}\n{'model':12s} {'recall@20':>9s} {'ndcg@20':>8s} {'ridge':>7s} "
          f"{'fit CPU s':>9s} {'lists CPU s':>11s} {'peak GB':>8s}")  # fmt: skip
    for name in chosen.models:
        memory = 1e-5 if chosen.quick else 8.0
        powers: dict[str, Any] = {"user_power": 0.5, "item_power": 0.25}
        fixed: dict[str, Any] = {"max_memory": memory, "n_jobs": chosen.jobs}
        model: Any = {
            "ease": lambda: EASE(n_nearest=chosen.nearest, **fixed),  # noqa: B023
            "ease-scaled": lambda: EASE(n_nearest=chosen.nearest, **powers, **fixed),  # noqa: B023
            "mixture": lambda: ChoiceMixture(**fixed),  # noqa: B023
        }[name]()
        started = time.process_time()
        model.fit(ratings)
        fitted = time.process_time()
        recall, ndcg = measured(model, test)
        ridge = getattr(model, "ease_", model).regularization_
        print(f"{name:12s} {recall:9.4f} {ndcg:8.4f} {ridge:7g} {fitted - started:9.0f} "
              f"{time.process_time() - fitted:11.0f} {peak_memory():8.2f}", flush=True)  # fmt: skip
        if name == "mixture":
            print(f"mixture: {model.chosen_}, cold {model.cold_:g}")


def picks_of(path: Path) -> pd.DataFrame:
    """Read lines of a user followed by items."""
    with gzip.open(path, "rt") as lines:
        rows = [np.array(line.split(), dtype=np.int64) for line in lines]
    users = np.repeat([row[0] for row in rows], [row.size - 1 for row in rows])
    return pd.DataFrame({"user": users, "item": np.concatenate([row[1:] for row in rows])})


def measured(model: Any, test: pd.DataFrame) -> tuple[float, float]:
    """Return Recall@20 and NDCG@20 of the lists for all users of the test part."""
    items = codes_of(model.item_ids_, test["item"])
    users = codes_of(model.user_ids_, test["user"])
    wanted = {int(user): set(items[own]) for user, own in test.groupby(users).indices.items()}
    codes = np.array(sorted(wanted))
    codes = codes[codes >= 0]
    discount, listable = 1.0 / np.log2(np.arange(2, LENGTH + 2)), model.item_filter()
    recall, ndcg, width = [], [], model.block_size()
    for first in range(0, codes.size, width):
        some = codes[first : first + width]
        for user, listed in zip(some, model.lists(some, LENGTH, listable)[0], strict=True):
            held = wanted[int(user)]
            hits = np.array([item in held for item in listed.tolist()])
            recall.append(hits.sum() / len(held))
            best = discount[: min(len(held), LENGTH)].sum()
            ndcg.append(float((hits * discount[: hits.size]).sum() / best))
    return float(np.mean(recall)), float(np.mean(ndcg))


if __name__ == "__main__":
    main()
