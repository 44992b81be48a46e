"""Items worth a closer look: the first stage of two-stage recommendation, by implicit ALS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.ratings import Ratings
from ordrec.recommend.models import RemembersIds

__all__ = ["ALSRanking"]


@dataclass(eq=False)
class ALSRanking(RemembersIds):
    """Implicit-feedback matrix factorisation (``implicit``'s ALS), for ranking only.

    Every rating counts as a sign of interest, the stronger the higher its rank: the
    confidence is ``1 + alpha * rank / n_ranks``. Its scores order items; they are no ratings.
    An unknown user is ranked for as the average user, an unknown item comes last.

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

    def fit(self, ratings: Ratings) -> ALSRanking:
        """Factorise the matrix of users and items."""
        from implicit.cpu.als import AlternatingLeastSquares
        from scipy import sparse
        from threadpoolctl import threadpool_limits

        self._remember(ratings)
        interest = sparse.csr_matrix(ratings.matrix("rank").T / ratings.scale.n_ranks)
        with threadpool_limits(1, "blas"):  # implicit runs its own threads, and looks at BLAS'
            model = AlternatingLeastSquares(
                factors=self.factors,
                regularization=self.regularization,
                alpha=self.alpha,
                iterations=self.iterations,
                random_state=self.random_state,
                dtype=np.float64,
            )
            model.fit(interest, show_progress=False)
        self._rated = interest
        self.user_factors_ = model.user_factors
        self.item_factors_ = model.item_factors
        seen = ratings.user_counts > 0
        self._average_user = self.user_factors_[seen].mean(axis=0)
        self._item_seen = ratings.item_counts > 0
        return self

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """Products of the factors, one a pair."""
        user_codes, item_codes = self._codes(users, items)
        left = np.vstack([self.user_factors_, self._average_user])[user_codes]
        values = np.einsum("ij,ij->i", left, self.item_factors_[item_codes])
        unseen = (item_codes < 0) | ~self._item_seen[item_codes]
        values[unseen] = min(values.min(initial=0.0), 0.0) - 1.0
        return values

    def recommend(self, user: Any, n: int = 10) -> pd.DataFrame:
        """The ``n`` items of the highest scores that the user has not rated: item, score."""
        if n < 1:
            raise ArgumentError(f"n must be at least 1, got {n}")
        codes, _ = self._codes([user], self.item_ids_[:1])
        code = int(codes[0])
        scores = self.item_factors_ @ (self._average_user if code < 0 else self.user_factors_[code])
        scores[~self._item_seen] = -np.inf
        if code >= 0:
            scores[self._rated[code].indices] = -np.inf
        best = np.argsort(-scores, kind="stable")[:n]
        best = best[np.isfinite(scores[best])]
        return pd.DataFrame({"item": self.item_ids_.take(best), "score": scores[best]})
