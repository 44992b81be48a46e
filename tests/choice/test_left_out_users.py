"""What a mixture chooses by users who are left out of its models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from ordrec.choice import cold_start
from ordrec.choice.choosing import Chosen
from ordrec.choice.cold_start import (
    ListedHistories,
    equally_popular,
    kept_items,
    with_popularity,
)
from ordrec.choice.inner_splits import ListQuality, inner_splits
from ordrec.choice.left_out_users import groups_left_out, last_better
from ordrec.choice.mixture import UNSEEN_WEIGHTS, ChoiceMixture, log_scores, mixed_scores
from ordrec.datasets import synthetic_ratings
from ordrec.lists import filters
from ordrec.lists.best import best_columns
from ordrec.recommend import ImplicitALS

RATINGS = synthetic_ratings(110, 40, n_ratings=1400, seed=5)


@pytest.fixture(scope="module")
def mixture() -> ChoiceMixture:
    return ChoiceMixture(n_factors=4).fit(RATINGS)


def groups_of(mixture: ChoiceMixture, **options):
    return groups_left_out(
        mixture._history, None, np.random.default_rng(0), mixture.part_models, log_scores,
        n_ranks=5, **options,
    )  # fmt: skip


def test_groups_are_disjoint_and_unknown_to_their_models(mixture) -> None:
    groups = groups_of(mixture, least=20, several=True)
    assert [group.own.shape[0] for group in groups] == [22] * 5
    whole = mixture._history
    for group in groups:
        left = np.flatnonzero((np.diff(whole.indptr) > 0) & (np.diff(group.rest.indptr) == 0))
        assert (whole[left] != group.own).nnz == 0
        assert np.array_equal(group.counts, mixture.item_counts_ - np.bincount(
            group.own.indices, minlength=RATINGS.n_items
        ))  # fmt: skip
        assert not group.als.user_factors_[left].any()
        assert (group.split.given + group.split.held != group.own).nnz == 0
    taken = sum(np.diff(group.rest.indptr) == 0 for group in groups)
    assert np.array_equal(taken, np.ones(110))


def test_one_group_where_it_is_enough_and_none_of_too_few_users(mixture) -> None:
    assert len(groups_of(mixture, least=20, several=False)) == 1
    assert not groups_of(mixture, least=23, several=True)


def test_lists_of_left_out_users_are_those_of_a_model_without_them(mixture) -> None:
    group = groups_of(mixture, least=20, several=False)[0]
    E, A = group.ease.score_histories(group.given), group.als.score_histories(group.given)
    scores = mixed_scores(E, A, group.counts, 0.35)
    np.testing.assert_array_equal(group.scores(group.given, 0.35), scores)
    scores[group.given.toarray() > 0] = -np.inf
    scores[:, group.counts == 0] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    (quality,) = group.qualities([(0.35, 0.0)])
    np.testing.assert_allclose(quality, group.measure(best))


def test_lists_are_the_same_from_blocks_of_users_and_for_all_settings_at_once(
    mixture, monkeypatch
) -> None:
    settings = [(0.35, 4.0), (0.0, 4.0), (1.0, 1e9)]
    group = groups_of(mixture, least=20, several=False)[0]
    whole = group.qualities(settings)
    monkeypatch.setattr(filters, "CELLS_AT_ONCE", 5 * RATINGS.n_items)
    for setting, quality in zip(settings, whole, strict=True):
        np.testing.assert_allclose(replace(group).qualities([setting])[0], quality)


def test_lists_are_made_of_the_items_that_are_kept(monkeypatch) -> None:
    """Of equally popular items the best are enough, in whatever proportion popularity counts."""
    monkeypatch.setattr(cold_start, "MANY", 15)
    rng = np.random.default_rng(2)
    counts = rng.permutation(np.repeat([0, 1, 2, 3, 9], [30, 200, 80, 14, 5]))
    scores = np.round(rng.normal(size=(12, counts.size)), 1)  # with ties
    scores[:, counts == 0] = -np.inf
    scores[3, rng.choice(counts.size, 290, replace=False)] = -np.inf  # fewer than ten of a kind
    items, kept = kept_items(scores, *equally_popular(counts))
    assert kept.shape[1] == 14 + 5 + 2 * 10
    assert (np.diff(items, axis=1) >= 0).all()
    held = sparse.csr_array(rng.random(scores.shape) < 0.2, dtype=np.float64)
    sizes, measure = rng.integers(1, 9, 12), ListQuality(held, 5)
    part = ListedHistories(items, kept, sizes, counts, measure)
    for cold in (0.0, 3.0, 1e7):
        mixed = with_popularity(scores.copy(), counts, sizes, cold)
        expected = measure(best_columns(mixed, 10)).mean()
        np.testing.assert_allclose(part.quality(cold), expected)


def test_the_unseen_weight_that_makes_better_lists_is_taken(monkeypatch) -> None:
    tried: list[str] = []

    def smaller(found):
        names = tuple(found)
        name = "after" if "after" in names and len(tried) < 2 else names[0]
        tried.append(name)
        return Chosen(name, names, np.zeros(len(names)), np.zeros(len(names)))

    monkeypatch.setattr(Chosen, "among", smaller)
    model = ChoiceMixture(n_factors=4).fit(RATINGS)
    least = UNSEEN_WEIGHTS[-1]
    assert model.als_.unseen_weight == least
    alone = ImplicitALS(
        n_factors=4, regularization=model.als_regularization, unseen_weight=least
    ).fit(RATINGS)
    largest = np.abs(alone.item_factors_).max()
    np.testing.assert_allclose(  # a byte each
        model.als_.item_factors_, alone.item_factors_, rtol=0.035, atol=largest / 4096
    )


def test_items_with_few_ratings_have_the_scores_of_als() -> None:
    E, A = np.array([[0.0, 0.5, 0.2]]), np.array([[0.4, 0.1, 0.3]])
    counts = np.array([2, 3, 10])
    scores = mixed_scores(E, A, counts, 0.35)[0]
    floor = 0.01 + 0.001 * counts / 10
    share = np.array([1.0, 0.35, 0.35])
    expected = (1 - share) * np.log(np.maximum(E, 1e-9) + floor) + share * np.log(A + floor)
    np.testing.assert_allclose(scores, expected[0])


def test_values_are_tried_while_they_make_better_lists(mixture) -> None:
    groups = groups_of(mixture, least=20, several=False)
    even = np.linspace(0.1, 0.3, 22)
    gains = {0.0: 0.0, 4.0: 0.01, 16.0: 0.03, 64.0: 0.03, 256.0: 0.09}
    tried = []

    def refitted(group, value):
        tried.append(value)
        return replace(group, n_ranks=value)

    def quality(of):
        return even + gains.get(of[0].n_ranks, 0.0)

    best, chosen = last_better(groups, (4.0, 16.0, 64.0, 256.0), refitted, quality)
    assert (best, chosen[0].n_ranks, tried) == (16.0, 16.0, [4.0, 16.0, 64.0])
    assert last_better(groups, (), refitted, quality) == (None, groups)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_every_rated_item_is_among_the_few_or_the_many_of_its_popularity(more: int) -> None:
    counts = np.concatenate([np.full(cold_start.MANY + more, 3), [1, 2, 0, 5]])
    few, many = cold_start.equally_popular(counts)
    assert np.sort(np.concatenate([few, *many])).tolist() == np.flatnonzero(counts).tolist()
    assert len(many) == (more >= 0)


def test_users_of_inner_splits_are_drawn_once_each() -> None:
    history = sparse.csr_array(np.ones((60, 5)))
    for split in inner_splits(history, 3, 0.4, np.random.default_rng(0), max_users=40):
        assert np.unique(split.rows).size == 40
