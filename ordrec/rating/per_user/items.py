"""Descriptions of items for one user's model, made from the ratings of the other users only.

Missing ratings are filled with the item's mean, or by a weighted low-rank estimate. A source
gives the kernel between items, or the items as rows of features, for one user at a time. An
item code of -1 is an item without ratings, whose kernel with all others is zero.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import clone

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.features.low_rank.model import LowRankEM
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels import Kernel
from ordrec.kernels.items.kernel import ItemKernel

__all__ = [
    "ItemSource",
    "LowRankSource",
    "MeanSource",
    "UserSample",
    "filled_source",
    "fitted",
    "takes_kernels",
]

# code, rated items, their levels, and how much each rating counts if they differ in that
UserSample = tuple[int, np.ndarray, np.ndarray, np.ndarray | None]

N_FOLDS = 5


@runtime_checkable
class ItemSource(Protocol):
    """Kernels and features of items, computed without the ratings of a given user."""

    def gram(self, user: int, items: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """Kernel of some items with others (or with themselves), without the user's ratings."""
        ...

    def rows(self, user: int, items: np.ndarray) -> np.ndarray:
        """One row of features per item, without the user's ratings."""
        ...


def takes_kernels(estimator: Any) -> bool:
    """Whether an estimator works on the items' kernel, not on their rows of features."""
    return "kernel" in estimator.get_params()


def fitted(estimator: Any, X: np.ndarray, levels: np.ndarray, weights: np.ndarray | None) -> Any:
    """Fit an estimator to a user's ratings, with weights if there are any."""
    return estimator.fit(X, levels) if weights is None else estimator.fit(X, levels, weights)


def filled_source(features: Any, kernel: Kernel, ratings: Ratings) -> ItemSource:
    """Return the item source for a way to fill in missing ratings, and a kernel."""
    if features == "mean":
        return MeanSource(ratings, kernel)
    if isinstance(features, LowRankEM):
        return LowRankSource(ratings, kernel, features)
    raise ArgumentError(f'features must be "mean" or a LowRankEM, got {features!r}')


class MeanSource:
    """An item source that fills missing ratings with the mean of the item's other ratings.

    The kernel is an `ItemKernel`: one table for all users, from which a user's ratings are
    removed exactly, also from the items' means and deviations.
    """

    def __init__(self, ratings: Ratings, kernel: Kernel):
        self._matrix = RatingMatrix.from_ratings(ratings)
        self._kernel = ItemKernel(kernel).fit(self._matrix)

    def gram(self, user: int, items: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """Kernel of some items with others (or with themselves), without the user's ratings."""
        K = self._kernel.for_user(user, np.maximum(items, 0), others)
        K[items < 0] = 0.0
        return K

    def rows(self, user: int, items: np.ndarray) -> np.ndarray:
        """Ratings of the items by all other users; the centre for items nobody else rated."""
        known = np.flatnonzero(items >= 0)
        part = self._matrix.values[items[known]].tocoo()
        others = part.col != user
        row, column, value = part.row[others], part.col[others], part.data[others]
        count = np.bincount(row, minlength=known.size)
        mean = np.full(known.size, self._matrix.centre)
        total = np.bincount(row, value, minlength=known.size)
        np.divide(total, count, out=mean, where=count > 0)
        X = np.full((items.size, self._matrix.n_users), self._matrix.centre)
        X[known] = mean[:, None]
        X[known[row], column] = value
        return np.delete(X, user, axis=1)


class LowRankSource:
    """An item source that fills missing ratings with a weighted low-rank estimate.

    The users are divided into folds (by code). For a user of a fold the estimate is fitted
    without the columns of the whole fold, and these are not used as features either: factors
    fitted to the user's ratings would contain what they are used to predict. There is one
    kernel matrix per fold, over all items.
    """

    def __init__(self, ratings: Ratings, kernel: Kernel, features: LowRankEM):
        if features.target is not None:
            raise ArgumentError(
                "features: leave target=None, each user's column is left out anyway"
            )
        values = RatingMatrix.from_ratings(ratings).values
        if ratings.weights is not None:
            features = clone(features).set_params(weights=ratings.matrix("weight"))
        self._n_folds = min(N_FOLDS, ratings.n_users)
        if self._n_folds < 2:
            raise ArgumentError("low-rank features need the ratings of at least two users")
        self._rows, self._grams = [], []
        for fold in range(self._n_folds):
            target = np.flatnonzero(np.arange(ratings.n_users) % self._n_folds == fold)
            filled = clone(features).set_params(target=target).fit(values).transform(values)
            self._rows.append(filled)
            self._grams.append(kernel(filled))

    def gram(self, user: int, items: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """Kernel of some items with others (or with themselves), without the user's fold."""
        columns = items if others is None else others
        K = self._grams[user % self._n_folds][np.ix_(np.maximum(items, 0), columns)]
        K[items < 0] = 0.0
        return K

    def rows(self, user: int, items: np.ndarray) -> np.ndarray:
        """Filled ratings of all users outside the fold; an unknown item has the mean row."""
        filled = self._rows[user % self._n_folds]
        X = filled[np.maximum(items, 0)]
        X[items < 0] = filled.mean(axis=0)
        return X
