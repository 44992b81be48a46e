"""Synthetic ratings: exact numbers, no duplicates, deterministic, and true to their model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec.data import synthetic
from ordrec.datasets import latent_model, synthetic_chunks, synthetic_long_tail, synthetic_ratings
from ordrec.errors import ArgumentError


@given(
    n_users=st.integers(1, 40),
    n_items=st.integers(1, 40),
    share=st.floats(0, 1),
    popularity=st.sampled_from([0.0, 0.8, 3.0]),
    n_ranks=st.integers(2, 7),
    n_factors=st.integers(0, 3),
    seed=st.integers(0, 5),
)
def test_exactly_n_distinct_pairs(n_users, n_items, share, popularity, n_ranks, n_factors, seed):
    n_ratings = max(1, round(share * n_users * n_items))
    ratings = synthetic_ratings(
        n_users, n_items, n_ratings=n_ratings, popularity=popularity, n_ranks=n_ranks,
        n_factors=n_factors, seed=seed,
    )  # fmt: skip
    assert ratings.n_ratings == n_ratings
    pairs = set(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))
    assert len(pairs) == n_ratings
    assert ratings.items.max() < n_items
    assert ratings.scale.n_ranks == n_ranks
    assert ratings.ranks.min() >= 1
    assert ratings.ranks.max() <= n_ranks
    if n_ratings >= n_users:
        assert ratings.user_counts.min() >= 1


def test_pieces_change_nothing_but_the_draw(monkeypatch):
    whole = synthetic_ratings(300, 200, n_ratings=6000, seed=3)
    monkeypatch.setattr(synthetic, "PIECE", 500)
    pieces = synthetic_ratings(300, 200, n_ratings=6000, seed=3)
    assert pieces.n_ratings == whole.n_ratings == 6000
    assert pieces.users.tolist() == whole.users.tolist()
    keys = pieces.users.astype(np.int64) * 200 + pieces.items
    assert len(set(keys.tolist())) == 6000


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 1200), piece=st.sampled_from([90, 400, 10_000]), seed=st.integers(0, 3))
def test_chunks_are_the_ratings_whatever_their_size(rows, piece, seed):
    options = {"n_ratings": 1000, "seed": seed, "dated": True}
    before, synthetic.PIECE = synthetic.PIECE, piece
    try:
        whole = synthetic_ratings(80, 60, **options)
        chunks = list(synthetic_chunks(80, 60, rows=rows, **options))
    finally:
        synthetic.PIECE = before
    frames = [chunk.to_frame() for chunk in chunks]
    assert np.concatenate([chunk.user_ids for chunk in chunks]).tolist() == list(range(80))
    for name in ("user", "item", "rating", "timestamp"):
        parts = np.concatenate([frame[name] for frame in frames])
        assert (parts == whole.to_frame()[name].to_numpy()).all()
    assert all(rows <= len(frame) for frame in frames[:-1])


def test_the_seed_decides():
    one, two = (synthetic_ratings(80, 60, n_ratings=900, seed=7, dated=True) for _ in range(2))
    assert one.to_frame().equals(two.to_frame())
    other = synthetic_ratings(80, 60, n_ratings=900, seed=8, dated=True)
    assert not one.to_frame().equals(other.to_frame())


def test_ratings_follow_the_model():
    options = {"n_factors": 3, "n_ranks": 5, "noise": 0.6, "seed": 5}
    ratings = synthetic_ratings(400, 300, n_ratings=60_000, **options)
    model = latent_model(400, 300, **options)
    assert (np.diff(model.thresholds, axis=1) > 0).all()
    chances = model.probabilities(ratings.users, ratings.items)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    hit = ratings.levels[:, None] == np.arange(5)
    # in every class and every tenth of confidence the frequencies are the probabilities
    for rank in range(5):
        order = np.argsort(chances[:, rank]).reshape(10, -1)
        expected, seen = chances[order, rank].mean(axis=1), hit[order, rank].mean(axis=1)
        error = np.sqrt(expected * (1 - expected) / order.shape[1]) + 1e-4
        assert (np.abs(seen - expected) < 4.5 * error).all()


def test_popular_items_are_rated_more():
    skewed = synthetic_ratings(500, 400, n_ratings=20_000, popularity=1.0, seed=1)
    flat = synthetic_ratings(500, 400, n_ratings=20_000, popularity=0.0, seed=1)
    assert np.sort(skewed.item_counts)[-40:].sum() > 0.3 * 20_000
    assert np.sort(flat.item_counts)[-40:].sum() < 0.2 * 20_000


def test_draw_without_replacement_has_the_right_chances():
    """Two of three items with weights 4, 1, 1: the first is in with 4/6 + 2/6 * 4/5."""
    weights = np.array([4, 1, 1]) / 6
    rng = np.random.default_rng(0)
    items = synthetic._draw_items(np.full(20_000, 2), weights, rng)
    assert abs((items == 0).mean() * 2 - (4 / 6 + 2 / 6 * 4 / 5)) < 0.015
    monkey = synthetic._draw_items(np.full(20_000, 2), np.repeat(weights / 40, 40), rng)
    assert monkey.reshape(-1, 2).std(axis=1).min() > 0  # never twice the same


@pytest.mark.parametrize(
    "wrong",
    [{"n_users": 0}, {"n_items": 0}, {"n_ratings": 0}, {"n_ratings": 101}, {"n_ranks": 1},
     {"noise": 0}, {"n_factors": -1}],
)  # fmt: skip
def test_senseless_arguments(wrong):
    with pytest.raises(ArgumentError):
        synthetic_ratings(**({"n_users": 10, "n_items": 10} | wrong))
    with pytest.raises(ArgumentError):
        list(synthetic_chunks(**({"n_users": 10, "n_items": 10} | wrong)))


def test_chunks_of_nothing():
    with pytest.raises(ArgumentError):
        next(synthetic_chunks(10, 10, rows=0))


# ---- long tails ----------------------------------------------------------------------------------


def test_a_long_tail_has_the_counts_asked_for():
    ratings = synthetic_long_tail(
        400, 3000, n_ratings=9000, rare_items=0.7, rare_users=0.25, dated=True
    )
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == (400, 3000, 9000)
    for counts, rare in ((ratings.item_counts, 0.7), (ratings.user_counts, 0.25)):
        assert counts.min() == 1
        assert (counts <= 2).mean() == rare
    pairs = np.column_stack([ratings.users, ratings.items])
    assert len(np.unique(pairs, axis=0)) == 9000
    again = synthetic_long_tail(
        400, 3000, n_ratings=9000, rare_items=0.7, rare_users=0.25, dated=True
    )
    np.testing.assert_array_equal(again.levels, ratings.levels)


@pytest.mark.parametrize(("n_ratings", "rare"), [(3000, 0.5), (9000, 1.0), (9000, -0.1)])
def test_a_long_tail_that_cannot_be_is_refused(n_ratings, rare):
    with pytest.raises(ArgumentError, match="rare_items"):
        synthetic_long_tail(400, 3000, n_ratings=n_ratings, rare_items=rare)
