"""Splits of ratings into training and test.

Every split is a small frozen object that prints its parameters; ``split(ratings)`` yields
one `Split` per fold. All randomness comes from ``random_state`` and is drawn in one thread, so a
split is the same wherever it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.splits.base import Split, SplitParameters, Splitter, part_ratings

__all__ = [
    "ColdItems",
    "GlobalTime",
    "HoldOut",
    "KFold",
    "LeaveLast",
    "LeaveOut",
    "PublishedFolds",
    "StrongGeneralisation",
    "UserHoldOut",
    "UserTime",
    "split_from_name",
]


# ---- at random -------------------------------------------------------------------------


@dataclass(frozen=True)
class HoldOut(SplitParameters):
    """Split that tests on a random share of all ratings.

    Parameters
    ----------
    test_size : float
        Share of the ratings, between 0 and 1.
    repeats : int
        Number of independent draws.
    random_state : int

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 1],
    ...                       "rating": [1, 2, 3, 4, 5]})
    >>> next(HoldOut(0.4).split(Ratings.from_frame(frame))).test.n_ratings
    2
    """

    kind: ClassVar[str] = "holdout"

    test_size: float = 0.2
    repeats: int = 1
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield ``repeats`` folds."""
        n_test = round(self.test_size * ratings.n_ratings)
        for repeat in range(self.repeats):
            place = np.random.default_rng([self.random_state, repeat]).permutation(
                ratings.n_ratings
            )
            yield part_ratings(ratings, place < n_test, self.name, str(repeat + 1))


@dataclass(frozen=True)
class KFold(SplitParameters):
    """Split of the ratings at random into folds; each fold is the test part once.

    Parameters
    ----------
    n_folds : int
    random_state : int
    """

    kind: ClassVar[str] = "kfold"

    n_folds: int = 5
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield ``n_folds`` folds whose test parts are disjoint and cover everything."""
        fold_of_rating = (
            np.random.default_rng(self.random_state).permutation(ratings.n_ratings) % self.n_folds
        )
        for fold in range(self.n_folds):
            yield part_ratings(ratings, fold_of_rating == fold, self.name, str(fold + 1))


@dataclass(frozen=True)
class UserHoldOut(SplitParameters):
    """Split that tests on the same random share of each user's ratings.

    A user with ``n`` ratings gives ``round(test_size * n)`` of them and always keeps at
    least one for training.

    Parameters
    ----------
    test_size : float
    random_state : int
    """

    kind: ClassVar[str] = "user-holdout"

    test_size: float = 0.2
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold."""
        place = _place_within_user(ratings, np.random.default_rng(self.random_state))
        yield part_ratings(ratings, place < _share_of_each(ratings, self.test_size), self.name)


@dataclass(frozen=True)
class LeaveOut(SplitParameters):
    """Split that tests on the same number of each user's ratings, drawn at random.

    All ratings of users with no more than ``n`` ratings stay in training.

    Parameters
    ----------
    n : int
    random_state : int
    """

    kind: ClassVar[str] = "leave-out"

    n: int = 1
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold."""
        place = _place_within_user(ratings, np.random.default_rng(self.random_state))
        enough = ratings.user_counts[ratings.users] > self.n
        yield part_ratings(ratings, enough & (place < self.n), self.name)


@dataclass(frozen=True)
class StrongGeneralisation(SplitParameters):
    """Split that holds out whole users and gives some of their ratings for fold-in.

    Training never sees the held-out users. A random share of each such user's ratings is
    ``Split.given``, the others are the test part (at least one rating in each; users with a
    single rating are never held out).

    Parameters
    ----------
    test_size : float
        Share of the users that are held out.
    given : float
        Share of a held-out user's ratings that may be seen.
    random_state : int
    """

    kind: ClassVar[str] = "strong"

    test_size: float = 0.2
    given: float = 0.5
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold."""
        rng = np.random.default_rng(self.random_state)
        eligible = np.flatnonzero(ratings.user_counts >= 2)
        n_out = min(round(self.test_size * np.count_nonzero(ratings.user_counts)), eligible.size)
        held_out = np.zeros(ratings.n_users, dtype=bool)
        held_out[rng.permutation(eligible)[:n_out]] = True
        out = held_out[ratings.users]
        shown = _place_within_user(ratings, rng) < np.maximum(
            _share_of_each(ratings, self.given), 1
        )
        yield part_ratings(ratings, out & ~shown, self.name, given=out & shown)


