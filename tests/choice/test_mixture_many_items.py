"""The mixture where EASE has no memory for all items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ordrec.choice import ease
from ordrec.choice.inner_splits import inner_splits, without_users
from ordrec.choice.mixture import ChoiceMixture
from ordrec.datasets import synthetic_ratings

RATINGS = synthetic_ratings(80, 60, n_ratings=1500, seed=2)


@pytest.fixture(scope="module")
def nearest() -> ChoiceMixture:
    return ChoiceMixture(n_factors=4, max_memory=1e-5).fit(RATINGS)


def test_all_items_have_weights(nearest) -> None:
    assert sparse.issparse(nearest.ease_.weights_)
    enough = np.flatnonzero(RATINGS.item_counts >= nearest.ease_.min_ratings)
    np.testing.assert_array_equal(nearest.ease_.weighted_items_, enough)
    assert nearest.ease_.block_items.size == 15  # in four fifths of the memory
    counts = RATINGS.item_counts
    others = np.setdiff1d(enough, nearest.ease_.block_items)
    assert counts[nearest.ease_.block_items].min() >= counts[others].max()


def test_parts_of_the_histories_are_fitted_as_all_of_them(nearest) -> None:
    """Though few of the items have enough ratings there for regressions on all others."""
    history = nearest.history_rows(np.arange(80))
    part = without_users(history, np.arange(5, 80))
    counts = np.bincount(part.indices, minlength=60)
    assert 1 < (counts >= nearest.ease_.min_ratings).sum() <= 17
    assert not nearest.ease_.is_exact
    assert not nearest.part_models(part, counts)[0].is_exact


def test_lists_in_blocks_are_those_at_once(nearest, monkeypatch) -> None:
    history = nearest.history_rows(np.arange(80))
    (split,) = inner_splits(history, 1, 0.2, np.random.default_rng(0), max_users=80)
    at_once = nearest.inner_lists(split)
    monkeypatch.setattr(ChoiceMixture, "block_size", lambda self: 7)
    in_blocks = nearest.inner_lists(split)
    there = slice(0, 10)  # places for which there are items
    np.testing.assert_allclose(in_blocks.scores[:, there], at_once.scores[:, there], rtol=1e-5)
    np.testing.assert_array_equal(in_blocks.picked, at_once.picked)


def test_the_ridge_is_chosen_among_the_most_rated_items(monkeypatch) -> None:
    everything = ChoiceMixture(n_factors=4).fit(RATINGS)
    monkeypatch.setattr(ease, "CHOOSING_ITEMS", 30)
    some = ChoiceMixture(n_factors=4).fit(RATINGS)
    assert some.ease_.tried_[200.0] != everything.ease_.tried_[200.0]
    assert some.ease_.weighted_items_.size == everything.ease_.weighted_items_.size == 60
    assert some.ease_.regularization_ == max(some.ease_.tried_, key=some.ease_.tried_.get)
