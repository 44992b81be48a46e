"""The Gaussian process of a `ProcessPredictor` as arrays and metadata of a model file, and back.

A file holds the ratings, the loadings, the features and the dual coefficients. The pair sums,
which would take most of the space, are recomputed from these, with the same numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.features.matrix import Biases
from ordrec.kernels.items.moments import n_pairs
from ordrec.rating.process.kernel.pair_sums import N_SUMS, OwnerSide, build_side, empty_side
from ordrec.rating.process.kernel.shared_features import SharedFeatures
from ordrec.rating.process.kernel.weights import TIME_SCALES, Layout, Weights
from ordrec.rating.process.side_features import current_name
from ordrec.rating.process.solve.covariance import Covariance, JointData
from ordrec.rating.process.solve.fitting import Process
from ordrec.rating.thresholds.state import number
from ordrec.storage import claim_memory, take, take_rows

__all__ = ["process_from_arrays", "process_to_arrays"]

Arrays = Mapping[str, np.ndarray]
TINY = float(np.finfo(np.float64).tiny)
# Magnitudes in units of `Units`, in which ratings are standard scores: far beyond what a fit gives,
# and small enough that covariances are finite in single precision.
MOST_SCORE, MOST_WEIGHT, MOST_COEFFICIENT = 1e6, 1e6, 1e9


def process_to_arrays(process: Process) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata of a fitted process."""
    data, weights = process.data, process.K.weights
    products, bias = data.products, data.bias
    arrays = {
        "ratings.start": data.item_side.start,
        "ratings.items": data.items,
        "ratings.levels": data.levels,
        "ratings.times": data.item_side.time,
        "ratings.y": data.y,
        "bias.user": bias.user,
        "bias.item": bias.item,
        "popularity": np.stack(data.popularity),
        "products.psi": products.psi,
        "products.phi": products.phi,
        "products.projection": products.projection,
        "weights": weights.values,
        "process.a": process.a,
        "process.left_out": process.left_out,
        "process.noise": process.noise,
    }
    if process.undated is not None:
        arrays["process.undated"] = process.undated
    for name, side in (("item_side", data.item_side), ("user_side", data.user_side)):
        arrays |= {
            f"{name}.x": side.x,
            f"{name}.fold": side.fold,
            f"{name}.loadings": side.loadings,
        }
    groups = {"user_groups": products.user_groups, "item_groups": products.item_groups}
    return arrays, {
        "two_sided": data.two_sided,
        "item_kernels": list(data.item_kernels),
        "user_kernels": list(data.user_kernels),
        "bias": {"mean": bias.mean, "n_iter": bias.n_iter, "change": bias.change,
                 "converged": bias.converged},
        "scales": list(weights.layout.scales),
        "chosen": sorted(weights.layout.chosen),
        "n_iter": process.n_iter,
        **{name: _widths(slices) for name, slices in groups.items()},
    }  # fmt: skip


def process_from_arrays(
    arrays: Arrays, state: Mapping[str, Any], sizes: tuple[int, int, int], n_jobs: int
) -> Process:
    """The process of a file; ``sizes`` are those of ranks, users and items (with the unknown)."""
    data = _data(arrays, state, sizes, n_jobs)
    products = tuple(f"{a}*{b}" for a, b in data.products.names)
    scales, chosen = _texts(state["scales"]), frozenset(_components(state["chosen"]))
    layout = Layout(data.item_kernels, data.user_kernels, scales, products, chosen)
    shape = (len(layout.names),)
    values = take(arrays, "weights", np.float64, shape, low=0, high=MOST_WEIGHT)
    smoothing = [name.startswith("smooth.") for name in layout.names]
    known = set(scales) <= set(TIME_SCALES) and chosen <= set(layout.names)
    if not known or (values[smoothing] <= 0).any():
        raise ModelFileError("the weights do not match the components")
    n = data.y.size
    return Process(
        Covariance(data, Weights(layout, values), n_jobs),
        _within(MOST_COEFFICIENT, arrays, "process.a", (n,)),
        _within(MOST_COEFFICIENT, arrays, "process.left_out", (n,)),
        take(arrays, "process.noise", np.float64, (n,), low=TINY),
        int(state["n_iter"]),
        _within(MOST_COEFFICIENT, arrays, "process.undated", (n,)) if scales else None,
    )


