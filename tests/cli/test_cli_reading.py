"""Tables and lists of ids as people have them: encodings, headers, compressions, gaps, words."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pandas as pd
import pytest
from support.commands import exit_code as ordrec

from ordrec.datasets import load_ratings

ROWS = [(f"u{u}", f"i{i}", 1 + (3 * u + i) % 5) for u in range(8) for i in range(9) if (u + i) % 4]
TABLE = "user,item,rating\n" + "".join(f"{u},{i},{r}\n" for u, i, r in ROWS)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "r.csv").write_text(TABLE)
    assert ordrec("fit", folder / "r.csv", "-m", "factors", "-o", folder / "m.ordrec", "-q") == 0
    return folder / "m.ordrec"


# ---- lists of ids ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"item\n", "header and no ids"),
        (b"item,why\ni1,x\ny\n,z\n", "line 4: no item id"),
        (b"a,b\ni1,x\n", "no column 'item'"),
        (b'item\n"i1\n', "not a csv table"),
        (b"i1\0\n", "NUL byte"),
    ],
)
@pytest.mark.parametrize("option", ["--exclude", "--only"])
def test_a_broken_list_of_ids_is_one_line(
    content: bytes, says: str, option: str, model: Path, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "ids.txt").write_bytes(content)
    assert ordrec("recommend", model, "--user", "u1", option, tmp_path / "ids.txt") == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [
        "i1\ni2\n",
        "item\ni1\ni2\n",
        "item_id;why\ni1;a\ni2;b\n",
        "n,Item ID\n1,i1\n2, i2\n",
        "\ni1\n\ni2",
    ],
)
def test_lists_of_ids_may_have_headers_and_further_columns(
    content: str, model: Path, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "ids.txt").write_text(content)
    words = ["--only", tmp_path / "ids.txt", "--include-rated"]
    assert ordrec("recommend", model, "--user", "u1", *words) == 0
    said = capsys.readouterr()
    assert sorted(line.split(",")[2] for line in said.out.splitlines()[1:]) == ["i1", "i2"]
    assert said.err == ""


def test_ids_that_match_nothing_are_said(model: Path, tmp_path: Path, capsys: Captured) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_bytes("i1\ncaf\xe9\n".encode("latin-1"))
    assert ordrec("recommend", model, "--user", "u1", "--exclude", ids) == 0
    assert "1 of 2 items are not in the model and are left out: café" in capsys.readouterr().err
    ids.write_text("x\ny\n")
    assert ordrec("recommend", model, "--user", "u1", "--exclude", ids) == 0
    assert "2 of 2 items are not in the model" in capsys.readouterr().err
    assert ordrec("recommend", model, "--user", "u1", "--only", ids) == 2
    assert "its ids look like i0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--at-most", "colour=1"], "--at-most: the model knows no column 'colour'"),
        (["--by", "best"], "--by must be one of expected"),
    ],
)
def test_errors_of_lists_name_options(
    words: list[str], says: str, model: Path, capsys: Captured
) -> None:
    assert ordrec("recommend", model, "--user", "u1", *words) == 2
    assert says in capsys.readouterr().err


def test_a_table_is_no_model(model: Path, capsys: Captured) -> None:
    table = model.parent / "r.csv"
    assert ordrec("recommend", table, "--user", "u1") == 2
    assert "r.csv: not a model file" in capsys.readouterr().err
    assert ordrec("data", "describe", table, "--scale", "5..1") == 2
    assert "--scale 5..1: need low < high" in capsys.readouterr().err


def test_one_unknown_user_does_not_end_all(model: Path, tmp_path: Path, capsys: Captured) -> None:
    users = tmp_path / "users.csv"
    users.write_text("customer_id\nu1\nnobody\nu2\n")
    out = tmp_path / "top.csv"
    assert ordrec("recommend", model, "--for", users, "-n", "2", "-o", out, "-q") == 0
    assert "1 of 3 users are not in the model and are left out: nobody" in capsys.readouterr().err
    assert pd.read_csv(out)["user"].unique().tolist() == ["u1", "u2"]


# ---- tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pack"),
    [("r.csv.bz2", bz2.compress), ("r.csv.xz", lzma.compress), ("r.csv", gzip.compress)],
)
def test_compressed_tables(name: str, pack: object, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pack(TABLE.encode()))  # type: ignore[operator]
    assert load_ratings(tmp_path / name).n_ratings == len(ROWS)


def test_encodings(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "r.csv"
    table.write_bytes("user,item,rating\nann,tea,5\nren\xe9,tea,3\n".encode("latin-1"))
    assert ordrec("data", "describe", table) == 2
    assert "r.csv, line 3: not UTF-8: pass --encoding latin-1" in capsys.readouterr().err
    assert ordrec("data", "describe", table, "--encoding", "latin-1") == 0
    assert "rené" in load_ratings(table, encoding="latin-1").user_ids
    assert ordrec("data", "describe", table, "--encoding", "klingon") == 2
    assert "--encoding must be one that Python knows" in capsys.readouterr().err
    table.write_text(TABLE, encoding="utf-16")
    assert load_ratings(table, encoding="utf-16").n_ratings == len(ROWS)


def test_blanks_between_fields(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "r.txt"
    table.write_text(TABLE.replace(",", "  "))
    assert load_ratings(table).n_ratings == len(ROWS)
    table.write_text("1 1 2\n1 2 4\n")
    assert ordrec("data", "describe", table) == 2
    assert "before it, such as 'user item rating'" in capsys.readouterr().err
    table.write_text("ann,kettle,5\nbob,pot,3\n")
    assert ordrec("data", "describe", table) == 2
    assert "before it, such as 'user,item,rating'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Rated At", "When", "timestamp_ms", "purchased"])
def test_a_column_that_may_hold_times_is_said(name: str, tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "r.csv"
    table.write_text(
        f"user,item,rating,{name}\nann,tea,5,2024-05-01 12:30:11\nbob,tea,3,2024-05-02\n"
    )
    assert ordrec("data", "describe", table) == 0
    said = capsys.readouterr().err
    assert f"column '{name}' may hold times and is not read: pass --time-col {name}" in said
    for chosen in (name, "none"):
        assert ordrec("data", "describe", table, "--time-col", chosen) == 0
        assert capsys.readouterr().err == ""


def test_an_empty_file_is_refused_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "r.csv"
    table.write_text("")
    assert ordrec("data", "describe", table) == 2
    assert "r.csv: not a csv table: its first line is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "header", ["customer_id,sku,stars", "User-ID;ISBN;Book-Rating", "reviewerID,asin,star_rating"]
)
def test_usual_names(header: str, tmp_path: Path) -> None:
    table = tmp_path / "r.csv"
    rows = TABLE.partition("\n")[2]
    table.write_text(f"{header}\n{rows.replace(',', ';') if ';' in header else rows}")
    assert load_ratings(table).n_ratings == len(ROWS)


@pytest.mark.parametrize("name", ["title", "name", "product_name", "Book-Title"])
def test_titles_under_usual_names(name: str, tmp_path: Path, capsys: Captured) -> None:
    table, items, model = tmp_path / "r.csv", tmp_path / "items.csv", tmp_path / "m.ordrec"
    table.write_text(TABLE)
    items.write_text(f"item,{name},price\n" + "".join(f"i{i},Thing {i},{i}\n" for i in range(9)))
    assert ordrec("fit", table, "--items", items, "-m", "factors", "-o", model, "-q") == 0
    assert ordrec("recommend", model, "--user", "u1", "--include-rated") == 0
    assert "i3,Thing 3," in capsys.readouterr().out


def test_ratings_that_are_words(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "r.csv"
    table.write_text("user,item,rating\nann,tea,good\nbob,tea,poor\nbob,soup,fair\n")
    assert ordrec("data", "describe", table, "--scale", "poor,fair,good") == 0
    assert "3 ratings" in capsys.readouterr().out
    assert load_ratings(table, scale=["poor", "fair", "good"]).values.tolist() == [3, 1, 2]
    assert ordrec("data", "describe", table, "--scale", "poor,good") == 2
    assert "line 4: row 2: rating 'fair' is none of poor, good" in capsys.readouterr().err


def test_rows_without_ratings_are_dropped_and_counted(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "r.csv"
    table.write_text(TABLE + "u1,i0,\nu2,i99,NA\n")
    assert ordrec("data", "describe", table) == 2
    assert "--missing drop" in capsys.readouterr().err
    assert ordrec("data", "describe", table, "--missing", "drop") == 0
    said = capsys.readouterr()
    assert f"2 of {len(ROWS) + 2} rows have no rating and are dropped" in said.err
    assert f"{len(ROWS)} ratings" in said.out


def test_parquet_with_users_as_index(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=["user", "item", "rating"])
    frame.set_index("user").to_parquet(tmp_path / "r.parquet")
    assert load_ratings(tmp_path / "r.parquet").n_users == 8
    frame.set_index(["user", "item"]).to_parquet(tmp_path / "two.parquet")
    assert load_ratings(tmp_path / "two.parquet").n_items == 9


@pytest.mark.parametrize("command", ["evaluate", "tune"])
def test_a_negative_seed_is_refused(command: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "r.csv").write_text(TABLE)
    assert ordrec(command, tmp_path / "r.csv", "-m", "bias", "--seed", "-1") == 2
    assert "--seed" in capsys.readouterr().err


# ---- names that reach a terminal ---------------------------------------------------------


def test_control_characters_are_printed_visibly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    table, items = tmp_path / "r.csv", tmp_path / "items.csv"
    table.write_text(TABLE.replace("i1,", "i\x1b[2J1,"))
    ids = sorted({i.replace("i1", "i\x1b[2J1") for _, i, _ in ROWS})
    items.write_text("item,title\n" + "".join(f"{i},the \x1b]0;x\x07 one\n" for i in ids))
    model = tmp_path / "m.ordrec"
    assert ordrec("fit", table, "--items", items, "-m", "factors", "-o", model, "-q") == 0
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    words = ["recommend", model, "--user", "u1", "--user", "no\x1b[31mbody", "--include-rated"]
    assert ordrec(*words) == 0
    said = capsys.readouterr()
    assert "the \\x1b]0;x\\x07 one" in said.out
    assert "\x1b" not in said.out + said.err
    assert ordrec("data", "describe", tmp_path / "no\x1b[31mfile.csv") == 2
    assert "\x1b" not in capsys.readouterr().err
