"""Item-based nearest neighbours around the biases.

Equations here, with ``r_ui`` the rating of user u for item i and ``mu + b_u + b_i`` the damped
biases of `BiasModel`:

(1) ``e_ui = r_ui - mu - b_u - b_i``
(2) ``s_ij = (n_ij - 1) / (n_ij - 1 + shrinkage) * sum_u e_ui e_uj / (|e_i| |e_j|)``, over the
    ``n_ij`` users who rated both
(3) ``r^_ui = mu + b_u + b_i + sum_{j in N} s_ij e_uj / sum_{j in N} s_ij``, with ``N`` the items of
    u most similar to i

(1) and (3) are those of Koren, "Factor in the neighbors" (2010).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ordrec.data import Ratings
from ordrec.data.groups import Groups, group_starts
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.models.base import IdMappedModel, fits, folds_in
from ordrec.rating.baselines.bias import BiasModel
from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel import worker_count
from ordrec.runtime.parallel.spans import over_spans
from ordrec.storage import take, take_rows

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
    shrinkage : float
        Shrinks similarities that are based on few common users towards 0, (2).
    user_damping, item_damping : float
        Damping of the biases, as in `BiasModel`.
    """

    k: int = 40
    similarity: Literal["pearson", "cosine"] = "pearson"
    shrinkage: float = 100.0
    user_damping: float = 15.0
    item_damping: float = 10.0

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
        if self.k < 1 or self.shrinkage < 0:
            raise ArgumentError(
                f"need k >= 1 and shrinkage >= 0, got k={self.k}, shrinkage={self.shrinkage}"
            )

    def _index_items(self) -> None:
        """The training errors by item, and their norms where the similarity needs them."""
        start, items, errors = self._by_user
        users = np.repeat(np.arange(start.size - 1), np.diff(start))
        self._by_item = _compressed(items, users, errors, len(self.item_ids_))
        norms = np.sqrt(np.bincount(items, errors**2, minlength=len(self.item_ids_)))
        self._norms = norms if self.similarity == "cosine" else np.zeros(0)

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
        over_spans(
            _neighbour_means, self._operations(distinct), worker_count(None),
            min(self.k, len(self.item_ids_)), len(self.item_ids_),
            distinct, np.append(first, queries.size), user_codes[queries],
            *self._by_item, *self._by_user, *self._profiles,
            self._norms, float(self.shrinkage), means,
        )  # fmt: skip
        values[queries] += means
        return self._clipped(values)

    def _operations(self, items: np.ndarray) -> np.ndarray:
        """How many ratings the raters of each of these items have together."""
        start, users, _ = self._by_item
        ratings_of_user = np.diff(self._by_user[0])
        total = group_starts(ratings_of_user[users])
        return total[start[items + 1]] - total[start[items]]

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata for `ordrec.storage`."""
        arrays, metadata = self.bias_.to_state()
        for name, rows in (("trained", self._by_user), ("profiles", self._profiles)):
            columns = zip(("start", "items", "errors"), rows, strict=True)
            arrays |= {f"{name}.{part}": column for part, column in columns}
        return arrays, self._identity()[1] | {"bias": metadata}

    @classmethod
    def from_state(cls, arrays: Any, metadata: dict[str, Any]) -> Any:
        """Restore a model from the arrays and the metadata of a file."""
        model = cls._from_identity(arrays, metadata)
        model._check_parameters()
        model.bias_ = BiasModel.from_state(arrays, metadata["bias"])
        n_users, n_items = len(model.user_ids_), len(model.item_ids_)
        model._by_user = _take_compressed(arrays, "trained", n_items)
        model._profiles = _take_compressed(arrays, "profiles", n_items)
        if not model._by_user[0].size <= model._profiles[0].size == n_users + 1:
            raise ModelFileError(f"the profiles do not match {n_users} users")
        model._index_items()
        return model


# ---- computation -----------------------------------------------------------------------


def _compressed(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start of each row, columns and values in row order, as in a CSR matrix."""
    groups = Groups.of(rows, n_rows)
    return groups.start, columns[groups.order].astype(np.int32), values[groups.order]


def _take_compressed(
    arrays: Any, name: str, n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three arrays of `_compressed`, read from a file."""
    n_rows = take(arrays, f"{name}.start", np.int64, (None,)).size - 1
    start, items = take_rows(
        arrays, f"{name}.start", f"{name}.items", n_rows, n_columns, dtype=np.int32
    )
    return start, items, take(arrays, f"{name}.errors", np.float64, items.shape)


def _neighbour_means(first: int, stop: int, k: int, n_items: int, *columns: Any) -> None:
    """The second term of (3) for some of the items asked for; the work space is made here."""
    work = np.zeros((n_items, 4)), np.zeros(n_items), np.empty(n_items, dtype=np.int64)
    _add_neighbour_means(first, stop, *columns, *work, np.empty(k), np.empty(k))  # type: ignore[call-arg]


@compiled
def _add_neighbour_means(
    first_query,
    stop_query,
    items,
    starts,
    users,
    by_item_start,
    by_item_users,
    by_item_errors,
    by_user_start,
    by_user_items,
    by_user_errors,
    profile_start,
    profile_items,
    profile_errors,
    norms,
    shrinkage,
    means,
    sums,
    similarity,
    touched,
    best,
    best_errors,
):  # type: ignore[no-untyped-def]
    """The second term of (3) for the users ``users[starts[q]:starts[q + 1]]`` of each item.

    One function of plain loops: it takes a third of the time to compile of several functions with
    slices of arrays, and most processes predict once. ``sums`` has one row per item j, with the
    sums of e_i e_j, e_i^2, e_j^2 and 1 over the users who rated both; ``touched`` lists the items
    whose rows are not zero; ``best`` are the similarities of the neighbours, in descending order.
    """
    k = best.size
    for q in range(first_query, stop_query):
        i, n_touched = items[q], 0
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
            norm = math.sqrt(sums[j, 1] * sums[j, 2]) if norms.size == 0 else norms[i] * norms[j]
            common = sums[j, 3] - 1.0
            if norm > 0.0 and common > 0.0 and j != i:
                similarity[j] = common / (common + shrinkage) * sums[j, 0] / norm  # (2)
            sums[j, 0] = sums[j, 1] = sums[j, 2] = sums[j, 3] = 0.0

        for p in range(starts[q], starts[q + 1]):
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

        for t in range(n_touched):
            similarity[touched[t]] = 0.0
