"""EASE: every item regressed on all others, in closed form; with many items, on the nearest."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.base import ChoiceModel
from ordrec.choice.ease_nearest import NearestProblem
from ordrec.choice.ease_solver import EaseProblem, row_factors
from ordrec.choice.events import is_event
from ordrec.choice.inner_splits import (
    FEW_USERS,
    SHARE,
    ListQuality,
    climb_by_doubling,
    entries_where,
    inner_splits,
    left_out_quality,
    without_users,
)
from ordrec.errors import ArgumentError, ModelFileError, callers_level
from ordrec.lists.best import best_columns
from ordrec.lists.filters import CELLS_AT_ONCE, ItemFilter
from ordrec.models.workplace import kept
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.storage.schema import Array, Matrix, Number

__all__ = ["EASE", "EaseInputs"]

COPIES = 4  # square matrices held at the same time: both Grams, the inverse, the weights
START = 200.0  # where the search for the ridge begins
LEFT_OUT_USERS = 1000
CHOOSING_ITEMS = 2500  # the ridge is chosen among these, as a solution takes n_items^3
LARGEST_IN_DOUBLE = 500  # items; more are solved in single precision
# of the search for the ridge of regressions on few items: where it begins, and the relative gain
# below which another solution is not worth its time
NEAREST_START, NEAREST_GAIN = 100.0, 0.005
PAIRS_SHARE = 0.4  # of max_memory, for the pairs that such regressions are made of

MOST_POWER = 2  # of numbers of ratings: beyond it they overflow single precision


@dataclass(eq=False)
class EASE(ChoiceModel):
    """Linear item-to-item model with a zero diagonal, solved exactly.

    The score of an item is a weighted sum over the items the user has rated. The weights are the
    ridge regression of each item on all others; an item has no weight on itself.

    ``EASE()`` is the published model, of ratings weighted by their ranks (an entry is ``rank /
    n_ranks`` where the paper has 1, which is the same on a scale that only likes are on), with its
    ridge chosen in training. With powers above 0, rows of active users are scaled down, and items
    with many ratings have a larger ridge: `ChoiceMixture` uses 0.5 and 0.25, which rank better.

    Parameters
    ----------
    regularization : float, optional
        Ridge of an item with an average number of ratings; chosen by exact leave-one-out of
        users, doubling or halving it as long as that helps, if omitted.
    user_power : float
        Rows are divided by the number of the user's ratings, relative to the mean, to this
        power.
    item_power : float
        Ridges grow with the number of the item's ratings, relative to the mean, to this power.
    min_ratings : int
        Items with fewer ratings have no weights and score 0.
    n_nearest : int
        Where the weights of all items on all others do not fit into ``max_memory``: on how many
        items each item is regressed, those that say most about it.
    max_memory : float
        Gigabytes that the weights may take while they are solved for; choosing the ridge takes
        up to 0.2 more. With 8, up to 22,360 items are solved for exactly.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    weights_ : float32 array of shape (n_weighted_items, n_weighted_items)
        Row: the item rated; column: the item scored. Sparse if items are regressed on the nearest.
    weighted_items_ : int64 array
        Codes of the items that have weights.
    regularization_ : float
        The ridge, as given or chosen.
    tried_ : dict of float to float
        Each ridge that was tried, and its quality: by leave-one-out, or, if items are regressed on
        the nearest, the NDCG of lists for parts of histories that were set aside.

    Notes
    -----
    Solved exactly, time grows with the cube of the number of items and memory with its square;
    with the nearest items, both grow with their number (see `ordrec.choice.ease_nearest`). A user
    without ratings of items with weights is scored by popularity.

    Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = EASE(regularization=50).fit(ratings)
    >>> bool((np.diag(model.weights_) == 0).all())
    True
    """

    stored: ClassVar = ChoiceModel.stored | {
        "weighted_items_": Array("weighted", dtype=np.int64, codes="items"),
        "weights_": Matrix("weighted", "weighted", dtype=np.float32),
        "mean_count_": Number(1e-300, "items"),
        "regularization_": Number(),
    }

    regularization: float | None = None
    user_power: float = 0.0
    item_power: float = 0.0
    min_ratings: int = 3
    n_nearest: int = 100
    max_memory: float = 8.0
    n_jobs: int | None = None
    search_space: ClassVar[dict[str, Any]] = {
        "user_power": (0.0, 1.0),
        "item_power": (0.0, 1.0),
    }

    def _learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> None:
        with one_blas_thread():
            self.learn_histories(history, self.scale_.n_ranks, np.random.default_rng(0))

    def learn_histories(
        self,
        history: sparse.csr_array,
        n_ranks: int,
        rng: np.random.Generator,
        exact: bool = True,
    ) -> None:
        """Learn the weights from histories alone; ``rng`` draws users to choose the ridge by.

        See `inputs` for ``exact``.
        """
        self._check_parameters()
        inputs, n_jobs = self.inputs(history, exact), worker_count(self.n_jobs)
        if not inputs.items.size:
            warnings.warn(
                f"no item has {self.min_ratings} ratings or more, too few for EASE to learn what "
                "goes with what: popularity takes its place",
                stacklevel=callers_level(),
            )
        self.weighted_items_, self.mean_count_ = inputs.items, inputs.mean_count
        self.tried_: dict[float, float] = {}
        ridge, problem = self.regularization, cache(lambda: inputs.problem(n_jobs))
        about = (
            inputs.history, inputs.factors, inputs.counts, inputs.n_nearest, inputs.max_memory,
            *(() if inputs.events is None else (inputs.events,)),
        )  # fmt: skip

        if ridge is None:
            ridge, self.tried_ = chosen_ridge(inputs, about, problem, n_ranks, n_jobs, rng)
        self.regularization_ = float(ridge)
        ridges = inputs.ridges(self.regularization_)

        def weights() -> dict[str, np.ndarray]:
            B = problem().solve(ridges).weights()
            if not sparse.issparse(B):
                return {"B": np.ascontiguousarray(B, dtype=np.float32)}
            table: Any = B
            return {"data": table.data, "indices": table.indices, "start": table.indptr}

        found = kept("EASE", (*about, ridges), weights)
        if "B" in found:
            self.weights_ = found["B"]
        else:
            parts = found["data"], found["indices"], found["start"]
            self.weights_ = sparse.csr_array(parts, shape=(inputs.items.size,) * 2)

    def _check_parameters(self) -> None:
        if self.n_nearest < 1:
            raise ArgumentError(f"n_nearest must be at least 1, got {self.n_nearest}")
        if self.regularization is not None and not self.regularization > 0:
            raise ArgumentError(f"regularization must be above 0, got {self.regularization}")
        for name in ("user_power", "item_power"):
            if not abs(getattr(self, name)) <= MOST_POWER:
                raise ArgumentError(
                    f"{name} must lie between -{MOST_POWER} and {MOST_POWER}, "
                    f"got {getattr(self, name)}"
                )

    def inputs(self, history: sparse.csr_array, exact: bool = True) -> EaseInputs:
        """Return what the regressions on these histories are made of.

        Items are regressed on the nearest where there are too many for all of them, or if
        ``exact`` is False.
        """
        counts = self.item_counts_
        items = np.flatnonzero(counts >= self.min_ratings)
        exact = exact and items.size <= self._largest_exact
        events = None if self._events is None else sparse.csr_array(self._events.entries[:, items])
        return EaseInputs.of(
            history, items, counts[items], self.user_power, self.item_power,
            None if exact else self.n_nearest, PAIRS_SHARE * self.max_memory, events,
        )  # fmt: skip

    @property
    def is_exact(self) -> bool:
        """Whether the items of this fit have weights on all others, and not on the nearest."""
        return not sparse.issparse(self.weights_)

    @property
    def _largest_exact(self) -> int:
        """How many items are solved for exactly within ``max_memory``."""
        in_double, in_single = (
            int(np.sqrt(self.max_memory * 1e9 / (size * COPIES))) for size in (8, 4)
        )
        if in_single < 1:
            raise ArgumentError(f"max_memory is too small, got {self.max_memory}")
        return in_single if in_single > LARGEST_IN_DOUBLE else min(in_double, LARGEST_IN_DOUBLE)

    @property
    def block_items(self) -> np.ndarray:
        """The items with weights whose square tables fit into ``max_memory``: the most rated."""
        items, limit = self.weighted_items_, self._largest_exact
        if items.size <= limit:
            return items
        return np.sort(items[np.argsort(-self.item_counts_[items], kind="stable")[:limit]])

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        rows = sparse.csr_array(history[:, self.weighted_items_])
        sizes = np.diff(history.indptr)
        scale = row_factors(sizes, self.mean_count_, self.user_power)
        inputs = sparse.csr_array(sparse.diags_array(scale) @ rows).astype(np.float32)
        scores = np.zeros(history.shape)
        found = inputs @ self.weights_
        scores[:, self.weighted_items_] = found.toarray() if sparse.issparse(found) else found
        empty = np.diff(rows.indptr) == 0
        scores[empty] = self.item_counts_ / max(int(self.item_counts_.max(initial=0)), 1)
        return scores

    def contributions(self, code: int, item: int) -> np.ndarray:
        """Return what each item of a user's history adds to the score of an item, by codes."""
        row = self.history_rows(np.array([code]))
        scale = row_factors(np.diff(row.indptr), self.mean_count_, self.user_power)[0]
        place = np.full(len(self.item_ids_), -1)
        place[self.weighted_items_] = np.arange(self.weighted_items_.size)
        parts, own = np.zeros(row.nnz), place[row.indices]
        if place[item] >= 0:
            column: Any = self.weights_[:, [place[item]]]
            column = column.toarray() if sparse.issparse(column) else column
            parts[own >= 0] = column[own[own >= 0], 0]
        return scale * row.data * parts

    def check_stored(self) -> None:
        """Check that no item has weights twice."""
        self._check_parameters()
        if np.unique(self.weighted_items_).size < self.weighted_items_.size:
            raise ModelFileError("array 'weighted_items' names an item twice")
        self.tried_ = {}


