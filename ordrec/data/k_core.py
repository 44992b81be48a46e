"""Which ratings belong to users and items that have many of them."""

from __future__ import annotations

import numpy as np

from ordrec.errors import ArgumentError

__all__ = ["core_rows"]


def core_rows(users: np.ndarray, items: np.ndarray, k: int) -> np.ndarray:
    """Return the rows of the k-core of the graph of users and items, ascending.

    Users and items with fewer than ``k`` of the remaining rows are removed until nothing changes.

    Parameters
    ----------
    users, items : arrays of int
        Codes from 0, one per row.
    k : int
        At least 1.

    Examples
    --------
    >>> core_rows(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1]), 2).tolist()
    [0, 1, 2, 3]
    """
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ArgumentError(f"k must be a whole number of at least 1, got {k!r}")
    rows = np.arange(users.size)
    while True:
        n_of_user, n_of_item = np.bincount(users[rows]), np.bincount(items[rows])
        kept = (n_of_user[users[rows]] >= k) & (n_of_item[items[rows]] >= k)
        if kept.all():
            return rows
        rows = rows[kept]
