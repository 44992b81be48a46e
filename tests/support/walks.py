"""Ratings whose order says what comes next."""

from __future__ import annotations

import numpy as np
import pandas as pd

__all__ = ["N_ITEMS", "walks"]

N_ITEMS = 40


def walks(seed: int = 0, n_users: int = 150, length: int = 16) -> pd.DataFrame:
    """Users who go from item to item around a circle, mostly one step at a time."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(n_users):
        item, seen, time = int(rng.integers(N_ITEMS)), set(), 1_000_000 * (user + 1)
        while len(seen) < length:
            item = (item + int(rng.choice([1, 1, 1, 2]))) % N_ITEMS
            if rng.random() < 0.1:
                item = int(rng.integers(N_ITEMS))
            time += 60 * int(rng.integers(0, 2))  # every other step is at the same time
            if item not in seen:
                seen.add(item)
                rows.append((user, item, int(rng.integers(1, 6)), time))
    return pd.DataFrame(rows, columns=["user", "item", "rating", "timestamp"])
