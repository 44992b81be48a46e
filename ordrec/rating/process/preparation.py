"""From ratings to the ingredients of the joint model: centring, pair sums, loadings, features.

The process has two side kernels for users and two for items: "labels" is a weighted mean of the
kernels of all columns with words (categories, labels, text), "numbers" of those with numbers. The
weights say how much a column has to do with the ratings, and a column that has nothing to do with
them is ignored. A missing value becomes a row of zeros, for which the kernel is 0.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.errors import DataError, callers_level
from ordrec.features.matrix import Biases, damped_biases
from ordrec.features.side.encoder import SideEncoder, side_encoders
from ordrec.features.side.weights import block_weights
from ordrec.kernels.items.moments import expected_bytes
from ordrec.rating.process.kernel.loadings import cross_fitted_loadings
from ordrec.rating.process.kernel.pair_sums import N_SUMS, build_side, empty_side, owner_centred
from ordrec.rating.process.kernel.shared_features import (
    USER_SMOOTHING,
    SharedFeatures,
    implicit_features,
)
from ordrec.rating.process.solve.covariance import LARGEST_INVERTED, JointData
from ordrec.rating.process.solve.owner_blocks import AT_ONCE
from ordrec.rating.units import Units
from ordrec.storage.arrays import as_in_half, round_to_bytes

__all__ = [
    "Preparation",
    "SideFeatures",
    "memory_needed",
    "memory_parts",
    "prepare",
    "within_memory",
]

# bytes in the estimate of memory, fitted to what pipelines/speed/bench_memory.py measures
BLOCK_BYTES = 2  # of a number in a block
INVERTED_BYTES = 8  # of one while it is inverted
FACTORISED_BYTES = 4  # of one while the diagonal of its inverse is computed
LOADING_BYTES = 8
FEATURE_BYTES = 12  # of a shared feature, while they are made
RATING_BYTES = 160  # of a rating in its tables
VECTOR_BYTES = 500  # of a rating in the vectors of conjugate gradients
ALONE_RATING_BYTES, ALONE_ITEM_BYTES = 85, 3000  # beside these, where one side is solved alone
ITEM_SMOOTHING = 0.05  # of the scale of an item's implicit features
SIDE_DAMPING = 5.0  # pseudo-counts that pull the biases to 0 where side columns are weighed
LEAST_WEIGHT = 0.002  # of side columns, in all, below which their kernel becomes smaller


@dataclass(frozen=True)
class SideFeatures:
    """Features of all users and items, by the name of the kernel.

    Attributes
    ----------
    item, user : dict of str to ndarray
        One row per code.
    columns : dict
        For "item" and "user", where there is a table: what each column is used as, or why not.
    """

    item: dict[str, np.ndarray] = field(default_factory=dict)
    user: dict[str, np.ndarray] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, ratings: Ratings, kinds: Mapping[str, str] | None = None) -> SideFeatures:
        """The features of the side tables of ratings, with the declared kinds of some columns."""
        encoders = side_encoders(ratings.user_table, ratings.item_table, kinds)
        if not encoders:
            return cls()
        bias = damped_biases(
            ratings.users, ratings.items, ratings.values, ratings.n_users, ratings.n_items,
            user_damping=SIDE_DAMPING, item_damping=SIDE_DAMPING,
        )  # fmt: skip
        sides = {side: _weighed(ratings, bias, side, encoder) for side, encoder in encoders.items()}
        features = {side: kernels for side, (kernels, _) in sides.items()}
        columns = {side: said for side, (_, said) in sides.items()}
        return cls(features.get("item", {}), features.get("user", {}), columns)


def _weighed(
    ratings: Ratings, bias: Biases, side: str, encoder: SideEncoder
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Kernels of one side as features, and what its columns are used as."""
    table = ratings.item_table if side == "item" else ratings.user_table
    blocks = {} if table is None else encoder.blocks(table)
    if not blocks:
        return {}, encoder.columns_
    rest = ratings.values - bias.predict(ratings.users, ratings.items)
    codes = (ratings.users, ratings.items) if side == "item" else (ratings.items, ratings.users)
    own = bias.item if side == "item" else bias.user
    weights = block_weights(*codes, rest, own, SIDE_DAMPING, list(blocks.values()))
    by_name = dict(zip(blocks, weights.tolist(), strict=True))
    kernels = {}
    for kernel, of_numbers in (("labels", False), ("numbers", True)):
        names = [name for name in blocks if (name in encoder.numeric) == of_numbers]
        total = max(sum(by_name[name] for name in names), LEAST_WEIGHT)
        rows = [np.sqrt(by_name[name] / total) * blocks[name] for name in names if by_name[name]]
        if rows:
            kernels[kernel] = np.hstack(rows)
    idle = [column for name in blocks if not by_name[name] for column in encoder.columns_of(name)]
    said = dict.fromkeys(idle, "ignored: nothing to do with the ratings")
    return kernels, encoder.columns_ | said


