"""The pattern of who rated what, as coordinates of users and items.

In memory, the leading singular vectors of the table that `RatingPattern` describes are found by
random projection (Halko, Martinsson, Tropp, "Finding structure with randomness", SIAM Review 2011):
a few power steps from random vectors give a basis of the leading subspace, and a small
decomposition gives the rest. `sklearn.utils.extmath.randomized_svd` has the same numbers, but
importing it takes as long as fitting a small model.

For blocks of users on disk, with A the table and A_b its rows of one block:

(1) ``Q <- orthonormal(sum_b A_b' (A_b Q))``, a few times: the leading right singular vectors
(2) ``Q'(A'A)Q = W diag(s^2) W'``, the singular values s and the vectors ``V = Q W``
(3) ``U_b = A_b V / s``, the left ones of a block
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import linalg, sparse

from ordrec.data import Ratings
from ordrec.rating.factors.met import MetPairs
from ordrec.runtime.parallel import one_blas_thread
from ordrec.storage.schema import Array, Numbers

if TYPE_CHECKING:
    from ordrec.rating.factors.blocks import StoredBlock

__all__ = ["RatingPattern", "leading_svd", "pattern_of_blocks"]

DAMPING = 10.0  # ratings added to every row and column, so that rare ones do not dominate
POWER_STEPS = 5
SPREAD_OF_ROUNDING = 1e-9  # the standard deviation of equal numbers need not be exactly 0
EXTRA = 10  # vectors beyond those wanted, which make the others converge sooner


@dataclass(frozen=True)
class RatingPattern:
    """Coordinates of users and items, computed from who rated what, or met it without a rating.

    The singular vectors of the matrix ``x_ui / sqrt((n_u + DAMPING) (n_i + DAMPING))``, ``x_ui``
    being 1 where there is a rating (or an event, `ordrec.rating.factors.met`), each multiplied by
    its singular value relative to the first, so that a ridge shrinks the coefficients of the lesser
    ones more: further coordinates do little harm.

    Attributes
    ----------
    of_items, of_users : ndarray of shape (n_items or n_users, n_coordinates)
        What a rating of the item adds to its user's coordinates, and vice versa.
    user_counts, item_counts : (float, float)
        Mean and standard deviation of ``log(1 + n)`` over the rows with ratings.
    """

    stored: ClassVar = {
        "of_items": Array("items", "coordinates", dtype=np.float32, stored_as=np.float16),
        "of_users": Array("users", "coordinates", dtype=np.float32, stored_as=np.float16),
        "user_counts": Numbers(2, low=0),
        "item_counts": Numbers(2, low=0),
    }

    of_items: np.ndarray
    of_users: np.ndarray
    user_counts: tuple[float, float]
    item_counts: tuple[float, float]

    @classmethod
    def of(cls, ratings: Ratings, size: int, met: MetPairs | None = None) -> RatingPattern:
        """Find the coordinates of these ratings, and of pairs that met without one."""
        users, items = ratings.users, ratings.items
        if met is not None:
            users, items = met.joined(users, items)
        counts = (
            np.bincount(users, minlength=ratings.n_users),
            np.bincount(items, minlength=ratings.n_items),
        )
        size = min(size, min(ratings.n_users, ratings.n_items) - 1)
        scales = [_mean_and_scale(np.log1p(n[n > 0])) for n in counts]
        if size < 1:
            nothing = [np.zeros((n, 0), np.float32) for n in (ratings.n_items, ratings.n_users)]
            return cls(nothing[0], nothing[1], scales[0], scales[1])
        of_user, of_item = (1.0 / np.sqrt(n + DAMPING) for n in counts)
        entries = of_user[users] * of_item[items]
        table = sparse.csr_array(
            (entries, (users, items)), shape=(ratings.n_users, ratings.n_items)
        )
        with one_blas_thread():  # the same digits on every machine
            left, values, right = leading_svd(table, size, POWER_STEPS)
        positive = values > 1e-9 * values[0]
        n_users, n_items = ((n > 0).sum() for n in counts)
        by_items = of_item[:, None] * right[positive].T * np.sqrt(n_users) / values[0]
        by_users = of_user[:, None] * left[:, positive] * np.sqrt(n_items) / values[0]
        return cls(_rounded(by_items), _rounded(by_users), scales[0], scales[1])

    def user_features(self, users: np.ndarray, items: np.ndarray, n_users: int) -> np.ndarray:
        """Return the features of users: a constant, their number of ratings, the coordinates."""
        return _features(users, items, n_users, self.of_items, self.user_counts)

    def item_features(self, items: np.ndarray, users: np.ndarray, n_items: int) -> np.ndarray:
        """Return the features of items that these users rated."""
        return _features(items, users, n_items, self.of_users, self.item_counts)

    def extended(self, n_users: int, n_items: int) -> RatingPattern:
        """Return the pattern with further users and items, which add nothing to coordinates."""
        of_items, of_users = (
            np.vstack([basis, np.zeros((n_new, basis.shape[1]), np.float32)])
            for basis, n_new in ((self.of_items, n_items), (self.of_users, n_users))
        )
        return replace(self, of_items=of_items, of_users=of_users)

    @property
    def n_features(self) -> int:
        """Number of features: the constant, the number of ratings and the coordinates."""
        return 2 + self.of_items.shape[1]


def _features(
    rows: np.ndarray,
    others: np.ndarray,
    n_rows: int,
    basis: np.ndarray,
    scale: tuple[float, float],
) -> np.ndarray:
    counts = np.bincount(rows, minlength=n_rows)
    ones = sparse.csr_array(
        (np.ones(rows.size, np.float32), (rows, others)), shape=(n_rows, len(basis))
    )
    return _pattern_features(ones @ basis, counts, scale)


def _pattern_features(
    coordinates: np.ndarray, counts: np.ndarray, scale: tuple[float, float]
) -> np.ndarray:
    """Return a constant, the standardised number of ratings and the damped coordinates."""
    mean, spread = scale
    size = (np.log1p(counts) - mean) / spread if spread > 0 else np.zeros(counts.size)
    damped = coordinates / np.sqrt(counts + DAMPING)[:, None]
    return np.column_stack([np.ones(counts.size), size, damped])


def _rounded(coordinates: np.ndarray) -> np.ndarray:
    """Round to half precision, in which files have them, so that a stored model is the same."""
    return coordinates.astype(np.float16).astype(np.float32)


def _mean_and_scale(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation, as numbers for a model file; 0 where all are equal."""
    spread = float(values.std())
    return float(values.mean()), spread if spread > SPREAD_OF_ROUNDING else 0.0


