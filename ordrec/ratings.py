"""`Scale` and `Ratings`: the one table everything starts from.

A rating is an ordered category. The `Scale` declares which categories there are,
whether or not anybody used them, and travels with the data into every model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.errors import ArgumentError, DataError

__all__ = ["Ratings", "Scale"]

MAX_INFERRED_LEVELS = 60
BLOCK = 1 << 15

Duplicates = Literal["error", "last", "mean"]


class Scale:
    """The declared rating values, in ascending order.

    Parameters
    ----------
    values : iterable of float
        The distinct rating values. Rank ``k`` (1..``n_ranks``) is the k-th smallest.

    Examples
    --------
    >>> stars = Scale.regular(0.5, 5.0, 0.5)
    >>> stars.n_ranks
    10
    >>> stars.ranks_of([0.5, 4.0])
    array([1, 8])
    >>> stars.nearest([3.8, 9.0])
    array([4., 5.])
    """

    def __init__(self, values: Iterable[float]):
        array = np.unique(np.asarray(list(values), dtype=np.float64))
        if array.size < 2 or not np.isfinite(array).all():
            raise ArgumentError(
                f"a scale needs at least two distinct finite values, got {array.tolist()}"
            )
        array.setflags(write=False)
        self.values = array

    @classmethod
    def regular(cls, low: float, high: float, step: float = 1.0) -> Scale:
        """The values ``low, low + step, ..., high``."""
        if step <= 0 or high <= low:
            raise ArgumentError(f"need low < high and step > 0, got {low}, {high}, {step}")
        return cls(low + step * np.arange(round((high - low) / step) + 1))

    @classmethod
    def infer(cls, values: np.ndarray) -> Scale:
        """The scale behind observed values: a regular grid where they lie on one.

        Levels nobody used are filled in when all observed values are whole steps
        apart (1, 3, 4, 5 becomes 1..5); otherwise the distinct values are the scale.
        """
        distinct = np.unique(values)
        if distinct.size < 2:
            raise DataError(
                f"cannot infer a scale from the single rating value {distinct.tolist()}: "
                "pass scale=Scale(...)"
            )
        steps = np.diff(distinct) / np.diff(distinct).min()
        on_grid = np.allclose(steps, np.round(steps), atol=1e-6)
        n_levels = int(np.round(steps).sum()) + 1 if on_grid else distinct.size
        if n_levels > MAX_INFERRED_LEVELS:
            raise DataError(
                f"the ratings have {distinct.size} distinct values between {distinct[0]:g} and "
                f"{distinct[-1]:g}; declare the scale, or cut them into ranks with "
                "ordrec.datasets.discretise first"
            )
        if not on_grid:
            return cls(distinct)
        grid = distinct[0] + np.diff(distinct).min() * np.arange(n_levels)
        grid[np.round(np.concatenate([[0], np.cumsum(steps)])).astype(int)] = distinct
        return cls(grid)

    @property
    def n_ranks(self) -> int:
        """How many ranks there are."""
        return int(self.values.size)

    def ranks_of(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Ranks 1..``n_ranks`` of values that must lie on the scale."""
        array = np.asarray(values, dtype=np.float64)
        levels = self._levels(array)
        wrong = np.flatnonzero(levels < 0)
        if wrong.size:
            raise DataError(f"value {array.flat[wrong[0]]:g} is not on the scale {self}")
        return levels.astype(np.int64) + 1

    def values_of(self, ranks: Sequence[int] | np.ndarray) -> np.ndarray:
        """Rating values of ranks 1..``n_ranks``."""
        array = np.asarray(ranks)
        if array.size and (array.min() < 1 or array.max() > self.n_ranks):
            raise ArgumentError(f"ranks must lie in 1..{self.n_ranks}")
        return self.values[array - 1]

    def nearest(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """The scale value nearest to each number; ties go to the lower one."""
        array = np.asarray(values, dtype=np.float64)
        return self.values[np.searchsorted((self.values[1:] + self.values[:-1]) / 2, array)]

    def _levels(self, array: np.ndarray) -> np.ndarray:
        """Zero-based level of each value, -1 where it is not on the scale."""
        gap = np.diff(self.values).min()
        cuts = (self.values[1:] + self.values[:-1]) / 2
        levels = np.empty(array.shape, dtype=np.int16)
        for start in range(0, array.size, BLOCK):  # small blocks stay in the cache
            part = array.reshape(-1)[start : start + BLOCK]
            level = np.zeros(part.size, dtype=np.int16)
            for cut in cuts:
                level += part > cut
            off = ~(np.abs(self.values[level] - part) <= 1e-4 * gap)  # also true for NaN
            level[off] = -1
            levels.reshape(-1)[start : start + BLOCK] = level
        return levels

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scale) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __len__(self) -> int:
        return self.n_ranks

    def __repr__(self) -> str:
        steps = np.diff(self.values)
        if self.n_ranks > 3 and np.allclose(steps, steps[0]):
            return f"Scale({self.values[0]:g}..{self.values[-1]:g} by {steps[0]:g})"
        return f"Scale({', '.join(f'{v:g}' for v in self.values)})"


