"""Write files so that a reader finds either the old one or the new one, never half a file.

Everything that ordrec saves goes through this module. A full disk or a folder without write
permission raises a `StorageError` that says what is on the disk now.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ordrec.errors import ArgumentError, DataError, OrdrecError, StorageError

__all__ = [
    "check_folder_visible",
    "half_written",
    "is_fresh",
    "make_folder",
    "replace_file",
    "storage_errors",
    "write_text",
]

REMEDIES = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room within your quota",
    errno.EFBIG: "raise the limit on file sizes",
    errno.EROFS: "choose a folder that can be written to",
    errno.EACCES: "choose a folder you may write to",
    errno.EPERM: "choose a folder you may write to",
    errno.ENOTDIR: "choose another folder",
    errno.EEXIST: "choose another folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EIO: "check the disk",
}


_HALF_WRITTEN = re.compile(r"\.[0-9a-f]{16}(\.\w+)?")  # the names of `replace_file`


def half_written(folder: Path) -> list[Path]:
    """Return the files of a folder that a killed run of ordrec was still writing."""
    return [each for each in folder.iterdir() if _HALF_WRITTEN.fullmatch(each.name)]


def is_fresh(folder: Path) -> bool:
    """Return whether nothing is in a folder but what a killed run was still writing."""
    return len(half_written(folder)) == len(list(folder.iterdir()))


@contextmanager
def storage_errors(path: str | os.PathLike[str], outcome: str = "") -> Iterator[None]:
    """Turn the operating system's errors about unwritable places into `StorageError`.

    Parameters
    ----------
    path : path
        The file or folder being written.
    outcome : str
        A sentence that says what is on the disk now; it ends the error message.
    """
    try:
        yield
    except OrdrecError:
        raise
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        raise StorageError(
            f"{path}: cannot be written ({error.strerror}): {REMEDIES[error.errno]}"
            + (f". {outcome}" if outcome else "")
        ) from error


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file next to its destination, then move it there in one atomic step.

    Parameters
    ----------
    path : path
        The destination; its folder must exist. A symbolic link is followed.

    Yields
    ------
    Path
        An empty file in the same folder with the same suffix, to be written and closed within
        the block. When the block succeeds, its content is flushed to disk and the file replaces
        the destination, whose permissions it gets. On any exception it is removed, and the old
        file stays as it was.

    Raises
    ------
    StorageError
        If the disk is full or the folder is not writable.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "answer.txt"
    ...     with replace_file(target) as part:
    ...         _ = part.write_text("42")
    ...     target.read_text(), len(os.listdir(folder))
    ('42', 1)
    """
    target = Path(os.path.realpath(path))
    with storage_errors(path):
        if not target.parent.is_dir():
            raise ArgumentError(f"{path}: there is no folder {target.parent}: make it first")
        if target.exists() and not target.is_file():
            raise ArgumentError(f"{path}: is not a file: choose another name")
        outcome = (
            "The file that was there is unchanged" if target.exists() else "Nothing was written"
        )
    part = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    with storage_errors(path, outcome):
        try:
            part.touch(exist_ok=False)
            mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
            if mode is not None:
                with suppress(PermissionError):  # before there is anything to be read in the file
                    part.chmod(mode | stat.S_IWUSR)
            yield part
            with open(part, "rb+") as stream:
                os.fsync(stream.fileno())
            if mode is not None:
                with suppress(PermissionError):
                    part.chmod(mode)
            os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write text to a file as UTF-8, all of it or nothing, and return the path.

    Line endings are written unchanged.
    """
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8", newline="")
    return Path(path)


def check_folder_visible(path: str | os.PathLike[str]) -> None:
    """Raise an error if this process, which may be a worker elsewhere, does not see a folder."""
    if not Path(path).is_dir():
        raise DataError(
            f"{path}: process {os.getpid()} on {socket.gethostname()} sees no such folder: give "
            "every worker access to it under the same path, such as a disk that all machines share"
        )


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder, and its parents if they are missing, and return its path."""
    folder = Path(path)
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
