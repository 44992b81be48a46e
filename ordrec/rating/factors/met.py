"""Users and items that met without a rating: what the pattern of `OrdinalFactors` also knows.

Events (`ordrec.data.events`) join the pattern of who rated what as if they were ratings without a
value, one kind after the other. Whether a kind does is decided in training: small fits to a part of
the ratings predict the others with the kind in the pattern, without it, and with the events of
somebody else in its place. Fits to patterns that differ at all differ by chance, and so the kind
must lower the squared error by more than two standard errors, and also against strangers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.events import Events, in_errors
from ordrec.data.ids import codes_of
from ordrec.errors import ModelFileError
from ordrec.rating.inner_parts import inner_parts
from ordrec.storage.schema import Array, Names

__all__ = ["MetPairs", "learnt_kinds"]

FEWEST = 300  # ratings held out, by which nothing can be decided
WITHOUT, STRANGERS = 2.0, 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class MetPairs:
    """Pairs of a user and an item without a rating, each once, by codes.

    Attributes
    ----------
    users, items : ndarray of int32
    kinds : tuple of str
        The kinds of events that make such pairs.
    """

    stored: ClassVar = {
        "kinds": Names(),
        "users": Array("met", dtype=np.int32, codes="users"),
        "items": Array("met", dtype=np.int32, codes="items"),
    }

    kinds: tuple[str, ...]
    users: np.ndarray
    items: np.ndarray

    @classmethod
    def of(cls, events: Events | None, kinds: tuple[str, ...], n_items: int) -> MetPairs:
        """Return the pairs of these kinds of events."""
        if events is None or not kinds:
            return cls(kinds, np.zeros(0, np.int32), np.zeros(0, np.int32))
        chosen = events.select(np.isin(np.array(events.names)[events.kinds], kinds))
        pairs = np.unique(chosen.users.astype(np.int64) * n_items + chosen.items)
        return cls(kinds, *(codes.astype(np.int32) for codes in np.divmod(pairs, n_items)))

    def joined(self, users: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs that are rated, followed by these."""
        return np.concatenate([users, self.users]), np.concatenate([items, self.items])

    def where(self, rows: np.ndarray) -> MetPairs:
        """Return the pairs that a mask chooses."""
        return replace(self, users=self.users[rows], items=self.items[rows])

    def folded_in(self, ratings: Ratings, user_ids: pd.Index, item_ids: pd.Index) -> MetPairs:
        """Return the pairs after ratings, and events if there are any, have replaced those known.

        Parameters
        ----------
        ratings : Ratings
        user_ids, item_ids : Index
            Those of the model, which knows all users and items of the ratings.
        """
        users, items = codes_of(user_ids, ratings.user_ids), codes_of(item_ids, ratings.item_ids)
        raters, found = np.unique(users[ratings.users]), self
        if ratings.events is not None and self.kinds:
            given = self.of(ratings.events.recoded(users, items), self.kinds, len(item_ids))
            given = given.where(np.isin(given.users, raters))
            kept = self.where(~np.isin(self.users, raters))
            codes = kept.joined(given.users, given.items)
            found = MetPairs(self.kinds, *codes)
        n_items = len(item_ids)
        rated = users[ratings.users].astype(np.int64) * n_items + items[ratings.items]
        return found.where(~np.isin(found.users.astype(np.int64) * n_items + found.items, rated))

    def check_stored(self) -> None:
        """Check that users pair up with items."""
        if self.users.size != self.items.size:
            raise ModelFileError("users and items that met do not pair up")


def learnt_kinds(
    ratings: Ratings, errors: Callable[[Ratings, tuple[str, ...], Ratings], np.ndarray], seed: int
) -> tuple[str, ...]:
    """Return the kinds of events that help to predict ratings.

    Parameters
    ----------
    ratings : Ratings
        With events.
    errors : callable
        Takes ratings to fit to, kinds of their events, and ratings to predict; returns the squared
        error of each.
    seed : int
        Of the ratings that are held out.
    """
    inner, outer = inner_parts(ratings, seed)
    events = ratings.events
    if events is None or not len(events) or outer.n_ratings < FEWEST:
        return ()
    kinds: tuple[str, ...] = ()
    best = errors(inner, kinds, outer)
    for number, kind in enumerate(events.names):
        own = errors(inner, (*kinds, kind), outer)
        if not in_errors(best - own) > WITHOUT:
            continue
        strangers = errors(inner.with_strangers(number, seed), (*kinds, kind), outer)
        if in_errors(strangers - own) > STRANGERS:
            kinds, best = (*kinds, kind), own
    return kinds
