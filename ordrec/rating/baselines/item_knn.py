"""Item-based nearest neighbours around the biases.

Equations here, with ``r_ui`` the rating of user u for item i and ``mu + b_u + b_i`` the damped
biases of `BiasModel`:

(1) ``e_ui = r_ui - mu - b_u - b_i``
(2) ``s_ij = (n_ij - 1) / (n_ij - 1 + damping) * sum_u e_ui e_uj / (|e_i| |e_j|)``, over the
    ``n_ij`` users who rated both
(3) ``r^_ui = mu + b_u + b_i + sum_{j in N} s_ij e_uj / sum_{j in N} s_ij``, with ``N`` the items of
    u most similar to i

(1) and (3) are those of Koren, "Factor in the neighbors" (2010).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ordrec.data import Ratings
from ordrec.data.groups import Groups
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.kernels.items.moments import group_entries
from ordrec.models.base import IDENTITY, IdMappedModel, fits, folds_in
from ordrec.rating.baselines.bias import BiasModel
from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel import worker_count
from ordrec.runtime.parallel.spans import over_spans
from ordrec.storage.schema import Member, Table

__all__ = ["ItemKNN"]


@dataclass(eq=False)
class ItemKNN(IdMappedModel):
    """Item-based nearest neighbours around the biases, (3).

    Similarities are computed on demand, for one item at a time, so that no
    items-by-items matrix is ever held in memory; ``fit`` is quick and ``predict`` costs
    ``sum_v |I_v|`` over the users v of each distinct item. Where a user has no similar
    item, or user or item is unknown, the prediction is that of the biases.

    Parameters
    ----------
    k : int
        Maximum number of neighbours: the items with the largest positive similarities.
    similarity : {"pearson", "cosine"}
        Whether the norms in (2) are over the users who rated both items, or over all
        users who rated one of them.
    damping : float
        Count added to that of the common users in (2): similarities that are based on few of them
        shrink towards 0.
    user_damping, item_damping : float
        Damping of the biases, as in `BiasModel`.
    """

    stored: ClassVar = IDENTITY | {
        "bias_": Member(BiasModel, *IDENTITY),
        "_by_user": Table("trained_users", "items", dtype=np.int32, parts=True),
        "_profiles": Table("users", "items", dtype=np.int32, parts=True),
    }

    k: int = 40
    similarity: Literal["pearson", "cosine"] = "pearson"
    damping: float = 100.0
    user_damping: float = 15.0
    item_damping: float = 10.0
    search_space: ClassVar[dict[str, Any]] = BiasModel.search_space | {
        "k": (5, 200, "log"),
        "damping": (1.0, 1000.0, "log"),
        "similarity": ["pearson", "cosine"],
    }

    @fits
    def fit(self, ratings: Ratings) -> ItemKNN:
        """Fit the biases and keep the training errors (1) by item and by user."""
        self._check_parameters()
        self._remember(ratings)
        self.bias_ = BiasModel(self.user_damping, self.item_damping).fit(ratings)
        errors = ratings.values - self.bias_.baseline(ratings.users, ratings.items)  # (1)
        self._by_user = _compressed(ratings.users, ratings.items, errors, ratings.n_users)
        self._profiles = self._by_user
        self._index_items()
        return self

    def _check_parameters(self) -> None:
        if self.similarity not in ("pearson", "cosine"):
            raise ArgumentError(
                f'similarity must be "pearson" or "cosine", got {self.similarity!r}'
            )
        if self.k < 1 or self.damping < 0:
            raise ArgumentError(
                f"need k >= 1 and damping >= 0, got k={self.k}, damping={self.damping}"
            )

    def _index_items(self) -> None:
        """Group the training errors by item too, with the norms of the similarity."""
        start, items, errors = self._by_user
        n_users, n_items = start.size - 1, len(self.item_ids_)
        users = np.repeat(np.arange(n_users), np.diff(start))
        self._trained = group_entries(users, items, errors[None], n_users, n_items)
        norms = np.sqrt(np.bincount(items, errors**2, minlength=n_items))
        # pearson: norms are over the users who rated both
        self._norms = np.zeros(0) if self.similarity == "pearson" else norms

    @folds_in
    def fold_in(self, ratings: Ratings) -> ItemKNN:
        """Return a model that predicts for these users from these ratings, same similarities.

        Unknown items are similar to none: their ratings count in the users' biases alone, with a
        warning.
        """
        _, users, items = self._with_users_of(ratings)
        self._warn_of_unknown_items(
            ratings.item_ids.take(ratings.items), items, "count in the biases of their users alone"
        )
        model = copy.copy(self)
        model.bias_ = self.bias_.fold_in(ratings)
        model.user_ids_ = model.bias_.user_ids_
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
        """Return the prediction (3) for each pair, clipped to the scale."""
        user_codes, item_codes = self._codes(users, items)
        values = self.bias_.baseline(user_codes, item_codes)
        known = np.flatnonzero((user_codes >= 0) & (item_codes >= 0))
        queries = known[np.argsort(item_codes[known], kind="stable")]
        distinct, first = np.unique(item_codes[queries], return_index=True)
        means = np.zeros(queries.size)
        asked = distinct, np.append(first, queries.size), user_codes[queries]
        over_spans(
            _add_neighbour_means, self._trained.cost[distinct], worker_count(None), asked,
            self._trained, self._profiles, self._norms, float(self.damping),
            min(self.k, len(self.item_ids_)), means,
        )  # fmt: skip
        values[queries] += means
        return self._clipped(values)

    def check_stored(self) -> None:
        """Check that there is a profile for each user, and index the items."""
        self._check_parameters()
        if not self._by_user[0].size <= self._profiles[0].size:
            raise ModelFileError(f"the profiles do not match {len(self.user_ids_)} users")
        self._index_items()


# ---- computation -----------------------------------------------------------------------


def _compressed(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start of each row, columns and values in row order, as in a CSR matrix."""
    groups = Groups.of(rows, n_rows)
    return groups.start, columns[groups.order].astype(np.int32), values[groups.order]


