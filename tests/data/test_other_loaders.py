"""MovieTweetings, Jester and the generic csv and parquet reader."""

from __future__ import annotations

import pandas as pd
import pytest

from ordrec.data import Scale
from ordrec.datasets import load_jester, load_movietweetings, load_ratings
from ordrec.errors import ArgumentError, DataError


def test_movietweetings(samples):
    ratings = load_movietweetings(samples / "movietweetings")
    assert ratings.scale == Scale.regular(0, 10)
    assert ratings.values.tolist() == [8, 10, 0, 7]
    assert ratings.item_ids.tolist() == [110001, 110002, 1110003]
    assert ratings.item_table.loc[110001, "title"] == "Fjärran Vatten (1992)"
    assert ratings.item_table.loc[110002, "genres"] == ""
    with pytest.raises(DataError, match=r"no ratings\.dat"):
        load_movietweetings(samples / "ordinal")


def test_jester_is_cut_into_ranks(samples):
    ratings = load_jester(samples / "jester")
    assert ratings.scale.values.tolist() == [-8, -4, 0, 4, 8]
    assert ratings.values.tolist() == [-8, 4, 0, 8, -4]
    ten = load_jester(samples / "jester", ranks=10)
    assert ten.ranks.tolist() == [1, 8, 5, 10, 4]


def test_jester_keeps_its_ratings_in_bins(samples):
    ratings = load_jester(samples / "jester", ranks=None)
    frame = pd.read_csv(samples / "jester" / "ratings.csv")
    assert ratings.values.tolist() == frame["rating"].tolist()
    assert (ratings.scale.low, ratings.scale.high) == (-10, 10)
    with pytest.raises(ArgumentError, match=r"ranks must be 2\.\.60 or None"):
        load_jester(samples / "jester", ranks=61)


