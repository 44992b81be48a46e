"""Draw ordinal ratings from a known latent model, for tests and scaling runs.

The model, with user u, item i and rank k:

    f_ui     = a_i + p_u . q_i                          latent score
    theta_uk = shift_u + stretch_u base_k               personal thresholds
    P(rank <= k) = Phi((theta_uk - f_ui) / noise)

Which pairs are rated is drawn independently of the scores: users differ in activity, items
in popularity (a power law), and no pair occurs twice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from ordrec.data import Ratings, Scale
from ordrec.data.groups import group_starts
from ordrec.errors import ArgumentError

__all__ = [
    "LatentModel",
    "latent_model",
    "synthetic_chunks",
    "synthetic_long_tail",
    "synthetic_ratings",
]

PIECE = 1 << 18  # ratings drawn at a time, which bounds the memory
MAX_ROUNDS = 12
MAX_SWAPS = 200  # rounds in which pairs that occur twice are drawn again
LARGEST_SHARE = 1 / 8  # of the other side that a user or item of a long tail has at most
ONE_OF_RARE = 0.7  # share of those with one rating among the users or items with one or two
FIRST_TIME, LAST_TIME = 1_000_000_000, 1_315_360_000


@dataclass(frozen=True)
class LatentModel:
    """The model that synthetic ratings are drawn from.

    Attributes
    ----------
    user_factors, item_factors : ndarray of shape (n_users, n_factors), (n_items, n_factors)
    item_effects : ndarray of shape (n_items,)
    thresholds : ndarray of shape (n_users, n_ranks - 1)
        Ascending in each row.
    noise : float
        Standard deviation of the noise on the latent score.
    """

    user_factors: np.ndarray
    item_factors: np.ndarray
    item_effects: np.ndarray
    thresholds: np.ndarray
    noise: float

    def latent(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return the latent score of each pair of codes."""
        scores = np.einsum("nk,nk->n", self.user_factors[users], self.item_factors[items])
        return scores + self.item_effects[items]

    def probabilities(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return the true P(rank) of each pair of codes, one row per pair."""
        margin = self.thresholds[users] - self.latent(users, items)[:, None]
        below = ndtr(margin / self.noise)
        ends = np.zeros((below.shape[0], 1)), np.ones((below.shape[0], 1))
        return np.diff(np.hstack([ends[0], below, ends[1]]), axis=1)


def synthetic_ratings(
    n_users: int,
    n_items: int,
    *,
    n_ratings: int | None = None,
    n_factors: int = 4,
    n_ranks: int = 5,
    noise: float = 0.5,
    popularity: float = 0.8,
    activity: float = 1.0,
    dated: bool = False,
    seed: int = 0,
    name: str = "synthetic",
) -> Ratings:
    """Draw ratings from a low-rank model with personal thresholds.

    Parameters
    ----------
    n_users, n_items : int
    n_ratings : int, optional
        By default a tenth of all pairs. Every user gets at least one if possible.
    n_factors : int
        Rank of the interaction of users and items; with 0 there are only item effects.
    n_ranks : int
        Number of ranks; the ranks 1..n_ranks are also the rating values.
    noise : float
        Standard deviation of the noise on a latent score of standard deviation about 1.
    popularity : float
        Exponent of the power law of the items; 0 makes all equally popular.
    activity : float
        Standard deviation of the logarithm of the users' activity.
    dated : bool
        Whether every rating gets a time, uniform over ten years.
    seed : int
        The same seed gives the same ratings on any number of threads.

    Returns
    -------
    Ratings
        Sorted by user; codes and ids are equal. `latent_model` returns the model they
        were drawn from.

    Examples
    --------
    >>> ratings = synthetic_ratings(50, 40, n_ratings=500, seed=1)
    >>> ratings.n_users, ratings.n_items, ratings.n_ratings
    (50, 40, 500)
    """
    chunks = synthetic_chunks(
        n_users,
        n_items,
        rows=sys.maxsize,
        n_ratings=n_ratings,
        n_factors=n_factors,
        n_ranks=n_ranks,
        noise=noise,
        popularity=popularity,
        activity=activity,
        dated=dated,
        seed=seed,
        name=name,
    )
    return next(chunks)


def synthetic_chunks(
    n_users: int,
    n_items: int,
    *,
    rows: int = 1_000_000,
    n_ratings: int | None = None,
    n_factors: int = 4,
    n_ranks: int = 5,
    noise: float = 0.5,
    popularity: float = 0.8,
    activity: float = 1.0,
    dated: bool = False,
    seed: int = 0,
    name: str = "synthetic",
) -> Iterator[Ratings]:
    """Yield the ratings of `synthetic_ratings` in chunks, for more ratings than fit in memory.

    Parameters
    ----------
    n_users, n_items : int
    rows : int
        A chunk ends with the user who brings it to this many ratings.
    n_ratings, n_factors, n_ranks, noise, popularity, activity, dated, seed, name
        As in `synthetic_ratings`; the ratings do not depend on ``rows``.

    Yields
    ------
    Ratings
        All ratings of some users. Each chunk numbers its own users, with the ids of
        `synthetic_ratings`; item codes are the same in all chunks.

    Examples
    --------
    >>> chunks = synthetic_chunks(50, 40, n_ratings=500, rows=200, seed=1)
    >>> sum(chunk.n_ratings for chunk in chunks)
    500
    """
    if rows < 1:
        raise ArgumentError(f"rows must be at least 1, got {rows}")
    if n_ratings is None:
        n_ratings = max(1, n_users * n_items // 10)
    pieces = _pieces(
        n_users, n_items, n_ratings, n_factors, n_ranks, noise, popularity, activity, dated, seed
    )
    waiting: list[_Piece] = []
    first, n_waiting = 0, 0
    for piece in pieces:
        rest = piece
        while n_waiting + rest.items.size >= rows:
            until = int(np.searchsorted(np.cumsum(rest.counts), rows - n_waiting)) + 1
            head, rest = rest.split(until)
            stop = first + sum(part.counts.size for part in waiting) + until
            yield _ratings_of([*waiting, head], first, stop, n_items, n_ranks, name)
            waiting, first, n_waiting = [], stop, 0
        if rest.counts.size:
            waiting.append(rest)
            n_waiting += rest.items.size
    if n_waiting:
        yield _ratings_of(waiting, first, n_users, n_items, n_ranks, name)


def synthetic_long_tail(
    n_users: int,
    n_items: int,
    *,
    n_ratings: int,
    rare_items: float,
    rare_users: float = 0.0,
    n_factors: int = 4,
    n_ranks: int = 5,
    noise: float = 0.5,
    dated: bool = False,
    seed: int = 0,
    name: str = "synthetic",
) -> Ratings:
    """Draw ratings in which every user and item occurs and many occur once or twice.

    Review sites have this shape: most of their items have hardly a rating. The numbers of ratings
    of the other items, and of the other users, follow the power law that makes them add up.

    Parameters
    ----------
    n_users, n_items, n_ratings : int
    rare_items, rare_users : float
        Share of the items, and of the users, that have one or two ratings.
    n_factors, n_ranks, noise, dated, seed, name
        As in `synthetic_ratings`.

    Examples
    --------
    >>> ratings = synthetic_long_tail(300, 2000, n_ratings=6000, rare_items=0.8)
    >>> ratings.n_ratings, float((ratings.item_counts <= 2).mean())
    (6000, 0.8)
    """
    model = latent_model(
        n_users, n_items, n_factors=n_factors, n_ranks=n_ranks, noise=noise, seed=seed
    )
    _, pairs_rng, noise_rng, times_rng = _streams(seed)
    of_users = _long_tail_counts(n_users, n_ratings, n_items, rare_users, "users", pairs_rng)
    of_items = _long_tail_counts(n_items, n_ratings, n_users, rare_items, "items", pairs_rng)
    users, items = _matched(of_users, of_items, pairs_rng)
    scores = model.latent(users, items) + noise * noise_rng.standard_normal(users.size)
    levels = (scores[:, None] > model.thresholds[users]).sum(axis=1, dtype=np.int16)
    times = times_rng.integers(FIRST_TIME, LAST_TIME, users.size) if dated else None
    piece = _Piece(of_users, items.astype(np.int32), levels, times)
    return _ratings_of([piece], 0, n_users, n_items, n_ranks, name)


def latent_model(
    n_users: int,
    n_items: int,
    *,
    n_factors: int = 4,
    n_ranks: int = 5,
    noise: float = 0.5,
    seed: int = 0,
) -> LatentModel:
    """Return the model that `synthetic_ratings` draws from, given the same arguments.

    Examples
    --------
    >>> model = latent_model(50, 40, seed=1)
    >>> model.probabilities(np.array([0, 1]), np.array([3, 3])).shape
    (2, 5)
    """
    if n_users < 1 or n_items < 1 or n_factors < 0 or n_ranks < 2 or not noise > 0:
        raise ArgumentError(
            "need at least one user and one item, n_factors >= 0, n_ranks >= 2 and noise > 0"
        )
    rng = _streams(seed)[0]
    base = np.sqrt(1 + noise**2) * ndtri(np.arange(1, n_ranks) / n_ranks)
    shift = 0.3 * rng.standard_normal((n_users, 1))
    stretch = np.exp(0.2 * rng.standard_normal((n_users, 1)))
    scale = (
        (0.5 / n_factors) ** 0.25 if n_factors else 0.0
    )  # items and interaction: half the variance each
    return LatentModel(
        user_factors=scale * rng.standard_normal((n_users, n_factors)),
        item_factors=scale * rng.standard_normal((n_items, n_factors)),
        item_effects=np.sqrt(0.5 if n_factors else 1.0) * rng.standard_normal(n_items),
        thresholds=shift + stretch * base,
        noise=noise,
    )


class _Piece(NamedTuple):
    """Ratings of consecutive users, sorted by user; ``counts`` has the number per user."""

    counts: np.ndarray
    items: np.ndarray
    levels: np.ndarray
    times: np.ndarray | None

    def split(self, n_users: int) -> tuple[_Piece, _Piece]:
        """Return the ratings of the first users, and the rest."""
        at = int(self.counts[:n_users].sum())
        times = (None, None) if self.times is None else (self.times[:at], self.times[at:])
        return (
            _Piece(self.counts[:n_users], self.items[:at], self.levels[:at], times[0]),
            _Piece(self.counts[n_users:], self.items[at:], self.levels[at:], times[1]),
        )


def _pieces(
    n_users: int,
    n_items: int,
    n_ratings: int,
    n_factors: int,
    n_ranks: int,
    noise: float,
    popularity: float,
    activity: float,
    dated: bool,
    seed: int,
) -> Iterator[_Piece]:
    """Yield the ratings of some users at a time; pieces end where the arguments alone say."""
    model = latent_model(
        n_users, n_items, n_factors=n_factors, n_ranks=n_ranks, noise=noise, seed=seed
    )
    if not 1 <= n_ratings <= n_users * n_items:
        raise ArgumentError(
            f"n_ratings must lie in 1..{n_users * n_items} (all pairs), got {n_ratings}"
        )
    _, pairs_rng, noise_rng, times_rng = _streams(seed)
    counts = _activity(n_users, n_items, n_ratings, activity, pairs_rng)
    weights = np.arange(1, n_items + 1, dtype=np.float64) ** -popularity
    weights = pairs_rng.permutation(weights / weights.sum())
    for first, last in pairwise(_bounds(counts)):
        own = counts[first:last]
        users = np.repeat(np.arange(first, last), own)
        items = _draw_items(own, weights, pairs_rng)
        scores = model.latent(users, items)
        scores += noise * noise_rng.standard_normal(scores.size)
        levels = (scores[:, None] > model.thresholds[users]).sum(axis=1, dtype=np.int16)
        times = times_rng.integers(FIRST_TIME, LAST_TIME, users.size) if dated else None
        yield _Piece(own, items, levels, times)


def _ratings_of(
    pieces: list[_Piece], first: int, stop: int, n_items: int, n_ranks: int, name: str
) -> Ratings:
    columns: list[Any] = [np.concatenate(column) for column in list(zip(*pieces, strict=True))[:3]]
    counts, items, levels = columns
    dated = pieces[0].times is not None
    return Ratings(
        np.repeat(np.arange(stop - first, dtype=np.int32), counts),
        items,
        levels,
        scale=Scale.regular(1, n_ranks),
        user_ids=pd.RangeIndex(first, stop),
        item_ids=pd.RangeIndex(n_items),
        timestamps=np.concatenate([piece.times for piece in pieces]) if dated else None,  # type: ignore[misc]
        name=name,
    )


def _streams(seed: int) -> list[np.random.Generator]:
    """Independent random generators for the model, the pairs, the noise and the times."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


def _activity(
    n_users: int, n_items: int, n_ratings: int, log_deviation: float, rng: np.random.Generator
) -> np.ndarray:
    """Number of ratings of each user: lognormal, at most n_items each, n_ratings in all."""
    weights = np.exp(log_deviation * rng.standard_normal(n_users))
    low, high = 0.0, n_items / weights.min()
    for _ in range(200):  # bisection for the factor at which the clipped numbers add up
        middle = (low + high) / 2
        if np.clip(middle * weights, 1, n_items).sum() < n_ratings:
            low = middle
        else:
            high = middle
    wanted = np.clip(low * weights, 1 if n_ratings >= n_users else 0, n_items)
    counts = np.floor(wanted).astype(np.int64)
    while (missing := n_ratings - int(counts.sum())) != 0:  # rounding
        movable = np.flatnonzero(counts < n_items if missing > 0 else counts > 0)
        chosen = rng.permutation(movable)[: abs(missing)]
        counts[chosen] += np.sign(missing)
    return counts


def _bounds(counts: np.ndarray) -> list[int]:
    """The users with whom pieces of about `PIECE` ratings begin, and the number of users."""
    start = group_starts(counts)
    cuts = np.searchsorted(start, np.arange(PIECE, start[-1], PIECE))
    return np.unique(np.concatenate([[0], cuts, [counts.size]])).tolist()


def _draw_items(counts: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw distinct items for each user, popular ones more often, grouped by user.

    Items are drawn with replacement, and repeated ones drawn again, which amounts to drawing
    without replacement. For users who rate much of the catalogue that would take many rounds:
    there each item gets an exponential time with its weight as rate, and the earliest win.
    """
    n_items = weights.size
    cumulative = np.cumsum(weights)
    cumulative[-1] = 1.0
    heavy = counts > n_items // 8
    keys = np.empty(0, dtype=np.int64)  # user * n_items + item, sorted
    missing = np.where(heavy, 0, counts)
    for _ in range(MAX_ROUNDS):
        if not missing.any():
            break
        owners = np.repeat(np.arange(counts.size), missing)
        drawn = np.searchsorted(cumulative, rng.random(owners.size), side="right")
        keys = _merged(keys, np.sort(owners * n_items + drawn))
        missing = np.where(heavy, 0, counts) - np.bincount(keys // n_items, minlength=counts.size)
    racing = heavy | (missing > 0)
    parts = [keys[~racing[keys // n_items]]]
    for user in np.flatnonzero(racing):
        times = rng.standard_exponential(n_items) / weights
        first = np.argpartition(times, counts[user] - 1)[: counts[user]]
        parts.append(user * n_items + first)
    return (np.sort(np.concatenate(parts)) % n_items).astype(np.int32)


def _merged(keys: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Union of sorted distinct keys and sorted keys with repetitions."""
    more = more[np.concatenate([[True], more[1:] != more[:-1]])]
    at = np.searchsorted(keys, more)
    fresh = keys[np.minimum(at, keys.size - 1)] != more if keys.size else np.ones_like(at, bool)
    return np.insert(keys, at[fresh], more[fresh])


def _long_tail_counts(
    n_rows: int, n_ratings: int, most: int, rare: float, what: str, rng: np.random.Generator
) -> np.ndarray:
    """Number of ratings of each row: one or two for the rare ones, a power law for the others."""
    n_rare = round(min(max(rare, 0.0), 1.0) * n_rows)
    of_rare = np.ones(n_rare, np.int64)
    of_rare[round(ONE_OF_RARE * n_rare) :] = 2
    n_others, left = n_rows - n_rare, n_ratings - int(of_rare.sum())
    if not (0 <= rare < 1 and n_others > 0 and 3 * n_others <= left <= most * n_others):
        raise ArgumentError(
            f"{n_ratings} ratings of {n_rows} {what}, {n_rare} of which have one or two: the other "
            f"{what} must have 3..{most} ratings on average; change n_ratings or rare_{what}",
            parameter=f"rare_{what}",
        )
    most = max(int(LARGEST_SHARE * most), -(-left // n_others))
    places = n_others / np.arange(1, n_others + 1)

    def numbers(exponent: float) -> np.ndarray:
        with np.errstate(over="ignore"):  # what is infinite is cut off
            return np.minimum(3.0 * places**exponent, most)

    low, high = 0.0, 1.0
    while numbers(high).sum() < left and high < 1e3:
        high *= 2
    for _ in range(100):  # bisection
        middle = (low + high) / 2
        low, high = (middle, high) if numbers(middle).sum() < left else (low, middle)
    counts = np.floor(numbers(low)).astype(np.int64)
    while (missing := left - int(counts.sum())) > 0:  # rounding
        counts[rng.permutation(np.flatnonzero(counts < most))[:missing]] += 1
    return rng.permutation(np.concatenate([of_rare, counts]))


def _matched(
    of_users: np.ndarray, of_items: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw distinct pairs in which users and items occur as often as told, grouped by user.

    Pairs that occur twice exchange their items with pairs drawn at random.
    """
    users = np.repeat(np.arange(of_users.size), of_users)
    items = rng.permutation(np.repeat(np.arange(of_items.size), of_items))
    for _ in range(MAX_SWAPS):
        order = np.argsort(users * of_items.size + items, kind="stable")
        keys = (users * of_items.size + items)[order]
        repeated = order[1:][keys[1:] == keys[:-1]]
        if repeated.size == 0:
            items = items[order]  # users are in order already
            return users, items
        others = rng.choice(users.size, min(users.size, 2 * repeated.size), replace=False)
        moved = np.union1d(repeated, others)
        items[moved] = items[rng.permutation(moved)]
    raise ArgumentError(
        "too many of the pairs would occur twice: fewer ratings or more users and items are needed",
        parameter="n_ratings",
    )
