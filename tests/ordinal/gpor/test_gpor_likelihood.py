"""The ordinal likelihood: values and derivatives, near and far from the interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.naive_gpor import probit_log_likelihood, truncated_cumulants

from ordrec.ordinal.gpor.likelihood import interval_cumulants, likelihood_terms, threshold_edges


def ours(lower, upper):
    log_mass, mean, _, variance, third, fourth, *_ = interval_cumulants(lower, upper)
    return np.array([log_mass, mean, variance, third, fourth])


INTERVALS = [
    (-np.inf, 0.3),
    (-1.0, 1.0),
    (-0.2, 4.0),
    (1.0, 1.2),
    (2.0, np.inf),
    (3.0, 3.0 + 1e-3),
    (4.9, 30.0),
    (6.0, 7.0),
    (12.0, np.inf),
    (40.0, 41.0),
    (40.0, np.inf),
    (40.0, 40.05),
    (-41.0, -40.0),
    (-np.inf, -40.0),
    (-1e-4, 1e-4),
    (-30.0, 30.0),
]


@pytest.mark.parametrize(("lower", "upper"), INTERVALS)
def test_cumulants_are_those_of_quadrature(lower, upper):
    expected = truncated_cumulants(lower, upper)
    scale = np.maximum(np.abs(expected), [1e-12, 1e-12, 0, 0, 0])
    width = np.sqrt(expected[2])
    scale = np.maximum(scale, 1e-3 * width ** np.array([0, 1, 2, 3, 4]))
    assert np.all(np.abs(ours(lower, upper) - expected) <= 2e-8 * scale)


@given(st.floats(-45, 45), st.floats(1e-4, 60))
def test_cumulants_hold_for_any_interval(lower, width):
    expected = truncated_cumulants(lower, lower + width)
    found = ours(lower, lower + width)
    assert np.isfinite(found).all()
    assert found[:2] == pytest.approx(expected[:2], rel=1e-8, abs=1e-9)
    deviation = np.sqrt(expected[2])
    assert found[2] == pytest.approx(expected[2], rel=1e-7)
    assert abs(found[3] - expected[3]) <= 1e-6 * deviation**3
    assert abs(found[4] - expected[4]) <= 1e-5 * deviation**4


@given(st.floats(-50, 50), st.floats(1e-5, 80))
def test_the_mirrored_interval_has_mirrored_cumulants(lower, width):
    upper = lower + width
    there, back = interval_cumulants(lower, upper), interval_cumulants(-upper, -lower)
    assert back[0] == there[0]
    assert back[1] == -there[1]
    assert back[4] == -there[4]
    assert (back[6], back[7]) == (there[7], there[6])


def test_variance_and_deficit_add_up_and_stay_between_zero_and_one():
    for lower, upper in INTERVALS:
        _, _, deficit, variance, *_ = interval_cumulants(lower, upper)
        assert 0 <= deficit <= 1
        assert 0 < variance <= 1
        assert deficit + variance == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("n_ranks", [2, 3, 5, 10])
def test_the_ranks_share_out_all_probability(n_ranks):
    rng = np.random.default_rng(n_ranks)
    edges = threshold_edges(np.sort(rng.normal(size=n_ranks - 1)))
    for f in (-3.0, 0.0, 0.7):
        terms = likelihood_terms(np.full(n_ranks, f), np.arange(n_ranks), edges, 0.6)
        assert np.exp(terms.log_mass).sum() == pytest.approx(1, abs=1e-13)


def test_two_ranks_are_the_probit():
    f = np.linspace(-30, 30, 61)
    edges = threshold_edges(np.array([0.0]))
    for positive in (0, 1):
        terms = likelihood_terms(f, np.full(61, positive), edges, 0.8)
        expected = probit_log_likelihood(f, np.full(61, positive == 1), 0.8)
        assert terms.log_mass == pytest.approx(expected, rel=1e-10)


def _difference(function, x, step):
    return (function(x + step) - function(x - step)) / (2 * step)


@pytest.mark.parametrize("noise", [1e-3, 0.3, 2.0])
def test_derivatives_along_the_latent_value(noise):
    edges = threshold_edges(np.array([-1.0, -0.2, 0.9]))
    ranks = np.repeat(np.arange(4), 9)
    away = np.tile([-40.0, -8.0, -3.0, -0.5, 0.0, 0.4, 2.5, 9.0, 40.0], 4)
    middle = np.array([-1.0, -0.6, 0.35, 0.9])[ranks]
    f = middle + noise * away

    def at(shift):
        return likelihood_terms(f + shift, ranks, edges, noise)

    step = 1e-4 * noise
    terms = at(0.0)
    assert np.all(np.isfinite([terms.log_mass, terms.slope, terms.curvature, terms.twist]))
    slope = _difference(lambda s: -at(s).log_mass, 0.0, step)
    curvature = _difference(lambda s: at(s).slope, 0.0, step)
    twist = _difference(lambda s: at(s).curvature, 0.0, step)
    assert terms.slope * noise == pytest.approx(slope * noise, rel=1e-5, abs=1e-7)
    assert terms.curvature * noise**2 == pytest.approx(curvature * noise**2, rel=1e-5, abs=1e-7)
    assert terms.twist * noise**3 == pytest.approx(twist * noise**3, rel=1e-4, abs=1e-6)
    assert np.all(terms.curvature >= 0)
    assert np.all(terms.curvature <= (1 + 1e-12) / noise**2)


@pytest.mark.parametrize("which", ["noise", "lower", "upper"])
def test_derivatives_along_noise_and_thresholds(which):
    rng = np.random.default_rng(0)
    thresholds = np.array([-1.0, -0.4, 0.8])
    ranks = rng.integers(0, 4, 60)
    f, noise = 3 * rng.normal(size=60), 0.7

    def at(shift):
        edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
        lower, upper = edges[ranks].copy(), edges[ranks + 1].copy()
        lower += shift * (which == "lower")
        upper += shift * (which == "upper")
        scale = noise * np.exp(shift * (which == "noise"))
        rows = [_one(lo, hi, x, scale) for lo, hi, x in zip(lower, upper, f, strict=True)]
        return np.array(rows).T

    def _one(lower, upper, x, scale):
        terms = likelihood_terms(np.array([x]), np.array([0]), np.array([lower, upper]), scale)
        return -terms.log_mass[0], terms.slope[0], terms.curvature[0]

    terms = likelihood_terms(f, ranks, threshold_edges(thresholds), noise)
    names = {"noise": "by_log_noise", "lower": "by_lower", "upper": "by_upper"}
    found = np.array(getattr(terms, names[which])())
    assert found == pytest.approx(_difference(at, 0.0, 1e-5), rel=1e-5, abs=1e-7)
