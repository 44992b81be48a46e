"""Find and check the columns of a table of ratings: names, ids, numbers, scale, duplicates.

Every error names the row (0-based, header not counted), the value and the remedy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ordrec.data.ids import warn_of_twins
from ordrec.data.scale import Scale, refuse_stray, shown_values
from ordrec.data.scale_rules import zero_means_none
from ordrec.errors import ArgumentError, DataError, OrdrecWarning, callers_level

__all__ = [
    "MOST_PICKS",
    "TIMESTAMP",
    "USUAL_NAMES",
    "Columns",
    "Duplicates",
    "Missing",
    "as_counts",
    "as_numbers",
    "as_pandas",
    "as_weights",
    "chosen_scale",
    "counted_picks",
    "encode_ids",
    "find_columns",
    "find_pair_columns",
    "is_usual_name",
    "on_scale",
    "order_of",
    "plain",
    "ranks_of_words",
    "rated_rows",
    "resolve_duplicates",
    "say_no_ratings",
    "scale_for",
    "shown",
    "single_column",
]

Duplicates = Literal["error", "last", "mean"]
Missing = Literal["error", "drop"]
TIMESTAMP = "timestamp"  # name of the column of times unless another one is given
MOST_WORDS = 30  # that a message lists, and that anybody would put in an order
MOST_PICKS = 1e15  # of one item by one user, so that sums stay exact
COUNT = "count"  # name of the column of numbers of picks unless another one is given

# What columns are usually called, in lower case and without "_", "-" and blanks.
USUAL_NAMES = {
    "user": {"user", "userid", "customer", "customerid", "reader", "readerid",
             "reviewer", "reviewerid", "member", "memberid", "client", "clientid", "uid"},
    "item": {"item", "itemid", "movie", "movieid", "product", "productid", "book", "bookid",
             "song", "songid", "track", "trackid", "asin", "isbn", "sku",
             "article", "articleid", "film", "filmid", "game", "gameid", "iid"},
    "rating": {"rating", "ratings", "stars", "score", "bookrating", "starrating",
               "movierating", "reviewrating", "userrating", "itemrating", "productrating"},
    "time": {"time", "date", "datetime", "day", "when", "ts", "tstamp", "timestampms",
             "timestamputc", "rated", "ratedat", "ratedon", "created", "createdat", "createdon",
             "bought", "boughtat", "boughton", "ordered", "orderedat", "orderdate", "ordertime",
             "purchased", "purchasedat", "purchasedate", "watchedat", "playedat", "viewedat",
             "dateadded", "datetimeutc", "eventtime", "eventdate", "reviewed", "reviewdate",
             "reviewtime", "reviewtimestamp", "unixreviewtime", "ratingdate", "ratingtime",
             "ratingtimestamp"},
    # of judged documents
    "query": {"query", "queryid", "qid", "topic", "topicid", "search", "searchterm",
              "searchquery", "keyword", "keywords"},
    "document": {"document", "documentid", "docid", "doc", "docno", "id", "url"},
    "grade": {"grade", "relevance", "relevancegrade", "label", "rating", "judgement", "judgment"},
}  # fmt: skip


def plain(key: Any) -> Any:
    """Return an id as a plain Python object: 7, not np.int64(7)."""
    return key.item() if isinstance(key, np.generic) else key


def shown(value: Any) -> str:
    """Return a value as error messages show it: on one line, and not too long."""
    try:
        text = " ".join(repr(plain(value)).split())
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- names -------------------------------------------------------------------------------


class Columns(NamedTuple):
    """The names under which a table has the columns of ratings; None for a column it lacks."""

    user: str
    item: str
    rating: str | None
    timestamp: str | None = None
    weight: str | None = None
    n_picks: str | None = None


def is_usual_name(name: Any, kind: str) -> bool:
    """Whether a column called so usually holds users, items, ratings, times and the like.

    Parameters
    ----------
    name : object
    kind : {"user", "item", "rating", "time", "query", "document", "grade"}

    Examples
    --------
    >>> is_usual_name("Customer ID", "user"), is_usual_name("country", "user")
    (True, False)
    """
    return str(name).lower().translate(str.maketrans("", "", "_- ")) in USUAL_NAMES[kind]


def find_columns(
    has: Iterable[Any],
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    timestamp: str | None = TIMESTAMP,
    weight: str | None = None,
    count: str | None = COUNT,
    *,
    scale: Any = None,
) -> Columns:
    """Return the names under which a table has the columns of ratings.

    A column asked for under its default name may have another usual one, such as ``user_id``;
    `TIMESTAMP` may be absent, and a warning names a column that may hold times instead. Without a
    column of ratings, a warning says that what was picked is all that is known; `COUNT`, looked for
    only then, may be absent too.

    Parameters
    ----------
    has : iterable
        The names of all columns of the table.
    user, item, rating, timestamp, weight, count : str
        The names asked for; with ``rating=None``, the table is read without ratings.
    scale : Scale or iterable, optional
        The declared scale, on which there must be ratings unless it is one of picks.

    Examples
    --------
    >>> find_columns(["user_id", "movieId", "stars"])[:3]
    ('user_id', 'movieId', 'stars')
    >>> find_columns(["user", "item", "count"], rating=None).n_picks
    'count'
    """
    has = list(has)
    if timestamp == TIMESTAMP and timestamp not in has:
        _say_unread_times(has)
    user, item, timestamp = find_pair_columns(has, user, item, timestamp)
    if weight is not None and weight not in has:
        raise DataError(
            f"no column {weight!r} in the table (it has {list(map(str, has))}): name the column of "
            "weights with weight=, or leave it out",
            parameter="weight",
        )
    if rating is not None and not (isinstance(scale, Scale) and scale.only_picks):
        usual = [name for name in has if is_usual_name(name, "rating")]
        if rating in has or usual or rating != "rating" or scale is not None:
            return Columns(user, item, _found(has, rating, "rating"), timestamp, weight)
        say_no_ratings(
            f"the table has no column of ratings (it has {list(map(str, has))})",
            "Name the column with rating= if there are ratings, or pass rating=None to say that "
            "there are none",
            parameter="rating",
        )
    if weight is not None:
        raise DataError(
            f"weight={weight!r}: weights are for ratings, which the table does not have: leave it "
            "out, or give the numbers of picks as count=",
            parameter=("weight", "count"),
        )
    if count is not None and count not in has:
        if count != COUNT:
            raise _no_column(count, has)
        count = None
    return Columns(user, item, None, timestamp, None, count)


def say_no_ratings(why: str, remedy: str, parameter: str | tuple[str, ...]) -> None:
    """Warn that a table is read without ratings; the remedy names parameters."""
    warnings.warn(
        OrdrecWarning(
            f"{why}: what was picked is all that is known. {remedy}", parameter=parameter
        ),
        stacklevel=callers_level(),
    )


def _say_unread_times(has: list[Any]) -> None:
    unread = next((name for name in has if is_usual_name(name, "time")), None)
    if unread is not None:
        warnings.warn(
            OrdrecWarning(
                f'column {unread!r} may hold times and is not read: pass timestamp="{unread}", or '
                "timestamp=None to do without",
                parameter="timestamp",
            ),
            stacklevel=callers_level(),
        )


def find_pair_columns(
    has: Iterable[Any], user: str, item: str, timestamp: str | None
) -> tuple[str, str, str | None]:
    """Return the names of the columns of users, items and times; see `find_columns`."""
    has = list(has)
    if timestamp is not None and timestamp not in has:
        if timestamp != TIMESTAMP:
            raise _no_column(timestamp, has)
        timestamp = None
    return _found(has, user, "user"), _found(has, item, "item"), timestamp


def _found(has: list[Any], wanted: str, kind: str) -> str:
    if wanted in has:
        return wanted
    usual = [name for name in has if is_usual_name(name, kind)] if wanted == kind else []
    if len(usual) != 1:
        raise _no_column(wanted, has)
    return usual[0]


def _no_column(wanted: str, has: list[Any]) -> DataError:
    return DataError(
        f"no column {wanted!r} in the table (it has {list(map(str, has))}): "
        "name the columns with user=, item=, rating=, timestamp=",
        parameter=("user", "item", "rating", "timestamp"),
    )


def single_column(table: pd.DataFrame, name: str) -> pd.Series:
    """Return the column with this name, of which there must be exactly one."""
    column = table[name]
    if not isinstance(column, pd.Series):
        raise DataError(
            f"column {name!r} occurs more than once, or has several levels: keep one column"
        )
    return column


# ---- frames and numbers ------------------------------------------------------------------


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a data frame of any supported library as a pandas frame.

    Parameters
    ----------
    frame : data frame
        Of pandas, polars, pyarrow, DuckDB or another library that narwhals knows, lazy ones
        included (they are computed here), or any object with Arrow's ``__arrow_c_stream__``.

    Examples
    --------
    >>> import pyarrow
    >>> as_pandas(pyarrow.table({"user": [1, 2]}))["user"].tolist()
    [1, 2]
    """
    if isinstance(frame, pd.DataFrame):
        return frame
    import narwhals as nw

    try:
        known = nw.from_native(frame)
    except TypeError:
        known = _from_arrow(frame)
    return (known.collect() if isinstance(known, nw.LazyFrame) else known).to_pandas()


