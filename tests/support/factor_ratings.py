"""Invented ratings with what ordinal factors should find: taste by side data, moods by sitting."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale

STARS = Scale.regular(1, 5)
CUTS = [-2.0, -0.7, 0.7, 2.0]


def everything(ratings: Ratings) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of users and items, by ids."""
    users = np.repeat(ratings.user_ids, ratings.n_items)
    return users.to_numpy(), np.tile(ratings.item_ids, ratings.n_users)


def pairs_of(ratings: Ratings) -> tuple[pd.Index, pd.Index]:
    """Ids of the users and items of the ratings."""
    return ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items)


def log_loss(model, ratings: Ratings, times: np.ndarray | None = None) -> float:
    """Mean negative log-probability of the ratings."""
    when = () if times is None else (times,)
    p = model.predict_proba(*pairs_of(ratings), *when)
    return float(-np.log(p[np.arange(len(ratings)), ratings.levels]).mean())


def split(ratings: Ratings, share: float, seed: int = 0) -> tuple[Ratings, Ratings]:
    """Training ratings and a share of held-out ones."""
    held = np.random.default_rng(seed).random(len(ratings)) < share
    return ratings.select(~held), ratings.select(held)


def ratings_of_scores(users, items, scores, n_users: int, n_items: int, **more) -> Ratings:
    """Ratings on five ranks from latent scores."""
    ids = {"user_ids": pd.RangeIndex(n_users), "item_ids": pd.RangeIndex(n_items)}
    return Ratings(users, items, np.digitize(scores, CUTS), scale=STARS, **ids, **more)


def described_ratings(n_users: int = 120, n_items: int = 80, seed: int = 0) -> Ratings:
    """Old users love genre c and young ones genre a; everybody prefers recent items."""
    rng = np.random.default_rng(seed)
    genre, year = rng.integers(0, 3, n_items), rng.uniform(1950, 2000, n_items)
    age = rng.uniform(10, 70, n_users)
    taste = np.column_stack([np.ones(n_users), np.sign(age - 40), rng.normal(size=n_users)])
    items_are = np.column_stack(
        [(year - 1975) / 15, 1.5 * (genre - 1), 0.5 * rng.normal(size=n_items)]
    )
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.35)
    scores = (taste[users] * items_are[items]).sum(axis=1) + 0.5 * rng.logistic(size=users.size)
    return ratings_of_scores(
        users, items, scores, n_users, n_items,
        user_table=pd.DataFrame({"age": age}),
        item_table=pd.DataFrame({"genre": np.array(list("abc"))[genre], "year": year}),
    )  # fmt: skip


def moody_ratings(n_users: int = 60, n_items: int = 40, seed: int = 0) -> Ratings:
    """Every user rates all items in five sittings, a season apart, each in another mood."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), n_items)
    items = np.concatenate([rng.permutation(n_items) for _ in range(n_users)])
    sitting, minute = np.divmod(np.tile(np.arange(n_items), n_users), n_items // 5)
    moods = 1.5 * rng.normal(size=(n_users, 5))
    scores = rng.normal(size=n_items)[items] + moods[users, sitting]
    scores += 0.5 * rng.logistic(size=users.size)
    times = 1_000_000_000 + sitting * 90 * 86_400 + 60 * minute
    return ratings_of_scores(users, items, scores, n_users, n_items, timestamps=times)