class Ratings:
    """An immutable table of user, item, rating and, if known, time.

    Build one with `Ratings.from_frame` or a loader of `ordrec.datasets`. Users and
    items are integer codes 0..n-1 inside; ``user_ids`` and ``item_ids`` give the
    original identifiers back. Parts made by `select` keep the codes of the whole,
    so that training and test parts speak of the same users and items.

    Attributes
    ----------
    users, items : ndarray of int32
        Codes, one a rating.
    levels : ndarray of int16
        Zero-based positions on the scale; ``ranks`` is ``levels + 1`` and ``values``
        the ratings themselves.
    timestamps : ndarray of int64 or None
        Seconds since 1970; 0 means unknown.
    scale : Scale
    user_ids, item_ids : pandas.Index
        Original identifier of each code.
    user_table, item_table : pandas.DataFrame or None
        Side information, one row a code, in code order.
    folds : mapping of str to bool ndarray
        Published partitions: True marks a test rating.
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
    ):
        self.users = _frozen(users, np.int32)
        self.items = _frozen(items, np.int32)
        self.levels = _frozen(levels, np.int16)
        self.timestamps = None if timestamps is None else _frozen(timestamps, np.int64)
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
                    "give one flag a rating"
                )
        self.name = name

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str = "user",
        item: str = "item",
        rating: str = "rating",
        timestamp: str | None = "timestamp",
        scale: Scale | Iterable[float] | None = None,
        duplicates: Duplicates = "error",
        user_table: pd.DataFrame | None = None,
        item_table: pd.DataFrame | None = None,
        folds: Mapping[str, np.ndarray] | None = None,
        name: str = "ratings",
    ) -> Ratings:
        """Check a table and turn it into `Ratings`.

        Parameters
        ----------
        frame : DataFrame
            pandas, or anything that offers the Arrow or the dataframe interchange
            protocol (polars, pyarrow, ...).
        user, item, rating, timestamp : str
            Column names. The timestamp column may be absent.
        scale : Scale or iterable of float, optional
            The declared rating values; inferred from the data when omitted.
        duplicates : {"error", "last", "mean"}
            What to do when a user rated an item twice: refuse, keep the last rating (by
            time, then by row), or take the scale value nearest to the mean.
        user_table, item_table : DataFrame indexed by original id, optional
            Side information. Rows for unknown ids are dropped, missing rows become NaN.
        folds : mapping of str to bool array, optional
            Published test parts, one flag a row of ``frame``. Not with merged duplicates.

        Raises
        ------
        DataError
            Naming the row (0-based, header not counted), the value and the remedy.
        """
        table = _as_pandas(frame)
        for column in (user, item, rating):
            if column not in table.columns:
                raise DataError(
                    f"no column {column!r} in the table (it has {list(map(str, table.columns))}): "
                    "name the columns with user=, item=, rating="
                )
        if duplicates not in ("error", "last", "mean"):
            raise ArgumentError(f'duplicates must be "error", "last" or "mean", got {duplicates!r}')
        if len(table) == 0:
            raise DataError("the table has no ratings")
        values = _as_numbers(table[rating], rating)
        users, user_ids = _encode(table[user], user)
        items, item_ids = _encode(table[item], item)
        times = None
        if timestamp is not None and timestamp in table.columns:
            times = _as_seconds(table[timestamp], timestamp)
        if scale is None:
            scale = Scale.infer(values)
        elif not isinstance(scale, Scale):
            scale = Scale(scale)
        levels = _on_scale(values, scale, rating)
        keep = _resolve_duplicates(
            users, items, levels, values, times, scale, duplicates, user_ids, item_ids
        )
        if keep is not None:
            if folds:
                raise DataError("duplicated ratings cannot be merged across published folds")
            rows, levels = keep
            users, items = users[rows], items[rows]
            times = None if times is None else times[rows]
        return cls(
            users,
            items,
            levels,
            scale=scale,
            user_ids=user_ids,
            item_ids=item_ids,
            timestamps=times,
            user_table=_side_table(user_table, user_ids, "user_table"),
            item_table=_side_table(item_table, item_ids, "item_table"),
            folds=folds,
            name=name,
        )

    # ---- sizes -------------------------------------------------------------------------

    @property
    def n_users(self) -> int:
        """Number of users, those without a rating in this part included."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of items, those without a rating in this part included."""
        return len(self.item_ids)

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        return int(self.users.size)

    @property
    def density(self) -> float:
        """Share of the user-item pairs that are rated."""
        return self.n_ratings / (self.n_users * self.n_items)

    def __len__(self) -> int:
        return self.n_ratings

    # ---- columns -----------------------------------------------------------------------

    @property
    def ranks(self) -> np.ndarray:
        """Ranks 1..``scale.n_ranks``."""
        return self.levels + np.int16(1)

    @property
    def values(self) -> np.ndarray:
        """Ratings in the data's own scale."""
        return self.scale.values[self.levels]

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame with original ids: user, item, rating and, if known, timestamp."""
        columns: dict[str, Any] = {
            "user": self.user_ids.take(self.users),
            "item": self.item_ids.take(self.items),
            "rating": self.values,
        }
        if self.timestamps is not None:
            columns["timestamp"] = self.timestamps
        return pd.DataFrame(columns)

    def matrix(self, entries: Literal["value", "rank", "one"] = "value") -> sparse.csr_array:
        """Item-by-user sparse matrix of ratings, ranks or ones.

        A rating of zero is a stored entry, not a missing one.
        """
        data: np.ndarray
        if entries == "value":
            data = self.values
        elif entries == "rank":
            data = self.ranks.astype(np.float64)
        elif entries == "one":
            data = np.ones(self.n_ratings)
        else:
            raise ArgumentError(f'entries must be "value", "rank" or "one", got {entries!r}')
        rows, start = self._by_item
        return sparse.csr_array(
            (data[rows], self.users[rows], start), shape=(self.n_items, self.n_users)
        )

    # ---- parts -------------------------------------------------------------------------

    def select(self, rows: np.ndarray) -> Ratings:
        """The ratings at the given row numbers or mask; ids and codes stay those of the whole."""
        rows = np.asarray(rows)
        return Ratings(
            self.users[rows],
            self.items[rows],
            self.levels[rows],
            scale=self.scale,
            user_ids=self.user_ids,
            item_ids=self.item_ids,
            timestamps=None if self.timestamps is None else self.timestamps[rows],
            user_table=self.user_table,
            item_table=self.item_table,
            folds={key: mask[rows] for key, mask in self.folds.items()},
            name=self.name,
        )

    def compact(self) -> Ratings:
        """The same ratings without users and items that have none."""
        user_codes, item_codes = np.flatnonzero(self.user_counts), np.flatnonzero(self.item_counts)
        users = (np.cumsum(self.user_counts > 0) - 1)[self.users]
        items = (np.cumsum(self.item_counts > 0) - 1)[self.items]
        return Ratings(
            users,
            items,
            self.levels,
            scale=self.scale,
            user_ids=self.user_ids.take(user_codes),
            item_ids=self.item_ids.take(item_codes),
            timestamps=self.timestamps,
            user_table=None if self.user_table is None else self.user_table.iloc[user_codes],
            item_table=None if self.item_table is None else self.item_table.iloc[item_codes],
            folds=self.folds,
            name=self.name,
        )

    def without_timestamps(self) -> Ratings:
        """The same ratings with the times forgotten."""
        return self._with(timestamps=None)

    def renamed(self, name: str) -> Ratings:
        """The same ratings under another name."""
        return self._with(name=name)

    def _with(self, **changes: Any) -> Ratings:
        fields = ("users", "items", "levels", "scale", "user_ids", "item_ids", "timestamps",
                  "user_table", "item_table", "folds", "name")  # fmt: skip
        return Ratings(**{field: getattr(self, field) for field in fields} | changes)

    def rows_of_user(self, code: int) -> np.ndarray:
        """Row numbers of one user's ratings, by user code, in row order."""
        rows, start = self._by_user
        return rows[start[code] : start[code + 1]]

    def rows_of_item(self, code: int) -> np.ndarray:
        """Row numbers of one item's ratings, by item code, in row order."""
        rows, start = self._by_item
        return rows[start[code] : start[code + 1]]

    def of_user(self, user: Any) -> pd.DataFrame:
        """One user's ratings, by original id."""
        return self.select(self.rows_of_user(self._code(self.user_ids, user, "user"))).to_frame()

    def of_item(self, item: Any) -> pd.DataFrame:
        """One item's ratings, by original id."""
        return self.select(self.rows_of_item(self._code(self.item_ids, item, "item"))).to_frame()

    def user_codes(self, ids: Any) -> np.ndarray:
        """Codes of original user ids, -1 for the unknown."""
        return np.asarray(self.user_ids.get_indexer(pd.Index(np.asarray(ids))), dtype=np.int64)

    def item_codes(self, ids: Any) -> np.ndarray:
        """Codes of original item ids, -1 for the unknown."""
        return np.asarray(self.item_ids.get_indexer(pd.Index(np.asarray(ids))), dtype=np.int64)

    @cached_property
    def user_counts(self) -> np.ndarray:
        """Number of ratings of each user."""
        return np.bincount(self.users, minlength=self.n_users)

    @cached_property
    def item_counts(self) -> np.ndarray:
        """Number of ratings of each item."""
        return np.bincount(self.items, minlength=self.n_items)

    @cached_property
    def _by_user(self) -> tuple[np.ndarray, np.ndarray]:
        return _grouped(self.users, self.user_counts)

    @cached_property
    def _by_item(self) -> tuple[np.ndarray, np.ndarray]:
        return _grouped(self.items, self.item_counts)

    @staticmethod
    def _code(ids: pd.Index, key: Any, kind: str) -> int:
        found = ids.get_indexer(pd.Index([key]))[0]
        if found < 0:
            raise ArgumentError(f"unknown {kind} {key!r} (known ids look like {_plain(ids[0])!r})")
        return int(found)

    def __repr__(self) -> str:
        counts = np.bincount(self.levels, minlength=self.scale.n_ranks)
        peak = max(int(counts.max(initial=0)), 1)
        bars = "".join(" ▁▂▃▄▅▆▇█"[int(np.ceil(8 * c / peak))] for c in counts)
        return (
            f"<Ratings {self.name}: {self.n_users} users x {self.n_items} items, "
            f"{self.n_ratings} ratings ({self.density:.2%}), {self.scale} |{bars}|"
            f"{'' if self.timestamps is None else ', dated'}>"
        )


