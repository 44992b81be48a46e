"""The losses for each reach, against finite differences, limits and loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.ordinal.losses import Loss, active_pairs, checked_reach, gradient, objective, signs

SMOOTH = [
    Loss("logistic"),
    Loss("shifted", margin=2.5),
    Loss("generalised", sharpness=3.0),
    Loss("exponential"),
]
ALL = [Loss("hinge"), *SMOOTH]


def by_loops(f, b, y, loss, reach, weight):
    total = 0.0
    for i in range(f.size):
        for k in range(b.size):
            if reach == "immediate" and k not in (y[i], y[i] - 1):
                continue
            m = f[i] - b[k] if y[i] > k else b[k] - f[i]
            total += weight[i, k] * float(loss.value(np.array(m)))
    return total


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_derivatives_of_phi_by_central_differences(loss):
    m = np.linspace(-6, 6, 97)
    h = 1e-5
    slope = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    curvature = (loss.slope(m + h) - loss.slope(m - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(m), slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(m), curvature, rtol=1e-5, atol=1e-7)


def test_the_hinge_has_slope_minus_one_inside_and_nothing_beyond():
    loss = Loss("hinge")
    m = np.array([-3.0, 0.5, 1.0, 4.0])
    assert loss.value(m).tolist() == [4.0, 0.5, 0.0, 0.0]
    assert loss.slope(m).tolist() == [-1.0, -1.0, 0.0, 0.0]
    assert not loss.curvature(m).any()


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_every_loss_falls_with_the_margin_and_is_convex(loss):
    m = np.linspace(-8, 8, 201)
    assert (np.diff(loss.value(m)) <= 0).all()
    assert (np.diff(loss.slope(m)) >= -1e-15).all()


def test_nothing_overflows_far_out():
    m = np.array([-1e4, 1e4])
    for loss in SMOOTH[:3]:
        assert np.isfinite(loss.value(m)).all()
        assert np.isfinite(loss.curvature(m)).all()
        assert loss.value(m)[1] == 0.0


@pytest.mark.parametrize("sharpness", [1.0, 10.0, 1e3])
def test_generalised_loss_stays_within_ln2_over_sharpness_of_the_hinge(sharpness):
    m = np.linspace(-4, 4, 401)
    away = Loss("generalised", sharpness=sharpness).value(m) - Loss("hinge").value(m)
    assert (away >= -1e-14).all()
    assert away.max() == pytest.approx(np.log(2) / sharpness)


@given(st.floats(0.1, 50), st.floats(-5, 5))
def test_shifted_is_generalised_on_another_scale(margin, m):
    shifted = Loss("shifted", margin=margin).value(np.array(margin * m))
    generalised = Loss("generalised", sharpness=margin).value(np.array(m))
    np.testing.assert_allclose(shifted, margin * generalised, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_logit_is_the_odds_at_which_the_expected_loss_is_least(loss):
    m = np.linspace(-3, 3, 25)
    p = 1 / (1 + np.exp(-loss.logit(m)))
    np.testing.assert_allclose(p * loss.slope(m) - (1 - p) * loss.slope(-m), 0, atol=1e-9)


def test_the_hinge_has_no_probabilities():
    with pytest.raises(ValueError, match="no probabilities"):
        Loss("hinge").logit(np.zeros(2))


def test_the_printed_signs_of_the_note_are_the_unshifted_loss_with_renamed_thresholds():
    rng = np.random.default_rng(0)
    f, y, b, margin = rng.normal(size=9), rng.integers(0, 4, 9), np.array([-1.0, 0.2, 1.0]), 3.0
    h = np.logaddexp
    printed = 0.0  # (13): h(b + margin - f) below the sample, h(f - b - margin) above it
    for i in range(9):
        for k in range(3):
            z = b[k] + margin - f[i] if k < y[i] else f[i] - b[k] - margin
            printed += h(0.0, z)
    assert printed == pytest.approx(objective(f, b + margin, y, Loss("logistic"), "all"))
    assert objective(f, b, y, Loss("shifted", margin=margin), "all") > printed


@pytest.mark.parametrize("reach", ["immediate", "all"])
@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_objective_against_loops_for_every_cell_of_the_table(loss, reach):
    rng = np.random.default_rng(1)
    f, b, y = rng.normal(size=12), np.sort(rng.normal(size=4)), rng.integers(0, 5, 12)
    weight = rng.uniform(0, 2, (12, 4))
    expected = by_loops(f, b, y, loss, reach, weight)
    assert objective(f, b, y, loss, reach, weight, 0.25) == pytest.approx(expected + 0.25)
    per_sample = np.repeat(weight[:, :1], 4, axis=1)
    expected = by_loops(f, b, y, loss, reach, per_sample)
    assert objective(f, b, y, loss, reach, weight[:, 0]) == pytest.approx(expected)


@pytest.mark.parametrize("reach", ["immediate", "all"])
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_gradient_by_central_differences(loss, reach):
    rng = np.random.default_rng(2)
    f, b, y = rng.normal(size=8), np.sort(rng.normal(size=3)), rng.integers(0, 4, 8)
    weight = rng.uniform(0.1, 2, 8)
    by_score, by_threshold = gradient(f, b, y, loss, reach, weight)
    h = 1e-6
    for i in range(8):
        step = h * (np.arange(8) == i)
        rise = objective(f + step, b, y, loss, reach, weight)
        rise -= objective(f - step, b, y, loss, reach, weight)
        assert by_score[i] == pytest.approx(rise / (2 * h), rel=1e-5, abs=1e-7)
    for k in range(3):
        step = h * (np.arange(3) == k)
        rise = objective(f, b + step, y, loss, reach, weight)
        rise -= objective(f, b - step, y, loss, reach, weight)
        assert by_threshold[k] == pytest.approx(rise / (2 * h), rel=1e-5, abs=1e-7)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_both_reaches_agree_where_they_overlap(ranks):
    y = np.array(ranks)
    everywhere = signs(y, 5)
    for reach in ("immediate", "all"):
        sample, threshold, sign = active_pairs(y, 5, reach)
        assert (sign == everywhere[sample, threshold]).all()
    sample, threshold, _ = active_pairs(y, 5, "immediate")
    assert np.bincount(sample, minlength=y.size).tolist() == [1 + (0 < r < 4) for r in ranks]
    assert active_pairs(y, 5, "all")[0].size == 4 * y.size


def test_two_ranks_make_the_reaches_the_same():
    y = np.array([0, 1, 1, 0])
    near, far = active_pairs(y, 2, "immediate"), active_pairs(y, 2, "all")
    assert all((a == b).all() for a, b in zip(near, far, strict=True))


def test_a_loss_reaches_all_or_the_immediate_thresholds():
    assert [checked_reach(name) for name in ("immediate", "all")] == ["immediate", "all"]
    for wrong in ("both", "left-right", "adjacent"):
        with pytest.raises(ValueError, match='threshold must be "all" or "immediate"'):
            checked_reach(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "squared"}, "loss must be one of"),
        ({"name": "hinge", "margin": 2.0}, "margin belongs to the shifted loss"),
        ({"name": "logistic", "sharpness": 2.0}, "sharpness belongs to the generalised loss"),
        ({"name": "generalised", "sharpness": 0.0}, "sharpness positive"),
        ({"name": "shifted", "margin": np.inf}, "margin must be finite"),
    ],
)
def test_options_that_would_do_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Loss(**arguments)
