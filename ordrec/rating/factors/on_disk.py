"""Fit `OrdinalFactors` to ratings that stay on disk, block after block of users."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.on_disk.held_out import HeldOut
from ordrec.data.on_disk.scan import ROWS, RatingsScan
from ordrec.data.side_tables import side_table
from ordrec.errors import ArgumentError, DataError, callers_level
from ordrec.features.side.encoder import side_encoders
from ordrec.lists.groups import item_groups
from ordrec.lists.titles import item_titles
from ordrec.models.workplace import Sweeps
from ordrec.rating.factors.blocks import StoredBlock, write_blocks
from ordrec.rating.factors.fit import (
    DIRECTIONS,
    Fit,
    Margins,
    sample_of_ratings,
    solve_items,
    solve_users,
    sweep,
)
from ordrec.rating.factors.history import RatingHistory
from ordrec.rating.factors.met import MetPairs
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.rating.factors.pattern import pattern_of_blocks
from ordrec.rating.factors.row_priors import ColdPrior, least_to_learn_from
from ordrec.rating.factors.row_updates import LinearSystems
from ordrec.rating.factors.rows import CompactRows, usual_sizes
from ordrec.rating.factors.visits import UserSums, Visit, visit_block
from ordrec.runtime.files import make_folder
from ordrec.runtime.parallel import Engine, loop_threads, run_all, worker_count
from ordrec.runtime.progress import report

__all__ = ["fit_factors"]

LANES = 4  # groups of blocks that are visited side by side, whatever the number of workers
STEPS_BESIDE_SWEEPS = 4  # of the progress: ratings, pattern, the last items and users
Progress = Callable[[int, int, str], None]


def fit_factors(
    model: OrdinalFactors,
    scan: RatingsScan,
    place: Path,
    *,
    user_table: Any = None,
    item_table: Any = None,
    held_out: HeldOut | None = None,
    rows: int = ROWS,
    engine: Engine | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> OrdinalFactors:
    """Fit the factors to all ratings of a scan; see `ordrec.recommend.fit_scan`.

    ``place`` is where blocks are kept. A fit that was interrupted goes on after its last sweep, if
    it is in the same `ordrec.models.workplace`.
    """
    model._check_parameters()
    if model.use_time is True:
        raise ArgumentError('use_time=True: fit_scan does not use times: use "auto" or False')
    if scan.dated and model.use_time:
        warnings.warn(
            f"{scan.path}: fit_scan does not use the times of the ratings: pass use_time=False, or "
            "fit to ratings in memory",
            stacklevel=callers_level(),
        )
    steps = _Steps(model.max_iter + STEPS_BESIDE_SWEEPS, progress)
    with loop_threads(worker_count(n_jobs)) as threads:
        blocks, ids = _written(scan, make_folder(place), rows, held_out)
        steps.report(1, "ratings read")
        margins, n_factors = _prepare(model, scan, blocks, ids, user_table, item_table)
        steps.report(2, "pattern of who rated what")
        users = UsersOnDisk(blocks, margins.n_user_side, threads, engine, n_jobs)
        names = DIRECTIONS[: 1 + model.symmetric]
        fits = [Fit(margins, n_factors, model.random_state, name) for name in names]
        sweeps = Sweeps("factors", (), model.max_iter)
        state = sweeps.resumed({})
        for fit in fits:
            if state:
                own = f"{fit.name}."
                fit.take_up(
                    {name.removeprefix(own): state[name] for name in state if name.startswith(own)}
                )
            else:
                users.start(fit)
        while sweeps.number < model.max_iter and not all(fit.converged for fit in fits):
            moving = [fit for fit in fits if not fit.converged]
            sweep(moving, users, threads)
            sweeps.done(
                {f"{fit.name}.{name}": own for fit in fits for name, own in fit.state.items()}
            )
            users.remove_old(moving)
            steps.report(2 + sweeps.number, f"sweep {sweeps.number}")
        solve_items(fits, users, threads)
        steps.report(steps.total - 1, "items")
        model.directions_ = tuple(solve_users(fits, users))
        model.dated_, model.loss_ = (), np.array(fits[0].losses)
        model._history, model.held_out_ = RatingHistory.empty(0), held_out
        steps.report(steps.total, "users")
    return model


@dataclass(frozen=True)
class _Steps:
    """Reports the steps of a fit."""

    total: int
    progress: Progress | None

    def report(self, done: int, text: str) -> None:
        """Report that a step is done."""
        report(done, self.total, text)
        if self.progress is not None:
            self.progress(done, self.total, text)


def _written(
    scan: RatingsScan, folder: Path, rows: int, held_out: HeldOut | None
) -> tuple[list[StoredBlock], list[pd.Index]]:
    """Write the blocks of a scan; return them and the ids of the users of each."""
    written = list(write_blocks(scan, folder, rows, held_out))
    if not written:
        raise DataError(f"{scan.path}: no ratings to learn from")
    return [block for block, _ in written], [ids for _, ids in written]


def _prepare(
    model: OrdinalFactors,
    scan: RatingsScan,
    blocks: list[StoredBlock],
    ids: list[pd.Index],
    user_table: Any,
    item_table: Any,
) -> tuple[Margins, int]:
    """Write the features and the sample of each block; return margins and number of factors.

    The model gets its ids, pattern and side data.
    """
    level_counts = np.zeros(scan.scale.n_ranks, np.int64)
    item_counts = np.zeros(scan.n_items, np.int64)
    counts = []
    for block in blocks:
        ratings = block.ratings("user")
        level_counts += np.bincount(ratings.levels, minlength=level_counts.size)
        item_counts += block.ratings("item").counts
        counts.append(ratings.counts)
    user_counts, n_ratings = np.concatenate(counts), int(item_counts.sum())
    n_factors, pattern = usual_sizes(
        n_ratings, user_counts.size + item_counts.size, model.n_factors, model.pattern
    )
    model._met = MetPairs.of(None, (), item_counts.size)
    model._pattern, item_features = pattern_of_blocks(blocks, user_counts, item_counts, pattern)
    all_ids = ids[0].append(ids[1:])
    own_users = None if scan.user_table is None else scan.user_table.reindex(all_ids)
    users = side_table(user_table, all_ids, "user", "user", own_users)
    items = side_table(item_table, scan.item_ids, "item", "item", scan.item_table)
    model._side = side_encoders(users, items, model.side_kinds) if model.use_side else {}
    item_side = model._side_rows("item", items, scan.item_ids)
    least, sample = least_to_learn_from(user_counts), sample_of_ratings(n_ratings)
    products, first = [], 0
    for block, own_ids, own in zip(blocks, ids, counts, strict=True):
        side = model._side_rows("user", users, own_ids)
        features = np.hstack([block.load("features"), side])
        block.save("features", features)
        F = features[own >= least]
        products.append(F.T @ F)
        stop = first + int(own.sum())
        block.save("sample", sample[(sample >= first) & (sample < stop)] - first)
        first = stop
    model.titles_ = item_titles(items)
    model.item_groups_ = item_groups(items)
    model.scale_, model.item_ids_, model.user_ids_ = scan.scale, scan.item_ids, ids[0][:0]
    model._user_side, model._item_side = np.zeros((0, side.shape[1])), item_side
    item_features = np.hstack([item_features, item_side])
    FF, n_sides = np.sum(products, axis=0), (side.shape[1], item_side.shape[1])
    counts_of = level_counts, user_counts, item_counts
    margins = Margins(*counts_of, FF, n_sides[0], item_features, n_sides[1])
    return margins, n_factors


class UsersOnDisk:
    """The users of a fit in blocks on disk.

    Blocks are visited in lanes, a fixed number of them, side by side on one machine or on
    several: the digits do not depend on it.

    Parameters
    ----------
    blocks : list of StoredBlock
    n_side : int
        Number of columns of side data of users.
    threads : Executor
        For visits in this process.
    engine, n_jobs
        See `ordrec.recommend.fit_scan`.
    """

    def __init__(
        self,
        blocks: list[StoredBlock],
        n_side: int,
        threads: Executor,
        engine: Engine | str | None,
        n_jobs: int | None,
    ):
        self._blocks, self._n_side, self._threads = blocks, n_side, threads
        self._engine, self._n_jobs = engine, n_jobs

    def start(self, fit: Fit) -> None:
        """Write the rows of the users before the first sweep."""
        for block in self._blocks:
            block.save_rows(fit.name, 0, fit.starting_users(block.n_users))

    def visit(self, visits: list[Visit]) -> list[tuple[LinearSystems, UserSums]]:
        """Visit all users for each direction."""
        blocks, n_side = self._blocks, self._n_side
        lanes = [blocks[k::LANES] for k in range(min(LANES, len(blocks)))]
        if self._engine is None:
            found = [visit_lane(lane, visits, n_side, self._threads) for lane in lanes]
        else:
            found = run_all(
                visit_lane, lanes, shared=(visits, n_side), engine=self._engine, n_jobs=self._n_jobs
            )
        return [_added(lanes_of_one) for lanes_of_one in zip(*found, strict=True)]

    def remove_old(self, fits: list[Fit]) -> None:
        """Remove the rows before the last sweep, once its state is stored."""
        for visit in (fit.visit() for fit in fits):
            for block in self._blocks:
                block.remove_rows(visit.direction, visit.number - 1)

    def result(self, fit: Fit, cold: ColdPrior) -> tuple[CompactRows, None]:
        """Return the row of the unknown user; all others stay on disk."""
        return cold.compact_rows(np.zeros((1, self._n_side)), fit.user_axes), None


def visit_lane(
    blocks: list[StoredBlock], visits: list[Visit], n_side: int, threads: Executor | None = None
) -> list[tuple[LinearSystems, UserSums]]:
    """Visit some blocks for each direction; the new rows of their users are written to disk.

    The task gives the same result if it is repeated. Without ``threads``, it runs in one thread.
    """
    if threads is None:
        with loop_threads(1) as threads:
            return visit_lane(blocks, visits, n_side, threads)
    systems = [visit.empty_systems() for visit in visits]
    sums: list[list[UserSums]] = [[] for _ in visits]
    for block in blocks:
        users = block.users(n_side)
        for k, visit in enumerate(visits):
            own = users
            if visit.direction == "down":
                own = users.reversed(visit.items.variances.shape[1])
            rows = block.rows(visit.direction, visit.number)
            found = visit_block(own, rows, None, visit, systems[k], threads)
            if visit.user_spans:
                block.save_rows(visit.direction, visit.number + 1, rows)
            sums[k].append(found.without_rows())
    return [(own, reduce(add, of_blocks)) for own, of_blocks in zip(systems, sums, strict=True)]


def _added(
    lanes: tuple[tuple[LinearSystems, UserSums], ...],
) -> tuple[LinearSystems, UserSums]:
    """Return the sums over all lanes."""
    systems, *others = (systems for systems, _ in lanes)
    for other in others:
        for own, theirs in zip(systems, other, strict=True):
            own += theirs
    return systems, reduce(add, (sums for _, sums in lanes))
