"""Means of the joint process at new pairs, and their derivatives by the weights.

With ``K_c`` one component, ``e`` the derivative of a loss by the predictions ``p = K* a`` and
``gamma = (K + D)^-1 K*' e``, the loss has by any weight the derivative (Rasmussen and Williams,
chapter 5, by the chain rule):

(1) ``e' (dK*) a - gamma' (dK) a``
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordrec.recommend.process.covariance import Covariance, JointData
from ordrec.recommend.process.owner_blocks import (
    Queries,
    cross,
    cross_adjoint,
    forms,
    group_queries,
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
    """Group pairs by user and by item; ``time`` may be None, or 0 where unknown."""
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
    """Unweighted sums ``k_c' a`` for each pair: both sides by component, products as a table."""

    item: np.ndarray
    user: np.ndarray
    table: np.ndarray
    mean: np.ndarray


def parts_of_mean(
    K: Covariance, pairs: NewPairs, a: np.ndarray, table: np.ndarray | None = None
) -> Parts:
    """The mean at new pairs (2 of `ordrec.recommend.process.covariance`), and what it is made of.

    ``table`` is the products' sum over training ratings, where it is known already.
    """
    data, n_jobs = K.data, K.n_jobs
    item = cross(data.item_side, K.item_weights, pairs.by_user, a, n_jobs)
    user = cross(data.user_side, K.user_weights, pairs.by_item, a[data.by_item], n_jobs)
    queries = pairs.by_user
    mean = np.empty(pairs.users.size)
    mean[queries.order] = data.prior_mean(queries.entry, queries.x, queries.seen)
    mean += item[:, : K.item_weights.weights.size] @ K.item_weights.weights
    mean += user[:, : K.user_weights.weights.size] @ K.user_weights.weights
    if table is None:
        table = data.products.collect(a.astype(np.float32), n_jobs)
    if K.has_products:
        mean += data.products.at(K.omega * table, pairs.users, pairs.items)
    return Parts(item, user, table, mean)


def adjoint(K: Covariance, pairs: NewPairs, e: np.ndarray) -> np.ndarray:
    """``K*' e``: one number a training rating."""
    data, n_jobs = K.data, K.n_jobs
    result = cross_adjoint(data.item_side, K.item_weights, pairs.by_user, e, n_jobs)
    theirs = cross_adjoint(data.user_side, K.user_weights, pairs.by_item, e, n_jobs)
    result[data.by_item] += theirs
    if K.has_products:
        table = data.products.collect_at(e, pairs.users, pairs.items) * K.omega
        result += data.products.spread(table, n_jobs)
    return result


def gradient(
    K: Covariance, pairs: NewPairs, parts: Parts, a: np.ndarray, gamma: np.ndarray, e: np.ndarray
) -> np.ndarray:
    """(1) by the logarithm of every weight, in the layout's order."""
    data, n_jobs = K.data, K.n_jobs
    item = e @ parts.item - forms(data.item_side, K.item_weights, gamma, a, n_jobs)
    j = data.by_item
    user = e @ parts.user - forms(data.user_side, K.user_weights, gamma[j], a[j], n_jobs)
    table = data.products.collect_at(e, pairs.users, pairs.items)
    table -= data.products.collect(gamma.astype(np.float32), n_jobs)
    products = data.products.by_group(table * parts.table) * K.weights.products
    item_by_log, item_smooth = _by_log(item, K.item_weights.weights)
    user_by_log, user_smooth = _by_log(user, K.user_weights.weights)
    return np.concatenate([item_by_log, user_by_log, products, item_smooth, user_smooth])


def _by_log(by_term: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives by log-weights and by log-smoothing counts of components 0, 1 and 3."""
    n = weights.size
    return by_term[:n] * weights, by_term[n:] * weights[[0, 1, 3]]
