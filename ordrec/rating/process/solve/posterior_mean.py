"""Posterior means of the joint process at new pairs, and their derivatives by the weights.

With ``K*`` the covariance between new pairs and training ratings, ``m`` the prior mean, ``a`` the
dual coefficients, ``e`` the derivative of a loss by the means, and
``gamma = (K + D)^-1 K*' e``:

(1) posterior mean ``m + K* a``
(2) ``K*' e``
(3) derivative of the loss by any weight ``e' (dK*) a - gamma' (dK) a`` (Rasmussen and Williams,
    chapter 5, by the chain rule)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordrec.rating.process.kernel.components import SMOOTHED
from ordrec.rating.process.solve.covariance import Covariance, JointData
from ordrec.rating.process.solve.owner_blocks import (
    Queries,
    cross,
    cross_adjoint,
    group_queries,
    quadratic_forms,
)

__all__ = ["NewPairs", "adjoint", "gradient", "new_pairs", "parts_of_mean"]


@dataclass(frozen=True)
class NewPairs:
    """Pairs of known users and items to predict, grouped for both sides."""

    users: np.ndarray
    items: np.ndarray
    by_user: Queries
    by_item: Queries


def new_pairs(
    data: JointData, users: np.ndarray, items: np.ndarray, time: np.ndarray | None
) -> NewPairs:
    """Group pairs by user and by item; ``time`` may be None, and is 0 where unknown."""
    users, items = users.astype(np.int64), items.astype(np.int64)
    no_time = np.zeros(users.size)
    return NewPairs(
        users,
        items,
        group_queries(data.item_side, users, items, no_time if time is None else time),
        group_queries(data.user_side, items, users, no_time),
    )


@dataclass(frozen=True)
class Parts:
    """The means (1) of pairs, and the unweighted sums ``k_c' a`` they consist of.

    ``item`` and ``user`` have one column per component of the side, ``table`` is the sum of the
    products over training ratings.
    """

    item: np.ndarray
    user: np.ndarray
    table: np.ndarray
    mean: np.ndarray


def parts_of_mean(
    K: Covariance, pairs: NewPairs, a: np.ndarray, table: np.ndarray | None = None
) -> Parts:
    """The posterior means (1) at new pairs, with their parts.

    ``table`` is the sum of the products over training ratings, if it is known already.
    """
    data, n_jobs = K.data, K.n_jobs
    item = cross(data.item_side, K.item_weights, pairs.by_user, a, n_jobs)
    user = cross(data.user_side, K.user_weights, pairs.by_item, a[data.by_item], n_jobs)
    queries = pairs.by_user
    mean = np.empty(pairs.users.size)
    mean[queries.order] = data.prior_mean(queries.entry, queries.x, queries.seen)  # (1)
    mean += item[:, : K.item_weights.weights.size] @ K.item_weights.weights
    mean += user[:, : K.user_weights.weights.size] @ K.user_weights.weights
    if table is None:
        table = data.products.adjoint(a.astype(np.float32), n_jobs)
    if K.has_products:
        mean += data.products.apply_at(K.omega * table, pairs.users, pairs.items)
    return Parts(item, user, table, mean)


def adjoint(K: Covariance, pairs: NewPairs, e: np.ndarray) -> np.ndarray:
    """(2): one number per training rating."""
    data, n_jobs = K.data, K.n_jobs
    result = cross_adjoint(data.item_side, K.item_weights, pairs.by_user, e, n_jobs)  # (2)
    theirs = cross_adjoint(data.user_side, K.user_weights, pairs.by_item, e, n_jobs)
    result[data.by_item] += theirs
    if K.has_products:
        table = data.products.adjoint_at(e, pairs.users, pairs.items) * K.omega
        result += data.products.apply(table, n_jobs)
    return result


def gradient(
    K: Covariance, pairs: NewPairs, parts: Parts, a: np.ndarray, gamma: np.ndarray, e: np.ndarray
) -> np.ndarray:
    """(3) by the logarithm of every weight, in the layout's order."""
    data, n_jobs = K.data, K.n_jobs
    # (3): item side, user side, products
    item = e @ parts.item - quadratic_forms(data.item_side, K.item_weights, gamma, a, n_jobs)
    j = data.by_item
    user = e @ parts.user - quadratic_forms(data.user_side, K.user_weights, gamma[j], a[j], n_jobs)
    table = data.products.adjoint_at(e, pairs.users, pairs.items)
    table -= data.products.adjoint(gamma.astype(np.float32), n_jobs)
    products = data.products.by_group(table * parts.table) * K.weights.products
    item_by_log, item_smooth = _by_log(item, K.item_weights.weights)
    user_by_log, user_smooth = _by_log(user, K.user_weights.weights)
    return np.concatenate([item_by_log, user_by_log, products, item_smooth, user_smooth])


def _by_log(by_term: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives by the logarithms of the weights and of the smoothing counts."""
    n = weights.size
    return by_term[:n] * weights, by_term[n:] * weights[list(SMOOTHED)]
