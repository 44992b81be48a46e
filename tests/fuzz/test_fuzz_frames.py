"""Any table at all becomes `Ratings` or is refused with the row, the value and the remedy."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
from fuzz.campaign import answered, both_runs, explore
from hypothesis import strategies as st

from ordrec.data import Ratings, Scale

ODD_NUMBERS = [
    0, -1, 5, 2.5, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 2**31, 2**53,
    2**63 - 1, -(2**63), 2**64, 10**30, 10**400,
]  # fmt: skip
ODD_OBJECTS = [
    None, "", " ", "5", "five", "٣", "NaN", "inf", "1e5", "\0", "a" * 300, "\ud800", b"5", b"",
    True, False, pd.NA, pd.NaT, np.datetime64("NaT"), np.int8(3), np.float32(2.5), 3 + 4j,
    np.complex128(1), (1, 2),
    (), datetime.date(2020, 1, 1), datetime.datetime(1, 1, 1), pd.Timestamp(0, tz="UTC"),
    pd.Timedelta(1), object, [1], {"a": 1}, {1}, np.array([1, 2]), *ODD_NUMBERS,
]  # fmt: skip
DTYPES = [
    "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "bool",
    "Int8", "Int64", "UInt64", "Float32", "Float64", "boolean", "object", "string", "category",
    "complex128", "datetime64[ns]", "datetime64[s]", "timedelta64[ns]", "Sparse[float64]",
    "Sparse[int64]", "period[D]", "interval", "int64[pyarrow]", "double[pyarrow]",
    "string[pyarrow]", "timestamp[s][pyarrow]", "datetime64[ns, Europe/Berlin]",
]  # fmt: skip


@st.composite
def columns(draw, n_rows):
    """A column that is nearly right, or of any type, or of objects of all types."""
    kind = draw(st.sampled_from(["good", "good", "odd", "mixed", "typed", "typed", "missing"]))
    if kind == "odd":
        one = draw(st.sampled_from(ODD_OBJECTS))
        return pd.Series([one] * n_rows, dtype=object)
    if kind == "mixed":
        values = draw(st.lists(st.sampled_from(ODD_OBJECTS), min_size=n_rows, max_size=n_rows))
        return pd.Series(values, dtype=object)
    whole = st.integers(1, 5) if kind != "missing" else st.sampled_from([1, 2, 3, None])
    column = pd.Series(draw(st.lists(whole, min_size=n_rows, max_size=n_rows)), dtype=object)
    if kind == "missing":
        return column
    if kind == "good":
        return column.astype(draw(st.sampled_from(["int64", "float64", "str", "Int64"])))
    try:
        return column.astype(draw(st.sampled_from(DTYPES)))
    except (TypeError, ValueError, NotImplementedError, OverflowError):
        return column


@st.composite
def frames(draw):
    """Tables with the three or four columns, some of them twice, missing, nested or empty."""
    n_rows = draw(st.sampled_from([0, 1, 2, 3, 4, 6]))
    names = ["user", "item", "rating", "timestamp"][: draw(st.sampled_from([2, 3, 4, 4]))]
    shape = draw(st.sampled_from(["plain"] * 6 + ["twice", "nested", "numbered", "index"]))
    frame = pd.concat([draw(columns(n_rows)).rename(name) for name in names], axis=1)
    if shape == "twice":
        again = draw(st.sampled_from(names))
        frame = pd.concat([frame, frame[[again]]], axis=1)
    elif shape == "nested":
        frame.columns = pd.MultiIndex.from_tuples([(name, "x") for name in names])
    elif shape == "numbered":
        frame.columns = range(len(names))
    elif shape == "index":
        frame.index = [7] * n_rows
    return frame


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "duplicates": st.sampled_from(["error", "last", "mean", "first", None, 3]),
        "scale": st.sampled_from(
            [None, Scale.regular(1, 5), [1, 2, 3, 4, 5], [1], [], ["a", "b"], [1, None], 5,
             "12345", [1, float("nan")], [0, 1e308, -1e308]]
        ),
        "timestamp": st.sampled_from([None, "timestamp", "user", "when"]),
        "user": st.sampled_from(["user", "item", "who"]),
    },
)  # fmt: skip


def check_frame(frame, options):
    ratings = answered(lambda: Ratings.from_frame(frame, **options))
    if ratings is None:
        return
    assert 1 <= ratings.n_ratings <= len(frame)
    assert np.isfinite(ratings.values).all()
    assert ratings.users.max() < ratings.n_users
    assert ratings.items.max() < ratings.n_items
    repr(ratings)
    again = Ratings.from_frame(ratings.to_frame(), scale=ratings.scale)
    np.testing.assert_array_equal(again.levels, ratings.levels)
    np.testing.assert_array_equal(again.users, ratings.users)


@both_runs
def test_frames_are_read_or_refused(run):
    explore("frames", run, check_frame, frames(), OPTIONS)


def check_scale(values, asked):
    scale = answered(lambda: Scale(values))
    if scale is None:
        return
    assert (np.diff(scale.values) > 0).all()
    repr(scale)
    assert np.isin(scale.nearest([0.0, 1e300, -1e300]), scale.values).all()
    assert (scale.ranks_of(scale.values) == np.arange(1, scale.n_ranks + 1)).all()
    answered(lambda: scale.ranks_of(asked))
    answered(lambda: scale.values_of(asked))
    answered(lambda: Scale.infer(np.asarray(values, dtype=np.float64)))


NUMBERS = st.floats() | st.integers(-10, 10) | st.sampled_from(ODD_NUMBERS)


@both_runs
def test_scales_are_made_or_refused(run):
    lists = st.lists(NUMBERS, max_size=6) | st.lists(st.sampled_from(ODD_OBJECTS), max_size=3)
    explore("scales", run, check_scale, lists, lists)
