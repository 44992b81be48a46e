"""The parts of a split, and the parameters that splits have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.columns import encode_ids, on_scale, scale_for
from ordrec.errors import ArgumentError, DataError

__all__ = [
    "RowSplit",
    "Split",
    "SplitParameters",
    "Splitter",
    "joined_ratings",
    "part_ratings",
    "part_rows",
]


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
        return self.train if self.given is None else joined_ratings([self.train, self.given])

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
            if name == "ties" and value not in ("random", "file"):
                raise ArgumentError(f'ties must be "random" or "file", got {value!r}')
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
    train: np.ndarray | None = None,
    latest_event: np.ndarray | None = None,
) -> Split:
    """Return the split with the given masks of test ratings and ratings for fold-in.

    What is neither of them is for training unless ``train``, which may be empty, says otherwise.
    The bins of a fine scale are cut anew from the training ratings, or take their values from them
    where the cuts were declared. Of a user's events, those before ``latest_event`` stay, all if it
    is not given; what is rated in the test part has none in any case.
    """
    may_be_empty = train is not None
    if train is None:
        train = ~test if given is None else ~(test | given)
    for part, mask in (("training", train), ("test", test)):
        if not mask.any() and not (part == "training" and may_be_empty):
            raise DataError(
                f"split {name!r} leaves no {part} ratings of {ratings.name} "
                f"({ratings.n_ratings} ratings): choose another size or another split"
            )
    if ratings.events is not None and latest_event is not None:
        before = ratings.events.times < latest_event[ratings.events.users]
        ratings = ratings.with_events_where(before)
    scale = ratings.scale.learnt_from(ratings.values[train])
    ratings = ratings.on_scale(scale)
    return Split(
        ratings.select(train),
        ratings.select(test),
        name,
        fold,
        None if given is None else ratings.select(given),
    )


def joined_ratings(parts: Sequence[Ratings]) -> Ratings:
    """Return the rows of several tables one after the other, with the users and items of all.

    The name and, where they differ in a row, the side tables are those of the first. Times and
    weights stay if all tables have them. Nothing is said about pairs that occur twice. Events of
    what is rated in any table are left out.
    """
    first = parts[0]
    columns: dict[str, Any] = {}
    for kind in ("user", "item"):
        ids = _joined_ids([getattr(part, f"{kind}_ids") for part in parts], kind)
        columns[f"{kind}_ids"] = ids
        columns[f"{kind}s"] = np.concatenate(
            [
                getattr(part, f"{kind}s")
                if getattr(part, f"{kind}_ids") is ids
                else ids.get_indexer(getattr(part, f"{kind}_ids"))[getattr(part, f"{kind}s")]
                for part in parts
            ]
        )
        columns[f"{kind}_table"] = _joined_tables(parts, kind, ids)
    values = np.concatenate([part.values for part in parts])
    scale = first.scale
    if any(part.scale != scale for part in parts[1:]) and (scale.levels_of(values) < 0).any():
        scale = scale_for(values, None, "rating")
    for name in ("timestamps", "weights", "first_timestamps"):
        known = [getattr(part, name) for part in parts if part.n_ratings]
        columns[name] = None if any(each is None for each in known) else np.concatenate(known)
    joined = Ratings(
        levels=on_scale(values, scale, "rating"),
        scale=scale,
        name=first.name,
        binned_values=None if scale.edges is None else values,
        **columns,
    )
    given = {id(part.events): part for part in parts if part.events is not None}
    for part in given.values():  # parts of one split have the same events
        if len(part.events_matrix().data):
            joined = joined.with_events(part.events_frame())
    return joined


def _joined_ids(indexes: Sequence[pd.Index], kind: str) -> pd.Index:
    """The ids of all tables in order; those of the first where all are the same."""
    first = indexes[0]
    if all(other is first or other.equals(first) for other in indexes[1:]):
        return first
    kinds = {"number" if index.dtype.kind in "iuf" else "text" for index in indexes if len(index)}
    if len(kinds) > 1:
        raise DataError(
            f"the ids of {kind}s are numbers in one table and texts in another: make them the same"
        )
    distinct = pd.concat([index.to_series() for index in indexes])
    return encode_ids(distinct.reset_index(drop=True), kind)[1]


def _joined_tables(parts: Sequence[Ratings], kind: str, ids: pd.Index) -> pd.DataFrame | None:
    """The rows of the side tables of all parts; a user or item has that of the first."""
    tables = [getattr(part, f"{kind}_table") for part in parts]
    known = [
        table.set_axis(getattr(part, f"{kind}_ids"))
        for table, part in zip(tables, parts, strict=True)
        if table is not None
    ]
    if not known or all(table is tables[0] for table in tables):
        return tables[0]
    joined = pd.concat(known)
    return joined[~joined.index.duplicated()].reindex(ids)


def part_rows(test: np.ndarray, name: str, fold: str) -> RowSplit:
    """Return the split of a table with the given mask of test rows."""
    if test.all() or not test.any():
        raise DataError(
            f"split {name!r} leaves a part of the {test.size} rows empty: choose another size"
        )
    return RowSplit(np.flatnonzero(~test), np.flatnonzero(test), name, fold)
