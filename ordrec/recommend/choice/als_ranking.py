"""The package implicit's alternating least squares, with its own weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.parallel import one_blas_thread
from ordrec.persistence import take
from ordrec.ratings import Ratings
from ordrec.recommend.choice.als_rows import solve_rows
from ordrec.recommend.choice.factor_model import FactorModel
from ordrec.recommend.lists import best_columns

__all__ = ["ALSRanking"]


@dataclass(eq=False)
class ALSRanking(FactorModel):
    """Implicit-feedback matrix factorisation by ``implicit``'s ALS, for comparison.

    Every rating is a sign of interest, the stronger the higher its rank: the confidence is
    ``alpha * rank / n_ranks``, against 1 for what was not rated; the ridge is the same for all
    rows. `ImplicitALS`, whose ridge grows with the number of ratings, ranks better.

    Parameters
    ----------
    factors : int
    regularization : float
    alpha : float
    iterations : int
    random_state : int
    """

    factors: int = 64
    regularization: float = 0.05
    alpha: float = 10.0
    iterations: int = 15
    random_state: int = 0

    _dtype = np.float64

    def _learn(self, history: sparse.csr_array, ratings: Ratings) -> None:
        from implicit.cpu.als import AlternatingLeastSquares

        with one_blas_thread():  # implicit runs its own threads
            model = AlternatingLeastSquares(
                factors=self.factors,
                regularization=self.regularization,
                alpha=self.alpha,
                iterations=self.iterations,
                random_state=self.random_state,
                dtype=np.float64,
            )
            model.fit(sparse.csr_matrix(history), show_progress=False)
        self.user_factors_ = model.user_factors
        self.item_factors_ = model.item_factors
        self._average_user = self.user_factors_[ratings.user_counts > 0].mean(axis=0)

    def _rows(self, history: sparse.csr_array, Q: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Factors given all item factors, with ``Q_u`` the rows of the items the user rated.

        ``(Q'Q + Q_u' (C - 1) Q_u + regularization I) x = Q_u' C 1``
        """
        confidence = self.alpha * history.data
        ridge = np.full(history.shape[0], self.regularization)
        return solve_rows(history, confidence - 1.0, confidence, Q, 1.0, ridge, n_jobs)

    def best_for_history(self, items: np.ndarray, ranks: np.ndarray, n: int) -> np.ndarray:
        """Codes of the n items with the highest scores for a user who has rated others.

        ``items`` are codes, ``ranks`` what the user gave them.
        """
        self._check_fitted()
        history = sparse.csr_array(
            (ranks / self.scale_.n_ranks, items, [0, items.size]), shape=(1, len(self.item_ids_))
        )
        scores = self.score_histories(history)
        self.item_filter().hide(scores, history)
        best = best_columns(scores, n)[0]
        return best[best >= 0]

    @classmethod
    def from_state(cls, arrays: Any, metadata: dict[str, Any]) -> Any:
        """Return the model of a file; version 0.1 stored which items were seen, not how often."""
        if "item_counts" not in arrays and "item_seen" in arrays:
            seen = take(arrays, "item_seen", np.bool_, (None,))
            arrays = dict(arrays) | {"item_counts": seen.astype(np.int64)}
        return super().from_state(arrays, metadata)


class FirstStage:
    """An `ALSRanking` that is fitted when it is first asked for, and kept.

    Copies of a model share it, so that none of them fits it again.
    """

    def __init__(self) -> None:
        self._ranking: ALSRanking | None = None

    def ranking(self, ratings: Callable[[], Ratings]) -> ALSRanking:
        """The ranking, fitted to the given ratings the first time."""
        if self._ranking is None:
            self._ranking = ALSRanking().fit(ratings())
        return self._ranking