def test_jester_matrix_equals_triples(samples):
    triples = load_jester(samples / "jester")
    matrix = load_jester(samples / "jester-matrix")
    assert matrix.users.tolist() == triples.users.tolist()
    assert matrix.items.tolist() == triples.items.tolist()
    assert matrix.values.tolist() == triples.values.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user,joke,rating\na,b,10.5\n", "line 2: rating 10.5 is outside"),
        ("user,joke,rating\na,b,fun\n", "line 2: rating 'fun' is not a number"),
        ("user,joke,rating\n,b,1\n", "line 2: no user or joke"),
        ("user,joke\na,b\n", "line 1: expected the header"),
        ("1\n", "line 1: expected the header"),
        ("2,1,2\n2,1,500\n", "line 2: rating 500 is outside"),
    ],
)
def test_jester_errors(tmp_path, content, message):
    (tmp_path / "ratings.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        load_jester(tmp_path)


def test_jester_needs_two_ranks(samples):
    with pytest.raises(ArgumentError, match="ranks must be"):
        load_jester(samples / "jester", ranks=1)


COLUMNS = {"user": "who", "item": "what", "rating": "stars"}


def test_generic_csv_with_dates(samples):
    ratings = load_ratings(
        samples / "ratings" / "mine.csv", **COLUMNS, timestamp="when", scale=range(1, 6)
    )
    assert ratings.of_user("ann")["item"].tolist() == ["tea", "soup"]
    assert ratings.timestamps.tolist()[0] == pd.Timestamp("2020-01-01").timestamp()
    assert ratings.name == "mine"


def test_generic_parquet(samples, tmp_path):
    frame = pd.read_csv(samples / "ratings" / "mine.csv", parse_dates=["when"])
    frame.to_parquet(tmp_path / "mine.parquet")
    ratings = load_ratings(
        tmp_path / "mine.parquet", **COLUMNS, timestamp="when", scale=range(1, 6)
    )
    assert ratings.timestamps.tolist()[0] == pd.Timestamp("2020-01-01").timestamp()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="not a parquet table"):
        load_ratings(tmp_path / "bad.parquet")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_of_weights(tmp_path, ending):
    frame = pd.DataFrame(
        {"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 2, 4], "sure": [1.0, 0.25, 0.0]}
    )
    file = tmp_path / f"mine.{ending}"
    frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    ratings = load_ratings(file, weight="sure", scale=range(1, 6))
    assert ratings.weights.tolist() == [1.0, 0.25, 0.0]
    assert repr(ratings).endswith(", weighted>")
    assert load_ratings(file, scale=range(1, 6)).weights is None
    with pytest.raises(DataError, match=r"mine\.\w+: no column 'w' in the table \(it has \['user"):
        load_ratings(file, weight="w")


def test_weights_may_have_decimal_commas_and_are_checked(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("user;item;rating;sure\n1;7;4,5;0,5\n1;8;3,0;1\n")
    ratings = load_ratings(file, weight="sure")
    assert (ratings.values.tolist(), ratings.weights.tolist()) == ([4.5, 3.0], [0.5, 1.0])
    file.write_text("user,item,rating,sure\n1,7,4,0.5\n1,8,3,2\n")
    with pytest.raises(DataError, match=r"mine\.csv, line 3: row 1: sure 2 is not a weight from 0"):
        load_ratings(file, weight="sure")


def test_blanks_around_ids_mean_nothing(tmp_path):
    (tmp_path / "mine.csv").write_text("user, item ,rating\nann, tea ,5\n ann,soup,2\nbob,tea,4\n")
    ratings = load_ratings(tmp_path / "mine.csv", scale=range(1, 6))
    assert (list(ratings.user_ids), list(ratings.item_ids)) == (["ann", "bob"], ["soup", "tea"])
    (tmp_path / "mine.csv").write_text("user,item,rating\nann,tea,5\n  ,soup,2\n")
    with pytest.raises(DataError, match="row 1: no user id"):
        load_ratings(tmp_path / "mine.csv")


def test_lines_are_named_where_they_are_known(tmp_path):
    lines = ["user,item,rating,note", "1,2,3,", "", "1,3,x,"]
    without_gap = [line for line in lines if line]
    for text, place in (
        (lines, "mine.csv: row 1: rating 'x'"),
        (without_gap, "mine.csv, line 3: row 1: rating 'x'"),
    ):
        (tmp_path / "mine.csv").write_text("\n".join(text) + "\n")
        with pytest.raises(DataError) as caught:
            load_ratings(tmp_path / "mine.csv")
        assert place in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", r"mine.csv: no column 'user'"),
        ("user,item,rating\n1,2,\n", "row 0: rating is nan"),
        ("user,item,rating\n1,2,x\n1,3,4\n", "row 0: rating 'x' is not a number"),
        ("user,item,rating\n1.5,2,3\n2,2,4\n", "row 0: user id 1.5 is not a whole number"),
        ("user,item,rating\n,2,3\n2,2,4\n", "row 0: no user id"),
        ("user,item,rating\n1,2,3\n1,2,4\n", "row 1: user 1 rated item 2 before"),
        ("user,item,rating\n1,2,3\n1,2,4,5\n", "not a csv table"),
        ("user,item,rating\n1,2,3,4\n1,2,4,5\n", "more fields than the header"),
        ("user,item,rating,timestamp\n1,2,3,soon\n1,3,4,5\n", "row 0: timestamp 'soon' is neit"),
        ('user,item,rating\n1,"2,3\n', "not a csv table"),
        ("", "not a csv table"),
    ],
)
def test_generic_errors(tmp_path, content, message):
    (tmp_path / "mine.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        load_ratings(tmp_path / "mine.csv")


def test_generic_encoding_and_separator(tmp_path):
    (tmp_path / "mine.csv").write_bytes("user;item;rating\nJosé;x;1\nb;x;2\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        load_ratings(tmp_path / "mine.csv", separator=";")
    with pytest.raises(ArgumentError, match="one character"):
        load_ratings(tmp_path / "mine.csv", separator="::")
