"""What ordrec raises when the fault lies in what it was given."""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "DataError",
    "DatasetMissing",
    "ModelFileError",
    "OrdrecError",
    "StorageError",
    "WorkerLost",
    "shortened",
]

LONGEST = 1000  # characters of a message; somebody's words may be in it


def shortened(text: str) -> str:
    """A text that can be read: the middle of a very long one is left out.

    Examples
    --------
    >>> len(shortened(70_000 * "a"))
    1005
    """
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


class OrdrecError(Exception):
    """Base of all errors that ordrec raises on purpose.

    The message names the place (file, row, parameter), what is wrong there and
    what to do about it. The command line prints it as one line and exits with 2.
    """

    def __str__(self) -> str:
        return shortened(super().__str__())


class ArgumentError(OrdrecError, ValueError):
    """A parameter has a value that makes no sense."""


class DataError(OrdrecError, ValueError):
    """A file or a table does not contain what it should."""


class DatasetMissing(OrdrecError, FileNotFoundError):
    """A data set is not where it was looked for."""


class ModelFileError(OrdrecError, ValueError):
    """A saved model is damaged, altered or of an unknown version."""


class StorageError(OrdrecError, OSError):
    """A file cannot be written: the disk is full, or the folder may not be written to."""


class WorkerLost(OrdrecError, RuntimeError):
    """Processes or a cluster that were to do the work died or cannot be reached."""
