"""Journeys with unsold products and rules of lists, through the command line and Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import Ratings, load
from ordrec.cli import app
from ordrec.cli.parameters import in_options

N_USERS, N_ITEMS, KINDS = 100, 220, 4
PARAMETERS = ["--set", "n_factors=4", "--set", "n_jobs=1", "--set", "mix=0.35", "--set", "cold=16",
              "--set", "regularization=50"]  # fmt: skip


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words: object) -> str:
    """The message that the command line prints."""
    found = run(*words)
    assert found.exception is not None
    assert not isinstance(found.exception, SystemExit), found.output
    return in_options(found.exception)


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A folder with sales, a table of products of which two are unsold, and a fitted model."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(4)
    alike = np.arange(N_ITEMS) % KINDS == np.arange(N_USERS)[:, None] % KINDS
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < np.where(alike, 0.4, 0.04))
    sales = pd.DataFrame({"user": [f"u{u}" for u in users], "item": [f"i{i}" for i in items]})
    sales.to_csv(folder / "sales.csv", index=False)
    numbers = np.arange(N_ITEMS + 2)
    table = pd.DataFrame(
        {"item": [f"i{i}" for i in numbers], "kind": [f"k{i % 4}" for i in numbers]}
    )
    table.to_csv(folder / "items.csv", index=False)
    (folder / "new.csv").write_text("item\ni220\ni221\n")
    found = run("fit", folder / "sales.csv", "-m", "choice", *PARAMETERS, "--rating-col", "none",
                "--items", folder / "items.csv", "-o", folder / "m")  # fmt: skip
    assert found.exit_code == 0, found.output
    return folder


def listed(*words: object) -> pd.DataFrame:
    from io import StringIO

    found = run("recommend", *words)
    assert found.exit_code == 0, found.output
    return pd.read_csv(StringIO(found.stdout))


def test_unsold_products_can_be_listed(shop: Path) -> None:
    only = listed(shop / "m", "-u", "u0", "--only", shop / "new.csv")
    assert only["item"].tolist() == ["i220", "i221"]  # u0 buys what is of the kind of i220
    explored = listed(shop / "m", "-u", "u1", "-n", 10, "--explore", 0.1)
    assert explored["item"].isin(["i220", "i221"]).sum() >= 1
    sales, table = pd.read_csv(shop / "sales.csv"), pd.read_csv(shop / "items.csv")
    read = Ratings.from_frame(sales, rating=None, item_table=table, new_items=True)
    assert list(read.item_ids[-2:]) == ["i220", "i221"]
    own = load(shop / "m").recommend("u1", 10, explore=0.1)
    assert own["item"].tolist() == explored["item"].tolist()


def test_products_that_arrive_later_are_taken_in(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("user,item\nu2,i4\n")
    (tmp_path / "arrived.csv").write_text("item,kind\ni900,k2\ni901,k1\n")
    found = run("update", shop / "m", tmp_path / "more.csv", "--items", tmp_path / "arrived.csv",
                "--rating-col", "none", "-o", tmp_path / "m")  # fmt: skip
    assert found.exit_code == 0, found.output
    (tmp_path / "only.csv").write_text("i900\ni901\n")
    lists = listed(tmp_path / "m", "-u", "u2", "--only", tmp_path / "only.csv")
    assert lists["item"].tolist() == ["i900", "i901"]


def test_rules_of_lists(shop: Path, tmp_path: Path) -> None:
    capped = listed(shop / "m", "-u", "u0", "-n", 6, "--at-most", "kind=2")
    kinds = capped["item"].str[1:].astype(int) % KINDS
    assert len(capped) == 6
    assert kinds.value_counts().max() == 2
    first = listed(shop / "m", "-u", "u0", "-n", 2)["item"].tolist()
    pairs = pd.DataFrame({"user": "u0", "item": first, "why": "returned"})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    hidden = listed(
        shop / "m", "-u", "u0", "-u", "u4", "-n", 5, "--exclude", tmp_path / "pairs.csv"
    )
    assert not set(hidden[hidden["user"] == "u0"]["item"]) & set(first)
    same = listed(shop / "m", "-u", "u4", "-n", 5)["item"].tolist()
    assert hidden[hidden["user"] == "u4"]["item"].tolist() == same


def test_odd_rules_have_clear_answers(shop: Path, tmp_path: Path) -> None:
    ask = ["recommend", shop / "m", "-u", "u0"]
    said = refused(*ask, "--at-most", "price=2")
    assert "knows no column 'price'" in said
    assert "it has kind" in said
    assert "write it as genre=3" in refused(
        "recommend", shop / "m", "-u", "u0", "--at-most", "kind"
    )
    assert "between 0 and 1" in refused(*ask, "--explore", 3)
    (tmp_path / "pairs.csv").write_text("user,item\nnobody,nothing\n")
    rule = ["--only", tmp_path / "pairs.csv"]
    assert "none of the 1 pairs" in refused(*ask, *rule)
    (tmp_path / "gap.csv").write_text("user,item\nu0,\n")
    rule = ["--exclude", tmp_path / "gap.csv"]
    assert "line 2: no item id" in refused(*ask, *rule)