@dataclass(frozen=True)
class Preparation:
    """Which ingredients are prepared, and their sizes.

    Parameters
    ----------
    two_sided : bool
        Whether there are user kernels and products; without them the prior mean of an item is
        the damped mean of the other users' ratings.
    use_time : bool
        Whether times are used.
    n_factors, n_folds, n_rounds, ridge : numbers
        Parameters of the low-rank loadings.
    bias_damping : float
        Pseudo-counts that pull the biases to 0.
    item_rank, user_rank : int
        Columns of the implicit features in the products.
    components : collection of str, optional
        Names of the kernel components to use; all that the ratings allow when omitted.
    """

    two_sided: bool = True
    use_time: bool = True
    n_factors: int = 8
    n_folds: int = 4
    n_rounds: int = 10
    ridge: float = 25.0
    bias_damping: float = 5.0
    item_rank: int = 80
    user_rank: int = 300
    components: Collection[str] | None = None


def memory_needed(ratings: Ratings, side: SideFeatures, config: Preparation) -> float:
    """Estimate the gigabytes that a fit takes at most."""
    return sum(memory_parts(ratings, side, config))


def memory_parts(ratings: Ratings, side: SideFeatures, config: Preparation) -> tuple[float, float]:
    """Estimate the gigabytes of what a model keeps, above all pair sums, and of what solving takes.

    With two sides, solving takes the blocks of users and of items, the inverses of those of users,
    the largest block while it is inverted, and vectors; with one, a few blocks at a time, one of
    them inverted.
    """
    by_user = ratings.user_counts.astype(np.float64)
    by_item = ratings.item_counts.astype(np.float64)
    users, items = ratings.users, ratings.items
    n_users, n_items = ratings.n_users + 1, ratings.n_items + 1
    kept = expected_bytes(users, items, n_users, n_items, N_SUMS + len(side.item))
    kept += LOADING_BYTES * config.n_folds * config.n_factors * n_items
    kept += RATING_BYTES * ratings.n_ratings
    triangle = float(by_user @ (by_user + 1.0)) / 2.0
    if not config.two_sided:
        inverted = float(by_user.max(initial=0.0)) ** 2
        at_once = min(triangle, AT_ONCE) + inverted / 2.0
        working = BLOCK_BYTES * at_once + INVERTED_BYTES * inverted
        working += ALONE_RATING_BYTES * ratings.n_ratings + ALONE_ITEM_BYTES * n_items
        return kept / 1e9, working / 1e9
    kept += expected_bytes(items, users, n_items, n_users, N_SUMS + len(side.user))
    kept += LOADING_BYTES * config.n_folds * config.n_factors * n_users
    kept += FEATURE_BYTES * (config.user_rank * n_users + config.item_rank * n_items)
    parts = np.maximum(np.ceil(by_user / LARGEST_INVERTED), 1.0)
    inverses = float(by_user @ (by_user / parts + 1.0)) / 2.0
    blocks = triangle + inverses + float(by_item @ (by_item + 1.0)) / 2.0
    largest = max(float(by_user.max(initial=0.0)), float(by_item.max(initial=0.0)))
    working = BLOCK_BYTES * blocks + FACTORISED_BYTES * largest**2
    return kept / 1e9, (working + VECTOR_BYTES * ratings.n_ratings) / 1e9


def within_memory(
    ratings: Ratings, side: SideFeatures, config: Preparation, limit: float
) -> Preparation:
    """The configuration itself or, with a warning, a one-sided one if only that fits ``limit``.

    Raises
    ------
    DataError
        If neither fits.
    """
    needed = memory_needed(ratings, side, config)
    if needed <= limit:
        return config
    smaller = replace(config, two_sided=False)
    less = memory_needed(ratings, side, smaller)
    size = f"{ratings.n_users} users x {ratings.n_items} items"
    if less > limit:
        raise DataError(
            f"ProcessPredictor: {size} take {less:.1f} GB or more, and max_memory is {limit:g}: "
            f"raise it, leave out items with few ratings, or use OrdinalFactors"
        )
    warnings.warn(
        f"ProcessPredictor: {size} take {needed:.1f} GB with both sides, and max_memory is "
        f'{limit:g}: fitted as preset="fast", which takes {less:.1f} GB',
        stacklevel=callers_level(),
    )
    return smaller


