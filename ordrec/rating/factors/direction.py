"""One direction of `OrdinalFactors`: the sequential model of the ranks upwards, or downwards."""

from __future__ import annotations

import copy
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ordrec.rating.factors.row_priors import (
    FEW,
    ColdPrior,
    RowPrior,
    precision_of,
    starting_covariance,
)
from ordrec.rating.factors.row_updates import probabilities, update_rows
from ordrec.rating.factors.rows import GroupedRatings, RowPosteriors, packed_outer
from ordrec.rating.factors.user_drift import UserDrift
from ordrec.runtime.progress import progress, report
from ordrec.storage.schema import Array, Covariance, Optional, Part, Together

__all__ = [
    "Direction",
    "Fit",
    "Task",
    "completed_rows",
    "starting_factors",
    "starting_rows",
    "starting_steps",
]

START_SD = 0.6  # standard deviation of the random item factors at the start
BOUND_SWEEPS = 3  # at the start, with the weights of the bound (4) in full
FLOOR = 0.5  # of the weights afterwards, in units of those of the bound
START_STEP_VARIANCE = 0.1
USUAL_SWEEPS = 12  # until a fit has converged
SAMPLE = 20_000  # ratings by which convergence is judged
TOLERANCE = 3e-3  # mean change of a rating's log-likelihood in a sweep that is small enough
FOLD_IN_STEPS = 8
EVERY = 3  # sweeps, rows with few ratings take part: they move little by themselves
ANY = 2**62
DRIFT_STEPS = 3  # of a new user's drift, each with that many steps of the row
TINY = 1e-12  # least variance of a score
NO_DRIFT = np.zeros((0, 2), np.float32)


@dataclass(frozen=True)
class Task:
    """What both directions are fitted to.

    Attributes
    ----------
    by_user, by_item : GroupedRatings
    user_features, item_features : ndarray
        Features of the rows: the pattern and then the side data.
    user_side, item_side : ndarray
        The side data alone.
    n_steps : int
        Number of ranks, less one.
    times : ndarray or None
        When each rating of ``by_user`` was given, in seconds; 0 where unknown.
    """

    by_user: GroupedRatings
    by_item: GroupedRatings
    user_features: np.ndarray
    item_features: np.ndarray
    user_side: np.ndarray
    item_side: np.ndarray
    n_steps: int
    times: np.ndarray | None

    @property
    def item_order(self) -> np.ndarray:
        """Where each rating of ``by_item`` stands in ``by_user``."""
        place = np.empty_like(self.by_user.order)
        place[self.by_user.order] = np.arange(place.size)
        return place[self.by_item.order]

    def reversed(self) -> Task:
        """The same ratings on the reversed scale."""
        return replace(
            self,
            by_user=replace(self.by_user, levels=self.n_steps - self.by_user.levels),
            by_item=replace(self.by_item, levels=self.n_steps - self.by_item.levels),
        )


