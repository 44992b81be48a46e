"""The two-sided Gaussian process: one covariance over all training ratings, never formed.

Equations here, with u a user, i an item and ``r_ui`` a rating:

(1) ``r_ui = m + f_u(i) + g_i(u) + h(u, i) + noise``: f_u independent over users (covariance from
    the item side without user u), g_i independent over items (from the user side without item
    i), h shared by all (products of features)
(2) ``K = item blocks + user blocks + products``
(3) prior mean of a one-sided process: ``sum of the other users' x_vi / (n_i + damping)``
(4) preconditioner: the inverse of ``item blocks + D + half of the rest of K's diagonal``

Ratings are ordered by user; the user side has an order of its own, ``by_item``. The noise
variances ``D`` are all 1 for Gaussian noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordrec.features.matrix import Biases
from ordrec.rating.process.kernel.pair_sums import COMMON_SUM, OWN_SUM, OwnerSide
from ordrec.rating.process.kernel.shared_features import SharedFeatures
from ordrec.rating.process.kernel.weights import Weights
from ordrec.rating.process.solve.owner_blocks import Blocks, assemble, diagonal, invert, multiply

__all__ = ["BlockInverse", "Covariance", "JointData"]

ITEM_DAMPING = 3.0
SHARE_OF_REST = 0.5  # of the other components' variance, as noise of a user's block
LARGEST_INVERTED = 512  # rows of a block


@dataclass(frozen=True)
class JointData:
    """The ingredients of the covariance for one set of training ratings.

    Attributes
    ----------
    users, items : int64 arrays
        Codes of the ratings, ordered by user.
    levels : int64 array
        Zero-based ranks of the ratings, in the same order.
    y : float64 array
        Centred and scaled ratings.
    item_side, user_side : OwnerSide
    products : SharedFeatures
    by_item : int64 array
        The order of the ratings on the user side.
    popularity : (float64 array, float64 array)
        Centre and spread of ``log(1 + n)`` of items and of users.
    bias : Biases
        Damped biases of the scaled ratings.
    item_kernels, user_kernels : tuple of str
        Names of the kernels of side information.
    two_sided : bool
        Whether there is a user side; if not, the prior mean is the damped item mean.
    """

    users: np.ndarray
    items: np.ndarray
    levels: np.ndarray
    y: np.ndarray
    item_side: OwnerSide
    user_side: OwnerSide
    products: SharedFeatures
    by_item: np.ndarray
    popularity: tuple[np.ndarray, np.ndarray]
    bias: Biases
    item_kernels: tuple[str, ...]
    user_kernels: tuple[str, ...]
    two_sided: bool

    @property
    def n_users(self) -> int:
        """Number of users, including the unknown one."""
        return self.item_side.start.size - 1

    @property
    def n_items(self) -> int:
        """Number of items, including the unknown one."""
        return self.user_side.start.size - 1

    def prior_mean(self, items: np.ndarray, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(3) without the user's own centred rating ``x``, given where ``seen``; else 0."""
        if self.two_sided:
            return np.zeros(items.size)
        moments = self.item_side.pairs.diagonal(items)
        total, count = moments[:, OWN_SUM] - x, moments[:, COMMON_SUM] - seen
        return total / (count + ITEM_DAMPING)  # (3)

    @cached_property
    def target(self) -> np.ndarray:
        """Training ratings less their prior mean."""
        side = self.item_side
        return self.y - self.prior_mean(side.entry, side.x, np.ones(side.x.size))


class Covariance:
    """``K`` of (2) for given weights: blocks in 16 bits, products as factors."""

    def __init__(self, data: JointData, weights: Weights, n_jobs: int = 1):
        self.data = data
        self.weights = weights
        self.n_jobs = n_jobs
        self.item_weights = weights.side("item", data.popularity[0])
        self.user_weights = weights.side("user", data.popularity[1])
        self.omega = data.products.variances(weights.products)
        self.has_products = bool(weights.products.any())

    @cached_property
    def item_blocks(self) -> Blocks:
        """Covariances of each user's items."""
        return assemble(self.data.item_side, self.item_weights, self.n_jobs)

    @cached_property
    def user_blocks(self) -> Blocks:
        """Covariances of each item's users."""
        return assemble(self.data.user_side, self.user_weights, self.n_jobs)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Variances at the training ratings."""
        data = self.data
        diag = diagonal(self.item_blocks)
        diag[data.by_item] += diagonal(self.user_blocks)
        if self.has_products:
            diag += data.products.diagonal(self.omega)
        return diag

    def release(self) -> None:
        """Free the blocks, which only solving needs."""
        self.__dict__.pop("item_blocks", None)
        self.__dict__.pop("user_blocks", None)

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        """``K`` times one vector or the columns of a batch, (2)."""
        data, by_item = self.data, self.data.by_item
        result = multiply(self.item_blocks, vectors, self.n_jobs)
        result[by_item] += multiply(self.user_blocks, vectors[by_item], self.n_jobs)
        if self.has_products:
            table = data.products.adjoint(vectors, self.n_jobs) * self.omega
            result += data.products.apply(table, self.n_jobs)
        return result


class BlockInverse:
    """Preconditioner (4): each user's block inverted, with part of the rest as noise.

    It takes less than half the steps that the diagonal alone would need, and each step costs
    about one and a half times as much. Blocks of very active users are cut into parts: their
    inverses would take longer than the steps that they save.
    """

    def __init__(self, K: Covariance, noise: np.ndarray):
        rest = K.diagonal - diagonal(K.item_blocks)
        added = (noise + SHARE_OF_REST * rest).astype(np.float32)  # (4)
        self.n_jobs = K.n_jobs
        self.blocks = invert(K.item_blocks, added, LARGEST_INVERTED, K.n_jobs)

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        return multiply(self.blocks, vectors, self.n_jobs)

    @property
    def diagonal(self) -> np.ndarray:
        """Diagonal of the inverse."""
        return diagonal(self.blocks)
