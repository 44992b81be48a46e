"""Weights of blocks of side features: against brute force, with noise, with little data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from ordrec.features.side.weights import PRIOR, PRIOR_PAIRS, block_weights

N_OWNERS, N_ENTRIES = 80, 30


def features(rng: np.random.Generator, width: int = 3) -> np.ndarray:
    """Categories as rows of an identity matrix."""
    return np.eye(width)[rng.integers(0, width, N_ENTRIES)]


def residuals_of(rng: np.random.Generator, blocks: list[np.ndarray], share: float = 0.5):
    """Every owner likes some categories of the first block; noise of variance 1."""
    owners, entries = np.nonzero(rng.random((N_OWNERS, N_ENTRIES)) < share)
    liking = rng.normal(size=(N_OWNERS, blocks[0].shape[1]))
    signal = np.einsum("nk,nk->n", liking[owners], blocks[0][entries])
    return owners, entries, signal + rng.normal(size=owners.size)


def test_weights_equal_a_regression_over_all_pairs():
    rng = np.random.default_rng(0)
    blocks = [features(rng), features(rng, 4), rng.normal(size=(N_ENTRIES, 2))]
    owners, entries, r = residuals_of(rng, blocks)
    rows, products = [], []
    for owner in range(N_OWNERS):
        own = np.flatnonzero(owners == owner)
        for i in own:
            for j in own[own != i]:
                rows.append([block[entries[i]] @ block[entries[j]] for block in blocks])
                products.append(r[i] * r[j] / np.mean(r**2))
    centred = np.array(rows) - np.mean(rows, axis=0)
    known = np.sqrt(PRIOR_PAIRS) * np.eye(3)
    target = np.concatenate([products - np.mean(products), known.sum(axis=1) * PRIOR])
    expected = optimize.nnls(np.vstack([centred, known]), target)[0]
    got = block_weights(owners, entries, r, np.zeros(N_ENTRIES), 0.0, blocks)
    np.testing.assert_allclose(got, expected, atol=1e-9)
    assert got[0] > 0.2 > 0.02 > got[1:].max()


def test_with_few_ratings_all_blocks_count_the_same():
    rng = np.random.default_rng(1)
    blocks = [features(rng), features(rng)]
    got = block_weights(
        *(column[:8] for column in residuals_of(rng, blocks)), np.zeros(N_ENTRIES), 5.0, blocks
    )
    np.testing.assert_allclose(got, PRIOR, rtol=0.2)


def test_a_block_that_explains_the_biases_alone_counts_too():
    rng = np.random.default_rng(2)
    blocks = [features(rng), features(rng)]
    owners, entries, r = residuals_of(rng, [np.zeros((N_ENTRIES, 1))])
    biases = blocks[1] @ [-1.0, 0.0, 1.0] + 0.1 * rng.normal(size=N_ENTRIES)
    without = block_weights(owners, entries, r, np.zeros(N_ENTRIES), 5.0, blocks)
    weights = block_weights(owners, entries, r, biases, 5.0, blocks)
    assert weights[1] - without[1] > 3 * (weights[0] - without[0])


@pytest.mark.parametrize("r", [np.zeros(40), np.ones(40)])
def test_residuals_without_spread_give_finite_weights(r):
    rng = np.random.default_rng(3)
    owners, entries = np.divmod(np.arange(40), 10)
    blocks = [features(rng)[:10], np.zeros((10, 2))]
    weights = block_weights(owners, entries, r, np.zeros(10), 5.0, blocks)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