# ---- checks on the way in --------------------------------------------------------------


def _plain(key: Any) -> Any:
    """An id as people write it: 7, not np.int64(7)."""
    return key.item() if isinstance(key, np.generic) else key


def _frozen(array: np.ndarray, dtype: Any) -> np.ndarray:
    array = np.ascontiguousarray(array, dtype=dtype).view()
    array.setflags(write=False)
    return array


def _as_pandas(frame: Any) -> pd.DataFrame:
    if isinstance(frame, pd.DataFrame):
        return frame
    if hasattr(frame, "to_pandas"):
        return frame.to_pandas()
    if hasattr(frame, "__dataframe__"):
        from pandas.api.interchange import from_dataframe

        return from_dataframe(frame)
    raise ArgumentError(f"need a data frame (pandas, polars, arrow), got {type(frame).__name__}")


def _as_numbers(column: pd.Series, name: str) -> np.ndarray:
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        numbers = pd.to_numeric(column, errors="coerce")
        row = int(np.flatnonzero(numbers.isna() & column.notna())[0])
        raise DataError(
            f"row {row}: {name} {_plain(column.iloc[row])!r} is not a number: "
            "correct or drop the row"
        ) from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(
            f"row {bad[0]}: {name} is {values[bad[0]]} ({bad.size} such rows): drop them first"
        )
    return values