def prepare(
    ratings: Ratings,
    side: SideFeatures,
    units: Units,
    config: Preparation,
    seed: int,
    n_jobs: int = 1,
) -> JointData:
    """Compute the ingredients of the covariance; here, and only here, ratings are sorted.

    They are in the order of users and, within a user, of items, as pair sums are read in order.
    One additional user and one additional item, without ratings, represent all unknown ones.
    """
    rng = np.random.default_rng(seed)
    order = np.lexsort((ratings.items, ratings.users))
    levels = ratings.levels[order].astype(np.int64)
    users = ratings.users[order].astype(np.int64)
    items = ratings.items[order].astype(np.int64)
    n_users, n_items = ratings.n_users + 1, ratings.n_items + 1
    y = units.inward(ratings.values[order])
    time = np.zeros(y.size)
    if config.use_time and ratings.timestamps is not None:
        time = ratings.timestamps[order].astype(np.float64)
    bias = damped_biases(
        users, items, y, n_users, n_items,
        user_damping=config.bias_damping, item_damping=config.bias_damping,
    )  # fmt: skip
    item_features, user_features = _and_unknown(side.item), _and_unknown(side.user)
    rest = y - bias.predict(users, items)
    loadings = partial(
        cross_fitted_loadings, n_factors=config.n_factors, n_folds=config.n_folds,
        n_rounds=config.n_rounds, ridge=config.ridge, rng=rng, n_jobs=n_jobs,
    )  # fmt: skip
    start = _starts(users, n_users)
    fold, by_fold = loadings(start, items, rest, n_items)
    x = owner_centred(y, bias.mean, bias.user[users])
    features = list(item_features.values())
    item_side = build_side(start, items, x, time, n_items, features, fold, by_fold, n_jobs)
    if config.two_sided:
        by_item = np.argsort(items, kind="stable")
        entry, owner = users[by_item], _starts(items, n_items)
        fold, by_fold = loadings(owner, entry, rest[by_item], n_users)
        x = owner_centred(y, bias.mean, bias.item[items])[by_item]
        features = list(user_features.values())
        user_side = build_side(
            owner, entry, x, np.zeros(y.size), n_users, features, fold, by_fold, n_jobs
        )
        shape = (n_users, n_items)
        products = _products(users, items, shape, item_features, user_features, config, rng)
    else:
        by_item = np.zeros(0, dtype=np.int64)
        user_side, user_features = empty_side(n_items), {}
        products = _no_products((n_users, n_items), item_features, start, items)
    counts = np.bincount(items, minlength=n_items), np.bincount(users, minlength=n_users)
    return JointData(
        users, items, levels, y, item_side, user_side, products, by_item,
        (_popularity(counts[0]), _popularity(counts[1])), bias,
        tuple(item_features), tuple(user_features), config.two_sided,
    )  # fmt: skip


def _and_unknown(features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Features with a last row of zeros, for the unknown user or item, as files have them."""
    return {
        name: as_in_half(np.vstack([rows, np.zeros(rows.shape[1])]))
        for name, rows in features.items()
    }


def _starts(owners: np.ndarray, n_owners: int) -> np.ndarray:
    """Where each owner's ratings begin once they are sorted by owner."""
    counts = np.bincount(owners, minlength=n_owners)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _no_products(
    shape: tuple[int, int],
    item_features: dict[str, np.ndarray],
    start: np.ndarray,
    items: np.ndarray,
) -> SharedFeatures:
    """Features of items alone, which a model file needs; without those of users there is no h."""
    psi, none = np.zeros((shape[0], 0), np.float32), np.zeros((shape[1], 0))
    phi = np.hstack([none, *item_features.values()]).astype(np.float32)
    return SharedFeatures(psi, phi, {}, _slices(item_features), start, items, none)


def _products(
    users: np.ndarray,
    items: np.ndarray,
    shape: tuple[int, int],
    item_features: dict[str, np.ndarray],
    user_features: dict[str, np.ndarray],
    config: Preparation,
    rng: np.random.Generator,
) -> SharedFeatures:
    """Features of users and items for all product components."""
    seen = sparse.csr_array((np.ones(users.size), (users, items)), shape=shape)
    counts = np.bincount(items, minlength=shape[1])
    centre, spread = _popularity(counts)
    log_count = (np.log1p(counts) - centre) / spread
    of_users, projection = implicit_features(
        seen, config.user_rank, rng, smoothing=USER_SMOOTHING, by_activity=False
    )
    of_items, _ = implicit_features(
        sparse.csr_array(seen.T), config.item_rank, rng, smoothing=ITEM_SMOOTHING, by_activity=True
    )
    psi = {"ones": np.ones((shape[0], 1)), "implicit": of_users, **user_features}
    phi = {
        "ones": np.ones((shape[1], 1)),
        "implicit": of_items,
        "popularity": np.column_stack([log_count, log_count**2 - 1.0]) / 2.0,
        **item_features,
    }
    features = [
        as_in_half(np.hstack(list(group.values())).astype(np.float32, order="C"))
        for group in (psi, phi)
    ]
    start = _starts(users, shape[0])
    round_to_bytes(projection)  # which describes new users only
    return SharedFeatures(
        features[0], features[1], _slices(psi), _slices(phi), start, items, projection
    )


def _slices(groups: dict[str, np.ndarray]) -> dict[str, slice]:
    """Columns of each group when the groups are put side by side."""
    edges = np.cumsum([0, *(rows.shape[1] for rows in groups.values())]).tolist()
    spans = itertools.pairwise(edges)
    return {name: slice(a, b) for name, (a, b) in zip(groups, spans, strict=True)}


def _popularity(counts: np.ndarray) -> np.ndarray:
    """Centre and spread of ``log(1 + n)`` over all counts above 0."""
    logs = np.log1p(counts[counts > 0])
    spread = logs.std()
    return np.array([logs.mean(), spread if spread > 1e-9 else 1.0])  # below: rounding alone
