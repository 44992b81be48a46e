"""The package implicit's alternating least squares, with its own weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from ordrec.choice.base import ChoiceModel
from ordrec.choice.factor_model import FactorModel, factor_arrays, solve_rows
from ordrec.data import Ratings
from ordrec.runtime.parallel import forked, free_cores, one_blas_thread, worker_count

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

    stored: ClassVar = ChoiceModel.stored | factor_arrays(np.float64)

    factors: int = 64
    regularization: float = 0.05
    alpha: float = 10.0
    iterations: int = 15
    random_state: int = 0

    def _learn(self, history: sparse.csr_array, ratings: Ratings) -> None:
        from implicit.cpu.als import AlternatingLeastSquares

        with one_blas_thread():  # implicit runs its own threads
            model = AlternatingLeastSquares(
                factors=self.factors,
                regularization=self.regularization,
                alpha=self.alpha,
                iterations=self.iterations,
                random_state=self.random_state,
                # in a forked process, further ones would wait for ever
                num_threads=1 if forked() else free_cores(worker_count(None)),
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
