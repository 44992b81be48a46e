"""`fit_scan`: fit `OrdinalFactors` to ratings that stay on disk."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.on_disk.scan import ROWS, RatingsScan
from ordrec.data.side_tables import side_table
from ordrec.errors import ArgumentError, DataError, callers_level
from ordrec.features.side.encoder import side_encoders
from ordrec.lists.titles import item_titles
from ordrec.rating.factors.block_pattern import block_pattern
from ordrec.rating.factors.blocks import Block, write_blocks
from ordrec.rating.factors.direction import SAMPLE, TOLERANCE
from ordrec.rating.factors.history import RatingHistory
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.rating.factors.row_priors import least_to_learn_from
from ordrec.rating.factors.rows import usual_sizes
from ordrec.rating.factors.sweeps import LaneSums, ScanFit, Visit, visit_lane
from ordrec.rating.on_disk.held_out import HeldOut
from ordrec.runtime.files import make_folder
from ordrec.runtime.parallel import Engine, loop_threads, run_all, worker_count
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report

__all__ = ["fit_scan"]

LANES = 4  # groups of blocks whose sums are added up separately
Progress = Callable[[int, int, str], None]


def fit_scan(
    model: OrdinalFactors,
    scan: RatingsScan,
    *,
    user_table: Any = None,
    item_table: Any = None,
    held_out: HeldOut | None = None,
    folder: str | Path | None = None,
    rows: int = ROWS,
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> OrdinalFactors:
    """Fit `OrdinalFactors` to all ratings of a scan, which never are in memory together.

    Users are read in blocks; what all users say of each item is added up, so that memory grows
    with the number of items and not with that of ratings. The result is that of
    ``model.fit(scan.collect())`` but for rounding and the drift of users: times are not used, and a
    warning says so.

    Parameters
    ----------
    model : OrdinalFactors
        Its parameters are used; it is fitted and returned.
    scan : RatingsScan
    user_table, item_table : DataFrame, optional
        Side data, as `Ratings.from_frame` takes it.
    held_out : HeldOut, optional
        Ratings that are left out, for `predict_scan` to predict.
    folder : str or Path, optional
        Where the blocks are kept while this runs, in a folder that is removed afterwards: about
        12 bytes per rating (20 where ratings have weights, which count as in memory) and 4.6 kB
        per user (at rank 32). On a cluster, all workers need access to it. By default the
        system's folder for temporary files.
    rows : int
        Number of ratings of a block. More of them need more memory; results change in the last
        digits.
    engine, n_jobs
        See `ordrec.runtime.parallel.run`; a task is a fourth of the blocks. By default this
        process, with threads.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after each step; fewer sweeps than ``total`` says
        may do.

    Returns
    -------
    OrdinalFactors
        The model. It knows all items and no user: `predict_scan` and `fold_in` bring users in.

    Examples
    --------
    >>> from ordrec import Ratings
    >>> from ordrec.datasets import synthetic_ratings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthetic_ratings(60, 40, n_ratings=1200).to_partitions(folder)
    ...     scan = Ratings.scan(folder)
    ...     model = fit_scan(OrdinalFactors(rank=2, pattern=2), scan)
    ...     model.fold_in(scan.sample_users(5)).predict_proba(["stranger"], [3]).shape
    (1, 5)
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
    if folder is not None:
        make_folder(Path(folder))
    with tempfile.TemporaryDirectory(prefix="ordrec-blocks-", dir=folder) as place:
        fit = _Fit(model, scan, Path(place).absolute(), rows, held_out, engine, n_jobs, progress)
        with showing("fit_scan", model.verbose):
            fit.prepare(user_table, item_table)
            fit.converge()
            fit.finish()
    return model


