"""Download one file with pooch: mirrors in order, checksums, safe unpacking."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordrec.data.formats.archives import unpack
from ordrec.errors import DataError, DatasetMissing, StorageError
from ordrec.runtime.files import make_folder, storage_errors, write_text

__all__ = ["Download", "fetch_file"]

TIMEOUT_SECONDS = 30
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True)
class Download:
    """One file to download.

    Attributes
    ----------
    file : str
        Its name in the cache. Archives are unpacked there.
    urls : tuple of str
        The official address, followed by mirrors.
    checksum : str or None
        ``sha256:...`` or ``md5:...``. If None, it is recorded at the first download and
        compared from then on.
    """

    file: str
    urls: tuple[str, ...]
    checksum: str | None = None


def fetch_file(download: Download, folder: Path, *, progress: bool = False) -> None:
    """Download a file, or the members of an archive, into ``folder``.

    ``folder`` is either complete or absent: everything is prepared in a temporary folder.
    """
    make_folder(folder.parent)
    with (
        storage_errors(folder, outcome="Nothing of it was kept"),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as temporary,
    ):
        got = _from_first_mirror(download, Path(temporary), _expected(download, folder), progress)
        _remember(download, folder, got)
        prepared = Path(temporary) / "contents"
        if download.file.endswith(_ARCHIVES):
            unpack(got, prepared)
        else:
            prepared.mkdir()
            shutil.move(got, prepared / download.file)
        _move_into(prepared, folder)


def _from_first_mirror(
    download: Download, folder: Path, checksum: str | None, progress: bool
) -> Path:
    """Return the file from the first address that delivers it with the right checksum."""
    import pooch  # here, since listing data sets must not wait for it

    pooch.get_logger().setLevel("WARNING")  # its other messages are not meant for users
    reasons = []
    for url in download.urls:
        downloader = pooch.HTTPDownloader(
            progressbar=_Bar(download.file) if progress else False, timeout=TIMEOUT_SECONDS
        )
        try:
            with storage_errors(folder.parent, outcome="Nothing of it was kept"):
                got = pooch.retrieve(url, checksum, download.file, folder, downloader=downloader)
            return Path(got)
        except StorageError:
            raise
        except (OSError, ValueError) as error:  # no connection; wrong checksum
            reasons.append(f"{url}: {_short(error)}")
    raise DatasetMissing(
        f"{download.file} could not be downloaded ({'; '.join(reasons)}): "
        "check the connection, or download it yourself and put it into the folder ORDREC_DATA"
    )


def _short(error: Exception) -> str:
    if "hash" in str(error):
        return "the file does not have the expected checksum and was discarded"
    return f"{type(error).__name__}: {str(error)[:160]}"


def _record(download: Download, folder: Path) -> Path:
    return folder.parent / "checksums" / f"{folder.name}-{download.file}.sha256"


def _expected(download: Download, folder: Path) -> str | None:
    if download.checksum is not None:
        return download.checksum
    record = _record(download, folder)
    return f"sha256:{record.read_text().strip()}" if record.is_file() else None


def _remember(download: Download, folder: Path, got: Path) -> None:
    """Record the checksum of a first download, where none is published."""
    import pooch

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
            if not folder.is_dir():  # otherwise another process was faster
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
