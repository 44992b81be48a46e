"""The examples in the docstrings, the README and the guide do what they say."""

from __future__ import annotations

import doctest
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ordrec
from ordrec.data import Ratings
from ordrec.datasets import load_dataset

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(ordrec.__path__, "ordrec.")
    if not module.name.startswith("ordrec.pipelines")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def fewer_ratings(name: str) -> Ratings:
    """A tenth of a data set, with the users and items that the examples name."""
    ratings = load_dataset(name)
    named = ratings.item_codes([1, 296, 318, 1285])
    often = (ratings.item_counts >= 25) | np.isin(np.arange(ratings.n_items), named)
    return ratings.select((ratings.users < 120) & often[ratings.items]).compact()


def a_shop(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sales, and all products of a shop, two of which are unsold."""
    chance = np.where(np.arange(60)[:, None] % 4 == np.arange(220) % 4, 0.4, 0.07)
    customers, products = np.nonzero(rng.random((60, 220)) < chance)
    buyers = ["ann", *(f"customer {k}" for k in range(1, 60))]
    sales = pd.DataFrame({"user": np.take(buyers, customers), "item": products.astype(str)})
    ids = [*map(str, range(220)), "new-lamp", "new-chair"]
    kinds = [f"kind {k % 5}" for k in range(222)]
    return sales, pd.DataFrame({"item": ids, "kind": kinds})


def guide() -> list[str]:
    """The pages of the guide, in the order of its table of contents."""
    index = (ROOT / "docs" / "guide" / "index.md").read_text()
    listed = re.search(r"```{toctree}\n:.*\n\n(.*?)```", index, re.S)
    assert listed is not None
    return [f"docs/guide/{name}.md" for name in listed[1].split()]


def test_the_guide_lists_all_its_pages() -> None:
    there = {path.stem for path in (ROOT / "docs" / "guide").glob("*.md")} - {"index"}
    assert {Path(page).stem for page in guide()} == there


@pytest.mark.parametrize("pages", [["README.md"], guide()], ids=["README", "guide"])
def test_examples_of_pages(pages, tmp_path, monkeypatch) -> None:
    """They run one after another, as a reader would type them, on fewer ratings."""
    monkeypatch.chdir(tmp_path)  # some of them write files
    monkeypatch.setattr(ordrec, "load_dataset", fewer_ratings)
    assert 5_000 < fewer_ratings("ml-latest-small-2016").n_ratings < 20_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    level = np.digitize(X[:, 0], [-0.5, 0.5])
    words = ["kernels rank documents", "kernels and ranks", "boiling tea", "tea and documents"]
    names: dict[str, object] = {
        "X": X,
        "X_new": X[:5],
        "y": np.array(["poor", "fair", "good"])[level],
        "texts": words * 3,
        "relevance": [2, 1, 0, 1] * 3,
        "queries": np.repeat(["kernels", "tea", "documents"], 4),
        "new_texts": words[:2],
        "new_queries": ["ranks", "ranks"],
        "new_ids": ["first", "second"],
        "frame": pd.DataFrame({"who": [1, 1, 2], "what": ["a", "b", "a"], "stars": [1, 5, 3]}),
        "items": pd.DataFrame({"item": ["a", "b"], "tags": ["red|small", "red|large"]}),
        "users": pd.DataFrame({"user": [1, 2], "likes": ["red|small", "red"]}),
        "seen_elsewhere": pd.DataFrame({"user": [15], "item": [318]}),
    }
    names["sales"], names["shop"] = a_shop(rng)
    blocks = [
        (page, block)
        for page in pages
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    ]
    assert blocks
    for page, block in blocks:
        exec(compile(block, page, "exec"), names)