def _as_seconds(column: pd.Series, name: str) -> np.ndarray:
    if pd.api.types.is_datetime64_any_dtype(column):
        missing = np.flatnonzero(column.isna())
        if missing.size:
            raise DataError(f"row {missing[0]}: no {name}: fill it, or pass timestamp=None")
        stamps = pd.DatetimeIndex(column)
        if stamps.tz is not None:
            stamps = stamps.tz_convert("UTC").tz_localize(None)
        return stamps.to_numpy("datetime64[s]").astype(np.int64)
    if pd.api.types.is_integer_dtype(column) and not column.hasnans:
        return column.to_numpy(np.int64, copy=True)  # the frame may change later
    values = _as_numbers(column, name)
    outside = np.flatnonzero(np.abs(values) > 2.0**53)
    if outside.size:
        raise DataError(f"row {outside[0]}: {name} {values[outside[0]]:g} is not a time in seconds")
    return values.astype(np.int64)


def _encode(column: pd.Series, name: str) -> tuple[np.ndarray, pd.Index]:
    """Codes in the order of the sorted ids, and the ids."""
    if pd.api.types.is_integer_dtype(column.dtype) and not column.hasnans:
        ids = column.to_numpy()
        low, high = int(ids.min()), int(ids.max())
        in_range = low >= -(2**63) and high < 2**63
        if in_range and high - low <= 8 * ids.size + 1024:  # a look-up table beats hashing
            offsets = ids.astype(np.int64) - low  # int8 ids would overflow
            seen = np.zeros(high - low + 1, dtype=np.bool_)
            seen[offsets] = True
            distinct = np.flatnonzero(seen)
            if distinct.size == seen.size:
                return offsets.astype(np.int32), pd.Index(distinct + low)
            code_at = np.cumsum(seen, dtype=np.int32) - np.int32(1)
            return code_at[offsets], pd.Index(distinct + low)
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(f"row {missing[0]}: no {name} id ({missing.size} such rows): drop them")
    if pd.api.types.is_float_dtype(column.dtype):
        values = column.to_numpy(np.float64)
        broken = np.flatnonzero(~(np.abs(values) < 2.0**53) | (values != np.floor(values)))
        if broken.size:
            raise DataError(
                f"row {broken[0]}: {name} id {values[broken[0]]:g} is not a whole number: "
                "turn the ids into integers or strings"
            )
        return _encode(pd.Series(values.astype(np.int64)), name)
    try:
        codes, levels = pd.factorize(column, sort=True)
    except TypeError:
        raise DataError(
            f"column {name!r} mixes ids of different types: turn them all into strings"
        ) from None
    return codes.astype(np.int32), pd.Index(levels)


