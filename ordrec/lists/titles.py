"""What items are called."""

from __future__ import annotations

import re

import pandas as pd

__all__ = ["item_titles", "with_new_titles"]

# What a column of titles is usually called, in lower case and without "_", "-" and blanks.
USUAL_NAMES = (
    *("title", "name", "itemtitle", "itemname", "producttitle", "productname"),
    *("movietitle", "moviename", "booktitle", "bookname", "songtitle", "songname"),
)


def item_titles(table: pd.DataFrame | None) -> list[str] | None:
    """Titles of the items, "" where one is missing; None if the table has no titles.

    They are in a column called title, or name, product_name and the like.

    Examples
    --------
    >>> item_titles(pd.DataFrame({"Product Name": ["tea", None]}))
    ['tea', '']
    """
    if table is None:
        return None
    plain = {re.sub(r"[_\- ]", "", str(name).lower()): name for name in reversed(table.columns)}
    for usual in USUAL_NAMES:
        if usual in plain:
            column = table[plain[usual]]
            if usual == "title" or column.map(lambda title: isinstance(title, str)).any():
                return [title if isinstance(title, str) else "" for title in column]
    return None


def with_new_titles(
    titles: list[str] | None, known: pd.Index, table: pd.DataFrame | None, new: pd.Index
) -> list[str] | None:
    """The titles of known items, followed by those of new ones, which the table may have.

    Examples
    --------
    >>> table = pd.DataFrame({"title": ["Alien", "Brazil"]}, index=["a", "b"])
    >>> with_new_titles(["Alien"], pd.Index(["a"]), table, pd.Index(["b", "c"]))
    ['Alien', 'Brazil', '']
    """
    added = item_titles(None if table is None else table.reindex(new))
    if titles is None and added is None:
        return None
    return (titles or [""] * len(known)) + (added or [""] * len(new))
