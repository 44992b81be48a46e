"""One setting of the solver for all users, chosen by cross-validation within their ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ordrec.rating.per_user.items import ItemSource, UserSample, fitted, takes_kernels

__all__ = ["absolute_errors"]

N_FOLDS = 5


def absolute_errors(
    users: Sequence[UserSample], source: ItemSource, solvers: Sequence[Any]
) -> list[tuple[np.ndarray, float]]:
    """For each user: the error of each solver, and the weight of the ratings tested.

    The error is the sum of ``|predicted - true|``, in ranks, over five folds of the user's ratings
    with equal shares of every level. A fold with one level in its training part is left out.
    Weights count in both.
    """
    errors = []
    for user, items, levels, weights in users:
        takes = takes_kernels(solvers[0])
        X = source.gram(user, items) if takes else source.rows(user, items)
        fold = _folds(levels, seed=user)
        counts = np.ones(levels.size) if weights is None else weights
        total, tested = np.zeros(len(solvers)), 0.0
        for k in range(N_FOLDS):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if test.size == 0 or np.unique(levels[train[counts[train] > 0]]).size < 2:
                continue
            tested += counts[test].sum()
            block = X[np.ix_(train, train)] if takes else X[train]
            new = X[np.ix_(test, train)] if takes else X[test]
            own = None if weights is None else weights[train]
            for s, solver in enumerate(solvers):
                predicted = fitted(clone(solver), block, levels[train], own).predict(new)
                total[s] += counts[test] @ np.abs(predicted - levels[test])
        errors.append((total, tested))
    return errors


def _folds(levels: np.ndarray, seed: int) -> np.ndarray:
    """Number the ratings 0..4 in turn, level by level, in random order within a level."""
    order = np.lexsort((np.random.default_rng(seed).random(levels.size), levels))
    fold = np.empty(levels.size, dtype=np.int64)
    fold[order] = np.arange(levels.size) % N_FOLDS
    return fold
