"""EachMovie: the original files, the triples with the movie first, and the csv parts."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import numpy as np
import pytest

from ordrec.data import Scale
from ordrec.datasets import load_eachmovie
from ordrec.errors import DataError


def test_original_votes_weights_and_times(samples):
    ratings = load_eachmovie(samples / "eachmovie")
    assert ratings.scale == Scale.regular(0, 5)
    frame = ratings.to_frame()
    assert frame[["user", "item", "rating"]].to_numpy().tolist() == [
        [1, 1, 4], [2, 1, 5], [2, 3, 1], [3, 2, 3], [3, 3, 2],
    ]  # fmt: skip
    expected = datetime(1997, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert frame["timestamp"].tolist()[1] == expected
    assert frame["timestamp"].tolist()[2:4] == [0, 0]  # short rows


def test_min_weight_keeps_the_unseen_films_on_request(samples):
    everything = load_eachmovie(samples / "eachmovie", min_weight=0)
    assert everything.n_ratings == 6
    assert everything.of_user(1)["rating"].tolist() == [4.0, 0.0]
    assert everything.of_user(1)["weight"].tolist() == [1.0, 0.5]
    assert load_eachmovie(samples / "eachmovie").weights is None


def test_side_tables(samples):
    ratings = load_eachmovie(samples / "eachmovie")
    assert ratings.item_table.loc[2, "title"] == "Der Süße Zufall"
    assert ratings.item_table.loc[2, "genres"] == "Art_Foreign|Comedy|Romance"
    assert ratings.item_table.loc[3, "year"] == 1989  # a short row
    assert ratings.user_table.loc[1].tolist() == [31.0, "F", "10001"]
    assert np.isnan(ratings.user_table.loc[2, "age"])


def test_triples_have_the_movie_first(samples):
    triples = load_eachmovie(samples / "eachmovie-triple").to_frame()
    original = load_eachmovie(samples / "eachmovie").to_frame()
    key = ["user", "item", "rating"]
    both = triples.merge(original, on=["user", "item"])
    assert triples[key].to_numpy().tolist()[2] == [2, 3, 1.0]
    assert len(both) == 5  # swapped columns would not match
    assert (both["rating_x"] == both["rating_y"]).sum() == 4


def test_csv_parts_and_their_split(samples):
    ratings = load_eachmovie(samples / "eachmovie-csv")
    assert ratings.ranks.tolist() == [5, 6, 2, 4, 1]
    assert ratings.folds["set"].tolist() == [False, False, True, True, False]
    other = load_eachmovie(samples / "eachmovie-csv" / "votes_324movies.csv")
    assert other.n_users == 3
    assert not other.folds


def test_single_files_are_recognised(samples, tmp_path):
    for number, file in enumerate(["eachmovie/Vote.txt", "eachmovie-triple/eachmovie_triple"]):
        shutil.copy(samples / file, tmp_path / f"f{number}")
        assert load_eachmovie(tmp_path / f"f{number}").n_ratings == 5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\t1\t0.7\t1\t3/9/96 0:00:00", "line 2: score 0.7 is not zero to five stars"),
        ("1\t1\t1.2\t1\t3/9/96 0:00:00", "line 2: score 1.2 is not zero to five stars"),
        ("1\t1\t0.8\t1\t1996-03-09", "line 2: time '1996-03-09' is not m/d/yy H:M:S"),
        ("1\t1\t0.8\theavy", "line 2: weight 'heavy' is not a number"),
        ("1\t1.5\t0.8", "line 2: item '1.5' is not a whole number"),
        ("-3\t1\t0.8", "line 2: user '-3' is not a whole number"),
        ("1\t1", "line 2: score '' is not a number"),
        ("9\t9\t1\t1\t3/9/96 0:00:00", "user 9 rated item 9 before"),
    ],
)
def test_errors_name_line_and_value(tmp_path, line, message):
    (tmp_path / "Vote.txt").write_text(f"9\t9\t1\t1\t3/9/96 0:00:00\n{line}\n")
    with pytest.raises(DataError, match=message):
        load_eachmovie(tmp_path)


def test_strange_set_and_header(tmp_path):
    (tmp_path / "votes_5055users.csv").write_text("user,movie,score,set\n1,1,5,later\n")
    with pytest.raises(DataError, match="line 2: set 'later' is neither train nor test"):
        load_eachmovie(tmp_path)
    (tmp_path / "votes_5055users.csv").write_text("user,film,score\n1,1,5\n")
    with pytest.raises(DataError, match="line 1: expected the header"):
        load_eachmovie(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no Vote\.txt"):
        load_eachmovie(tmp_path / "empty")
