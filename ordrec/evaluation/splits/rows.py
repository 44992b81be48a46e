"""Splits of the rows of a table into training and test that keep the share of each label."""

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
    """Split that tests on a random share of the rows, the same for every label up to one row.

    Labels with a single row are allowed; that row may be in either part.

    Parameters
    ----------
    test_size : float
    repeats : int
        Number of independent draws.
    random_state : int

    Examples
    --------
    >>> [fold] = StratifiedHoldOut(0.5).split([1, 1, 2, 2, 2, 2])
    >>> fold.test.size
    3
    """

    kind: ClassVar[str] = "stratified-holdout"

    test_size: float = 0.25
    repeats: int = 1
    random_state: int = 0

    def split(self, labels: np.ndarray) -> Iterator[RowSplit]:
        """Yield ``repeats`` folds."""
        for repeat in range(self.repeats):
            rng = np.random.default_rng([self.random_state, repeat])
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
    """Split of the rows into folds, with equal numbers of every label up to one row.

    Parameters
    ----------
    n_folds : int
    random_state : int
    """

    kind: ClassVar[str] = "stratified-kfold"

    n_folds: int = 5
    random_state: int = 0

    def split(self, labels: np.ndarray) -> Iterator[RowSplit]:
        """Yield ``n_folds`` folds whose test parts are disjoint and cover everything."""
        rng = np.random.default_rng(self.random_state)
        order = _by_label(labels, rng)
        fold_of_row = np.empty(order.size, dtype=np.int64)
        fold_of_row[order] = rng.permutation(self.n_folds)[np.arange(order.size) % self.n_folds]
        for fold in range(self.n_folds):
            yield part_rows(fold_of_row == fold, self.name, str(fold + 1))


def _by_label(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return row numbers sorted by label, in random order within a label."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size < 2:
        raise ArgumentError(f"labels must be one column of at least two rows, got {labels.shape}")
    _, codes = np.unique(labels, return_inverse=True)
    return np.lexsort((rng.random(labels.size), codes))
