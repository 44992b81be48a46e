"""Top-N lists out of scores: which items may be listed, and which of them come first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.errors import ArgumentError
from ordrec.models.base import codes_of

__all__ = [
    "ItemFilter",
    "best_columns",
    "check_list_length",
    "check_one_user",
    "item_titles",
    "largest_contributions",
    "pair_scores",
    "rank_gains",
    "with_new_titles",
]

CELLS_AT_ONCE = 4_000_000  # scores held at the same time: 32 MB in double precision


@dataclass(frozen=True)
class ItemFilter:
    """Which items may be listed.

    Parameters
    ----------
    allowed : bool array of shape (n_items,)
        Items that may be listed for anybody.
    include_rated : bool
        Whether items that a user has rated may be listed for that user.
    """

    allowed: np.ndarray
    include_rated: bool = False

    @classmethod
    def of(
        cls,
        item_ids: pd.Index,
        known: np.ndarray,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
    ) -> ItemFilter:
        """Filter by original ids.

        Parameters
        ----------
        item_ids : Index
            All items of the model.
        known : bool array
            Items that somebody has rated; the others are never listed.
        exclude, only : sequence of ids, optional
            Items that must not be listed; the only ones that may. Ids that the model does not
            know have no effect in ``exclude`` and are refused in ``only`` if none is known.
        include_rated : bool
        """
        allowed = known.copy()
        if only is not None:
            codes = codes_of(item_ids, only)
            if codes.size and not (codes >= 0).any():
                raise ArgumentError(
                    f"only: none of the {codes.size} items is known to the model, such as "
                    f"{next(iter(only))!r} (known ids look like {item_ids[0]!r})"
                )
            chosen = np.zeros_like(allowed)
            chosen[codes[codes >= 0]] = True
            allowed &= chosen
        if exclude is not None:
            codes = codes_of(item_ids, exclude)
            allowed[codes[codes >= 0]] = False
        return cls(allowed, include_rated)

    def hide(self, scores: np.ndarray, rated: sparse.csr_array) -> None:
        """Set the scores of items that must not be listed to minus infinity, in place.

        ``rated`` has one row per row of the scores, with entries at the items that user rated.
        """
        scores[:, ~self.allowed] = -np.inf
        if not self.include_rated:
            rows = np.repeat(np.arange(rated.shape[0]), np.diff(rated.indptr))
            scores[rows, rated.indices] = -np.inf


def best_columns(scores: np.ndarray, n: int) -> np.ndarray:
    """Columns of the n highest finite scores of each row, best first.

    Equal scores are ordered by column, so that a list is the same however it is computed. Rows
    with fewer finite scores end in -1.

    Examples
    --------
    >>> best_columns(np.array([[0.1, 0.5, 0.5, -np.inf]]), 4)
    array([[ 1,  2,  0, -1]])
    """
    n_rows, n_columns = scores.shape
    best = np.full((n_rows, min(n, n_columns)), -1, dtype=np.int64)
    if best.size == 0:
        return best
    least = np.partition(scores, n_columns - best.shape[1], axis=1)[:, n_columns - best.shape[1]]
    for row in range(n_rows):
        candidates = np.flatnonzero((scores[row] >= least[row]) & (scores[row] > -np.inf))
        order = np.argsort(-scores[row, candidates], kind="stable")[: best.shape[1]]
        best[row, : order.size] = candidates[order]
    return best


def pair_scores(
    score_block: Callable[[np.ndarray], np.ndarray],
    users: np.ndarray,
    items: np.ndarray,
    width: int,
) -> np.ndarray:
    """Return the scores of pairs of codes, from blocks of all items for ``width`` users at a time.

    ``score_block`` takes user codes and returns one row of scores per user.
    """
    distinct, place = np.unique(users, return_inverse=True)
    by_user = np.argsort(place, kind="stable")
    cuts = np.searchsorted(place[by_user], np.arange(distinct.size + 1))
    result = np.empty(users.size)
    for first in range(0, distinct.size, width):
        block = distinct[first : first + width]
        rows = by_user[cuts[first] : cuts[first + block.size]]
        result[rows] = score_block(block)[place[rows] - first, items[rows]]
    return result


def rank_gains(n_ranks: int) -> np.ndarray:
    """Gains of the ranks, ``2^rank - 1``; on scales of more than ten ranks the top counts as ten.

    Examples
    --------
    >>> rank_gains(5)
    array([ 1.,  3.,  7., 15., 31.])
    """
    return 2.0 ** (np.arange(1, n_ranks + 1) * min(1.0, 10.0 / n_ranks)) - 1.0


def largest_contributions(table: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the n rows with the largest contributions, and one row with the sum of the others.

    ``table`` has columns ``source``, ``id``, ``rating`` and ``contribution``.
    """
    weight = table["contribution"].abs().to_numpy()
    order = np.argsort(-weight, kind="stable")
    best, others = table.iloc[order[:n]], table.iloc[order[n:]]
    if len(others):
        rest = {"source": "others", "id": f"{len(others)} more", "rating": np.nan,
                "contribution": others["contribution"].sum()}  # fmt: skip
        best = pd.concat([best, pd.DataFrame([rest])])
    return best.reset_index(drop=True)


def item_titles(table: pd.DataFrame | None) -> list[str] | None:
    """Titles of the items, "" where one is missing; None if the table has no titles."""
    if table is None or "title" not in table:
        return None
    return [title if isinstance(title, str) else "" for title in table["title"]]


def check_one_user(user: Any) -> None:
    """Refuse several users where a list is made for one."""
    if np.ndim(user) > 0:
        raise ArgumentError(
            f"user must be one id, got {len(user)} of them: recommend_all(n, users) lists for "
            "many, or call recommend for each"
        )


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


def check_list_length(n: int, name: str = "n") -> None:
    """Refuse a length that is not a positive whole number."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
        raise ArgumentError(f"{name} must be a whole number of at least 1, got {n!r}")