class _Fit:
    """The steps of `fit_scan`."""

    def __init__(
        self,
        model: OrdinalFactors,
        scan: RatingsScan,
        folder: Path,
        rows: int,
        held_out: HeldOut | None,
        engine: Engine | str | None,
        n_jobs: int | None,
        progress: Progress | None,
    ):
        self.model, self.scan, self.folder = model, scan, folder
        self.rows, self.held_out = rows, held_out
        self.engine, self.n_jobs, self.progress = engine, n_jobs, progress
        self.total = 2 + model.n_iter + 2  # ratings, pattern, sweeps, the last items and users
        self.blocks: list[Block] = []

    def prepare(self, user_table: Any, item_table: Any) -> None:
        """Write the blocks with the features of their users, and begin the fits."""
        model, scan = self.model, self.scan
        level_counts = np.zeros(scan.scale.n_ranks, np.int64)
        item_counts = np.zeros(scan.n_items, np.int64)
        ids, counts = [], []
        for block, user_ids in write_blocks(scan, self.folder, self.rows, self.held_out):
            self.blocks.append(block)
            ratings = block.ratings("user")
            level_counts += np.bincount(ratings.levels, minlength=level_counts.size)
            item_counts += np.diff(block.ratings("item").start)
            counts.append(np.diff(ratings.start))
            ids.append(user_ids)
        if not self.blocks:
            raise DataError(f"{scan.path}: no ratings to learn from")
        self._report(1, "ratings read")
        last, n_ratings = scan.scale.n_ranks - 1, int(item_counts.sum())
        rank, pattern = usual_sizes(n_ratings, model.rank, model.pattern)
        user_counts = np.concatenate(counts)
        model._pattern, item_features = block_pattern(
            self.blocks, user_counts, item_counts, pattern
        )
        users = side_table(user_table, ids[0].append(ids[1:]), "user", "user")
        items = side_table(item_table, scan.item_ids, "item", "item")
        model._side = side_encoders(users, items, model.side_kinds) if model.use_side else {}
        item_side = model._side_rows("item", items, scan.item_ids)
        n_user_side, FF = self._add_side(ids, users, user_counts)
        model.titles_ = item_titles(items)
        model.scale_, model.item_ids_, model.user_ids_ = scan.scale, scan.item_ids, ids[0][:0]
        model._user_side, model._item_side = np.zeros((0, n_user_side)), item_side
        self._report(2, "pattern of who rated what")
        self.fits = [
            ScanFit(
                name, reversed_from, self.blocks, level_counts, item_counts,
                np.hstack([item_features, item_side]), FF, user_counts,
                (n_user_side, item_side.shape[1]), rank, model.random_state,
                max(1, n_ratings // SAMPLE),
            )
            for name, reversed_from in (("up", None), ("down", last))[: 1 + model.symmetric]
        ]  # fmt: skip

    def _add_side(
        self, ids: list[pd.Index], table: pd.DataFrame | None, counts: np.ndarray
    ) -> tuple[int, np.ndarray]:
        """Add the users' side data to their features; its number of columns, and F'F."""
        products = []
        learnt_from = counts >= least_to_learn_from(counts)
        first = 0
        for block, user_ids in zip(self.blocks, ids, strict=True):
            side = self.model._side_rows("user", table, user_ids)
            features = np.hstack([block.load("features"), side])
            block.save("features", features)
            own = features[learnt_from[first : first + block.n_users]]
            products.append(own.T @ own)
            first += block.n_users
        return side.shape[1], np.sum(products, axis=0)

    def converge(self) -> None:
        """Sweep until the predictions change little."""
        before: np.ndarray | None = None
        losses: list[float] = []
        for sweep in range(self.model.n_iter):
            lanes = self._visit([fit.visit() for fit in self.fits])
            with loop_threads(worker_count(self.n_jobs)) as threads:
                for fit, own in zip(self.fits, lanes, strict=True):
                    fit.finish_sweep(own, threads)
            # the losses are those before the sweep: the rule looks back by one
            now = np.concatenate([each.losses for each in lanes[0]])
            losses.append(float(now.mean()))
            self._report(3 + sweep, f"sweep {sweep + 1}")
            if before is not None and np.abs(now - before).mean() < TOLERANCE:
                break
            before = now
        self.model.loss_ = np.array(losses)

    def finish(self) -> None:
        """Solve for items and users once more, and hand the result to the model."""
        lanes = self._visit([fit.visit_for_items() for fit in self.fits])
        with loop_threads(worker_count(self.n_jobs)) as threads:
            for fit, own in zip(self.fits, lanes, strict=True):
                fit.finish_items(own, threads)
        self._report(self.total - 1, "items")
        lanes = self._visit([fit.last_visit() for fit in self.fits])
        self.model.directions_ = tuple(
            fit.direction(own) for fit, own in zip(self.fits, lanes, strict=True)
        )
        self.model.dated_ = ()
        self.model._history = RatingHistory.empty(0)
        self._report(self.total, "users")

    def _visit(self, visits: list[Visit]) -> list[list[LaneSums]]:
        """For each direction, the sums of all lanes."""
        lanes = [self.blocks[k::LANES] for k in range(min(LANES, len(self.blocks)))]
        if self.engine is None:
            found = [visit_lane(lane, visits, self.n_jobs) for lane in lanes]
        else:
            found = run_all(
                visit_lane, lanes, shared=(visits, 1), engine=self.engine, n_jobs=self.n_jobs
            )
        return [list(sums) for sums in zip(*found, strict=True)]

    def _report(self, done: int, text: str) -> None:
        report(done, self.total, text)
        if self.progress is not None:
            self.progress(done, self.total, text)