def _from_arrow(frame: Any) -> Any:
    """An object of a library that narwhals does not know, by the protocol of Arrow."""
    import narwhals as nw

    try:
        if hasattr(frame, "__arrow_c_stream__"):
            return nw.from_arrow(frame, backend="pyarrow")
    except ValueError:  # a stream of something else than a table
        pass
    raise ArgumentError(
        f"need a data frame (pandas, polars, arrow, ...), got {type(frame).__name__}"
    )


def as_numbers(column: pd.Series, name: str) -> np.ndarray:
    """Return the column as finite floats."""
    if getattr(column.dtype, "kind", "O") in "mMc":  # numpy would convert times to numbers
        raise DataError(f"column {name!r} holds {column.dtype}, not numbers: convert it first")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError, np.exceptions.ComplexWarning):
        row, value = _first_non_number(column)
        raise DataError(
            f"row {row}: {name} {shown(value)} is not a number: correct or drop the row"
        ) from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(
            f"row {bad[0]}: {name} is {values[bad[0]]} ({bad.size} in all): drop them first"
        )
    return values


def _first_non_number(column: pd.Series) -> tuple[int, Any]:
    for row, value in enumerate(column):
        try:
            if np.iscomplexobj(value):
                return row, value
            float(value)
        except (TypeError, ValueError, OverflowError):
            if value is not pd.NA and value is not None:
                return row, value
    return 0, column.iloc[0]