@dataclass(frozen=True)
class EaseInputs:
    """What the regressions are made of, before a ridge is chosen."""

    items: np.ndarray
    history: sparse.csr_array
    factors: np.ndarray
    mean_count: float
    counts: np.ndarray
    mean_item_count: float
    item_power: float
    n_nearest: int | None  # None: each item is regressed on all others
    max_memory: float
    events: sparse.csr_array | None  # those of the history that are no picks

    @classmethod
    def of(
        cls,
        history: sparse.csr_array,
        items: np.ndarray,
        counts: np.ndarray,
        user_power: float,
        item_power: float,
        n_nearest: int | None,
        max_memory: float,
        events: sparse.csr_array | None,
    ) -> EaseInputs:
        """From the histories of all users, the items that get weights, and their counts."""
        sizes = np.diff(history.indptr)
        mean_count = float(sizes[sizes > 0].mean())
        factors = row_factors(sizes, mean_count, user_power)
        own = sparse.csr_array(history[:, items])
        own.sort_indices()
        mean_item_count = float(counts.mean()) if counts.size else 1.0
        fixed = mean_item_count, item_power, n_nearest, max_memory, events
        return cls(items, own, factors, mean_count, counts, *fixed)

    def most_rated(self, n_items: int) -> EaseInputs:
        """The same regressions, with the same ridges, among the items with the most ratings."""
        if self.items.size <= n_items:
            return self
        most = np.sort(np.argsort(-self.counts, kind="stable")[:n_items])
        own = sparse.csr_array(self.history[:, most])
        own.sort_indices()
        events = None if self.events is None else sparse.csr_array(self.events[:, most])
        return replace(
            self, items=self.items[most], history=own, counts=self.counts[most], events=events
        )

    @property
    def dtype(self) -> type:
        """Double precision for few items, single for many."""
        return np.float64 if self.items.size <= LARGEST_IN_DOUBLE else np.float32

    def problem(self, n_jobs: int) -> EaseProblem | NearestProblem:
        """The regressions of these inputs."""
        if self.n_nearest is not None:
            fixed = self.n_nearest, self.max_memory, n_jobs
            return NearestProblem(self.history, self.factors, *fixed)
        return EaseProblem(self.history, self.factors, self.dtype, n_jobs)

    def ridges(self, regularization: float) -> np.ndarray:
        """One ridge per item."""
        return regularization * (self.counts / self.mean_item_count) ** self.item_power


