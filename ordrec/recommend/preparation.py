"""From ratings to the ingredients of the joint model: centring, Grams, loadings, features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ordrec.features.matrix import damped_biases
from ordrec.ratings import Ratings
from ordrec.recommend.gram import Side, build_side
from ordrec.recommend.joint import JointData
from ordrec.recommend.loadings import cross_fitted_loadings
from ordrec.recommend.products import Products, implicit_features
from ordrec.recommend.side_data import item_side_features, user_side_features

__all__ = ["Preparation", "Units", "prepare"]

TYPICAL_SPREAD = 1.126  # of 5-star ratings, in whose units all default weights are


@dataclass(frozen=True)
class Units:
    """Ratings are centred and scaled to the spread that the default weights expect."""

    mean: float
    scale: float

    @classmethod
    def of(cls, values: np.ndarray, step: float) -> Units:
        """From training ratings; ``step`` stands in where all of them are equal."""
        spread = float(values.std())
        return cls(float(values.mean()), TYPICAL_SPREAD / (spread if spread > 0 else step))

    def inward(self, values: np.ndarray) -> np.ndarray:
        """Ratings to scores."""
        return (values - self.mean) * self.scale

    def outward(self, scores: np.ndarray) -> np.ndarray:
        """Scores to ratings."""
        return scores / self.scale + self.mean


@dataclass(frozen=True)
class Preparation:
    """Sizes of the ingredients that are not weights."""

    rank: int = 8
    n_folds: int = 4
    n_rounds: int = 10
    ridge: float = 25.0
    bias_damping: float = 5.0
    item_rank: int = 40
    user_rank: int = 128
    products: bool = True
    two_sided: bool = True
    use_time: bool = True
    use_side: bool = True


def prepare(
    ratings: Ratings, units: Units, how: Preparation, seed: int, n_jobs: int = 1
) -> tuple[JointData, list[str], list[str]]:
    """Ingredients, and the names of the side kernels of items and of users."""
    rng = np.random.default_rng(seed)
    order = np.argsort(ratings.users, kind="stable")
    users = ratings.users[order].astype(np.int64)
    items = ratings.items[order].astype(np.int64)
    y = units.inward(ratings.values[order])
    time = np.zeros(y.size)
    if how.use_time and ratings.timestamps is not None:
        time = ratings.timestamps[order].astype(np.float64)
    bias = damped_biases(
        users, items, y, ratings.n_users, ratings.n_items,
        user_shrinkage=how.bias_damping, item_shrinkage=how.bias_damping,
    )  # fmt: skip
    item_features = item_side_features(ratings.item_table if how.use_side else None)
    user_features = user_side_features(ratings.user_table if how.use_side else None)
    centred = y - bias.mean
    rest = centred - bias.user[users] - bias.item[items]
    by_item = np.argsort(items, kind="stable")

    def side(
        owner: np.ndarray, entry: np.ndarray, x: np.ndarray, rest: np.ndarray, time: np.ndarray,
        shape: tuple[int, int], features: list[np.ndarray],
    ) -> Side:  # fmt: skip
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=shape[0]))])
        fold, loadings = cross_fitted_loadings(
            start, entry, rest, shape[1], rank=how.rank, n_folds=how.n_folds,
            n_rounds=how.n_rounds, ridge=how.ridge, rng=rng, n_jobs=n_jobs,
        )  # fmt: skip
        return build_side(
            start.astype(np.int64), entry, x, time, shape[1], features, fold, loadings, n_jobs
        )

    item_side = side(
        users, items, centred - bias.user[users], rest, time,
        (ratings.n_users, ratings.n_items), list(item_features.values()),
    )  # fmt: skip
    j = by_item
    user_side = side(
        items[j], users[j], (centred - bias.item[items])[j], rest[j], np.zeros(y.size),
        (ratings.n_items, ratings.n_users), list(user_features.values()),
    )  # fmt: skip
    products = _products(
        ratings, users, items, item_side.start, item_features, user_features, how, rng
    )
    popularity = _popularity(ratings.item_counts), _popularity(ratings.user_counts)
    data = JointData(users, items, y, item_side, user_side, products, by_item, popularity)
    return data, list(item_features), list(user_features)


def _products(
    ratings: Ratings,
    users: np.ndarray,
    items: np.ndarray,
    start: np.ndarray,
    item_features: dict[str, np.ndarray],
    user_features: dict[str, np.ndarray],
    how: Preparation,
    rng: np.random.Generator,
) -> Products:
    shape = (ratings.n_users, ratings.n_items)
    seen = sparse.csr_array((np.ones(users.size), (users, items)), shape=shape)
    centre, spread = _popularity(ratings.item_counts)
    log_count = (np.log1p(ratings.item_counts) - centre) / spread
    popularity = np.column_stack([log_count, log_count**2 - 1.0]) / 2.0
    psi = {
        "ones": np.ones((ratings.n_users, 1)),
        "implicit": implicit_features(seen, 2.0, how.user_rank, rng),
        **user_features,
    }
    phi = {
        "ones": np.ones((ratings.n_items, 1)),
        "implicit": implicit_features(sparse.csr_array(seen.T), 2.0, how.item_rank, rng),
        "popularity": popularity,
        **item_features,
    }
    return Products(
        *(np.hstack(list(group.values())).astype(np.float32) for group in (psi, phi)),
        _slices(psi), _slices(phi), start, items,
    )  # fmt: skip


def _slices(groups: dict[str, np.ndarray]) -> dict[str, slice]:
    edges = np.cumsum([0, *(rows.shape[1] for rows in groups.values())]).tolist()
    return {name: slice(a, b) for name, a, b in zip(groups, edges[:-1], edges[1:], strict=True)}


def _popularity(counts: np.ndarray) -> np.ndarray:
    """Centre and spread of ``log(1 + n)`` over those with a rating."""
    logs = np.log1p(counts[counts > 0])
    return np.array([logs.mean(), logs.std() or 1.0])