def order_of(ratings: pd.Series, name: str) -> list[str] | None:
    """Return the words of an ordered Categorical from the worst to the best; None for numbers.

    Words without an order are refused: which of them is better is not for a program to guess.

    Examples
    --------
    >>> order_of(pd.Series(pd.Categorical(["good"], ["poor", "good"], ordered=True)), "rating")
    ['poor', 'good']
    """
    kind = ratings.dtype
    if isinstance(kind, pd.CategoricalDtype):
        named = kind.categories.tolist()
        if kind.ordered and all(isinstance(each, str) and not _is_numeric(each) for each in named):
            return named
    elif pd.api.types.is_numeric_dtype(kind):
        return None
    try:
        distinct = ratings.unique()
    except TypeError:  # lists, say: the first one is named where numbers are read
        return None
    words = {each.strip() for each in distinct if isinstance(each, str) and each.strip()}
    if 2 <= len(words) <= MOST_WORDS and not any(map(_is_numeric, words)):
        listed = ", ".join(map(shown, sorted(words)))
        raise DataError(
            f"{name} holds words and no numbers ({listed}): name all of them from the worst to the "
            "best with scale=poor,fair,good",
            parameter="scale",
        )
    return None


def _is_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def rated_rows(frame: pd.DataFrame, rating: str, missing: Missing) -> np.ndarray | None:
    """Return which rows have a rating, None if all do; a warning counts those to be dropped."""
    if missing not in ("error", "drop"):
        raise ArgumentError(f'missing must be "error" or "drop", got {missing!r}')
    column = single_column(frame, rating)
    absent = column.isna().to_numpy()
    if not pd.api.types.is_numeric_dtype(column):
        blank = [isinstance(each, str) and not each.strip() for each in column]
        absent = absent | np.array(blank, dtype=np.bool_)
    if not absent.any():
        return None
    if missing == "error":
        raise DataError(
            f"row {int(np.argmax(absent))}: {rating} is nan ({int(absent.sum())} in all): drop "
            'them first, or pass missing="drop"',
            parameter="missing",
        )
    warnings.warn(
        f"{int(absent.sum())} of {len(frame)} rows have no rating and are dropped",
        stacklevel=callers_level(),
    )
    return ~absent


