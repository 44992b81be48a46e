"""Ratings and Scale: round trips, views, duplicates, and what they refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings, Scale
from ordrec.data.columns import _all_distinct
from ordrec.errors import ArgumentError, DataError

STARS = Scale.regular(1, 5)

ids = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 8), st.sampled_from([-128, -1, 0, 127])
)
names = st.text(max_size=4)


@st.composite
def frames(draw, keys=ids, unique=True):
    """Tables with distinct (user, item) pairs unless told otherwise."""
    pairs = draw(st.lists(st.tuples(keys, keys), min_size=1, max_size=25, unique=unique))
    n = len(pairs)
    values = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    times = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    users, items = zip(*pairs, strict=True)
    return pd.DataFrame(
        {
            "user": pd.Series(users),
            "item": pd.Series(items),
            "rating": np.array(values, dtype=np.float64),
            "timestamp": times,
        }
    )


# ---- round trips -----------------------------------------------------------------------


@given(st.one_of(frames(), frames(names)))
def test_to_frame_gives_back_what_came_in(frame):
    ratings = Ratings.from_frame(frame, scale=STARS)
    back = ratings.to_frame()
    assert back["user"].tolist() == frame["user"].tolist()
    assert back["item"].tolist() == frame["item"].tolist()
    assert back["rating"].tolist() == frame["rating"].tolist()
    assert back["timestamp"].tolist() == frame["timestamp"].tolist()
    assert ratings.user_ids.tolist() == sorted(set(frame["user"]))  # codes follow the ids' order
    assert ratings.item_ids.tolist() == sorted(set(frame["item"]))
    again = Ratings.from_frame(back, scale=STARS)
    assert again.users.tolist() == ratings.users.tolist()
    assert again.items.tolist() == ratings.items.tolist()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "Int64"])
def test_every_integer_type_of_ids(dtype):
    info = np.iinfo(dtype.lower())
    values = [info.min, info.max, 2, 1, info.max - 1] if info.bits < 64 else [5, 900, 2, 1, 899]
    frame = pd.DataFrame({"user": pd.array(values, dtype=dtype), "item": 1, "rating": 3.0})
    ratings = Ratings.from_frame(frame, scale=STARS)
    assert ratings.user_ids.tolist() == sorted(values)
    assert ratings.to_frame()["user"].tolist() == values


def test_unsigned_ids_beyond_int64():
    values = np.array([2**64 - 1, 2**64 - 2, 0], dtype=np.uint64)
    ratings = Ratings.from_frame(
        pd.DataFrame({"user": values, "item": 1, "rating": 3.0}), scale=STARS
    )
    assert ratings.to_frame()["user"].tolist() == values.tolist()


def lazily(frame):
    """A lazy frame of polars, which computes its ids when it is collected."""
    ids = pl.col("item") // 10
    return pl.from_pandas(frame.assign(item=10 * frame["item"])).lazy().with_columns(item=ids)


def in_duckdb(frame):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))


class OnlyArrow:
    """A frame that offers the protocol of Arrow streams and nothing else."""

    def __init__(self, frame):
        self._table = pa.Table.from_pandas(frame)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, lazily, pa.Table.from_pandas, in_duckdb, OnlyArrow]
)
def test_other_frames_equal_pandas(convert):
    frame = pd.DataFrame(
        {"user": ["b", "a", "b"], "item": [3, 3, 1], "rating": [1.0, 2.5, 5.0], "timestamp": 7}
    )
    ours = Ratings.from_frame(frame)
    theirs = Ratings.from_frame(convert(frame))
    assert theirs.to_frame().to_numpy().tolist() == ours.to_frame().to_numpy().tolist()


@pytest.mark.parametrize("table", [[1, 2], {"user": [1]}, None, np.zeros((2, 3)), pl.Series([1])])
def test_what_is_no_frame_is_refused(table):
    with pytest.raises(ArgumentError, match="data frame"):
        Ratings.from_frame(table)


def test_a_lazy_frame_of_polars_as_side_table():
    frame = pd.DataFrame({"user": ["b", "a", "b"], "item": [3, 3, 1], "rating": [1.0, 2.5, 5.0]})
    prices = pl.DataFrame({"item": [1, 3], "price": [0.5, 2.0]}).lazy()
    ratings = Ratings.from_frame(frame, item_table=prices)
    assert ratings.item_table["price"].tolist() == [0.5, 2.0]


@given(frames())
def test_matrix_views_and_counts_agree(frame):
    ratings = Ratings.from_frame(frame, scale=STARS)
    matrix = ratings.matrix()
    assert matrix.shape == (ratings.n_items, ratings.n_users)
    dense = np.zeros(matrix.shape)
    dense[ratings.items, ratings.users] = ratings.values
    np.testing.assert_array_equal(matrix.toarray(), dense)
    np.testing.assert_array_equal(ratings.matrix("rank").toarray(), dense)  # 1..5: rank is value
    np.testing.assert_array_equal(ratings.matrix("one").toarray(), dense > 0)
    assert ratings.user_counts.sum() == ratings.item_counts.sum() == ratings.n_ratings
    for code in range(ratings.n_users):
        rows = ratings.rows_of_user(code)
        assert rows.tolist() == np.flatnonzero(ratings.users == code).tolist()
    for code in range(ratings.n_items):
        rows = ratings.rows_of_item(code)
        assert rows.tolist() == np.flatnonzero(ratings.items == code).tolist()
    user = frame["user"].iloc[0]
    assert ratings.of_user(user)["rating"].tolist() == (
        frame.loc[frame["user"] == user, "rating"].tolist()
    )


def test_a_rating_of_zero_is_stored():
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [0.0, 3.0]})
    matrix = Ratings.from_frame(frame, scale=range(6)).matrix()
    assert matrix.nnz == 2


@given(frames(), st.data())
def test_select_and_compact(frame, data):
    frame["test"] = data.draw(st.lists(st.booleans(), min_size=len(frame), max_size=len(frame)))
    side = pd.DataFrame({"n": np.arange(frame["user"].nunique())}, index=sorted(set(frame["user"])))
    whole = Ratings.from_frame(
        frame, scale=STARS, folds={"t": frame["test"].to_numpy()}, user_table=side
    )
    mask = whole.folds["t"]
    part, rest = whole.select(mask), whole.select(~mask)
    assert part.n_ratings + rest.n_ratings == whole.n_ratings
    assert part.n_users == whole.n_users  # the same people, rated or not
    assert part.folds["t"].all()
    small = part.compact()
    assert small.to_frame().equals(part.to_frame())
    assert small.folds["t"].tolist() == [True] * part.n_ratings
    assert small.n_users == len(set(part.users.tolist()))
    assert small.user_table.index.tolist() == small.user_ids.tolist()
    assert (small.user_counts > 0).all()
    assert (small.item_counts > 0).all()


def test_codes_of_ids():
    frame = pd.DataFrame({"user": ["x", "y"], "item": [10, 30], "rating": [1, 2]})
    ratings = Ratings.from_frame(frame, scale=STARS)
    assert ratings.user_codes(["y", "nobody", "x"]).tolist() == [1, -1, 0]
    assert ratings.item_codes([30, 31]).tolist() == [1, -1]
    with pytest.raises(ArgumentError, match=r"unknown item 7 \(known ids look like 10\)"):
        ratings.of_item(7)


def test_immutable():
    ratings = Ratings.from_frame(
        pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1.0, 3.0]}),
        scale=STARS,
        folds={"a": np.array([True, False])},
    )
    for array in (ratings.users, ratings.items, ratings.levels, ratings.folds["a"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError):
        ratings.folds["b"] = 1
    assert ratings.renamed("other").name == "other"
    assert ratings.name == "ratings"
    assert ratings.without_timestamps().timestamps is None


def test_changing_the_frame_later_changes_nothing():
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1, 3], "timestamp": [5, 6]})
    ratings = Ratings.from_frame(frame, scale=STARS)
    frame.loc[:, :] = 2
    times = frame["timestamp"].to_numpy(copy=False)
    if times.flags.writeable:
        times[:] = 9
    assert ratings.timestamps.tolist() == [5, 6]
    assert ratings.values.tolist() == [1, 3]


def test_prints_itself():
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1, 5], "timestamp": 3})
    text = repr(Ratings.from_frame(frame, scale=STARS, name="mine"))
    assert (
        text == "<Ratings mine: 2 users x 1 items, 2 ratings (100.00%), "
        "Scale(1..5 by 1) |█   █|, dated>"
    )


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        (pd.to_datetime(["1970-01-02", "2000-01-01"]), [86400, 946684800]),
        (pd.to_datetime(["1970-01-02", "2000-01-01"]).tz_localize("Etc/GMT-2"), [79200, 946677600]),
        (pd.to_datetime(["1970-01-02", "2000-01-01"]).astype("datetime64[ms]"), [86400, 946684800]),
        ([86400.0, 12.9], [86400, 12]),
        (pd.array([1, 2], dtype="Int64"), [1, 2]),
    ],
)
def test_times(times, seconds):
    frame = pd.DataFrame({"user": [1, 2], "item": 1, "rating": [1, 2], "timestamp": times})
    assert Ratings.from_frame(frame, scale=STARS).timestamps.tolist() == seconds


# ---- duplicates ------------------------------------------------------------------------


@given(frames(st.integers(0, 3), unique=False))
def test_duplicates_against_pandas(frame):
    twice = frame.duplicated(["user", "item"])
    if twice.any():
        with pytest.raises(DataError, match=r"rated item .* before.*duplicates=\"last\""):
            Ratings.from_frame(frame, scale=STARS)
    ordered = frame.reset_index().sort_values(["timestamp", "index"], kind="stable")
    last = ordered.drop_duplicates(["user", "item"], keep="last").sort_values("index")
    got = Ratings.from_frame(frame, scale=STARS, duplicates="last").to_frame()
    columns = ["user", "item", "rating", "timestamp"]
    assert got[columns].to_numpy().tolist() == last[columns].to_numpy().tolist()
    mean = frame.groupby(["user", "item"])["rating"].mean()
    got = Ratings.from_frame(frame, scale=STARS, duplicates="mean").to_frame()
    assert len(got) == len(mean)
    for row in got.itertuples():
        assert row.rating == STARS.nearest([mean[(row.user, row.item)]])[0]


def test_duplicate_error_names_both_rows():
    frame = pd.DataFrame(
        {
            "user": ["a", "b", "a", "a"],
            "item": [7, 7, 7, 8],
            "rating": 3.0,
            "timestamp": [9, 1, 2, 3],
        }
    )
    with pytest.raises(DataError, match=r"row 2: user 'a' rated item 7 before, in row 0 \(1 in"):
        Ratings.from_frame(frame, scale=STARS)
    with pytest.raises(DataError, match="across published folds"):
        Ratings.from_frame(
            frame, scale=STARS, duplicates="last", folds={"t": np.zeros(4, dtype=bool)}
        )
    with pytest.raises(ArgumentError, match="duplicates must be"):
        Ratings.from_frame(frame, scale=STARS, duplicates="first")


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.booleans())
def test_distinctness_by_every_route(keys, small):
    n_possible = 61 if small else 2**40  # marking, or sorting
    array = np.array(keys, dtype=np.int64)
    assert _all_distinct(array, n_possible) == (len(set(keys)) == len(keys))


# ---- what is refused -------------------------------------------------------------------

GOOD = {"user": [1, 2, 3], "item": [1, 1, 2], "rating": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rating": [1.0, np.nan, np.nan]}, r"row 1: rating is nan \(2 in all\): drop them"),
        ({"rating": [1.0, np.inf, 2.0]}, "row 1: rating is inf"),
        ({"rating": [1.0, 2.0, 6.0]}, r"row 2: rating 6 is not on the declared scale Scale\(1..5"),
        ({"rating": [1.0, 2.4, 3.0]}, "row 1: rating 2.4 is not on the declared scale"),
        ({"rating": ["1", "two", "3"]}, "row 1: rating 'two' is not a number"),
        ({"user": [1.0, 2.5, 3.0]}, "row 1: user id 2.5 is not a whole number"),
        ({"user": [1.0, np.nan, 3.0]}, r"row 1: no user id \(1 in all\)"),
        ({"user": [1.0, np.inf, 3.0]}, "row 1: user id inf is not a whole number"),
        ({"user": [1.0, 1e300, 3.0]}, r"row 1: user id 1e\+300 is not a whole number"),
        ({"item": ["a", None, "c"]}, "row 1: no item id"),
        ({"item": [1, "a", (2,)]}, "column 'item' mixes ids of different types"),
        ({"user": [[1], [2], [1]]}, r"column 'user': \[1\] is no id: ids are numbers or strings"),
        ({"timestamp": [1.0, np.nan, 2.0]}, "row 1: timestamp is nan"),
        ({"timestamp": [1.0, 1e300, 2.0]}, "row 1: timestamp .* is not a time in seconds"),
        (
            {"timestamp": ["x", "y", "z"]},
            "row 0: timestamp 'x' is neither seconds since 1970 nor a date",
        ),
        ({"timestamp": pd.to_datetime(["2020-01-01", None, None])}, "row 1: no timestamp"),
    ],
)
def test_errors_name_row_value_and_remedy(change, message):
    with pytest.raises(DataError, match=message):
        Ratings.from_frame(pd.DataFrame(GOOD | change), scale=STARS)


def test_missing_columns_and_empty_tables():
    with pytest.raises(DataError, match=r"no column 'item' .*it has \['user', 'rating'\].*item="):
        Ratings.from_frame(pd.DataFrame({"user": [1], "rating": [1]}))
    with pytest.raises(DataError, match="no ratings"):
        Ratings.from_frame(pd.DataFrame({"user": [], "item": [], "rating": []}))
    with pytest.raises(ArgumentError, match="need a data frame"):
        Ratings.from_frame([1, 2, 3])


def test_side_tables_follow_the_codes():
    frame = pd.DataFrame({"user": [5, 2], "item": [1, 1], "rating": [1.0, 2.0]})
    table = pd.DataFrame({"age": [50, 20, 99]}, index=[5, 2, 7])
    ratings = Ratings.from_frame(frame, scale=STARS, user_table=table)
    assert ratings.user_table["age"].tolist() == [20, 50]
    with pytest.raises(DataError, match="user_table: id 5 has two rows"):
        Ratings.from_frame(frame, scale=STARS, user_table=pd.concat([table, table]))


@pytest.mark.parametrize("column", ["item", "item_id", "itemId", "movieId", "Product ID", "what"])
def test_a_side_table_may_have_a_column_of_ids(column):
    frame = pd.DataFrame({"user": [5, 2], "what": [1, 2], "rating": [1.0, 2.0]})
    table = pd.DataFrame({column: [2, 1, 9], "year": [1990, 1980, 1970]})
    ratings = Ratings.from_frame(frame, item="what", scale=STARS, item_table=table)
    assert ratings.item_table["year"].tolist() == [1980, 1990]
    assert ratings.item_table.columns.tolist() == ["year"]


def test_ids_as_text_and_as_numbers_are_the_same_ids():
    frame = pd.DataFrame({"user": [5, 2], "item": [1, 2], "rating": [1.0, 2.0]})
    table = pd.DataFrame({"age": [50, 20]}, index=["5", "2"])
    assert Ratings.from_frame(frame, user_table=table).user_table["age"].tolist() == [20, 50]
    words = frame.assign(user=["5", "2"])
    table = pd.DataFrame({"user": [5, 2], "age": [50, 20]})
    assert Ratings.from_frame(words, user_table=table).user_table["age"].tolist() == [20, 50]


def test_a_side_table_of_other_ids_is_an_error_that_names_both():
    frame = pd.DataFrame({"user": [5, 2], "item": ["a", "b"], "rating": [1.0, 2.0]})
    table = pd.DataFrame({"code": ["a", "b"], "price": [1.0, 2.0]})
    expected = r"item_table: none of its ids \(0, 1\) is one of the ratings \('a', 'b'\).*'item'"
    with pytest.raises(DataError, match=expected):
        Ratings.from_frame(frame, item_table=table)


def test_a_side_table_with_few_of_the_ids_is_warned_of():
    frame = pd.DataFrame({"user": [5, 2], "item": ["a", "b"], "rating": [1.0, 2.0]})
    more = pd.concat([frame, frame.assign(item=["c", "d"]), frame.assign(item=["e", "f"])])
    table = pd.DataFrame({"year": [1, 2, 3]}, index=["a", "x", "y"])
    with pytest.warns(UserWarning, match="only 1 of 6 items have a row, and 3 rows are given"):
        Ratings.from_frame(more, item_table=table)


def test_side_tables_can_be_added_later():
    frame = pd.DataFrame({"user": [5, 2], "item": ["a", "b"], "rating": [1.0, 2.0]})
    table = pd.DataFrame({"title": ["A", "B"], "year": [1, 2]}, index=["a", "b"])
    ratings = Ratings.from_frame(frame, item_table=table)
    more = pd.DataFrame({"item": ["b", "a"], "year": [4, 3], "price": [6.0, 5.0]})
    added = ratings.with_side_tables(item_table=more).item_table
    assert added.to_dict("list") == {"title": ["A", "B"], "year": [3, 4], "price": [5.0, 6.0]}
    assert ratings.item_table.columns.tolist() == ["title", "year"]


def test_a_named_column_of_times_must_be_there():
    frame = pd.DataFrame({"user": [5, 2], "item": [1, 2], "rating": [1.0, 2.0]})
    assert Ratings.from_frame(frame).timestamps is None
    with pytest.raises(DataError, match=r"no column 'when' in the table \(it has \['user'"):
        Ratings.from_frame(frame, timestamp="when")


def test_folds_must_have_a_flag_a_row():
    with pytest.raises((DataError, ArgumentError), match="fold"):
        Ratings.from_frame(pd.DataFrame(GOOD), scale=STARS, folds={"a": np.array([True])})


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, unique=True),
    st.integers(1, 5),
)
def test_the_core_is_the_largest_part_in_which_everything_has_k_ratings(pairs, k) -> None:
    frame = pd.DataFrame(pairs, columns=["user", "item"]).assign(rating=3.0)
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    core = ratings.core(k)
    assert (core.user_counts >= k).all()
    assert (core.item_counts >= k).all()
    again = core.core(k)
    pd.testing.assert_frame_equal(core.to_frame(), again.to_frame())
    left = set(pairs)
    while True:  # one at a time
        few = [
            pair
            for pair in left
            if sum(u == pair[0] for u, _ in left) < k or sum(i == pair[1] for _, i in left) < k
        ]
        if not few:
            break
        left.remove(few[0])
    assert set(zip(core.to_frame()["user"], core.to_frame()["item"], strict=True)) == left
    repr(core)


@pytest.mark.parametrize("k", [0, 1.5, True, None])
def test_a_core_needs_a_number(k) -> None:
    frame = pd.DataFrame({"user": [1], "item": [1], "rating": [3]})
    with pytest.raises(ArgumentError, match="k must be a whole number"):
        Ratings.from_frame(frame, scale=Scale.regular(1, 5)).core(k)


# ---- weights -------------------------------------------------------------------------------------


def test_weights_stay_with_their_ratings() -> None:
    frame = pd.DataFrame(
        {
            "user": [1, 1, 2, 3],
            "item": [7, 9, 7, 9],
            "rating": [4, 2, 5, 1],
            "w": [1.0, 0.5, 0.25, 0.0],
        }
    )
    assert Ratings.from_frame(frame).weights is None
    ratings = Ratings.from_frame(frame, weight="w")
    assert ratings.to_frame()["weight"].tolist() == [1.0, 0.5, 0.25, 0.0]
    assert ratings.select([2, 0]).weights.tolist() == [0.25, 1.0]
    assert ratings.select([2]).compact().weights.tolist() == [0.25]
    assert ratings.matrix("weight").toarray().tolist() == [[1.0, 0.25, 0.0], [0.5, 0.0, 0.0]]
    assert ratings.without_weights().matrix("weight").data.tolist() == [1.0] * 4
    assert pickle.loads(pickle.dumps(ratings)).weights.tolist() == ratings.weights.tolist()
    twice = pd.concat([frame, frame.iloc[:1].assign(rating=1, w=0.75)])
    last = Ratings.from_frame(twice, weight="w", duplicates="last")
    assert last.of_user(1)["weight"].tolist() == [0.5, 0.75]


@pytest.mark.parametrize(
    ("weights", "says"),
    [([1, 2], r"row 1: w 2 is not a weight from 0 to 1"), ([1, None], "row 1: w is nan")],
)
def test_weights_are_checked(weights, says) -> None:
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1, 2], "w": weights})
    with pytest.raises(DataError, match=says):
        Ratings.from_frame(frame, weight="w")
    with pytest.raises(DataError, match="no column 'x' in the table"):
        Ratings.from_frame(frame, weight="x")


def test_grouping_by_user_and_by_item(ratings_with_everything: Ratings) -> None:
    ratings = ratings_with_everything
    for groups, codes, n in (
        (ratings.by_user(), ratings.users, ratings.n_users),
        (ratings.by_item(), ratings.items, ratings.n_items),
    ):
        assert groups.n_groups == n
        assert groups.start[0] == 0
        assert groups.start[-1] == len(ratings)
        np.testing.assert_array_equal(groups.codes, np.sort(codes))
        for code in range(n):
            rows = np.flatnonzero(codes == code)
            np.testing.assert_array_equal(groups.rows(code), rows)
            own = groups.slice(code)
            for name, column in (
                ("users", ratings.users),
                ("items", ratings.items),
                ("levels", ratings.levels),
                ("values", ratings.values),
                ("times", ratings.timestamps),
                ("weights", ratings.weights),
            ):
                np.testing.assert_array_equal(getattr(groups, name)[own], column[rows])
    bare = ratings.without_timestamps().without_weights().by_user()
    assert bare.times is None
    assert bare.weights is None


@pytest.fixture
def ratings_with_everything() -> Ratings:
    rng = np.random.default_rng(3)
    pairs = rng.permutation(30)[:17]
    frame = pd.DataFrame(
        {
            "user": pairs // 5,
            "item": pairs % 5,
            "rating": rng.integers(1, 6, 17),
            "timestamp": rng.integers(1, 100, 17),
            "weight": rng.random(17),
        }
    )
    ratings = Ratings.from_frame(frame, weight="weight", scale=Scale.regular(1, 5))
    return ratings.select(ratings.users != 2)  # a user without ratings


@pytest.mark.parametrize("cell", [[1], {"a": 1}, {1}, 1, None, ("b",)])
def test_what_is_no_word_of_a_scale_of_words_is_refused_by_its_row(cell) -> None:
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 2], "rating": ["b ", cell]})
    words = {"scale": ["a", "b"]}
    assert Ratings.from_frame(frame.iloc[:1], **words).values.tolist() == [2]
    with pytest.raises(DataError, match="row 1: rating"):
        Ratings.from_frame(frame, **words)


def test_equal_lists_as_times_are_refused_by_their_row() -> None:
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 2], "rating": [1, 2]})
    frame["timestamp"] = [[1, 2], [1, 2]]
    with pytest.raises(DataError, match="row 0"):
        Ratings.from_frame(frame)