# ---- in memory -----------------------------------------------------------------------------------


def leading_svd(
    A: sparse.csr_array, size: int, n_steps: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return left vectors (columns), singular values and right vectors (rows), largest first.

    Each left vector's entry of largest size is positive.

    Examples
    --------
    >>> A = sparse.csr_array(np.diag([3.0, 2.0, 1.0, 0.5]))
    >>> leading_svd(A, 2, n_steps=4)[1].round(6)
    array([3., 2.])
    """
    if A.shape[0] < A.shape[1]:
        right, values, left = _tall(sparse.csr_array(A.T), size, n_steps, seed)
        left, right = left.T, right.T
    else:
        left, values, right = _tall(A, size, n_steps, seed)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])])
    return (left * signs)[:, :size], values[:size], (right * signs[:, None])[:size]


def _tall(
    A: sparse.csr_array, size: int, n_steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decompose a tall matrix within the subspace that random vectors reach."""
    Q = np.random.RandomState(seed).normal(size=(A.shape[1], size + EXTRA))
    for _ in range(n_steps):
        Q, _ = linalg.lu(A @ Q, permute_l=True, check_finite=False)
        Q, _ = linalg.lu(A.T @ Q, permute_l=True, check_finite=False)
    Q, _ = linalg.qr(A @ Q, mode="economic", check_finite=False)
    U, values, right = linalg.svd(Q.T @ A, full_matrices=False, lapack_driver="gesdd")
    return Q @ U, values, right


# ---- in blocks of users --------------------------------------------------------------------------


def pattern_of_blocks(
    blocks: list[StoredBlock],
    user_counts: np.ndarray,
    item_counts: np.ndarray,
    size: int,
) -> tuple[RatingPattern, np.ndarray]:
    """Return the pattern without its users and the items' features; save those of the users."""
    scales = [_mean_and_scale(np.log1p(n[n > 0])) for n in (user_counts, item_counts)]
    size = min(size, min(user_counts.size, item_counts.size) - 1)
    of_item = 1.0 / np.sqrt(item_counts + DAMPING)
    basis, values = _right_vectors(blocks, of_item, size)
    first = values[0] if values.size else 1.0
    n_rated = int((item_counts > 0).sum())
    of_items = _rounded(of_item[:, None] * basis * np.sqrt(user_counts.size) / first)
    summed = np.zeros((item_counts.size, values.size))
    for block in blocks:
        ones, of_user = _ones(block, of_item.size), _of_users(block)
        left = of_user[:, None] * (ones @ (of_item[:, None] * basis)) / values  # (3)
        of_users = of_user[:, None] * left * np.sqrt(n_rated) / first
        summed += ones.T @ _rounded(of_users)
        counts = block.ratings("user").counts
        block.save("features", _pattern_features(ones @ of_items, counts, scales[0]))
    nobody = np.zeros((0, values.size), np.float32)
    pattern = RatingPattern(of_items, nobody, scales[0], scales[1])
    return pattern, _pattern_features(summed, item_counts, scales[1])


def _right_vectors(
    blocks: list[StoredBlock],
    of_item: np.ndarray,
    size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading right singular vectors, (1) and (2), and the singular values."""
    if size < 1:
        return np.zeros((of_item.size, 0)), np.zeros(0)
    width = min(size + EXTRA, of_item.size)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(of_item.size, width)))[0]
    for _ in range(POWER_STEPS + 1):
        before, product = Q, np.zeros_like(Q)
        for block in blocks:
            ones, of_user = _ones(block, of_item.size), _of_users(block)
            product += ones.T @ (of_user[:, None] ** 2 * (ones @ (of_item[:, None] * Q)))
        product *= of_item[:, None]
        Q = np.linalg.qr(product)[0]  # (1)
    squares, W = np.linalg.eigh(before.T @ product)  # (2)
    leading = np.argsort(squares)[::-1][:size]
    values = np.sqrt(np.maximum(squares[leading], 0.0))
    positive = values > 1e-9 * values[0]
    return before @ W[:, leading[positive]], values[positive]


def _ones(block: StoredBlock, n_items: int) -> sparse.csr_array:
    """Return who of the block rated what, as a table of ones."""
    ratings = block.ratings("user")
    data = np.ones(ratings.others.size, np.float32)
    return sparse.csr_array(
        (data, ratings.others, ratings.start), shape=(block.n_users, n_items), copy=False
    )


def _of_users(block: StoredBlock) -> np.ndarray:
    return 1.0 / np.sqrt(block.ratings("user").counts + DAMPING)
