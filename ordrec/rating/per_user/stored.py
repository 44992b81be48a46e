"""What a file holds of a `PerUserPredictor`.

These are the training ratings, from which the items' kernel is made again, the weights of its parts
where it is a sum, and for each user's model the coefficients over the user's items and the
thresholds. An estimator with one kernel expansion needs no more to predict; the diagnostics of its
fit (objective, gap) are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ordrec import ordinal
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.kernels import Precomputed
from ordrec.ordinal.stored import KERNELS
from ordrec.ordinal.thresholds.link import OrdinalLink
from ordrec.rating.per_user.items import ItemSource
from ordrec.rating.per_user.pooled import PARTS, PooledSource
from ordrec.storage.limits import claim_memory
from ordrec.storage.parameters import plain_of, value_of
from ordrec.storage.schema import Array, Field, Optional, Reader, Starts, Writer

if TYPE_CHECKING:
    from ordrec.rating.per_user.model import PerUserPredictor

__all__ = ["StoredEstimator", "StoredModels", "StoredRatings", "StoredSource", "storable_estimator"]

ESTIMATORS = ("SVORIM", "SVOREX", "SVORSLA", "OrdinalLogistic")
BYTES_PER_PAIR = 32.0  # of items: the moments of the Pearson kernel
MOST_KERNEL_BYTES = float(1 << 30)  # from which on `ItemKernel` stores no pairs
# set by the PerUserPredictor, equal for all users; or how it was fitted, not what
INHERITED = ("classes", "kernel", "verbose")


def storable_estimator(model: PerUserPredictor) -> Any:
    """Return the estimator; raises an error if its models cannot be stored as coefficients."""
    estimator = model._new_estimator().set_params(**getattr(model, "setting_", {}))
    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not getattr(ordinal, name):
        raise ArgumentError(
            f"a PerUserPredictor of {name} models cannot be saved: use {', '.join(ESTIMATORS)}, or "
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
    return estimator


class StoredEstimator(Field):
    """The estimator of all users, by name and parameters."""

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write what it is called, and its parameters."""
        kind = type(value).__name__
        parameters = {
            key: plain_of(each, f"{kind}({key}=...)", KERNELS)
            for key, each in value.get_params(deep=False).items()
            if key not in INHERITED
        }
        file.values[name] = {"name": kind, "parameters": parameters}

    def read(self, file: Reader, name: str) -> Any:
        """Return the estimator, with its parameters checked."""
        stored = file.value(name)
        kind, parameters = stored["name"], stored["parameters"]
        if kind not in ESTIMATORS:
            raise ModelFileError(f"{str(kind)[:50]!r} is not one of {', '.join(ESTIMATORS)}")
        estimator = getattr(ordinal, kind)(kernel="precomputed")
        if set(estimator.get_params(deep=False)) - set(INHERITED) != set(parameters):
            raise ModelFileError(f"the parameters are not those of {kind}")
        estimator.set_params(**{key: value_of(each, KERNELS) for key, each in parameters.items()})
        estimator._check_parameters()
        return estimator


@dataclass(frozen=True)
class StoredRatings:
    """The training ratings, without times and weights."""

    stored: ClassVar = {
        "users": Array("ratings", dtype=np.int32, codes="users"),
        "items": Array("ratings", dtype=np.int32, codes="items"),
        "levels": Array("ratings", dtype=np.int16, codes="ranks"),
        "values": Optional(Array("ratings")),
    }

    users: np.ndarray
    items: np.ndarray
    levels: np.ndarray
    values: np.ndarray | None

    @classmethod
    def of(cls, ratings: Ratings) -> StoredRatings:
        """From the ratings."""
        return cls(ratings.users, ratings.items, ratings.levels, ratings.binned_values)

    def restored(self, model: PerUserPredictor) -> Ratings:
        """The ratings, on the scale of the model."""
        scale = model.scale_
        pairs = self.users.astype(np.int64) * len(model.item_ids_) + self.items
        if self.users.size == 0 or np.unique(pairs).size < pairs.size:
            raise ModelFileError("it has no ratings, or two for the same pair")
        if (self.values is None) != (scale.edges is None) or (
            self.values is not None
            and (self.values.min() < scale.low or self.values.max() > scale.high)
        ):
            raise ModelFileError("the values of the ratings are not in the bins of the scale")
        return Ratings(
            self.users, self.items, self.levels,
            scale=scale, user_ids=model.user_ids_, item_ids=model.item_ids_,
            binned_values=self.values,
        )  # fmt: skip


