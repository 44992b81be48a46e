"""The data goes one way: who may import whom, and what may be imported at once."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ordrec"

# A room imports only from rooms of the rows above its own, and from itself. What is imported
# inside a function, and what is named by a text such as "ordrec.rating.bias:BiasModel", counts.
ROOMS = [
    ["errors"],
    ["runtime"],  # compiling, progress, files, parallel work
    ["linalg"],
    ["storage"],
    ["data"],
    ["datasets"],  # the public names of data
    ["features"],
    ["kernels"],
    ["ordinal"],
    ["models"],
    ["lists"],
    ["rating", "choice"],  # what will they think of it; what will they pick
    ["peers"],
    ["recommend"],  # what shall we show
    ["evaluation"],
    ["documents"],  # which of these answers the query
    ["report"],
    ["files"],  # the table of all classes that a model file can hold
    ["serve"],
    ["experiments"],
    ["cli"],
]
ROW_OF = {room: row for row, rooms in enumerate(ROOMS) for room in rooms}
# Estimators and kernels on X, y know nothing of ratings.
WITHOUT_RATINGS = ["ordinal", "kernels"]
ABOUT_RATINGS = {"data", "datasets", "features", "models"}
FAMILIES = ["svor", "npsvor", "gpor", "boosting", "logistic"]
FORBIDDEN_NAMES = {"utils.py", "helpers.py", "core.py", "common.py"}
NAMED = re.compile(rf"ordrec\.({'|'.join(ROW_OF)})(\.\w+)*(:\w+)?")
SOURCES = sorted(PACKAGE.rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Full names of what a file imports or names by a text, at any depth of the file."""
    tree = ast.parse(path.read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            assert node.module is not None
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and NAMED.fullmatch(str(node.value)):
            found.add(node.value)
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_rooms_import_one_way(path: Path) -> None:
    own = room_of(path)
    if own in ("__init__", "__main__"):
        return
    assert own in ROW_OF, f"{own} has no place in the order of rooms"
    for name in imports_of(path):
        if name.startswith("ordrec.") and name != "ordrec.__version__":
            room = name.split(".")[1]
            assert room in ROW_OF, f"{path} imports {name} from the top, where every room meets"
            assert room == own or ROW_OF[room] < ROW_OF[own], f"{path} imports {name}"


@pytest.mark.parametrize("room", WITHOUT_RATINGS)
def test_estimators_on_features_know_nothing_of_ratings(room: str) -> None:
    for path in sorted((PACKAGE / room).rglob("*.py")):
        if path.is_relative_to(PACKAGE / "kernels" / "items"):
            continue  # kernels between items are made of ratings
        for name in imports_of(path):
            if name.startswith("ordrec."):
                about_ratings = name.split(".")[1] in ABOUT_RATINGS
                assert not about_ratings, f"{path} imports {name}"
                assert not name.startswith("ordrec.kernels.items"), f"{path} imports {name}"


@pytest.mark.parametrize("family", FAMILIES)
def test_families_do_not_import_each_other(family: str) -> None:
    others = {f"ordrec.ordinal.{other}" for other in FAMILIES if other != family}
    for path in (PACKAGE / "ordinal" / family).glob("*.py"):
        for name in imports_of(path):
            assert not any(name == o or name.startswith(o + ".") for o in others), (path, name)


@pytest.mark.parametrize("family", FAMILIES)
def test_mathematics_needs_neither_scikit_learn_nor_pandas(family: str) -> None:
    for path in (PACKAGE / "ordinal" / family).glob("*.py"):
        if path.name in ("model.py", "__init__.py"):
            continue
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"sklearn", "pandas", "logging"}, path


def test_no_file_is_named_after_nothing() -> None:
    assert not [path for path in SOURCES if path.name in FORBIDDEN_NAMES]


def test_import_is_light() -> None:
    heavy = ["numba", "sklearn", "matplotlib", "implicit", "pandas", "dask", "fastapi"]
    code = f"import ordrec, ordrec.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
