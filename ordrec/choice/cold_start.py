"""How much popularity counts for users with few ratings, learnt on users held out of training.

(1) ``s = (1 - w) c + w log(m + 0.01)``, ``w = a / (a + n^2)``

with ``c`` the score of the choice models, ``m`` the popularity of the item and ``n`` the number of
the user's ratings. The constant ``a`` differs between data sets: where a few popular items make up
most picks, it takes more ratings to know better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ordrec.choice.inner_splits import (
    InnerSplit,
    ListQuality,
    climb_by_doubling,
    cut_histories,
)
from ordrec.lists.best import best_columns
from ordrec.lists.filters import ItemFilter, row_blocks

__all__ = [
    "USUAL_COLD",
    "ListedHistories",
    "chosen_cold",
    "cut_parts",
    "popularity_of",
    "with_popularity",
]

USUAL_COLD = 16.0
CUTS = (1, 2, 5, 10)  # lengths to which histories are cut
LEAST_HELD = 5  # picks that a user must have beyond these
FLOOR = 0.01
LENGTH = 10  # of lists
MANY = 100  # items of the same popularity


def popularity_of(counts: np.ndarray) -> np.ndarray:
    """Return the numbers of ratings of items relative to the largest."""
    return counts / max(int(counts.max(initial=0)), 1)


def with_popularity(
    scores: np.ndarray, counts: np.ndarray, sizes: np.ndarray, cold: float
) -> np.ndarray:
    """Return (1) for scores of users with these numbers of ratings; the scores are overwritten."""
    return _towards(scores, np.log(popularity_of(counts) + FLOOR), sizes, cold)


def _towards(scores: np.ndarray, popular: np.ndarray, sizes: np.ndarray, cold: float) -> np.ndarray:
    """Return (1), ``popular`` being the logarithms in it; the scores are overwritten."""
    share = np.ones(sizes.shape)  # of a user without ratings, also where the constant is 0
    np.divide(cold, cold + sizes**2, out=share, where=sizes > 0)
    share = share.astype(scores.dtype)[:, None]
    scores *= 1.0 - share
    scores += share * popular.astype(scores.dtype)
    return scores


@dataclass(frozen=True)
class ListedHistories:
    """Scores of the items that lists may have for some histories, and the quality of these lists.

    Of items that are equally popular only those with the best scores can be in a list, whatever
    the constant: of a hundred thousand items with one rating each, ten.

    Attributes
    ----------
    items : int64 array of shape (n_histories, n_kept)
        Ascending in each row.
    scores : array of shape (n_histories, n_kept)
        ``c`` of (1); minus infinity for items that cannot be listed.
    sizes : int64 array of shape (n_histories,)
    counts : array of shape (n_items,)
        Numbers of ratings of the items in training.
    measure : ListQuality
    """

    items: np.ndarray
    scores: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    measure: ListQuality

    def quality(self, cold: float) -> float:
        """Return the mean quality with this constant ``a``."""
        popular = np.log(popularity_of(self.counts) + FLOOR)[self.items]
        scores = _towards(self.scores.copy(), popular, self.sizes, cold)
        best = best_columns(scores, LENGTH)
        items = np.take_along_axis(self.items, np.maximum(best, 0), axis=1)
        return float(self.measure(np.where(best >= 0, items, -1)).mean())


def equally_popular(counts: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the items that are as popular as few others, and the many of each other popularity.

    Items without ratings are in neither.
    """
    order = np.argsort(counts, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(counts[order])) + 1)
    rated = [group for group in groups if group.size and counts[group[0]] > 0]
    few = [group for group in rated if group.size < MANY]
    return (
        np.sort(np.concatenate([np.zeros(0, np.int64), *few])),
        [group for group in rated if group.size >= MANY],
    )


def kept_items(
    scores: np.ndarray, few: np.ndarray, many: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return which items lists may have, ascending in each row, and their scores.

    ``few`` and ``many`` are from `equally_popular`; the best of each of the latter are kept.
    """
    kept = [np.broadcast_to(few, (len(scores), few.size))]
    there = [np.ones((len(scores), few.size), dtype=np.bool_)]
    for group in many:
        best = best_columns(scores[:, group], LENGTH)
        kept.append(group[np.maximum(best, 0)])
        there.append(best >= 0)
    items, listable = np.hstack(kept), np.hstack(there)
    order = np.argsort(items, axis=1, kind="stable")
    items = np.take_along_axis(items, order, axis=1)
    own = np.take_along_axis(scores, items, axis=1)
    own[~np.take_along_axis(listable, order, axis=1)] = -np.inf
    return items, own


def cut_parts(
    histories: sparse.csr_array,
    as_they_are: InnerSplit,
    counts: np.ndarray,
    score: Callable[[sparse.csr_array], np.ndarray],
    n_ranks: int,
    rng: np.random.Generator,
    least_users: int,
) -> list[ListedHistories]:
    """Return histories as they are, less a part set aside, and histories cut to a few entries.

    Parameters
    ----------
    histories : csr_array
        Of users who took no part in fitting the choice models.
    as_they_are : InnerSplit
        Of the same histories.
    counts : array
        Numbers of ratings of the items in training.
    score : callable
        Scores ``c`` of all items for histories.
    n_ranks : int
    rng : Generator
    least_users : int
        Lengths with fewer users than this are left out.
    """
    parts, cuts = [], []
    if as_they_are.rows.size >= least_users:
        cuts.append((as_they_are.given[as_they_are.rows], as_they_are.held[as_they_are.rows]))
    for length in CUTS:
        long = np.flatnonzero(np.diff(histories.indptr) >= length + LEAST_HELD)
        if long.size >= least_users:
            cuts.append(cut_histories(histories[long], length, rng))
    groups, listable = equally_popular(counts), ItemFilter(counts > 0)
    for given, held in cuts:
        found = []
        for some in row_blocks(given):
            scores = score(given[some])
            listable.hide(scores, given[some])
            found.append(kept_items(scores, *groups))
        items, kept = (np.concatenate(each) for each in zip(*found, strict=True))
        sizes = np.diff(given.indptr)
        parts.append(ListedHistories(items, kept, sizes, counts, ListQuality(held, n_ranks)))
    return parts


def chosen_cold(parts: Sequence[ListedHistories]) -> float:
    """Return the constant ``a`` that makes the best lists; the usual one without histories.

    Where histories are short, those that are as they are decide, since few can be cut.
    """
    if not parts:
        return USUAL_COLD
    return climb_by_doubling(
        lambda cold: float(np.mean([part.quality(cold) for part in parts])), USUAL_COLD
    )[0]