def _on_scale(values: np.ndarray, scale: Scale, name: str) -> np.ndarray:
    levels = scale._levels(values)
    wrong = np.flatnonzero(levels < 0)
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {name} {values[wrong[0]]:g} is not on the declared scale {scale} "
            f"({wrong.size} such rows): declare the right scale, or drop them"
        )
    return levels


def _resolve_duplicates(
    users: np.ndarray,
    items: np.ndarray,
    levels: np.ndarray,
    values: np.ndarray,
    times: np.ndarray | None,
    scale: Scale,
    how: Duplicates,
    user_ids: pd.Index,
    item_ids: pd.Index,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows to keep and their levels, or None where nothing is duplicated."""
    key = users.astype(np.int64) * len(item_ids) + items
    if _all_distinct(key, len(user_ids) * len(item_ids)):
        return None
    order = np.lexsort((np.arange(key.size), key) if times is None else (times, key))
    first = np.flatnonzero(np.concatenate([[True], key[order][1:] != key[order][:-1]]))
    last = np.concatenate([first[1:], [key.size]]) - 1
    if how == "error":
        again = int(np.flatnonzero(last > first)[0])
        one, two = sorted(order[first[again] : first[again] + 2].tolist())
        raise DataError(
            f"row {two}: user {_plain(user_ids[users[two]])!r} rated item "
            f"{_plain(item_ids[items[two]])!r} "
            f"before, in row {one} ({int((last - first).sum())} such rows): "
            'pass duplicates="last" or duplicates="mean"'
        )
    rows = order[last]
    keep = np.argsort(rows, kind="stable")
    if how == "last":
        return rows[keep], levels[rows[keep]]
    means = np.add.reduceat(values[order], first) / (last - first + 1)
    return rows[keep], scale._levels(scale.nearest(means[keep]))


def _all_distinct(key: np.ndarray, n_possible: int) -> bool:
    """Whether no key in 0..n_possible-1 occurs twice."""
    if (key[1:] > key[:-1]).all():  # files are often sorted
        return True
    if n_possible <= max(16 * key.size, 1 << 26):  # marking beats sorting
        seen = np.zeros(n_possible, dtype=np.bool_)
        seen[key] = True
        return int(np.count_nonzero(seen)) == key.size
    ordered = np.sort(key)
    return not (ordered[1:] == ordered[:-1]).any()


def _side_table(table: pd.DataFrame | None, ids: pd.Index, name: str) -> pd.DataFrame | None:
    if table is None:
        return None
    if not table.index.is_unique:
        twice = table.index[table.index.duplicated()][0]
        raise DataError(f"{name}: id {_plain(twice)!r} has two rows: keep one")
    return table.reindex(ids)


def _grouped(codes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers sorted by code, and where each code starts (as in a CSR matrix)."""
    start = np.concatenate([[0], np.cumsum(counts)])
    return np.argsort(codes, kind="stable"), start
