"""Visits of blocks of users: what a sweep of `fit` does with each of them, and what it collects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ordrec.rating.factors.drift import UserDrift
from ordrec.rating.factors.row_priors import ColdSums, LearntRows, LearntSums, RowPrior
from ordrec.rating.factors.row_updates import (
    NO_DRIFT,
    LinearSystems,
    add_ratings,
    probabilities,
    update_rows,
)
from ordrec.rating.factors.rows import GroupedRatings, PriorArrays, RowPosteriors, chosen_rows

__all__ = [
    "ItemRatings",
    "ItemSystems",
    "SampledRatings",
    "Span",
    "UserBlock",
    "UserSums",
    "Visit",
    "placed",
    "visit_block",
]

Span = tuple[int, int]  # least and largest number of ratings of rows that are solved together


@dataclass(frozen=True)
class UserBlock:
    """Some users and all their ratings.

    Attributes
    ----------
    by_user, by_item : GroupedRatings
        Users are numbered within the block; items are all items.
    features : ndarray of shape (n_users, n_features)
        Features of the users: the pattern and then the side data.
    n_side : int
        Number of columns of side data.
    sample : ndarray of int
        The ratings, by their places in ``by_user``, by which convergence is judged.
    times : ndarray or None
        When each rating of ``by_user`` was given, in seconds; 0 where unknown.
    """

    by_user: GroupedRatings
    by_item: GroupedRatings
    features: np.ndarray
    n_side: int
    sample: np.ndarray
    times: np.ndarray | None = None

    @property
    def side(self) -> np.ndarray:
        """The side data of the users."""
        return self.features[:, self.features.shape[1] - self.n_side :]

    @property
    def item_order(self) -> np.ndarray:
        """The place in ``by_user`` of each rating of ``by_item``."""
        place = np.empty_like(self.by_user.order)
        place[self.by_user.order] = np.arange(place.size)
        return place[self.by_item.order]

    def reversed(self, n_steps: int) -> UserBlock:
        """Return the same ratings on the reversed scale."""
        return replace(
            self, by_user=self.by_user.reversed(n_steps), by_item=self.by_item.reversed(n_steps)
        )


@dataclass(frozen=True)
class Visit:
    """What is done with each block of users, for one direction.

    Attributes
    ----------
    direction : {"up", "down"}
    number : int
        Number of visits before this one.
    items : RowPosteriors
    prior : RowPrior
        Of the users.
    floor : float
        Of the weights, (4) of `ordrec.rating.factors.model`.
    user_spans : tuple of Span
        The users who are solved for, by their numbers of ratings.
    item_pieces : list of ndarray
        The items whose linear systems are wanted, in the order of the systems.
    sampled : bool
        Whether the sample of ratings is collected, to judge convergence.
    cold : float
        Weight of a user with one rating in the sums for users without ratings; a user with n
        ratings has an n-th of it. If 0, they are not collected.
    """

    direction: str
    number: int
    items: RowPosteriors
    prior: RowPrior
    floor: float
    user_spans: tuple[Span, ...]
    item_pieces: list[np.ndarray]
    sampled: bool = False
    cold: float = 0.0

    def empty_systems(self) -> LinearSystems:
        """Return the systems of the wanted items before any rating is added."""
        n_items = sum(piece.size for piece in self.item_pieces)
        return LinearSystems.zeros(n_items, self.items.n_factors, self.items.variances.shape[1])


@dataclass(frozen=True)
class SampledRatings:
    """Some ratings, with the rows of their users."""

    rows: RowPosteriors
    users: np.ndarray
    items: np.ndarray
    levels: np.ndarray

    def losses(self, items: RowPosteriors) -> np.ndarray:
        """Return the negative log-likelihoods of the ratings."""
        p = probabilities((self.users, self.items), NO_DRIFT, self.rows, items)
        return -np.log(p[np.arange(self.levels.size), self.levels])

    def alone(self) -> SampledRatings:
        """Drop the rows of users who have no rating in the sample."""
        there, users = np.unique(self.users, return_inverse=True)
        return replace(self, rows=self.rows.take(there), users=users)


@dataclass(frozen=True)
class UserSums:
    """What a fit needs of the users whom it has visited.

    Attributes
    ----------
    covariances : dict
        Sums of the users' covariances, (4) of `row_priors`, by their numbers of ratings.
    learnt : LearntRows or LearntSums
    samples : list of SampledRatings
    cold : ColdSums or None
    """

    covariances: dict[Span, np.ndarray]
    learnt: LearntRows | LearntSums
    samples: list[SampledRatings]
    cold: ColdSums | None

    def without_rows(self) -> UserSums:
        """Replace the rows of users by sums, except for the users of the sample."""
        learnt = self.learnt.sums() if isinstance(self.learnt, LearntRows) else self.learnt
        return replace(self, learnt=learnt, samples=[each.alone() for each in self.samples])

    def __add__(self, other: UserSums) -> UserSums:
        assert isinstance(self.learnt, LearntSums)
        assert isinstance(other.learnt, LearntSums)
        return UserSums(
            {span: own + other.covariances[span] for span, own in self.covariances.items()},
            self.learnt + other.learnt,
            self.samples + other.samples,
            None if self.cold is None or other.cold is None else self.cold + other.cold,
        )


class ItemSystems(Protocol):
    """The linear systems of the wanted items, or what they are made of."""

    def solve(
        self,
        chosen: np.ndarray,
        place: slice,
        prior: PriorArrays,
        rows: RowPosteriors,
        covariances: np.ndarray,
    ) -> None:
        """Solve for some items, whose systems are at this place; see `update_rows`."""


@dataclass(frozen=True)
class ItemRatings:
    """The ratings of all items, with the users as they are: systems are made when solved.

    Attributes
    ----------
    by_item : GroupedRatings
    drift : ndarray
        At each of these ratings, or `NO_DRIFT`.
    users : RowPosteriors
    floor : float
    """

    by_item: GroupedRatings
    drift: np.ndarray
    users: RowPosteriors
    floor: float

    @classmethod
    def of(
        cls, block: UserBlock, rows: RowPosteriors, drift: UserDrift | None, floor: float
    ) -> ItemRatings:
        """Return the ratings of a block that holds all users."""
        known = NO_DRIFT if drift is None else drift.smoothed[block.item_order]
        return cls(block.by_item, known, rows, floor)

    def solve(
        self,
        chosen: np.ndarray,
        place: slice,
        prior: PriorArrays,
        rows: RowPosteriors,
        covariances: np.ndarray,
    ) -> None:
        """Solve for some items, a batch at a time."""
        others = self.drift, self.users, prior, self.floor
        update_rows(chosen, self.by_item, *others, rows, covariances)


def visit_block(
    block: UserBlock,
    rows: RowPosteriors,
    drift: UserDrift | None,
    visit: Visit,
    systems: LinearSystems | None,
    threads: Executor,
) -> UserSums:
    """Solve for the users of a block and add their ratings to the systems of the items.

    Parameters
    ----------
    block : UserBlock
    rows : RowPosteriors
        Of the users; they change.
    drift : UserDrift or None
    visit : Visit
    systems : LinearSystems or None
        Of the items; the ratings are added to them.
    threads : Executor
    """
    counts = block.by_user.counts
    prior = visit.prior.of_rows(block.features, rows.mean, counts)
    known = NO_DRIFT if drift is None else drift.smoothed
    covariances = {}
    for span in visit.user_spans:
        pieces = chosen_rows(counts, span)
        found = np.zeros((len(pieces), *prior.P.shape))

        def update(k: int, pieces: list[np.ndarray] = pieces, found: np.ndarray = found) -> None:
            update_rows(
                pieces[k], block.by_user, known, visit.items, prior, visit.floor, rows, found[k]
            )

        list(threads.map(update, range(len(pieces))))  # raises what the threads raise
        covariances[span] = found.sum(axis=0)
    if systems is not None and visit.item_pieces:
        by_item = NO_DRIFT if drift is None else drift.smoothed[block.item_order]

        def add(own: tuple[np.ndarray, slice]) -> None:
            items, place = own
            add_ratings(
                items, block.by_item, by_item, rows, visit.floor, visit.items, systems.part(place)
            )

        list(threads.map(add, placed(visit.item_pieces)))
    learnt = visit.prior.rows_to_learn_from(block.features, rows.mean, counts)
    samples = [_sampled(block, rows)] if visit.sampled else []
    cold = None
    if visit.cold:
        weights = np.divide(visit.cold, counts, out=np.zeros(counts.size), where=counts > 0)
        cold = ColdSums.of(rows, block.side, weights)
    return UserSums(covariances, learnt, samples, cold)


def placed(pieces: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, slice]]:
    """Yield each piece of items with the place of its systems."""
    first = 0
    for piece in pieces:
        yield piece, slice(first, first + piece.size)
        first += piece.size


def _sampled(block: UserBlock, rows: RowPosteriors) -> SampledRatings:
    ratings, sample = block.by_user, block.sample
    users = np.searchsorted(ratings.start, sample, side="right") - 1
    items = ratings.others[sample].astype(np.int64)
    return SampledRatings(rows, users, items, ratings.levels[sample])
