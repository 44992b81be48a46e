"""Lists of items that nobody has rated: how many of a user's picks are found among them.

    python pipelines/lists/bench_cold_items.py [--sets ml-100k ml-1m anime-5k] [--seeds 0 1 2]
        [--jobs 1] [--quick]

A tenth of the items is held out with all their ratings (``cold-items:0.1``); lists are of these
alone. ``recall`` is the share of a user's picks among them that is in the first 20, a mean over
users. ``random`` draws lists without looking at anything, ``popular`` orders the items by the
ratings that were held out, which nobody can know beforehand. ``p_pick`` is the sum of chances over
all pairs of a user and a new item, divided by what the calibration means: the quarter of the picks
of the whole history that a user is expected to go on to pick.

``irspack`` is the feature-aware iALS of that package, if it is installed, with the same features
and the best of its settings in `SETTINGS` by the very lists that are measured, which favours it.

anime-5k has its genre, type and number of episodes alone: its other columns (mean rating, members)
are of the time after the item came out.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec import Ratings, load_dataset
from ordrec.datasets import synthetic_ratings
from ordrec.evaluation.splits.ratings import ColdItems
from ordrec.features import SideEncoder
from ordrec.lists.best import best_columns
from ordrec.recommend import ChoiceMixture

LENGTH = 20
SETTINGS = [
    {"reg": reg, "lambda_item_feature": weight, "alpha0": alpha}
    for reg in (0.001, 0.01)
    for weight in (0.001, 0.01, 0.1, 1.0)
    for alpha in (0.1, 0.3)
]  # of irspack's iALS


def main() -> None:
    """Print one table."""
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--sets", nargs="+", default=["ml-100k", "ml-1m", "anime-5k"])
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--jobs", type=int, help="threads; all cores by default")
    options.add_argument("--quick", action="store_true", help="invented ratings")
    chosen = options.parse_args()
    rows = []
    for name in ["invented"] if chosen.quick else chosen.sets:
        ratings = loaded(name)
        for seed in chosen.seeds[:1] if chosen.quick else chosen.seeds:
            rows += measured(name, ratings, seed, chosen.jobs)
    table = pd.DataFrame(rows).groupby(["data", "lists"], sort=False).mean(numeric_only=True)
    print(table.drop(columns="seed").round(4).to_string())


def loaded(name: str) -> Ratings:
    """Ratings with an item table."""
    if name == "invented":
        ratings = synthetic_ratings(120, 300, n_ratings=6000, seed=1)
        table = pd.DataFrame({"item": np.arange(300), "kind": np.arange(300) % 7 + 0.5})
        return ratings.with_side_tables(item_table=table.astype({"kind": str}))
    if name != "anime-5k":
        return load_dataset(name)
    folder = Path(os.environ["ORDREC_DATA"]) / name
    frame = pd.read_csv(folder / "anime_ratings.dat.gz", sep="\t")
    items = pd.read_csv(folder / "anime_info.dat.gz", sep="\t")
    frame.columns, items = ["user", "item", "rating"], items.rename(columns={"anime_ids": "item"})
    return Ratings.from_frame(frame, item_table=items[["item", "genre", "type", "episodes"]])


def measured(name: str, ratings: Ratings, seed: int, n_jobs: int | None) -> list[dict[str, object]]:
    """Recall of each way to order the items that were held out."""
    split = next(ColdItems(0.1, random_state=seed).split(ratings))
    cold = np.flatnonzero(split.test.item_counts)
    picked = split.test.matrix("one").T.tocsr()[:, cold].toarray() > 0
    users = np.flatnonzero(picked.any(axis=1) & (split.train.user_counts > 0))
    picked = picked[users]
    # fixed parameters: what is chosen otherwise does not touch the new items
    model = ChoiceMixture(200.0, mix=0.35, cold=16.0, n_jobs=n_jobs, random_state=seed)
    model.fit(split.train)
    scores = np.vstack(
        [
            model.score_users(block)[:, cold]
            for block in np.array_split(users, 1 + users.size // 500)
        ]
    )
    rng = np.random.default_rng(seed)
    orders = {
        "random": rng.random(picked.shape),
        "popular": np.tile(picked.sum(axis=0) + 1e-6 * rng.random(cold.size), (users.size, 1)),
        "new items": scores,
    }
    orders |= of_irspack(split.train, cold, users, seed)
    rows: list[dict[str, object]] = []
    for lists, order in orders.items():
        best = best_columns(order, LENGTH)
        found = np.take_along_axis(picked, best, axis=1).sum(axis=1) / picked.sum(axis=1)
        rows.append({"data": name, "lists": lists, "seed": seed, "recall": found.mean()})
    p = model.p_pick(scores, split.train.user_counts[users])
    rows[2]["p_pick"] = p.sum() / (model.horizon * picked.sum())
    rows[2]["ridge"] = model.new_items_.ridge if model.new_items_ else np.nan
    best_of_irspack = sorted(rows[3:], key=lambda row: row["recall"])[-1:]  # type: ignore[arg-type, return-value]
    return rows[:3] + [row | {"lists": "irspack"} for row in best_of_irspack]


def of_irspack(
    train: Ratings, cold: np.ndarray, users: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Scores of the new items by irspack, for each of its settings; none without it."""
    try:
        from irspack.recommenders import IALSRecommender
    except ImportError:
        return {}
    X = SideEncoder().fit(train.item_table).matrix(train.item_table).astype(np.float32)
    warm = np.flatnonzero(train.item_counts)
    history = sparse.csr_matrix(train.matrix("one").T.tocsr()[:, warm]).astype(np.float32)
    orders = {}
    for number, settings in enumerate(SETTINGS):
        model = IALSRecommender(
            history, n_components=32, item_features=X[warm], random_seed=seed, n_threads=1,
            **settings,
        ).learn()  # fmt: skip
        orders[f"irspack {number}"] = model.get_score_from_item_features(users, X[cold])
    return orders


if __name__ == "__main__":
    main()
