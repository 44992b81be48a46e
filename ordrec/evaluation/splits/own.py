"""Training and test parts that were made elsewhere, joined to one table with its folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ordrec.data import Ratings
from ordrec.data.columns import plain
from ordrec.data.ratings import as_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.splits.base import Split, joined_ratings, part_ratings

__all__ = ["TEST_ALONE", "OwnFold", "OwnParts", "own_parts", "read_on_scale"]

TEST_ALONE = "own test part"


class OwnFold(NamedTuple):
    """Which rows of the joined table belong to the parts of one fold: first row and end."""

    train: tuple[int, int]
    valid: tuple[int, int]
    test: tuple[int, int]


@dataclass(frozen=True)
class OwnParts:
    """Split into parts that were made elsewhere, which `own_parts` has joined to one table.

    Parameters
    ----------
    folds : tuple of OwnFold
    """

    folds: tuple[OwnFold, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        return "own"

    @property
    def n_splits(self) -> int:
        """The number of pairs of a training and a test part."""
        return len(self.folds)

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold per pair; models are fitted on its training and validation ratings."""
        for number, fold in enumerate(self.folds, start=1):
            train = _mask(ratings, fold.train) | _mask(ratings, fold.valid)
            yield part_ratings(
                ratings, _mask(ratings, fold.test), self.name, str(number), train=train
            )

    def choosing(self, position: int) -> OwnParts | None:
        """Return the parts on which models are chosen: training and validation; None without."""
        train, valid, _ = self.folds[position]
        if valid[0] == valid[1]:
            return None
        return OwnParts((OwnFold(train, (0, 0), valid),))

    def __repr__(self) -> str:
        def size(rows: Sequence[tuple[int, int]]) -> str:
            return "+".join(str(stop - first) for first, stop in rows)

        train, valid, test = zip(*self.folds, strict=True)
        if not any(stop > first for first, stop in (*train, *valid)):
            return f"{TEST_ALONE} ({size(test)} ratings)"
        chosen = f", {size(valid)} validation" if any(stop > first for first, stop in valid) else ""
        return f"own parts ({size(train)} training{chosen}, {size(test)} test ratings)"


def own_parts(train: Any, test: Any, valid: Any = None) -> tuple[Ratings, OwnParts]:
    """Join training and test parts that were made elsewhere to one table with its split.

    Parameters
    ----------
    train, test : Ratings, DataFrame, or sequence of these
        Sequences of equal length are folds.
    valid : Ratings, DataFrame, or sequence of these, optional

    Returns
    -------
    tuple of Ratings and OwnParts
        Users and items of all parts; the name and the side tables are those of the training part.

    Raises
    ------
    DataError
        If a user and an item occur in two parts of one fold, naming the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> train = pd.DataFrame({"user": [1, 2, 2], "item": [7, 7, 9], "rating": [5, 3, 4]})
    >>> test = pd.DataFrame({"user": [1, 3], "item": [8, 7], "rating": [4, 4]})
    >>> ratings, split = own_parts(train, test)
    >>> ratings.n_users, split
    (3, own parts (3 training, 2 test ratings))
    """
    trains, tests = _as_list(train), _as_list(test)
    valids = [None] * len(trains) if valid is None else _as_list(valid)
    if not len(trains) == len(tests) == len(valids):
        raise ArgumentError(
            f"{len(trains)} training, {len(tests)} test and {len(valids)} validation parts: give "
            "as many of each",
            parameter="test",
        )
    parts: list[Ratings] = []
    folds: list[OwnFold] = []
    n_rows = 0
    for three in zip(trains, valids, tests, strict=True):
        first = as_ratings(three[0])
        of_fold = [first if part is three[0] else _like(part, first) for part in three]
        rows = []
        for part in of_fold:
            size = 0 if part is None else part.n_ratings
            rows.append((n_rows, n_rows + size))
            n_rows += size
        parts += [part for part in of_fold if part is not None]
        folds.append(OwnFold(*rows))
    ratings = joined_ratings(parts)
    for number, fold in enumerate(folds, start=1):
        _refuse_overlap(ratings, fold, f" of fold {number}" if len(folds) > 1 else "")
    return ratings, OwnParts(tuple(folds))


def read_on_scale(read: Any, scale: Any) -> Ratings:
    """Return what ``read(scale)`` reads; with a scale of its own if its ratings are not on this.

    A test part may have ratings that no training rating has, or too few to show the scale.
    """
    try:
        return read(scale)
    except DataError:
        return read(None)


def _like(part: Any, first: Ratings) -> Ratings | None:
    """The ratings of a further part, on the scale of the training part if they fit there."""
    if part is None or isinstance(part, Ratings):
        return part
    return read_on_scale(lambda scale: as_ratings(part, scale), first.scale)


def _as_list(parts: Any) -> list[Any]:
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]


def _mask(ratings: Ratings, rows: tuple[int, int]) -> np.ndarray:
    mask = np.zeros(ratings.n_ratings, dtype=np.bool_)
    mask[slice(*rows)] = True
    return mask


def _refuse_overlap(ratings: Ratings, fold: OwnFold, which: str) -> None:
    """Raise an error if a pair of a user and an item is in two parts of a fold."""
    pairs = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    for one, other in (("train", "test"), ("valid", "test"), ("train", "valid")):
        first, second = getattr(fold, one), getattr(fold, other)
        known, asked = pairs[slice(*first)], pairs[slice(*second)]
        both = np.flatnonzero(np.isin(asked, known))
        if not both.size:
            continue
        row = int(both[0])
        user = plain(ratings.user_ids[ratings.users[second[0] + row]])
        item = plain(ratings.item_ids[ratings.items[second[0] + row]])
        before = int(np.flatnonzero(known == asked[row])[0])
        words = {"train": "training", "valid": "validation", "test": "test"}
        raise DataError(
            f"row {row} of the {words[other]} part{which}: user {user!r} and item {item!r} are "
            f"also row {before} of the {words[one]} part ({both.size} in all): a rating that is "
            "tested must not be known; remove these rows from one of the two",
            parameter="test",
        )