@dataclass(frozen=True)
class ColdItems(SplitParameters):
    """Split that tests on all ratings of a random share of the items, which training never sees.

    ``cold_recall@k`` measures how well a model orders these items among each other.

    Parameters
    ----------
    test_size : float
        Share of the rated items.
    random_state : int
    """

    kind: ClassVar[str] = "cold-items"

    test_size: float = 0.1
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold."""
        rated = np.flatnonzero(ratings.item_counts)
        n_out = max(round(self.test_size * rated.size), 1)
        held_out = np.zeros(ratings.n_items, dtype=np.bool_)
        held_out[np.random.default_rng(self.random_state).permutation(rated)[:n_out]] = True
        if ratings.events is not None:
            ratings = ratings.with_events_where(~held_out[ratings.events.items])
        yield part_ratings(ratings, held_out[ratings.items], self.name)


# ---- in time ---------------------------------------------------------------------------


@dataclass(frozen=True)
class GlobalTime(SplitParameters):
    """Split that tests on the latest share of all ratings; nothing in training is later.

    Ratings of the same second are never separated: the cut is between two distinct times, as
    near to ``test_size`` as possible. Most test users of such a split are often unseen in
    training: see ``Split.n_cold_users``.

    Parameters
    ----------
    test_size : float
    """

    kind: ClassVar[str] = "time"
    future: ClassVar[str] = "latest"

    test_size: float = 0.2

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold."""
        times = _known_times(ratings, self.name)
        moments, counts = np.unique(times, return_counts=True)
        if moments.size == 1:
            raise DataError(
                f"split {self.name!r}: all ratings have the same time {moments[0]}: "
                'use a split that needs no time, such as "holdout:0.2"'
            )
        later = times.size - np.cumsum(counts)[:-1]  # ratings after each possible cut
        cut = moments[np.argmin(np.abs(later - self.test_size * times.size))]
        latest = np.full(ratings.n_users, cut + 1)
        yield part_ratings(ratings, times > cut, self.name, latest_event=latest)


@dataclass(frozen=True)
class UserTime(SplitParameters):
    """Split that tests on the latest share of each user's ratings.

    A user with ``n`` ratings gives ``round(test_size * n)`` of them and always keeps at
    least one for training.

    Parameters
    ----------
    test_size : float
    ties : {"random", "file"}
        How ratings that a user gave in the same second are ordered: at random, or as they stand in
        the table, the last row as the latest.
    random_state : int
    """

    kind: ClassVar[str] = "user-time"
    future: ClassVar[str] = "latest"

    test_size: float = 0.2
    ties: str = "random"
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold."""
        place = _place_from_latest(ratings, self)
        test = place < _share_of_each(ratings, self.test_size)
        yield part_ratings(ratings, test, self.name, latest_event=_first_times(ratings, test))


@dataclass(frozen=True)
class LeaveLast(SplitParameters):
    """Split that tests on the same number of each user's latest ratings.

    All ratings of users with no more than ``n`` ratings stay in training. Published figures for
    "the last rating" often leave ties in the order of the file, in which neighbouring rows may be
    of neighbouring items: with ``ties="file"`` this gives their split, and other numbers.

    Parameters
    ----------
    n : int
    ties : {"random", "file"}
        As in `UserTime`.
    random_state : int

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 1, 2, 2], "item": [1, 2, 3, 1, 2],
    ...                       "rating": [1, 2, 3, 4, 5], "timestamp": [9, 5, 9, 1, 2]})
    >>> next(LeaveLast(1, ties="file").split(Ratings.from_frame(frame))).test.values.tolist()
    [3.0, 5.0]
    """

    kind: ClassVar[str] = "last"
    future: ClassVar[str] = "next"

    n: int = 1
    ties: str = "random"
    random_state: int = 0

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold."""
        place = _place_from_latest(ratings, self)
        enough = ratings.user_counts[ratings.users] > self.n
        test = enough & (place < self.n)
        yield part_ratings(ratings, test, self.name, latest_event=_first_times(ratings, test))


def _first_times(ratings: Ratings, test: np.ndarray) -> np.ndarray:
    """The time of each user's first test rating, after which nothing is known of them."""
    assert ratings.timestamps is not None
    first = np.full(ratings.n_users, np.iinfo(np.int64).max)
    np.minimum.at(first, ratings.users[test], ratings.timestamps[test])
    return first


