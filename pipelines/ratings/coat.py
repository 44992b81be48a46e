"""Ratings that users chose to give, and random ones: what inverse propensities bring on Coat.

Models are fitted on the self-selected ratings of Schnabel et al. (2016), with and without weights
by inverse propensities, and measured on the ratings of randomly drawn coats. Then a fifth of the
self-selected ratings is held out, and the estimators "ips" and "snips" of the error for all pairs
are compared with the error on the random ratings.

    python pipelines/ratings/coat.py FOLDER
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.evaluation import evaluate
from ordrec.evaluation.splits.own import own_parts
from ordrec.recommend import BiasModel, OrdinalFactors, RatingPredictor

SEEDS = range(5)
MODELS = {
    "BiasModel": BiasModel(),
    "OrdinalFactors": OrdinalFactors(),
    "RatingPredictor": RatingPredictor("fast"),
}


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return training ratings without pairs of the test part, test ratings, and propensities."""
    tables = []
    for name in ("train.ascii", "test.ascii"):
        matrix = np.loadtxt(folder / name, dtype=np.int64)
        users, items = np.nonzero(matrix)
        tables.append(pd.DataFrame({"user": users, "item": items, "rating": matrix[users, items]}))
    train, test = tables
    both = train.merge(test[["user", "item"]], how="left", indicator=True)["_merge"] == "both"
    p = np.loadtxt(folder / "propensities.ascii.gz")
    users, items = np.indices(p.shape).reshape(2, -1)
    given = pd.DataFrame({"user": users, "item": items, "propensity": p.ravel()})
    return train[~both.to_numpy()].reset_index(drop=True), test, given


def weighted(train: pd.DataFrame, given: pd.DataFrame) -> dict[str, np.ndarray | None]:
    """Return the weights of the training ratings, which must be from 0 to 1.

    None, by popularity, by the given propensities, and by these with one weight for all ratings
    whose propensity is below the median, so that fewer ratings count for next to nothing.
    """
    counts = train.groupby("item")["rating"].transform("size").to_numpy()
    p = train.merge(given, how="left")["propensity"].to_numpy()
    return {
        "none": None,
        "popularity": counts.min() / counts,
        "given": p.min() / p,
        "given, clipped": np.minimum(np.median(p) / p, 1.0),
    }


class WeightedBiases:
    """Biases as `BiasModel` has them, with a weight for each squared error."""

    def __init__(self, user_damping: float = 15.0, item_damping: float = 10.0):
        self.user_damping, self.item_damping = user_damping, item_damping

    def fit(self, ratings: Ratings) -> WeightedBiases:
        """Alternate between users and items until nothing moves."""
        weights = np.ones(ratings.n_ratings) if ratings.weights is None else ratings.weights
        weights = weights / weights.mean()  # as much data against the damping as without
        users, items = ratings.users, ratings.items
        self.ratings, self.mean = ratings, np.average(ratings.values, weights=weights)
        self.user, self.item = np.zeros(ratings.n_users), np.zeros(ratings.n_items)
        rest = ratings.values - self.mean
        for _ in range(200):
            self.user = np.bincount(users, weights * (rest - self.item[items]), self.user.size) / (
                np.bincount(users, weights, self.user.size) + self.user_damping
            )
            self.item = np.bincount(items, weights * (rest - self.user[users]), self.item.size) / (
                np.bincount(items, weights, self.item.size) + self.item_damping
            )
        return self

    def predict(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return the mean and both biases, on the scale."""
        user, item = self.ratings.user_codes(users), self.ratings.item_codes(items)
        return np.clip(self.mean + self.user[user] + self.item[item], 1, 5)


def trained(train: pd.DataFrame, test: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
    """Return errors on random ratings of models fitted with and without weights."""
    rows = []
    for name, weights in weighted(train, given).items():
        frame = train if weights is None else train.assign(weight=weights)
        column = None if weights is None else "weight"
        ratings = Ratings.from_frame(frame, scale=range(1, 6), weight=column)
        tested = Ratings.from_frame(
            test if column is None else test.assign(weight=1.0), scale=range(1, 6), weight=column
        )
        models = {"biases": WeightedBiases(), "OrdinalFactors": OrdinalFactors()}
        if column is None:
            models |= {"BiasModel": BiasModel(), "RatingPredictor": RatingPredictor("fast")}
        result = evaluate(ratings, models, test=tested, metrics=["rmse", "mae", "log_loss"])
        values = result.summary()[["rmse", "mae", "log_loss"]]
        half = {key: standing.half_width for key, standing in result.standings().items()}
        for model in models:
            rows.append(
                {"model": model, "weights": name}
                | values.loc[model].to_dict()
                | {"± rmse": half["rmse", model]}
            )
    return pd.DataFrame(rows)


def estimated(train: pd.DataFrame, test: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
    """Return what a hold-out of chosen ratings says about the error on random ones."""
    rows = []
    for seed in SEEDS:
        out = np.random.default_rng(seed).permutation(len(train)) < len(train) // 5
        kept, held_out = train[~out], train[out]
        truth = evaluate(kept, MODELS, test=test, metrics=["rmse", "mae"], n_resamples=0).summary()
        share = given.assign(propensity=given["propensity"] * out.mean())
        for name, propensity in (("popularity", "popularity"), ("given", share)):
            result = evaluate(
                kept, MODELS, test=held_out, metrics=["rmse", "mae"], n_resamples=0,
                propensity=propensity,
            )  # fmt: skip
            for model in MODELS:
                row = {"model": model, "propensities": name, "seed": seed}
                row |= {"random ratings": truth.loc[model, "rmse"]}
                row |= {
                    average: result.summary(average).loc[model, "rmse"]
                    for average in ("micro", "ips", "snips")
                }
                rows.append(row)
    return pd.DataFrame(rows).groupby(["model", "propensities"]).mean().drop(columns="seed")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with train.ascii, test.ascii and propensities")
    parts = read(parser.parse_args().folder)
    warnings.simplefilter("ignore")
    print(own_parts(*parts[:2])[1])
    print(trained(*parts).round(4).to_string(index=False))
    print(estimated(*parts).round(4).to_string())


if __name__ == "__main__":
    main()
