"""Ways to part the rows of a table into training and test, keeping the share of each label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation.splits.base import RowSplit, SplitParameters, part_rows

__all__ = ["StratifiedHoldOut", "StratifiedKFold"]


@dataclass(frozen=True)
class StratifiedHoldOut(SplitParameters):
    """A random share of a table's rows, the same share of every label up to one row.

    Labels with a single row are allowed; that row lands on either side.

    Parameters
    ----------
    test_size : float
    repeats : int
        How many independent draws to yield.
    seed : int

    Examples
    --------
    >>> [fold] = StratifiedHoldOut(0.5).split([1, 1, 2, 2, 2, 2])
    >>> fold.test.size
    3
    """

    kind: ClassVar[str] = "stratified-holdout"

    test_size: float = 0.25
    repeats: int = 1
    seed: int = 0

    def split(self, labels: np.ndarray) -> Iterator[RowSplit]:
        """Yield ``repeats`` folds."""
        for repeat in range(self.repeats):
            rng = np.random.default_rng([self.seed, repeat])
            order = _by_label(labels, rng)
            # A systematic sample of the rows in label order: the running number of test
            # rows follows test_size * position, so each label gets its share up to one row.
            n_test = round(self.test_size * order.size)
            start = rng.random()
            steps = np.floor(np.arange(order.size + 1) * n_test / order.size + start)
            test = np.zeros(order.size, dtype=bool)
            test[order] = np.diff(steps) > 0
            yield part_rows(test, self.name, str(repeat + 1))


@dataclass(frozen=True)
class StratifiedKFold(SplitParameters):
    """A table's rows are dealt into folds, every label evenly up to one row.

    Parameters
    ----------
    n_folds : int
    seed : int
    """

    kind: ClassVar[str] = "stratified-kfold"

    n_folds: int = 5
    seed: int = 0

    def split(self, labels: np.ndarray) -> Iterator[RowSplit]:
        """Yield ``n_folds`` folds whose test parts are disjoint and cover everything."""
        rng = np.random.default_rng(self.seed)
        order = _by_label(labels, rng)
        dealt = np.empty(order.size, dtype=np.int64)
        dealt[order] = rng.permutation(self.n_folds)[np.arange(order.size) % self.n_folds]
        for fold in range(self.n_folds):
            yield part_rows(dealt == fold, self.name, str(fold + 1))


def _by_label(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Row numbers sorted by label, at random within a label."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size < 2:
        raise ArgumentError(f"labels must be one column of at least two rows, got {labels.shape}")
    _, codes = np.unique(labels, return_inverse=True)
    return np.lexsort((rng.random(labels.size), codes))
