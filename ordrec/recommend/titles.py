"""What items are called."""

from __future__ import annotations

import pandas as pd

__all__ = ["item_titles"]


def item_titles(table: pd.DataFrame | None) -> list[str] | None:
    """Titles of the items, "" where one is missing; None if the table has no titles."""
    if table is None or "title" not in table:
        return None
    return [title if isinstance(title, str) else "" for title in table["title"]]
