"""The ordered probit: derivatives, recovery of known parameters, narrow intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError
from ordrec.rating.thresholds.model import PersonalThresholds
from ordrec.rating.thresholds.newton import (
    UserRatings,
    _derivatives,
    _factorise,
    _solve,
    interval_terms,
    thresholds_from,
    user_steps,
)
from ordrec.rating.thresholds.ordered_probit import (
    ProbitPriors,
    _Group,
    _widening,
    curvature,
    fit_one_user,
    fit_ordered_probit,
)
from ordrec.recommend import BiasModel

FINITE = st.floats(-12, 12)


@given(FINITE, st.floats(2e-3, 8))
def test_log_interval_and_its_derivatives(low: float, width: float) -> None:
    high = low + width
    logp, by_low, by_high, ll, hh, lh = interval_terms(low, high)
    a, b = (low, high) if low + high < 0 else (-high, -low)  # the tail without cancellation
    expected = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
    assert logp == pytest.approx(expected, rel=1e-6, abs=1e-6)
    h = 1e-5 * min(1.0, width)
    upper, lower = interval_terms(low, high + h), interval_terms(low, high - h)
    assert by_high == pytest.approx((upper[0] - lower[0]) / (2 * h), rel=2e-3, abs=1e-4)
    assert hh == pytest.approx(-(upper[2] - lower[2]) / (2 * h), rel=2e-3, abs=1e-3)
    assert lh == pytest.approx(-(upper[1] - lower[1]) / (2 * h), rel=2e-3, abs=1e-3)
    upper, lower = interval_terms(low + h, high), interval_terms(low - h, high)
    assert by_low == pytest.approx((upper[0] - lower[0]) / (2 * h), rel=2e-3, abs=1e-4)
    assert ll == pytest.approx(-(upper[1] - lower[1]) / (2 * h), rel=2e-3, abs=1e-3)


@given(FINITE)
def test_one_sided_intervals(at: float) -> None:
    assert interval_terms(-np.inf, at)[0] == pytest.approx(log_ndtr(at), rel=1e-7, abs=1e-9)
    assert interval_terms(at, np.inf)[0] == pytest.approx(log_ndtr(-at), rel=1e-7, abs=1e-9)
    assert interval_terms(-np.inf, at)[1] == interval_terms(-np.inf, at)[3] == 0.0


@given(st.floats(-4, 4))
def test_narrow_intervals_go_on_where_wide_ones_end(low: float) -> None:
    narrow, wide = interval_terms(low, low + 0.99e-4), interval_terms(low, low + 1.01e-4)
    for one, other in zip(narrow, wide, strict=True):
        assert one == pytest.approx(other, rel=0.05)


def made_up(seed: int = 0, n_users: int = 40, n_items: int = 60, n_ranks: int = 5):
    """Ratings drawn from the ordered probit itself."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), 50)
    items = np.concatenate([rng.permutation(n_items)[:50] for _ in range(n_users)])
    scores = rng.normal(size=users.size)
    t = np.linspace(-1.5, 1.5, n_ranks - 1)
    shift = rng.normal(0, 0.5, (n_users, 1))
    scale = np.exp(rng.normal(-0.3, 0.3, n_users))
    noisy = scores + scale[users] * rng.normal(size=users.size)
    levels = (noisy[:, None] > (t + shift)[users]).sum(axis=1)
    return scores, levels, users, items, shift[:, 0], scale


@pytest.mark.parametrize("anchor", [0, 1, 3])
def test_slope_of_a_users_likelihood(anchor: int) -> None:
    scores, levels, _, _, _, _ = made_up(n_users=1, n_items=50)
    ratings = UserRatings(scores, levels, np.zeros(50, np.int64), np.linspace(-0.2, 0.2, 50))
    eta = np.array([[0.1, 0.0, 0.1, -0.1, -0.2]])
    _, slope, H = _derivatives(eta, anchor, ratings)
    for k in range(5):
        h = np.zeros(5)
        h[k] = 1e-5
        up, down = (_derivatives(eta + way * h, anchor, ratings) for way in (1, -1))
        assert slope[0, k] == pytest.approx((up[0][0] - down[0][0]) / 2e-5, rel=1e-5, abs=1e-5)
    assert np.allclose(H[0], H[0].T)
    assert np.linalg.eigvalsh(H[0]).min() > 0


def test_steps_of_a_user_end_where_the_posterior_is_flat() -> None:
    scores, levels, _, _, _, _ = made_up(n_users=1, n_items=50)
    mean, precision = np.array([[0.0, 0.1, 0.1, 0.1, -0.3]]), 8.0 * np.eye(5)
    eta, covariance = mean.copy(), np.empty((1, 5, 5))
    ratings = UserRatings(scores, levels, np.zeros(50, np.int64), np.zeros(50))
    said = user_steps(eta, covariance, mean, precision, 1, ratings, 50)
    total, slope, H = _derivatives(eta, 1, ratings)
    assert said == total.sum()
    assert np.allclose(slope[0], precision @ (eta - mean)[0], atol=1e-6)
    assert np.allclose(covariance[0], np.linalg.inv(H[0] + precision))


