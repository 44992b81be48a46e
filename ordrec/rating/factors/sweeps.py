"""Sweeps over blocks of users: users are solved for, and sums for the items are collected.

A sweep does what `ordrec.rating.factors.direction.Fit` does in memory. The users of a block are
solved for with the items as they are; then the block's ratings are added to the sums of the items'
linear systems, (6) of `ordrec.rating.factors.model`. When all blocks have been added, the
items are solved for. Blocks are added up in lanes, a fixed number of them, which may be
processed side by side, on one machine or on several: the digits do not depend on it.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordrec.rating.factors.blocks import Block
from ordrec.rating.factors.direction import (
    ANY,
    BOUND_SWEEPS,
    EVERY,
    FLOOR,
    NO_DRIFT,
    Direction,
    completed_rows,
    starting_factors,
    starting_rows,
    starting_steps,
)
from ordrec.rating.factors.row_priors import (
    FEW,
    ColdPrior,
    ColdSums,
    RowPrior,
    best_covariance,
    least_to_learn_from,
    precision_of,
    residual_squares,
    ridge_of,
    starting_covariance,
    without_own,
)
from ordrec.rating.factors.row_updates import (
    add_rows,
    probabilities,
    room_for_sums,
    solve_rows,
    update_rows,
)
from ordrec.rating.factors.rows import PIECES, RowPosteriors
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["LaneSums", "ScanFit", "Visit", "visit_lane"]

MANY, LITTLE = (FEW + 1, ANY), (1, FEW)  # numbers of ratings of rows that are solved together


@dataclass(frozen=True)
class ItemSums:
    """Sums over ratings for the linear systems of all items, see `row_updates`."""

    g: np.ndarray
    stepped: np.ndarray
    crossed: np.ndarray
    gathered: np.ndarray

    @classmethod
    def zeros(cls, n_items: int, rank: int, n_steps: int) -> ItemSums:
        """Sums of no ratings."""
        room = room_for_sums(n_items, rank, n_steps)
        for each in room:
            each.fill(0.0)
        return cls(*room)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The four arrays, as the compiled loops take them."""
        return self.g, self.stepped, self.crossed, self.gathered

    def add(self, other: ItemSums) -> None:
        """Add other sums to these."""
        for own, theirs in zip(self.arrays, other.arrays, strict=True):
            own += theirs


@dataclass(frozen=True)
class LaneSums:
    """What one direction needs of the blocks of one lane.

    Attributes
    ----------
    items : ItemSums
    FM, MM : ndarray
        F'M and M'M of the features and means of the users who are learnt from.
    covariances : dict
        Sums of the users' covariances, by how many ratings they have.
    losses : ndarray
        Negative log-likelihoods of some ratings, before the visit.
    cold : ColdSums or None
    """

    items: ItemSums
    FM: np.ndarray
    MM: np.ndarray
    covariances: dict[tuple[int, int], np.ndarray]
    losses: np.ndarray
    cold: ColdSums | None


