"""Find the character between the fields of a csv file, by its first line."""

from __future__ import annotations

import csv

from ordrec.errors import ArgumentError

__all__ = ["check_separator", "header_of", "separator_of"]

SEPARATORS = (",", ";", "\t", "|")


def separator_of(header: str) -> str:
    """Return the separator that cuts a first line into most fields; a comma if none does.

    Examples
    --------
    >>> separator_of("user;item;rating"), separator_of('"a, b"\\tc\\td')
    (';', '\\t')
    """
    return max(SEPARATORS, key=lambda separator: len(header_of(header, separator)))


def header_of(line: str, separator: str) -> list[str]:
    """Return the fields of a line."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def check_separator(separator: str | None) -> None:
    """Raise an error unless this is one character, or None for the one that is found."""
    if separator is not None and len(separator) != 1:
        raise ArgumentError(f"separator must be one character, got {separator!r}")
