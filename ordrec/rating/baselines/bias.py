"""Damped user and item biases."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, callers_level
from ordrec.features.matrix import damped_biases
from ordrec.models.base import IDENTITY, IdMappedModel, StoredRating, fits, folds_in
from ordrec.storage.schema import Array, Integer

__all__ = ["BiasModel"]


@dataclass(eq=False)
class BiasModel(IdMappedModel):
    """Mean plus damped user and item biases: ``mu + b_u + b_i``.

    The biases minimise ``sum (r_ui - mu - b_u - b_i)^2 + user_damping |b_u|^2 +
    item_damping |b_i|^2``, see `ordrec.features.matrix.damped_biases`. Unknown users and items
    have bias 0.

    Parameters
    ----------
    user_damping, item_damping : float
        Pseudo-counts that pull the bias of a user or item with few ratings to 0.
    tol : float
        Stop when another round would change no bias by more than this share of the scale's range.
    max_iter : int

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": ["a", "b", "a", "b"],
    ...                       "rating": [5, 3, 3, 1]})
    >>> model = BiasModel(user_damping=0, item_damping=0).fit(Ratings.from_frame(frame))
    >>> model.predict([1, 2, 9], ["a", "b", "a"])
    array([5., 1., 4.])
    """

    stored: ClassVar = IDENTITY | {
        "mean_": StoredRating(),
        "n_iter_": Integer(),
        "user_bias_": Array("users"),
        "item_bias_": Array("items"),
    }

    user_damping: float = 15.0
    item_damping: float = 10.0
    tol: float = 1e-6
    max_iter: int = 200
    search_space: ClassVar[dict[str, Any]] = {
        "user_damping": (1.0, 60.0, "log"),
        "item_damping": (1.0, 60.0, "log"),
    }

    @fits
    def fit(self, ratings: Ratings) -> BiasModel:
        """Fit the mean and, jointly, the biases of users and items."""
        if min(self.user_damping, self.item_damping) < 0:
            raise ArgumentError(
                f"damping must not be negative, got {self.user_damping}, {self.item_damping}"
            )
        self._remember(ratings)
        tol = self.tol * float(np.ptp(ratings.scale.values))
        biases = damped_biases(
            ratings.users,
            ratings.items,
            ratings.values,
            ratings.n_users,
            ratings.n_items,
            user_damping=self.user_damping,
            item_damping=self.item_damping,
            tol=tol,
            max_iter=self.max_iter,
        )
        self.mean_, self.user_bias_, self.item_bias_ = biases.mean, biases.user, biases.item
        self.n_iter_ = biases.n_iter
        if not biases.converged:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"BiasModel: after {biases.n_iter} rounds the biases still moved by "
                f"{biases.change:.2g} (tolerance {tol:.2g}): raise max_iter or the damping",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )
        return self

    @folds_in
    def fold_in(self, ratings: Ratings) -> BiasModel:
        """Return a model with new biases for these users; the item biases are kept.

        Ratings of unknown items count as those of items with bias 0.
        """
        self._check_fitted()
        ratings = ratings.on_scale(self.scale_)
        user_ids, users, items = self._with_users_of(ratings)
        model = copy.copy(self)
        model.user_ids_ = user_ids
        rest = ratings.values - self.mean_ - _or_zero(self.item_bias_, items)
        counts = np.bincount(users, minlength=len(user_ids))
        bias = np.bincount(users, rest, len(user_ids)) / np.maximum(counts + self.user_damping, 1)
        before = np.concatenate([self.user_bias_, np.zeros(len(user_ids) - self.user_bias_.size)])
        model.user_bias_ = np.where(counts > 0, bias, before)
        return model

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return ``mu + b_u + b_i`` for each pair, clipped to the scale."""
        user_codes, item_codes = self._codes(users, items)
        return self._clipped(self.baseline(user_codes, item_codes))

    def baseline(self, user_codes: np.ndarray, item_codes: np.ndarray) -> np.ndarray:
        """Return ``mu + b_u + b_i`` for pairs of codes (-1 for unknown ids), not clipped."""
        return (
            self.mean_
            + _or_zero(self.user_bias_, user_codes)
            + _or_zero(self.item_bias_, item_codes)
        )


def _or_zero(bias: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.append(bias, 0.0)[codes]  # code -1 reads the appended 0