@dataclass(frozen=True)
class UserPrior:
    """The prior of users of whom only sums are held, see `row_priors`.

    Attributes
    ----------
    B, S : ndarray
    least : int
        Number of ratings from which on users are learnt from.
    inverse : ndarray or None
        Of ``F'F + D``; None before anything is learnt.
    """

    B: np.ndarray
    S: np.ndarray
    least: int
    inverse: np.ndarray | None = None

    def learns_from(self, span: tuple[int, int]) -> bool:
        """Whether users with so many ratings are learnt from."""
        return span[0] >= self.least

    def of_users(
        self, features: np.ndarray, mean: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What `update_rows` takes of the prior: pulls, sureness and precision."""
        P = precision_of(self.S)
        if self.inverse is None:
            pulls = (features @ (self.B @ P)).astype(np.float32)
            sureness = np.ones(len(features), np.float32)
        else:
            learnt_from = counts >= self.least
            pulls, sureness = without_own(features, mean, learnt_from, self.B, self.inverse, P)
        return pulls, sureness, P.astype(np.float32)

    def learnt(
        self,
        FF: np.ndarray,
        FM: np.ndarray,
        MM: np.ndarray,
        C: np.ndarray,
        n_side: int,
        n_users: int,
    ) -> UserPrior:
        """The best prior for users of these sums, (1) and (2) of `row_priors`."""
        ridge = ridge_of(len(FF), n_side)
        inverse = np.linalg.inv(FF + np.diag(ridge))
        B = inverse @ FM
        rest = residual_squares(FF, FM, MM, B)
        return replace(self, B=B, S=best_covariance(rest, C, B, ridge, n_users), inverse=inverse)


@dataclass(frozen=True)
class Visit:
    """What is to be done with each block, for one direction.

    Attributes
    ----------
    name : str
        Of the direction, in the names of files.
    reversed_from : int or None
        The last rank, where the scale is reversed.
    items : RowPosteriors
    prior : UserPrior
    floor : float
        Of the weights, (4) of `ordrec.rating.factors.model`.
    solve_users : tuple
        Which users are solved for, by their numbers of ratings.
    every : int
        One rating in so many is in the sample that losses are computed of; 0 for none.
    n_side : int
        Columns of side data of users, for ``cold``.
    for_items, cold : bool
        Whether the sums for items and those for users without ratings are collected.
    """

    name: str
    reversed_from: int | None
    items: RowPosteriors
    prior: UserPrior
    floor: float
    solve_users: tuple[tuple[int, int], ...]
    every: int = 0
    n_side: int = 0
    for_items: bool = True
    cold: bool = False


def visit_lane(blocks: list[Block], visits: list[Visit], n_jobs: int | None) -> list[LaneSums]:
    """Visit some blocks for each direction; the blocks' users change on disk."""
    sums = [_nothing(visit) for visit in visits]
    with loop_threads(worker_count(n_jobs)) as threads:
        for block in blocks:
            features = block.load("features")
            for k, visit in enumerate(visits):
                sums[k] = _visit(block, features, visit, sums[k], threads)
    return sums


def _nothing(visit: Visit) -> LaneSums:
    rank, n_steps = visit.items.rank, visit.items.variances.shape[1]
    n_features, width = visit.prior.B.shape
    return LaneSums(
        ItemSums.zeros(len(visit.items.mean) if visit.for_items else 0, rank, n_steps),
        np.zeros((n_features, width)), np.zeros((width, width)),
        {span: np.zeros((width, width)) for span in visit.solve_users}, np.zeros(0), None,
    )  # fmt: skip


def _visit(
    block: Block, features: np.ndarray, visit: Visit, sums: LaneSums, threads: Executor
) -> LaneSums:
    """The sums with one more block."""
    rows = block.rows(visit.name)
    by_user = block.ratings("user", visit.reversed_from)
    losses = np.append(sums.losses, _losses(by_user, rows, visit)) if visit.every else sums.losses
    counts = np.diff(by_user.start)
    prior = visit.prior.of_users(features, rows.mean, counts)
    pieces = by_user.pieces()
    covariances = dict(sums.covariances)
    for span in visit.solve_users:
        found = np.zeros((len(pieces), *visit.prior.S.shape))

        def update(k: int, span: tuple[int, int] = span, found: np.ndarray = found) -> None:
            update_rows(
                *pieces[k], *span, *by_user.arrays, NO_DRIFT, *visit.items.arrays, *prior,
                visit.floor, *rows.arrays, found[k],
            )  # fmt: skip

        list(threads.map(update, range(len(pieces))))
        covariances[span] = covariances[span] + found.sum(axis=0)
    if visit.for_items:
        by_item = block.ratings("item", visit.reversed_from)
        item_pieces = by_item.pieces()

        def add(k: int) -> None:
            add_rows(
                *item_pieces[k], 1, ANY, *by_item.arrays, NO_DRIFT, *rows.arrays, visit.floor,
                *visit.items.arrays, *sums.items.arrays,
            )  # fmt: skip

        list(threads.map(add, range(len(item_pieces))))
    learnt_from = counts >= visit.prior.least
    F, M = features[learnt_from], rows.mean[learnt_from].astype(np.float64)
    cold = sums.cold
    if visit.cold:
        side = features[:, features.shape[1] - visit.n_side :]
        own = ColdSums.of(rows, side, np.ones(block.n_users))
        cold = own if cold is None else cold + own
    return replace(
        sums, FM=sums.FM + F.T @ M, MM=sums.MM + M.T @ M, covariances=covariances,
        losses=losses, cold=cold,
    )  # fmt: skip


def _losses(by_user: Any, rows: RowPosteriors, visit: Visit) -> np.ndarray:
    """Negative log-likelihoods of every so-manieth rating."""
    sample = np.arange(visit.every // 2, by_user.others.size, visit.every)
    users = np.searchsorted(by_user.start, sample, side="right") - 1
    p = np.empty((sample.size, rows.variances.shape[1] + 1))
    items = by_user.others[sample].astype(np.int64)
    probabilities(users, items, NO_DRIFT, *rows.arrays, *visit.items.arrays, p)
    return -np.log(p[np.arange(sample.size), by_user.levels[sample]])


class ScanFit:
    """One direction of a fit, sweep by sweep.

    Parameters
    ----------
    name : str
    reversed_from : int or None
        The last rank, where this is the fit down the scale.
    blocks : list of Block
    level_counts : ndarray
        Number of ratings of each rank.
    item_counts : ndarray
    item_features : ndarray
    FF : ndarray
        F'F of the features of the users who are learnt from.
    user_counts : ndarray
    n_sides : (int, int)
        Numbers of columns of side data of users and items.
    rank, seed : int
    every : int
        One rating in so many is in the sample by which convergence is judged.
    """

    def __init__(
        self,
        name: str,
        reversed_from: int | None,
        blocks: list[Block],
        level_counts: np.ndarray,
        item_counts: np.ndarray,
        item_features: np.ndarray,
        FF: np.ndarray,
        user_counts: np.ndarray,
        n_sides: tuple[int, int],
        rank: int,
        seed: int,
        every: int,
    ):
        n_steps = level_counts.size - 1
        self._name, self._reversed_from, self._every = name, reversed_from, every
        self._item_counts, self._FF, self._n_sides = item_counts, FF, n_sides
        self._item_side = item_features[:, item_features.shape[1] - n_sides[1] :]
        least = least_to_learn_from(user_counts)
        self._n_users = int((user_counts >= least).sum())
        self._n_sweeps = 0
        self._user_covariances: dict[tuple[int, int], np.ndarray] = {}
        steps = starting_steps(level_counts if reversed_from is None else level_counts[::-1])
        factors = starting_factors(item_counts.size, rank, seed)
        self._items = starting_rows(factors, np.zeros((item_counts.size, n_steps)))
        for block in blocks:
            own = starting_rows(np.zeros((block.n_users, rank)), np.tile(steps, (block.n_users, 1)))
            block.save_rows(name, own)
        B = np.zeros((len(FF), rank + n_steps))
        B[0] = np.concatenate([np.zeros(rank), steps])
        self._prior = UserPrior(B, starting_covariance(rank, n_steps, "user"), least)
        self._item_prior = RowPrior(
            item_features, n_sides[1], item_counts,
            np.zeros(rank + n_steps), starting_covariance(rank, n_steps, "item"),
        )  # fmt: skip

    def visit(self) -> Visit:
        """The visit of the next sweep."""
        return Visit(
            self._name, self._reversed_from, self._items, self._prior, self._floor, self._spans,
            every=self._every,
        )  # fmt: skip

    def visit_for_items(self) -> Visit:
        """The visit before the items are solved for the last time, in which no user changes."""
        return replace(self.visit(), solve_users=(), every=0)

    def last_visit(self) -> Visit:
        """The visit in which all users are solved for the last time."""
        return replace(
            self.visit(), solve_users=(MANY, LITTLE), every=0, n_side=self._n_sides[0],
            for_items=False, cold=True,
        )  # fmt: skip

    @property
    def _floor(self) -> float:
        return 1.0 if self._n_sweeps < BOUND_SWEEPS else FLOOR

    @property
    def _learns(self) -> bool:
        return self._n_sweeps > 0  # the first factors are too small to learn a prior from

    @property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        return (MANY, LITTLE) if not self._learns or self._n_sweeps % EVERY == 1 else (MANY,)

    def finish_sweep(self, lanes: list[LaneSums], threads: Executor) -> None:
        """Learn the users' prior, solve for the items and learn theirs."""
        for span in self._spans:
            self._user_covariances[span] = np.sum(
                [each.covariances[span] for each in lanes], axis=0
            )
        if self._learns:
            own = [
                each
                for span, each in self._user_covariances.items()
                if self._prior.learns_from(span)
            ]
            self._prior = self._prior.learnt(
                self._FF,
                np.sum([each.FM for each in lanes], axis=0),
                np.sum([each.MM for each in lanes], axis=0),
                np.sum(own, axis=0),
                self._n_sides[0], self._n_users,
            )  # fmt: skip
        self._solve_items(lanes, self._spans, threads)
        if self._learns:
            self._item_prior.learn(self._items.mean)
        self._n_sweeps += 1

    def finish_items(self, lanes: list[LaneSums], threads: Executor) -> None:
        """Solve for the items for the last time."""
        self._solve_items(lanes, (MANY, LITTLE), threads)

    def _solve_items(
        self, lanes: list[LaneSums], spans: tuple[tuple[int, int], ...], threads: Executor
    ) -> None:
        total, *others = (each.items for each in lanes)
        for other in others:
            total.add(other)
        prior, counts = self._item_prior, self._item_counts
        P = prior.P.astype(np.float32)
        cuts = np.linspace(0, counts.size, PIECES + 1).astype(int).tolist()
        for span in spans:
            found = np.zeros((PIECES, *P.shape))

            def solve(k: int, span: tuple[int, int] = span, found: np.ndarray = found) -> None:
                solve_rows(
                    cuts[k], cuts[k + 1], *span, counts, *total.arrays, prior.pulls,
                    prior.sureness, P, *self._items.arrays, found[k],
                )  # fmt: skip

            list(threads.map(solve, range(PIECES)))
            prior.covariances[span] = found.sum(axis=0)

    def direction(self, lanes: list[LaneSums]) -> Direction:
        """The result, with no user but the unknown one."""
        first, *others = (each.cold for each in lanes if each.cold is not None)
        cold_users = ColdPrior.from_sums(sum(others, first))
        cold_items = ColdPrior.of(self._items, self._item_side, self._item_counts.astype(float))
        seen = self._item_counts > 0
        return Direction(
            cold_users.rows(np.zeros((1, self._n_sides[0]))),
            completed_rows(self._items, seen, cold_items, self._item_side),
            (self._prior.B, self._prior.S), (self._item_prior.B, self._item_prior.S),
            cold_users, cold_items,
        )  # fmt: skip