@compiled
def _add_neighbour_means(first, stop, queries, ratings, profiles, norms, damping, k, means):  # type: ignore[no-untyped-def]
    """The second term of (3) for the users who ask for each of some items.

    ``queries`` are distinct items, where the users of each begin, and these users; ``ratings`` are
    the training errors e as `GroupedEntries`; ``profiles`` are the users' own ratings as
    `_compressed` has them. Without ``norms`` those of (2) are over common users. Pair moments have
    three sums more than these four, which would take half as long again.
    """
    items, query_start, users = queries
    profile_start, profile_items, profile_errors = profiles
    start, entry, x, entry_start, owner, entry_x, _ = ratings
    n_items = entry_start.size - 1
    sums, similarity = np.zeros((n_items, 4)), np.zeros(n_items)  # of 1, e_i e_j, e_i^2, e_j^2
    similar = np.empty(n_items + 1, np.int64)  # those with users in common with the item
    best, best_errors = np.empty(k), np.empty(k)  # of the neighbours, the most similar first
    for q in range(first, stop):
        i, n_similar = items[q], 0
        for a in range(entry_start[i], entry_start[i + 1]):
            user, mine = owner[a], entry_x[0, a]
            for b in range(start[user], start[user + 1]):
                j, other = entry[b], x[0, b]
                similar[n_similar] = j  # without a branch, which could not be predicted
                n_similar += sums[j, 0] == 0.0
                sums[j, 0] += 1.0
                sums[j, 1] += mine * other
                sums[j, 2] += mine * mine
                sums[j, 3] += other * other
        for t in range(n_similar):
            j = similar[t]
            norm = norms[i] * norms[j] if norms.size else math.sqrt(sums[j, 2] * sums[j, 3])
            common = sums[j, 0] - 1.0
            if norm > 0.0 and common > 0.0 and j != i:
                similarity[j] = common / (common + damping) * sums[j, 1] / norm  # (2)
            sums[j, 0] = sums[j, 1] = sums[j, 2] = sums[j, 3] = 0.0

        for p in range(query_start[q], query_start[q + 1]):
            user, n_best = users[p], 0
            for a in range(profile_start[user], profile_start[user + 1]):
                s = similarity[profile_items[a]]
                if s <= 0.0 or (n_best == k and s <= best[k - 1]):
                    continue
                if n_best < k:
                    n_best += 1
                place = n_best - 1
                while place > 0 and best[place - 1] < s:  # sorts the new neighbour in
                    best[place] = best[place - 1]
                    best_errors[place] = best_errors[place - 1]
                    place -= 1
                best[place] = s
                best_errors[place] = profile_errors[a]
            total, weight = 0.0, 0.0
            for a in range(n_best):
                total += best[a] * best_errors[a]
                weight += best[a]
            means[p] = total / weight if n_best else 0.0  # (3)

        for t in range(n_similar):
            similarity[similar[t]] = 0.0
