"""The examples in the docstrings, and those of the README, do what they say."""

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

README = Path(__file__).parent.parent / "README.md"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(ordrec.__path__, "ordrec.")
    if not module.name.startswith("ordrec.pipelines")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_readme_examples(tmp_path, monkeypatch) -> None:
    """They run one after another, as a reader would type them."""
    monkeypatch.chdir(tmp_path)  # one of them writes a file
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    level = np.digitize(X[:, 0], [-0.5, 0.5])
    names: dict[str, object] = {
        "X": X,
        "X_new": X[:5],
        "y": np.array(["poor", "fair", "good"])[level],
        "frame": pd.DataFrame({"who": [1, 1, 2], "what": ["a", "b", "a"], "stars": [1, 5, 3]}),
        "items": pd.DataFrame({"item": ["a", "b"], "tags": ["red|small", "red|large"]}),
        "users": pd.DataFrame({"user": [1, 2], "likes": ["red|small", "red"]}),
    }
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
