"""Partitions carry side tables, weights and scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ordrec.cli import main
from ordrec.data import Ratings, Scale
from ordrec.datasets import read_ratings, synthetic_ratings
from ordrec.recommend import OrdinalFactors, fit_scan


def described() -> Ratings:
    ratings = synthetic_ratings(40, 30, n_ratings=600, seed=1)
    frame = ratings.to_frame().assign(weight=np.linspace(0.1, 1, ratings.n_ratings))
    return Ratings.from_frame(
        frame,
        scale=Scale.regular(1, 7),
        weight="weight",
        user_table=pd.DataFrame({"age": np.arange(40.0)}, index=ratings.user_ids),
        item_table=pd.DataFrame(
            {"title": [f"T{i}" for i in range(30)], "genres": ["a|b", "b", None] * 10},
            index=ratings.item_ids,
        ),
    )


def test_partitions_carry_side_tables_weights_and_scale(tmp_path: Path) -> None:
    ratings = described()
    ratings.to_partitions(tmp_path / "p", rows_per_part=200)
    again = read_ratings(tmp_path / "p")
    assert again.scale == ratings.scale
    key = ["user", "item"]
    pd.testing.assert_frame_equal(
        again.to_frame().sort_values(key, ignore_index=True),
        ratings.to_frame().sort_values(key, ignore_index=True),
    )
    assert again.item_table is not None
    assert again.user_table is not None
    assert ratings.item_table is not None
    assert again.item_table.loc[again.item_ids, "title"].tolist() == [
        ratings.item_table.loc[item, "title"] for item in again.item_ids
    ]
    assert again.item_table["genres"].isna().sum() == 10
    assert again.user_table["age"].tolist() == [float(user) for user in again.user_ids]
    some = Ratings.scan(tmp_path / "p").sample_users(7)
    assert some.user_table is not None
    assert some.user_table.index.equals(some.user_ids)


def test_all_ratings_are_fitted_with_the_side_tables_of_the_folder(tmp_path: Path) -> None:
    ratings = described()
    ratings.to_partitions(tmp_path / "p", rows_per_part=200)
    scan = Ratings.scan(tmp_path / "p")
    model = fit_scan(OrdinalFactors(n_factors=2, pattern=2), scan)
    assert model.titles_ == [f"T{i}" for i in range(30)]
    assert set(model.side_columns_["item"]) == {"title", "genres"}


def test_the_command_keeps_titles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, items = tmp_path / "r.csv", tmp_path / "items.csv"
    described().to_frame().to_csv(table, index=False)
    items.write_text("item,title\n" + "".join(f"{i},T{i}\n" for i in range(30)))
    words = ["data", "partition", table, tmp_path / "p", "--items", items, "--scale", "1..7"]
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    assert not left.value.code, capsys.readouterr().err
    again = read_ratings(tmp_path / "p")
    assert again.scale == Scale.regular(1, 7)
    assert again.item_table is not None
    assert again.item_table["title"].tolist() == [f"T{i}" for i in again.item_ids]
