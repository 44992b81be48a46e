"""What columns of users, items and ratings are usually called."""

from __future__ import annotations

from typing import Any

__all__ = ["is_usual_name"]

# In lower case and without "_", "-" and blanks.
USUAL_NAMES = {
    "user": {"user", "userid", "customer", "customerid", "reader", "readerid"},
    "item": {"item", "itemid", "movie", "movieid", "product", "productid", "book", "bookid",
             "song", "songid", "track", "trackid", "asin", "isbn"},
    "rating": {"rating", "ratings", "stars", "score"},
}  # fmt: skip


def is_usual_name(name: Any, kind: str) -> bool:
    """Whether a column called so usually holds users, items or ratings.

    Parameters
    ----------
    name : object
    kind : {"user", "item", "rating"}

    Examples
    --------
    >>> is_usual_name("Customer ID", "user"), is_usual_name("country", "user")
    (True, False)
    """
    return str(name).lower().translate(str.maketrans("", "", "_- ")) in USUAL_NAMES[kind]
