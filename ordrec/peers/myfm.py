"""Bayesian factorisation machines of the package myFM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.models.base import IdMappedModel, fits
from ordrec.rating.intervals import DistributionModel
from ordrec.runtime.extras import import_extra

__all__ = ["MyFMModel"]


@dataclass(eq=False)
class MyFMModel(IdMappedModel, DistributionModel):
    """myFM's Bayesian factorisation machine with an ordered probit, fitted by Gibbs sampling.

    Parameters
    ----------
    n_factors : int
    n_iter : int
        Number of Gibbs sweeps; the first tenth is discarded.
    implicit : bool
        Whether users are also described by the items they rated and items by their users.
    random_state : int
    """

    n_factors: int = 10
    n_iter: int = 512
    implicit: bool = False
    random_state: int = 0

    @fits
    def fit(self, ratings: Ratings) -> MyFMModel:
        """Draw samples of the factorisation machine's parameters."""
        myfm = import_extra("myfm", "myfm", "peers")
        self._remember(ratings)
        seen = sparse.csr_matrix(ratings.matrix("one").T)
        # The last row of each block is all zeros, for unknown users or items.
        self._blocks = [_described(side, self.implicit) for side in (seen, seen.T.tocsr())]
        groups = [ratings.n_users, ratings.n_items]
        if self.implicit:
            groups = [groups[0], groups[1], groups[1], groups[0]]
        self._present, levels = np.unique(ratings.levels, return_inverse=True)
        if self._present.size < 2:
            raise ArgumentError("myFM's ordered probit needs ratings of at least two values")
        self.model_ = myfm.MyFMOrderedProbit(self.n_factors, random_seed=self.random_state)
        self.model_.fit(
            sparse.csr_matrix((ratings.n_ratings, 0)),
            levels,
            X_rel=self._relations(ratings.users, ratings.items),
            n_iter=self.n_iter,
            n_kept_samples=max(self.n_iter - self.n_iter // 10, 1),
            group_shapes=groups,
        )
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the expected rating of each pair."""
        return self.predict_proba(users, items) @ self.scale_.values

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """Return rating distributions averaged over the samples, one row per pair."""
        user_codes, item_codes = self._codes(users, items)
        p = np.zeros((user_codes.size, self.scale_.n_ranks))
        if user_codes.size:
            relations = self._relations(
                np.where(user_codes < 0, len(self.user_ids_), user_codes),
                np.where(item_codes < 0, len(self.item_ids_), item_codes),
            )
            nothing = sparse.csr_matrix((user_codes.size, 0))
            p[:, self._present] = self.model_.predict_proba(nothing, relations)
        return p

    def _relations(self, users: np.ndarray, items: np.ndarray) -> list[Any]:
        myfm = import_extra(
            "myfm", "myfm", "peers"
        )  # a model that held the module could not be pickled
        pairs = zip((users, items), self._blocks, strict=True)
        return [myfm.RelationBlock(codes.tolist(), block) for codes, block in pairs]


def _described(seen: sparse.csr_matrix, implicit: bool) -> sparse.csr_matrix:
    """One-hot rows, followed by unit-length rows of ``seen`` if ``implicit``; last a zero row."""
    parts = [sparse.identity(seen.shape[0], format="csr")]
    if implicit:
        counts = np.diff(seen.indptr)
        parts.append(sparse.diags(1.0 / np.sqrt(np.maximum(counts, 1.0))) @ seen)
    rows = sparse.hstack(parts)
    return sparse.vstack([rows, sparse.csr_matrix((1, rows.shape[1]))]).tocsr()
