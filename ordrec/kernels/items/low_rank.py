"""The kernel of item factors that explain the ratings."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ordrec.features.low_rank.em import weighted_low_rank
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.items.corating import als_item_factors
from ordrec.kernels.rows import Linear

__all__ = ["LowRank"]


class LowRank(Linear):
    """Products of item factors, ``q_v' q_w``.

    Called on a matrix, it takes its rows as factors. In an `ItemKernel` the factors are made
    by `factors`, several times: the users are divided into ``n_folds`` folds (by code, modulo
    ``n_folds``), and each user gets the factors of a fit without their fold, because factors
    fitted to the user's own ratings already know what they are to predict.

    Parameters
    ----------
    n_factors : int
        Number of factors.
    source : {"ratings", "corating"}
        Factors of the ratings' residuals from the damped biases, by EM from zero, or of who
        rated what, by `als_item_factors`.
    n_folds : int
        Folds of users.
    n_iter : int
        Steps of either method. For ratings, few steps from zero are what keeps the factors of
        rare items small.
    random_state : int
        For the starting directions.

    Examples
    --------
    >>> import numpy as np
    >>> LowRank()(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[5., 2.],
           [2., 1.]])
    """

    def __init__(
        self,
        n_factors: int = 8,
        *,
        source: Literal["ratings", "corating"] = "ratings",
        n_folds: int = 4,
        n_iter: int = 10,
        random_state: int = 0,
    ):
        if source not in ("ratings", "corating"):
            raise ValueError(f'source must be "ratings" or "corating", got {source!r}')
        if n_factors < 1 or n_folds < 2 or n_iter < 1:
            raise ValueError(
                "n_factors and n_iter must be at least 1 and n_folds at least 2, "
                f"got {n_factors}, {n_iter} and {n_folds}"
            )
        self.n_factors = n_factors
        self.source = source
        self.n_folds = n_folds
        self.n_iter = n_iter
        self.random_state = random_state

    def factors(self, matrix: RatingMatrix) -> np.ndarray:
        """Item factors without each fold of users, and last with all of them.

        Returns
        -------
        ndarray of shape (n_folds + 1, n_items, n_factors)
        """
        limit = min(matrix.shape)
        if self.n_factors > limit:
            raise ValueError(
                f"n_factors={self.n_factors} is larger than the rating matrix allows ({limit})"
            )
        sets = np.zeros((self.n_folds + 1, matrix.n_items, self.n_factors))
        fold = np.arange(matrix.n_users) % self.n_folds
        for f in range(self.n_folds):
            inside = np.flatnonzero(fold == f)
            if matrix.user_counts[inside].sum() < matrix.values.nnz:  # else nothing to learn from
                sets[f] = self._factors(matrix.without_users(inside))
        sets[-1] = self._factors(matrix)
        return sets

    def _factors(self, matrix: RatingMatrix) -> np.ndarray:
        if self.source == "corating":
            return als_item_factors(
                matrix, self.n_factors, n_iter=self.n_iter, random_state=self.random_state
            )
        fitted = weighted_low_rank(
            matrix.residuals(matrix.biases()),
            np.ones(matrix.values.nnz),
            [self.n_factors],
            start=None,
            tol=0.0,
            max_iter=self.n_iter,
            seed=np.random.RandomState(self.random_state),
        )
        # Users' factors have unit variance then, so that q.q' is the covariance of residuals.
        return fitted.left * (fitted.singular / np.sqrt(np.count_nonzero(matrix.user_counts)))

    def __repr__(self) -> str:
        return (
            f"LowRank({self.n_factors}, source={self.source!r}, n_folds={self.n_folds}, "
            f"n_iter={self.n_iter}, random_state={self.random_state})"
        )
