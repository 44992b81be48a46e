"""Users of five tastes, who rate a little and view a lot."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale

N_USERS, N_ITEMS, TASTES = 160, 150, 5
SCALE = Scale.regular(1, 5)


def rated_and_viewed(
    seed: int = 0, dated: bool = False, n_users: int = N_USERS
) -> tuple[Ratings, pd.DataFrame]:
    """Few ratings, and views of other items of the user's own taste."""
    rng = np.random.default_rng(seed)
    own = np.arange(N_ITEMS) % TASTES == (np.arange(n_users) % TASTES)[:, None]
    is_rated = rng.random(own.shape) < np.where(own, 0.12, 0.03)
    is_viewed = (rng.random(own.shape) < np.where(own, 0.5, 0.03)) & ~is_rated
    frame = _frame(is_rated, rng)
    liked = own[frame["user"], frame["item"]]
    frame["rating"] = np.clip(rng.integers(1, 4, len(frame)) + 2 * liked, 1, 5)
    views = _frame(is_viewed, rng).assign(kind="view")
    if not dated:
        frame, views = (each.drop(columns="timestamp") for each in (frame, views))
    return Ratings.from_frame(frame, scale=SCALE), views


def _frame(cells: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    users, items = np.nonzero(cells)
    times = 1_000_000_000 + 86_400 * rng.integers(0, 900, users.size)
    return pd.DataFrame({"user": users, "item": items, "timestamp": times})


def of_strangers(views: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """The views of each user given to another one: they say nothing."""
    other = np.random.default_rng(seed).permutation(N_USERS)
    return views.assign(user=other[views["user"]])
