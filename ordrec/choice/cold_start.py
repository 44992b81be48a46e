"""How much popularity counts for users with few ratings, learnt on users held out of training.

(1) ``s = (1 - w) c + w log(m + 0.01)``, ``w = a / (a + n^2)``

with ``c`` the score of the choice models, ``m`` the popularity of the item and ``n`` the number of
the user's ratings. The constant ``a`` differs between data sets: where a few popular items make up
most picks, it takes more ratings to know better.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from ordrec.choice.inner_splits import (
    InnerSplit,
    ListQuality,
    climb_by_doubling,
    cut_histories,
)
from ordrec.lists.best import best_columns
from ordrec.lists.filters import ItemFilter

__all__ = ["USUAL_COLD", "chosen_cold", "popularity_of", "with_popularity"]

USUAL_COLD = 16.0
CUTS = (1, 2, 5, 10)  # lengths to which histories are cut
LEAST_HELD = 5  # picks that a user must have beyond these
FLOOR = 0.01


def popularity_of(counts: np.ndarray) -> np.ndarray:
    """Return the numbers of ratings of items relative to the largest."""
    return counts / max(int(counts.max(initial=0)), 1)


def with_popularity(
    scores: np.ndarray, counts: np.ndarray, sizes: np.ndarray, cold: float
) -> np.ndarray:
    """Return (1) for scores of users with these numbers of ratings; the scores are overwritten."""
    share = np.ones(sizes.shape)  # of a user without ratings, also where the constant is 0
    np.divide(cold, cold + sizes**2, out=share, where=sizes > 0)
    share = share.astype(scores.dtype)[:, None]
    scores *= 1.0 - share
    scores += share * np.log(popularity_of(counts) + FLOOR).astype(scores.dtype)
    return scores


def chosen_cold(
    histories: sparse.csr_array,
    as_they_are: InnerSplit,
    counts: np.ndarray,
    score: Callable[[sparse.csr_array], np.ndarray],
    n_ranks: int,
    rng: np.random.Generator,
    least_users: int,
) -> float:
    """Return the constant ``a`` that makes the best lists for short histories.

    Lists are made from the histories as they are, less a part set aside, and from histories cut
    to a few entries; where histories are short, the former decide.

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
    for given, held in cuts:
        scores = score(given)
        ItemFilter(counts > 0).hide(scores, given)
        parts.append((scores, np.diff(given.indptr), ListQuality(held, n_ranks)))
    if not parts:
        return USUAL_COLD

    def quality(cold: float) -> float:
        return float(
            np.mean(
                [
                    measure(best_columns(with_popularity(c.copy(), counts, n, cold), 10)).mean()
                    for c, n, measure in parts
                ]
            )
        )

    return climb_by_doubling(quality, USUAL_COLD)[0]
