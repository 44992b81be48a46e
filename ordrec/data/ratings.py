"""`Ratings`: the table of ratings that every model is fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.data.columns import (
    Columns,
    Duplicates,
    Missing,
    as_counts,
    as_numbers,
    as_pandas,
    as_weights,
    counted_picks,
    encode_ids,
    find_columns,
    first_times,
    means_no_rating,
    on_scale,
    order_of,
    plain,
    ranks_of_words,
    rated_rows,
    resolve_duplicates,
    say_no_ratings,
    scale_for,
    shown,
    single_column,
)
from ordrec.data.events import KIND, NO_RATING, Events, checked_events
from ordrec.data.groups import Groups, RatingGroups
from ordrec.data.ids import codes_of, with_further_ids
from ordrec.data.scale import Scale
from ordrec.data.side_tables import extended_side_table, side_table
from ordrec.data.times import as_seconds
from ordrec.errors import ArgumentError, DataError
from ordrec.runtime.notebooks import facts_html

if TYPE_CHECKING:
    from ordrec.data.on_disk.scan import RatingsScan

__all__ = ["Duplicates", "Ratings", "Scale", "as_ratings", "core_rows"]

_STATE = ("users", "items", "levels", "scale", "user_ids", "item_ids", "timestamps",
          "user_table", "item_table", "name", "binned_values", "weights", "events",
          "first_timestamps")  # fmt: skip


class Ratings:
    """An immutable table of user, item, rating and, if known, time.

    A table without ratings (purchases, clicks, views) is one too: every pair of a user and an item
    in it was picked, once or more often, and ``has_ratings`` is False. Choice models and
    `Recommender` learn from it; models that predict ratings refuse it.

    Build one with `Ratings.from_frame` or a loader of `ordrec.datasets`. Internally,
    users and items are integer codes 0..n-1; ``user_ids`` and ``item_ids`` map them to
    the original identifiers. Parts made by `select` keep the codes of the whole table,
    so that training and test parts refer to the same users and items.

    Attributes
    ----------
    users, items : ndarray of int32
        Codes, one per rating.
    levels : ndarray of int16
        Zero-based positions on the scale; ``ranks`` is ``levels + 1`` and ``values``
        are the ratings themselves (kept in ``binned_values`` where levels are bins of them).
        Without ratings, all levels are 1, and values are the numbers of picks.
    timestamps : ndarray of int64 or None
        Seconds since 1970; 0 means unknown. Of several picks of an item, the time of the last.
    first_timestamps : ndarray of int64 or None
        Without ratings: the time of the first of several picks.
    weights : ndarray of float64 or None
        How much each rating counts, in 0..1. `OrdinalFactors` and `PerUserPredictor` use them;
        other models warn that for them every rating counts as 1.
    events : Events or None
        What users did with items without rating them, see `with_events`.
    scale : Scale
    user_ids, item_ids : pandas.Index
        Original identifier of each code.
    user_table, item_table : pandas.DataFrame or None
        Side information, one row per code, in code order.
    folds : mapping of str to bool ndarray
        Published partitions: True marks the test ratings.
    name : str
        Shown in tables.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": [7, 9, 7],
    ...                       "rating": [4.0, 2.0, 5.0]})
    >>> ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    >>> ratings.n_users, ratings.n_items, ratings.n_ratings
    (2, 2, 3)
    >>> ratings.of_user("ann")["rating"].tolist()
    [4.0, 2.0]
    """

    def __init__(
        self,
        users: np.ndarray,
        items: np.ndarray,
        levels: np.ndarray,
        *,
        scale: Scale,
        user_ids: pd.Index,
        item_ids: pd.Index,
        timestamps: np.ndarray | None = None,
        user_table: pd.DataFrame | None = None,
        item_table: pd.DataFrame | None = None,
        folds: Mapping[str, np.ndarray] | None = None,
        name: str = "ratings",
        binned_values: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        events: Events | None = None,
        first_timestamps: np.ndarray | None = None,
    ):
        self.users = _frozen(users, np.int32)
        self.items = _frozen(items, np.int32)
        self.levels = _frozen(levels, np.int16)
        self.binned_values = None if binned_values is None else _frozen(binned_values, np.float64)
        self.timestamps = None if timestamps is None else _frozen(timestamps, np.int64)
        self.first_timestamps = (
            None if first_timestamps is None else _frozen(first_timestamps, np.int64)
        )
        self.weights = None if weights is None else _frozen(weights, np.float64)
        self.events = events
        self.scale = scale
        self.user_ids = user_ids
        self.item_ids = item_ids
        self.user_table = user_table
        self.item_table = item_table
        self.folds = MappingProxyType({k: _frozen(v, np.bool_) for k, v in (folds or {}).items()})
        for fold, mask in self.folds.items():
            if mask.shape != self.users.shape:
                raise ArgumentError(
                    f"fold {fold!r} has shape {mask.shape} for {self.n_ratings} ratings: "
                    "give one flag per rating"
                )
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by the constructor: arrays come back read-only, caches empty."""
        state = {key: self.__dict__[key] for key in _STATE} | {"folds": dict(self.folds)}
        return partial(Ratings, **state), ()

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str = "user",
        item: str = "item",
        rating: str | None = "rating",
        timestamp: str | None = "timestamp",
        scale: Scale | Iterable[float] | Iterable[str] | None = None,
        duplicates: Duplicates = "error",
        user_table: pd.DataFrame | None = None,
        item_table: pd.DataFrame | None = None,
        folds: Mapping[str, np.ndarray] | None = None,
        name: str = "ratings",
        weight: str | None = None,
        count: str | None = "count",
        new_items: bool = False,
        missing: Missing = "error",
        no_rating: float | None = None,
    ) -> Ratings:
        """Make `Ratings` from a data frame, after checking it.

        Parameters
        ----------
        frame : DataFrame
            Of pandas, polars, pyarrow, DuckDB or another library that speaks Arrow; lazy ones too.
        user, item, rating, timestamp : str
            Column names. "timestamp" may be absent; the others are also found under usual names
            such as "user_id" and "stars". Times are seconds since 1970 or (texts of) dates.
            Where no column of ratings is found, or all ratings are the same, the table is read as
            one without ratings, with a warning; ``rating=None`` says so beforehand.
        scale : Scale or iterable of float or str, optional
            The declared rating values; inferred from the data when omitted. More than 60 of them
            (0..100, real numbers) are put into bins, with a warning; see `Scale.binned`. Words from
            the worst to the best, such as ["poor", "fair", "good"], are read as 1, 2, 3; those of
            an ordered Categorical need not be named.
        duplicates : {"error", "last", "mean"}
            What to do if a user rated an item twice: raise an error, keep the last rating
            (by time, then by row), or take the scale value nearest to the mean. Without ratings,
            repeated rows are counted.
        user_table, item_table : DataFrame, optional
            Side information, indexed by original id or with a column of ids ("item", "item_id",
            "movieId", ...). Rows for unknown ids are dropped, missing rows become NaN.
        folds : mapping of str to bool array, optional
            Published test parts, one flag per row of ``frame``. They cannot be combined with
            merging duplicates.
        weight : str, optional
            The column that says how much each rating counts, in 0..1.
        count : str, optional
            For a table without ratings: the column that says how often the user picked the item.
            "count" may be absent.
        new_items : bool
            Whether the items of ``item_table`` that nobody has rated are items of the table, too;
            see `with_side_tables`.
        missing : {"error", "drop"}
            What to do with rows without a rating; a warning says how many are dropped.
        no_rating : float, optional
            The number that stands for "no rating", such as the 0 of Book-Crossing: its rows become
            events of the kind "no rating", see `with_events`.

        Raises
        ------
        DataError
            Naming the row (0-based, header not counted), the value and the remedy.

        Examples
        --------
        >>> clicks = pd.DataFrame({"user": [1, 1, 2], "item": ["tea", "tea", "soup"]})
        >>> Ratings.from_frame(clicks, rating=None).to_frame()["count"].tolist()
        [2, 1]
        """
        table = as_pandas(frame)
        columns = find_columns(
            table.columns, user, item, rating, timestamp, weight, count, scale=scale
        )
        unrated = None
        if columns.rating is not None:
            rated = rated_rows(table, columns.rating, missing)
            if rated is not None:
                table = table[rated]
                folds = {fold: mask[rated] for fold, mask in (folds or {}).items()}
            if no_rating is not None:
                none = means_no_rating(table, columns.rating, no_rating)
                table, unrated = table[~none], table[none]
                folds = {fold: mask[~none] for fold, mask in (folds or {}).items()}
        ratings = cls.from_columns(
            table,
            columns,
            scale=scale,
            duplicates=duplicates,
            user_table=user_table,
            item_table=None if new_items else item_table,
            folds=folds,
            name=name,
        )
        if unrated is not None:
            ratings = ratings.with_unrated(unrated, columns)
        if not new_items:
            return ratings
        if isinstance(item_table, pd.DataFrame) and columns.item in item_table:
            item_table = item_table.rename(columns={columns.item: "item"})
        return ratings.with_side_tables(item_table=item_table, new_items=True)

    @classmethod
    def from_columns(
        cls,
        table: pd.DataFrame,
        columns: Columns,
        *,
        scale: Scale | Iterable[float] | Iterable[str] | None = None,
        duplicates: Duplicates = "error",
        user_table: pd.DataFrame | None = None,
        item_table: pd.DataFrame | None = None,
        folds: Mapping[str, np.ndarray] | None = None,
        name: str = "ratings",
    ) -> Ratings:
        """Make `Ratings` from a table whose columns were found; see `from_frame`."""
        if duplicates not in ("error", "last", "mean"):
            raise ArgumentError(f'duplicates must be "error", "last" or "mean", got {duplicates!r}')
        if len(table) == 0:
            raise DataError("the table has no ratings")
        if columns.rating is not None and scale is None and _all_the_same(table, columns.rating):
            value = single_column(table, columns.rating).iloc[0]
            say_no_ratings(
                f"all ratings are {shown(value)}",
                "Pass scale=Scale(...) if other ratings are possible, or rating=None to say that "
                "these are none",
                parameter=("scale", "rating"),
            )
            columns = columns._replace(rating=None)
        if columns.rating is None:
            return cls._of_picks(table, columns, user_table, item_table, folds, name)
        given = single_column(table, columns.rating)
        if not (scale is None or isinstance(scale, Scale | Iterable)):
            raise ArgumentError(
                f"scale must be a Scale or all possible ratings in order, got {scale!r}",
                parameter="scale",
            )
        declared: Any = scale if scale is None or isinstance(scale, Scale) else list(scale)
        if declared is None:
            declared = order_of(given, columns.rating)
        if isinstance(declared, list) and all(isinstance(word, str) for word in declared):
            given = pd.Series(ranks_of_words(given, declared, columns.rating))
            declared = range(1, len(declared) + 1)
        values = as_numbers(given, columns.rating)
        users, user_ids = encode_ids(single_column(table, columns.user), columns.user)
        items, item_ids = encode_ids(single_column(table, columns.item), columns.item)
        times = weights = None
        if columns.timestamp is not None:
            times = as_seconds(single_column(table, columns.timestamp), columns.timestamp)
        if columns.weight is not None:
            weights = as_weights(single_column(table, columns.weight), columns.weight)
        scale = scale_for(values, declared, columns.rating)
        levels = on_scale(values, scale, columns.rating)
        keep = resolve_duplicates(
            users, items, levels, values, times, scale, duplicates, user_ids, item_ids
        )
        if keep is not None:
            if folds:
                raise DataError("duplicated ratings cannot be merged across published folds")
            rows, levels, values = keep
            users, items = users[rows], items[rows]
            times = None if times is None else times[rows]
            weights = None if weights is None else weights[rows]
        return cls(
            users,
            items,
            levels,
            scale=scale,
            user_ids=user_ids,
            item_ids=item_ids,
            timestamps=times,
            user_table=side_table(user_table, user_ids, "user", columns.user),
            item_table=side_table(item_table, item_ids, "item", columns.item),
            folds=folds,
            name=name,
            binned_values=None if scale.edges is None else values,
            weights=weights,
        )

    @classmethod
    def _of_picks(
        cls,
        table: pd.DataFrame,
        columns: Columns,
        user_table: pd.DataFrame | None,
        item_table: pd.DataFrame | None,
        folds: Mapping[str, np.ndarray] | None,
        name: str,
    ) -> Ratings:
        """Make a table without ratings: one row per pair, with its number of picks."""
        users, user_ids = encode_ids(single_column(table, columns.user), columns.user)
        items, item_ids = encode_ids(single_column(table, columns.item), columns.item)
        times, counts = None, np.ones(users.size)
        if columns.timestamp is not None:
            times = as_seconds(single_column(table, columns.timestamp), columns.timestamp)
        if columns.n_picks is not None:
            counts = as_counts(single_column(table, columns.n_picks), columns.n_picks)
        rows, counts = counted_picks(users, items, counts, times, len(item_ids))
        first = None if times is None else first_times(users, items, times, rows, len(item_ids))
        if folds and rows.size < users.size:
            raise DataError("repeated picks cannot be counted across published folds")
        return cls(
            users[rows],
            items[rows],
            np.ones(rows.size, dtype=np.int16),
            scale=Scale.of_picks(),
            user_ids=user_ids,
            item_ids=item_ids,
            timestamps=None if times is None else times[rows],
            user_table=side_table(user_table, user_ids, "user", columns.user),
            item_table=side_table(item_table, item_ids, "item", columns.item),
            folds=folds,
            name=name,
            binned_values=counts,
            first_timestamps=first,
        )

    @staticmethod
    def scan(
        path: str | Path,
        *,
        user: str = "user",
        item: str = "item",
        rating: str | None = "rating",
        timestamp: str | None = "timestamp",
        weight: str | None = None,
        count: str | None = "count",
        scale: Scale | Iterable[float] | None = None,
    ) -> RatingsScan:
        """Open a folder of parquet files, partitioned by user, without loading the ratings.

        `ordrec.data.on_disk.scan.scan_ratings` explains the parameters and folders from elsewhere.
        """
        from ordrec.data.on_disk.scan import scan_ratings

        return scan_ratings(
            path, user=user, item=item, rating=rating, timestamp=timestamp, weight=weight,
            count=count, scale=scale,
        )  # fmt: skip

    def to_partitions(self, path: str | Path, *, rows_per_part: int = 1_000_000) -> None:
        """Write the ratings and their side tables to a folder for `Ratings.scan`."""
        from ordrec.data.on_disk.partitions import write_partitions

        write_partitions([self], path, rows_per_part=rows_per_part)

    # ---- sizes -------------------------------------------------------------------------

    @property
    def n_users(self) -> int:
        """Number of users, including those without a rating in this part."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of items, including those without a rating in this part."""
        return len(self.item_ids)

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        return int(self.users.size)

    @property
    def has_ratings(self) -> bool:
        """Whether users said what they think of items; if not, they only picked them."""
        return not self.scale.only_picks

    @property
    def density(self) -> float:
        """Fraction of all user-item pairs that are rated."""
        return self.n_ratings / max(self.n_users * self.n_items, 1)

    def __len__(self) -> int:
        return self.n_ratings

    # ---- columns -----------------------------------------------------------------------

    @property
    def ranks(self) -> np.ndarray:
        """Ranks 1..``scale.n_ranks``."""
        return self.levels + np.int16(1)

    @property
    def values(self) -> np.ndarray:
        """The ratings, in their own units."""
        return self.scale.values[self.levels] if self.binned_values is None else self.binned_values

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with original ids: user, item, rating, and timestamp and weight if any.

        Without ratings, ``count`` takes the place of ``rating``, and ``first`` is the time of the
        first pick where ``timestamp`` is that of the last.
        """
        columns: dict[str, Any] = {
            "user": self.user_ids.take(self.users),
            "item": self.item_ids.take(self.items),
        }
        if self.has_ratings:
            columns["rating"] = self.values
        else:
            whole = (self.values == np.rint(self.values)).all()
            columns["count"] = self.values.astype(np.int64) if whole else self.values
        if self.timestamps is not None:
            columns["timestamp"] = self.timestamps
        if self.first_timestamps is not None:
            columns["first"] = self.first_timestamps
        if self.weights is not None:
            columns["weight"] = self.weights
        return pd.DataFrame(columns)

    def matrix(self, entries: str = "value") -> sparse.csr_array:
        """Return the item-by-user sparse matrix of "value", "rank", "one" or "weight".

        A rating of zero is a stored entry, not a missing one.
        """
        column: dict[str, Callable[[], Any]] = {
            "value": lambda: self.values,
            "rank": lambda: self.ranks,
            "one": lambda: np.ones(self.n_ratings),
            "weight": lambda: np.ones(self.n_ratings) if self.weights is None else self.weights,
        }
        if entries not in column:
            raise ArgumentError(f"entries must be one of {', '.join(column)}, got {entries!r}")
        data = column[entries]().astype(np.float64)
        by_item = self.by_item()
        cells = data[by_item.order], by_item.users, by_item.start
        return sparse.csr_array(cells, shape=(self.n_items, self.n_users))

    # ---- parts -------------------------------------------------------------------------

    def select(self, rows: np.ndarray) -> Ratings:
        """Return the ratings at the given row numbers or mask, with all ids and codes unchanged."""
        rows = np.asarray(rows)
        columns = ("users", "items", "levels", "timestamps", "binned_values", "weights",
                   "first_timestamps")  # fmt: skip
        whole = {key: self.__dict__[key] for key in columns if self.__dict__[key] is not None}
        return self._replaced(
            **{key: column[rows] for key, column in whole.items()},
            folds={key: mask[rows] for key, mask in self.folds.items()},
        )

    def compact(self) -> Ratings:
        """Return the same ratings without the users and items that have none; codes change.

        Users and items of events alone are left out, too.
        """
        user_codes, item_codes = np.flatnonzero(self.user_counts), np.flatnonzero(self.item_counts)
        new_users, new_items = (
            np.where(counts > 0, np.cumsum(counts > 0) - 1, -1)
            for counts in (self.user_counts, self.item_counts)
        )
        return self._replaced(
            users=new_users[self.users],
            items=new_items[self.items],
            events=None if self.events is None else self.events.recoded(new_users, new_items),
            user_ids=self.user_ids.take(user_codes),
            item_ids=self.item_ids.take(item_codes),
            user_table=None if self.user_table is None else self.user_table.iloc[user_codes],
            item_table=None if self.item_table is None else self.item_table.iloc[item_codes],
        )

    def core(self, k: int) -> Ratings:
        """Return the ratings of users and items with at least ``k`` of them each, compact.

        Users and items with fewer are removed until nothing changes (the k-core). If no rating
        remains, the result is empty.

        Examples
        --------
        >>> frame = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 2],
        ...                       "rating": [5, 4, 3, 4, 2]})
        >>> Ratings.from_frame(frame).core(2).n_ratings
        4
        """
        return self.select(core_rows(self.users, self.items, k)).compact()

    def without_timestamps(self) -> Ratings:
        """Return the same ratings, and events, without their times."""
        events = None if self.events is None else replace(self.events, timestamps=None)
        return self._replaced(timestamps=None, first_timestamps=None, events=events)

    def without_weights(self) -> Ratings:
        """Return the same ratings, all of which count alike."""
        return self._replaced(weights=None)

    def with_events(
        self,
        events: Any,
        *,
        user: str = "user",
        item: str = "item",
        kind: str | None = KIND,
        timestamp: str | None = "timestamp",
        count: str | None = "count",
    ) -> Ratings:
        """Return the same ratings with what users did beside rating: views, purchases, bookmarks.

        Models learn from them whom and what ratings are similar to: choice models count each kind
        by a weight that is chosen in training, and may be 0; rating models learn from who has met
        what. Lists leave out what a user has met, unless its kinds have no weight. Where a user has
        rated the item, the rating says more, and the event is left out.

        Parameters
        ----------
        events : DataFrame, or Ratings without ratings
            One row per event, or several of the same, which are counted. Users and items without
            ratings are added to those of the table. Events that the ratings have already stay.
        user, item, kind, timestamp, count : str
            Column names, as in `from_frame`; those of kinds, times and counts may be absent.

        Examples
        --------
        >>> frame = pd.DataFrame({"user": [1, 2], "item": ["tea", "tea"], "rating": [3, 4]})
        >>> views = pd.DataFrame({"user": [1, 1], "item": ["tea", "soup"], "kind": "view"})
        >>> ratings = Ratings.from_frame(frame).with_events(views)
        >>> ratings
        <Ratings ratings: 2 users x 2 items, 2 ratings (50.00%), Scale(3, 4) |██|, 1 view>
        >>> ratings.events_frame()["item"].tolist()
        ['soup']
        """
        if isinstance(events, Ratings):
            if events.has_ratings:
                raise ArgumentError(
                    "events must be a data frame, or a table without ratings "
                    "(Ratings.from_frame(views, rating=None))"
                )
            events = events.to_frame()
        frame = checked_events(
            events, user=user, item=item, kind=kind, timestamp=timestamp, count=count
        )
        if self.events is not None:
            earlier = self.events_frame()
            if ("timestamp" in earlier) != ("timestamp" in frame):
                earlier, frame = (
                    each.assign(timestamp=each.get("timestamp", 0)) for each in (earlier, frame)
                )
            frame = pd.concat([earlier, frame], ignore_index=True)
        return self._with_checked_events(frame)

    def with_unrated(self, table: pd.DataFrame, columns: Columns) -> Ratings:
        """Return the same ratings with rows of their table that hold none, as events."""
        frame = checked_events(
            table, user=columns.user, item=columns.item, kind=None,
            timestamp=columns.timestamp, count=None,
        )  # fmt: skip
        return self._with_checked_events(frame.assign(kind=NO_RATING))

    def _with_checked_events(self, frame: pd.DataFrame) -> Ratings:
        """Add events of known and further users and items in place of those there are."""
        changes: dict[str, Any] = {}
        for name, ids in (("user", self.user_ids), ("item", self.item_ids)):
            changes[f"{name}_ids"] = everyone = with_further_ids(ids, frame[name], name)
            table = getattr(self, f"{name}_table")
            if table is not None:
                rows = table.set_axis(ids, axis=0).reindex(everyone)
                changes[f"{name}_table"] = rows
        found = Events.of_frame(frame, changes["user_ids"], changes["item_ids"])
        rated = found.without_pairs(self.users, self.items, len(changes["item_ids"]))
        return self._replaced(**changes, events=rated)

    def without_events(self) -> Ratings:
        """Return the same ratings without events; users and items stay."""
        return self._replaced(events=None)

    def with_events_where(self, rows: np.ndarray) -> Ratings:
        """Return the same ratings with some of their events, given by a mask."""
        return self._replaced(events=None if self.events is None else self.events.select(rows))

    def with_strangers(self, kind: int, seed: int) -> Ratings:
        """Return the same ratings with the events of one kind given to other users, at random.

        What is learnt from these is chance: a comparison for what is learnt from the true ones.
        """
        assert self.events is not None
        events = self.events.of_strangers(kind, np.random.default_rng(seed))
        return self._replaced(events=events.without_pairs(self.users, self.items, self.n_items))

    def events_matrix(self) -> sparse.csr_array:
        """Return the user-by-item sparse matrix of how many kinds of events a pair has."""
        shape = self.n_users, self.n_items
        if self.events is None:
            return sparse.csr_array(shape)
        cells = self.events.users, self.events.items
        return sparse.csr_array((np.ones(len(self.events)), cells), shape=shape)

    def events_frame(self) -> pd.DataFrame:
        """Return the events by original ids: user, item, kind, count, and timestamp if any."""
        if self.events is None:
            raise ArgumentError("the ratings have no events: add some by with_events")
        return self.events.to_frame(self.user_ids, self.item_ids)

    def without_ratings(self) -> Ratings:
        """Return the table of what was picked, once each; weights are left out.

        Examples
        --------
        >>> frame = pd.DataFrame({"user": 1, "item": [1, 2], "rating": [3, 4]})
        >>> Ratings.from_frame(frame).without_ratings()
        <Ratings ratings: 1 users x 2 items, 2 picks (100.00%)>
        """
        if not self.has_ratings:
            return self
        return self._replaced(
            scale=Scale.of_picks(),
            levels=np.ones(self.n_ratings, dtype=np.int16),
            binned_values=np.ones(self.n_ratings),
            weights=None,
        )

    def with_side_tables(
        self, user_table: Any = None, item_table: Any = None, *, new_items: bool = False
    ) -> Ratings:
        """Return the same ratings with these columns of users and items, besides those they have.

        Parameters
        ----------
        user_table, item_table : DataFrame, optional
            As in `from_frame`; columns of the same name are replaced. An array of numbers with one
            row per id, in the order of ``user_ids`` or ``item_ids``, becomes the column "vector".
        new_items : bool
            Whether the items of ``item_table`` that nobody has rated become items of the table:
            models predict them from their columns, and `Recommender` lists them. Without, their
            rows are left out.

        Examples
        --------
        >>> sold = pd.DataFrame({"user": [1, 2], "item": ["tea", "tea"]})
        >>> shop = pd.DataFrame({"item": ["tea", "soup"], "price": [3.0, 4.0]})
        >>> sold = Ratings.from_frame(sold, rating=None)
        >>> sold.with_side_tables(item_table=shop, new_items=True).item_ids.tolist()
        ['tea', 'soup']
        """
        users = side_table(user_table, self.user_ids, "user", "user", self.user_table)
        if item_table is not None and new_items:
            item_ids, extended = extended_side_table(
                item_table, self.item_ids, "item", "item", self.item_table
            )
            return self._replaced(user_table=users, item_table=extended, item_ids=item_ids)
        items = side_table(item_table, self.item_ids, "item", "item", self.item_table)
        return self._replaced(user_table=users, item_table=items)

    def on_scale(self, scale: Scale) -> Ratings:
        """Return the same ratings on another scale, by value; all of them must be on it.

        Examples
        --------
        >>> frame = pd.DataFrame({"user": 1, "item": [1, 2, 3], "rating": [3, 4, 5]})
        >>> Ratings.from_frame(frame).on_scale(Scale.regular(1, 5)).ranks
        array([3, 4, 5], dtype=int16)
        """
        if scale == self.scale:
            return self
        if scale.only_picks:
            return self.without_ratings()
        if not self.has_ratings:
            raise DataError(
                f"the table has no ratings, and ratings on the {scale} are asked for: name its "
                "column of ratings with rating=",
                parameter="rating",
            )
        levels = on_scale(self.values, scale, "rating")
        binned = None if scale.edges is None else self.values
        return self._replaced(scale=scale, levels=levels, binned_values=binned)

    def renamed(self, name: str) -> Ratings:
        """Return the same ratings with another name."""
        return self._replaced(name=name)

    def _replaced(self, **changes: Any) -> Ratings:
        return Ratings(**{key: self.__dict__[key] for key in (*_STATE, "folds")} | changes)

    # ---- by user and by item ---------------------------------------------------------------

    def by_user(self) -> RatingGroups:
        """Return the ratings sorted by user code, in their own order within each user.

        The order is computed once. Every model that goes through the ratings of one user after
        the other should take it from here.

        Examples
        --------
        >>> frame = pd.DataFrame({"user": [2, 1, 2], "item": [7, 9, 9], "rating": [1, 2, 3]})
        >>> by_user = Ratings.from_frame(frame).by_user()
        >>> by_user.start, by_user.items, by_user.values
        (array([0, 1, 3]), array([1, 0, 1], dtype=int32), array([2., 1., 3.]))
        """
        return RatingGroups(self._user_groups.start, self._user_groups.order, self)

    def by_item(self) -> RatingGroups:
        """Return the ratings sorted by item code, in their own order within each item."""
        return RatingGroups(self._item_groups.start, self._item_groups.order, self)

    def rows_of_user(self, code: int) -> np.ndarray:
        """Return the row numbers of one user's ratings, by user code, in ascending order."""
        return self._user_groups.rows(code)

    def rows_of_item(self, code: int) -> np.ndarray:
        """Return the row numbers of one item's ratings, by item code, in ascending order."""
        return self._item_groups.rows(code)

    def of_user(self, user: Any) -> pd.DataFrame:
        """Return one user's ratings as a frame, by original id."""
        return self.select(self.rows_of_user(self._code(self.user_ids, user, "user"))).to_frame()

    def of_item(self, item: Any) -> pd.DataFrame:
        """Return one item's ratings as a frame, by original id."""
        return self.select(self.rows_of_item(self._code(self.item_ids, item, "item"))).to_frame()

    def user_codes(self, ids: Any) -> np.ndarray:
        """Return the codes of original user ids, -1 for unknown ones."""
        return codes_of(self.user_ids, ids)

    def item_codes(self, ids: Any) -> np.ndarray:
        """Return the codes of original item ids, -1 for unknown ones."""
        return codes_of(self.item_ids, ids)

    @cached_property
    def user_counts(self) -> np.ndarray:
        """Number of ratings of each user."""
        return np.bincount(self.users, minlength=self.n_users)

    @cached_property
    def item_counts(self) -> np.ndarray:
        """Number of ratings of each item."""
        return np.bincount(self.items, minlength=self.n_items)

    @cached_property
    def _user_groups(self) -> Groups:
        return Groups.of(self.users, self.n_users)

    @cached_property
    def _item_groups(self) -> Groups:
        return Groups.of(self.items, self.n_items)

    @staticmethod
    def _code(ids: pd.Index, key: Any, kind: str) -> int:
        found = codes_of(ids, [key])[0]
        if found < 0:
            raise ArgumentError(f"unknown {kind} {key!r} (known ids look like {plain(ids[0])!r})")
        return int(found)

    @property
    def _bars(self) -> str:
        """How often each value was given, as a line of bars."""
        counts = np.bincount(self.levels, minlength=self.scale.n_ranks)
        peak = max(int(counts.max(initial=0)), 1)
        return "".join(" ▁▂▃▄▅▆▇█"[int(np.ceil(8 * c / peak))] for c in counts)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        facts = {
            "users": f"{self.n_users:,}",
            "items": f"{self.n_items:,}",
            "ratings": f"{self.n_ratings:,} ({self.density:.2%} of all pairs)",
            "scale": f"{self.scale} |{self._bars}|",
            "times": "no" if self.timestamps is None else "yes",
            "weights": "no" if self.weights is None else "yes",
        }
        if self.events is not None:
            facts["events"] = self.events.summary()
        for name, table in {"about users": self.user_table, "about items": self.item_table}.items():
            if table is not None:
                facts[name] = ", ".join(map(str, table.columns))
        return facts_html(f"Ratings {self.name}", facts)

    def __repr__(self) -> str:
        sizes = f"<Ratings {self.name}: {self.n_users} users x {self.n_items} items, "
        dated = "" if self.timestamps is None else ", dated"
        events = "" if self.events is None else f", {self.events.summary()}"
        if not self.has_ratings:
            repeated = ", with counts" if (self.values > 1).any() else ""
            return f"{sizes}{self.n_ratings} picks ({self.density:.2%}){repeated}{dated}{events}>"
        return (
            f"{sizes}{self.n_ratings} ratings ({self.density:.2%}), {self.scale} |{self._bars}|"
            f"{dated}{'' if self.weights is None else ', weighted'}{events}>"
        )


