"""What all choice models share: histories, blocks of scores, lists, fold-in and files.

A choice model scores items by how likely a user is to pick them. It is a function of the user's
history, a sparse row with ``rank / n_ranks`` at each item the user has rated, or ``1 + log(count)``
at each that they have picked, where there are no ratings; events beside them are added with weights
that are chosen in training (`ordrec.choice.events`). Known users are
scored from the rows remembered in training, new users from the rows given to `fold_in`; equal
rows have equal scores.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.events import (
    MOST_ENTRY,
    EventHistories,
    is_event,
    learnt_weights,
    merged_rows,
)
from ordrec.choice.inner_splits import entries_where, entry_times, ranks_of_interest
from ordrec.data import Ratings, Scale
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.lists.best import best_columns, pair_scores
from ordrec.lists.filters import ItemFilter
from ordrec.lists.groups import ItemGroups, item_groups
from ordrec.lists.listing import ListingModel
from ordrec.models.base import IDENTITY, codes_of, fits, folds_in, replacing_ratings
from ordrec.models.further_ratings import paired_lists, with_further_ratings
from ordrec.storage.schema import Array, Optional, Part, Parts, Table

__all__ = ["SHARED", "ChoiceModel", "histories", "replaced_rows"]


# what choice models of the same ratings have in common
SHARED = (*IDENTITY, "_history", "_events", "item_counts_", "item_groups_")


def histories(ratings: Ratings) -> sparse.csr_array:
    """Users by items, with `interest_in` where there is a rating."""
    if ratings.has_ratings:
        table = sparse.csr_array(ratings.matrix("rank").T / ratings.scale.n_ranks)
    else:
        table = sparse.csr_array(ratings.matrix("value").T)
        table.data = interest_in(table.data, ratings.scale)
    table.indptr = table.indptr.astype(table.indices.dtype)
    table.sort_indices()
    return table


def interest_in(values: np.ndarray, scale: Scale) -> np.ndarray:
    """The entries of histories for ratings: ``rank / n_ranks``; for picks ``1 + log(count)``.

    Examples
    --------
    >>> interest_in(np.array([2, 5]), Scale.regular(1, 5))
    array([0.4, 1. ])
    >>> interest_in(np.array([1, 1]), Scale.of_picks())
    array([1., 1.])
    """
    if scale.only_picks:
        return 1.0 + np.log(values)
    return scale.ranks_of(values) / scale.n_ranks


class ChoiceModel(ListingModel):
    """Base of the choice models.

    A subclass is a dataclass of its parameters and implements `_learn` and `score_histories`; what
    it has learnt is declared in ``stored``.
    """

    stored: ClassVar = IDENTITY | {
        "_history": Table("users", "items", low=0.0, high=MOST_ENTRY),
        "_events": Optional(Part(EventHistories)),
        "item_counts_": Array("items", dtype=np.int64, low=0),
        "item_groups_": Parts(ItemGroups),
        "held_out_": Optional(Part(HeldOut)),
    }

    ordered_by = "pick"  # the chance of it
    _learns_from_picks = True
    _notices_events = True
    _dated: ClassVar[bool] = False  # whether `_learn` looks at times
    _history: sparse.csr_array  # what is rated, or picked
    _events: EventHistories | None = None
    item_counts_: np.ndarray
    held_out_: HeldOut | None = None  # ratings that `fit_scan` left out

    # ---- what a subclass does -------------------------------------------------------------

    @abstractmethod
    def _learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> None:
        """Learn from the histories of all users, with sorted indices.

        ``times`` are those of their entries; None where there are none, or unless ``_dated``.
        ``items`` is the item table, if there is one.
        """

    @abstractmethod
    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""

    def score_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of all items for users by code; -1 is a user without ratings."""
        return self.score_histories(self.history_rows(codes))

    def contributions(self, code: int, item: int) -> np.ndarray | None:
        """Return what each item of a user's history adds to the score of an item, by codes.

        In the order of the history; None for a model whose scores are no such sums.
        """
        return None

    def _list_columns(self, codes: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Columns of the lists of users by code, each of shape (n_users, n_places)."""
        return {"score": scores}

    def shared_with(self, other: ChoiceModel) -> Self:
        """Return a copy that has the ids, the scale, the histories and the counts of another."""
        model = copy.copy(self)
        for name in SHARED:
            setattr(model, name, getattr(other, name))
        return model

    def _on_fold_in(self, users: np.ndarray) -> None:
        """Adapt what the model stores per user after the histories of these codes have changed."""

    # ---- fit and predict ------------------------------------------------------------------

    @fits
    def fit(self, ratings: Ratings) -> Self:
        """Learn from ratings, forgetting what was learnt before; return the model."""
        self._remember(ratings)
        self.held_out_, history = None, histories(ratings)
        times = entry_times(ratings, history) if self._dated else None
        self._events = None
        if ratings.events is not None:
            weights = learnt_weights(ratings, history, getattr(self, "n_jobs", None))
            self._events = EventHistories.of(ratings, weights)
        return self.learn(history, times, ratings.item_table)

    def learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> Self:
        """Learn from histories of the users and items whose ids and scale the model has.

        ``times`` are those of the entries, whose indices are sorted; ``items`` is the item table.
        """
        own = ~is_event(history, self.event_entries)
        if not own.all():  # of a part, which was set aside with its events
            history, times = entries_where(history, own), None if times is None else times[own]
        self._history, self.item_groups_ = history, item_groups(items)
        if self._events is not None:
            history, order = merged_rows(history, self._events.entries)
            if times is not None:
                times = np.concatenate([times, self._events.times])[order]
        self.item_counts_ = np.bincount(history.indices, minlength=history.shape[1])
        self._learn(history, times, items)
        return self

    @property
    def event_entries(self) -> sparse.csr_array | None:
        """The entries of histories that are events."""
        return None if self._events is None else self._events.entries

    @property
    def event_weights_(self) -> dict[str, float]:
        """How much each kind of events counts, where the lowest rating is ``1 / n_ranks``.

        0 for a kind that says nothing of what users pick; none without events.
        """
        return {} if self._events is None else self._events.by_kind

    @property
    def joined_history(self) -> sparse.csr_array:
        """The histories of all users, with their events."""
        if self._events is None or not self._events.entries.nnz:
            return self._history
        kept = self.__dict__.get("_joined")
        if kept is None or kept[0] is not self._history or kept[1] is not self._events:
            joined = merged_rows(self._history, self._events.entries)[0]
            kept = self.__dict__["_joined"] = self._history, self._events, joined
        return kept[2]

    def without_users(self) -> Self:
        """Return a copy that knows no users."""
        model = copy.copy(self)
        model.user_ids_, model._history = self.user_ids_[:0], self._history[:0]
        if self._events is not None:
            model._events = self._events.resized(0, len(self.item_ids_))
        return model

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """Return one score per pair; the higher, the likelier the user picks the item.

        An unknown user is scored as one without ratings; an unknown item comes last.
        """
        user_codes, item_codes = self._codes(users, items)
        result = pair_scores(self.score_users, user_codes, item_codes, self.block_size())
        unseen = (item_codes < 0) | ~self._listable_items()[item_codes]
        result[unseen] = min(result.min(initial=0.0), 0.0) - 1.0
        return result

    def scores_block(self, users: Any) -> np.ndarray:
        """Return the scores of all items for these users, one row per user.

        Items that nobody rated in training have the lowest score of the row, less 1, unless the
        model scores them by the item table.
        """
        self._check_fitted()
        scores = self.score_users(codes_of(self.user_ids_, users))
        unseen = ~self._listable_items()
        if unseen.any():
            scores[:, unseen] = scores.min(axis=1, initial=0.0)[:, None] - 1.0
        return scores

    # ---- lists ----------------------------------------------------------------------------

    def lists(
        self, codes: np.ndarray, n: int, listable: ItemFilter, *, timestamp: int | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return lists by score; see `ListingModel.lists`."""
        scores = self.score_users(codes)
        listable.hide(scores, self.history_rows(codes), codes)
        best = listable.best(scores, n)
        listed = np.take_along_axis(scores, np.maximum(best, 0), axis=1)
        return best, self._list_columns(codes, listed)

    def listed_scores(self, codes: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of the lists of users by code, and how many ratings each user has."""
        width, parts = self.block_size(), []
        for first in range(0, codes.size, width):
            block = codes[first : first + width]
            scores = self.score_users(block)
            self.item_filter().hide(scores, self.history_rows(block))
            best = best_columns(scores, n)
            parts.append(np.take_along_axis(scores, np.maximum(best, 0), axis=1))
        return np.concatenate(parts), np.diff(self.joined_history.indptr)[codes]

    def history_of(self, user: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the item codes and the levels of a user's ratings; none for an unknown user."""
        self._check_fitted()
        code = codes_of(self.user_ids_, [user])
        row = self._history[code] if code[0] >= 0 else self._history[:0]
        return row.indices.astype(np.int64), self._levels(row.data)

    def history_rows(self, codes: np.ndarray) -> sparse.csr_array:
        """Return the histories of users by code, one row each; -1 is a user without ratings."""
        rows = self.joined_history[np.maximum(codes, 0)]
        if (codes < 0).any():
            rows = sparse.csr_array(sparse.diags_array((codes >= 0).astype(np.float64)) @ rows)
            rows.eliminate_zeros()
        return rows

    # ---- new users ------------------------------------------------------------------------

    @folds_in
    def fold_in(self, ratings: Ratings) -> Self:
        """Return a model that also knows the users of these ratings; nothing else changes.

        The ratings of a known user are replaced by these. Ratings are read by value on the
        model's scale. Ratings of unknown items are left out, with a warning, unless the model lists
        new items by their columns of an item table, and the ratings have one with their rows.
        """
        model = self.with_items(ratings)
        if model is not self:
            with replacing_ratings():
                return model.fold_in(ratings)
        user_ids, users, items = self._with_users_of(ratings)
        interest = interest_in(ratings.values, self.scale_)
        known = items >= 0
        self._warn_of_unknown_items(ratings.item_ids.take(ratings.items), items)
        shape = len(user_ids), len(self.item_ids_)
        given = sparse.csr_array((interest[known], (users[known], items[known])), shape=shape)
        model = copy.copy(self)
        model.user_ids_ = user_ids
        changed = np.unique(users)
        model._history = replaced_rows(self._history, given, changed)
        if self._events is not None:
            events = self._events.resized(*shape)
            if ratings.events is not None:
                events = events.with_those_of(ratings, user_ids, self.item_ids_, changed)
            model._events = events.without(model._history)
        model._on_fold_in(changed)
        return model

    def with_items(self, ratings: Ratings) -> Self:
        """Return a model that also knows the new items of an item table, if it can list them."""
        return self

    def update(self, user: Any, item: Any, rating: Any = None, timestamp: Any = None) -> Self:
        """Return a model with further ratings (or new ones for items already rated).

        Parameters
        ----------
        user, item : id, or sequence of ids
        rating : float or sequence of floats, optional
            A model of picks takes none, and adds one to the number of times that an item was
            picked.
        timestamp : int or sequence of int, optional
            In seconds since 1970. Checked, and used by models that know the order of histories.
        """
        self._check_fitted()
        paired_lists(user, item, rating, timestamp, self.scale_)  # refuses what does not pair up
        with replacing_ratings():
            return self.fold_in(self.ratings_with(user, item, rating, timestamp))

    def ratings_with(self, user: Any, item: Any, rating: Any, timestamp: Any = None) -> Ratings:
        """Return all ratings of these users, with further ones; without times."""
        self._check_fitted()
        return with_further_ratings(self._ratings_of, user, item, rating, None, self.scale_)

    def _ratings_of(self, users: pd.Index) -> pd.DataFrame:
        """The ratings of users by id: user, item and rating, or count without ratings."""
        codes = codes_of(self.user_ids_, users)
        known = self._history[codes[codes >= 0]]
        raters = users[codes >= 0].repeat(np.diff(known.indptr))
        items = self.item_ids_.take(known.indices)
        return pd.DataFrame({"user": raters, "item": items} | self._said(known.data))

    def known_ratings(self) -> Ratings:
        """The ratings of training, and those that were folded in, without side tables."""
        self._check_fitted()
        history = self._history
        users = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
        return Ratings(
            users, history.indices.astype(np.int64), self._levels(history.data),
            scale=self.scale_, user_ids=self.user_ids_, item_ids=self.item_ids_,
            binned_values=self._said(history.data).get("count"),
        )  # fmt: skip

    def _levels(self, interest: np.ndarray) -> np.ndarray:
        """The levels of the ratings behind the entries of histories."""
        return ranks_of_interest(interest, self.scale_.n_ranks) - 1

    def _said(self, interest: np.ndarray) -> dict[str, np.ndarray]:
        """The column of ratings, or of counts without ratings, behind entries of histories."""
        if not self.scale_.only_picks:
            return {"rating": self.scale_.values[self._levels(interest)]}
        counts = np.exp(interest - 1.0)
        return {"count": np.where(np.abs(counts - np.rint(counts)) < 1e-6 * counts,
                                  np.rint(counts), counts)}  # fmt: skip

    def reasons(self, user: Any, item: Any) -> pd.DataFrame:
        """Return which of a user's ratings speak for an item, the weightiest first.

        Returns
        -------
        DataFrame
            ``item``, the user's ``rating`` of it (the ``count`` of picks without ratings; NaN
            for an event), and its ``contribution`` to the score. Empty for a model whose scores
            are no such sums, and for a user without ratings.
        """
        user_codes, item_codes = self._codes([user], [item])
        row = self.history_rows(user_codes)
        parts = None
        if user_codes[0] >= 0 and item_codes[0] >= 0:
            parts = self.contributions(int(user_codes[0]), int(item_codes[0]))
        if parts is None:
            row, parts = row[:, :0], np.zeros(0)
        order = np.argsort(-np.abs(parts), kind="stable")
        said = self._said(row.data[order])
        if row.nnz and self._events is not None:
            met = is_event(row, self._events.entries[user_codes])[order]
            said = {name: np.where(met, np.nan, values) for name, values in said.items()}
        return pd.DataFrame(
            {"item": self.item_ids_.take(row.indices[order])}
            | said
            | {"contribution": parts[order]}
        )


def replaced_rows(
    history: sparse.csr_array, given: sparse.csr_array, changed: np.ndarray
) -> sparse.csr_array:
    """Histories with some rows replaced or added by those given; all others are copied at once."""
    n_known = history.shape[0]
    sizes = np.diff(history.indptr, append=np.full(given.shape[0] - n_known, history.nnz))
    sizes[changed] = np.diff(given.indptr)[changed]
    columns, values, done = [], [], 0
    for row in changed:
        own = slice(*history.indptr[[row, row + 1]]) if row < n_known else slice(history.nnz, None)
        new = slice(*given.indptr[[row, row + 1]])
        columns += [history.indices[done : own.start], given.indices[new]]
        values += [history.data[done : own.start], given.data[new]]
        done = own.stop if row < n_known else history.nnz
    columns.append(history.indices[done:])
    values.append(history.data[done:])
    # one type for both index arrays, or scipy would convert them at every look-up
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(history.indices.dtype)
    return sparse.csr_array(
        (np.concatenate(values), np.concatenate(columns), start), shape=given.shape
    )
