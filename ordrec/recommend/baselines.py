"""Baselines every other model has to beat: mean, histogram, biases, item neighbours, ALS.

Equations here, with ``r_ui`` the rating of user u for item i, ``mu`` the mean of all
ratings, ``I_u`` the items of u and ``U_i`` the users of i:

(1) ``b_i = sum_{u in U_i} (r_ui - mu - b_u) / (item_damping + |U_i|)``
(2) ``b_u = sum_{i in I_u} (r_ui - mu - b_i) / (user_damping + |I_u|)``
(3) ``e_ui = r_ui - mu - b_u - b_i``
(4) ``s_ij = (n_ij - 1) / (n_ij - 1 + shrinkage) * sum_u e_ui e_uj / (|e_i| |e_j|)``, over the
    ``n_ij`` users who rated both
(5) ``r^_ui = mu + b_u + b_i + sum_{j in N} s_ij e_uj / sum_{j in N} s_ij``, with ``N`` the items of
    u most similar to i

(1) to (3) and (5) are those of Koren, "Factor in the neighbors" (2010).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numba import njit

from ordrec.errors import ArgumentError, DataError
from ordrec.ratings import Ratings, Scale
from ordrec.recommend.models import codes_of, codes_of_pairs

__all__ = ["ALSRanking", "BiasModel", "GlobalMean", "ItemKNN", "RatingHistogram"]


class _Baseline:
    """Keeps the scale and the ids of the training ratings."""

    scale_: Scale
    user_ids_: pd.Index
    item_ids_: pd.Index

    def _remember(self, ratings: Ratings) -> None:
        if ratings.n_ratings == 0:
            raise DataError(f"{type(self).__name__}: no ratings to learn from")
        self.scale_ = ratings.scale
        self.user_ids_ = ratings.user_ids
        self.item_ids_ = ratings.item_ids

    def _codes(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        if not hasattr(self, "scale_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"{type(self).__name__} is not fitted: call fit(ratings) first")
        return codes_of_pairs(self.user_ids_, self.item_ids_, users, items)

    def _clipped(self, values: np.ndarray) -> np.ndarray:
        return np.clip(values, self.scale_.values[0], self.scale_.values[-1])


@dataclass(eq=False)
class GlobalMean(_Baseline):
    """The mean of all training ratings, for every user and item."""

    def fit(self, ratings: Ratings) -> GlobalMean:
        """Take the mean."""
        self._remember(ratings)
        self.mean_ = float(ratings.values.mean())
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """The same rating for every pair."""
        codes, _ = self._codes(users, items)
        return np.full(codes.size, self.mean_)


@dataclass(eq=False)
class RatingHistogram(GlobalMean):
    """The distribution of all training ratings, for every user and item.

    The least a model with `predict_proba` has to beat.

    Parameters
    ----------
    smoothing : float
        Added to the count of each scale value, so that none is impossible.
    """

    smoothing: float = 1.0

    def fit(self, ratings: Ratings) -> RatingHistogram:
        """Count the ratings of each scale value."""
        super().fit(ratings)
        counts = np.bincount(ratings.levels, minlength=ratings.scale.n_ranks) + self.smoothing
        self.distribution_ = counts / counts.sum()
        return self

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """The same distribution for every pair, one column a scale value."""
        codes, _ = self._codes(users, items)
        return np.tile(self.distribution_, (codes.size, 1))


@dataclass(eq=False)
class BiasModel(_Baseline):
    """Mean plus damped user and item biases: ``mu + b_u + b_i``.

    The biases minimise ``sum (r_ui - mu - b_u - b_i)^2 + user_damping |b_u|^2 +
    item_damping |b_i|^2``, found by alternating (1) and (2) until nothing moves.
    Unknown users and items have bias 0.

    Parameters
    ----------
    user_damping, item_damping : float
        Pseudo-counts that pull the bias of a user or item with few ratings to 0.
    tol : float
        Stop when no bias moved by more than this share of the scale's range.
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

    user_damping: float = 15.0
    item_damping: float = 10.0
    tol: float = 1e-6
    max_iter: int = 200

    def fit(self, ratings: Ratings) -> BiasModel:
        """Alternate between item and user biases."""
        if min(self.user_damping, self.item_damping) < 0:
            raise ArgumentError(
                f"damping must not be negative, got {self.user_damping}, {self.item_damping}"
            )
        self._remember(ratings)
        self.mean_ = float(ratings.values.mean())
        deviations = ratings.values - self.mean_
        tol = self.tol * np.ptp(ratings.scale.values)
        self.user_bias_ = np.zeros(ratings.n_users)
        self.item_bias_ = np.zeros(ratings.n_items)
        for n_iter in range(1, self.max_iter + 1):
            rest = deviations - self.user_bias_[ratings.users]
            item_bias = _damped_means(ratings.items, rest, ratings.item_counts, self.item_damping)
            rest = deviations - item_bias[ratings.items]
            user_bias = _damped_means(ratings.users, rest, ratings.user_counts, self.user_damping)
            moved = max(
                np.abs(item_bias - self.item_bias_).max(), np.abs(user_bias - self.user_bias_).max()
            )
            self.item_bias_, self.user_bias_, self.n_iter_ = item_bias, user_bias, n_iter
            if moved <= tol:
                return self
        _warn_not_converged(self, moved, tol)
        return self

    def fold_in(self, ratings: Ratings) -> BiasModel:
        """A model with the biases of these users by (2), all item biases kept."""
        users, items = self._codes(
            ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items)
        )
        model = copy.copy(self)
        newcomers = ratings.user_ids.take(np.unique(ratings.users[users < 0]))
        model.user_ids_ = self.user_ids_.append(newcomers)
        users = codes_of(model.user_ids_, ratings.user_ids.take(ratings.users))
        counts = np.bincount(users, minlength=len(model.user_ids_))
        rest = ratings.values - self.mean_ - _or_zero(self.item_bias_, items)
        bias = _damped_means(users, rest, counts, self.user_damping)
        kept = np.concatenate([self.user_bias_, np.zeros(len(newcomers))])
        model.user_bias_ = np.where(counts > 0, bias, kept)
        return model

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Mean plus the two biases, within the scale."""
        user_codes, item_codes = self._codes(users, items)
        return self._clipped(self.baseline(user_codes, item_codes))

    def baseline(self, user_codes: np.ndarray, item_codes: np.ndarray) -> np.ndarray:
        """``mu + b_u + b_i`` by codes (-1 for the unknown), not clipped."""
        return (
            self.mean_
            + _or_zero(self.user_bias_, user_codes)
            + _or_zero(self.item_bias_, item_codes)
        )


@dataclass(eq=False)
class ItemKNN(_Baseline):
    """Item-based nearest neighbours around the biases, (5).

    Similarities are computed when they are asked for, one row of an item at a time, so
    that no items-by-items matrix is ever held; ``fit`` is quick and ``predict`` costs
    ``sum_v |I_v|`` over the users v of each distinct item. Where a user has no similar
    item, or user or item is unknown, the prediction is that of the biases.

    Parameters
    ----------
    k : int
        At most so many neighbours, those of the largest similarity; only positive ones.
    similarity : {"pearson", "cosine"}
        Whether the norms in (4) are over the users who rated both items, or over all
        users who rated one of them.
    shrinkage : float
        Pulls similarities that rest on few common users to 0, (4).
    user_damping, item_damping : float
        Of the biases, as in `BiasModel`.
    """

    k: int = 40
    similarity: Literal["pearson", "cosine"] = "pearson"
    shrinkage: float = 100.0
    user_damping: float = 15.0
    item_damping: float = 10.0

    def fit(self, ratings: Ratings) -> ItemKNN:
        """Fit the biases and keep the training errors (3) by item and by user."""
        if self.similarity not in ("pearson", "cosine"):
            raise ArgumentError(
                f'similarity must be "pearson" or "cosine", got {self.similarity!r}'
            )
        if self.k < 1 or self.shrinkage < 0:
            raise ArgumentError(
                f"need k >= 1 and shrinkage >= 0, got k={self.k}, shrinkage={self.shrinkage}"
            )
        self._remember(ratings)
        self.bias_ = BiasModel(self.user_damping, self.item_damping).fit(ratings)
        errors = ratings.values - self.bias_.baseline(ratings.users, ratings.items)  # (3)
        self._by_item = _compressed(ratings.items, ratings.users, errors, ratings.n_items)
        self._by_user = _compressed(ratings.users, ratings.items, errors, ratings.n_users)
        self._profiles = self._by_user
        norms = np.sqrt(np.bincount(ratings.items, errors**2, minlength=ratings.n_items))
        self._norms = norms if self.similarity == "cosine" else np.zeros(0)
        return self

    def fold_in(self, ratings: Ratings) -> ItemKNN:
        """A model that predicts for these users from these ratings, similarities kept."""
        self._codes([], [])
        model = copy.copy(self)
        model.bias_ = self.bias_.fold_in(ratings)
        model.user_ids_ = model.bias_.user_ids_
        users, items = model._codes(
            ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items)
        )
        known = items >= 0
        users, items, values = users[known], items[known], ratings.values[known]
        errors = values - model.bias_.baseline(users, items)
        start, old_items, old_errors = self._profiles
        old_users = np.repeat(np.arange(start.size - 1), np.diff(start))
        stays = ~np.isin(old_users, users)
        model._profiles = _compressed(
            np.concatenate([old_users[stays], users]),
            np.concatenate([old_items[stays], items]),
            np.concatenate([old_errors[stays], errors]),
            len(model.user_ids_),
        )
        return model

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Biases plus the weighted mean error on the neighbours, within the scale."""
        user_codes, item_codes = self._codes(users, items)
        values = self.bias_.baseline(user_codes, item_codes)
        known = np.flatnonzero((user_codes >= 0) & (item_codes >= 0))
        queries = known[np.argsort(item_codes[known], kind="stable")]
        distinct, first = np.unique(item_codes[queries], return_index=True)
        values[queries] += _neighbour_means(
            distinct,
            np.append(first, queries.size),
            user_codes[queries],
            *self._by_item,
            *self._by_user,
            *self._profiles,
            self._norms,
            float(self.shrinkage),
            self.k,
        )
        return self._clipped(values)


