"""Users who are left out of the models of a mixture, and how good the lists for them are.

What a mixture leaves open is chosen by them. Where there are few ratings, several groups of users
are left out, one after the other, so that more than a fifth of all users say what is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from ordrec.lists.filters import ItemFilter, row_blocks

__all__ = ["LeftOutUsers", "groups_left_out", "last_better", "mixed"]

GROUP, ENOUGH = 500, 1000  # users of a group, and of all groups
MOST_GROUPS = 5

LogScores = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


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
    log_scores : callable
        Logarithms of the scores of EASE and of ALS, from both and the numbers of ratings.
    """

    rest: sparse.csr_array
    own: sparse.csr_array
    split: InnerSplit
    counts: np.ndarray
    ease: EASE
    als: ImplicitALS
    n_ranks: int
    log_scores: LogScores
    known: dict[tuple[float, float], np.ndarray] = field(default_factory=dict, init=False)

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
        return mixed(self.log_scores(E, A, self.counts), mix)

    def qualities(self, settings: Sequence[tuple[float, float]]) -> list[np.ndarray]:
        """Return the quality of each user's list for each share of ALS and each ``cold``.

        Scores are made for a block of users at a time, and once for all settings.
        """
        missing = [each for each in dict.fromkeys(settings) if each not in self.known]
        lists: dict[tuple[float, float], list[np.ndarray]] = {each: [] for each in missing}
        given, listable = self.given, ItemFilter(self.counts > 0)
        factors = self.als.factors_of(given) if missing else np.zeros((0, 0))
        for some in row_blocks(given) if missing else ():
            own = given[some]
            A = (factors[some] @ self.als.item_factors_.T).astype(np.float64)
            logs = self.log_scores(self.ease.score_histories(own), A, self.counts)
            for mix, cold in missing:
                scores = with_popularity(mixed(logs, mix), self.counts, np.diff(own.indptr), cold)
                listable.hide(scores, own)
                lists[mix, cold].append(best_columns(scores, 10))
        for each, found in lists.items():
            self.known[each] = self.measure(np.concatenate(found))
        return [self.known[each] for each in settings]

    def cold_parts(self, mix: float, rng: np.random.Generator, least: int) -> list[ListedHistories]:
        """Return scores for the histories as they are, and for some that are cut short."""
        return cut_parts(
            self.own, self.split, self.counts, lambda given: self.scores(given, mix),
            self.n_ranks, rng, least,
        )  # fmt: skip


def mixed(logs: tuple[np.ndarray, np.ndarray], mix: float) -> np.ndarray:
    """Return the mixture of the logarithms of both scores; ``mix`` is the share of the second."""
    scores = (1.0 - mix) * logs[0]
    scores += mix * logs[1]
    return scores


def groups_left_out(
    history: sparse.csr_array,
    times: np.ndarray | None,
    rng: np.random.Generator,
    models_of: Callable[[sparse.csr_array, np.ndarray], tuple[EASE, ImplicitALS]],
    log_scores: LogScores,
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
    log_scores : callable
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
                log_scores,
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
