"""Choice models whose scores are products of user and item factors."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.parallel import one_blas_thread
from ordrec.persistence import take
from ordrec.recommend.choice.base import ChoiceModel

__all__ = ["FactorModel"]


class FactorModel(ChoiceModel):
    """Base of choice models with one row of factors per user and per item.

    A user without ratings has the mean of the users' factors.
    """

    user_factors_: np.ndarray
    item_factors_: np.ndarray
    _average_user: np.ndarray
    _dtype: Any = np.float32

    @abstractmethod
    def _rows(self, history: sparse.csr_array, Q: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """User factors for histories, given item factors."""

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        factors = self._rows(history, self.item_factors_)
        factors[np.diff(history.indptr) == 0] = self._average_user
        return (factors @ self.item_factors_.T).astype(np.float64)

    def score_users(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of all items for users by code; -1 is a user without ratings."""
        factors = self.user_factors_[codes]
        factors[np.diff(self.history_of(codes).indptr) == 0] = self._average_user
        return (factors @ self.item_factors_.T).astype(np.float64)

    def _on_fold_in(self, users: np.ndarray) -> None:
        width = self.user_factors_.shape[1]
        added = len(self.user_ids_) - self.user_factors_.shape[0]
        new_rows = np.zeros((added, width), self.user_factors_.dtype)
        self.user_factors_ = np.vstack([self.user_factors_, new_rows])
        with one_blas_thread():
            self.user_factors_[users] = self._rows(self._history[users], self.item_factors_)

    def _own_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {
            "user_factors": self.user_factors_,
            "item_factors": self.item_factors_,
            "average_user": self._average_user,
        }, {}

    def _restore(self, arrays: Any, metadata: dict[str, Any]) -> None:
        dtype = self._dtype
        width = take(arrays, "average_user", dtype, (None,)).size
        self._average_user = take(arrays, "average_user", dtype, (width,))
        self.user_factors_ = take(arrays, "user_factors", dtype, (len(self.user_ids_), width))
        self.item_factors_ = take(arrays, "item_factors", dtype, (len(self.item_ids_), width))
