"""The compiled reader against Python's own parsing, and across piece borders."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data.formats import delimited
from ordrec.data.formats.archives import open_source
from ordrec.errors import DataError

COLUMNS = {"user": "whole", "item": "whole", "rating": "decimal", "timestamp": "whole"}


def read(path, separator="\t", columns=COLUMNS, header=None):
    with open_source(path) as source:
        return delimited.read_columns(
            source, next(iter(source.members)), columns, separator, header=header
        )


numbers = st.integers(0, 10**18 - 1)
decimals = st.decimals(-9999, 9999, places=3, allow_nan=False).map(lambda d: format(d, "f"))


@given(
    rows=st.lists(st.tuples(numbers, numbers, decimals, numbers), min_size=1, max_size=30),
    separator=st.sampled_from(["\t", "::", ",", ";"]),
    end=st.sampled_from(["\n", "\r\n"]),
    closed=st.booleans(),
)
def test_equals_python(tmp_path_factory, rows, separator, end, closed):
    file = tmp_path_factory.getbasetemp() / "rows"
    text = end.join(separator.join(map(str, row)) for row in rows) + (end if closed else "")
    file.write_bytes(text.encode())
    got = read(file, separator)
    for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True):
        kind = float if name == "rating" else int
        assert got[name].tolist() == [kind(value) for value in column]


def test_pieces_join_at_line_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "PIECE_BYTES", 1 << 17)
    rng = np.random.default_rng(0)
    table = rng.integers(0, 10**6, (40_000, 4))
    file = tmp_path / "long"
    file.write_text("".join("::".join(map(str, row)) + "\n" for row in table.tolist()))
    got = read(file, "::")
    np.testing.assert_array_equal(np.column_stack(list(got.values())), table)


def test_a_fault_behind_the_first_piece_has_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "PIECE_BYTES", 1 << 17)
    file = tmp_path / "long"
    lines = ["1\t2\t3\t4"] * 50_000
    lines[41_233] = "1\t2\tx\t4"
    file.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"line 41234: .*rating is not a decimal"):
        read(file)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "PIECE_BYTES", 1 << 17)
    (tmp_path / "long").write_bytes(b"1" * (1 << 18))
    with pytest.raises(DataError, match="longer than 65536 bytes"):
        read(tmp_path / "long")


def test_small_ids_take_half_the_space_and_large_ones_survive(tmp_path):
    (tmp_path / "f").write_text(f"1\t{2**40}\t3\t4\n")
    got = read(tmp_path / "f")
    assert got["user"].dtype == np.int32
    assert got["item"].tolist() == [2**40]


def test_header_must_fit(tmp_path):
    (tmp_path / "f").write_text("a,b\n1,2\n")
    pair = {"a": "whole", "b": "whole"}
    assert read(tmp_path / "f", ",", pair, ("a", "b"))["b"].tolist() == [2]
    with pytest.raises(DataError, match=r"line 1: expected the header 'a,c', found 'a,b'"):
        read(tmp_path / "f", ",", pair, ("a", "c"))


@pytest.mark.parametrize("row", ["1:2:3:4", "1:::2::3::4", "1::2::3::4::", "::2::3::4", "1::2::3"])
def test_doubled_separator_is_strict(tmp_path, row):
    (tmp_path / "f").write_text(row + "\n")
    with pytest.raises(DataError, match="line 1"):
        read(tmp_path / "f", "::")


def test_text_table_fills_short_rows_and_counts_lines(tmp_path):
    (tmp_path / "f").write_text("a,b\n1,2\n\n3\n")
    with open_source(tmp_path / "f") as source:
        table = delimited.read_text_table(source, "f", ",")
    assert table.index.tolist() == [2, 4]
    assert table.to_numpy().tolist() == [["1", "2"], ["3", ""]]
    with pytest.raises(DataError, match="line 4: b '' is not a number"):
        delimited.numbers(table["b"], "f")
    assert delimited.numbers(table["b"], "f", absent=7.0).tolist() == [2.0, 7.0]


def test_text_table_refuses_long_rows(tmp_path):
    (tmp_path / "f").write_text("a,b\n1,2\n1,2,3\n")
    with open_source(tmp_path / "f") as source, pytest.raises(DataError, match="line 3"):
        delimited.read_text_table(source, "f", ",")


@pytest.mark.parametrize("text", ["1,2,3\n4,5\n", "4,5\n1,2,3\n", "1,2,3\n4,5,6\n"])
def test_named_columns_refuse_long_rows(tmp_path, text):
    (tmp_path / "f").write_text(text)
    with open_source(tmp_path / "f") as source, pytest.raises(DataError, match="fields"):
        delimited.read_text_table(source, "f", ",", names=("a", "b"))


def test_whole_numbers_are_read_as_floats() -> None:
    found = delimited.numbers(pd.Series(["1", "2"]), "here")
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]
