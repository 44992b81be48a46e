"""EASE: every item regressed on all others, in closed form."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ordrec.choice.base import ChoiceModel
from ordrec.choice.ease_solver import EaseProblem
from ordrec.choice.inner_splits import FEW_USERS, climb_by_doubling, left_out_quality
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, ModelFileError, callers_level
from ordrec.runtime.parallel import one_blas_thread, worker_count
from ordrec.storage.arrays import round_to_half
from ordrec.storage.schema import Array, Number

__all__ = ["EASE", "EaseInputs", "row_factors"]

COPIES = 4  # square matrices held at the same time: both Grams, the inverse, the weights
START = 200.0  # where the search for the ridge begins
LEFT_OUT_USERS = 1000
CHOOSING_ITEMS = 2500  # the ridge is chosen among these, as a solution takes n_items^3
LARGEST_IN_DOUBLE = 2_000  # items; more are solved in single precision

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
    max_memory : float
        Gigabytes that the weights may take while they are solved for; choosing the ridge takes
        up to 0.2 more. Where all items take more, only those with the most
        ratings get weights, with a warning.
    n_jobs : int, optional
        Threads that sum up the Gram matrices; all cores by default.

    Attributes
    ----------
    weights_ : float32 array of shape (n_weighted_items, n_weighted_items)
        Row: the item rated; column: the item scored. Rounded to half precision.
    weighted_items_ : int64 array
        Codes of the items that have weights.
    regularization_ : float
        The ridge, as given or chosen.
    tried_ : dict of float to float
        Each ridge that was tried, and its quality by leave-one-out.

    Notes
    -----
    Time grows with the cube of the number of items and memory with its square. A user without
    ratings of items with weights is scored by popularity.

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
        "weights_": Array("weighted", "weighted", dtype=np.float32, stored_as=np.float16),
        "mean_count_": Number(1e-300, "items"),
        "regularization_": Number(),
    }

    regularization: float | None = None
    user_power: float = 0.0
    item_power: float = 0.0
    min_ratings: int = 3
    max_memory: float = 8.0
    n_jobs: int | None = None
    search_space: ClassVar[dict[str, Any]] = {
        "user_power": (0.0, 1.0),
        "item_power": (0.0, 1.0),
    }

    def _learn(self, history: sparse.csr_array, ratings: Ratings) -> None:
        with one_blas_thread():
            self.learn_histories(history, ratings.scale.n_ranks, np.random.default_rng(0))

    def learn_histories(
        self, history: sparse.csr_array, n_ranks: int, rng: np.random.Generator
    ) -> None:
        """Learn the weights from histories alone; ``rng`` draws users to choose the ridge by."""
        self._check_parameters()
        inputs, n_jobs = self.inputs(history), worker_count(self.n_jobs)
        if not inputs.items.size:
            warnings.warn(
                f"no item has {self.min_ratings} ratings or more, too few for EASE to learn what "
                "goes with what: popularity takes its place",
                stacklevel=callers_level(),
            )
        problem = inputs.problem(n_jobs)
        self.tried_: dict[float, float] = {}
        if self.regularization is None:
            ridge, self.tried_ = chosen_ridge(inputs, problem, n_ranks, n_jobs, rng)
        else:
            ridge = float(self.regularization)
        self.regularization_ = ridge
        self.weighted_items_, self.mean_count_ = inputs.items, inputs.mean_count
        self.weights_ = problem.solve(inputs.ridges(ridge)).weights(np.float32)
        round_to_half(self.weights_)  # as the file holds them, so that a stored model is the same

    def _check_parameters(self) -> None:
        if self.regularization is not None and not self.regularization > 0:
            raise ArgumentError(f"regularization must be above 0, got {self.regularization}")
        for name in ("user_power", "item_power"):
            if not abs(getattr(self, name)) <= MOST_POWER:
                raise ArgumentError(
                    f"{name} must lie between -{MOST_POWER} and {MOST_POWER}, "
                    f"got {getattr(self, name)}"
                )

    def inputs(self, history: sparse.csr_array) -> EaseInputs:
        """Return what the regressions on these histories are made of."""
        counts = self.item_counts_
        items = self._within_memory(np.flatnonzero(counts >= self.min_ratings))
        return EaseInputs.of(history, items, counts[items], self.user_power, self.item_power)

    def _within_memory(self, items: np.ndarray) -> np.ndarray:
        """The items with the most ratings whose matrices fit into ``max_memory``."""
        in_double, in_single = (
            int(np.sqrt(self.max_memory * 1e9 / (size * COPIES))) for size in (8, 4)
        )
        single = min(items.size, in_single) > LARGEST_IN_DOUBLE
        size, limit = (4, in_single) if single else (8, min(in_double, LARGEST_IN_DOUBLE))
        if limit < 1:
            raise ArgumentError(f"max_memory is too small, got {self.max_memory}")
        if items.size <= limit:
            return items
        warnings.warn(
            f"EASE: {items.size} items take {COPIES * size * items.size**2 / 1e9:.2g} GB, and "
            f"max_memory is {self.max_memory:g}: only the {limit} items with the most ratings "
            "get weights",
            stacklevel=callers_level(),
        )
        most = np.argsort(-self.item_counts_[items], kind="stable")[:limit]
        return np.sort(items[most])

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        rows = sparse.csr_array(history[:, self.weighted_items_])
        sizes = np.diff(history.indptr)
        scale = row_factors(sizes, self.mean_count_, self.user_power)
        inputs = sparse.csr_array(sparse.diags_array(scale) @ rows).astype(np.float32)
        scores = np.zeros(history.shape)
        scores[:, self.weighted_items_] = inputs @ self.weights_
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
            parts[own >= 0] = self.weights_[own[own >= 0], place[item]]
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

    @classmethod
    def of(
        cls,
        history: sparse.csr_array,
        items: np.ndarray,
        counts: np.ndarray,
        user_power: float,
        item_power: float,
    ) -> EaseInputs:
        """From the histories of all users, the items that get weights, and their counts."""
        sizes = np.diff(history.indptr)
        mean_count = float(sizes[sizes > 0].mean())
        factors = row_factors(sizes, mean_count, user_power)
        own = sparse.csr_array(history[:, items])
        own.sort_indices()
        mean_item_count = float(counts.mean()) if counts.size else 1.0
        return cls(items, own, factors, mean_count, counts, mean_item_count, item_power)

    def most_rated(self, n_items: int) -> EaseInputs:
        """The same regressions, with the same ridges, among the items with the most ratings."""
        if self.items.size <= n_items:
            return self
        most = np.sort(np.argsort(-self.counts, kind="stable")[:n_items])
        own = sparse.csr_array(self.history[:, most])
        own.sort_indices()
        return replace(self, items=self.items[most], history=own, counts=self.counts[most])

    @property
    def dtype(self) -> type:
        """Double precision for few items, single for many."""
        return np.float64 if self.items.size <= LARGEST_IN_DOUBLE else np.float32

    def problem(self, n_jobs: int) -> EaseProblem:
        """The regressions of these inputs."""
        return EaseProblem(self.history, self.factors, self.dtype, n_jobs)

    def ridges(self, regularization: float) -> np.ndarray:
        """One ridge per item."""
        return regularization * (self.counts / self.mean_item_count) ** self.item_power


def chosen_ridge(
    inputs: EaseInputs,
    problem: EaseProblem,
    n_ranks: int,
    n_jobs: int,
    rng: np.random.Generator,
) -> tuple[float, dict[float, float]]:
    """Return the best ridge by leave-one-out of users, and the quality of each that was tried.

    With many items, it is chosen among those with the most ratings.
    """
    if inputs.items.size > CHOOSING_ITEMS:
        inputs = inputs.most_rated(CHOOSING_ITEMS)
        problem = inputs.problem(n_jobs)
    rows = np.flatnonzero(np.diff(inputs.history.indptr) > 1)
    if rows.size < FEW_USERS:
        return START, {}
    rows = np.sort(rng.permutation(rows)[:LEFT_OUT_USERS])
    own = inputs.history[rows]

    def quality(ridge: float) -> float:
        scores = problem.solve(inputs.ridges(ridge)).scores(rows, left_out=True)
        return float(left_out_quality(scores, own, n_ranks).mean())

    return climb_by_doubling(quality, START)


def row_factors(sizes: np.ndarray, mean_count: float, user_power: float) -> np.ndarray:
    """Factors by which rows of histories with these numbers of ratings are scaled."""
    return (np.maximum(sizes, 1) / mean_count) ** -user_power
