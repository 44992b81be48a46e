"""`Events`: what users did with items without saying what they think of them."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.columns import (
    COUNT,
    TIMESTAMP,
    as_counts,
    as_pandas,
    counted_picks,
    find_columns,
    plain,
    shown,
    single_column,
)
from ordrec.data.ids import codes_of
from ordrec.data.times import as_seconds
from ordrec.errors import DataError, OrdrecWarning, callers_level

__all__ = ["KIND", "NO_RATING", "Events", "checked_events", "in_errors", "kind_column"]

KIND = "kind"  # name of the column of kinds unless another one is given
USUAL_KIND = "event"  # of events without a column of kinds
NO_RATING = "no rating"  # of pairs in a table of ratings whose value says that there is none
MOST_KINDS = 50  # more different ones are ids or texts
RARE = 0.01  # of the rows of another kind: so few may be that kind, misspelt
ALIKE = 0.75  # similarity of such names


@dataclass(frozen=True, eq=False)
class Events:
    """Views, purchases, bookmarks, ...: one row per user, item and kind, by codes.

    Pairs that are rated have no events, as the rating says more. What is held out of ratings
    therefore leaves no event behind. `Ratings.with_events` makes them.

    Attributes
    ----------
    users, items : ndarray of int32
        Codes, as the ratings have them; sorted.
    kinds : ndarray of int16
        Places in ``names``.
    counts : ndarray of float64
        How often it happened.
    timestamps : ndarray of int64 or None
        Seconds since 1970 of the last time; 0 means unknown.
    names : tuple of str
        All kinds, the most frequent first.
    """

    users: np.ndarray
    items: np.ndarray
    kinds: np.ndarray
    counts: np.ndarray
    timestamps: np.ndarray | None
    names: tuple[str, ...]

    @property
    def times(self) -> np.ndarray:
        """The time of each event, 0 where unknown."""
        return np.zeros(len(self), np.int64) if self.timestamps is None else self.timestamps

    def __len__(self) -> int:
        return int(self.users.size)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame, user_ids: pd.Index, item_ids: pd.Index) -> Events:
        """Return the events of a frame, as `checked_events` returns it, of known ids."""
        users, items = codes_of(user_ids, frame["user"]), codes_of(item_ids, frame["item"])
        names = tuple(frame["kind"].value_counts().index.tolist())
        kinds = pd.Index(names).get_indexer(frame["kind"])
        times = frame["timestamp"].to_numpy() if "timestamp" in frame else None
        pairs = users * len(item_ids) + items
        given = frame["count"].to_numpy()
        rows, counts = counted_picks(pairs, kinds, given, times, len(names))
        order = np.lexsort((kinds[rows], pairs[rows]))
        times = None if times is None else times[rows[order]]
        return cls._of_rows(users, items, kinds, rows[order], counts[order], times, names)

    @classmethod
    def _of_rows(
        cls,
        users: np.ndarray,
        items: np.ndarray,
        kinds: np.ndarray,
        rows: np.ndarray,
        counts: np.ndarray,
        times: np.ndarray | None,
        names: tuple[str, ...],
    ) -> Events:
        codes = users[rows].astype(np.int32), items[rows].astype(np.int32)
        return cls(*codes, kinds[rows].astype(np.int16), counts, times, names)

    def to_frame(self, user_ids: pd.Index, item_ids: pd.Index) -> pd.DataFrame:
        """Return the events by original ids: user, item, kind, count, and timestamp if any."""
        columns: dict[str, Any] = {
            "user": user_ids.take(self.users),
            "item": item_ids.take(self.items),
            "kind": np.array(self.names, dtype=object)[self.kinds],
            "count": self.counts,
        }
        if self.timestamps is not None:
            columns["timestamp"] = self.timestamps
        return pd.DataFrame(columns)

    def summary(self) -> str:
        """Return how many events there are of each kind, such as "12 view, 1 buy"."""
        counts = np.bincount(self.kinds, minlength=len(self.names)).tolist()
        said = [f"{n:,} {name}" for n, name in zip(counts, self.names, strict=True) if n]
        return ", ".join(said) or "no events"

    def select(self, rows: np.ndarray) -> Events:
        """Return the events at these row numbers or mask; all kinds keep their names."""
        rows = np.arange(len(self))[rows]
        times = None if self.timestamps is None else self.timestamps[rows]
        columns = self.users, self.items, self.kinds
        return self._of_rows(*columns, rows, self.counts[rows], times, self.names)

    def without_pairs(self, users: np.ndarray, items: np.ndarray, n_items: int) -> Events:
        """Return the events of all other pairs, by codes."""
        own = self.users.astype(np.int64) * n_items + self.items
        held = users.astype(np.int64) * n_items + items
        return self.select(~np.isin(own, held))

    def of_strangers(self, kind: int, rng: np.random.Generator) -> Events:
        """Return the events with those of one kind, by place, given to others who have some."""
        of_kind = self.kinds == kind
        owners = np.unique(self.users[of_kind])
        others = dict(zip(owners.tolist(), rng.permutation(owners).tolist(), strict=True))
        users = self.users.copy()
        users[of_kind] = [others[user] for user in self.users[of_kind].tolist()]
        return replace(self, users=users)

    def recoded(self, users: np.ndarray, items: np.ndarray) -> Events:
        """Return the events with new codes in place of the old ones, -1 for those left out."""
        there = (users[self.users] >= 0) & (items[self.items] >= 0)
        kept = self.select(there)
        codes = users[kept.users], items[kept.items]
        order = np.lexsort((kept.kinds, codes[1], codes[0]))
        times = None if kept.timestamps is None else kept.timestamps[order]
        return self._of_rows(*codes, kept.kinds, order, kept.counts[order], times, self.names)


def kind_column(has: Sequence[Any], kind: str | None) -> str | None:
    """Return the name of the column of kinds; `KIND` may be absent, and then there is one kind."""
    if kind is None or (kind == KIND and kind not in has):
        return None
    if kind not in has:
        raise DataError(
            f"no column {kind!r} of kinds in the events (they have {list(map(str, has))}): name it "
            "with kind=, or pass kind=None for events of one kind",
            parameter="events.kind",
        )
    return kind


def checked_events(
    events: Any,
    *,
    user: str = "user",
    item: str = "item",
    kind: str | None = KIND,
    timestamp: str | None = TIMESTAMP,
    count: str | None = COUNT,
) -> pd.DataFrame:
    """Return a frame of events with the columns user, item, kind, count and possibly timestamp.

    Parameters
    ----------
    events : DataFrame
        Of any library that `Ratings.from_frame` takes.
    user, item, kind, timestamp, count : str
        Column names; the last three may be absent under their default names.

    Examples
    --------
    >>> seen = pd.DataFrame({"user_id": [1, 1], "item": ["tea", "soup"], "kind": ["view", "buy "]})
    >>> checked_events(seen)["kind"].tolist()
    ['view', 'buy']
    """
    table = as_pandas(events)
    kind = kind_column(list(table.columns), kind)
    columns = find_columns(table.columns, user, item, None, timestamp, None, count)
    if not len(table):
        raise DataError("the events have no rows: leave them out")
    found: dict[str, Any] = {}
    for name, column in (("user", columns.user), ("item", columns.item)):
        ids = single_column(table, column)
        missing = np.flatnonzero(ids.isna())
        if missing.size:
            raise DataError(f"row {missing[0]}: no {column} id ({missing.size} in all): drop them")
        found[name] = ids.to_numpy()
    found["kind"] = np.full(len(table), USUAL_KIND, dtype=object)
    if kind is not None:
        found["kind"] = _kinds(single_column(table, kind), kind)
    found["count"] = np.ones(len(table))
    if columns.n_picks is not None:
        found["count"] = as_counts(single_column(table, columns.n_picks), columns.n_picks)
    if columns.timestamp is not None:
        times = single_column(table, columns.timestamp)
        found["timestamp"] = as_seconds(times, columns.timestamp)
    return pd.DataFrame(found)


def _kinds(column: pd.Series, name: str) -> np.ndarray:
    """Return names of kinds, after a look at their spelling."""
    texts = pd.Series([str(plain(kind)).strip() for kind in column.astype(object)])
    texts = texts.mask(column.isna().to_numpy(), "")
    empty = np.flatnonzero((texts == "").to_numpy())
    if empty.size:
        raise DataError(
            f"row {empty[0]}: no {name} ({empty.size} in all): name the kind, or drop them"
        )
    counts = texts.value_counts()
    if len(counts) > MOST_KINDS:
        raise DataError(
            f"column {name!r} has {len(counts)} different values ({shown(counts.index[0])}, "
            f"{shown(counts.index[1])}, ...), more than {MOST_KINDS}: name the column of kinds "
            "with kind=, or pass kind=None for events of one kind",
            parameter="events.kind",
        )
    for place, kind in enumerate(counts.index):
        usual = counts.index[:place].tolist()
        twins = [other for other in usual if other.lower() == kind.lower()]
        row = int(np.argmax((texts == kind).to_numpy()))
        if twins:
            raise DataError(
                f"row {row}: {name} {kind!r} differs from {twins[0]!r} in capitals alone: "
                "write it in one way"
            )
        frequent = [other for other in usual if counts[kind] < RARE * counts[other]]
        alike = difflib.get_close_matches(kind, frequent, 1, ALIKE)
        if alike:
            warnings.warn(
                OrdrecWarning(
                    f"row {row}: {name} {kind!r} ({counts[kind]} rows) is taken for a kind of its "
                    f"own beside {alike[0]!r} ({counts[alike[0]]} rows): correct it if it is one",
                    parameter="events.kind",
                ),
                stacklevel=callers_level(),
            )
    return texts.to_numpy()


def in_errors(gain: np.ndarray) -> float:
    """Return the mean of what events bring, in its standard errors.

    Examples
    --------
    >>> in_errors(np.array([1.0, 3.0, 1.0, 3.0]))
    4.0
    """
    spread = float(gain.std())
    return float(gain.mean() * np.sqrt(gain.size) / spread) if spread else 0.0
