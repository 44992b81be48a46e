"""The pattern of who rated what, `RatingPattern`, of ratings in blocks of users.

With A the table that `RatingPattern` describes and A_b its rows of one block:

(1) ``Q <- orthonormal(sum_b A_b' (A_b Q))``, a few times: the leading right singular vectors
(2) ``Q'(A'A)Q = W diag(s^2) W'``, the singular values s and the vectors ``V = Q W``
(3) ``U_b = A_b V / s``, the left ones of a block
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ordrec.rating.factors.blocks import StoredBlock
from ordrec.rating.factors.row_priors import (
    DAMPING,
    POWER_STEPS,
    RatingPattern,
    mean_and_scale,
    pattern_features,
)

__all__ = ["block_pattern"]

EXTRA = 10  # vectors beyond those wanted, which make the others converge sooner


def block_pattern(
    blocks: list[StoredBlock],
    user_counts: np.ndarray,
    item_counts: np.ndarray,
    size: int,
) -> tuple[RatingPattern, np.ndarray]:
    """The pattern, without its users, and the features of the items; those of users are saved."""
    scales = [mean_and_scale(np.log1p(n[n > 0])) for n in (user_counts, item_counts)]
    size = min(size, min(user_counts.size, item_counts.size) - 1)
    of_item = 1.0 / np.sqrt(item_counts + DAMPING)
    basis, values = _right_vectors(blocks, of_item, size)
    first = values[0] if values.size else 1.0
    n_rated = int((item_counts > 0).sum())
    of_items = (of_item[:, None] * basis * np.sqrt(user_counts.size) / first).astype(np.float32)
    summed = np.zeros((item_counts.size, values.size))
    for block in blocks:
        ones, of_user = _ones(block, of_item.size), _of_users(block)
        left = of_user[:, None] * (ones @ (of_item[:, None] * basis)) / values  # (3)
        of_users = of_user[:, None] * left * np.sqrt(n_rated) / first
        summed += ones.T @ of_users.astype(np.float32)
        counts = block.ratings("user").counts
        block.save("features", pattern_features(ones @ of_items, counts, scales[0]))
    nobody = np.zeros((0, values.size), np.float32)
    pattern = RatingPattern(of_items, nobody, scales[0], scales[1])
    return pattern, pattern_features(summed, item_counts, scales[1])


def _right_vectors(
    blocks: list[StoredBlock],
    of_item: np.ndarray,
    size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The leading right singular vectors, (1) and (2), and the singular values."""
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
    kept = values > 1e-9 * values[0]
    return before @ W[:, leading[kept]], values[kept]


def _ones(block: StoredBlock, n_items: int) -> sparse.csr_array:
    """Who of the block rated what."""
    ratings = block.ratings("user")
    data = np.ones(ratings.others.size, np.float32)
    return sparse.csr_array(
        (data, ratings.others, ratings.start), shape=(block.n_users, n_items), copy=False
    )


def _of_users(block: StoredBlock) -> np.ndarray:
    return 1.0 / np.sqrt(block.ratings("user").counts + DAMPING)
