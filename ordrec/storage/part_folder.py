"""A folder of finished parts, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ordrec.errors import ArgumentError
from ordrec.runtime.files import make_folder, write_text

__all__ = ["PartFolder", "checksum"]


def checksum(*pieces: bytes) -> str:
    """Return a short checksum of bytes."""
    return hashlib.sha256(b"".join(pieces)).hexdigest()[:32]


class PartFolder:
    """Parts in one file each, and a manifest that says what they are parts of.

    Parameters
    ----------
    path : Path
        A new folder, or one of an interrupted run with the same identity.
    manifest_name : str
    format : str
        What the folder holds, in a manifest and in messages, such as "ordrec predictions".
    version : int
    identity : dict
        What the parts depend on; a folder with another identity is refused.
    suffix : str
        Ending of the files.
    """

    def __init__(
        self,
        path: Path,
        manifest_name: str,
        format: str,
        version: int,
        identity: dict[str, Any],
        suffix: str = ".parquet",
    ):
        self.path, self._manifest_name, self._suffix = path, manifest_name, suffix
        self._kind = format.removeprefix("ordrec ")
        self._manifest = {"format": format, "version": version} | identity | {"complete": False}
        self._open()

    def file(self, number: int) -> Path:
        """Return the file of a part."""
        return self.path / f"part-{number:05d}{self._suffix}"

    def waiting(self, n_parts: int) -> list[int]:
        """Return the parts that are not finished."""
        return [number for number in range(n_parts) if not self.file(number).exists()]

    def finish(self, **about: Any) -> None:
        """Note in the manifest that all parts are there."""
        self._write(self._manifest | {"complete": True} | about)

    def _open(self) -> None:
        """Make the folder, or see that it belongs to the same run."""
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"{self.path}: is a file: name a folder to write to")
        make_folder(self.path)
        if not any(self.path.iterdir()):
            self._write(self._manifest)
        try:
            before = json.loads((self.path / self._manifest_name).read_text())
            same = {key: before[key] for key in self._manifest if key != "complete"}
        except (OSError, ValueError, KeyError, TypeError):
            raise ArgumentError(
                f"{self.path}: is not empty and holds no {self._kind}: name a new folder"
            ) from None
        for key, value in same.items():
            if value != self._manifest[key]:
                raise ArgumentError(
                    f"{self.path}: holds {self._kind} of other {key}: name a new folder, or "
                    "delete it"
                )
        for left in self.path.glob(f".*{self._suffix}"):
            left.unlink(missing_ok=True)

    def _write(self, manifest: dict[str, Any]) -> None:
        write_text(self.path / self._manifest_name, json.dumps(manifest, indent=1))
