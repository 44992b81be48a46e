"""Top-N lists on MovieLens 1M by the protocol of Anelli et al. (2022), made with Elliot.

Ratings of at least 4 are kept and count alike; users and items with fewer than ten of them are
removed until nothing changes. The five test parts are files of their own
(``elliot-ml-1m/test_0.csv.gz`` to ``test_4.csv.gz``, columns user and item), each a random fifth of
every user's picks; they overlap. Every item that a user has not picked in the training part is
ranked, and the first ten places are measured by binary NDCG.

"item-kNN" is the class `CosineNeighbours` below, with 95 neighbours of each item that is scored.
(implicit's ``CosineRecommender`` keeps the neighbours of each item that was picked instead, and has
.258 on the first fold in place of .296.) "EASE, left out" is plain EASE whose ridge is chosen by
leave-one-out on the training part. The mixture chooses its ridge in the same way and treats future
picks as a random part.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.als import ImplicitALS
from ordrec.choice.ease import EASE
from ordrec.choice.mixture import ChoiceMixture
from ordrec.choice.popularity import Popularity
from ordrec.data import Ratings, Scale
from ordrec.datasets import load_dataset
from ordrec.errors import DataError
from ordrec.evaluation import Experiment, PublishedFolds, RatingsProblem
from ordrec.experiments.published import beside_published
from ordrec.experiments.runner import Reproduction, data_folder, main, published_csv
from ordrec.models.base import IdMappedModel, codes_of, fits

NAME = "elliot-ml-1m"
TITLE = "Top-N lists on MovieLens 1M, ratings of 4 and more, five published folds"
SOURCE = "Anelli, Bellogín, Di Noia, Jannach and Pomo 2022, MovieLens 1M"
TIME = "about ten minutes"

METRIC = "pick_ndcg@10"
METRICS = [METRIC, "pick_calibration@10", "coverage@10", "novelty@10"]
N_FOLDS = 5
SIZES = (5_949, 2_810, 571_531)  # users, items, pairs
QUICK = ("popularity", "item-kNN", "EASE, lambda 800")
PLAIN = {"user_power": 0.0, "item_power": 0.0, "min_ratings": 1}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run five folds; quick: the first fold, without the models that choose their parameters."""
    ratings = picks(data)
    models = {name: m for name, m in declared_models().items() if not quick or name in QUICK}
    problem = RatingsProblem(ratings, PublishedFolds(tuple(ratings.folds)))
    experiment = Experiment(
        models,
        [problem],
        metrics=METRICS,
        store=out / "cells",
        max_folds=1 if quick else trials,
    )
    result = experiment.run(n_jobs=jobs)
    return Reproduction(
        result,
        findings(result.frame, ratings),
        comparison=beside_published(result.frame, published_csv(NAME)),
    )


def picks(data: Path | None) -> Ratings:
    """Return the picks, each with the same rating, and the published folds."""
    folder = data_folder(data, "elliot-ml-1m")
    whole = load_dataset("ml-1m", folder=data, offline=True)
    core = whole.select(whole.values >= 4).core(10)
    if (core.n_users, core.n_items, core.n_ratings) != SIZES:
        raise DataError(
            f"{core.n_users} users, {core.n_items} items and {core.n_ratings} pairs instead of "
            f"{SIZES[0]}, {SIZES[1]} and {SIZES[2]}: is this the original MovieLens 1M?"
        )
    pairs = core.users.astype(np.int64) * core.n_items + core.items
    folds = {
        str(fold): tested(core, pairs, folder / f"test_{fold}.csv.gz") for fold in range(N_FOLDS)
    }
    return Ratings(
        core.users,
        core.items,
        np.ones(core.n_ratings),
        scale=Scale([0, 1]),
        user_ids=core.user_ids,
        item_ids=core.item_ids,
        folds=folds,
        name=NAME,
    )


def tested(core: Ratings, pairs: np.ndarray, path: Path) -> np.ndarray:
    """Return which of the pairs are in a published test part."""
    try:
        frame = pd.read_csv(path, usecols=["user", "item"])
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a table of users and items ({error})") from None
    users, items = core.user_codes(frame["user"]), core.item_codes(frame["item"])
    flags = np.isin(pairs, users * core.n_items + items)
    if (users < 0).any() or (items < 0).any() or int(flags.sum()) != len(frame):
        raise DataError(f"{path}: not all of its pairs are among the ratings of 4 and more")
    return flags


def declared_models() -> dict[str, object]:
    """Return the models by name."""
    return {
        "popularity": Popularity(),
        "item-kNN": CosineNeighbours(k=95),
        "EASE, lambda 238.56": EASE(238.56, **PLAIN),
        "EASE, lambda 800": EASE(800.0, **PLAIN),
        "EASE, left out": EASE(**PLAIN),
        "implicit ALS": ImplicitALS(n_factors=64, regularization=0.006),
        "ChoiceMixture": ChoiceMixture(future="random"),
    }


@dataclass(eq=False)
class CosineNeighbours(IdMappedModel):
    """Scores an item by the cosines between it and the picked ones of its k nearest items."""

    k: int = 95

    @fits
    def fit(self, ratings: Ratings) -> CosineNeighbours:
        """Compute the cosines of all pairs of items and keep the largest of each column."""
        self._remember(ratings)
        self.picks_ = sparse.csr_array(ratings.matrix("one").T)
        together = (self.picks_.T @ self.picks_).toarray()
        norms = np.sqrt(np.maximum(np.diag(together), 1.0))
        cosines = together / norms[:, None] / norms
        np.fill_diagonal(cosines, 0.0)
        k = min(self.k, len(cosines))
        kept = np.partition(cosines, -k, axis=0)[-k]
        self.weights_ = sparse.csr_array(np.where(cosines >= kept, cosines, 0.0))
        return self

    def scores_block(self, users) -> np.ndarray:
        """Return the scores of all items for these users, one row per user."""
        return self.picks_[codes_of(self.user_ids_, users)] @ self.weights_.toarray()

    def scores(self, users, items) -> np.ndarray:
        """Return one score per pair."""
        user_codes, item_codes = self._codes(users, items)
        columns = self.weights_.T.tocsr()[item_codes]
        return np.asarray(self.picks_[user_codes].multiply(columns).sum(axis=1)).ravel()


def findings(frame: pd.DataFrame, ratings: Ratings) -> list[str]:
    """Return sentences about the protocol and the values."""
    lines = [
        f"{ratings.n_ratings} pairs of {ratings.n_users} users and {ratings.n_items} items; test "
        f"parts of {', '.join(str(int(flags.sum())) for flags in ratings.folds.values())} pairs"
    ]
    means = frame.groupby(["metric", "model"], sort=False)["value"].mean()
    for name, value in means[METRIC].items():
        lines.append(f"{name}: NDCG@10 {value:.4f}")
    if "pick_calibration@10" in means.index.get_level_values("metric"):
        for name, value in means["pick_calibration@10"].items():
            lines.append(f"{name}: {value:.2f} hits expected in the first ten per hit observed")
    return lines


if __name__ == "__main__":
    main(NAME)
