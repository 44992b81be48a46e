"""`load_path` recognises formats by the names of their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ordrec.data import Scale
from ordrec.data.formats import archives
from ordrec.datasets import (
    describe_dataset,
    find_dataset,
    load_eachmovie,
    load_jester,
    load_movielens,
    load_movietweetings,
    load_path,
    load_side_table,
    read_ratings,
)
from ordrec.errors import ArgumentError, OrdrecError


@pytest.mark.parametrize("sample", ["ml-100k", "ml-1m", "ml-latest"])
def test_movielens_folders_and_archives(samples: Path, tmp_path: Path, sample: str) -> None:
    expected = load_movielens(samples / sample)
    archive = shutil.make_archive(str(tmp_path / sample), "zip", samples, sample)
    for path in (samples / sample, archive):
        loaded = load_path(path)
        assert loaded.to_frame().equals(expected.to_frame())
        assert loaded.item_table is not None


@pytest.mark.parametrize("sample", ["eachmovie", "eachmovie-csv", "eachmovie-triple"])
def test_eachmovie_folders(samples: Path, sample: str) -> None:
    assert load_path(samples / sample).n_ratings == load_eachmovie(samples / sample).n_ratings


def test_jester_by_its_column_of_jokes(samples: Path, tmp_path: Path) -> None:
    expected = load_jester(samples / "jester")
    copied = shutil.copy(samples / "jester" / "ratings.csv", tmp_path / "jokes.csv")
    for path in (samples / "jester", samples / "jester" / "ratings.csv", copied):
        assert load_path(path).to_frame().equals(expected.to_frame())
        assert load_path(path).scale == expected.scale


def test_a_folder_of_something_else_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(OrdrecError, match="name one file"):
        load_path(tmp_path)


def test_one_reader_for_names_folders_files_and_partitions(samples: Path, tmp_path: Path) -> None:
    folder = samples / "ml-100k"
    expected = load_movielens(folder).to_frame()
    load_movielens(folder).to_partitions(tmp_path / "parts")
    assert read_ratings("ml-100k", folder=samples).n_ratings == len(expected)
    assert read_ratings(str(folder)).to_frame().equals(expected)
    assert read_ratings(tmp_path / "parts").n_ratings == len(expected)
    assert read_ratings(samples / "eachmovie").n_ratings > 0
    with pytest.raises(OrdrecError, match="no such file or folder"):
        read_ratings(tmp_path / "nowhere.csv")
    with pytest.raises(OrdrecError, match="did you mean ml-100k"):
        read_ratings("ml-100")


def test_movietweetings_is_not_taken_for_movielens(samples: Path, tmp_path: Path) -> None:
    folder = samples / "movietweetings"
    expected = load_movietweetings(folder)
    archive = shutil.make_archive(str(tmp_path / "tweets"), "zip", samples, "movietweetings")
    for path in (folder, archive):
        for read in (load_path, read_ratings):
            found = read(path)
            assert found.to_frame().equals(expected.to_frame())
            assert found.scale == expected.scale == Scale.regular(0, 10)
            assert found.item_table is not None
    alone = load_path(folder / "ratings.dat")
    assert alone.to_frame().equals(expected.to_frame())


@pytest.mark.realdata
def test_the_folder_of_movietweetings_itself() -> None:
    folder = find_dataset("movietweetings-100k")
    if folder is None:
        pytest.skip("MovieTweetings is not on this machine")
    ratings = read_ratings(folder)
    published = describe_dataset("movietweetings-100k").counts
    assert ratings.n_ratings == published["ratings"]
    assert ratings.n_users == published["users"]
    assert ratings.n_items == published["items"]
    assert ratings.scale == Scale.regular(0, 10)


def test_options_are_for_tables_of_your_own(samples: Path, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("who,what,stars\nann,tea,5\nann,soup,2\nbob,tea,4\n")
    found = read_ratings(table, user="who", item="what", scale=range(1, 6))
    assert found.scale == Scale.regular(1, 5)
    with pytest.raises(ArgumentError, match="user= is for tables of your own") as refused:
        read_ratings("ml-100k", folder=samples, user="who")
    assert refused.value.parameters == ("user",)
    with pytest.raises(ArgumentError, match="did you mean ml-100k"):
        read_ratings("ml-100", user="who")


def test_an_archive_is_opened_once(samples: Path, tmp_path: Path, monkeypatch) -> None:
    archive = shutil.make_archive(str(tmp_path / "ml"), "zip", samples, "ml-100k")
    opened = []
    original = archives._zip_source
    monkeypatch.setattr(
        archives, "_zip_source", lambda path: (opened.append(path), original(path))[1]
    )
    assert read_ratings(archive).n_ratings > 0
    assert len(opened) == 1


def test_a_header_may_be_very_long(tmp_path):
    """Columns that are of no use are left out, as many as there are."""
    notes = [f"note{k:05d}" for k in range(8000)]  # 72 kilobytes
    rows = [["ann", "tea", "4", *["x"] * 8000], ["bob", "milk", "2", *["y"] * 8000]]
    path = tmp_path / "wide.csv"
    lines = [",".join(["user", "item", "rating", *notes]), *map(",".join, rows)]
    path.write_text("\n".join(lines) + "\n")
    read = read_ratings(path)
    assert read.to_frame()[["user", "item", "rating"]].to_numpy().tolist() == [
        ["ann", "tea", 4.0],
        ["bob", "milk", 2.0],
    ]


def test_a_column_has_one_type_however_late_its_first_text_comes(tmp_path: Path) -> None:
    rows = [f"{k},{k:09d}\n" for k in range(40_000)]  # more than pandas reads at a time
    (tmp_path / "items.csv").write_text("".join(["item,code\n", *rows, "x,last\n"]))
    codes = load_side_table(tmp_path / "items.csv")["code"]
    assert codes.iloc[[7, -1]].tolist() == ["000000007", "last"]
    assert set(map(type, codes)) == {str}
