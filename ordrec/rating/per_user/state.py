"""A `PerUserPredictor` as arrays and metadata of a model file, and back.

A file holds the training ratings, from which the items' kernel is rebuilt, the weights of its parts
where it is a sum, and for each user's model the coefficients over the user's items and the
thresholds. A solver with one kernel expansion needs no more to predict; the diagnostics of its fit
(objective, gap) are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ordrec import ordinal
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.kernels import Precomputed
from ordrec.ordinal.files.parameters import plain_of, value_of
from ordrec.ordinal.thresholds.link import OrdinalLink
from ordrec.rating.baselines.bias import BiasModel
from ordrec.rating.per_user.pooled import PARTS, PooledSource
from ordrec.storage import claim_memory, take, take_starts

if TYPE_CHECKING:
    from ordrec.rating.per_user.model import PerUserPredictor

__all__ = ["restore_per_user", "restored_solver", "state_of_per_user"]

# parameters that files of version 0.1 do not have
SINCE_02 = ("n_landmarks", "random_state", "scale", "class_weight", "verbose")
SOLVERS = ("SVORIM", "SVOREX", "SVORSLA", "OrdinalLogistic")
BYTES_PER_PAIR = 32.0  # of items: the moments of the Pearson kernel
MOST_KERNEL_BYTES = float(1 << 30)  # from which on `ItemKernel` stores no pairs
# set by the PerUserPredictor, equal for all users; or how it was fitted, not what
INHERITED = ("classes", "kernel", "verbose")


def state_of_per_user(
    model: PerUserPredictor, arrays: dict[str, np.ndarray], metadata: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and metadata of a file, from those of the ids and parameters."""
    solver = _storable_solver(model)
    ratings, users = model._ratings, list(model.models_)
    arrays |= {
        "ratings.users": ratings.users,
        "ratings.items": ratings.items,
        "ratings.levels": ratings.levels,
    }
    if ratings.binned_values is not None:
        arrays["ratings.values"] = ratings.binned_values
    bias, of_bias = model._bias.to_state()
    arrays |= {f"bias.{name}": bias[name] for name in ("user_bias", "item_bias")}
    fitted = [model.models_[user] for user in users]
    sizes = [each.dual_coef_.size for each in fitted]
    n_thresholds = model.scale_.n_ranks - 1
    arrays |= {
        "models.users": np.array(users, dtype=np.int64),
        "models.start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "models.support": _joined([each.support_ for each in fitted], np.int64),
        "models.coef": _joined([each.dual_coef_ for each in fitted], np.float64),
        "models.thresholds": _joined([each.thresholds_ for each in fitted], np.float64).reshape(
            -1, n_thresholds
        ),
    }
    if isinstance(model.source_, PooledSource):
        arrays["kernel.weights"] = model.source_.weights
    links = [each.link_ for each in fitted if hasattr(each, "link_")]
    if links:
        arrays |= {
            "links.thresholds": np.stack([link.thresholds for link in links]),
            "links.scale": np.array([link.scale for link in links]),
        }
    parameters = {
        name: value.tolist() if isinstance(value, np.ndarray) else plain_of(value, name)
        for name, value in solver.get_params(deep=False).items()
        if name not in INHERITED
    }
    metadata["parameters"]["solver"] = {"name": type(solver).__name__, "parameters": parameters}
    metadata["parameters"]["grid"] = None
    return arrays, metadata | {"bias": of_bias}