@dataclass(frozen=True)
class StoredSource:
    """The weights of the parts of the items' kernel, where it is a sum."""

    stored: ClassVar = {"weights": Optional(Array(len(PARTS), low=0.0))}

    weights: np.ndarray | None

    @classmethod
    def of(cls, source: ItemSource) -> StoredSource:
        """From what the items' kernels come from."""
        return cls(source.weights if isinstance(source, PooledSource) else None)

    def restored(self, model: PerUserPredictor) -> ItemSource:
        """The kernel, made of the training ratings again."""
        n_users, n_items = len(model.user_ids_), len(model.item_ids_)
        n_ranks = model.scale_.n_ranks
        claim_memory(8.0 * n_users * n_ranks, f"the counts of {n_ranks} ratings of {n_users} users")
        claim_memory(min(BYTES_PER_PAIR * n_items**2 / 2, MOST_KERNEL_BYTES), "the items' kernel")
        model._describe(model._ratings, model._bias)
        source: Any = model.source_
        if isinstance(source, PooledSource) != (self.weights is not None):
            raise ModelFileError("the weights do not match the kernel")
        if self.weights is not None:
            source.weights = self.weights
            model.kernel_weights_ = dict(zip(PARTS, self.weights.tolist(), strict=True))
        return source


@dataclass(frozen=True)
class StoredModels:
    """The models of all users: coefficients over their items, thresholds, and perhaps links."""

    stored: ClassVar = {
        "users": Array("models", dtype=np.int64, codes="users"),
        "start": Starts("models", "coefficients"),
        "support": Array("coefficients", dtype=np.int64, low=0),
        "coef": Array("coefficients"),
        "thresholds": Array("models", None),
        "link_thresholds": Array("links", None),
        "link_scale": Array("links", low=1e-300),
    }

    users: np.ndarray
    start: np.ndarray
    support: np.ndarray
    coef: np.ndarray
    thresholds: np.ndarray
    link_thresholds: np.ndarray
    link_scale: np.ndarray

    @classmethod
    def of(cls, models: Mapping[int, Any]) -> StoredModels:
        """From the models by user code."""
        fitted = list(models.values())
        links = [each.link_ for each in fitted if hasattr(each, "link_")]
        sizes = [each.dual_coef_.size for each in fitted]
        return cls(
            np.array(list(models), dtype=np.int64),
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *(each.support_ for each in fitted)]),
            np.concatenate([np.zeros(0), *(each.dual_coef_ for each in fitted)]),
            _stacked([each.thresholds_ for each in fitted]),
            _stacked([link.thresholds for link in links]),
            np.array([link.scale for link in links]),
        )

    def restored(self, model: PerUserPredictor) -> dict[int, Any]:
        """The models by user code."""
        ratings, n_ranks = model._ratings, model.scale_.n_ranks
        n_models, n_links = self.users.size, self.link_scale.size
        linked = getattr(model._new_estimator(), "probability", False)
        for thresholds in (self.thresholds, self.link_thresholds):
            if len(thresholds) and thresholds.shape[1] != n_ranks - 1:
                raise ModelFileError("the thresholds of users are not those of the scale")
        if n_links != (n_models if linked else 0):
            raise ModelFileError("there is not one link for each user's model")
        model._items, models = {}, {}
        for k, user in enumerate(self.users.tolist()):
            own = slice(self.start[k], self.start[k + 1])
            rated = ratings.items[ratings.rows_of_user(user)].astype(np.int64)
            if user in models or (self.support[own] >= rated.size).any():
                raise ModelFileError("array 'models.support' points beyond a user's ratings")
            fitted = model._new_estimator().set_params(classes=np.arange(n_ranks))
            fitted.classes_, fitted.n_features_in_ = np.arange(n_ranks), rated.size
            fitted.kernel_, fitted._rows, fitted._inputs = Precomputed(), self.support[own], None
            fitted.scaling_ = None
            fitted.support_, fitted.dual_coef_ = self.support[own], self.coef[own]
            fitted.thresholds_ = self.thresholds[k]
            if linked:
                fitted.link_ = OrdinalLink(self.link_thresholds[k], float(self.link_scale[k]))
            model._items[user], models[user] = rated, fitted
        return models


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    return np.stack(rows) if rows else np.zeros((0, 0))
