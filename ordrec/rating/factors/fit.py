"""The fit of one direction of `OrdinalFactors`, whether the ratings are in memory or on disk.

A sweep visits the users in blocks; in memory, one block holds all of them. The users of a block are
solved for with the items as they are; then the block's ratings are added to the linear systems of
the items, (6) of `ordrec.rating.factors.model`. When all blocks have been visited, the prior of
the users is learnt, the items are solved for and their prior is learnt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ordrec.rating.factors.direction import Direction
from ordrec.rating.factors.drift import UserDrift
from ordrec.rating.factors.row_priors import (
    FEW,
    ColdPrior,
    ColdSums,
    RowPrior,
    least_to_learn_from,
    starting_covariance,
    weighted_sum,
)
from ordrec.rating.factors.row_updates import weight_floor
from ordrec.rating.factors.rows import (
    BLOCK,
    CompactRows,
    RowPosteriors,
    chosen_rows,
    packed_outer,
    shared_axes,
    unpacked,
)
from ordrec.rating.factors.visits import (
    ItemRatings,
    ItemSystems,
    Span,
    UserBlock,
    UserSums,
    Visit,
    placed,
    visit_block,
)
from ordrec.runtime.progress import progress, report, tracked

__all__ = [
    "DIRECTIONS",
    "Fit",
    "Margins",
    "fit_in_memory",
    "sample_of_ratings",
    "solve_items",
    "solve_users",
    "sweep",
]

DIRECTIONS = "up", "down"
START_SD = 0.6  # standard deviation of the random item factors at the start
START_STEP_VARIANCE = 0.1
USUAL_SWEEPS = 12  # until a fit has converged
SAMPLE = 20_000  # ratings by which convergence is judged
TOLERANCE = 3e-3  # mean change of a rating's log-likelihood in a sweep that is small enough
DATED_SWEEPS = 8
DATED_SHARE = 0.5  # about which share of the time the dated sweeps take

# Rows with few ratings move little by themselves: they take part in every third sweep.
EVERY = 3
MANY, LITTLE = (FEW + 1, 2**62), (1, FEW)


@dataclass(frozen=True)
class Margins:
    """What a fit knows of the ratings beside the blocks.

    Attributes
    ----------
    level_counts, user_counts, item_counts : ndarray
        Numbers of ratings of each rank, user and item.
    FF : ndarray
        F'F of the features of the users that the prior is learnt from, see `row_priors`.
    n_user_side : int
        Number of columns of side data of users.
    item_features : ndarray
        Features of the items: the pattern and then the side data.
    n_item_side : int
    """

    level_counts: np.ndarray
    user_counts: np.ndarray
    item_counts: np.ndarray
    FF: np.ndarray
    n_user_side: int
    item_features: np.ndarray
    n_item_side: int

    @classmethod
    def of_block(
        cls, block: UserBlock, item_features: np.ndarray, n_item_side: int, n_ranks: int
    ) -> Margins:
        """Return the margins of a block that holds all users."""
        counts = block.by_user.counts
        F = block.features[counts >= least_to_learn_from(counts)]
        levels = np.bincount(block.by_user.levels, minlength=n_ranks)
        return cls(
            levels, counts, block.by_item.counts, F.T @ F, block.n_side, item_features, n_item_side
        )


def sample_of_ratings(n_ratings: int) -> np.ndarray:
    """Draw the ratings by which convergence is judged; their numbers, ascending."""
    chosen = np.random.default_rng(0).choice(n_ratings, min(n_ratings, SAMPLE), replace=False)
    return np.sort(chosen)


# ---- the fit -------------------------------------------------------------------------------------


class Fit:
    """The state of the fit of one direction, without the rows of the users.

    Parameters
    ----------
    margins : Margins
    n_factors : int
    seed : int
        Of the starting factors.
    direction : {"up", "down"}
        Whether this is the model of the ranks upwards or downwards.

    Attributes
    ----------
    name : {"up", "down"}
        The direction.
    items : RowPosteriors
    losses : list of float
        Mean negative log-likelihood of the sample after each sweep.
    changes : list of float
        Mean change of a rating's log-likelihood in each sweep.
    """

    def __init__(self, margins: Margins, n_factors: int, seed: int, direction: str = "up"):
        self.name, self._margins = direction, margins
        self._n_sweeps = self._n_visits = 0
        self._judged = True
        levels = margins.level_counts if direction == "up" else margins.level_counts[::-1]
        n_items, n_steps = margins.item_counts.size, levels.size - 1
        factors = np.random.default_rng(seed).normal(0.0, START_SD, (n_items, n_factors))
        self.items = _starting_rows(factors, np.zeros((n_items, n_steps)))
        self._steps = _starting_steps(levels)
        self._user_prior = RowPrior.start(
            margins.FF,
            margins.n_user_side,
            margins.user_counts,
            self.starting_users(1).mean[0],
            starting_covariance(n_factors, n_steps, "user"),
        )
        F = margins.item_features[margins.item_counts >= least_to_learn_from(margins.item_counts)]
        self._item_prior = RowPrior.start(
            F.T @ F,
            margins.n_item_side,
            margins.item_counts,
            np.zeros(n_factors + n_steps),
            starting_covariance(n_factors, n_steps, "item"),
        )
        self._user_covariances: dict[Span, np.ndarray] = {}
        self._item_covariances: dict[Span, np.ndarray] = {}
        self.losses: list[float] = []
        self.changes: list[float] = []
        self._before: np.ndarray | None = None

    def starting_users(self, n_users: int) -> RowPosteriors:
        """Return the rows of users before the first sweep."""
        steps = np.tile(self._steps, (n_users, 1))
        return _starting_rows(np.zeros((n_users, self.items.n_factors)), steps)

    def go_on_with_drift(self) -> None:
        """Go on with dated ratings; convergence is not judged any more."""
        self._judged = False

    @property
    def user_axes(self) -> np.ndarray:
        """The axes of the covariances of users, see `ordrec.rating.factors.rows`."""
        n_factors, counts = self.items.n_factors, self._margins.item_counts.astype(np.float64)
        J = unpacked(weighted_sum(counts, self.items.moments)) / counts.sum()
        return shared_axes(self._user_prior.S[:n_factors, :n_factors], J)

    # ---- visits ----------------------------------------------------------------------------

    def visit(self) -> Visit:
        """Return the visit of the next sweep."""
        floor = weight_floor(self._n_sweeps)
        return Visit(
            self.name, self._n_visits, self.items, self._user_prior, floor, self._spans,
            self._item_pieces(self._spans), sampled=self._judged,
        )  # fmt: skip

    def visit_for_items(self) -> Visit:
        """Return the visit before the items' last solution, in which no user changes."""
        pieces = self._item_pieces((MANY, LITTLE))
        return replace(self.visit(), user_spans=(), item_pieces=pieces, sampled=False)

    def last_visit(self) -> Visit:
        """Return the visit in which all users are solved for the last time."""
        counts = self._margins.user_counts
        seen = counts[counts > 0]
        weight = seen.size / (1.0 / seen).sum()  # which makes the mean weight 1
        spans = MANY, LITTLE
        return replace(self.visit(), user_spans=spans, item_pieces=[], sampled=False, cold=weight)

    @property
    def _learns(self) -> bool:
        return self._n_sweeps > 0  # the first factors are too small to learn a prior from

    @property
    def _spans(self) -> tuple[Span, ...]:
        """The rows that the next sweep solves for."""
        return (MANY, LITTLE) if not self._learns or self._n_sweeps % EVERY == 1 else (MANY,)

    def _item_pieces(self, spans: tuple[Span, ...]) -> list[np.ndarray]:
        return [piece for span in spans for piece in chosen_rows(self._margins.item_counts, span)]

    # ---- after the visits ------------------------------------------------------------------

    def finish_sweep(self, systems: ItemSystems, users: UserSums, threads: Executor) -> None:
        """Learn the users' prior, solve for the items, learn their prior and judge the sweep."""
        self._user_covariances |= users.covariances
        if self._learns:
            self._user_prior = self._user_prior.learnt(users.learnt, self._user_covariances)
        self._solve_items(systems, self._spans, threads)
        if self._learns:
            margins, mean = self._margins, self.items.mean
            learnt = self._item_prior.rows_to_learn_from(
                margins.item_features, mean, margins.item_counts
            )
            self._item_prior = self._item_prior.learnt(learnt, self._item_covariances)
        self._n_sweeps += 1
        self._n_visits += 1
        if users.samples:
            self._judge(np.concatenate([each.losses(self.items) for each in users.samples]))

    def finish_items(self, systems: ItemSystems, threads: Executor) -> None:
        """Solve for the items for the last time."""
        self._solve_items(systems, (MANY, LITTLE), threads)

    def _solve_items(
        self, systems: ItemSystems, spans: tuple[Span, ...], threads: Executor
    ) -> None:
        margins = self._margins
        prior = self._item_prior.of_rows(
            margins.item_features, self.items.mean, margins.item_counts
        )
        pieces = list(placed(self._item_pieces(spans)))
        found = np.zeros((len(pieces), *prior.P.shape))

        def solve(k: int) -> None:
            rows, place = pieces[k]
            systems.solve(rows, place, prior, self.items, found[k])

        list(threads.map(solve, range(len(pieces))))
        for span, own in zip(spans, np.split(found, len(spans)), strict=True):
            self._item_covariances[span] = own.sum(axis=0)

    # ---- what a stopped fit goes on from -----------------------------------------------------

    @property
    def state(self) -> dict[str, np.ndarray]:
        """Everything that sweeps change, as arrays; `take_up` reads it."""
        items, users, own = self.items, self._user_prior, self._item_prior
        arrays = {
            "mean": items.mean, "moments": items.moments, "variances": items.variances,
            "user.B": users.B, "user.S": users.S, "item.B": own.B, "item.S": own.S,
            "losses": np.array(self.losses), "changes": np.array(self.changes),
            "sweeps": np.array([self._n_sweeps]),
        }  # fmt: skip
        if self._before is not None:
            arrays["before"] = self._before
        for side, covariances in self._covariances.items():
            for (first, last), covariance in covariances.items():
                arrays[f"{side}.{first}.{last}"] = covariance
        return arrays

    def take_up(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from the state of a fit with the same margins."""
        self.items = RowPosteriors(*(state[name] for name in ("mean", "moments", "variances")))
        self._n_sweeps = self._n_visits = int(state["sweeps"][0])
        learnt = self._n_sweeps > 1  # the first sweep learns no prior
        self._user_prior, self._item_prior = (
            replace(prior, B=state[f"{side}.B"], S=state[f"{side}.S"], is_learnt=learnt)
            for side, prior in (("user", self._user_prior), ("item", self._item_prior))
        )
        self.losses, self.changes = state["losses"].tolist(), state["changes"].tolist()
        self._before = state.get("before")
        for side, covariances in self._covariances.items():
            for span in (MANY, LITTLE):
                name = f"{side}.{span[0]}.{span[1]}"
                if name in state:
                    covariances[span] = state[name]

    @property
    def _covariances(self) -> dict[str, dict[Span, np.ndarray]]:
        return {"users": self._user_covariances, "items": self._item_covariances}

    # ---- convergence -----------------------------------------------------------------------

    def _judge(self, now: np.ndarray) -> None:
        """Note the losses of the sample after a sweep."""
        before = np.full(now.size, np.inf) if self._before is None else self._before
        self.losses.append(float(now.mean()))
        # not the change of the mean, which is small wherever the loss turns
        self.changes.append(float(np.abs(now - before).mean()))
        self._before = now

    @property
    def converged(self) -> bool:
        """Whether the last sweep changed the predictions little."""
        return bool(self.changes) and self.changes[-1] < TOLERANCE

    # ---- the result ------------------------------------------------------------------------

    def direction(
        self, users: CompactRows, sums: ColdSums, cold_users: ColdPrior, drift: UserDrift | None
    ) -> Direction:
        """Return the result with these users, the last of them the unknown one.

        Parameters
        ----------
        users : CompactRows
        sums : ColdSums
            Of the users.
        cold_users : ColdPrior
        drift : UserDrift or None
        """
        margins = self._margins
        side = margins.item_features[:, margins.item_features.shape[1] - margins.n_item_side :]
        counts = margins.item_counts.astype(np.float64)
        # Ratings to come are mostly of items with many ratings. But an item of which nothing at
        # all is known has no ratings because it is rare, and rare items are rated differently.
        rare = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
        cold_items = ColdPrior.of(self.items, side, counts, rare)
        n_factors = self.items.n_factors
        axes = shared_axes(self._item_prior.S[:n_factors, :n_factors], sums.second_moment)
        return Direction(
            users,
            completed_rows(self.items, axes, margins.item_counts > 0, cold_items, side),
            (self._user_prior.B, self._user_prior.S),
            (self._item_prior.B, self._item_prior.S),
            cold_users,
            cold_items,
            None if drift is None else drift.rounded(),
        )


def expected_sweeps(changes: list[float], most: int) -> float:
    """Extrapolate the number of sweeps from how the changes fell in the last ones.

    Parameters
    ----------
    changes : list of float
        See `Fit.changes`.
    most : int
        The largest number of sweeps.

    Examples
    --------
    >>> round(float(expected_sweeps([np.inf, 0.3, 0.03], most=30)), 6)
    4.0
    """
    usual = min(USUAL_SWEEPS, most)
    if len(changes) < 3 or not changes[-1] < changes[-2]:
        return max(usual, len(changes) + 1)
    falls = np.log(changes[-2] / changes[-1])
    return min(len(changes) + max(np.log(changes[-1] / TOLERANCE) / falls, 0.0), most)


class Users(Protocol):
    """All users of a fit, wherever their rows are."""

    def visit(self, visits: list[Visit]) -> Sequence[tuple[ItemSystems, UserSums]]:
        """Visit all users for each direction, and return what the visits collect."""

    def result(self, fit: Fit, cold: ColdPrior) -> tuple[CompactRows, UserDrift | None]:
        """Return the rows of all users at the end, the unknown one last, and the drift."""


def sweep(fits: list[Fit], users: Users, threads: Executor) -> None:
    """Update the users and the items of each direction, and their priors."""
    found = users.visit([fit.visit() for fit in fits])
    for fit, (systems, sums) in zip(fits, found, strict=True):
        fit.finish_sweep(systems, sums, threads)


def solve_items(fits: list[Fit], users: Users, threads: Executor) -> None:
    """Solve for all items of each direction for the last time."""
    found = users.visit([fit.visit_for_items() for fit in fits])
    for fit, (systems, _) in zip(fits, found, strict=True):
        fit.finish_items(systems, threads)


def solve_users(fits: list[Fit], users: Users) -> list[Direction]:
    """Solve for all users of each direction for the last time, and return the results."""
    found = users.visit([fit.last_visit() for fit in fits])
    directions = []
    for fit, (_, sums) in zip(fits, found, strict=True):
        assert sums.cold is not None
        cold = ColdPrior.from_sums(sums.cold)
        rows, drift = users.result(fit, cold)
        directions.append(fit.direction(rows, sums.cold, cold, drift))
    return directions


# ---- in memory -----------------------------------------------------------------------------------


class UsersInMemory:
    """All users of one direction as a single block.

    Parameters
    ----------
    block : UserBlock
    rows : RowPosteriors
    threads : Executor
    drift : UserDrift, optional
    """

    def __init__(
        self,
        block: UserBlock,
        rows: RowPosteriors,
        threads: Executor,
        drift: UserDrift | None = None,
    ):
        self._block, self._rows, self._threads, self._drift = block, rows, threads, drift

    def go_on_with_drift(self) -> None:
        """Go on with drift, (7) of `ordrec.rating.factors.model`."""
        assert self._block.times is not None
        self._drift = UserDrift.of(self._block.by_user.start, self._block.times)

    def visit(self, visits: list[Visit]) -> list[tuple[ItemRatings, UserSums]]:
        """Visit all users; there is one direction."""
        (visit,) = visits
        sums = visit_block(self._block, self._rows, self._drift, visit, None, self._threads)
        return [(ItemRatings.of(self._block, self._rows, self._drift, visit.floor), sums)]

    def update_drift(self, items: RowPosteriors) -> None:
        """Update the drift, if there is one, given the rows of users and items."""
        if self._drift is not None:
            ratings = self._block.by_user
            self._drift = self._drift.updated(ratings, self._rows, items, self._threads)

    def result(self, fit: Fit, cold: ColdPrior) -> tuple[CompactRows, UserDrift | None]:
        """Return the rows of the users, the unknown one last, and the drift."""
        self.update_drift(fit.items)
        block = self._block
        rows = completed_rows(self._rows, fit.user_axes, block.by_user.seen, cold, block.side)
        return rows, self._drift


def fit_in_memory(
    block: UserBlock,
    margins: Margins,
    directions: Sequence[str],
    n_factors: int,
    seed: int,
    max_iter: int,
    threads: Executor,
) -> tuple[list[Direction], list[Direction], list[float]]:
    """Fit each direction to a block that holds all users.

    Returns
    -------
    fitted, dated : list of Direction
        Without and with the drift of the users; the second is empty if the ratings have no times.
    losses : list of float
        Mean negative log-likelihood of a sample of the ratings after each sweep of the first fit.
    """
    fitted, dated, losses = [], [], []
    for number, name in enumerate(directions):
        own = block if name == "up" else block.reversed(margins.level_counts.size - 1)
        report(number, len(directions))
        with progress(f"{name} the scale"):
            direction, with_drift, own_losses = _fit_direction(
                own, margins, name, n_factors, seed, max_iter, threads
            )
        fitted.append(direction)
        dated += with_drift
        losses.append(own_losses)
    return fitted, dated, losses[0]


def _fit_direction(
    block: UserBlock,
    margins: Margins,
    name: str,
    n_factors: int,
    seed: int,
    max_iter: int,
    threads: Executor,
) -> tuple[Direction, list[Direction], list[float]]:
    """Fit one direction, and then with drift if the ratings have times; see `fit_in_memory`.

    The fit with drift goes on with the same rows, so that there is never more than one set of them.
    """
    fit = Fit(margins, n_factors, seed, name)
    users = UsersInMemory(block, fit.starting_users(margins.user_counts.size), threads)
    with progress(""):
        for done in range(max_iter):
            report(done, expected_sweeps(fit.changes, max_iter), f"sweep {done + 1}")
            sweep([fit], users, threads)
            if fit.converged:
                break
    solve_items([fit], users, threads)
    (direction,) = solve_users([fit], users)
    if block.times is None:
        return direction, [], fit.losses
    fit.go_on_with_drift()
    users.go_on_with_drift()
    for _ in tracked(range(DATED_SWEEPS), "dated sweep"):
        users.update_drift(fit.items)
        sweep([fit], users, threads)
    solve_items([fit], users, threads)
    return direction, solve_users([fit], users), fit.losses


# ---- rows ----------------------------------------------------------------------------------------


def _starting_steps(level_counts: np.ndarray) -> np.ndarray:
    """Return the log-odds of going on from each rank, given the ranks' numbers of ratings, (1)."""
    counts = level_counts + 1.0
    at_least = counts[::-1].cumsum()[::-1]
    onward = at_least[1:] / at_least[:-1]
    return np.log(onward / (1.0 - onward))


def _starting_rows(factors: np.ndarray, steps: np.ndarray) -> RowPosteriors:
    """Return rows of these means and of the starting variance."""
    n_factors = factors.shape[1]
    own = START_SD**2 * np.eye(n_factors)[np.tril_indices(n_factors)]
    moments = np.empty((len(factors), own.size), np.float32)
    for a in range(0, len(factors), BLOCK):  # in double precision, all of them would be large
        moments[a : a + BLOCK] = own + packed_outer(factors[a : a + BLOCK])
    variances = np.full(steps.shape, START_STEP_VARIANCE)
    return RowPosteriors.of(np.hstack([factors, steps]), moments, variances)


def completed_rows(
    rows: RowPosteriors, axes: np.ndarray, seen: np.ndarray, cold: ColdPrior, side: np.ndarray
) -> CompactRows:
    """Fill in rows without ratings from their side data; append the row of the unknown."""
    unseen = np.append(np.flatnonzero(~seen), seen.size)
    their_side = np.vstack([side[~seen], np.zeros(side.shape[1])])
    known, new = CompactRows.of(rows, axes), cold.compact_rows(their_side, axes)
    return known.with_unknown(new.take(np.array([-1]))).with_rows(
        unseen[:-1], new.take(np.arange(unseen.size - 1))
    )
