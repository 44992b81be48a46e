"""What items are called."""

from __future__ import annotations

import pandas as pd

__all__ = ["item_titles", "with_new_titles"]


def item_titles(table: pd.DataFrame | None) -> list[str] | None:
    """Titles of the items, "" where one is missing; None if the table has no titles."""
    if table is None or "title" not in table:
        return None
    return [title if isinstance(title, str) else "" for title in table["title"]]


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
