"""Views, bookmarks and other events in the histories of choice models.

With ``n`` how often an event of kind k happened to a user and an item that they have not rated, its
entry of the history is

(1) ``w_k (1 + log n)``

and that of the weightiest kind where there are several. The weights are chosen in training: EASE is
fitted with each of `WEIGHTS`, one kind after the other, the most frequent first, and its exact
leave-one-out scores order the catalogue for each user without what they have met. The weight is
taken by which rated items come first; a larger one has to be better by more than the standard error
of the difference.

That alone would not tell noise. An item that was rated has no event (`Ratings.with_events`), so
that even with the events of somebody else, what is left of a group of similar items is what was
rated. The events must therefore also be better, by more than three standard errors, than those of
other users, drawn at random. Otherwise they have the weight 0 and take no part at all.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.choosing import Chosen
from ordrec.choice.ease_solver import EaseProblem, row_factors
from ordrec.choice.inner_splits import (
    FEW_USERS,
    climb_by_doubling,
    entries_where,
    left_out_quality,
)
from ordrec.data import Ratings
from ordrec.data.columns import MOST_PICKS
from ordrec.data.events import in_errors
from ordrec.data.ids import codes_of
from ordrec.errors import DataError, ModelFileError, OrdrecWarning, callers_level
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.storage.schema import Names, Numbers, Seconds, Table

__all__ = ["EventHistories", "is_event", "learnt_weights", "merged_rows"]

WEIGHTS = (0.0, 0.25, 0.5, 1.0)
MOST_ENTRY = 1.0 + np.log(MOST_PICKS)
USERS, ITEMS = 1000, 1500  # that weights are chosen by: users at random, the items met most
LEAST_COUNT = 3  # of users who met an item
STRANGERS = 3.0  # standard errors by which events are better than those of other users
START_RIDGE, USER_POWER, ITEM_POWER = 200.0, 0.5, 0.25  # as in `ChoiceMixture`


@dataclass(frozen=True, eq=False)
class EventHistories:
    """The events that a choice model has learnt from.

    Attributes
    ----------
    entries : csr_array of shape (n_users, n_items)
        (1), where the user has not rated the item.
    times : array
        Of the entries, 0 where unknown.
    kinds : tuple of str
    weights : tuple of float
        One for each kind.
    """

    stored: ClassVar = {
        "kinds": Names(),
        "weights": Numbers(low=0.0, high=1.0),
        "entries": Table("users", "items", low=0.0, high=MOST_ENTRY, entries="event_entries"),
        "times": Seconds("event_entries"),
    }

    kinds: tuple[str, ...]
    weights: tuple[float, ...]
    entries: sparse.csr_array
    times: np.ndarray

    @classmethod
    def of(cls, ratings: Ratings, weights: Mapping[str, float]) -> Self:
        """Return the events of ratings, by weights of their kinds."""
        kinds, values = tuple(weights), tuple(weights.values())
        events, shape = ratings.events, (ratings.n_users, ratings.n_items)
        assert events is not None
        by_kind = np.array([weights.get(kind, 0.0) for kind in events.names])
        entry = by_kind[events.kinds] * (1.0 + np.log(events.counts))
        pair = events.users.astype(np.int64) * ratings.n_items + events.items
        # the weightiest of each pair comes last
        order = np.lexsort((entry, pair))
        last = np.append(pair[order][1:] != pair[order][:-1], True)
        rows = order[last & (entry[order] > 0.0)] if order.size else order
        times = events.times[rows].astype(np.float64)
        codes = events.users[rows], events.items[rows]
        return cls(kinds, values, _table(*codes, entry[rows], shape), times)

    @property
    def by_kind(self) -> dict[str, float]:
        """The weight of each kind."""
        return dict(zip(self.kinds, self.weights, strict=True))

    def replaced(self, entries: sparse.csr_array, times: np.ndarray) -> EventHistories:
        """Return the same weights with other events."""
        return replace(self, entries=entries, times=times)

    def resized(self, n_users: int, n_items: int) -> EventHistories:
        """Return the same events among more users and items, or without users."""
        entries = self.entries[:n_users].copy()
        entries.resize((n_users, n_items))
        return self.replaced(entries, self.times[: entries.nnz])

    def with_those_of(
        self, ratings: Ratings, user_ids: pd.Index, item_ids: pd.Index, changed: np.ndarray
    ) -> EventHistories:
        """Return the events in which those of further ratings replace the ones of their users.

        Parameters
        ----------
        ratings : Ratings
            With events, of kinds whose weight is known.
        user_ids, item_ids : Index
            Those of the model; events of other items are left out.
        changed : array of int
            Users whose ratings are replaced, by code of the model.
        """
        assert ratings.events is not None
        check_kinds(ratings.events.names, self.kinds)
        users = codes_of(user_ids, ratings.user_ids)
        users[~np.isin(users, changed)] = -1
        own = ratings.events.recoded(users, codes_of(item_ids, ratings.item_ids))
        given = self.of(
            ratings._replaced(events=own, user_ids=user_ids, item_ids=item_ids), self.by_kind
        )
        other = ~np.isin(_rows(self.entries), changed)
        table, order = merged_rows(entries_where(self.entries, other), given.entries)
        return self.replaced(table, np.concatenate([self.times[other], given.times])[order])

    def without(self, history: sparse.csr_array) -> EventHistories:
        """Return the events of pairs that are not rated."""
        other = ~is_event(self.entries, history)
        return self.replaced(entries_where(self.entries, other), self.times[other])

    def check_stored(self) -> None:
        """Check that there is a weight for each kind."""
        if len(self.kinds) != len(self.weights) or len(set(self.kinds)) < len(self.kinds):
            raise ModelFileError("kinds of events do not pair up with their weights")


def check_kinds(given: Sequence[str], known: Sequence[str]) -> None:
    """Refuse kinds of events that a model has not met in training.

    Examples
    --------
    >>> check_kinds(["view"], ["view", "cart"])
    """
    for kind in given:
        if kind not in known:
            near = difflib.get_close_matches(kind, known, 1)
            raise DataError(
                f"the model knows no events of the kind {kind!r}: it has learnt from "
                f"{', '.join(map(repr, known))}" + (f": did you mean {near[0]!r}?" if near else ""),
                parameter="events",
            )


def merged_rows(
    first: sparse.csr_array, second: sparse.csr_array
) -> tuple[sparse.csr_array, np.ndarray]:
    """Return two tables without a common entry as one, and the order of its entries.

    Entries that are 0 stay. What belongs to the entries, such as times, is put into the same order
    as ``np.concatenate([of_first, of_second])[order]``.

    Examples
    --------
    >>> first, second = (sparse.csr_array(np.array([row])) for row in ([0, 3, 0], [1, 0, 2]))
    >>> table, order = merged_rows(first, second)
    >>> table.toarray(), order
    (array([[1, 3, 2]]), array([1, 0, 2]))
    """
    rows = np.concatenate([_rows(first), _rows(second)])
    columns = np.concatenate([first.indices, second.indices])
    order = np.lexsort((columns, rows))
    start = (first.indptr + second.indptr).astype(first.indptr.dtype)
    data = np.concatenate([first.data, second.data])[order]
    return sparse.csr_array((data, columns[order], start), shape=first.shape), order


def is_event(history: sparse.csr_array, events: sparse.csr_array | None) -> np.ndarray:
    """Return which entries of a table are among those of another one of the same shape."""
    if events is None or not events.nnz:
        return np.zeros(history.nnz, dtype=np.bool_)
    n_items = history.shape[1]
    own, theirs = (_rows(each) * n_items + each.indices for each in (history, events))
    return np.isin(own, theirs)


def learnt_weights(
    ratings: Ratings, history: sparse.csr_array, n_jobs: int | None
) -> dict[str, float]:
    """Return the weight of each kind of events that makes the best lists.

    Parameters
    ----------
    ratings : Ratings
        With events.
    history : csr_array of shape (n_users, n_items)
        Of what is rated, or picked.
    n_jobs : int, optional
        Threads.
    """
    events = ratings.events
    assert events is not None
    weights = dict.fromkeys(events.names, 0.0)
    met = EventHistories.of(ratings, dict.fromkeys(events.names, 1.0)).entries
    counts = np.bincount(history.indices, minlength=history.shape[1])
    counts += np.bincount(met.indices, minlength=history.shape[1])
    items = np.sort(np.argsort(-counts, kind="stable")[:ITEMS])
    items = items[counts[items] >= LEAST_COUNT]
    rated, hidden = sparse.csr_array(history[:, items]), sparse.csr_array(met[:, items])
    for table in (rated, hidden):
        table.sort_indices()
    rows = np.flatnonzero(np.diff(rated.indptr) > 1)
    if rows.size < FEW_USERS:
        warnings.warn(
            OrdrecWarning(
                f"only {rows.size} users have ratings enough to learn what events say of picks: "
                "lists are made without them",
                parameter="events",
            ),
            stacklevel=callers_level(),
        )
        return weights
    rows = np.sort(np.random.default_rng(0).permutation(rows)[:USERS])
    trial = _Trial(rated, rows, ratings.scale.n_ranks, worker_count(n_jobs))
    nothing, ridge = trial.quality(sparse.csr_array(rated.shape), hidden, START_RIDGE)
    found = {"0.0": nothing}

    def entries(own: Ratings, weights: Mapping[str, float]) -> sparse.csr_array:
        return sparse.csr_array(EventHistories.of(own, weights).entries[:, items])

    for number, kind in enumerate(events.names):
        for weight in WEIGHTS[1:]:
            table = entries(ratings, weights | {kind: weight})
            found[str(weight)], _ = trial.quality(table, hidden, ridge)
        best = Chosen.among(found).name
        found = {"0.0": found["0.0"]}
        if best == "0.0":
            continue
        chosen, placebo = weights | {kind: float(best)}, ratings.with_strangers(number, 1)
        both = hidden + entries(placebo, dict.fromkeys(events.names, 1.0))
        own, theirs = (
            trial.quality(entries(each, chosen), both, ridge)[0] for each in (ratings, placebo)
        )
        if in_errors(own - theirs) > STRANGERS:
            weights = chosen
            found["0.0"], _ = trial.quality(entries(ratings, weights), hidden, ridge)
    return weights


@dataclass(frozen=True)
class _Trial:
    """Leave-one-out lists of EASE for some users."""

    rated: sparse.csr_array
    rows: np.ndarray
    n_ranks: int
    n_jobs: int

    def quality(
        self, events: sparse.csr_array, hidden: sparse.csr_array, start: float
    ) -> tuple[np.ndarray, float]:
        """Return how good lists with these events are, one number per user, and the best ridge.

        What is hidden is in no list.
        """
        events.sort_indices()
        table = merged_rows(self.rated, events)[0] if events.nnz else self.rated
        sizes, counts = np.diff(table.indptr), np.bincount(table.indices, minlength=table.shape[1])
        with one_blas_thread():
            factors = row_factors(sizes, float(sizes[sizes > 0].mean()), USER_POWER)
            problem = EaseProblem(table, factors, n_jobs=self.n_jobs)
            relative = (counts / max(counts.mean(), 1.0)) ** ITEM_POWER
            own, met, found = self.rated[self.rows], hidden[self.rows], {}

            def of(ridge: float) -> float:
                # an item that nobody has met has a ridge too
                solution = problem.solve(ridge * np.maximum(relative, 1e-3))
                scores = solution.scores(self.rows, left_out=True)
                scores[_rows(met), met.indices] = -np.inf
                found[ridge] = left_out_quality(scores, own, self.n_ranks)
                return float(found[ridge].mean())

            best, _ = climb_by_doubling(of, start)
        return found[best], best


def _table(
    users: np.ndarray, items: np.ndarray, entries: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a table of entries that are sorted by users and items."""
    start = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=shape[0]))])
    return sparse.csr_array((entries, items.astype(np.int32), start.astype(np.int32)), shape=shape)


def _rows(table: sparse.csr_array) -> np.ndarray:
    return np.repeat(np.arange(table.shape[0], dtype=np.int64), np.diff(table.indptr))
