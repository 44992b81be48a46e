"""Small ratings in which there is something to learn, for tests of rating models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale


def two_taste_ratings(
    seed: int = 0,
    n_users: int = 40,
    n_items: int = 30,
    share: float = 0.5,
    scale: Scale | None = None,
    dated: bool = False,
) -> Ratings:
    """Ratings from two tastes, and users with their own use of the scale."""
    rng = np.random.default_rng(seed)
    scale = scale or Scale.regular(1, 5)
    users, items = np.nonzero(rng.random((n_users, n_items)) < share)
    score = rng.normal(size=(n_users, 2)) @ rng.normal(size=(2, n_items)) / 1.5
    score = score + rng.normal(0, 0.5, n_users)[:, None] + rng.normal(0, 0.7, n_items)
    noisy = score[users, items] + 0.4 * rng.normal(size=users.size)
    levels = np.clip(np.round((noisy + 2) / 4 * (scale.n_ranks - 1)), 0, scale.n_ranks - 1)
    frame = pd.DataFrame(
        {"user": users + 100, "item": items + 500, "rating": scale.values[levels.astype(int)]}
    )
    if dated:
        frame["timestamp"] = 10_000 + rng.integers(0, 5_000, users.size)
    return Ratings.from_frame(frame, scale=scale)


def parts(ratings: Ratings, seed: int = 0) -> tuple[Ratings, Ratings]:
    held = np.random.default_rng(seed).random(ratings.n_ratings) < 0.25
    return ratings.select(~held), ratings.select(held)


def ids(ratings: Ratings) -> tuple[pd.Index, pd.Index]:
    return ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items)


def log_loss(model: Any, test: Ratings) -> float:
    p = model.predict_proba(*ids(test))
    return float(-np.log(p[np.arange(test.n_ratings), test.levels]).mean())


def entropy(train: Ratings, test: Ratings) -> float:
    counts = np.bincount(train.levels, minlength=train.scale.n_ranks) + 1.0
    return float(-np.log(counts / counts.sum())[test.levels].mean())
