"""The data goes one way: who may import whom, and what may be imported at once."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ordrec"

# A room imports only from rooms to its left.
ROOMS = [
    "errors",
    "progress",
    "compiling",
    "files",
    "parallel",
    "linalg",
    "persistence",
    "ratings",
    "datasets",
    "features",
    "kernels",
    "ordinal",
    "recommend",
    "evaluation",
    "report",
    "serve",
    "experiments",
    "cli",
]
# Inside `recommend` a room imports only from rooms of lower groups, and from itself. A table of
# pairs and a list of the best items are made of plain arrays, so they are near the bottom: the
# predictor's own methods use them.
ROOMS_OF_RECOMMEND = [
    ["protocols", "base", "registry", "units", "pair_table", "top_n"],
    ["lists", "part_folder", "uncertainty"],
    ["all_lists", "answers"],
    ["baselines", "adapters", "thresholds", "choice"],
    ["recommender"],
    ["process", "factors", "scans"],
    ["process_model", "factor_scan"],
    ["predictor", "per_user"],
    ["relevance"],
]
MOST_FILES = 12  # in a folder of `recommend`
FAMILIES = ["svor", "npsvor", "gpor", "boosting", "logistic"]
FORBIDDEN_NAMES = {"utils.py", "helpers.py", "core.py", "common.py"}
SOURCES = sorted(PACKAGE.rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Full names of all ordrec modules a file imports, at any depth of the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_rooms_import_only_from_their_left(path: Path) -> None:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts[0] == "__init__" or parts[0] == "__main__":
        return
    own = parts[0]
    assert own in ROOMS, f"{parts[0]} has no place in the order of rooms"
    for name in imports_of(path):
        if name.startswith("ordrec."):
            room = name.split(".")[1]
            assert ROOMS.index(room) <= ROOMS.index(own), f"{path} imports {name}"


def test_rooms_of_recommend_import_only_from_lower_groups() -> None:
    order = {room: group for group, rooms in enumerate(ROOMS_OF_RECOMMEND) for room in rooms}
    folder = PACKAGE / "recommend"
    for path in sorted(folder.rglob("*.py")):
        own = path.relative_to(folder).with_suffix("").parts[0]
        if own == "__init__":
            continue
        assert own in order, f"recommend/{own} has no place in the order of rooms"
        for name in imports_of(path):
            if name.startswith("ordrec.recommend."):
                room = name.split(".")[2]
                assert room == own or order[room] < order[own], f"{path} imports {name}"


def test_no_folder_of_recommend_is_crowded() -> None:
    folder = PACKAGE / "recommend"
    for room in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        assert len(list(room.glob("*.py"))) <= MOST_FILES, room


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
