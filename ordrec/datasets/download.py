"""Fetching one file with pooch: mirrors in order, checksums, safe unpacking."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pooch

from ordrec.datasets.archives import unpack
from ordrec.datasets.catalogue import Download
from ordrec.errors import DataError, DatasetMissing, StorageError
from ordrec.files import make_folder, storage_errors, write_text

__all__ = ["fetch_file"]

TIMEOUT_SECONDS = 30
pooch.get_logger().setLevel("WARNING")  # what it reports at other times is not for users
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


def fetch_file(download: Download, folder: Path, *, progress: bool = False) -> None:
    """Put a file, or the members of an archive, into ``folder``.

    ``folder`` is complete or not there at all: everything is prepared beside it.
    """
    make_folder(folder.parent)
    with (
        storage_errors(folder, kept="Nothing was kept of it"),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as beside,
    ):
        got = _from_first_mirror(download, Path(beside), _expected(download, folder), progress)
        _remember(download, folder, got)
        prepared = Path(beside) / "contents"
        if download.file.endswith(_ARCHIVES):
            unpack(got, prepared)
        else:
            prepared.mkdir()
            shutil.move(got, prepared / download.file)
        _move_into(prepared, folder)


def _from_first_mirror(
    download: Download, folder: Path, checksum: str | None, progress: bool
) -> Path:
    """The file from the first address that gives the right bytes."""
    reasons = []
    for url in download.urls:
        downloader = pooch.HTTPDownloader(
            progressbar=_Bar(download.file) if progress else False, timeout=TIMEOUT_SECONDS
        )
        try:
            with storage_errors(folder.parent, kept="Nothing was kept of it"):
                got = pooch.retrieve(url, checksum, download.file, folder, downloader=downloader)
            return Path(got)
        except StorageError:
            raise
        except (OSError, ValueError) as error:  # no connection; wrong checksum
            reasons.append(f"{url}: {_short(error)}")
    raise DatasetMissing(
        f"{download.file} could not be fetched ({'; '.join(reasons)}): "
        "check the connection, or download it yourself and put it into the folder ORDREC_DATA"
    )


def _short(error: Exception) -> str:
    if "hash" in str(error):
        return "the file has another checksum than published and was thrown away"
    return f"{type(error).__name__}: {str(error)[:160]}"


def _record(download: Download, folder: Path) -> Path:
    return folder.parent / "checksums" / f"{folder.name}-{download.file}.sha256"


def _expected(download: Download, folder: Path) -> str | None:
    if download.checksum is not None:
        return download.checksum
    record = _record(download, folder)
    return f"sha256:{record.read_text().strip()}" if record.is_file() else None


def _remember(download: Download, folder: Path, got: Path) -> None:
    """Trust on first use where no checksum is published."""
    record = _record(download, folder)
    if download.checksum is None and not record.is_file():
        make_folder(record.parent)
        write_text(record, pooch.file_hash(str(got), alg="sha256") + "\n")


def _move_into(prepared: Path, folder: Path) -> None:
    if not folder.exists():
        try:
            os.replace(prepared, folder)
            return
        except OSError as error:
            if not folder.is_dir():  # not merely another process that was faster
                raise DataError(f"{folder}: cannot be written ({error})") from error
    for entry in prepared.iterdir():
        if not (folder / entry.name).exists():
            os.replace(entry, folder / entry.name)


class _Bar:
    """pooch's progress interface on top of rich."""

    def __init__(self, name: str):
        from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

        self._progress = Progress(name, BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._task: Any = self._progress.add_task(name, total=None)
        self._progress.start()

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, value: float) -> None:
        self._progress.update(self._task, total=value)

    def update(self, n_bytes: int) -> None:
        self._progress.advance(self._task, n_bytes)

    def reset(self) -> None:
        self._progress.reset(self._task, total=self.total)

    def close(self) -> None:
        self._progress.stop()
