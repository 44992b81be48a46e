"""What a file holds of a `ProcessPredictor`.

Of the process these are the ratings, the loadings, the features and the dual coefficients. The pair
sums, which would take most of the space, and all numbers that follow from the ratings are computed
again, with the same digits; the rest was rounded when it was fitted to what the file holds.
Folded-in users are stored by their ratings and what was solved for; the rest of a `FoldedUser` is
looked up in the fitted model again.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ordrec.errors import ModelFileError
from ordrec.features.matrix import Biases
from ordrec.kernels.items.moments import expected_bytes
from ordrec.models.base import codes_of
from ordrec.rating.process.fit import FittedPredictor
from ordrec.rating.process.fold_in import FoldedUser, unsolved_user
from ordrec.rating.process.kernel.pair_sums import (
    N_SUMS,
    OwnerSide,
    build_side,
    empty_side,
    owner_centred,
)
from ordrec.rating.process.kernel.shared_features import SharedFeatures
from ordrec.rating.process.kernel.weights import TIME_SCALES, Layout, Weights
from ordrec.rating.process.solve.covariance import Covariance, JointData
from ordrec.rating.process.solve.fitting import Process
from ordrec.rating.thresholds.ordered_probit import OrderedProbit
from ordrec.rating.units import Units
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.storage.limits import claim_memory
from ordrec.storage.schema import (
    Array,
    Field,
    Ids,
    Integer,
    Names,
    Number,
    Optional,
    Part,
    Reader,
    Seconds,
    Table,
    Together,
    Writer,
)

__all__ = ["StoredFit", "StoredProcess", "StoredUsers"]

# Magnitudes in units of `Units`, in which ratings are standard scores: far beyond what a fit gives,
# and small enough that covariances are finite in single precision.
MOST_SCORE, MOST_WEIGHT, MOST_COEFFICIENT = 1e6, 1e6, 1e9


class Groups(Field):
    """Columns of named groups, one group after the other; stored by their numbers of columns."""

    def write(self, file: Writer, name: str, value: Mapping[str, slice]) -> None:
        """Write the number of columns of each group."""
        file.values[name] = {group: own.stop - own.start for group, own in value.items()}

    def read(self, file: Reader, name: str) -> dict[str, slice]:
        """Return the columns of each group."""
        widths = file.value(name)
        if not isinstance(widths, dict) or not all(
            type(width) is int and width >= 0 for width in widths.values()
        ):
            raise ModelFileError(f"{file.prefix}{name} does not give widths of groups")
        edges = itertools.pairwise(itertools.accumulate(widths.values(), initial=0))
        return {group: slice(a, b) for group, (a, b) in zip(widths, edges, strict=True)}


def scores(*shape: Any, dtype: Any = np.float64, stored_as: Any = None) -> Array:
    """Return the field of an array of standard scores."""
    return Array(*shape, dtype=dtype, low=-MOST_SCORE, high=MOST_SCORE, stored_as=stored_as)


def coefficients(length: str, stored_as: Any = None) -> Array:
    """Return the field of dual coefficients."""
    return Array(length, low=-MOST_COEFFICIENT, high=MOST_COEFFICIENT, stored_as=stored_as)


def check_scores(values: np.ndarray, what: str) -> None:
    """Check standard scores that are made again from other numbers of a file."""
    if not (np.abs(values) <= MOST_SCORE).all():
        raise ModelFileError(f"{what} make scores beyond {MOST_SCORE:g}")


@dataclass(frozen=True)
class StoredSide:
    """An `OwnerSide` without its pair sums and ratings."""

    stored: ClassVar = {
        "loadings": scores(None, "entries", None, stored_as=np.float32),
        "fold": Array("owners", dtype=np.int64, low=0),
    }

    loadings: np.ndarray
    fold: np.ndarray

    @classmethod
    def of(cls, side: OwnerSide) -> StoredSide:
        """From a side."""
        return cls(side.loadings, side.fold)

    def check_stored(self) -> None:
        """Check that the folds are those of the loadings."""
        if self.fold.size and self.fold.max() >= self.loadings.shape[0]:
            raise ModelFileError("array 'fold' has folds without loadings")

    def restored(
        self,
        what: str,
        start: np.ndarray,
        entry: np.ndarray,
        x: np.ndarray,
        times: np.ndarray,
        features: list[np.ndarray],
        n_jobs: int,
    ) -> OwnerSide:
        """The side, with its sums over pairs of entries computed again."""
        n = self.loadings.shape[1]
        owner = np.repeat(np.arange(start.size - 1), np.diff(start))
        size = expected_bytes(owner, entry, start.size - 1, n, N_SUMS + len(features))
        claim_memory(size, f"the sums over pairs of {n} {what}")
        sums = start, entry, x, times, n, features
        return build_side(*sums, self.fold, self.loadings, n_jobs)


@dataclass(frozen=True)
class StoredProcess:
    """The numbers that a fitted `Process` is made of.

    The unknown user and the unknown item count in the lengths "all_users" and "all_items".
    """

    stored: ClassVar = {
        "ratings": Table("all_users", "items", bare=True, entries="ratings"),
        "levels": Array("ratings", dtype=np.int64, codes="ranks"),
        "y": Optional(scores("ratings")),  # where levels are bins, which do not tell the ratings
        "times": Seconds("ratings"),
        "item_side": Part(StoredSide, owners="all_users", entries="all_items"),
        "user_side": Optional(Part(StoredSide, owners="all_items", entries="all_users")),
        "psi": scores("all_users", "user_features", dtype=np.float32, stored_as=np.float16),
        "phi": scores("all_items", "item_features", dtype=np.float32, stored_as=np.float16),
        "projection": scores("all_items", None, stored_as=np.float16),
        "user_groups": Groups(),
        "item_groups": Groups(),
        "item_kernels": Names(),
        "user_kernels": Names(),
        "bias": Part(Biases, raters="all_users", rated="all_items"),
        "popularity": Array(2, 2, low=1e-9, high=100),
        "scales": Names(),
        "chosen": Names(),
        "weights": Array("components", low=0, high=MOST_WEIGHT),
        "a": coefficients("ratings", np.float32),
        "undated": Optional(coefficients("ratings", np.float32)),
        "n_iter": Integer(),
    }

    ratings: tuple[np.ndarray, np.ndarray]
    levels: np.ndarray
    y: np.ndarray | None
    times: np.ndarray
    item_side: StoredSide
    user_side: StoredSide | None
    psi: np.ndarray
    phi: np.ndarray
    projection: np.ndarray
    user_groups: dict[str, slice]
    item_groups: dict[str, slice]
    item_kernels: tuple[str, ...]
    user_kernels: tuple[str, ...]
    bias: Biases
    popularity: np.ndarray
    scales: tuple[str, ...]
    chosen: tuple[str, ...]
    weights: np.ndarray
    a: np.ndarray
    undated: np.ndarray | None
    n_iter: int

    @classmethod
    def of(cls, process: Process, standard: np.ndarray) -> StoredProcess:
        """From a fitted process; ``standard`` are the scores of levels."""
        data, weights = process.data, process.K.weights
        products, layout = data.products, weights.layout
        y = None if np.array_equal(standard[data.levels], data.y) else data.y
        return cls(
            (data.item_side.start, data.items), data.levels, y, data.item_side.time,
            StoredSide.of(data.item_side),
            StoredSide.of(data.user_side) if data.two_sided else None,
            products.psi, products.phi, products.projection,
            products.user_groups, products.item_groups, data.item_kernels, data.user_kernels,
            data.bias, np.stack(data.popularity),
            layout.scales, tuple(sorted(layout.chosen)), weights.values,
            process.a, process.undated, process.n_iter,
        )  # fmt: skip

    def check_stored(self) -> None:
        """Check that the ratings are of known users, and the features those of the groups."""
        start, items = self.ratings
        if items.size == 0 or start[-1] != start[-2]:
            raise ModelFileError("the process has ratings of the unknown user, or none")
        for groups, features in ((self.user_groups, self.psi), (self.item_groups, self.phi)):
            if sum(own.stop - own.start for own in groups.values()) != features.shape[1]:
                raise ModelFileError(f"the groups do not add up to {features.shape[1]} columns")
        implicit = self.user_groups.get("implicit", slice(0, 0))
        if self.projection.shape[1] != implicit.stop - implicit.start:
            raise ModelFileError("the projection is not that of the implicit features")
        if self.user_side is None and (self.user_kernels or self.user_groups):
            raise ModelFileError("a one-sided process cannot have features of users")
        if (self.undated is not None) != bool(self.scales):
            raise ModelFileError("the coefficients without times do not match the time scales")

    def restored(self, standard: np.ndarray, n_jobs: int) -> Process:
        """The process, with its pair sums computed again; ``standard`` are the scores of levels."""
        data = self._data(standard[self.levels] if self.y is None else self.y, n_jobs)
        products = tuple(f"{a}*{b}" for a, b in data.products.names)
        chosen = frozenset(self.chosen)
        layout = Layout(data.item_kernels, data.user_kernels, self.scales, products, chosen)
        known = set(self.scales) <= set(TIME_SCALES) and chosen <= set(layout.names)
        smoothing = [name.startswith("smooth.") for name in layout.names]
        if (
            not known
            or self.weights.shape != (len(layout.names),)
            or (self.weights[smoothing] <= 0).any()
        ):
            raise ModelFileError("the weights do not match the components")
        K = Covariance(data, Weights(layout, self.weights), n_jobs)
        none = np.zeros(0)
        return Process(K, self.a, none, none, self.n_iter, self.undated)

    def _data(self, y: np.ndarray, n_jobs: int) -> JointData:
        (start, items), times = self.ratings, self.times
        n_users, n_items = self.psi.shape[0], self.phi.shape[0]
        users = np.repeat(np.arange(n_users), np.diff(start))
        products = SharedFeatures(
            self.psi, self.phi, self.user_groups, self.item_groups, start, items, self.projection
        )
        features = [self.phi[:, self.item_groups[name]] for name in self.item_kernels]
        x = owner_centred(y, self.bias.mean, self.bias.user[users])
        check_scores(x, "the biases")
        item_side = self.item_side.restored("items", start, items, x, times, features, n_jobs)
        by_item, user_side = np.zeros(0, dtype=np.int64), empty_side(n_items)
        if self.user_side is not None:
            by_item = np.argsort(items, kind="stable")
            owner = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))])
            features = [self.psi[:, self.user_groups[name]] for name in self.user_kernels]
            x = owner_centred(y, self.bias.mean, self.bias.item[items])[by_item]
            undated = np.zeros(y.size)
            user_side = self.user_side.restored(
                "users", owner, users[by_item], x, undated, features, n_jobs
            )
        return JointData(
            users, items, self.levels, y, item_side, user_side, products, by_item,
            (self.popularity[0], self.popularity[1]), self.bias,
            self.item_kernels, self.user_kernels, self.user_side is not None,
        )  # fmt: skip


_probit = Part(OrderedProbit, raters="all_users", rated="all_items")


@dataclass(frozen=True)
class StoredFit:
    """A `FittedPredictor` without ids and scale."""

    stored: ClassVar = {
        "process": Part(StoredProcess),
        "layer": _probit,
        "likelihood": Optional(Together(layer=_probit, typical=Number(low=1e-300))),
        "units": Part(Units),
    }

    process: StoredProcess
    layer: OrderedProbit
    likelihood: tuple[OrderedProbit, float] | None
    units: Units

    @classmethod
    def of(cls, fitted: FittedPredictor) -> StoredFit:
        """From what a model has learnt."""
        standard = fitted.units.inward(fitted.scale.values)
        process = StoredProcess.of(fitted.process, standard)
        return cls(process, fitted.probit, fitted.likelihood, fitted.units)

    def restored(self, model: Any) -> FittedPredictor:
        """What a model with these ids and this scale has learnt."""
        with one_blas_thread():
            standard = self.units.inward(model.scale_.values)
            check_scores(standard, "the units")
            process = self.process.restored(standard, worker_count(model.n_jobs))
        return FittedPredictor(
            process, self.layer, self.likelihood, self.units,
            model.scale_, model.user_ids_, model.item_ids_,
        )  # fmt: skip


@dataclass(frozen=True)
class StoredUsers:
    """Folded-in users: their ratings, and what was solved for."""

    stored: ClassVar = {
        "ids": Ids("folded_users"),
        "ratings": Table(
            "folded_users", "items", low=-MOST_COEFFICIENT, high=MOST_COEFFICIENT, parts=True,
            entries="folded_ratings",
        ),
        "undated": coefficients("folded_ratings"),
        "levels": Array("folded_ratings", dtype=np.int64, codes="ranks"),
        "times": Array("folded_ratings"),
        "shifts": Array("folded_users", None),
        "scale": Array("folded_users", low=-50, high=50),
    }  # fmt: skip

    ids: pd.Index
    ratings: tuple[np.ndarray, np.ndarray, np.ndarray]  # start, items and coefficients
    undated: np.ndarray
    levels: np.ndarray
    times: np.ndarray
    shifts: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, folded: Mapping[Any, FoldedUser]) -> StoredUsers:
        """From folded-in users by original id."""
        users = list(folded.values())

        def joined(name: str, dtype: Any = np.float64) -> np.ndarray:
            return np.concatenate([np.zeros(0, dtype), *(getattr(user, name) for user in users)])

        start = np.concatenate([[0], np.cumsum([user.items.size for user in users], dtype=int)])
        shifts = np.stack([user.shifts for user in users]) if users else np.zeros((0, 0))
        return cls(
            pd.Index(list(folded)), (start, joined("items", np.int64), joined("a")),
            joined("undated"), joined("levels", np.int64), joined("times"),
            shifts, np.array([user.scale for user in users]),
        )  # fmt: skip

    def restored(self, model: Any) -> dict[Any, FoldedUser]:
        """The users by original id."""
        fitted, (start, items, a) = model.fitted_, self.ratings
        if len(self.ids) and self.shifts.shape[1] != fitted.scale.n_ranks - 1:
            raise ModelFileError("the shifts of folded-in users are not one for each threshold")
        codes = codes_of(fitted.user_ids, self.ids)
        side = fitted.process.data.user_side
        row = side.n_entries * side.pairs.table.shape[1]  # numbers of float64 that each one has
        what = f"what {len(self.ids)} folded-in users share with others"
        claim_memory(8.0 * len(self.ids) * row, what)
        folded = {}
        for k, user in enumerate(self.ids):
            own = slice(start[k], start[k + 1])
            ratings = items[own], self.levels[own], self.times[own]
            with one_blas_thread():
                bare = unsolved_user(fitted, int(codes[k]), *ratings)
            folded[user] = replace(
                bare,
                a=a[own],
                undated=self.undated[own],
                shifts=self.shifts[k],
                scale=float(self.scale[k]),
            )
        return folded
