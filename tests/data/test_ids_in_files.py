"""Ids in files are read as they are written, on each side, whatever looks like a number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import exit_code as ordrec

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.data.ids import ids_like
from ordrec.datasets import load_ratings, load_side_table
from ordrec.errors import DataError
from ordrec.recommend import BiasModel


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_leading_zeros_are_part_of_an_id(tmp_path: Path) -> None:
    table = written(tmp_path / "r.csv", "user,item,rating\n1,007,5\n2,010,3\n2,007,1\n")
    ratings = load_ratings(table)
    assert ratings.item_ids.tolist() == ["007", "010"]
    assert ratings.user_ids.tolist() == [1, 2]


def test_update_reads_items_as_the_model_has_them(tmp_path: Path) -> None:
    rows = "".join(f"{u},00{i},{1 + (u + i) % 5}\n" for u in range(8) for i in range(1, 8))
    table = written(tmp_path / "r.csv", "user,item,rating\n" + rows + "1,B12,5\n")
    more = written(tmp_path / "more.csv", "user,item,rating\n1,007,5\n2,001,1\n")
    model, new = tmp_path / "m.ordrec", tmp_path / "n.ordrec"
    assert ordrec("fit", table, "-m", "factors", "-o", model, "-q") == 0
    assert ordrec("update", model, more, "-o", new) == 0
    assert set(load(new).item_ids_) == set(load(model).item_ids_)


def test_side_tables_keep_leading_zeros(tmp_path: Path) -> None:
    table = written(tmp_path / "r.csv", "user,item,rating\n1,007,5\n2,010,3\n2,A,1\n")
    items = written(tmp_path / "i.csv", "item,price\n007,1.5\n010,2.5\nA,4\n")
    ratings = load_ratings(table).with_side_tables(item_table=load_side_table(items))
    assert ratings.item_table is not None
    assert ratings.item_table["price"].tolist() == [1.5, 2.5, 4.0]
    digits_only = written(tmp_path / "d.csv", "item,price\n007,1.5\n010,2.5\n")
    ratings = load_ratings(table).with_side_tables(item_table=load_side_table(digits_only))
    assert ratings.item_table is not None
    assert ratings.item_table["price"].tolist()[:2] == [1.5, 2.5]


def test_a_side_table_with_zeros_describes_items_that_are_numbers(tmp_path: Path) -> None:
    table = written(tmp_path / "r.csv", "user,item,rating\n1,7,5\n2,10,3\n")
    items = written(tmp_path / "i.csv", "item,price\n007,1.5\n010,2.5\n")
    ratings = load_ratings(table).with_side_tables(item_table=load_side_table(items))
    assert ratings.item_table is not None
    assert ratings.item_table["price"].tolist() == [1.5, 2.5]


def test_numbers_that_are_written_differently_are_different_users(tmp_path: Path) -> None:
    table = written(tmp_path / "r.csv", "user,item,rating\n1e2,a,5\n100,a,3\n1_0,b,2\n")
    assert sorted(load_ratings(table).user_ids) == ["100", "1_0", "1e2"]


@pytest.mark.parametrize("name", ["NA", "null", "None", "nan", "N/A"])
def test_words_for_nothing_are_ids(name: str, tmp_path: Path) -> None:
    table = written(tmp_path / "r.csv", f"user,item,rating\n{name},a,5\nbob,{name},3\n")
    ratings = load_ratings(table)
    assert name in ratings.user_ids
    assert name in ratings.item_ids
    with pytest.raises(DataError, match="no user id"):
        load_ratings(written(table, "user,item,rating\n,a,5\nbob,b,3\n"))
    with pytest.raises(DataError, match="rating is nan"):
        load_ratings(written(table, f"user,item,rating\nann,a,{name}\nbob,b,3\n"))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = written(tmp_path / "r.csv", "user,item,rating,rating\n1,7,5,1\n2,10,3,2\n")
    with pytest.raises(DataError, match=r"two columns.*'rating'.*rename"):
        load_ratings(table)
    unused = written(tmp_path / "u.csv", "user,item,rating,note,note\n1,7,5,1,1\n2,10,3,2,1\n")
    assert load_ratings(unused).n_ratings == 2
    with pytest.raises(DataError, match=r"two columns.*'price'.*rename"):
        load_side_table(written(tmp_path / "i.csv", "item,price,price\n1,2,3\n"))


def test_ids_of_nineteen_digits_are_read_everywhere(tmp_path: Path) -> None:
    snowflake = 1_234_567_890_123_456_789
    table = written(tmp_path / "r.csv", f"user,item,rating\n{snowflake},7,5\n{snowflake + 1},7,3\n")
    ratings = load_ratings(table)
    assert ratings.user_ids.tolist() == [snowflake, snowflake + 1]
    save(BiasModel().fit(ratings), tmp_path / "m.ordrec")
    pairs = written(tmp_path / "p.csv", f"user,item\n{snowflake},7\n")
    out = tmp_path / "out.csv"
    assert ordrec("predict", tmp_path / "m.ordrec", pairs, "-o", out, "-q") == 0
    assert pd.read_csv(out)["known_user"].tolist() == [True]


def test_ids_beyond_64_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(tmp_path / "r.csv", f"user,item,rating\n{2**63},7,5\n{2**63 + 1},7,3\n")
    assert load_ratings(table).user_ids.tolist() == [str(2**63), str(2**63 + 1)]
    with pytest.raises(DataError, match="9223372036854775807"):
        ids_like(pd.Index([1, 2]), [str(2**63)], "user")


def test_unsigned_ids_can_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = np.array([3, 2**64 - 1, 2**63], np.uint64)
    frame = pd.DataFrame({"user": ids, "item": [1, 1, 2], "rating": [1, 5, 3]})
    frame.to_parquet(tmp_path / "r.parquet")
    model = tmp_path / "m.ordrec"
    assert ordrec("fit", tmp_path / "r.parquet", "-m", "factors", "-o", model, "-q") == 0
    pairs = written(tmp_path / "p.csv", f"user,item\n{2**64 - 1},1\n4,2\n")
    out = tmp_path / "out.csv"
    assert ordrec("predict", model, pairs, "-o", out, "-q") == 0
    assert pd.read_csv(out)["known_user"].tolist() == [True, False]
    assert ordrec("recommend", model, "--user", str(2**63), "-n", "1") == 0
    assert ordrec("recommend", model, "--user", "-5", "-n", "1") == 2
    assert "Traceback" not in capsys.readouterr().err
    more = written(tmp_path / "more.csv", f"user,item,rating\n{2**64 - 1},2,3\n")
    assert ordrec("update", model, more, "-o", tmp_path / "n.ordrec") == 0


def test_unsigned_ids_become_signed_if_they_fit() -> None:
    frame = pd.DataFrame({"user": [1, 2], "item": [3, 4], "rating": [1, 5]})
    small = Ratings.from_frame(frame.astype({"user": np.uint64, "item": np.uint64}))
    assert small.user_ids.dtype == np.int64
    far = frame.astype({"user": np.uint64}).assign(user=np.array([1, 2**40], np.uint64))
    assert Ratings.from_frame(far).user_ids.dtype == np.int64
