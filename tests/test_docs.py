"""The reference of the documentation has every public name once."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import ordrec

DOCS = Path(__file__).parent.parent / "docs"
PACKAGES = [
    "recommend", "ordinal", "evaluation", "documents", "data", "datasets", "kernels", "features",
    "runtime.parallel",
]  # fmt: skip


def listed(page: Path) -> tuple[str, list[str]]:
    text = page.read_text(encoding="utf-8")
    package = re.search(r"currentmodule:: (\S+)", text)
    assert package is not None
    blocks = re.findall(r":toctree: generated/\n\n((?:   \S+\n)+)", text)
    return package[1], " ".join(blocks).split()


def test_the_reference_has_every_public_name_once() -> None:
    pages = dict(map(listed, (DOCS / "reference").glob("*.rst")))
    assert set(pages) == {"ordrec", *(f"ordrec.{name}" for name in PACKAGES)}
    elsewhere = {name for package, names in pages.items() if package != "ordrec" for name in names}
    for package, names in pages.items():
        public = set(import_module(package).__all__) - {"__version__"}
        if package == "ordrec":
            public -= elsewhere
        elif package == "ordrec.evaluation":
            assert Counter(names).pop("decide", 0) == 0  # it is described in ordrec.ordinal
            public -= {"decide"}
        assert sorted(names) == sorted(public), package
    assert ordrec.__version__


def test_notebooks_are_kept_without_outputs() -> None:
    notebooks = sorted((DOCS / "notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 3
    for path in notebooks:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs"), path.name