def as_ratings(table: Any, scale: Scale | None = None) -> Ratings:
    """Return ratings, or those of a data frame as `Ratings.from_frame` reads them.

    Parameters
    ----------
    table : Ratings or DataFrame
        A frame has the columns user, item and rating, under these or other usual names, and
        possibly timestamp; without ratings, it is a table of what was picked.
    scale : Scale, optional
        The scale of the ratings in a frame; inferred when omitted.

    Examples
    --------
    >>> as_ratings(pd.DataFrame({"user_id": [1, 1], "movieId": [3, 4], "stars": [5, 2]})).n_ratings
    2
    """
    if isinstance(table, Ratings):
        return table
    try:
        frame = as_pandas(table)
    except ArgumentError:
        raise ArgumentError(
            "ratings must be Ratings or a data frame with the columns user, item and rating, got "
            f"{type(table).__name__}: see Ratings.from_frame and load_ratings"
        ) from None
    return Ratings.from_frame(frame, scale=scale)


def core_rows(users: np.ndarray, items: np.ndarray, k: int) -> np.ndarray:
    """Return the rows of the k-core of the graph of users and items, ascending.

    Users and items with fewer than ``k`` of the remaining rows are removed until nothing changes.

    Parameters
    ----------
    users, items : arrays of int
        Codes from 0, one per row.
    k : int
        At least 1.

    Examples
    --------
    >>> core_rows(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1]), 2).tolist()
    [0, 1, 2, 3]
    """
    given: Any = k
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise ArgumentError(f"k must be a whole number of at least 1, got {k!r}")
    rows = np.arange(users.size)
    while True:
        n_of_user, n_of_item = np.bincount(users[rows]), np.bincount(items[rows])
        enough = (n_of_user[users[rows]] >= k) & (n_of_item[items[rows]] >= k)
        if enough.all():
            return rows
        rows = rows[enough]


def _all_the_same(table: pd.DataFrame, name: str) -> bool:
    """Whether a column has the same number in all rows, of which there is more than one."""
    column = single_column(table, name)
    first: Any = column.iloc[0]
    number = (int, float, np.number)
    if len(column) < 2 or not isinstance(first, number):
        return False
    if not abs(first) < np.inf:  # type: ignore[operator]
        return False
    if pd.api.types.is_numeric_dtype(column):
        return bool((column == first).all())
    return all(isinstance(each, number) and each == first for each in column)  # objects of any kind


def _frozen(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A read-only view of an array, converted if need be."""
    array = np.ascontiguousarray(array, dtype=dtype).view()
    array.setflags(write=False)
    return array
