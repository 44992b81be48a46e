"""Moments of pairs with a common owner against those of all pairs, and what they take."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.datasets import synthetic_long_tail, synthetic_ratings
from ordrec.kernels.items.moments import (
    GroupedEntries,
    common_moments,
    expected_bytes,
    group_entries,
    n_pairs,
    pair_moments,
)

# owners, entries and ratings: rows of one word and of several, sparse ones and full ones
SHAPES = {
    "square": (60, 150, 900),
    "dense": (40, 20, 500),
    "thin": (300, 400, 500),
    "one owner": (3, 200, 230),
    "nothing": (5, 7, 0),
}
MOST_PAIRS = "dense", "one owner"  # where most pairs have a common owner


def some_ratings(shape: str) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Owners and entries of ratings in any order; one entry in four is never rated."""
    n_owners, n_entries, n = SHAPES[shape]
    rng = np.random.default_rng(3)
    if shape == "one owner":
        owner = np.repeat([0, 1, 2], [180, 30, 20])
        entry = np.concatenate([rng.permutation(n_entries)[:k] for k in (180, 30, 20)])
        return owner, entry, n_owners, n_entries
    pairs = rng.permutation(n_owners * n_entries)[:n]
    owner, entry = pairs // n_entries, pairs % n_entries
    kept = entry % 4 > 0
    return owner[kept], entry[kept], n_owners, n_entries


def grouped(shape: str) -> GroupedEntries:
    owner, entry, n_owners, n_entries = some_ratings(shape)
    rng = np.random.default_rng(4)
    x, weight = rng.normal(size=(2, owner.size)), rng.uniform(0.1, 1.0, n_owners)
    return group_entries(owner, entry, x, n_owners, n_entries, weight)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_pairs_with_a_common_owner_are_those_of_the_dense_sums(shape: str, n_jobs: int) -> None:
    ratings, rng = grouped(shape), np.random.default_rng(5)
    n = ratings.n_entries
    features = [rng.normal(size=(n, 3)).astype(np.float32), np.ones((n, 1), np.float32)]
    dense = pair_moments(ratings, features)
    sparse = common_moments(ratings, features, n_jobs=n_jobs)
    for e in range(n):
        np.testing.assert_allclose(sparse.row(e, n), dense.row(e, n), rtol=1e-5, atol=1e-5)
    entries = np.arange(n)
    np.testing.assert_allclose(sparse.diagonal(entries), dense.diagonal(entries), rtol=1e-5)
    together = sum(dense.row(e, n)[: e + 1, 0].astype(bool).sum() for e in range(n))
    unrated = int((dense.diagonal(entries)[:, 0] == 0).sum())
    most = together + unrated > n_pairs(n) / 2
    assert most == (shape in MOST_PAIRS)
    # no pair that nobody rated both of, unless there are few of these
    assert len(sparse.table) == (n_pairs(n) if most else together + unrated)
    assert len(dense.table) == n_pairs(n)


@pytest.mark.parametrize("shape", SHAPES)
def test_few_rows_are_counted_one_by_one(shape: str) -> None:
    owner, entry, n_owners, n_entries = some_ratings(shape)
    kept = np.isin(entry, np.unique(entry)[:128])
    owner, entry = owner[kept], entry[kept]
    ratings = group_entries(owner, entry, np.zeros((1, owner.size)), n_owners, n_entries)
    pairs = common_moments(ratings, dtype=np.float32)
    words = pairs.index.bits.size
    expected = expected_bytes(owner, entry, n_owners, n_entries, n_sums=4)
    assert expected - pairs.table.nbytes == pytest.approx(20 * words, rel=1e-9)


@pytest.mark.parametrize("tail", [True, False])
def test_the_estimate_of_many_rows_is_close(tail: bool) -> None:
    if tail:
        ratings = synthetic_long_tail(900, 3000, n_ratings=9000, rare_items=0.6, rare_users=0.3)
    else:
        ratings = synthetic_ratings(700, 900, n_ratings=15_000, seed=1)
    codes = ratings.users.astype(np.int64), ratings.items.astype(np.int64)
    for owner, entry, n_owners, n_entries in (
        (*codes, ratings.n_users, ratings.n_items),
        (*codes[::-1], ratings.n_items, ratings.n_users),
    ):
        found = common_moments(
            group_entries(owner, entry, np.zeros((1, owner.size)), n_owners, n_entries),
            dtype=np.float32,
        )
        expected = expected_bytes(owner, entry, n_owners, n_entries, n_sums=4)
        assert expected == pytest.approx(found.nbytes, rel=0.12)
