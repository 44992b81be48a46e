"""The accuracy of item kernels: one kernel ridge regression per user on MovieLens 100K.

    python pipelines/ratings/kernel_ridge.py [folder of MovieLens 100K]

Each user's ratings, minus leave-user-out item levels, are regressed on the item kernel computed
without that user; the users share nothing else. Prints RMSE and MAE of the real-valued predictions,
clipped to the scale, on the five official folds, with the Pearson kernel alone and with
smoothed Pearson + co-rating + genres. Variances and smoothing counts are chosen once, on
ratings held out of the training part of u1, never on a test part. (The test parts of u2 to u5
overlap with that training part: only the row of u1 is free of this.) Seconds are those after a
first run on a few users, which compiles.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ordrec.data import Ratings
from ordrec.data.formats.movielens import genre_flags
from ordrec.datasets import load_movielens
from ordrec.experiments.timing import first_run
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.base import Constant, Kernel
from ordrec.kernels.items.content import Content
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.kernel import ItemKernel
from ordrec.kernels.items.pearson import Pearson

NOISE = 1.0  # variances are relative to it
ITEM_DAMPING = 5.0


def main() -> None:
    """Choose the kernels, then print one row per fold."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", default="data/ml-100k")
    ratings = load_movielens(options.parse_args().folder)
    genres = genre_flags(ratings.item_table).to_numpy()
    first_run(warm_up, ratings, genres)
    start = time.perf_counter()
    chosen = {name: choose(ratings, genres, grid) for name, grid in grids().items()}
    print(f"choosing took {time.perf_counter() - start:.1f} s")
    for name, kernel in chosen.items():
        print(f"\n{name}: {kernel!r}")
        scores = []
        for fold in ("u1", "u2", "u3", "u4", "u5"):
            start = time.perf_counter()
            test = ratings.folds[fold]
            scores.append(score(ratings.select(~test), ratings.select(test), genres, kernel))
            rmse, mae = scores[-1]
            print(f"  {fold}  RMSE {rmse:.4f}  MAE {mae:.4f}  {time.perf_counter() - start:.1f} s")
        rmse, mae = np.mean(scores, axis=0)
        print(f"  mean RMSE {rmse:.4f}  MAE {mae:.4f}")


def warm_up(ratings: Ratings, genres: np.ndarray) -> None:
    """Compile, or load, what the kernels need, on the ratings of a few users."""
    few = ratings.select(ratings.users < 30)
    test = np.arange(few.n_ratings) % 5 == 0
    score(few.select(~test), few.select(test), genres, grids()["Pearson + co-rating + genres"][0])


def grids() -> dict[str, list[Kernel]]:
    """Return the kernels to choose from: variances and smoothing counts on coarse grids."""
    pearson = [
        Constant(0.3) + variance * Pearson().normalised(smooth)
        for variance, smooth in product([0.25, 0.5, 1.0], [0, 20, 80, 200])
    ]
    summed = [
        Constant(0.3)
        + a * Pearson().normalised(s)
        + b * CoRating().normalised(2.0)
        + c * Content("genres").normalised()
        for a, s, b, c in product([0.25, 0.5, 1.0], [50, 150], [0.25, 0.5, 1.0], [0.1, 0.3])
    ]
    return {"Pearson alone": pearson, "Pearson + co-rating + genres": summed}


def choose(ratings: Ratings, genres: np.ndarray, grid: list[Kernel]) -> Kernel:
    """Return the kernel with the least squared error on held-out training ratings of u1.

    A tenth of the ratings is held out, and 200 of the users are scored.
    """
    train = ratings.select(~ratings.folds["u1"])
    random = np.random.default_rng(0)
    held_out = random.random(train.n_ratings) < 0.1
    scored = np.isin(train.users, random.choice(train.n_users, 200, replace=False))
    parts = train.select(~held_out), train.select(held_out & scored)
    return min(grid, key=lambda kernel: score(*parts, genres, kernel)[0])


def score(train: Ratings, test: Ratings, genres: np.ndarray, kernel: Kernel) -> tuple[float, float]:
    """Return RMSE and MAE of the test ratings."""
    matrix = RatingMatrix.from_ratings(train)
    items = ItemKernel(kernel).fit(matrix, {"genres": genres})
    totals = np.bincount(matrix.items, matrix.values.data, matrix.n_items)
    low, high = train.scale.values[[0, -1]]
    errors = np.empty(test.n_ratings)
    for user in np.unique(test.users).tolist():
        rows = test.rows_of_user(user)
        own, values = matrix.of_user(user)
        wanted = test.items[rows]
        predicted = item_levels(matrix, totals, user, wanted)
        if len(own) > 0:
            surplus = values - item_levels(matrix, totals, user, own)
            predicted += ridge(items, user, own, surplus, wanted)
        errors[rows] = np.clip(predicted, low, high) - test.values[rows]
    return float(np.sqrt(np.mean(errors**2))), float(np.mean(np.abs(errors)))


def ridge(
    items: ItemKernel, user: int, own: np.ndarray, surplus: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """Predict by kernel ridge regression how far a user's ratings are from the item levels."""
    K = items.for_user(user, own)
    K[np.diag_indices_from(K)] += NOISE
    return items.for_user(user, wanted, own) @ cho_solve(cho_factor(K, lower=True), surplus)


def item_levels(
    matrix: RatingMatrix, totals: np.ndarray, user: int, wanted: np.ndarray
) -> np.ndarray:
    """Return item means without the user's ratings, damped by ITEM_DAMPING ratings of the mean."""
    own, values = matrix.of_user(user)
    sums, counts = totals.copy(), matrix.item_counts.astype(float)
    sums[own] -= values
    counts[own] -= 1
    mean = sums.sum() / counts.sum()
    return mean + (sums[wanted] - mean * counts[wanted]) / (counts[wanted] + ITEM_DAMPING)


if __name__ == "__main__":
    main()
