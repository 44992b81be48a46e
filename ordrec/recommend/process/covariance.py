"""The two-sided Gaussian process: one covariance over all training ratings, never formed.

``r_ui = m + f_u(i) + g_i(u) + h(u, i) + noise``: f_u independent over users (covariance from the
item side without user u), g_i independent over items (from the user side without item i), h
shared (products). Ratings are ordered by user; the user side has its own order, ``by_item``.

Equations here, with ``D`` the noise variances (all 1 for Gaussian noise):

(1) ``(K + D) a = y``, by conjugate gradients
(2) mean at a new pair: ``k' a``
(3) ``d = diag (K + D)^-1``, by random signs z: the mean of ``z * (K + D)^-1 z``
(4) leave-one-out score: ``y - a / d``
(5) prior mean of a one-sided process: ``sum of the other users' x_vi / (n_i + damping)``
(6) ``log d`` regressed on logarithms of the diagonals of the inverted blocks, variances and
    counts; a tenth of what the probes say beyond that is kept
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordrec.features.matrix import Biases
from ordrec.recommend.process.owner_blocks import (
    assemble,
    diagonal,
    diagonal_of_inverses,
    invert,
    multiply,
)
from ordrec.recommend.process.pair_sums import Side
from ordrec.recommend.process.shared_features import Products
from ordrec.recommend.process.weights import Weights

__all__ = [
    "BlockInverse",
    "Covariance",
    "JointData",
    "Solved",
    "inverse_diagonal",
    "smoothed_diagonal",
    "solve",
]

ITEM_DAMPING = 3.0
SHARE_OF_REST = 0.5  # of the other components' variance, as noise of a user's block
TRUST_IN_PROBES = 0.1


@dataclass(frozen=True)
class JointData:
    """What the covariance is made of, for one set of training ratings.

    Attributes
    ----------
    users, items : int64 arrays
        Codes of the ratings, ordered by user.
    y : float64 array
        Centred and scaled ratings.
    item_side, user_side : Side
    products : Products
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
    y: np.ndarray
    item_side: Side
    user_side: Side
    products: Products
    by_item: np.ndarray
    popularity: tuple[np.ndarray, np.ndarray]
    bias: Biases
    item_kernels: tuple[str, ...]
    user_kernels: tuple[str, ...]
    two_sided: bool

    @property
    def n_users(self) -> int:
        """Users, the unknown one included."""
        return self.item_side.start.size - 1

    @property
    def n_items(self) -> int:
        """Items, the unknown one included."""
        return self.user_side.start.size - 1

    def prior_mean(self, items: np.ndarray, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(5), the user's own centred rating x taken off where he has seen the item."""
        if self.two_sided:
            return np.zeros(items.size)
        gram = self.item_side.gram
        total, count = gram[items, items, 1] - x, gram[items, items, 3] - seen
        return total / (count + ITEM_DAMPING)

    @cached_property
    def target(self) -> np.ndarray:
        """Training ratings less their prior mean."""
        side = self.item_side
        return self.y - self.prior_mean(side.entry, side.x, np.ones(side.x.size))


class Covariance:
    """``K`` for given weights: blocks in single precision, products as factors."""

    def __init__(self, data: JointData, weights: Weights, n_jobs: int = 1):
        self.data = data
        self.weights = weights
        self.n_jobs = n_jobs
        self.item_weights = weights.side("item", data.popularity[0])
        self.user_weights = weights.side("user", data.popularity[1])
        self.omega = data.products.variances(weights.products)
        self.has_products = bool(weights.products.any())

    @cached_property
    def item_blocks(self) -> np.ndarray:
        """Covariances of each user's items."""
        return assemble(self.data.item_side, self.item_weights, self.n_jobs)

    @cached_property
    def user_blocks(self) -> np.ndarray:
        """Covariances of each item's users."""
        return assemble(self.data.user_side, self.user_weights, self.n_jobs)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Variances at the training ratings."""
        data = self.data
        diag = diagonal(self.item_blocks, data.item_side.sizes).astype(np.float64)
        diag[data.by_item] += diagonal(self.user_blocks, data.user_side.sizes)
        if self.has_products:
            diag += data.products.diagonal(self.omega)
        return diag

    def release(self) -> None:
        """Let go of the blocks, which only solving needs."""
        self.__dict__.pop("item_blocks", None)
        self.__dict__.pop("user_blocks", None)

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        """``K`` times one vector or the columns of a batch."""
        data = self.data
        result = multiply(self.item_blocks, data.item_side.start, vectors, self.n_jobs)
        by_item = data.by_item
        theirs = multiply(self.user_blocks, data.user_side.start, vectors[by_item], self.n_jobs)
        result[by_item] += theirs
        if self.has_products:
            table = data.products.collect(vectors, self.n_jobs) * self.omega
            result += data.products.spread(table, self.n_jobs)
        return result


class BlockInverse:
    """Preconditioner: each user's block inverted exactly, with part of the rest as noise.

    It takes less than half the steps that the diagonal alone would need, at about one and a
    half times the cost of a step.
    """

    def __init__(self, K: Covariance, noise: np.ndarray):
        side = K.data.item_side
        rest = K.diagonal - diagonal(K.item_blocks, side.sizes)
        self.start, self.sizes, self.n_jobs = side.start, side.sizes, K.n_jobs
        # with one side it is the solution itself
        precision = np.float32 if K.data.two_sided else np.float64
        added = (noise + SHARE_OF_REST * rest).astype(precision)
        self.blocks = invert(K.item_blocks, side.start, added, K.n_jobs)

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        return multiply(self.blocks, self.start, vectors, self.n_jobs)

    @property
    def diagonal(self) -> np.ndarray:
        """Diagonal of the inverse."""
        return diagonal(self.blocks, self.sizes).astype(np.float64)


@dataclass(frozen=True)
class Solved:
    """Solution of a linear system, and how it was reached."""

    x: np.ndarray
    n_iter: int
    residual: float
    converged: bool


def solve(
    K: Covariance,
    right: np.ndarray,
    noise: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    start: np.ndarray | None = None,
    inverse: BlockInverse | None = None,
) -> Solved:
    """(1) by preconditioned conjugate gradients, for one right-hand side or a batch.

    Vectors are single precision, their products double. Stops when every residual is below
    ``tol`` times its right-hand side. ``inverse`` is the preconditioner for this noise, where it
    is at hand already.
    """
    D = noise.astype(np.float32)[(slice(None),) + (None,) * (right.ndim - 1)]
    M = inverse or BlockInverse(K, noise)
    b = right.astype(np.float32)
    x = np.zeros_like(b) if start is None else start.astype(np.float32)
    r = b.copy() if start is None else b - (K @ x + D * x)
    size = np.sqrt(_dots(b, b)) + 1e-30
    z = M @ r
    p, rz = z.copy(), _dots(r, z)
    worst = float(np.max(np.sqrt(_dots(r, r)) / size))
    n_iter = 0
    while worst > tol and n_iter < max_iter:
        q = K @ p + D * p
        step = rz / np.maximum(_dots(p, q), 1e-30)
        x += step.astype(np.float32) * p
        r -= step.astype(np.float32) * q
        z = M @ r
        rz_new = _dots(r, z)
        p = z + (rz_new / np.maximum(rz, 1e-30)).astype(np.float32) * p
        rz, n_iter = rz_new, n_iter + 1
        worst = float(np.max(np.sqrt(_dots(r, r)) / size))
    return Solved(x, n_iter, worst, worst <= tol)


def inverse_diagonal(
    K: Covariance,
    noise: np.ndarray,
    rng: np.random.Generator,
    *,
    n_probes: int,
    n_steps: int,
    inverse: BlockInverse | None = None,
) -> np.ndarray:
    """(3), kept between the bounds that any covariance obeys: ``1/(k + D) <= d <= 1/D``."""
    signs = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), (noise.size, n_probes))
    solved = solve(K, signs, noise, tol=1e-6, max_iter=n_steps, inverse=inverse).x
    d = np.einsum("nb,nb->n", signs, solved, dtype=np.float64) / n_probes
    return np.clip(d, 1.0 / (K.diagonal + noise), 1.0 / noise)


def smoothed_diagonal(
    K: Covariance, noise: np.ndarray, probed: np.ndarray, inverse: BlockInverse
) -> np.ndarray:
    """Probed diagonal, drawn to what the blocks alone tell of it, (6).

    A few probes are off by a tenth; the blocks' own inverses, the variances and the counts
    explain all but a twentieth.
    """
    data, j = K.data, K.data.by_item
    theirs = diagonal(K.user_blocks, data.user_side.sizes)
    rest = ((K.diagonal + noise)[j] - theirs).astype(np.float32)
    by_item = np.empty(noise.size)
    by_item[j] = diagonal_of_inverses(K.user_blocks, data.user_side.start, rest, K.n_jobs)
    counts = (np.bincount(codes)[codes] for codes in (data.users, data.items))
    columns = [inverse.diagonal, by_item, K.diagonal + noise, noise, *counts]
    X = np.column_stack([np.ones(noise.size), *(np.log(column) for column in columns)])
    target = np.log(probed)
    fit = X @ np.linalg.lstsq(X, target, rcond=None)[0]
    d = np.exp(fit + TRUST_IN_PROBES * (target - fit))
    return np.clip(d, 1.0 / (K.diagonal + noise), 1.0 / noise)


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of columns, summed in double precision."""
    return np.einsum("n...,n...->...", a, b, dtype=np.float64)