def test_the_steps_of_several_users_are_those_of_each() -> None:
    scores, levels, users, _, _, _ = made_up(n_users=4)
    mean, precision = (
        np.tile([0.0, 0.1, 0.1, 0.1, -0.3], (4, 1)),
        np.diag([9.0, 0.1, 1.0, 1.0, 5.0]),
    )
    levels[users == 1] = 4  # whose first steps are too long
    some = users != 2  # who keeps the prior
    ratings = UserRatings(scores[some], levels[some], users[some], np.zeros(some.sum()))
    together, covariance = mean + 0.1, np.empty((4, 5, 5))
    said = user_steps(together, covariance, mean, precision, 1, ratings, 3)
    assert said == pytest.approx(_derivatives(together, 1, ratings)[0].sum())
    for user in range(4):
        own = ratings.users == user
        alone, its = mean[:1] + 0.1, np.empty((1, 5, 5))
        rows = (scores[some][own], levels[some][own], np.zeros(own.sum(), np.int64))
        user_steps(alone, its, mean[:1], precision, 1, UserRatings(*rows, np.zeros(own.sum())), 3)
        assert np.allclose(together[user], alone[0], rtol=0, atol=1e-12)
        assert np.allclose(covariance[user], its[0], rtol=0, atol=1e-12)
    assert (together[2] == mean[2]).all()


def test_thresholds_are_in_order_whatever_the_parameters() -> None:
    eta = np.random.default_rng(0).normal(0, 3, 9)
    for anchor in range(8):
        t = thresholds_from(eta, anchor)
        assert t[anchor] == eta[0]
        assert np.allclose(np.diff(t), np.exp(eta[1:8]))


