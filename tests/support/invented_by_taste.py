"""A few ratings by taste, with times, side tables and weights where asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale

DAY = 86_400
WEIGHT: dict[bool, dict[str, str]] = {True: {"weight": "weight"}, False: {}}


def invented_by_taste(
    *, dated: bool = False, described: bool = False, weighted: bool = False
) -> Ratings:
    """Some 250 ratings of 26 users and 18 items, on uneven levels."""
    n_users, n_items = 26, 18
    rng = np.random.default_rng(11)
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.55)
    taste, kind = rng.normal(size=n_users), rng.normal(size=n_items)
    score = 0.5 * taste[users] + taste[users] * kind[items] + 0.4 * rng.normal(size=users.size)
    frame = pd.DataFrame({"user": users + 100, "item": [f"i{item:02d}" for item in items]})
    frame["rating"] = np.array([1, 2, 3, 4, 5])[np.digitize(score, [-1.2, -0.3, 0.4, 1.3])]
    if dated:
        frame["timestamp"] = 1_100_000_000 + DAY * rng.integers(0, 700, users.size)
    if weighted:
        frame["weight"] = (1.0 + np.arange(len(frame)) % 4) / 4
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5), **WEIGHT[weighted])
    if not described:
        return ratings
    genres = np.array(["comedy", "crime", "drama"])[np.digitize(kind, [-0.5, 0.5])]
    age = 40 + 10 * taste + rng.normal(size=n_users)
    return ratings.with_side_tables(
        item_table=pd.DataFrame(
            {"genre": genres, "year": 1990 + (5 * kind).round()},
            index=sorted(frame["item"].unique()),
        ),
        user_table=pd.DataFrame({"age": age.round()}, index=100 + np.arange(n_users)),
    )