def _data(
    arrays: Arrays, state: Mapping[str, Any], sizes: tuple[int, int, int], n_jobs: int
) -> JointData:
    n_ranks, n_users, n_items = sizes
    start, items = take_rows(arrays, "ratings.start", "ratings.items", n_users, n_items - 1)
    y = _within(MOST_SCORE, arrays, "ratings.y", items.shape)
    levels = take(arrays, "ratings.levels", np.int64, y.shape, low=0, high=n_ranks - 1)
    if y.size == 0 or start[-1] != start[-2]:
        raise ModelFileError("array 'ratings.start' has ratings of the unknown user, or none")
    users = np.repeat(np.arange(n_users), np.diff(start))
    two_sided = state["two_sided"]
    if not isinstance(two_sided, bool):
        raise ModelFileError(f"two_sided is {str(two_sided)[:50]!r}")
    products = _products(arrays, state, start, items, n_users, n_items)
    kernels = _components(state["item_kernels"]), _components(state["user_kernels"])
    if not two_sided and (kernels[1] or products.user_groups):
        raise ModelFileError("a one-sided process cannot have features of users")
    times = take(arrays, "ratings.times", np.float64, y.shape)
    features = [products.phi[:, products.item_groups[name]] for name in kernels[0]]
    item_side = _side(arrays, "item_side", start, items, times, n_items, features, n_jobs)
    if two_sided:
        by_item = np.argsort(items, kind="stable")
        owner = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))])
        features = [products.psi[:, products.user_groups[name]] for name in kernels[1]]
        user_side = _side(
            arrays, "user_side", owner, users[by_item], np.zeros(y.size), n_users, features, n_jobs
        )
    else:
        by_item, user_side = np.zeros(0, dtype=np.int64), empty_side(n_items)
    popularity = take(arrays, "popularity", np.float64, (2, 2), low=1e-9, high=100)
    bias = state["bias"]
    return JointData(
        users, items, levels, y, item_side, user_side, products, by_item,
        (popularity[0], popularity[1]),
        Biases(
            number(bias["mean"]),
            _within(MOST_SCORE, arrays, "bias.user", (n_users,)),
            _within(MOST_SCORE, arrays, "bias.item", (n_items,)),
            int(bias["n_iter"]), number(bias["change"]), bool(bias["converged"]),
        ),
        kernels[0], kernels[1], two_sided,
    )  # fmt: skip


def _side(
    arrays: Arrays,
    name: str,
    start: np.ndarray,
    entry: np.ndarray,
    times: np.ndarray,
    n_entries: int,
    features: list[np.ndarray],
    n_jobs: int,
) -> OwnerSide:
    entries = name.removesuffix("_side") + "s"
    loadings = _within(MOST_SCORE, arrays, f"{name}.loadings", (None, n_entries, None))
    last = loadings.shape[0] - 1
    fold = take(arrays, f"{name}.fold", np.int64, (start.size - 1,), low=0, high=last)
    x = _within(MOST_SCORE, arrays, f"{name}.x", entry.shape)
    slots = N_SUMS + len(features)
    claim_memory(4.0 * n_pairs(n_entries) * slots, f"the sums over pairs of {n_entries} {entries}")
    return build_side(start, entry, x, times, n_entries, features, fold, loadings, n_jobs)


def _products(
    arrays: Arrays,
    state: Mapping[str, Any],
    start: np.ndarray,
    items: np.ndarray,
    n_users: int,
    n_items: int,
) -> SharedFeatures:
    psi = _within(MOST_SCORE, arrays, "products.psi", (n_users, None), np.float32)
    phi = _within(MOST_SCORE, arrays, "products.phi", (n_items, None), np.float32)
    user_groups = _slices(state["user_groups"], psi.shape[1])
    item_groups = _slices(state["item_groups"], phi.shape[1])
    implicit = user_groups.get("implicit", slice(0, 0))
    rank = implicit.stop - implicit.start
    projection = _within(MOST_SCORE, arrays, "products.projection", (n_items, rank))
    return SharedFeatures(psi, phi, user_groups, item_groups, start, items, projection)


def _within(
    most: float, arrays: Arrays, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64
) -> np.ndarray:
    """An array of floats of at most this magnitude."""
    return take(arrays, name, dtype, shape, low=-most, high=most)


def _widths(groups: Mapping[str, slice]) -> list[list[Any]]:
    """Names of the groups of columns, in order, with the number of columns of each."""
    return [[name, columns.stop - columns.start] for name, columns in groups.items()]


def _slices(widths: Any, n_columns: int) -> dict[str, slice]:
    names = _components([name for name, _ in widths])
    counts = [int(width) for _, width in widths]
    if min(counts, default=0) < 0 or sum(counts) != n_columns or len(set(names)) < len(names):
        raise ModelFileError(f"the groups do not add up to {n_columns} columns")
    edges = itertools.pairwise(itertools.accumulate(counts, initial=0))
    return {name: slice(a, b) for name, (a, b) in zip(names, edges, strict=True)}


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ModelFileError(f"{str(values)[:50]!r} is not a list of names")
    return tuple(values)


def _components(values: Any) -> tuple[str, ...]:
    """Names of components, kernels or groups, in the words of this version."""
    return tuple(current_name(name) for name in _texts(values))