def test_users_of_whole_stars_get_hardly_any_half_ones() -> None:
    scores, levels, users, items, _, _ = made_up(2, n_users=60, n_ranks=10)
    whole = users % 2 == 0
    levels[whole] = np.minimum(2 * (levels[whole] // 2) + 1, 9)
    half = np.arange(0, 10, 2)
    layer = fit_ordered_probit(scores, levels, users, items, 10, 60, 60)
    p = layer.probabilities(scores, users, items)[:, half].sum(axis=1)
    assert p[whole].mean() < 0.02
    assert p[~whole].mean() == pytest.approx(np.isin(levels[~whole], half).mean(), abs=0.05)
    newcomer = fit_one_user(layer, scores[:8], levels[:8], items[:8])  # eight are enough
    grown = layer.with_user(60, *newcomer, 8)
    assert grown.probabilities(scores[8:50], np.full(42, 60), items[8:50])[:, half].sum() < 4.2


def test_the_less_is_known_of_a_user_the_wider_their_distributions() -> None:
    scores, levels, users, items, _, _ = made_up(4)
    few = (users % 2 == 1) | (np.arange(users.size) % 50 < 3)
    layer = fit_ordered_probit(scores[few], levels[few], users[few], items[few], 5, 40, 60)
    scale = layer.scale_of(np.array([-1, *range(40)]), np.full(41, -1))
    assert scale[1::2].mean() > scale[2::2].mean()
    assert scale[0] > scale[2::2].mean()


def test_personal_thresholds_and_scales_are_recovered() -> None:
    scores, levels, users, items, shift, scale = made_up()
    layer = fit_ordered_probit(
        scores, levels, users, items, 5, 40, 60, ProbitPriors(0.5, user_sd=0.3)
    )
    assert np.corrcoef(layer.shifts.mean(axis=1), shift)[0, 1] > 0.9
    assert np.corrcoef(layer.user_scale, np.log(scale))[0, 1] > 0.7
    p = layer.probabilities(scores, users, items)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()
    pooled = fit_ordered_probit(
        scores, levels, users, items, 5, 40, 60, ProbitPriors(1e-3, 1e-3, 1e-3, weight=1e6)
    )
    rows = np.arange(levels.size)
    better = np.log(p[rows, levels]).mean()
    assert better > np.log(pooled.probabilities(scores, users, items)[rows, levels]).mean() + 0.05


def test_probabilities_are_those_of_the_thresholds() -> None:
    scores, levels, users, items, _, _ = made_up(n_users=5)
    layer = fit_ordered_probit(scores, levels, users, items, 5, 5, 60)
    t, s = layer.thresholds_of(np.array([2])), layer.scale_of(np.array([2]), np.array([7]))
    p = layer.probabilities(np.array([0.3]), np.array([2]), np.array([7]))
    assert np.allclose(np.cumsum(p)[:-1], ndtr((t[0] - 0.3) / s[0]))
    unknown = layer.thresholds_of(np.array([-1]))[0]
    assert np.allclose(unknown, layer.thresholds)


def test_one_more_user_is_fitted_as_with_all_users() -> None:
    scores, levels, users, items, _, _ = made_up()
    layer = fit_ordered_probit(scores, levels, users, items, 5, 40, 60, max_iter=200, tol=1e-4)
    own = users == 11
    shifts, scale = fit_one_user(layer, scores[own], levels[own], items[own])
    assert np.allclose(shifts, layer.shifts[11], atol=0.02)
    assert scale == pytest.approx(layer.user_scale[11], abs=0.02)


def test_curvature_by_differences() -> None:
    f, scale = np.array([-2.0, 0.1, 0.4, 3.0]), np.array([0.7, 0.8, 0.9, 1.0])
    t = np.tile([-1.0, 0.0, 1.2], (4, 1))
    levels = np.array([0, 1, 2, 3])
    slope, bend = curvature(f, t, scale, levels)
    up, down = curvature(f + 1e-5, t, scale, levels)[0], curvature(f - 1e-5, t, scale, levels)[0]
    assert np.allclose(bend, -(up - down) / 2e-5, atol=1e-5)
    assert slope[0] < 0 < slope[3]


def test_curvature_of_crossed_thresholds_is_that_of_a_narrow_interval() -> None:
    f, scale, levels = np.array([0.3, 0.3]), np.array([0.8, 0.8]), np.array([1, 1])
    slope, bend = curvature(f, np.array([[0.0, 0.0], [-0.001, 0.001]]), scale, levels)
    assert slope[0] == pytest.approx(slope[1], rel=1e-3)
    assert bend[0] == pytest.approx(bend[1], rel=1e-3) == pytest.approx(1 / 0.64, rel=1e-3)


@pytest.mark.parametrize("n_ranks", [2, 10])
def test_any_number_of_ranks(n_ranks: int) -> None:
    scores, levels, users, items, _, _ = made_up(n_ranks=n_ranks)
    layer = fit_ordered_probit(scores, levels, users, items, n_ranks, 40, 60)
    p = layer.probabilities(scores, users, items)
    assert p.shape == (scores.size, n_ranks)
    assert (np.diff(layer.thresholds_of(users), axis=1) >= 0).all()
    assert (
        np.abs(p.mean(axis=0) - np.bincount(levels, minlength=n_ranks) / levels.size).max() < 0.03
    )


def test_few_ratings_per_user_give_calibrated_distributions() -> None:
    scores, levels, users, items, _, _ = made_up(5, n_users=200, n_ranks=10)
    few = np.concatenate([np.flatnonzero(users == u)[:6] for u in range(200)])
    rest = np.setdiff1d(np.arange(users.size), few)
    layer = fit_ordered_probit(scores[few], levels[few], users[few], items[few], 10, 200, 60)
    p = layer.probabilities(scores[rest], users[rest], items[rest])
    hit, sure = p.argmax(axis=1) == levels[rest], p.max(axis=1)
    assert sure.mean() == pytest.approx(hit.mean(), abs=0.06)


# ---- PersonalThresholds ----------------------------------------------------------------


def some_ratings(seed: int = 0) -> tuple[Ratings, np.ndarray]:
    scores, levels, users, items, _, _ = made_up(seed)
    frame = pd.DataFrame({"user": users, "item": items, "rating": levels + 1})
    return Ratings.from_frame(frame, scale=Scale.regular(1, 5)), scores


def test_scores_in_any_unit_give_the_same_distributions() -> None:
    ratings, scores = some_ratings()
    pairs = ratings.user_ids.take(ratings.users[:50]), ratings.item_ids.take(ratings.items[:50])
    plain = PersonalThresholds().fit(ratings, scores)
    other = PersonalThresholds().fit(ratings, 7.0 - 40.0 * scores)
    expected = plain.predict_proba(*pairs, scores=scores[:50])
    assert np.allclose(
        other.predict_proba(*pairs, scores=7 - 40 * scores[:50]), expected, atol=1e-3
    )
    assert np.allclose(plain.predict(*pairs, scores=scores[:50]), expected @ ratings.scale.values)


def test_over_a_model_it_beats_the_histogram() -> None:
    ratings, _ = some_ratings(3)
    model = PersonalThresholds(BiasModel(), n_splits=3, decision="mean").fit(ratings)
    users, items = ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items)
    p = model.predict_proba(users, items)
    share = np.bincount(ratings.levels) / ratings.n_ratings
    assert (
        np.log(p[np.arange(len(p)), ratings.levels]).mean() > np.log(share)[ratings.levels].mean()
    )
    assert np.allclose(model.predict(users, items), p @ ratings.scale.values)
    assert np.isfinite(model.predict_proba(["nobody"], ["nothing"])).all()


def test_wrong_use_is_refused() -> None:
    ratings, scores = some_ratings()
    with pytest.raises(ArgumentError, match="either a model or scores"):
        PersonalThresholds().fit(ratings)
    with pytest.raises(ArgumentError, match="finite numbers"):
        PersonalThresholds().fit(ratings, scores[:-1])
    with pytest.raises(ArgumentError, match="give scores"):
        PersonalThresholds().fit(ratings, scores).predict([0], [0])


def test_uncertain_thresholds_widen_by_the_sum_of_variances() -> None:
    """A normal threshold of variance v around noise of deviation s: together sqrt(s^2 + v)."""
    for s, v in ((0.5, 0.3), (2.0, 0.3), (1.0, 0.0)):
        assert s * np.exp(_widening(v, np.log(s))) == pytest.approx(np.sqrt(s * s + v))


def test_counts_enter_the_scale_as_their_logarithm() -> None:
    """A leave-one-out score rests on n - 1 ratings, and log(1 + n - 1) is log(n)."""
    group = _Group.of(np.array([0, 1, 1, 3, 3, 3]), 4)
    logs = np.log([1.0, 2.0, 1.0, 3.0])
    centre = (np.log(1) + 2 * np.log(2) + 3 * np.log(3)) / 6
    assert group.centre == pytest.approx(centre)
    np.testing.assert_allclose(group.logs, logs - centre)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_one_more_user_has_the_scale_of_their_count(n: int) -> None:
    """The slope on the count, at n ratings, is a constant of slope * log(n)."""
    scores, levels, users, items, _, _ = made_up(n_users=10)
    probit = fit_ordered_probit(scores, levels, users, items, 5, 10, 60)
    sloped = replace(probit, scale=np.array([-0.4, 0.7, 0.0]))
    level = replace(probit, scale=np.array([-0.4 + 0.7 * np.log(n), 0.0, 0.0]))
    own = slice(0, n)
    (one, scale), (other, same) = (
        fit_one_user(probit, scores[own], levels[own], items[own]) for probit in (sloped, level)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)
    assert scale == pytest.approx(same, rel=1e-9)
    pair = np.array([0]), np.array([3])
    known = sloped.with_user(0, one, scale, n).scale_of(*pair)  # a new score rests on all n
    assert np.log(known[0]) == pytest.approx(
        -0.4 + 0.7 * np.log1p(n) + scale + probit.item_scale[3]
    )


@pytest.mark.parametrize(("parameter", "entry"), [("threshold_sd", 0), ("user_sd", -1)])
def test_starting_deviations_of_users_count_as_twenty_users(parameter: str, entry: int) -> None:
    """With two users who say next to nothing, what is learnt is what was given."""
    frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [2, 3, 3, 4]})
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    learnt = []
    for sd in (0.05, 0.9):
        model = PersonalThresholds(**{parameter: sd}).fit(ratings, ratings.values)
        learnt.append(np.sqrt(model.layer_.covariance[entry, entry]))
    assert learnt == pytest.approx([0.05, 0.9], rel=0.2)