def means_no_rating(frame: pd.DataFrame, rating: str, no_rating: float) -> np.ndarray:
    """Return which rows hold the number that stands for "no rating"; neither all nor none of them.

    Examples
    --------
    >>> means_no_rating(pd.DataFrame({"rating": [0, 4, 0]}), "rating", 0)
    array([ True, False,  True])
    """
    none = as_numbers(single_column(frame, rating), rating) == no_rating
    if none.all() or not none.any():
        how_many = "all of them are" if none.size and none.all() else "none of them is"
        raise DataError(
            f"{rating}: no_rating={no_rating:g} is to take some ratings for none, and {how_many} "
            f"{no_rating:g}: leave it out",
            parameter="no_rating",
        )
    return none


def ranks_of_words(column: pd.Series, words: list[str], name: str) -> np.ndarray:
    """Return 1, 2, ... for ratings that are words, which are given from the worst to the best.

    Examples
    --------
    >>> ranks_of_words(pd.Series(["good", "poor"]), ["poor", "fair", "good"], "rating")
    array([3., 1.])
    """
    if len(set(words)) < max(len(words), 2):
        raise ArgumentError(f"scale must name at least two different words, got {words}")
    ranks = {word: float(rank) for rank, word in enumerate(words, start=1)}
    # anything else, such as a list, need not even be hashable
    found = [ranks.get(cell.strip()) if isinstance(cell, str) else None for cell in column]
    values = np.array(found, dtype=np.float64)
    wrong = np.flatnonzero(np.isnan(values))
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {name} {shown(column.iloc[wrong[0]])} is none of {', '.join(words)} "
            f"({wrong.size} in all): add it to scale=, or drop them",
            parameter="scale",
        )
    return values


def as_weights(column: pd.Series, name: str) -> np.ndarray:
    """Return a column of numbers from 0 to 1, which say how much each rating counts.

    Examples
    --------
    >>> as_weights(pd.Series([1, 0.5]), "sure")
    array([1. , 0.5])
    """
    weights = as_numbers(column, name)
    wrong = np.flatnonzero((weights < 0) | (weights > 1))
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {name} {weights[wrong[0]]:g} is not a weight from 0 to 1 "
            f"({wrong.size} in all): divide all weights by the largest"
        )
    return weights


def as_counts(column: pd.Series, name: str) -> np.ndarray:
    """Return a column of numbers of at least 1, which say how often items were picked.

    Examples
    --------
    >>> as_counts(pd.Series([1, 12]), "plays")
    array([ 1., 12.])
    """
    counts = as_numbers(column, name)
    wrong = np.flatnonzero((counts < 1) | (counts >= MOST_PICKS))
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {name} {counts[wrong[0]]:g} is not a number of picks from 1 up "
            f"({wrong.size} in all): drop rows of what was not picked"
        )
    return counts


# ---- ids ---------------------------------------------------------------------------------