@dataclass(eq=False)
class ALSRanking(_Baseline):
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
        model = AlternatingLeastSquares(
            factors=self.factors,
            regularization=self.regularization,
            alpha=self.alpha,
            iterations=self.iterations,
            random_state=self.random_state,
            dtype=np.float64,
        )
        with threadpool_limits(1, "blas"):  # implicit runs its own threads
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


# ---- the arithmetic --------------------------------------------------------------------


def _damped_means(
    codes: np.ndarray, values: np.ndarray, counts: np.ndarray, damping: float
) -> np.ndarray:
    """``sum of values / (damping + count)`` for each code, 0 where there are none; (1), (2)."""
    sums = np.bincount(codes, values, minlength=counts.size)
    return np.divide(sums, counts + damping, out=np.zeros(counts.size), where=counts > 0)


def _or_zero(bias: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.where(codes >= 0, bias[codes], 0.0)


def _compressed(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start of each row, columns and values in row order, as in a CSR matrix."""
    order = np.argsort(rows, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    return start.astype(np.int64), columns[order].astype(np.int32), values[order]


def _warn_not_converged(model: Any, moved: float, tol: float) -> None:
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{type(model).__name__}: after {model.max_iter} rounds the biases still moved by "
        f"{moved:.2g} (tolerance {tol:.2g}): raise max_iter or the damping",
        ConvergenceWarning,
        stacklevel=3,
    )


@njit(cache=True)
def _neighbour_means(
    items: np.ndarray,
    starts: np.ndarray,
    users: np.ndarray,
    by_item_start: np.ndarray,
    by_item_users: np.ndarray,
    by_item_errors: np.ndarray,
    by_user_start: np.ndarray,
    by_user_items: np.ndarray,
    by_user_errors: np.ndarray,
    profile_start: np.ndarray,
    profile_items: np.ndarray,
    profile_errors: np.ndarray,
    norms: np.ndarray,
    shrinkage: float,
    k: int,
) -> np.ndarray:
    """The second term of (5) for the users ``users[starts[q]:starts[q + 1]]`` of each item."""
    n_items = by_item_start.size - 1
    sums = np.zeros((n_items, 4))  # e_i e_j, e_i^2, e_j^2, n_ij: one cache line an item
    similarity = np.zeros(n_items)
    touched = np.empty(n_items, dtype=np.int64)
    best = np.empty(k)
    best_errors = np.empty(k)
    means = np.zeros(users.size)
    for q in range(items.size):
        i = items[q]
        n_touched = 0
        for a in range(by_item_start[i], by_item_start[i + 1]):
            user, e_i = by_item_users[a], by_item_errors[a]
            for b in range(by_user_start[user], by_user_start[user + 1]):
                j, e_j = by_user_items[b], by_user_errors[b]
                if sums[j, 3] == 0.0:
                    touched[n_touched] = j
                    n_touched += 1
                sums[j, 0] += e_i * e_j
                sums[j, 1] += e_i * e_i
                sums[j, 2] += e_j * e_j
                sums[j, 3] += 1.0
        for t in range(n_touched):
            j = touched[t]
            norm = np.sqrt(sums[j, 1] * sums[j, 2]) if norms.size == 0 else norms[i] * norms[j]
            common = sums[j, 3] - 1.0
            if norm > 0.0 and common > 0.0 and j != i:
                similarity[j] = common / (common + shrinkage) * sums[j, 0] / norm  # (4)
            sums[j, :] = 0.0
        for p in range(starts[q], starts[q + 1]):
            n_best = 0
            for a in range(profile_start[users[p]], profile_start[users[p] + 1]):
                s = similarity[profile_items[a]]
                if s <= 0.0 or (n_best == k and s <= best[k - 1]):
                    continue
                place = n_best if n_best < k else k - 1
                while place > 0 and best[place - 1] < s:
                    best[place], best_errors[place] = best[place - 1], best_errors[place - 1]
                    place -= 1
                best[place], best_errors[place] = s, profile_errors[a]
                n_best = min(n_best + 1, k)
            if n_best > 0:
                means[p] = (best[:n_best] * best_errors[:n_best]).sum() / best[:n_best].sum()
        for t in range(n_touched):
            similarity[touched[t]] = 0.0
    return means
