"""The mixture where EASE has no memory for all items."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ordrec.choice import ease
from ordrec.choice.inner_splits import inner_splits
from ordrec.choice.mixture import ChoiceMixture
from ordrec.datasets import synthetic_ratings

RATINGS = synthetic_ratings(80, 60, n_ratings=1500, seed=2)


@pytest.fixture(scope="module")
def truncated() -> ChoiceMixture:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ChoiceMixture(n_factors=4, max_memory=1e-5).fit(RATINGS)
    assert [str(w.message) for w in said if "get weights" in str(w.message)] == [
        "EASE: 60 items take 0.00012 GB, and max_memory is 1e-05: only the 17 items with the most "
        "ratings get weights"
    ]
    return model


def test_items_without_weights_are_scored_by_als(truncated) -> None:
    rare = np.setdiff1d(np.arange(60), truncated.ease_.weighted_items_)
    other = ChoiceMixture(n_factors=4, mix=1.0, max_memory=1e-5)
    with pytest.warns(UserWarning, match="get weights"):
        other.fit(RATINGS)
    ours, by_als = (m.scores_block(RATINGS.user_ids)[:, rare] for m in (truncated, other))
    np.testing.assert_allclose(ours, by_als, rtol=1e-5)


def test_the_calibration_is_learnt_from_scores_like_those_of_lists(truncated) -> None:
    rng = np.random.default_rng(0)
    history = truncated.history_rows(np.arange(80))
    history.sort_indices()
    (split,) = inner_splits(history, 1, 0.2, rng, max_users=80)
    listed = truncated.inner_lists(split)
    assert listed.scores.shape == (split.rows.size, 50)
    fewest = np.log(0.01)  # of an item that neither member scores
    assert (listed.scores[:, 20:30] > fewest + 0.1).mean() > 0.5  # beyond the 17 items of EASE


def test_lists_in_blocks_are_those_at_once(truncated, monkeypatch) -> None:
    history = truncated.history_rows(np.arange(80))
    history.sort_indices()
    (split,) = inner_splits(history, 1, 0.2, np.random.default_rng(0), max_users=80)
    at_once = truncated.inner_lists(split)
    monkeypatch.setattr(ChoiceMixture, "block_size", lambda self: 7)
    in_blocks = truncated.inner_lists(split)
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