# ---- as published ----------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedFolds(SplitParameters):
    """Split into partitions published with the data, such as ``u1`` to ``u5`` of MovieLens 100K.

    Parameters
    ----------
    names : tuple of str
        Keys of ``ratings.folds``, one fold each.
    """

    kind: ClassVar[str] = "fold"

    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name on the command line, such as ``fold:u1``."""
        return f"{self.kind}:{','.join(self.names)}"

    @property
    def n_splits(self) -> int:
        """The number of folds: one per name."""
        return len(self.names)

    def __post_init__(self) -> None:
        names: Any = self.names
        if isinstance(names, str):
            object.__setattr__(self, "names", (names,))
        if not self.names:
            raise ArgumentError("names must hold at least one name of a published fold")

    def split(self, ratings: Ratings) -> Iterator[Split]:
        """Yield one fold per name."""
        for fold in self.names:
            if fold not in ratings.folds:
                known = ", ".join(ratings.folds) or "none"
                raise DataError(
                    f"{ratings.name} has no published fold {fold!r} (it has: {known}): "
                    'name one of those, or use another split such as "kfold:5"'
                )
            yield part_ratings(ratings, ratings.folds[fold], self.name, fold)


# ---- by name ---------------------------------------------------------------------------

_CHOICES: dict[str, tuple[str, Callable[..., Splitter], tuple[type, ...]]] = {
    "holdout": ("holdout:0.2", HoldOut, (float, int)),
    "kfold": ("kfold:5", KFold, (int,)),
    "fold": ("fold:u1", PublishedFolds, ()),
    "user-holdout": ("user-holdout:0.2", UserHoldOut, (float,)),
    "leave-out": ("leave-out:5", LeaveOut, (int,)),
    "strong": ("strong:0.2", StrongGeneralisation, (float, float)),
    "time": ("time:0.2", GlobalTime, (float,)),
    "user-time": ("user-time:0.2", UserTime, (float, str)),
    "last": ("last:1", LeaveLast, (int, str)),
    "cold-items": ("cold-items:0.1", ColdItems, (float,)),
}


def split_from_name(name: str, *, random_state: int = 0) -> Splitter:
    """Make a split from its name on the command line.

    Parameters
    ----------
    name : str
        ``holdout:0.2``, ``kfold:5``, ``fold:u1`` (or ``fold:u1,u2``), ``user-holdout:0.2``,
        ``leave-out:5``, ``strong:0.2``, ``time:0.2``, ``user-time:0.2``, ``last:1`` or
        ``cold-items:0.1``. The part after the colon may be omitted, except for ``fold``. A second
        number or word may follow: ``holdout:0.2,5`` draws five times, ``strong:0.2,0.5`` shows half
        of a held-out user's ratings, ``user-time:0.2,file`` and ``last:1,file`` take ties in time
        in the order of the file.
    random_state : int
        For the splits that draw at random.

    Raises
    ------
    ArgumentError
        For an unknown name, listing the choices.

    Examples
    --------
    >>> split_from_name("kfold:10", random_state=3)
    KFold(n_folds=10, random_state=3)
    """
    kind, _, text = name.partition(":")
    choices = ", ".join(example for example, *_ in _CHOICES.values())
    if kind not in _CHOICES:
        raise ArgumentError(f"unknown split {name!r}: choose one of {choices}")
    example, make, types = _CHOICES[kind]
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        if make is PublishedFolds:
            return PublishedFolds(tuple(words))
        values = [read(word) for read, word in zip(types[: len(words)], words, strict=True)]
    except ArgumentError:
        raise ArgumentError(f"split {name!r}: name the fold, as in {example!r}") from None
    except ValueError:
        raise ArgumentError(
            f"split {name!r}: cannot read {text!r}; write it like {example!r} "
            f"(all choices: {choices})"
        ) from None
    try:
        return make(*values) if make is GlobalTime else make(*values, random_state=random_state)
    except ArgumentError as error:
        raise ArgumentError(f"split {name!r}: {error}") from None


# ---- the parts ---------------------------------------------------------------------------


def _place_within_user(
    ratings: Ratings, rng: np.random.Generator | None, latest_first: np.ndarray | None = None
) -> np.ndarray:
    """Return the place 0, 1, ... of each rating among its user's: random, or latest first.

    Without a generator, ties stay in the order of the rows, of which the last is the latest.
    """
    n = ratings.n_ratings
    rank = np.arange(n)[::-1].copy() if rng is None else rng.permutation(n)
    if latest_first is not None:
        rows = rank[np.argsort(-latest_first[rank], kind="stable")]
        rank[rows] = np.arange(n)
    # One distinct whole number per row: much faster to sort than two columns, and no ties.
    order = np.argsort(ratings.users.astype(np.int64) << 32 | rank)
    starts = np.concatenate([[0], np.cumsum(ratings.user_counts)[:-1]])
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - starts[ratings.users[order]]
    return place


def _place_from_latest(ratings: Ratings, split: UserTime | LeaveLast) -> np.ndarray:
    """Return the place of each rating among its user's, the latest first."""
    times = _known_times(ratings, split.name)
    rng = None if split.ties == "file" else np.random.default_rng(split.random_state)
    return _place_within_user(ratings, rng, latest_first=times)


def _share_of_each(ratings: Ratings, share: float) -> np.ndarray:
    """Return, per rating, how many of its user's ratings make the share; never all of them."""
    counts = ratings.user_counts
    return np.minimum(np.rint(share * counts).astype(np.int64), counts - 1)[ratings.users]


def _known_times(ratings: Ratings, name: str) -> np.ndarray:
    remedy = 'use a split that needs no time, such as "holdout:0.2" or "user-holdout:0.2"'
    if ratings.timestamps is None:
        raise DataError(
            f"split {name!r}: {ratings.name} has no times: name their column with timestamp=, or "
            f"{remedy}",
            parameter="timestamp",
        )
    unknown = int(np.count_nonzero(ratings.timestamps == 0))
    if unknown:
        raise DataError(
            f"split {name!r}: {unknown} of {ratings.n_ratings} ratings of {ratings.name} have "
            f"timestamp 0, which means an unknown time: drop them first with "
            f"ratings.select(ratings.timestamps != 0), or {remedy}"
        )
    return ratings.timestamps