def restore_per_user(
    model: PerUserPredictor, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> None:
    """Restore everything that was fitted in a model that has its ids and parameters."""
    n_users, n_items, n_ranks = len(model.user_ids_), len(model.item_ids_), model.scale_.n_ranks
    users = take(arrays, "ratings.users", np.int32, (None,), low=0, high=n_users - 1)
    items = take(arrays, "ratings.items", np.int32, users.shape, low=0, high=n_items - 1)
    levels = take(arrays, "ratings.levels", np.int16, users.shape, low=0, high=n_ranks - 1)
    pairs = users.astype(np.int64) * n_items + items
    if users.size == 0 or np.unique(pairs).size < pairs.size:
        raise ModelFileError("it has no ratings, or two for the same pair")
    values = None
    if model.scale_.edges is not None:
        low, high = model.scale_.low, model.scale_.high
        values = take(arrays, "ratings.values", np.float64, users.shape, low=low, high=high)
    ratings = Ratings(
        users, items, levels,
        scale=model.scale_, user_ids=model.user_ids_, item_ids=model.item_ids_,
        binned_values=values,
    )  # fmt: skip
    biases = {name: arrays[f"bias.{name}"] for name in ("user_bias", "item_bias")}
    ids = {
        name: array for name, array in arrays.items() if name.startswith(("user_ids", "item_ids"))
    }
    bias = BiasModel.from_state(ids | biases, metadata["bias"])
    claim_memory(8.0 * n_users * n_ranks, f"the counts of {n_ranks} ratings of {n_users} users")
    claim_memory(min(BYTES_PER_PAIR * n_items**2 / 2, MOST_KERNEL_BYTES), "the items' kernel")
    model._describe(ratings, bias)
    if isinstance(model.source_, PooledSource):
        weights = take(arrays, "kernel.weights", np.float64, (len(PARTS),), low=0.0)
        model.source_.weights = weights
        model.kernel_weights_ = dict(zip(PARTS, weights.tolist(), strict=True))
    coef = take(arrays, "models.coef", np.float64, (None,))
    codes = take(arrays, "models.users", np.int64, (None,), low=0, high=n_users - 1)
    start = take_starts(arrays, "models.start", codes.size, coef.size)
    support = take(arrays, "models.support", np.int64, coef.shape, low=0)
    shape = (codes.size, n_ranks - 1)
    thresholds = take(arrays, "models.thresholds", np.float64, shape)
    links = None
    if codes.size and getattr(model._solver(), "probability", False):
        links = (
            take(arrays, "links.thresholds", np.float64, shape),
            take(arrays, "links.scale", np.float64, (codes.size,), low=1e-300),
        )
    model._items, model.models_ = {}, {}
    for k, user in enumerate(codes.tolist()):
        own = slice(start[k], start[k + 1])
        rated = ratings.items[ratings.rows_of_user(user)].astype(np.int64)
        if user in model.models_ or (support[own] >= rated.size).any():
            raise ModelFileError("array 'models.support' points beyond a user's ratings")
        fitted = model._solver().set_params(classes=np.arange(n_ranks))
        fitted.classes_, fitted.n_features_in_ = np.arange(n_ranks), rated.size
        fitted.kernel_, fitted._rows, fitted._inputs = Precomputed(), support[own], None
        fitted.scaling_ = None
        fitted.support_, fitted.dual_coef_ = support[own], coef[own]
        fitted.thresholds_ = thresholds[k]
        if links is not None:
            fitted.link_ = OrdinalLink(links[0][k], float(links[1][k]))
        model._items[user], model.models_[user] = rated, fitted


def restored_solver(state: Any) -> Any:
    """Return the solver in a file's metadata, with its parameters checked."""
    name, parameters = state["name"], state["parameters"]
    if name not in SOLVERS:
        raise ModelFileError(f"{str(name)[:50]!r} is not one of {', '.join(SOLVERS)}")
    solver = getattr(ordinal, name)(kernel="precomputed")
    known = set(solver.get_params(deep=False)) - set(INHERITED)
    if not known - set(SINCE_02) <= set(parameters) <= known:
        raise ModelFileError(f"the parameters are not those of {name}")
    solver.set_params(**{key: value_of(value) for key, value in parameters.items()})
    solver._check_parameters()
    return solver


def _storable_solver(model: PerUserPredictor) -> Any:
    """Return the solver; raises an error if its models cannot be stored as coefficients."""
    solver = model._solver().set_params(**getattr(model, "setting_", {}))
    name = type(solver).__name__
    if name not in SOLVERS or type(solver) is not getattr(ordinal, name):
        raise ArgumentError(
            f"a PerUserPredictor of {name} models cannot be saved: use {', '.join(SOLVERS)}, or "
            "keep the ratings and fit again"
        )
    for parameter, value, wanted in (
        ("features", model.features, "mean"),
        ("kernel", model.kernel, "pooled"),
    ):
        if not isinstance(value, str):
            raise ArgumentError(
                f"a PerUserPredictor with {parameter}={type(value).__name__} cannot be saved: use "
                f'{parameter}="{wanted}", or keep the ratings and fit again'
            )
    return solver


def _joined(parts: list[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)