def chosen_ridge(
    inputs: EaseInputs,
    about: tuple[Any, ...],
    problem: Callable[[], EaseProblem | NearestProblem],
    n_ranks: int,
    n_jobs: int,
    rng: np.random.Generator,
) -> tuple[float, dict[float, float]]:
    """Return the best ridge for some users, and the quality of each that was tried.

    With many items, that of regressions on all others is chosen among those with the most ratings.

    Parameters
    ----------
    inputs : EaseInputs
    about : tuple
        All that the choice depends on, but for the users that are drawn.
    problem : callable
        Returns the regressions of the inputs.
    n_ranks, n_jobs : int
    rng : Generator
        Draws the users.
    """
    exact = inputs.n_nearest is None
    start, some = (START, inputs.most_rated(CHOOSING_ITEMS)) if exact else (NEAREST_START, inputs)
    rows = np.flatnonzero(np.diff(some.history.indptr) > 1)
    if rows.size < FEW_USERS:
        return start, {}
    rows = np.sort(rng.permutation(rows)[:LEFT_OUT_USERS])

    def chosen() -> dict[str, np.ndarray]:
        if not exact:
            quality, least_gain = _by_held_parts(some, rows, n_ranks, n_jobs), NEAREST_GAIN
        else:
            least_gain = 0.0
            own = problem() if some is inputs else some.problem(n_jobs)
            assert isinstance(own, EaseProblem)
            quality = _by_leaving_out(some, own, rows, n_ranks)
        best, tried = climb_by_doubling(quality, start, least_gain)
        return {"best": np.array([best]), "tried": np.array(list(tried.items()))}

    found = kept("EASE ridge", (*about, inputs.item_power, rows, n_ranks), chosen)
    return float(found["best"][0]), dict(found["tried"].tolist())


