"""Which items may be listed, and checks of what lists are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.errors import ArgumentError
from ordrec.models.base import codes_of

__all__ = ["CELLS_AT_ONCE", "ItemFilter", "check_list_length", "check_one_user"]

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

    Examples
    --------
    >>> ids = pd.Index(["a", "b", "c"])
    >>> ItemFilter.of(ids, np.array([True, True, False]), exclude=["a"]).allowed
    array([False,  True, False])
    """

    allowed: np.ndarray
    include_rated: bool = False

    @classmethod
    def of(
        cls,
        item_ids: pd.Index,
        listable: np.ndarray,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
    ) -> ItemFilter:
        """Make the filter from original ids.

        Parameters
        ----------
        item_ids : Index
            All items of the model.
        listable : bool array of shape (n_items,)
            Items that may be listed at all, such as those that somebody has rated.
        exclude, only : sequence of ids, optional
            Items that must not be listed; the only ones that may. Ids that the model does not
            know are ignored; if ``only`` has no others, it is refused.
        include_rated : bool
        """
        allowed = listable.copy()
        if only is not None:
            allowed &= _chosen(item_ids, only, "only")
        if exclude is not None:
            codes = codes_of(item_ids, exclude)
            allowed[codes[codes >= 0]] = False
        return cls(allowed, include_rated)

    @classmethod
    def among(
        cls,
        item_ids: pd.Index,
        candidates: Any,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
    ) -> ItemFilter:
        """Make the filter for candidates by original ids, which nobody need have rated."""
        listable = _chosen(item_ids, candidates, "candidates")
        return cls.of(item_ids, listable, exclude=exclude, only=only, include_rated=include_rated)

    def hide(self, scores: np.ndarray, rated: sparse.csr_array) -> None:
        """Set the scores of items that must not be listed to minus infinity, in place.

        ``rated`` has one row per row of the scores, with entries at the items that user rated.
        """
        scores[:, ~self.allowed] = -np.inf
        if not self.include_rated:
            rows = np.repeat(np.arange(rated.shape[0]), np.diff(rated.indptr))
            scores[rows, rated.indices] = -np.inf


def _chosen(item_ids: pd.Index, chosen: Any, name: str) -> np.ndarray:
    """Which items are among the chosen ids; at least one of these must be known."""
    codes = codes_of(item_ids, chosen)
    if codes.size and not (codes >= 0).any():
        raise ArgumentError(
            f"{name}: none of the {codes.size} items is known to the model, such as "
            f"{next(iter(chosen))!r} (known ids look like {item_ids[0]!r})"
        )
    found = np.zeros(len(item_ids), dtype=bool)
    found[codes[codes >= 0]] = True
    return found


def check_one_user(user: Any) -> None:
    """Refuse several users where a list is made for one."""
    if np.ndim(user) > 0:
        raise ArgumentError(
            f"user must be one id, got {len(user)} of them: recommend_all(n, users) lists for "
            "many, or call recommend for each"
        )


def check_list_length(n: int, name: str = "n") -> None:
    """Refuse a length that is not a positive whole number."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
        raise ArgumentError(f"{name} must be a whole number of at least 1, got {n!r}")
