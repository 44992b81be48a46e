"""Cells of an experiment, each stored in a file of its own as soon as it is finished.

A cell is one model on one fold of one data set with one seed. Its file is named by a hash of
everything that determines its outcome, so that a changed parameter, data set or metric makes a
new cell and an unchanged cell is never computed twice. Files are written completely or not at
all: a run that is killed leaves no incomplete cell.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ordrec.errors import ArgumentError
from ordrec.runtime.files import make_folder, write_text

__all__ = ["Cell", "CellOutcome", "CellStore"]


@dataclass(frozen=True)
class Cell:
    """Everything that determines an outcome: names for people, hashes for the key.

    Attributes
    ----------
    model, data, split, fold : str
    seed : int
    identity : dict of str
        What else must be equal for an outcome to be used again: the hashes of the model and
        the data, the metrics, the version.
    """

    model: str
    data: str
    split: str
    fold: str
    seed: int
    identity: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A hash of all attributes, the same in every process."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def about(self) -> dict[str, Any]:
        """The columns that name this cell in a result."""
        return {
            "data": self.data,
            "model": self.model,
            "split": self.split,
            "fold": self.fold,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class CellOutcome:
    """The rows of results of a cell, or the error that was raised instead, and the commit."""

    rows: list[dict[str, Any]]
    error: str = ""
    commit: str = ""


class CellStore:
    """A folder of finished cells.

    Parameters
    ----------
    folder : path
        Created if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, cell = CellStore(folder), Cell("svm", "toy", "kfold:5", "1", 0)
    ...     before = store.get(cell)
    ...     store.put(cell, CellOutcome([cell.about | {"metric": "mae", "value": 0.25}]))
    ...     before, store.get(cell).rows[0]["value"]
    (None, 0.25)
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ArgumentError(f"{self.folder} is a file: name a folder for the finished cells")
        make_folder(self.folder)

    def get(self, cell: Cell) -> CellOutcome | None:
        """Return the stored outcome, or None if there is none or its file is damaged."""
        try:
            content = json.loads(self._path(cell).read_text(encoding="utf-8"))
            rows, error = content["rows"], content["error"]
            commit = str(content.get("commit", ""))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        valid = isinstance(rows, list) and all(_is_row_of(cell, row) for row in rows)
        return CellOutcome(rows, error, commit) if valid and isinstance(error, str) else None

    def put(self, cell: Cell, outcome: CellOutcome) -> None:
        """Store an outcome, completely or not at all."""
        content = {"cell": asdict(cell), **asdict(outcome)}
        write_text(self._path(cell), json.dumps(content, indent=1))

    def __len__(self) -> int:
        # A run that was killed may leave a partly written file with a hidden name.
        return sum(1 for _ in self.folder.glob("[!.]*.json"))

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{cell.key}.json"


def _is_row_of(cell: Cell, row: Any) -> bool:
    """Return whether a row of a file is a value of a metric of this cell."""
    return (
        isinstance(row, dict)
        and all(row.get(name) == value for name, value in cell.about.items())
        and isinstance(row.get("metric"), str)
        and isinstance(row.get("value"), (int, float))
    )
