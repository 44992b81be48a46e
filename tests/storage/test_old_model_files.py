"""Model files that earlier versions saved must load and predict what they predicted then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ordrec.storage import load

FOLDER = Path(__file__).parent.parent / "stored_models"
FILES = sorted(FOLDER.glob("*/*.ordrec"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_old_file_loads_and_predicts_the_same(path: Path) -> None:
    expected = json.loads((path.parent / "expected.json").read_text())
    entry = expected["models"][path.stem]
    model = load(path)
    assert type(model).__name__ == entry["class"]
    for method in ("predict", "predict_proba", "scores"):
        assert hasattr(model, method) == (method in entry)
        if method in entry:
            values = getattr(model, method)(expected["users"], expected["items"])
            np.testing.assert_allclose(values, entry[method], rtol=1e-9, atol=1e-9)


def test_every_stored_file_has_its_expected_answers() -> None:
    for folder in FOLDER.iterdir():
        named = json.loads((folder / "expected.json").read_text())["models"]
        assert sorted(named) == sorted(path.stem for path in folder.glob("*.ordrec"))
