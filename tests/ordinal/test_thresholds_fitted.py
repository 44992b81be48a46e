"""Thresholds that are fitted: pooled, of least cost, and next to absent ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import naive_boosting
from scipy.optimize import isotonic_regression
from scipy.special import expit

from ordrec.ordinal import SVORIM, OrdinalLogistic
from ordrec.ordinal.base import LINK_FOLDS, out_of_fold_latent
from ordrec.ordinal.boosting.orboost import pooled_thresholds
from ordrec.ordinal.boosting.rankboost import best_thresholds
from ordrec.ordinal.thresholds.absent import PresentRanks
from ordrec.ordinal.thresholds.probabilities import ranks_between

SEEDS = st.integers(0, 10**6)


@given(SEEDS, st.integers(1, 7))
def test_pooling_against_every_partition_and_isotonic_regression(seed, n):
    rng = np.random.default_rng(seed)
    A, B = np.exp(rng.normal(size=(2, n)))
    t = pooled_thresholds(np.log(B), np.log(A))
    np.testing.assert_allclose(t, naive_boosting.ordered_thresholds(A, B), atol=1e-10)
    np.testing.assert_allclose(np.exp(2 * t), isotonic_regression(B / A, weights=A).x, rtol=1e-9)


def test_pooling_survives_numbers_that_only_exist_as_logarithms():
    t = pooled_thresholds(np.array([5000.0, -5000.0]), np.array([-5000.0, 5000.0]))
    assert t.tolist() == [0.0, 0.0]
    t = pooled_thresholds(np.array([-5000.0, 5000.0]), np.array([5000.0, -5000.0]))
    assert t.tolist() == [-5000.0, 5000.0]


def test_ordered_input_is_left_alone():
    t = pooled_thresholds(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    assert t.tolist() == [-0.5, 0.0, 0.5]


@given(SEEDS, st.sampled_from(["absolute", "zero-one", "any"]), st.booleans())
def test_least_cost_against_every_placement(seed, kind, ties):
    rng = np.random.default_rng(seed)
    n, n_ranks = 7, 4
    scores, ranks = rng.normal(size=n), rng.integers(0, n_ranks, n)
    scores = np.round(scores) if ties else scores
    weight = rng.uniform(0.5, 2, n)
    scale = np.arange(n_ranks)
    costs = {
        "absolute": np.abs(scale[:, None] - scale) * 1.0,
        "zero-one": 1.0 - np.eye(n_ranks),
        "any": rng.uniform(0, 1, (n_ranks, n_ranks)),
    }[kind]
    cuts = best_thresholds(scores, ranks, n_ranks, weight, costs)
    assert (np.diff(cuts) >= 0).all()
    cost = (weight * costs[ranks, ranks_between(scores, cuts)]).sum()
    assert cost == pytest.approx(naive_boosting.least_cost(scores, ranks, n_ranks, weight, costs))


def test_absolute_error_is_the_default_cost_and_the_middle_cut_is_taken():
    scores = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 10.0])
    ranks = np.array([0, 0, 1, 0, 1, 1])
    # cuts at 1.5 and at 3.5 make one mistake each, the one between them two: of two, the lower
    assert best_thresholds(scores, ranks, 2).tolist() == [1.5]
    # what weighs nothing may lie on either side: three cuts are equally good
    weight = np.array([1.0, 0.0, 0.0, 1.0])
    tied = best_thresholds(np.arange(4.0), np.array([0, 0, 1, 1]), 2, weight)
    assert tied.tolist() == [1.5]
    apart = best_thresholds(np.array([0.0, 6.0]), np.array([0, 1]), 2)
    assert apart.tolist() == [3.0]


def test_all_scores_equal_leave_one_rank():
    cuts = best_thresholds(np.zeros(5), np.array([0, 2, 2, 2, 1]), 3)
    assert ranks_between(np.zeros(5), cuts).tolist() == [2] * 5
    assert np.isfinite(cuts).all()


@given(SEEDS, st.booleans())
def test_absent_ranks_keep_the_order_and_leave_room_for_half_a_sample(seed, inner):
    rng = np.random.default_rng(seed)
    n_ranks = 7
    present = np.sort(rng.choice(n_ranks, size=rng.integers(2, n_ranks), replace=False))
    ranks = np.concatenate([present, rng.choice(present, 30)])
    latent, weight = ranks + 0.3 * rng.normal(size=ranks.size), rng.uniform(0.5, 2, ranks.size)
    part = PresentRanks(ranks, n_ranks, inner=inner)
    assert (part.scale[part.ranks] == ranks).all()
    assert part.n_ranks == (present.size if inner else np.ptp(present) + 1)
    fitted = np.sort(rng.uniform(present[0], present[-1], part.n_ranks - 1))
    full = part.all_thresholds(fitted, latent, weight, steepness=3.0)
    assert full.size == n_ranks - 1
    assert np.isfinite(full).all()
    assert (np.diff(full) >= 0).all()
    lowest, highest = present[0], present[-1]
    if lowest:
        mass = weight @ expit(3.0 * (full[lowest - 1] - latent))
        assert mass == pytest.approx(0.5, abs=1e-6) or full[lowest - 1] == fitted[0]
    if highest < n_ranks - 1:
        mass = weight @ expit(3.0 * (latent - full[highest]))
        assert mass == pytest.approx(0.5, abs=1e-6) or full[highest] == fitted[-1]
    for k in range(lowest, highest):
        below = np.searchsorted(part.scale, k, side="right") - 1
        assert full[k] == fitted[below]


def test_a_full_scale_is_left_alone():
    part = PresentRanks(np.array([0, 1, 2]), 3, inner=True)
    theta = np.array([-0.3, 0.9])
    assert part.all_thresholds(theta, np.zeros(3)).tolist() == theta.tolist()
    assert not part.outer.any()


def test_where_no_sample_can_be_left_out_all_are_scored_by_the_whole_fit():
    X, labels = np.array([[0.0], [1.0]]), [1, 2]
    model = SVORIM().fit(X, labels)
    scores = out_of_fold_latent(model, X, np.array([0, 1]), np.ones(2))
    np.testing.assert_array_equal(scores, model.predict_latent(X))


def test_scores_out_of_fold_are_those_of_fits_without_the_fold():
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(23, 2)), np.arange(23) % 3
    model = OrdinalLogistic().fit(X, ranks + 1)
    scores = out_of_fold_latent(model, X, ranks, np.ones(23))
    fold = np.empty(23, dtype=int)
    fold[np.argsort(ranks, kind="stable")] = np.arange(23) % LINK_FOLDS
    for part in range(LINK_FOLDS):
        own = OrdinalLogistic(classes=[1, 2, 3]).fit(X[fold != part], ranks[fold != part] + 1)
        held = fold == part
        np.testing.assert_allclose(scores[held], own.predict_latent(X[held]), rtol=1e-6)