def test_the_deviation_of_items_bounds_their_scales() -> None:
    scores, levels, users, items, _, _ = made_up()
    spread = []
    frame = pd.DataFrame({"user": users, "item": items, "rating": levels + 1})
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    for sd in (0.01, 0.15, 1.0):
        layer = PersonalThresholds(item_sd=sd).fit(ratings, scores).layer_
        spread.append(layer.item_scale.std())
    assert spread[0] < 0.01
    assert spread[0] < spread[1] < spread[2]


def test_scores_of_the_layer_come_from_fits_without_the_rating() -> None:
    """One rating is flipped: its own out-of-fold score stays, others move."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": np.repeat(np.arange(8), 6), "item": np.tile(np.arange(6), 8)})
    frame["rating"] = rng.integers(1, 6, 48)
    model = PersonalThresholds(BiasModel(), n_splits=4)
    whole = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    before = model._out_of_fold(whole)
    for row in (0, 20, 47):
        levels = whole.levels.copy()
        levels[row] = 4 if levels[row] < 2 else 0
        after = model._out_of_fold(whole._replaced(levels=levels))
        assert after[row] == before[row]
        assert not np.array_equal(after, before)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_many_small_systems_against_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    A = rng.normal(size=(5, size, size))
    A = A @ A.transpose(0, 2, 1) + 0.1 * np.eye(size)
    right = rng.normal(size=(5, size, 3))
    L = _factorise(A)
    assert L @ L.transpose(0, 2, 1) == pytest.approx(A, rel=1e-10)
    assert np.triu(L, 1).max() == 0.0
    before = right.copy()
    assert _solve(L, right) == pytest.approx(np.linalg.solve(A, right), rel=1e-7)
    assert (right == before).all()