def _by_leaving_out(
    inputs: EaseInputs, problem: EaseProblem, rows: np.ndarray, n_ranks: int
) -> Callable[[float], float]:
    """The quality of a ridge by leave-one-out of users."""
    own = inputs.history[rows]
    met = None if inputs.events is None else inputs.events[rows]
    picks = own if met is None else entries_where(own, ~is_event(own, met))

    def quality(ridge: float) -> float:
        scores = problem.solve(inputs.ridges(ridge)).scores(rows, left_out=True)
        if met is not None:
            ItemFilter(np.ones(inputs.items.size, dtype=np.bool_)).hide(scores, met)
        return float(left_out_quality(scores, picks, n_ranks).mean())

    return quality


def _by_held_parts(
    inputs: EaseInputs, rows: np.ndarray, n_ranks: int, n_jobs: int
) -> Callable[[float], float]:
    """The quality of a ridge by lists for parts of histories that were set aside.

    The users whose lists are measured take no part in the regressions.
    """
    rng, n_users = np.random.default_rng(0), rows.size
    history = inputs.history[rows]
    events = is_event(history, None if inputs.events is None else inputs.events[rows])
    (split,) = inner_splits(history, 1, SHARE, rng, max_users=n_users, events=events)
    own, given = split.rows, split.given[split.rows]
    rest = replace(inputs, history=without_users(inputs.history, rows))
    problem = rest.problem(n_jobs)
    Z = sparse.csr_array(sparse.diags_array(inputs.factors[rows][own]) @ given).astype(np.float32)
    width = max(1, CELLS_AT_ONCE // max(inputs.items.size, 1))
    measure = ListQuality(split.held[own], n_ranks)
    allowed = ItemFilter(np.ones(inputs.items.size, dtype=np.bool_))

    def quality(ridge: float) -> float:
        B, lists = problem.solve(inputs.ridges(ridge)).weights(), []
        for first in range(0, Z.shape[0], width):
            some = slice(first, first + width)
            scores = (Z[some] @ B).toarray()
            allowed.hide(scores, given[some])
            lists.append(best_columns(scores, 10))
        return float(measure(np.concatenate(lists)).mean())

    return quality
