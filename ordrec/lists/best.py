"""The best items of each user, by scores or by distributions of ratings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ordrec.data import Scale
from ordrec.errors import ArgumentError

__all__ = [
    "ORDERS",
    "RatingOrder",
    "best_by_rating",
    "best_columns",
    "pair_scores",
    "rank_gains",
]

ORDERS = ("expected", "p_at_least", "lower_quantile")


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


@dataclass(frozen=True)
class RatingOrder:
    """By what of its distributions a rating model orders a list.

    Parameters
    ----------
    by : {"expected", "p_at_least", "lower_quantile"}
        The expected rating, the probability of ``at_least`` or more, or the rating that is
        reached with probability ``1 - quantile``.
    at_least : float, optional
        A rating; by default the lowest that counts as liked, see `Scale.liked_from`.
    quantile : float
    """

    by: str = "expected"
    at_least: float | None = None
    quantile: float = 0.25

    def __post_init__(self) -> None:
        if self.by not in ORDERS:
            hint = ", which only a Recommender knows" if self.by == "recommended" else ""
            raise ArgumentError(
                f"by must be one of {', '.join(ORDERS)}, got {self.by!r}{hint}", parameter="by"
            )
        if not 0 < self.quantile < 1:
            raise ArgumentError(f"quantile must lie between 0 and 1, got {self.quantile}")

    def scores(self, p: np.ndarray, scale: Scale) -> np.ndarray:
        """Return one number per distribution, the higher the better.

        Examples
        --------
        >>> p = np.array([[0.1, 0.2, 0.4, 0.2, 0.1], [0.4, 0.0, 0.0, 0.0, 0.6]])
        >>> RatingOrder("p_at_least").scores(p, Scale.regular(1, 5)).round(3)
        array([0.3, 0.6])
        """
        if self.by == "expected":
            return p @ scale.values
        if self.by == "p_at_least":
            at_least = scale.liked_from if self.at_least is None else self.at_least
            return p[:, scale.values >= at_least].sum(axis=1)
        return scale.values[(np.cumsum(p, axis=1) < self.quantile - 1e-12).sum(axis=1)]


def best_by_rating(
    p: np.ndarray, listable: np.ndarray, scale: Scale, n: int, order: RatingOrder
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the columns of each user's n best items, -1 where there are no more, and their values.

    Parameters
    ----------
    p : array of shape (n_users * n_items, n_ranks)
        Distributions, those of a user one after the other.
    listable : bool array of shape (n_users, n_items)
        Which items may be listed for each user.
    scale : Scale
    n : int
    order : RatingOrder
        Ties are ordered by the expected rating, then by column.
    """
    expected = (p @ scale.values).reshape(listable.shape)
    score = order.scores(p, scale).reshape(listable.shape)
    best = np.lexsort((-expected, -score, ~listable), axis=1)[:, :n]
    columns = {
        name: np.take_along_axis(values, best, axis=1)
        for name, values in (("score", score), ("expected", expected))
    }
    return np.where(np.take_along_axis(listable, best, axis=1), best, -1), columns


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
