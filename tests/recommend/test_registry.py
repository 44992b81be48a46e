"""The registry of models: the guide lists all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ordrec.recommend
from ordrec.errors import ArgumentError
from ordrec.recommend import make_model, model_names
from ordrec.recommend.registry import MODELS, storable_kinds

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guide" / "methods.md"


def readme_columns() -> tuple[set[str], set[str]]:
    """Classes and names in the guide's table of rating models."""
    table = re.search(r"\| model \| class \| name \|\n\|[-|]+\|\n((?:\|.*\n)+)", GUIDE.read_text())
    assert table is not None
    cells = [line.strip("|\n").split("|") for line in table.group(1).splitlines()]
    columns = [
        set(re.findall(r"`([^`]+)`", " ".join(column))) for column in zip(*cells, strict=True)
    ][1:]
    return columns[0], columns[1]


def test_the_guide_lists_every_model_and_every_stored_class() -> None:
    classes, names = readme_columns()
    own = {entry.name for entry in MODELS if entry.home.startswith("ordrec.")}
    assert set(model_names()) & own <= names
    assert names <= set(model_names())
    assert set(storable_kinds()) <= classes
    assert {name for name in classes if "." not in name} <= set(ordrec.recommend.__all__)


def test_a_preset_takes_the_other_parameters_of_its_model() -> None:
    model = make_model("predictor-fast", refit=False, random_state=3)
    assert (model.preset, model.refit, model.random_state) == ("fast", False, 3)
    with pytest.raises(ArgumentError, match="has no parameter 'refits': did you mean 'refit'"):
        make_model("predictor-fast", refits=False)