def encode_ids(column: pd.Series, name: str) -> tuple[np.ndarray, pd.Index]:
    """Return the code of each row, and the sorted distinct ids that the codes number."""
    if pd.api.types.is_integer_dtype(column.dtype) and not column.hasnans:
        ids = column.to_numpy()
        low, high = int(ids.min()), int(ids.max())
        in_range = low >= -(2**63) and high < 2**63
        if in_range and high - low <= 8 * ids.size + 1024:  # a look-up table is faster than hashing
            offsets = ids.astype(np.int64) - low  # int8 ids would overflow
            seen = np.zeros(high - low + 1, dtype=np.bool_)
            seen[offsets] = True
            distinct = np.flatnonzero(seen)
            if distinct.size == seen.size:
                return offsets.astype(np.int32), pd.Index(distinct + low)
            code_at = np.cumsum(seen, dtype=np.int32) - np.int32(1)
            return code_at[offsets], pd.Index(distinct + low)
        if in_range:  # all ids that are numbers have one type, unless they do not fit into it
            column = pd.Series(ids.astype(np.int64), name=column.name)
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(f"row {missing[0]}: no {name} id ({missing.size} in all): drop them")
    if pd.api.types.is_float_dtype(column.dtype):
        values = column.to_numpy(np.float64)
        broken = np.flatnonzero(~(np.abs(values) < 2.0**53) | (values != np.floor(values)))
        if broken.size:
            raise DataError(
                f"row {broken[0]}: {name} id {values[broken[0]]:g} is not a whole number: "
                "turn the ids into integers or strings"
            )
        return encode_ids(pd.Series(values.astype(np.int64)), name)
    try:
        codes, levels = pd.factorize(column, sort=True)
        # a string with half of a character can neither be hashed nor written
        "".join(key for key in levels if isinstance(key, str)).encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"column {name!r}: an id holds {error.object[error.start]!r}, half of a character: "
            "decode the ids again"
        ) from None
    except (TypeError, ValueError, OverflowError):
        odd = [each for each in column if isinstance(each, list | dict | set | np.ndarray)]
        if odd:
            raise DataError(
                f"column {name!r}: {shown(odd[0])} is no id: ids are numbers or strings"
            ) from None
        raise DataError(
            f"column {name!r} mixes ids of different types: turn them all into strings"
        ) from None
    ids = pd.Index(levels)
    warn_of_twins(ids, name)
    return codes.astype(np.int32), ids


# ---- the scale ---------------------------------------------------------------------------


def on_scale(values: np.ndarray, scale: Scale, name: str) -> np.ndarray:
    """Return the zero-based levels of ratings, all of which must be on the declared scale."""
    levels = scale.levels_of(values)
    wrong = np.flatnonzero(levels < 0)
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {name} {values[wrong[0]]:g} is not on the declared scale {scale} "
            f"({wrong.size} in all): declare the right scale, or drop them"
        )
    return levels


def scale_for(values: np.ndarray, scale: Scale | Iterable[float] | None, name: str) -> Scale:
    """Return the scale of ratings in memory; see `chosen_scale`.

    Parameters
    ----------
    values : array of float
    scale : Scale or iterable of float, optional
        The declared scale; all ratings must be on it.
    name : str
        Of the column, for errors.
    """
    if scale is not None and not isinstance(scale, Scale):
        scale = Scale(scale)
    if scale is not None:
        if not scale.is_fine:
            return scale
        on_scale(values, scale, name)
    distinct, counts = np.unique(values, return_counts=True)
    if scale is None and zero_means_none(distinct, counts):
        warnings.warn(
            OrdrecWarning(
                f"{counts[0] / counts.sum():.0%} of the ratings are 0, and the others are "
                f"{distinct[1]:g} to {distinct[-1]:g}: if 0 means that there is no rating, pass "
                "no_rating=0; if it is the lowest rating, declare the scale with scale=",
                parameter=("no_rating", "scale"),
            ),
            stacklevel=callers_level(),
        )
    return chosen_scale(
        distinct, counts, scale, lambda value: f"row {int(np.argmax(values == value))}"
    )


def chosen_scale(
    distinct: np.ndarray,
    counts: np.ndarray,
    declared: Scale | None,
    place_of: Callable[[float], str],
) -> Scale:
    """Return the declared scale, or an inferred one; bins, with a warning, if it is fine.

    Parameters
    ----------
    distinct, counts : arrays
        The different ratings, in ascending order, and how often each is given.
    declared : Scale or None
    place_of : callable
        Where a rating was first read, for errors.

    Raises
    ------
    DataError
        Without a declared scale: for a rating that cannot be on the scale of all others.
    """
    if declared is None:
        refuse_stray(distinct, counts, place_of)
        scale = Scale.of_counts(distinct, counts)
    else:
        scale = declared.in_bins(distinct, counts)
    if scale.edges is not None and scale is not declared:
        warnings.warn(
            OrdrecWarning(
                f"{distinct.size} different ratings between {scale.low:g} and {scale.high:g} were "
                f"put into {scale.n_ranks} bins, whose means are {shown_values(scale.values)}. "
                "Models work on the bins and predict in the units of the ratings. To choose "
                "otherwise, pass scale=Scale.binned(ratings, bins=20)",
                parameter="scale",
            ),
            stacklevel=callers_level(),
        )
    return scale


