"""MovieLens in its three formats, as folder, zip, gz and single file."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ordrec.data import Scale
from ordrec.data.formats.movielens import title_year
from ordrec.datasets import genre_flags, load_movielens
from ordrec.errors import DataError, DatasetMissing


def test_100k_brings_tables_and_folds(samples):
    ratings = load_movielens(samples / "ml-100k")
    assert ratings.scale == Scale.regular(1, 5)
    assert list(ratings.item_table.columns) == ["title", "year", "genres"]
    assert ratings.item_table.loc[2, "title"] == "Der Süße Zufall (1996)"  # latin-1
    assert ratings.item_table.loc[2, "genres"] == "Comedy|Romance"
    assert ratings.item_table.loc[3, "year"] == 1989
    assert np.isnan(ratings.item_table.loc[5, "year"])
    assert ratings.user_table.loc[2].tolist() == [24, "M", "student", "T8H1N"]
    assert sorted(ratings.folds) == ["u1", "u2", "u3", "u4", "u5", "ua", "ub"]
    five = np.array([ratings.folds[f"u{k}"] for k in range(1, 6)])
    assert (five.sum(axis=0) == 1).all()  # the five test parts partition the ratings
    assert ratings.select(ratings.folds["ua"]).user_counts.tolist() == [1, 1, 1, 1]


def test_100k_years_come_from_the_title_or_else_from_the_date(samples, tmp_path):
    folder = shutil.copytree(samples / "ml-100k", tmp_path / "ml-100k")
    text = (folder / "u.item").read_bytes()
    text = text.replace(b"5|unknown||", b"5|unknown|01-Jan-1995|")
    text = text.replace(b"Copper Sky (1997)||", b"Copper Sky (1997)|05-May-1998|")
    (folder / "u.item").write_bytes(text)
    years = load_movielens(folder).item_table["year"]
    assert years.loc[[4, 5]].tolist() == [1997.0, 1995.0]


def test_100k_folds_mark_the_published_rows(samples):
    ratings = load_movielens(samples / "ml-100k")
    lines = (samples / "ml-100k" / "u3.test").read_text().split("\n")[:-1]
    frame = ratings.select(ratings.folds["u3"]).to_frame()
    marked = {"\t".join(str(int(v)) for v in row) for row in frame.to_numpy()}
    assert marked == set(lines)


def test_1m_tables_probe_and_unknown_time(samples):
    ratings = load_movielens(samples / "ml-1m")
    assert ratings.scale == Scale.regular(1, 5)
    assert ratings.item_table.loc[7, "title"] == "Der Süße Zufall (1996)"
    assert 20 not in ratings.item_ids  # listed but never rated
    assert ratings.user_table.loc[1].tolist() == [1, "F", "K-12 student", "48067"]
    assert ratings.folds["pmf_probe"].tolist() == [False, True, False, False, False, True]
    assert ratings.timestamps[3] == 0


def test_10m_has_half_stars_and_utf8(samples):
    ratings = load_movielens(samples / "ml-10m")
    assert ratings.scale == Scale.regular(0.5, 5, 0.5)
    assert ratings.values.tolist() == [5.0, 3.5, 0.5]
    assert ratings.item_table.loc[122, "title"] == "Fjärran Vatten (1992)"
    assert ratings.user_table is None


def test_csv_quotes_years_and_missing_genres(samples):
    ratings = load_movielens(samples / "ml-latest")
    assert ratings.scale.n_ranks == 10
    table = ratings.item_table
    assert table.loc[17].tolist() == ["Orchard, The (1995)", 1995.0, "Drama|Romance"]
    assert table.loc[1029, "title"] == 'The "Quiet" Season'
    assert table.loc[1029, "genres"] == ""
    flags = genre_flags(table)
    assert flags.loc[17].to_dict() == {"Drama": 1, "Romance": 1}
    assert flags.loc[1029].sum() == 0


@pytest.mark.parametrize("name", ["ml-100k", "ml-1m", "ml-10m", "ml-latest"])
def test_zip_and_gz_equal_the_folder(samples, tmp_path, name):
    expected = load_movielens(samples / name)
    archive = tmp_path / f"{name}.zip"
    packed = tmp_path / name
    packed.mkdir()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in (samples / name).iterdir():
            out.write(file, f"{name}/{file.name}")
            with gzip.open(packed / f"{file.name}.gz", "wb") as stream:
                stream.write(file.read_bytes())
    for path in (archive, packed):
        got = load_movielens(path)
        assert got.to_frame().equals(expected.to_frame())
        assert got.item_table.equals(expected.item_table)
        assert {k: v.tolist() for k, v in got.folds.items()} == {
            k: v.tolist() for k, v in expected.folds.items()
        }


@pytest.mark.parametrize("file", ["ml-100k/u.data", "ml-1m/ratings.dat", "ml-latest/ratings.csv"])
def test_a_single_file_under_any_name(samples, tmp_path, file):
    shutil.copy(samples / file, tmp_path / "mine")
    alone = load_movielens(tmp_path / "mine")
    assert alone.to_frame().equals(load_movielens(samples / Path(file).parent).to_frame())
    assert alone.item_table is None
    assert alone.name == "mine"


def test_line_ends_and_missing_last_newline(tmp_path):
    (tmp_path / "u.data").write_bytes(b"1\t2\t3\t4\r\n\r\n2\t2\t5\t6")
    assert load_movielens(tmp_path).values.tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\t2\t3\t4\n1\t3\t4\n", "line 2.*'1\\\\t3\\\\t4' has the wrong number of fields"),
        ("1\t2\t3\t4\n\n1\tx\t4\t5\n", "line 3.*the item is not a whole number"),
        ("1\t2\t3\t4\n-1\t2\t4\t5\n", "line 2.*the user is not a whole number"),
        ("1\t2.5\t3\t4\n", "line 1.*the item is not a whole number"),
        ("1\t2\tgood\t4\n", "line 1.*the rating is not a decimal number"),
        ("1\t2\t3\t99999999999999999999\n", "line 1.*timestamp.*at most 18 digits"),
        ("1\t2\t3\t4\t5\n", "line 1.*wrong number of fields"),
        ("1\t2\t9\t4\n", "row 0: rating 9 is not on the declared scale"),
        ("1\t2\t3\t4\n1\t2\t4\t5\n", "row 1: user 1 rated item 2 before, in row 0"),
        ("", "no ratings"),
    ],
)
def test_errors_name_line_and_value(tmp_path, content, message):
    (tmp_path / "u.data").write_text(content)
    with pytest.raises(DataError, match=message):
        load_movielens(tmp_path)


def test_wrong_encoding_of_a_csv_is_named(samples, tmp_path):
    shutil.copytree(samples / "ml-latest", tmp_path / "ml")
    text = (tmp_path / "ml" / "movies.csv").read_text(encoding="utf-8")
    (tmp_path / "ml" / "movies.csv").write_text(text.replace("Č", "é"), encoding="latin-1")
    with pytest.raises(DataError, match=r"movies.csv, line 3: byte 0xe9 is not utf-8"):
        load_movielens(tmp_path / "ml")


def test_folds_of_another_data_set_are_refused(samples, tmp_path):
    shutil.copytree(samples / "ml-100k", tmp_path / "ml")
    (tmp_path / "ml" / "u1.test").write_text("77\t1\t3\t4\n")
    with pytest.raises(DataError, match=r"user 77 and item 1 .* do not belong together"):
        load_movielens(tmp_path / "ml")
    first = (samples / "ml-100k" / "u1.test").read_text().split("\n")[0]
    (tmp_path / "ml" / "u1.test").write_text(f"{first}\n{first}\n")
    with pytest.raises(DataError, match=r"u1.test: a pair of user and item occurs twice"):
        load_movielens(tmp_path / "ml")
    (tmp_path / "ml" / "u1.test").write_text("")
    assert not load_movielens(tmp_path / "ml").folds["u1"].any()


def test_wrong_paths(tmp_path, samples):
    with pytest.raises(DatasetMissing, match="no such file or folder"):
        load_movielens(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no u\.data, ratings\.dat or ratings\.csv"):
        load_movielens(tmp_path)
    with pytest.raises(DataError, match="holds more than one"):
        load_movielens(samples)


def test_declared_scale_wins(samples):
    ratings = load_movielens(samples / "ml-1m", scale=Scale.regular(0, 5), name="mine")
    assert ratings.scale.n_ranks == 6
    assert ratings.name == "mine"


@pytest.mark.parametrize(
    ("title", "year"),
    [
        ("(500) Days of Summer (2009)", 2009), ("2001 (1968) (2001)", 2001), ("Heat (1995) ", 1995),
        ("1984", np.nan), ("Alien (director's cut)", np.nan), ("Q (1982", np.nan),
    ],
)  # fmt: skip
def test_the_year_stands_in_the_last_brackets(title, year):
    np.testing.assert_equal(title_year(title), float(year))
