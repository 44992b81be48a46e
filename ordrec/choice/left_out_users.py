"""Users who are left out of the models of a mixture, and how good the lists for them are.

What a mixture leaves open is chosen by them. Where there are few ratings, several groups of users
are left out, one after the other, so that more than a fifth of all users say what is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ordrec.choice.als import ImplicitALS
from ordrec.choice.choosing import Chosen
from ordrec.choice.cold_start import ListedHistories, cut_parts, with_popularity
from ordrec.choice.ease import EASE
from ordrec.choice.events import is_event
from ordrec.choice.inner_splits import (
    SHARE,
    InnerSplit,
    ListQuality,
    entries_where,
    inner_splits,
    without_users,
)
from ordrec.lists.best import best_columns
from ordrec.lists.filters import ItemFilter

__all__ = ["LeftOutUsers", "groups_left_out", "last_better"]

GROUP, ENOUGH = 500, 1000  # users of a group, and of all groups
MOST_GROUPS = 5

MixedScores = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]


@dataclass
class LeftOutUsers:
    """A group of users, and both models fitted without them.

    Attributes
    ----------
    rest : csr_array
        The histories of all others.
    own : csr_array
        The histories of the group, without events.
    split : InnerSplit
        Of these.
    counts : int64 array
        Numbers of ratings of the items in ``rest``.
    ease, als : EASE, ImplicitALS
        Fitted to ``rest``.
    n_ranks : int
    mixed : callable
        Scores of histories from those of EASE and ALS, the numbers of ratings, and the share of
        ALS.
    """

    rest: sparse.csr_array
    own: sparse.csr_array
    split: InnerSplit
    counts: np.ndarray
    ease: EASE
    als: ImplicitALS
    n_ranks: int
    mixed: MixedScores

    @cached_property
    def given(self) -> sparse.csr_array:
        """The histories that lists are made from."""
        return self.split.given[self.split.rows]

    @cached_property
    def measure(self) -> ListQuality:
        """The quality of lists for ``given``."""
        return ListQuality(self.split.held[self.split.rows], self.n_ranks)

    def scores(self, given: sparse.csr_array, mix: float) -> np.ndarray:
        """Return the scores of all items, without what popularity adds."""
        E, A = self.ease.score_histories(given), self.als.score_histories(given)
        return self.mixed(E, A, self.counts, mix)

    def quality(self, mix: float, cold: float) -> np.ndarray:
        """Return the quality of each user's list."""
        scores = with_popularity(
            self.scores(self.given, mix), self.counts, np.diff(self.given.indptr), cold
        )
        ItemFilter(self.counts > 0).hide(scores, self.given)
        return self.measure(best_columns(scores, 10))

    def cold_parts(self, mix: float, rng: np.random.Generator, least: int) -> list[ListedHistories]:
        """Return scores for the histories as they are, and for some that are cut short."""
        return cut_parts(
            self.own, self.split, self.counts, lambda given: self.scores(given, mix),
            self.n_ranks, rng, least,
        )  # fmt: skip


def groups_left_out(
    history: sparse.csr_array,
    times: np.ndarray | None,
    rng: np.random.Generator,
    models_of: Callable[[sparse.csr_array, np.ndarray], tuple[EASE, ImplicitALS]],
    mixed: MixedScores,
    *,
    n_ranks: int,
    least: int,
    several: bool,
    events: sparse.csr_array | None = None,
) -> Sequence[LeftOutUsers]:
    """Return groups of users, of whose histories the latest part is set aside, or a random one.

    Parameters
    ----------
    history : csr_array
    times : array or None
        Of the entries.
    rng : Generator
    models_of : callable
        Fits both models to histories with these numbers of ratings of items.
    mixed : callable
    n_ranks : int
    least : int
        Smallest size of a group; there are none of fewer users.
    several : bool
        Whether there is more than one group where that takes less than enough users.
    events : csr_array, optional
        The entries of the histories that are no picks.
    """
    present = np.flatnonzero(np.diff(history.indptr) > 0)
    size = min(GROUP, present.size // MOST_GROUPS)
    if size < least:
        return []
    number = min(MOST_GROUPS, -(-ENOUGH // size)) if several else 1
    drawn = rng.choice(present, number * size, replace=False)
    row = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
    groups = []
    for users in np.sort(drawn.reshape(number, size), axis=1):
        rest, own = without_users(history, users), history[users]
        counts = np.bincount(rest.indices, minlength=rest.shape[1])
        met = is_event(own, None if events is None else events[users])
        (split,) = inner_splits(
            own, 1, SHARE, rng, max_users=users.size, events=met,
            times=None if times is None else times[np.isin(row, users)],
        )  # fmt: skip
        groups.append(
            LeftOutUsers(
                rest,
                entries_where(own, ~met),
                split,
                counts,
                *models_of(rest, counts),
                n_ranks,
                mixed,
            )
        )
    return groups


def last_better(
    groups: Sequence[LeftOutUsers],
    values: Sequence[float],
    refitted: Callable[[LeftOutUsers, float], LeftOutUsers],
    quality: Callable[[Sequence[LeftOutUsers]], np.ndarray],
) -> tuple[float | None, Sequence[LeftOutUsers]]:
    """Try values of a parameter while each is better than the one before, beyond chance.

    Returns the last one that was, None if there is none, and the groups fitted with it.
    """
    best = None
    for value in values:
        tried = [refitted(group, value) for group in groups]
        found = {"before": quality(groups), "after": quality(tried)}
        if Chosen.among(found).name == "before":
            break
        best, groups = value, tried
    return best, groups
