"""Writing files so that a reader finds the old one or the new one, never half of one.

Everything ordrec saves goes through here. A full disk or a folder that may not be written to
is a `StorageError` that says what is there now.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ordrec.errors import ArgumentError, OrdrecError, StorageError

__all__ = ["make_folder", "replace_file", "storage_errors", "write_text"]

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


@contextmanager
def storage_errors(path: str | os.PathLike[str], kept: str = "") -> Iterator[None]:
    """Turn the errors of a disk or folder that cannot be written to into `StorageError`.

    Parameters
    ----------
    path : path
        What was to be written.
    kept : str
        A sentence on what is there now.
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
            + (f". {kept}" if kept else "")
        ) from error


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file beside its place and move it there in one step.

    Parameters
    ----------
    path : path
        Where the file belongs; its folder must be there. A link is followed.

    Yields
    ------
    Path
        An empty file in the same folder with the same ending, to be written and closed within
        the block. If the block ends well, its content is brought to the disk and the file takes
        its place. On any exception it is removed, and what was there before remains.

    Raises
    ------
    StorageError
        If the disk is full or the folder may not be written to.

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
        kept = "The file that was there is unchanged" if target.exists() else "Nothing was written"
    part = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    with storage_errors(path, kept):
        try:
            part.touch(exist_ok=False)
            yield part
            with open(part, "rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text as UTF-8, all of it or nothing; return the path.

    Line ends are written as they are.
    """
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8", newline="")
    return Path(path)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder and those it lies in, where they are not there; return its path."""
    folder = Path(path)
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
