"""Folders of finished parts, so that an interrupted run goes on where it stopped.

A part is a file that is written completely or not at all. In a `PartStore` a file is named by a
hash of everything that determines its content: several runs may share the folder, what changes
makes a new part, and what does not change is never computed twice. A `PartFolder` belongs to one
run; its parts are numbered, and a manifest says what they are parts of.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.runtime.files import half_written, is_fresh, make_folder, write_text
from ordrec.storage.archive import load_arrays, save_arrays
from ordrec.storage.schema import contents_of

__all__ = ["PartFolder", "PartStore", "checksum", "model_checksum"]


def checksum(*pieces: bytes) -> str:
    """Return a short checksum of bytes."""
    return hashlib.sha256(b"".join(pieces)).hexdigest()[:32]


def model_checksum(model: Any) -> str:
    """Return a short checksum of everything that a fitted model has learnt.

    Models of ordrec are identified by what their files would hold, others by what pickle keeps of
    them. What can be neither stored nor pickled is equal to nothing, itself included: parts that
    it made are not used again.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import Popularity
    >>> one, two = (synthetic_ratings(20, 12, n_ratings=100, seed=seed) for seed in (0, 1))
    >>> model = Popularity().fit(one)
    >>> same = model_checksum(Popularity().fit(one)), model_checksum(Popularity().fit(two))
    >>> [each == model_checksum(model) for each in same]
    [True, False]
    """
    found = _Digest()
    try:
        arrays, metadata = contents_of(model, _AnyKind())
        found.write(json.dumps(metadata, sort_keys=True).encode())
        for name, array in sorted(arrays.items()):
            array = np.ascontiguousarray(array)
            found.write(f"{name} {array.dtype.str} {array.shape}".encode())
            found.write(array.reshape(-1).view(np.uint8).data)
    except (ArgumentError, AttributeError, TypeError, ValueError):
        found = _Digest()
        try:
            pickle.Pickler(found, pickle.HIGHEST_PROTOCOL).dump(model)
        except Exception:  # whatever the methods of a stranger's class raise
            return f"{type(model).__name__} {uuid.uuid4().hex}"
    return f"{type(model).__name__} {found.text()}"


class _AnyKind:
    """The classes whose declarations say all that they have learnt: those of ordrec itself."""

    def name_of(self, model: Any) -> str:
        """Return the name of the model's class."""
        kind = type(model)
        if not kind.__module__.startswith("ordrec."):
            raise ArgumentError(f"a {kind.__name__} may hold more than it declares")
        return f"{kind.__module__}.{kind.__qualname__}"

    def class_of(self, name: Any) -> type:
        """Nothing is read here."""
        raise NotImplementedError


class _Digest:
    """A file that keeps nothing but a checksum of what is written to it."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def write(self, data: Any) -> None:
        """Add bytes."""
        self._hash.update(data)

    def text(self) -> str:
        """Return the checksum."""
        return self._hash.hexdigest()[:32]


class PartStore:
    """A folder of parts that are found by what they depend on.

    Parameters
    ----------
    folder : path
        Created when the first part is written.
    suffix : str
        Ending of the files.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, part = PartStore(folder), {"model": "svm", "fold": 1}
    ...     before = store.get(part)
    ...     store.put(part, {"errors": np.zeros(3)}, {"mae": 0.25})
    ...     before, store.get(part)[1], store.get(part | {"fold": 2})
    (None, {'mae': 0.25}, None)
    """

    def __init__(self, folder: str | os.PathLike[str], suffix: str = ".part"):
        self.path, self._suffix = Path(folder).absolute(), suffix
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"{folder}: is a file: name a folder to write to")

    def file(self, part: Any) -> Path:
        """Return the file of a part, which is described by values that json can represent."""
        text = json.dumps(part, sort_keys=True)
        return self.path / f"{checksum(text.encode())}{self._suffix}"

    def waiting(self, parts: Iterable[Any]) -> list[Any]:
        """Return the parts that are not finished."""
        return [part for part in parts if not self.file(part).exists()]

    def get(self, part: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Return the arrays and the metadata of a part; None if it is missing or damaged."""
        try:
            return load_arrays(self.file(part))
        except ModelFileError:
            return None

    def put(self, part: Any, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
        """Write a part, see `ordrec.storage.save_arrays`."""
        make_folder(self.path)
        save_arrays(self.file(part), arrays, metadata)

    def __len__(self) -> int:
        # A run that was killed may leave a partly written file with a hidden name.
        return sum(1 for _ in self.path.glob(f"[!.]*{self._suffix}"))

    def clear(self) -> None:
        """Remove all parts, partly written ones too, and the folder if nothing else is in it."""
        if not self.path.is_dir():
            return
        for file in self.path.glob(f"*{self._suffix}"):
            file.unlink(missing_ok=True)
        if is_fresh(self.path):
            for file in half_written(self.path):
                file.unlink(missing_ok=True)
            self.path.rmdir()


class PartFolder(PartStore):
    """A folder of numbered parts of one run, and a manifest that says what they are parts of.

    Parameters
    ----------
    folder : path
        A new folder, or one of an interrupted run with the same identity.
    manifest_name : str
    format : str
        What the folder holds, in a manifest and in messages, such as "ordrec predictions".
    version : int
    identity : dict
        What the parts depend on; a folder with another identity is refused.
    suffix : str
        Ending of the files.
    overwrite : bool
        Whether parts of a run with another identity are removed.
    remedy : str
        What to do about a folder with another identity, for the error.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        manifest_name: str,
        format: str,
        version: int,
        identity: dict[str, Any],
        suffix: str = ".parquet",
        overwrite: bool = False,
        remedy: str = "name a new folder, or delete it",
    ):
        super().__init__(folder, suffix)
        self._overwrite, self._remedy = overwrite, remedy
        self._manifest_file = self.path / manifest_name
        self._kind = format.removeprefix("ordrec ")
        self._manifest = {"format": format, "version": version} | identity | {"complete": False}
        self._open()

    def file(self, part: int) -> Path:
        """Return the file of a part, by its number."""
        return self.path / f"part-{part:05d}{self._suffix}"

    def finish(self, **about: Any) -> None:
        """Note in the manifest that all parts are there."""
        self._write(self._manifest | {"complete": True} | about)

    def _open(self) -> None:
        """Make the folder, or check that it belongs to the same run."""
        make_folder(self.path)
        if is_fresh(self.path):
            self._write(self._manifest)
        try:
            before = json.loads(self._manifest_file.read_text())
            same = {key: before[key] for key in self._manifest if key != "complete"}
        except (OSError, ValueError, KeyError, TypeError):
            raise ArgumentError(
                f"{self.path}: is not empty and holds no {self._kind}: name a new folder"
            ) from None
        for key, value in same.items():
            if value != self._manifest[key]:
                if self._overwrite and key not in ("format", "version"):
                    self.clear()
                    self._write(self._manifest)
                    break
                raise ArgumentError(
                    f"{self.path}: holds {self._kind} of other {key}, from a run that has not "
                    f"ended: {self._remedy}",
                    parameter="overwrite" if "overwrite=" in self._remedy else (),
                )
        for left in {*self.path.glob(f".*{self._suffix}"), *half_written(self.path)}:
            left.unlink(missing_ok=True)

    def _write(self, manifest: dict[str, Any]) -> None:
        write_text(self._manifest_file, json.dumps(manifest, indent=1))
