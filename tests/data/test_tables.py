"""Ordinal tables with partitions, and dividing numbers into ranks."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.datasets import discretise, load_table
from ordrec.errors import ArgumentError, DataError


def test_label_partitions_and_left_out_columns(samples):
    table = load_table(samples / "ordinal" / "invented.csv", label="y5")
    assert repr(table) == "<OrdinalTable invented: 20 rows, 2 features, 5 ranks, 2 partitions>"
    assert table.feature_names == ["x1", "x2"]
    assert table.X.shape == (20, 2)
    assert table.n_ranks == 5
    assert [part.size for part in table.partitions] == [10, 10]
    assert table.partitions[1][0] == 19  # the published order
    train, test = table.split(0)
    assert sorted([*train, *test]) == list(range(20))
    ten = load_table(samples / "ordinal" / "invented.csv", label="y10")
    assert ten.n_ranks == 10
    assert [part.tolist() for part in ten.partitions] == [[2, 4, 6, 8, 10]]


def test_default_label_and_gz(samples, tmp_path):
    table = load_table(samples / "ordinal" / "grades.csv")
    assert table.y.tolist() == [1, 2, 2, 3, 3, 1]
    assert len(table.partitions) == 2
    with gzip.open(tmp_path / "grades.csv.gz", "wb") as out:
        out.write((samples / "ordinal" / "grades.csv").read_bytes())
    packed = load_table(tmp_path / "grades.csv.gz")
    assert packed.X.tolist() == table.X.tolist()
    assert packed.partitions == []
    assert packed.name == "grades"
    other = load_table(
        tmp_path / "grades.csv.gz", partitions=samples / "ordinal" / "grades.train-rows.txt"
    )
    assert len(other.partitions) == 2
    assert load_table(samples / "ordinal" / "grades.csv", partitions=False).partitions == []


def test_named_levels(tmp_path):
    (tmp_path / "t.csv").write_text("x,size\n1,small\n2,large\n3,small\n")
    table = load_table(tmp_path / "t.csv", label="size", levels=["small", "medium", "large"])
    assert table.y.tolist() == [1, 3, 1]
    assert table.n_ranks == 3
    with pytest.raises(DataError, match="line 3: size 'large': it is not among the levels"):
        load_table(tmp_path / "t.csv", label="size", levels=["small", "medium"])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("x,y\n1,0\n2,1\n", {}, "line 2: y '0': ranks are whole numbers from 1 up"),
        ("x,y\n1,1.5\n2,1\n", {}, "line 2: y '1.5'"),
        ("x,y\nM,1\n2,2\n", {}, r"line 2: feature x is 'M', not a number.*drop=\['x'\]"),
        ("x,y\n,1\n2,2\n", {}, "line 2: feature x is ''"),
        ("x,y\n1,1\n2,1\n", {}, "all rows have rank 1"),
        ("x,y\n", {}, "no rows below the header"),
        ("y\n1\n2\n", {}, "no feature columns"),
        ("x,x,y\n1,1,1\n", {}, "line 1: two columns have the same name"),
        ("x,y5,y10\n1,1,1\n", {}, "which column is the label"),
        ("x,y\n1,1\n", {"label": "z"}, "no column 'z'"),
        ("x,y\n1,1\n", {"drop": ["z"]}, "no column 'z' to drop"),
    ],
)
def test_errors(tmp_path, content, options, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises((DataError, ArgumentError), match=message):
        load_table(tmp_path / "t.csv", **options)


@pytest.mark.parametrize("rows", ["0 0", "0 9", "0 -1", "0 x", "0 1 2", "0 99999999999999999999"])
def test_partition_errors_name_the_line(tmp_path, rows):
    (tmp_path / "t.csv").write_text("x,y\n1,1\n2,2\n3,2\n")
    (tmp_path / "t.train-rows.txt").write_text(f"0 1\n{rows}\n")
    with pytest.raises(DataError, match=r"train-rows.txt, line 2"):
        load_table(tmp_path / "t.csv")


def test_split_out_of_range(samples):
    table = load_table(samples / "ordinal" / "grades.csv")
    with pytest.raises(ArgumentError, match="has 2 partitions"):
        table.split(2)


numbers = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60)


@given(numbers, st.integers(2, 10))
def test_equal_frequency(values, bins):
    values = np.array(values)
    if values.size < bins:
        with pytest.raises(ArgumentError, match="cannot fill"):
            discretise(values, bins)
        return
    ranks = discretise(values, bins)
    sizes = np.bincount(ranks, minlength=bins + 1)[1:]
    assert sizes.max() - sizes.min() <= 1
    below, above = values[:, None] < values, ranks[:, None] <= ranks
    assert above[below].all()  # never reverses the order of two numbers


@given(numbers, st.integers(2, 10))
def test_equal_length(values, bins):
    values = np.array(values)
    low, high = values.min(), values.max()
    if low == high:
        with pytest.raises(ArgumentError, match="cannot be divided into ranks"):
            discretise(values, bins, "length")
        return
    ranks = discretise(values, bins, "length")
    assert ranks[values.argmin()] == 1
    assert ranks[values.argmax()] == bins
    edges = low + (high - low) * np.arange(bins + 1) / bins
    slack = 1e-9 * (high - low)
    assert (values <= edges[ranks] + slack).all()
    assert (values >= edges[ranks - 1] - slack).all()


@pytest.mark.parametrize(
    ("target", "bins", "how"),
    [([1.0, np.nan], 2, "length"), ([], 2, "length"), ([[1.0, 2.0]], 2, "length"),
     ([1.0, 2.0], 1, "length"), ([1.0, 2.0], 2, "other")],
)  # fmt: skip
def test_discretise_refuses(target, bins, how):
    with pytest.raises(ArgumentError):
        discretise(target, bins, how)


def test_a_number_between_two_intervals_belongs_to_the_lower():
    assert discretise(np.arange(11.0), 5, "length").tolist() == [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
