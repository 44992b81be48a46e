"""Which items may be listed, and checks of what lists are asked for."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.data.columns import as_pandas, is_usual_name
from ordrec.errors import ArgumentError, OrdrecWarning, callers_level
from ordrec.lists.best import best_columns
from ordrec.lists.groups import Cap, within_caps
from ordrec.models.base import codes_of

__all__ = [
    "CELLS_AT_ONCE",
    "ItemFilter",
    "check_list_length",
    "check_one_user",
    "row_blocks",
    "taken",
]

CELLS_AT_ONCE = 4_000_000  # scores held at the same time: 32 MB in double precision


def row_blocks(histories: sparse.csr_array) -> list[slice]:
    """Return blocks of histories, for each of which the scores of all items take little memory.

    Examples
    --------
    >>> row_blocks(sparse.csr_array((3, 2_000_000)))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    n_rows, n_items = histories.shape
    width = max(1, CELLS_AT_ONCE // max(n_items, 1))
    return [slice(first, first + width) for first in range(0, n_rows, width)]


@dataclass(frozen=True)
class ItemFilter:
    """Which items may be listed.

    Parameters
    ----------
    allowed : bool array of shape (n_items,)
        Items that may be listed for anybody.
    include_rated : bool
        Whether items that a user has rated may be listed for that user.
    hidden, shown : csr_array of shape (n_users, n_items), optional
        Pairs that must not be listed; the only ones that may.
    caps : tuple of Cap
        How many items of a group a list may have.
    new : bool array of shape (n_items,), optional
        Items without ratings.
    explore : float
        The share of a list, rounded up, that is for these.

    Examples
    --------
    >>> ids = pd.Index(["a", "b", "c"])
    >>> ItemFilter.of(ids, np.array([True, True, False]), exclude=["a"]).allowed
    array([False,  True, False])
    """

    allowed: np.ndarray
    include_rated: bool = False
    hidden: sparse.csr_array | None = None
    shown: sparse.csr_array | None = None
    caps: tuple[Cap, ...] = ()
    new: np.ndarray | None = None
    explore: float = 0.0

    @classmethod
    def of(
        cls,
        item_ids: pd.Index,
        listable: np.ndarray,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        user_ids: pd.Index | None = None,
        caps: tuple[Cap, ...] = (),
        new: np.ndarray | None = None,
        explore: float = 0.0,
    ) -> ItemFilter:
        """Make the filter from original ids.

        Parameters
        ----------
        item_ids : Index
            All items of the model.
        listable : bool array of shape (n_items,)
            Items that may be listed at all, such as those that somebody has rated.
        exclude, only : sequence of ids, or data frame, optional
            Items that must not be listed; the only ones that may. Ids that the model does not
            know are said; if ``only`` has no others, it is refused. A frame with columns of users
            and items names pairs; without a column of users, items.
        include_rated : bool
        user_ids : Index, optional
            All users of the model, for pairs.
        caps : tuple of Cap
            See `caps_of`.
        new, explore
            As attributes.
        """
        allowed, pairs = listable.copy(), {}
        for name, given in (("exclude", exclude), ("only", only)):
            chosen = _items_or_pairs(given, name)
            if isinstance(chosen, pd.DataFrame):
                assert user_ids is not None
                pairs[name] = _pair_table(chosen, user_ids, item_ids, name)
            elif chosen is not None and name == "only":
                allowed &= _chosen(item_ids, chosen, name)
            elif chosen is not None:
                codes = codes_of(item_ids, chosen)
                _say_unknown(codes < 0, chosen, name)
                allowed[codes[codes >= 0]] = False
        return cls(
            allowed, include_rated, pairs.get("exclude"), pairs.get("only"), caps, new, explore
        )

    @classmethod
    def among(
        cls,
        item_ids: pd.Index,
        candidates: Any,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        user_ids: pd.Index | None = None,
        caps: tuple[Cap, ...] = (),
    ) -> ItemFilter:
        """Make the filter for candidates by original ids, which nobody need have rated."""
        return cls.of(
            item_ids, _chosen(item_ids, candidates, "candidates"), exclude=exclude, only=only,
            include_rated=include_rated, user_ids=user_ids, caps=caps,
        )  # fmt: skip

    def hide(
        self, scores: np.ndarray, rated: sparse.csr_array, codes: np.ndarray | None = None
    ) -> None:
        """Set the scores of items that must not be listed to minus infinity, in place.

        ``rated`` has one row per row of the scores, with entries at the items that user rated;
        ``codes`` are the users, -1 for an unknown one.
        """
        scores[:, ~self.allowed] = -np.inf
        if codes is not None:
            scores[~self.pairs_allowed(codes)] = -np.inf
        if not self.include_rated:
            rows = np.repeat(np.arange(rated.shape[0]), np.diff(rated.indptr))
            scores[rows, rated.indices] = -np.inf

    def pairs_allowed(self, codes: np.ndarray) -> np.ndarray:
        """Return which items may be listed for which of these users, as far as pairs say."""
        allowed = np.ones((codes.size, self.allowed.size), dtype=np.bool_)
        known = codes >= 0
        if self.shown is not None:
            allowed[:] = False
            allowed[known] = self.shown[codes[known]].toarray() > 0
        if self.hidden is not None:
            allowed[known] &= self.hidden[codes[known]].toarray() == 0
        return allowed

    @property
    def is_plain(self) -> bool:
        """Whether a list is the first n items of an order."""
        return not self.caps and not self.explore

    def chosen(self, order: np.ndarray, n: int) -> np.ndarray:
        """Return the places of the n items that are listed of each order, -1 where there are none.

        Parameters
        ----------
        order : int array of shape (n_lists, n_places)
            Items, best first; -1 where there are no more.
        n : int
        """
        wanted = None
        if self.explore and self.new is not None:
            wanted = self.new, math.ceil(self.explore * n - 1e-9)
        return within_caps(order, self.caps, n, wanted)

    def best(self, scores: np.ndarray, n: int) -> np.ndarray:
        """Return the columns of each row's list of n, by finite scores and these rules."""
        if self.is_plain:
            return best_columns(scores, n)
        order = best_columns(scores, scores.shape[1])
        return taken(order, self.chosen(order, n))

    def candidates(
        self, scores: np.ndarray, n: int, n_candidates: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns that lists of n are chosen from, and which of them go together.

        They are the best, and a list by these scores and rules: whatever their order, all of that
        list can be listed, and are where another order of the candidates would find fewer.
        """
        best = best_columns(scores, max(n, n_candidates))
        if self.is_plain:
            return best, np.zeros_like(best, dtype=np.bool_)
        listed = self.best(scores, n)
        same = (listed[:, :, None] == best[:, None, :]) & (listed[:, :, None] >= 0)
        further = np.where(same.any(axis=2), -1, listed)
        return np.hstack([best, further]), np.hstack([same.any(axis=1), further >= 0])

    def identity(self) -> list[bytes]:
        """What the filter consists of."""
        parts = [self.allowed.tobytes(), str(self.include_rated).encode()]
        for pairs in (self.hidden, self.shown):
            parts += [b"no"] if pairs is None else [pairs.indptr.tobytes(), pairs.indices.tobytes()]
        for cap in self.caps:
            parts += [f"{cap.column} {cap.most}".encode(), cap.members.indices.tobytes()]
        if self.explore:
            parts.append(f"explore {self.explore}".encode())
        return parts


def taken(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the entries of rows at places; -1 where a place is -1."""
    return np.where(places >= 0, np.take_along_axis(values, np.maximum(places, 0), axis=1), -1)


def _items_or_pairs(given: Any, name: str) -> Any:
    """The items of a rule, or its pairs as a frame with the columns user and item."""
    if not hasattr(type(given), "columns"):  # no data frame
        return given
    table = as_pandas(given)
    users = [column for column in table.columns if is_usual_name(column, "user")]
    items = [column for column in table.columns if is_usual_name(column, "item")]
    if len(items) != 1 or len(users) > 1:
        raise ArgumentError(
            f"{name}: a table must have a column item, and may have a column user; it has "
            f"{list(map(str, table.columns))}",
            parameter=name,
        )
    if not users:
        return table[items[0]].to_numpy()
    return pd.DataFrame({"user": table[users[0]].array, "item": table[items[0]].array})


def _pair_table(
    pairs: pd.DataFrame, user_ids: pd.Index, item_ids: pd.Index, name: str
) -> sparse.csr_array:
    """Pairs by code; those that the model does not know are said."""
    users, items = codes_of(user_ids, pairs["user"]), codes_of(item_ids, pairs["item"])
    known = (users >= 0) & (items >= 0)
    said = [f"({u!r}, {i!r})" for u, i in pairs[~known][:1].itertuples(index=False)]
    if name == "only" and len(pairs) and not known.any():
        raise ArgumentError(
            f"only: none of the {len(pairs)} pairs of a user and an item is known to the model, "
            f"such as {said[0]}",
            parameter="only",
        )
    _say_unknown(~known, said * len(pairs), name, "pairs")
    cells = np.ones(int(known.sum())), (users[known], items[known])
    return sparse.csr_array(cells, shape=(len(user_ids), len(item_ids)))


def _say_unknown(unknown: np.ndarray, given: Any, name: str, what: str = "items") -> None:
    if unknown.any():
        example = list(given)[int(np.argmax(unknown))] if what == "items" else given[0]
        warnings.warn(
            OrdrecWarning(
                f"{name}: {int(unknown.sum())} of {unknown.size} {what} are not in the model and "
                f"change nothing, such as {example if what == 'pairs' else repr(example)}",
                parameter=name,
            ),
            stacklevel=callers_level(),
        )


def _chosen(item_ids: pd.Index, chosen: Any, name: str) -> np.ndarray:
    """Which items are among the chosen ids; at least one of these must be known."""
    codes = codes_of(item_ids, chosen)
    if codes.size and not (codes >= 0).any():
        raise ArgumentError(
            f"{name}: none of the {codes.size} items is known to the model, such as "
            f"{next(iter(chosen))!r} (known ids look like {item_ids[0]!r})"
        )
    _say_unknown(codes < 0, chosen, name)
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


def check_list_length(n: Any, name: str = "n") -> None:
    """Refuse a length that is not a positive whole number."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ArgumentError(f"{name} must be a whole number of at least 1, got {n!r}")
