"""Candidate items for a user: the first stage of two-stage recommendation, by implicit ALS."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.errors import ArgumentError
from ordrec.parallel import one_blas_thread
from ordrec.persistence import take, take_rows
from ordrec.ratings import Ratings
from ordrec.recommend.base import IdMappedModel

__all__ = ["ALSRanking", "FirstStage"]


@dataclass(eq=False)
class ALSRanking(IdMappedModel):
    """Implicit-feedback matrix factorisation (``implicit``'s ALS), for ranking only.

    Every rating counts as a sign of interest, the stronger the higher its rank: the
    confidence is ``alpha * rank / n_ranks``, against 1 for what was not rated. Its scores
    order items; they are not ratings. An unknown user is treated as the average user, and an
    unknown item comes last. As the first of two stages, ``recommend(user, n)["item"]`` gives
    the candidates for a slower model.

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

        self._remember(ratings)
        interest = sparse.csr_matrix(ratings.matrix("rank").T / ratings.scale.n_ranks)
        with one_blas_thread():  # implicit runs its own threads, and warns about those of BLAS
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
        self._average_user = self.user_factors_[ratings.user_counts > 0].mean(axis=0)
        self._item_seen = ratings.item_counts > 0
        return self

    def fold_in(self, ratings: Ratings) -> ALSRanking:
        """A model with the factors of these users given all item factors, which are kept.

        With ``Q`` the item factors, ``c`` the confidences ``alpha * rank / n_ranks`` of the
        items the user rated and ``Q_u`` their rows, the user's factors solve
        ``(Q'Q + Q_u' (C - 1) Q_u + regularization I) x = Q_u' C 1``.
        """
        user_ids, users, items = self._with_users_of(ratings)
        model = copy.copy(self)
        model.user_ids_ = user_ids
        n_known, n_users = self._rated.shape[0], len(user_ids)
        model.user_factors_ = np.vstack(
            [self.user_factors_, np.tile(self._average_user, (n_users - n_known, 1))]
        )
        known = items >= 0
        interest = ratings.ranks[known] / ratings.scale.n_ranks
        rated = sparse.csr_matrix(
            (interest, (users[known], items[known])), shape=(n_users, len(self.item_ids_))
        )
        for user in np.unique(users[known]):
            part = slice(*rated.indptr[user : user + 2])
            model.user_factors_[user] = self._factors(rated.indices[part], rated.data[part])
        kept = sparse.vstack(
            [self._rated, sparse.csr_matrix((n_users - n_known, len(self.item_ids_)))]
        ).tocsr()
        replaced = np.isin(np.arange(n_users), users)
        model._rated = (sparse.diags(1.0 - replaced) @ kept + rated).tocsr()
        model._rated.eliminate_zeros()
        return model

    def _factors(self, items: np.ndarray, interest: np.ndarray) -> np.ndarray:
        """Factors of a user who has rated items, by code."""
        Q = self.item_factors_
        confidence, rows = self.alpha * interest, Q[items]
        gram = Q.T @ Q + self.regularization * np.eye(Q.shape[1])
        gram += (rows.T * (confidence - 1.0)) @ rows
        try:
            return np.linalg.solve(gram, rows.T @ confidence)
        except np.linalg.LinAlgError:  # factors that do not span, and no regularization
            return np.linalg.lstsq(gram, rows.T @ confidence)[0]

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """Products of the factors, one per pair."""
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
        factors, rated = self._average_user, np.zeros(0, dtype=np.int64)
        if code >= 0:
            factors = self.user_factors_[code]
            rated = self._rated.indices[slice(*self._rated.indptr[code : code + 2])]
        best, scores = self._best(factors, rated, n)
        return pd.DataFrame({"item": self.item_ids_.take(best), "score": scores})

    def best_for_history(self, items: np.ndarray, ranks: np.ndarray, n: int) -> np.ndarray:
        """Codes of the ``n`` items of the highest scores for a user who has rated others.

        ``items`` are codes and ``ranks`` those of the user's ratings; the user's factors are those
        of `fold_in`, or the average user's if there is no rating.
        """
        self._check_fitted()
        factors = self._average_user
        if items.size:
            factors = self._factors(items, ranks / self.scale_.n_ranks)
        return self._best(factors, items, n)[0]

    def _best(
        self, factors: np.ndarray, rated: np.ndarray, n: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Codes and scores of the best items, those rated or never seen left out."""
        scores = self.item_factors_ @ factors
        scores[~self._item_seen] = -np.inf
        scores[rated] = -np.inf
        best = np.argsort(-scores, kind="stable")[:n]
        best = best[np.isfinite(scores[best])]
        return best, scores[best]

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata for `ordrec.persistence`."""
        arrays, metadata = self._identity()
        return arrays | {
            "user_factors": self.user_factors_,
            "item_factors": self.item_factors_,
            "average_user": self._average_user,
            "item_seen": self._item_seen,
            "rated.start": self._rated.indptr,
            "rated.items": self._rated.indices,
            "rated.interest": self._rated.data,
        }, metadata

    @classmethod
    def from_state(cls, arrays: Any, metadata: dict[str, Any]) -> Any:
        """Restore a model from the arrays and the metadata of a file."""
        model = cls._from_identity(arrays, metadata)
        n_users, n_items = len(model.user_ids_), len(model.item_ids_)
        width = take(arrays, "average_user", np.float64, (None,)).size
        model._average_user = take(arrays, "average_user", np.float64, (width,))
        model.user_factors_ = take(arrays, "user_factors", np.float64, (n_users, width))
        model.item_factors_ = take(arrays, "item_factors", np.float64, (n_items, width))
        model._item_seen = take(arrays, "item_seen", np.bool_, (n_items,))
        start, items = take_rows(arrays, "rated.start", "rated.items", n_users, n_items)
        interest = take(arrays, "rated.interest", np.float64, items.shape, low=0.0, high=1.0)
        model._rated = sparse.csr_matrix((interest, items, start), shape=(n_users, n_items))
        return model


class FirstStage:
    """An `ALSRanking` that is fitted when it is first needed, and kept.

    Copies of a model share it, so that none of them fits it again.
    """

    def __init__(self) -> None:
        self._ranking: ALSRanking | None = None

    def ranking(self, ratings: Callable[[], Ratings]) -> ALSRanking:
        """The ranking, fitted to the given ratings the first time."""
        if self._ranking is None:
            self._ranking = ALSRanking().fit(ratings())
        return self._ranking
