"""What `evaluate` has measured, each model and fold in a file of its own as soon as it is done.

A file is named by a hash of everything that determines its content, so that other models, data
or options never find it. Files are written completely or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.evaluation.example_users import ExampleUser
from ordrec.evaluation.measurement import FoldMeasurement
from ordrec.evaluation.metrics.outcome import UserSums
from ordrec.runtime.files import make_folder
from ordrec.storage import load_arrays, save_arrays

__all__ = ["FinishedFolds", "clear_folder", "n_finished"]

ENDING = ".fold"
PARTS = ("users", "sums", "counts")  # the arrays of a `UserSums`


class FinishedFolds:
    """A folder of measurements.

    Parameters
    ----------
    folder : path
        Created with the first measurement.
    identity : mapping
        What else must be equal for a measurement to be used again: the data, the split, the
        metrics, the options.
    models : mapping of str to model
    side : object
        Side tables, which models may use.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        identity: Mapping[str, Any],
        models: Mapping[str, Any],
        side: Any = None,
    ):
        self.folder = Path(folder).absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise ArgumentError(f"{folder}: is a file: name a folder for finished measurements")
        self._identity = dict(identity) | {"side": joblib.hash(side)}
        self._models = {name: _hash(name, model) for name, model in models.items()}

    def get(self, model: str, fold: str) -> FoldMeasurement | None:
        """Return a measurement; None if there is none, it failed, or its file is damaged."""
        try:
            arrays, about = load_arrays(self._path(model, fold))
            return _restored(arrays, about)
        except (ModelFileError, LookupError, TypeError, ValueError):
            return None

    def put(self, fold: FoldMeasurement) -> None:
        """Keep a measurement; errors are not kept, so that they are tried again."""
        if fold.error:
            return
        make_folder(self.folder)
        save_arrays(self._path(fold.model, fold.fold), *_state(fold))

    def _path(self, model: str, fold: str) -> Path:
        identity = self._identity | {"name": model, "model": self._models[model], "fold": fold}
        text = json.dumps(identity, sort_keys=True, default=str)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}{ENDING}"


def n_finished(folder: Path) -> int:
    """Return the number of measurements in a folder, which need not exist."""
    return sum(1 for _ in folder.glob(f"[!.]*{ENDING}"))


def clear_folder(folder: Path) -> None:
    """Remove all measurements of a folder, and the folder if nothing else is in it."""
    if not folder.is_dir():
        return
    for file in folder.glob(f"*{ENDING}"):  # also one that was being written, under a hidden name
        file.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _hash(name: str, model: Any) -> str:
    """Return a hash of a model's parameters that is the same in every process."""
    try:
        return joblib.hash(model)
    except Exception as error:
        raise ArgumentError(
            f"model {name!r} cannot be pickled, so that its measurements cannot be kept ({error})"
        ) from error


def _state(fold: FoldMeasurement) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    arrays = {
        f"sums.{number}.{part}": np.asarray(getattr(sums, part))
        for number, sums in enumerate(fold.sums.values())
        for part in PARTS
    }
    if fold.distributions is not None:
        arrays |= {"levels": fold.distributions[0], "p": fold.distributions[1]}
    # values that are not defined are None in json
    rows = [row | {"value": row["value"] if np.isfinite(row["value"]) else None}
            for row in fold.rows]  # fmt: skip
    return arrays, {
        "model": fold.model,
        "split": fold.split,
        "fold": fold.fold,
        "rows": rows,
        "sums": [[*key, bool(sums.root)] for key, sums in fold.sums.items()],
        "examples": [user.to_json() for user in fold.examples],
    }


def _restored(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> FoldMeasurement:
    sums = {
        (users, metric, average): UserSums(
            **{part: arrays[f"sums.{number}.{part}"] for part in PARTS}, root=root
        )
        for number, (users, metric, average, root) in enumerate(about["sums"])
    }
    rows = [
        row | {"value": float("nan") if row["value"] is None else row["value"]}
        for row in about["rows"]
    ]
    kept = (arrays["levels"], arrays["p"]) if "p" in arrays else None
    examples = [ExampleUser.from_json(user) for user in about["examples"]]
    return FoldMeasurement(
        about["model"], about["split"], about["fold"], rows, sums, kept, examples=examples
    )