@dataclass(frozen=True)
class Direction:
    """A fitted direction.

    Attributes
    ----------
    users, items : RowPosteriors
        One row per id, and a last one for the unknown.
    user_prior, item_prior : (ndarray, ndarray)
        B and S of `row_priors`.
    cold_users, cold_items : ColdPrior
    drift : UserDrift or None
        The users' drift, if this was fitted to dated ratings.
    """

    stored: ClassVar = {
        "users": Part(RowPosteriors, rows="users+1"),
        "items": Part(RowPosteriors, rows="items+1"),
        "user_prior": Together(
            B=Array("2+coordinates+user_side", "factors+thresholds"),
            S=Covariance("factors+thresholds"),
        ),
        "item_prior": Together(
            B=Array("2+coordinates+item_side", "factors+thresholds"),
            S=Covariance("factors+thresholds"),
        ),
        "cold_users": Part(ColdPrior, side="user_side"),
        "cold_items": Part(ColdPrior, side="item_side"),
        "drift": Optional(Part(UserDrift)),
    }

    users: RowPosteriors
    items: RowPosteriors
    user_prior: tuple[np.ndarray, np.ndarray]
    item_prior: tuple[np.ndarray, np.ndarray]
    cold_users: ColdPrior
    cold_items: ColdPrior
    drift: UserDrift | None = None

    def probabilities(
        self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """P(rank) of pairs of codes, -1 for unknown ones; pairs of one user stand together."""
        out = np.empty((users.size, self.users.variances.shape[1] + 1))
        drift = NO_DRIFT
        if self.drift is not None and times is not None:
            drift = self.drift.at(users, times)
        probabilities(users, items, drift, *self.users.arrays, *self.items.arrays, out)
        return out

    def influence(self, user: int, item: int, others: np.ndarray) -> np.ndarray:
        """``q_i' Cov[p_u] q_a`` for other items a, by codes; see `answers.explanation`."""
        factors = self.items.mean[:, : self.items.rank].astype(np.float64)
        return factors[others] @ self.users.covariance(user) @ factors[item]

    def alike(self, item: int) -> np.ndarray:
        """How users' scores of all items correlate with those of one, ``q_i' S q_j`` scaled.

        S is the covariance of the factors over users, that of somebody unknown. The variances are
        expected ones, ``tr(S E[q q'])``: uncertain factors are similar to nothing.
        """
        rank = self.items.rank
        S = self.users.covariance(-1)
        lower = np.tril_indices(rank)
        weights = np.where(lower[0] == lower[1], 1.0, 2.0) * S[lower]
        sizes = np.sqrt(np.maximum(self.items.moments[:-1] @ weights, TINY))
        factors = self.items.mean[:-1, :rank].astype(np.float64)
        return factors @ (S @ factors[item]) / (sizes * sizes[item])

    def folded_users(
        self, ratings: GroupedRatings, features: np.ndarray, times: np.ndarray | None
    ) -> tuple[RowPosteriors, UserDrift | None]:
        """Posteriors of users with these ratings, the items being as they are, and their drift."""
        system, rows = _Folding(self.user_prior, features), None
        if self.drift is None or times is None:
            return system.solve(ratings, NO_DRIFT, self.items), None
        drift = UserDrift.of(ratings.start, times)
        for _ in range(DRIFT_STEPS):
            rows = system.solve(ratings, drift.smoothed, self.items, rows)
            drift = drift.updated(ratings, rows, self.items)
        return system.solve(ratings, drift.smoothed, self.items, rows), drift

    def folded_items(
        self, ratings: GroupedRatings, features: np.ndarray, drift: np.ndarray
    ) -> RowPosteriors:
        """Posteriors of items with these ratings, the users being as they are."""
        return _Folding(self.item_prior, features).solve(ratings, drift, self.users)

    def without_users(self) -> Direction:
        """The direction with no user but the unknown one."""
        drift = self.drift
        if drift is not None:
            drift = UserDrift.of(np.zeros(1, np.int64), np.zeros(0))
        return replace(self, users=self.users.take(np.array([-1])), drift=drift)


class Fit:
    """The state of a fit, sweep by sweep.

    Parameters
    ----------
    task : Task
    rank : int
    seed : int
        Of the starting factors.
    threads : Executor
    """

    def __init__(self, task: Task, rank: int, seed: int, threads: Executor):
        self._task, self._threads = task, threads
        self._n_sweeps = 0
        self._drift: UserDrift | None = None
        n_users, n_items = (grouped.start.size - 1 for grouped in (task.by_user, task.by_item))
        factors = starting_factors(n_items, rank, seed)
        level_counts = np.bincount(task.by_user.levels, minlength=task.n_steps + 1)
        steps = np.tile(starting_steps(level_counts), (n_users, 1))
        self._users = starting_rows(np.zeros((n_users, rank)), steps)
        self._items = starting_rows(factors, np.zeros((n_items, task.n_steps)))
        self._user_prior = RowPrior(
            task.user_features, task.user_side.shape[1], np.diff(task.by_user.start),
            self._users.mean[0], starting_covariance(rank, task.n_steps, "user"),
        )  # fmt: skip
        self._item_prior = RowPrior(
            task.item_features, task.item_side.shape[1], np.diff(task.by_item.start),
            np.zeros(rank + task.n_steps), starting_covariance(rank, task.n_steps, "item"),
        )  # fmt: skip

    def dated(self) -> Fit:
        """A copy that goes on with drift, (7)."""
        fit = copy.copy(self)
        fit._users, fit._items = self._users.copy(), self._items.copy()
        fit._user_prior, fit._item_prior = self._user_prior.copy(), self._item_prior.copy()
        assert self._task.times is not None
        fit._drift = UserDrift.of(self._task.by_user.start, self._task.times)
        return fit

    def converge(self, n_iter: int) -> list[float]:
        """Sweep until the predictions change little; return the loss after each sweep."""
        n_ratings = self._task.by_user.levels.size
        sample = np.sort(np.random.default_rng(0).choice(n_ratings, min(n_ratings, SAMPLE), False))
        losses: list[float] = []
        changes: list[float] = []
        before = np.full(sample.size, np.inf)
        with progress(""):
            for sweep in range(n_iter):
                report(sweep, _sweeps_in_all(changes, n_iter), f"sweep {sweep + 1}")
                self.sweep()
                now = self.training_losses(sample)
                losses.append(float(now.mean()))
                # not the change of the mean, which is small wherever the loss turns
                changes.append(float(np.abs(now - before).mean()))
                if changes[-1] < TOLERANCE:
                    break
                before = now
        return losses

    def sweep(self) -> None:
        """Update the users, the items, their priors and the drift."""
        if self._drift is not None:
            self._drift = self._drift.updated(
                self._task.by_user, self._users, self._items, self._threads
            )
        by_user, by_item = self._drifts()
        # the first factors are too small to learn a prior from
        learn = self._n_sweeps > 0
        self._update(self._task.by_user, by_user, self._items, self._user_prior, self._users, learn)
        self._update(self._task.by_item, by_item, self._users, self._item_prior, self._items, learn)
        self._n_sweeps += 1

    def _drifts(self) -> tuple[np.ndarray, np.ndarray]:
        """The drift of each rating, by user and by item."""
        if self._drift is None:
            return NO_DRIFT, NO_DRIFT
        return self._drift.smoothed, self._drift.smoothed[self._task.item_order]

    def _update(
        self,
        ratings: GroupedRatings,
        drift: np.ndarray,
        others: RowPosteriors,
        prior: RowPrior,
        rows: RowPosteriors,
        learn: bool,
    ) -> None:
        """Update rows and learn their prior, or update all of them once with the prior as it is."""
        spans = [(FEW + 1, ANY)]
        if not learn or self._n_sweeps % EVERY == 1:
            spans.append((1, FEW))
        for span in spans:
            prior.covariances[span] = self._solve(span, ratings, drift, others, prior, rows)
        if learn:
            prior.learn(rows.mean)

    def _solve(
        self,
        span: tuple[int, int],
        ratings: GroupedRatings,
        drift: np.ndarray,
        others: RowPosteriors,
        prior: RowPrior,
        rows: RowPosteriors,
    ) -> np.ndarray:
        """New posteriors of the rows with so many ratings; return the sum of the covariances."""
        pieces = ratings.pieces()
        P, floor = prior.P.astype(np.float32), 1.0 if self._n_sweeps < BOUND_SWEEPS else FLOOR
        covariances = np.zeros((len(pieces), *P.shape))

        def update(piece: int) -> None:
            update_rows(
                *pieces[piece], *span, *ratings.arrays, drift, *others.arrays, prior.pulls,
                prior.sureness, P, floor, *rows.arrays, covariances[piece],
            )  # fmt: skip

        list(self._threads.map(update, range(len(pieces))))  # raises what the threads raise
        return covariances.sum(axis=0)

    def training_losses(self, sample: np.ndarray) -> np.ndarray:
        """Negative log-likelihoods of some of the ratings, by their numbers in ``by_user``."""
        ratings = self._task.by_user
        users = np.searchsorted(ratings.start, sample, side="right") - 1
        drift = NO_DRIFT if self._drift is None else self._drift.smoothed[sample]
        p = np.empty((sample.size, self._task.n_steps + 1))
        items = ratings.others[sample].astype(np.int64)
        probabilities(users, items, drift, *self._users.arrays, *self._items.arrays, p)
        return -np.log(p[np.arange(sample.size), ratings.levels[sample]])

    def direction(self) -> Direction:
        """The result: users solved once more, rows without ratings from their side data."""
        task = self._task
        by_user, by_item = self._drifts()
        self._update(task.by_item, by_item, self._users, self._item_prior, self._items, False)
        self._update(task.by_user, by_user, self._items, self._user_prior, self._users, False)
        drift = self._drift
        if drift is not None:
            drift = drift.updated(task.by_user, self._users, self._items, self._threads)
        # Ratings to come are mostly of items with many ratings; users are all alike.
        cold_users = ColdPrior.of(self._users, task.user_side, task.by_user.seen.astype(float))
        counts = np.diff(task.by_item.start).astype(np.float64)
        cold_items = ColdPrior.of(self._items, task.item_side, counts)
        return Direction(
            completed_rows(self._users, task.by_user.seen, cold_users, task.user_side),
            completed_rows(self._items, task.by_item.seen, cold_items, task.item_side),
            (self._user_prior.B, self._user_prior.S), (self._item_prior.B, self._item_prior.S),
            cold_users, cold_items, drift,
        )  # fmt: skip


class _Folding:
    """Rows that are solved for while the other side stays as it is."""

    def __init__(self, prior: tuple[np.ndarray, np.ndarray], features: np.ndarray):
        B, self._S = prior
        self._mean = features @ B
        P = precision_of(self._S)
        self._P, self._pulls = P.astype(np.float32), (self._mean @ P).astype(np.float32)
        self._sureness = np.ones(len(features), np.float32)

    def solve(
        self,
        ratings: GroupedRatings,
        drift: np.ndarray,
        others: RowPosteriors,
        rows: RowPosteriors | None = None,
    ) -> RowPosteriors:
        """Posteriors of the rows, starting from these, or else from the prior."""
        if rows is None:
            rank = others.rank
            moments = self._S[:rank, :rank][np.tril_indices(rank)] + packed_outer(
                self._mean[:, :rank]
            )
            variances = np.tile(np.diag(self._S)[rank:], (len(self._mean), 1))
            rows = RowPosteriors.of(self._mean, moments, variances)
        covariances = np.zeros(self._P.shape)
        for step in range(FOLD_IN_STEPS):
            update_rows(
                0, len(rows.mean), 1, ANY, *ratings.arrays, drift, *others.arrays, self._pulls,
                self._sureness, self._P, 1.0 if step < BOUND_SWEEPS else FLOOR, *rows.arrays,
                covariances,
            )  # fmt: skip
        return rows


def _sweeps_in_all(changes: list[float], most: int) -> float:
    """How many sweeps it will take if the changes go on to fall as they did in the last ones.

    Examples
    --------
    >>> round(float(_sweeps_in_all([np.inf, 0.3, 0.03], most=30)), 6)
    4.0
    """
    usual = min(USUAL_SWEEPS, most)
    if len(changes) < 3 or not changes[-1] < changes[-2]:
        return max(usual, len(changes) + 1)
    falls = np.log(changes[-2] / changes[-1])
    return min(len(changes) + max(np.log(changes[-1] / TOLERANCE) / falls, 0.0), most)


def starting_factors(n_items: int, rank: int, seed: int) -> np.ndarray:
    """Random item factors."""
    return np.random.default_rng(seed).normal(0.0, START_SD, (n_items, rank))


def starting_steps(level_counts: np.ndarray) -> np.ndarray:
    """Log-odds of going on from each rank, from the numbers of ratings of the ranks, (1)."""
    counts = level_counts + 1.0
    at_least = counts[::-1].cumsum()[::-1]
    onward = at_least[1:] / at_least[:-1]
    return np.log(onward / (1.0 - onward))


def starting_rows(factors: np.ndarray, steps: np.ndarray) -> RowPosteriors:
    """Rows of the starting variance."""
    rank = factors.shape[1]
    own = START_SD**2 * np.eye(rank)[np.tril_indices(rank)]
    variances = np.full(steps.shape, START_STEP_VARIANCE)
    return RowPosteriors.of(np.hstack([factors, steps]), own + packed_outer(factors), variances)


def completed_rows(
    rows: RowPosteriors, seen: np.ndarray, cold: ColdPrior, side: np.ndarray
) -> RowPosteriors:
    """Rows without ratings from their side data, and a last row for the unknown."""
    known = RowPosteriors(*(np.vstack([array, array[:1]]) for array in rows.arrays))
    unseen = np.append(np.flatnonzero(~seen), len(seen))
    their_side = np.vstack([side[~seen], np.zeros(side.shape[1])])
    for array, new in zip(known.arrays, cold.rows(their_side).arrays, strict=True):
        array[unseen] = new
    return known
