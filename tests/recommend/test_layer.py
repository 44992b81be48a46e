"""The ordinal layer: derivatives, recovery of what made the data, crossing thresholds, tilt."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from ordrec.errors import ArgumentError
from ordrec.ratings import Ratings, Scale
from ordrec.recommend import BiasModel
from ordrec.recommend.calibration import fit_calibrated_layer
from ordrec.recommend.layer import (
    LayerPriors,
    _objective,
    curvature,
    fit_layer,
    fit_person,
    interval_slopes,
)
from ordrec.recommend.thresholds import PersonalThresholds
from ordrec.recommend.tilt import fit_tilt

FINITE = st.floats(-12, 12)


@given(FINITE, st.floats(2e-3, 8))
def test_log_interval_and_slopes(low: float, width: float) -> None:
    high = low + width
    logp, by_low, by_high = interval_slopes(low, high)
    a, b = (low, high) if low + high < 0 else (-high, -low)  # the tail without cancellation
    expected = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
    assert logp == pytest.approx(expected, rel=1e-6, abs=1e-6)
    h = 1e-6
    assert by_high == pytest.approx(
        (interval_slopes(low, high + h)[0] - interval_slopes(low, high - h)[0]) / (2 * h),
        rel=2e-3, abs=1e-4,
    )  # fmt: skip
    assert by_low == pytest.approx(
        (interval_slopes(low + h, high)[0] - interval_slopes(low - h, high)[0]) / (2 * h),
        rel=2e-3, abs=1e-4,
    )  # fmt: skip


@given(FINITE)
def test_one_sided_intervals(at: float) -> None:
    assert interval_slopes(-np.inf, at)[0] == pytest.approx(log_ndtr(at), rel=1e-7, abs=1e-9)
    assert interval_slopes(at, np.inf)[0] == pytest.approx(log_ndtr(-at), rel=1e-7, abs=1e-9)
    assert interval_slopes(-np.inf, at)[1] == 0.0


def test_crossed_thresholds_stay_finite_and_lead_back() -> None:
    logp, by_low, by_high = interval_slopes(0.5, 0.1)
    assert np.isfinite(logp)
    assert by_low < 0 < by_high


def made_up(seed: int = 0, n_users: int = 40, n_items: int = 60, n_ranks: int = 5):
    """Ratings drawn from the layer itself."""
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


def test_gradient_of_the_posterior() -> None:
    scores, levels, users, items, _, _ = made_up(n_users=3, n_items=50)
    L = LayerPriors().factor(4)
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [[-1.5, 0.0, 0.1, -0.1, -0.2, 0.01, 0.02], 0.3 * rng.normal(size=3 * 5 + 50)]
    )
    args = (5, 3, 50, scores, levels, users, items, np.ones(150), np.ones(150), L, 0.25, 0.15)
    value, slope = _objective(x, *args)
    assert np.isfinite(value)
    for k in range(0, x.size, 3):
        h = np.zeros(x.size)
        h[k] = 1e-5
        difference = (_objective(x + h, *args)[0] - _objective(x - h, *args)[0]) / 2e-5
        assert slope[k] == pytest.approx(difference, rel=1e-4, abs=1e-4)


def test_personal_thresholds_and_scales_are_recovered() -> None:
    scores, levels, users, items, shift, scale = made_up()
    layer = fit_layer(scores, levels, users, items, 5, 40, 60, LayerPriors(0.5, user_sd=0.3))
    assert np.corrcoef(layer.shifts.mean(axis=1), shift)[0, 1] > 0.9
    assert np.corrcoef(layer.user_scale, np.log(scale))[0, 1] > 0.7
    p = layer.probabilities(scores, users, items)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()
    pooled = fit_layer(scores, levels, users, items, 5, 40, 60, LayerPriors(1e-3, user_sd=1e-3))
    rows = np.arange(levels.size)
    better = np.log(p[rows, levels]).mean()
    assert better > np.log(pooled.probabilities(scores, users, items)[rows, levels]).mean() + 0.05


def test_probabilities_are_those_of_the_thresholds() -> None:
    scores, levels, users, items, _, _ = made_up(n_users=5)
    layer = fit_layer(scores, levels, users, items, 5, 5, 60)
    t, s = layer.thresholds_of(np.array([2])), layer.scale_of(np.array([2]), np.array([7]))
    p = layer.probabilities(np.array([0.3]), np.array([2]), np.array([7]))
    assert np.allclose(np.cumsum(p)[:-1], ndtr((t[0] - 0.3) / s[0]))
    unknown = layer.thresholds_of(np.array([-1]))[0]
    assert np.allclose(unknown, layer.thresholds)


def test_one_more_person_is_fitted_as_in_the_whole() -> None:
    scores, levels, users, items, _, _ = made_up()
    layer = fit_layer(scores, levels, users, items, 5, 40, 60, max_iter=1000)
    own = users == 11
    shifts, scale = fit_person(layer, scores[own], levels[own], items[own], LayerPriors())
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
    layer = fit_layer(scores, levels, users, items, n_ranks, 40, 60)
    p = layer.probabilities(scores, users, items)
    assert p.shape == (scores.size, n_ranks)
    assert (np.diff(layer.thresholds_of(users), axis=1) >= 0).all()
    assert (
        np.abs(p.mean(axis=0) - np.bincount(levels, minlength=n_ranks) / levels.size).max() < 0.03
    )


def test_calibration_undoes_the_confidence_of_many_thresholds() -> None:
    scores, levels, users, items, _, _ = made_up(5, n_ranks=10)
    few = np.concatenate([np.flatnonzero(users == u)[:14] for u in range(40)])
    rest = np.setdiff1d(np.arange(users.size), few)
    train = (scores[few], levels[few], users[few], items[few], 10, 40, 60)
    loss = []
    for fit in (fit_layer, fit_calibrated_layer):
        p = fit(*train, LayerPriors(0.6)).probabilities(scores[rest], users[rest], items[rest])
        loss.append(-np.log(p[np.arange(rest.size), levels[rest]]).mean())
    assert loss[1] < loss[0]


def test_tilt_learns_that_some_never_give_a_level() -> None:
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(20), 60)
    p = np.tile([0.25, 0.25, 0.25, 0.25], (users.size, 1))
    levels = rng.integers(0, 4, users.size)
    even = users % 2 == 0
    levels[even] = 2 * (levels[even] // 2)
    tilt = fit_tilt(p, levels, users, 20)
    assert np.isfinite(tilt.kappa)
    tilted = tilt.apply(p[:2], np.array([0, 1]))
    assert tilted[0, 1] < 0.1 < tilted[1, 1]
    assert np.array_equal(tilt.apply(p[:1], np.array([-1])), p[:1])


def test_tilt_stays_away_when_the_model_is_right() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), 4000)
    levels = (rng.random(4000)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    tilt = fit_tilt(p, levels, rng.integers(0, 400, 4000), 400)
    assert tilt.kappa >= 50.0


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
    assert set(plain.predict(*pairs, scores=scores[:50])) <= {1.0, 2.0, 3.0, 4.0, 5.0}


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
    with pytest.raises(ArgumentError, match="either a scorer or scores"):
        PersonalThresholds().fit(ratings)
    with pytest.raises(ArgumentError, match="finite numbers"):
        PersonalThresholds().fit(ratings, scores[:-1])
    with pytest.raises(ArgumentError, match="give scores"):
        PersonalThresholds().fit(ratings, scores).predict([0], [0])
