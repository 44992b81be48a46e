"""Finished parts are found by what they depend on, and a folder of parts belongs to one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ordrec.errors import ArgumentError
from ordrec.storage.parts import PartFolder, PartStore, model_checksum

IDENTITY = {"model": "a", "users": "b", "options": "c"}


def opened(
    folder: Path, version: int = 1, kind: str = "ordrec lists", **options: Any
) -> PartFolder:
    identity = IDENTITY | options.pop("changed", {})
    return PartFolder(folder, "_lists.json", kind, version, identity, ".csv", **options)


def test_parts_of_the_same_run_are_kept_and_those_of_any_other_refused(tmp_path: Path) -> None:
    folder = opened(tmp_path / "x")
    assert folder.waiting(range(3)) == [0, 1, 2]
    folder.file(1).write_text("done")
    assert opened(tmp_path / "x").waiting(range(3)) == [0, 2]
    for name in IDENTITY:
        with pytest.raises(ArgumentError, match=f"holds lists of other {name}"):
            opened(tmp_path / "x", changed={name: "other"})
    with pytest.raises(ArgumentError, match="of other version"):
        opened(tmp_path / "x", version=2)
    with pytest.raises(ArgumentError, match="of other format"):
        opened(tmp_path / "x", kind="ordrec predictions")
    assert folder.file(1).read_text() == "done"


def test_a_finished_run_is_the_same_run(tmp_path: Path) -> None:
    folder = opened(tmp_path / "x")
    folder.file(0).write_text("done")
    folder.finish(n=1)
    manifest = json.loads((tmp_path / "x" / "_lists.json").read_text())
    assert manifest == IDENTITY | {"format": "ordrec lists", "version": 1, "complete": True, "n": 1}
    assert opened(tmp_path / "x").waiting(range(1)) == []


def test_overwriting_throws_away_other_runs_only(tmp_path: Path) -> None:
    opened(tmp_path / "x").file(0).write_text("done")
    assert opened(tmp_path / "x", overwrite=True).waiting(range(1)) == []
    assert opened(tmp_path / "x", overwrite=True, changed={"users": "z"}).waiting([0]) == [0]
    with pytest.raises(ArgumentError, match="of other users"):
        opened(tmp_path / "x")
    with pytest.raises(ArgumentError, match="of other version"):
        opened(tmp_path / "x", overwrite=True, version=2)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    for name, text in (("note.txt", "mine"), ("_lists.json", "[]"), ("_lists.json", "{}")):
        place = tmp_path / f"{name}{text}"
        place.mkdir()
        (place / name).write_text(text)
        with pytest.raises(ArgumentError, match="is not empty and holds no lists"):
            opened(place, overwrite=True)
        assert (place / name).read_text() == text


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    opened(tmp_path / "x")
    (tmp_path / "x" / ".0a1b.csv").write_text("half")
    (tmp_path / "x" / ".note").write_text("mine")
    opened(tmp_path / "x")
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == [".note", "_lists.json"]


def test_a_run_that_was_killed_while_it_wrote_its_first_file_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / ".0123456789abcdef.json").write_text("half")
    opened(folder)
    assert [p.name for p in folder.iterdir()] == ["_lists.json"]
    other = tmp_path / "y"
    other.mkdir()
    for name in (".0123456789abcdef.json", ".mine.json"):  # one of them is somebody's
        (other / name).write_text("half")
    with pytest.raises(ArgumentError, match="is not empty"):
        opened(other)
    assert len(list(other.iterdir())) == 2


def test_a_store_counts_and_clears_its_own_files(tmp_path: Path) -> None:
    store = PartStore(tmp_path / "s")
    store.clear()  # there is nothing
    parts = [{"fold": 1}, {"fold": 2}]
    assert store.waiting(parts) == parts
    store.put(parts[0], {"x": np.arange(3)}, {"mae": 0.5})
    assert (len(store), store.waiting(parts)) == (1, parts[1:])
    arrays, metadata = store.get(parts[0]) or ({}, {})
    assert (arrays["x"].tolist(), metadata) == ([0, 1, 2], {"mae": 0.5})
    (tmp_path / "s" / ".half.part").write_text("")
    (tmp_path / "s" / "mine.txt").write_text("")
    assert len(store) == 1
    store.clear()
    assert [p.name for p in (tmp_path / "s").iterdir()] == ["mine.txt"]
    (tmp_path / "s" / "mine.txt").rename(tmp_path / "s" / ".0123456789abcdef.json")
    store.clear()
    assert not (tmp_path / "s").exists()


class Foreign:
    """A model of somebody else's, whose state ordrec can only pickle."""

    def __init__(self, number: Any) -> None:
        self.number = number


def test_a_checksum_of_a_foreign_model_is_that_of_what_it_holds() -> None:
    assert model_checksum(Foreign(3)) == model_checksum(Foreign(3))
    assert model_checksum(Foreign(3)) != model_checksum(Foreign(4))
    cannot = Foreign(lambda: 3)  # is never taken for another, not even for itself
    assert model_checksum(cannot) != model_checksum(cannot)
