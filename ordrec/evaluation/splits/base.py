"""The parts of a split, and the parameters that splits have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral
from typing import ClassVar, Protocol

import numpy as np

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError

__all__ = ["RowSplit", "Split", "SplitParameters", "Splitter", "part_ratings", "part_rows"]


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """One training part and one test part of the same ratings.

    Attributes
    ----------
    train, test : Ratings
        Both use the codes of users and items of the complete ratings.
    name : str
        The name of the split on the command line.
    fold : str
        Which fold of the split: ``"1"``, ``"2"``, ... or a published name.
    given : Ratings or None
        Ratings of the test users that a model may see after training (fold-in), where
        all ratings of these users were held out; they are in neither ``train`` nor ``test``.
    """

    train: Ratings
    test: Ratings
    name: str
    fold: str = "1"
    given: Ratings | None = None

    @cached_property
    def cold(self) -> np.ndarray:
        """Which test ratings have a user or an item without any training rating."""
        return self._cold_user | self._cold_item

    @property
    def n_cold_users(self) -> int:
        """Number of distinct test users without a training rating."""
        return int(np.unique(self.test.users[self._cold_user]).size)

    @property
    def n_cold_items(self) -> int:
        """Number of distinct test items without a training rating."""
        return int(np.unique(self.test.items[self._cold_item]).size)

    @property
    def n_cold_ratings(self) -> int:
        """Number of test ratings whose user or item has no training rating."""
        return int(self.cold.sum())

    @cached_property
    def _cold_user(self) -> np.ndarray:
        return self.train.user_counts[self.test.users] == 0

    @cached_property
    def _cold_item(self) -> np.ndarray:
        return self.train.item_counts[self.test.items] == 0

    def train_and_given(self) -> Ratings:
        """Return the training ratings followed by those given for fold-in."""
        train, given = self.train, self.given
        if given is None:
            return train
        times = None
        if train.timestamps is not None and given.timestamps is not None:
            times = np.concatenate([train.timestamps, given.timestamps])
        weights = None
        if train.weights is not None and given.weights is not None:
            weights = np.concatenate([train.weights, given.weights])
        values = None
        if train.scale.edges is not None:
            values = np.concatenate([train.values, given.values])
        return Ratings(
            np.concatenate([train.users, given.users]),
            np.concatenate([train.items, given.items]),
            np.concatenate([train.levels, given.levels]),
            scale=train.scale,
            user_ids=train.user_ids,
            item_ids=train.item_ids,
            timestamps=times,
            user_table=train.user_table,
            item_table=train.item_table,
            name=train.name,
            binned_values=values,
            weights=weights,
        )

    def __repr__(self) -> str:
        given = "" if self.given is None else f", {self.given.n_ratings} given"
        return (
            f"<Split {self.name}, fold {self.fold}: {self.train.n_ratings} train{given}, "
            f"{self.test.n_ratings} test ratings; unseen in training: {self.n_cold_users} users, "
            f"{self.n_cold_items} items, {self.n_cold_ratings} test ratings>"
        )


@dataclass(frozen=True, eq=False)
class RowSplit:
    """Row numbers of one training part and one test part of a table."""

    train: np.ndarray
    test: np.ndarray
    name: str
    fold: str = "1"


class Splitter(Protocol):
    """The interface of every split of ratings."""

    @property
    def name(self) -> str:
        """The name from which `split_from_name` makes it again, except for ``random_state``."""
        ...

    @property
    def n_splits(self) -> int:
        """The number of folds that `split` yields."""
        ...

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield the folds one after the other."""
        ...


@dataclass(frozen=True)
class SplitParameters:
    """Base of the splits: checks their parameters and makes the name from them.

    ``future`` is what the test part is, for models that ask (`Recommender`): "random", "latest"
    or "next".
    """

    kind: ClassVar[str]
    future: ClassVar[str] = "random"
    shares: ClassVar[tuple[str, ...]] = ("test_size", "given")
    counts: ClassVar[dict[str, int]] = {"n_folds": 2, "repeats": 1, "n": 1}

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name in self.shares and not 0.0 < value < 1.0:
                raise ArgumentError(f"{name} must lie between 0 and 1, got {value}")
            least = self.counts.get(name)
            if least is not None and (not isinstance(value, Integral) or value < least):
                raise ArgumentError(
                    f"{name} must be a whole number of at least {least}, got {value}"
                )

    @property
    def name(self) -> str:
        """The name on the command line, such as ``holdout:0.2``, without ``random_state``."""
        first, *others = (field for field in fields(self) if field.name != "random_state")
        shown = [first] + [f for f in others if getattr(self, f.name) != f.default]
        values = (getattr(self, field.name) for field in shown)
        return f"{self.kind}:{','.join(map(str, values))}"

    @property
    def n_splits(self) -> int:
        """The number of folds that the split yields."""
        return getattr(self, "n_folds", getattr(self, "repeats", 1))


def part_ratings(
    ratings: Ratings,
    test: np.ndarray,
    name: str,
    fold: str = "1",
    given: np.ndarray | None = None,
) -> Split:
    """Return the split with the given masks of test ratings and ratings for fold-in.

    The values of a scale of bins become the means of the training ratings in them.
    """
    train = ~test if given is None else ~(test | given)
    for part, mask in (("training", train), ("test", test)):
        if not mask.any():
            raise DataError(
                f"split {name!r} leaves no {part} ratings of {ratings.name} "
                f"({ratings.n_ratings} ratings): choose another size or another split"
            )
    scale = ratings.scale.recentred(ratings.values[train], ratings.levels[train])
    ratings = ratings.on_scale(scale)
    return Split(
        ratings.select(train),
        ratings.select(test),
        name,
        fold,
        None if given is None else ratings.select(given),
    )


def part_rows(test: np.ndarray, name: str, fold: str) -> RowSplit:
    """Return the split of a table with the given mask of test rows."""
    if test.all() or not test.any():
        raise DataError(
            f"split {name!r} leaves a part of the {test.size} rows empty: choose another size"
        )
    return RowSplit(np.flatnonzero(~test), np.flatnonzero(test), name, fold)
