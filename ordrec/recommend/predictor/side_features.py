"""Features of users and items from the side tables of ratings.

It reads ``genres`` ("a|b") and ``year`` of the item table, ``age``, ``gender`` and ``occupation``
of the user table. A missing value becomes a row of zeros, for which the kernel is 0.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ordrec.datasets.movielens import genre_flags
from ordrec.recommend.process.shared_features import radial_features

__all__ = ["item_side_features", "user_side_features"]

YEAR_WIDTH = 8.0
AGE_WIDTH = 10.0


def item_side_features(table: pd.DataFrame | None) -> dict[str, np.ndarray]:
    """Kernels "genres" (cosine of the flags) and "year" (Gaussian, 8 years), where known."""
    features: dict[str, np.ndarray] = {}
    if table is None:
        return features
    if "genres" in table:
        flags = genre_flags(table).to_numpy(np.float64)
        if flags.size and flags.any():
            features["genres"] = flags / np.sqrt(np.maximum(flags.sum(axis=1, keepdims=True), 1.0))
    if "year" in table:
        years = pd.to_numeric(table["year"], errors="coerce").to_numpy(np.float64)
        if np.unique(years[np.isfinite(years)]).size > 1:
            features["year"] = radial_features(years, YEAR_WIDTH)
    return features


def user_side_features(table: pd.DataFrame | None) -> dict[str, np.ndarray]:
    """Kernels "age" (Gaussian, 10 years) and "group" (same gender, same occupation)."""
    features: dict[str, np.ndarray] = {}
    if table is None:
        return features
    if "age" in table:
        ages = pd.to_numeric(table["age"], errors="coerce").to_numpy(np.float64)
        if np.unique(ages[np.isfinite(ages)]).size > 1:
            features["age"] = radial_features(ages, AGE_WIDTH)
    groups = [
        pd.get_dummies(table[column]).to_numpy(np.float64)
        for column in ("gender", "occupation")
        if column in table
    ]
    if groups and sum(group.shape[1] for group in groups):
        features["group"] = np.hstack(groups) / np.sqrt(len(groups))
    return features
