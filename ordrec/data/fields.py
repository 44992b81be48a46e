"""Check single fields of text files."""

from __future__ import annotations

__all__ = ["MAX_DIGITS", "is_whole_number"]

MAX_DIGITS = 18  # any number of 18 digits fits into int64


def is_whole_number(text: str) -> bool:
    """Whether the text consists of at most 18 decimal digits, without a sign.

    Examples
    --------
    >>> is_whole_number("17"), is_whole_number("-17"), is_whole_number("")
    (True, False, False)
    """
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
