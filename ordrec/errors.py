"""The errors ordrec raises for invalid input, and for machines that fail."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Self

__all__ = [
    "ArgumentError",
    "DataError",
    "DatasetMissing",
    "ModelFileError",
    "OrdrecError",
    "OrdrecWarning",
    "StorageError",
    "WorkerLost",
    "callers_level",
    "shortened",
    "visible",
]

# files whose lines no caller wrote; functools dispatches by type
INSIDE = (str(Path(__file__).parent), functools.__file__)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LONGEST = 1000  # characters in a message, which may quote arbitrary input


def callers_level() -> int:
    """The ``stacklevel`` at which a warning names the line outside the package that led to it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        level, frame = level + 1, frame.f_back
    return level


def visible(text: str) -> str:
    """Return a text in which characters that control a terminal are written out.

    Titles and ids come from strangers: an escape sequence could clear the screen or hide what is
    printed, and marks of direction could turn a line around.

    Examples
    --------
    >>> visible("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(text: str) -> str:
    """Return the text, with the middle left out if it is too long to read.

    Examples
    --------
    >>> len(shortened(70_000 * "a"))
    1005
    """
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


class OrdrecError(Exception):
    """Base class of all errors that ordrec raises deliberately.

    The message names the place (file, row, parameter), what is wrong there and
    what to do about it. The command line prints it as one line and exits with 2.

    Parameters
    ----------
    message : str
    parameter : str or tuple of str
        The parameters that the message speaks of, as in ``duplicates must`` or ``duplicates=``. The
        command line puts its options in their place.

    Examples
    --------
    >>> error = DataError("row 7: rated twice: pass duplicates='last'", parameter="duplicates")
    >>> error.parameters
    ('duplicates',)
    >>> str(error.prefixed("mine.csv"))
    "mine.csv: row 7: rated twice: pass duplicates='last'"
    >>> error.prefixed("mine.csv").parameters
    ('duplicates',)
    """

    def __init__(self, message: object = "", *, parameter: str | tuple[str, ...] = ()):
        super().__init__(message)
        self.parameters = (parameter,) if isinstance(parameter, str) else parameter

    def __str__(self) -> str:
        return shortened(super().__str__())

    def prefixed(self, place: str, between: str = ": ") -> Self:
        """Return the same error with the place where it occurred in front of its message."""
        return type(self)(f"{place}{between}{self}", parameter=self.parameters)


class OrdrecWarning(UserWarning):
    """A warning that speaks of parameters; see `OrdrecError`."""

    def __init__(self, message: object = "", *, parameter: str | tuple[str, ...] = ()):
        super().__init__(message)
        self.parameters = (parameter,) if isinstance(parameter, str) else parameter


class ArgumentError(OrdrecError, ValueError):
    """A parameter has an invalid value.

    The parameter need not be named if the message begins with it: "seed must be at least 0".
    """

    def __init__(self, message: object = "", *, parameter: str | tuple[str, ...] = ()):
        name, must, _ = str(message).partition(" must ")
        if not parameter and must and name.isidentifier():
            parameter = name
        super().__init__(message, parameter=parameter)


class DataError(OrdrecError, ValueError):
    """A file or a table does not contain what it should."""


class DatasetMissing(OrdrecError, FileNotFoundError):
    """A data set was not found in any of the places searched."""


class ModelFileError(OrdrecError, ValueError):
    """A model file is damaged, was altered, or has an unknown version."""


class StorageError(OrdrecError, OSError):
    """A file cannot be written: the disk is full, or the folder is not writable."""


class WorkerLost(OrdrecError, RuntimeError):
    """Worker processes died, or a cluster died or cannot be reached."""