# ---- duplicates --------------------------------------------------------------------------


def resolve_duplicates(
    users: np.ndarray,
    items: np.ndarray,
    levels: np.ndarray,
    values: np.ndarray,
    times: np.ndarray | None,
    scale: Scale,
    duplicates: Duplicates,
    user_ids: pd.Index,
    item_ids: pd.Index,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the rows to keep, their levels and values, or None if no pair was rated twice."""
    key = users.astype(np.int64) * len(item_ids) + items
    if _all_distinct(key, len(user_ids) * len(item_ids)):
        return None
    order = np.lexsort((np.arange(key.size), key) if times is None else (times, key))
    first = np.flatnonzero(np.concatenate([[True], key[order][1:] != key[order][:-1]]))
    last = np.concatenate([first[1:], [key.size]]) - 1
    if duplicates == "error":
        again = int(np.flatnonzero(last > first)[0])
        one, two = sorted(order[first[again] : first[again] + 2].tolist())
        raise DataError(
            f"row {two}: user {plain(user_ids[users[two]])!r} rated item "
            f"{plain(item_ids[items[two]])!r} "
            f"before, in row {one} ({int((last - first).sum())} in all): "
            'pass duplicates="last" or duplicates="mean"',
            parameter="duplicates",
        )
    rows = order[last]
    keep = np.argsort(rows, kind="stable")
    if duplicates == "last":
        return rows[keep], levels[rows[keep]], values[rows[keep]]
    means = (np.add.reduceat(values[order], first) / (last - first + 1))[keep]
    if scale.edges is None:  # bins hold any value, other scales only their own
        means = scale.nearest(means)
    return rows[keep], scale.levels_of(means), means


def counted_picks(
    users: np.ndarray,
    items: np.ndarray,
    counts: np.ndarray,
    times: np.ndarray | None,
    n_items: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return one row per pair of user and item, the latest, and how often each was picked.

    Rows stay in the order of the table.

    Examples
    --------
    >>> users, items = np.array([0, 0, 1, 0]), np.array([3, 2, 3, 3])
    >>> counted_picks(users, items, np.ones(4), None, 4)
    (array([1, 2, 3]), array([1., 1., 2.]))
    """
    key = users.astype(np.int64) * n_items + items
    order = np.lexsort((key,) if times is None else (times, key))
    first = np.flatnonzero(np.concatenate([[True], key[order][1:] != key[order][:-1]]))
    rows = order[np.append(first[1:], key.size) - 1]
    place = np.argsort(rows)
    return rows[place], np.add.reduceat(counts[order], first)[place]


def first_times(
    users: np.ndarray, items: np.ndarray, times: np.ndarray, rows: np.ndarray, n_items: int
) -> np.ndarray:
    """Return the first known time of the pair in each of these rows, 0 where none is known.

    Examples
    --------
    >>> users, items = np.array([0, 0, 1, 0]), np.array([3, 2, 3, 3])
    >>> first_times(users, items, np.array([7, 0, 4, 9]), np.array([1, 2, 3]), 4)
    array([0, 4, 7])
    """
    unknown = np.iinfo(np.int64).max
    distinct, pair = np.unique(users.astype(np.int64) * n_items + items, return_inverse=True)
    first = np.full(distinct.size, unknown)
    np.minimum.at(first, pair, np.where(times > 0, times, unknown))
    found = first[pair[rows]]
    return np.where(found < unknown, found, 0)


def _all_distinct(key: np.ndarray, n_possible: int) -> bool:
    """Whether no key in 0..n_possible-1 occurs twice."""
    if (key[1:] > key[:-1]).all():  # files are often sorted
        return True
    if n_possible <= max(16 * key.size, 1 << 26):  # marking is faster than sorting
        seen = np.zeros(n_possible, dtype=np.bool_)
        seen[key] = True
        return int(np.count_nonzero(seen)) == key.size
    ordered = np.sort(key)
    return not (ordered[1:] == ordered[:-1]).any()
