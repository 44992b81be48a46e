"""Parameters chosen inside the training part: parts set aside, and how good scores are on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.lists.best import rank_gains

__all__ = [
    "FEW_USERS",
    "INNER_USERS",
    "SHARE",
    "InnerSplit",
    "ListQuality",
    "climb_by_doubling",
    "cut_histories",
    "entries_where",
    "entry_times",
    "inner_splits",
    "left_out_quality",
    "ranks_of_interest",
    "without_users",
]

FEW_USERS = 20  # fewer users than this cannot choose anything
INNER_USERS = 1500  # users whose lists calibrate the probability of a pick
SHARE = 0.2  # of each history, set aside for the calibration
DEPTH = 200  # places at which a left-out item still counts
SMALLEST, LARGEST = 1e-3, 1e7  # beyond these nothing changes any more


def climb_by_doubling(
    quality: Callable[[float], float], start: float, least_gain: float = 0.0
) -> tuple[float, dict[float, float]]:
    """Climb from ``start`` by doubling or halving until neither is better.

    A step that gains no more than ``least_gain``, relative to the quality before, is taken, and is
    the last one. Returns the best value, and the quality of each value that was tried.

    Examples
    --------
    >>> climb_by_doubling(lambda value: -abs(value - 30.0), 200.0)[0]
    25.0
    """
    tried: dict[float, float] = {}

    def of(value: float) -> float:
        if value not in tried:
            tried[value] = quality(value)
        return tried[value]

    best = start
    while SMALLEST < best < LARGEST:
        better = max((best, best / 2, best * 2), key=of)
        if better == best:
            break
        gain, best = of(better) - of(best), better
        if gain <= least_gain * abs(of(best)):
            break
    return best, tried


def ranks_of_interest(interest: np.ndarray, n_ranks: int) -> np.ndarray:
    """Return the ranks behind entries of histories; repeated picks, above 1, have the highest.

    Examples
    --------
    >>> ranks_of_interest(np.array([0.2, 1.0, 2.4]), 5)
    array([1, 5, 5])
    """
    return np.minimum(np.rint(interest * n_ranks), n_ranks).astype(np.int64)


def left_out_quality(scores: np.ndarray, history: sparse.csr_array, n_ranks: int) -> np.ndarray:
    """Return the mean discount of each user's own items, by left-out scores.

    An item's place is counted among the items that the user has not rated, its discount is
    ``1 / log2(place + 1)`` down to place 200 and 0 below; items are weighted by their gains.
    """
    gains = rank_gains(n_ranks)[ranks_of_interest(history.data, n_ranks) - 1]
    result = np.zeros(history.shape[0])
    for row, own_scores in enumerate(scores):
        own = slice(history.indptr[row], history.indptr[row + 1])
        unseen = np.ones(own_scores.size, dtype=np.bool_)
        unseen[history.indices[own]] = False
        others = np.sort(own_scores[unseen])
        place = others.size - np.searchsorted(others, own_scores[history.indices[own]]) + 1
        total = gains[own].sum()
        if total > 0.0:
            reached = np.where(place <= DEPTH, gains[own] / np.log2(place + 1.0), 0.0)
            result[row] = reached.sum() / total
    return result


class ListQuality:
    """NDCG at k of lists for the same users, gains by rank.

    Parameters
    ----------
    held : csr_array of shape (n_users, n_items)
        ``rank / n_ranks`` of the picks set aside, at least one per user.
    n_ranks : int
    k : int

    Examples
    --------
    >>> held = sparse.csr_array(np.array([[0.2, 0.0, 1.0]]))
    >>> ListQuality(held, n_ranks=5)(np.array([[2, 0]]))
    array([1.])
    """

    def __init__(self, held: sparse.csr_array, n_ranks: int, k: int = 10):
        gains = rank_gains(n_ranks)[ranks_of_interest(held.data, n_ranks) - 1]
        self.gains = sparse.csr_array((gains, held.indices, held.indptr), held.shape)
        self.discount = 1.0 / np.log2(np.arange(2, k + 2))
        user = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
        order = np.lexsort((-gains, user))
        place = np.arange(gains.size) - held.indptr[user]
        first = place < k
        best = gains[order][first] * self.discount[place[first]]
        self.ideal = np.bincount(user[first], best, minlength=held.shape[0])

    def __call__(self, lists: np.ndarray) -> np.ndarray:
        """Return one number per user; lists are columns, best first, -1 where there is none."""
        rows = np.repeat(np.arange(lists.shape[0]), lists.shape[1])
        listed = self.gains[rows, np.maximum(lists, 0).ravel()]
        gains = np.asarray(listed).reshape(lists.shape) * (lists >= 0)
        return (gains @ self.discount[: lists.shape[1]]) / self.ideal


# ---- parts set aside --------------------------------------------------------------------------


@dataclass(frozen=True)
class InnerSplit:
    """Histories to learn from, and the picks set aside.

    Attributes
    ----------
    given, held : csr_array of shape (n_users, n_items)
    rows : int64 array
        Users that have entries in both parts, ascending.
    given_times : array or None
        Times of the entries of ``given``.
    """

    given: sparse.csr_array
    held: sparse.csr_array
    rows: np.ndarray
    given_times: np.ndarray | None = None


def inner_splits(
    history: sparse.csr_array,
    n_splits: int,
    share: float,
    rng: np.random.Generator,
    *,
    times: np.ndarray | None = None,
    max_users: int,
    one: bool = False,
    events: np.ndarray | None = None,
    users: np.ndarray | None = None,
) -> list[InnerSplit]:
    """Set aside a share of every user's entries, several times.

    Parameters
    ----------
    history : csr_array
        With sorted indices.
    n_splits : int
    share : float
        Of each user's entries; a user keeps at least one.
    rng : Generator
    times : array, optional
        One per entry of the history: the latest entries are set aside. Without times, the
        entries are drawn at random.
    max_users : int
        Largest number of ``rows``; they are drawn at random.
    one : bool
        Set aside one entry of each user in place of a share.
    events : bool array, optional
        Which entries of the history are events: they are not set aside, and do not count.
    users : int64 array, optional
        Of whom something is set aside; all by default.
    """
    sizes = np.diff(history.indptr)
    user = np.repeat(np.arange(history.shape[0]), sizes)
    is_pick = np.ones(history.nnz, dtype=np.bool_) if events is None else ~events
    n_picks = np.bincount(user[is_pick], minlength=sizes.size)
    wanted = np.ones_like(sizes) if one else np.rint(share * n_picks).astype(np.int64)
    count = np.minimum(wanted, np.maximum(n_picks - 1, 0))
    if users is not None:
        count[~np.isin(np.arange(count.size), users)] = 0
    found = []
    for _ in range(n_splits):
        keys = rng.random(history.nnz)
        # the last of each user by time, then by chance
        within = (keys, is_pick) if times is None else (keys, times, is_pick)
        order = np.lexsort((*within, user))
        place = np.empty(history.nnz, dtype=np.int64)
        place[order] = np.arange(history.nnz) - history.indptr[user[order]]
        out = place >= (sizes - count)[user]
        given, held = entries_where(history, ~out), entries_where(history, out)
        rows = np.flatnonzero((np.diff(given.indptr) > 0) & (np.diff(held.indptr) > 0))
        if rows.size > max_users:
            rows = np.sort(rng.choice(rows, max_users, replace=False))
        found.append(InnerSplit(given, held, rows, None if times is None else times[~out]))
    return found


def cut_histories(
    history: sparse.csr_array, length: int, rng: np.random.Generator
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return histories of ``length`` entries drawn at random from each user, and the others."""
    user = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
    order = np.lexsort((rng.random(history.nnz), user))
    place = np.empty(history.nnz, dtype=np.int64)
    place[order] = np.arange(history.nnz) - history.indptr[user[order]]
    given = place < length
    return entries_where(history, given), entries_where(history, ~given)


def without_users(history: sparse.csr_array, users: np.ndarray) -> sparse.csr_array:
    """Return the histories with those of some users emptied."""
    user = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
    return entries_where(history, ~np.isin(user, users))


def entry_times(ratings: Ratings, history: sparse.csr_array) -> np.ndarray | None:
    """Times of the entries of the histories, or None where the ratings have none."""
    if ratings.timestamps is None or not (ratings.timestamps > 0).any():
        return None
    times = ratings.timestamps.astype(np.float64)
    table = sparse.csr_array((times, (ratings.users, ratings.items)), shape=history.shape)
    table.sort_indices()
    return table.data


def entries_where(history: sparse.csr_array, entries: np.ndarray) -> sparse.csr_array:
    """Return the histories with these entries alone, given by a mask."""
    user = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
    counts = np.bincount(user[entries], minlength=history.shape[0])
    start = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array(
        (history.data[entries], history.indices[entries], start), shape=history.shape
    )
