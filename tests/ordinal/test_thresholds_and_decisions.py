"""The prediction rule, tail-safe probabilities, the calibrated link and decisions."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, log_ndtr

from ordrec.data.scale import Scale
from ordrec.ordinal.decisions import decide, expected_rank
from ordrec.ordinal.thresholds.link import _negative_log_posterior, fit_link
from ordrec.ordinal.thresholds.probabilities import log_interval, rank_probabilities, ranks_between

SCORES = arrays(np.float64, 12, elements=st.floats(-5, 5))


def log_normal_interval(a, b):
    """ln of the normal integral from a to b >= a >= 0, by quadrature relative to its left end."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    width = min(b - a, 40.0 / max(a, 1.0))
    t = 0.5 * width * (nodes + 1)
    inside = 0.5 * width * weights @ np.exp(-a * t - 0.5 * t * t)
    return -0.5 * a * a - 0.5 * np.log(2 * np.pi) + np.log(inside)


def log_logistic_interval(a, b):
    with localcontext() as context:
        context.prec = 400
        low, high = 1 / (1 + (-Decimal(a)).exp()), 1 / (1 + (-Decimal(b)).exp())
        return float((high - low).ln())


@given(SCORES, st.lists(st.floats(-4, 4), min_size=1, max_size=5))
def test_rule_is_the_first_threshold_above_the_score(scores, cuts):
    thresholds = np.array(cuts)  # not necessarily ordered
    for f, rank in zip(scores, ranks_between(scores, thresholds), strict=True):
        above = [j for j, b in enumerate(cuts) if f < b]
        assert rank == (above[0] if above else len(cuts))


@given(st.lists(st.floats(-4, 4), min_size=1, max_size=5), SCORES)
def test_rule_counts_the_thresholds_passed_when_they_are_ordered(cuts, scores):
    thresholds = np.sort(cuts)
    assert (ranks_between(scores, thresholds) == (scores[:, None] >= thresholds).sum(axis=1)).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [(0.0, 0.5), (1.0, 1.0 + 1e-6), (5.0, 6.0), (20.0, 20.5), (38.0, 45.0), (100.0, 101.0)],
)
def test_normal_intervals_in_the_tails(a, b):
    expected = log_normal_interval(a, b)
    lower, upper = np.array([a, -b]), np.array([b, -a])
    np.testing.assert_allclose(log_interval(lower, upper), expected, rtol=1e-9)


@pytest.mark.parametrize("shift", [-300.0, -40.0, -1.0, 0.0, 3.0, 36.0, 300.0])
@pytest.mark.parametrize("width", [1e-6, 1.0, 50.0])
def test_logistic_intervals_in_the_tails(shift, width):
    ours = log_interval(np.array([shift]), np.array([shift + width]), "logit")[0]
    assert ours == pytest.approx(log_logistic_interval(shift, shift + width), rel=1e-8)


def test_infinite_ends_are_one_sided():
    z = np.array([-40.0, -1.0, 0.0, 2.0, 40.0])
    np.testing.assert_allclose(log_interval(np.full(5, -np.inf), z), log_ndtr(z))
    np.testing.assert_allclose(log_interval(z, np.full(5, np.inf)), log_ndtr(-z))
    assert log_interval(np.array([-np.inf]), np.array([np.inf]))[0] == 0.0


@given(st.floats(-2000, 2000), st.sampled_from(["probit", "logit"]))
def test_rank_probabilities_are_a_distribution_however_far_the_score(score, link):
    p = rank_probabilities(np.array([score]), np.array([-1.0, 0.5, 2.0]), 0.7, link)
    assert p.shape == (1, 4)
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1.0)


def test_rank_probabilities_are_differences_of_the_cumulative_ones():
    f, b = np.array([0.3, -1.2]), np.array([-1.0, 0.0, 1.5])
    scale = np.array([0.5, 2.0])
    p = rank_probabilities(f, b, scale, "logit")
    cumulative = expit((b - f[:, None]) / scale[:, None])
    np.testing.assert_allclose(np.cumsum(p, axis=1)[:, :-1], cumulative)


def test_link_gradient_by_central_differences():
    rng = np.random.default_rng(0)
    f, ranks, w = rng.normal(size=20), rng.integers(0, 4, 20), rng.uniform(0.5, 2, 20)
    x = np.array([-0.8, -0.3, 0.2, -0.4])
    _, slope = _negative_log_posterior(x, f, ranks, w)
    for j in range(4):
        step = 1e-6 * (np.arange(4) == j)
        rise = _negative_log_posterior(x + step, f, ranks, w)[0]
        rise -= _negative_log_posterior(x - step, f, ranks, w)[0]
        assert slope[j] == pytest.approx(rise / 2e-6, rel=1e-5, abs=1e-6)


def test_link_follows_a_change_of_scale_and_origin():
    rng = np.random.default_rng(1)
    f = rng.normal(size=400)
    y = np.digitize(f + 0.7 * rng.normal(size=400), [-1.0, 0.0, 1.2])
    link, moved = fit_link(f, y, 4), fit_link(50 * f + 7, y, 4)
    np.testing.assert_allclose(moved.thresholds, 50 * link.thresholds + 7, rtol=1e-3)
    np.testing.assert_allclose(moved.probabilities(50 * f + 7), link.probabilities(f), atol=1e-3)


def test_link_of_unrelated_scores_returns_the_shares_of_the_ranks():
    rng = np.random.default_rng(2)
    y = rng.choice(3, size=3000, p=[0.5, 0.2, 0.3])
    p = fit_link(rng.normal(size=3000), y, 3).probabilities(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(p, np.tile([0.5, 0.2, 0.3], (3, 1)), atol=0.06)


def test_link_gives_absent_ranks_a_place_and_weights_count():
    rng = np.random.default_rng(3)
    f = rng.normal(size=200)
    y = np.where(f > 0, 3, 1)
    link = fit_link(f, y, 5)
    assert (np.diff(link.thresholds) > 0).all()
    assert np.isfinite(link.probabilities(f)).all()
    copies = rng.integers(1, 4, 200)
    weighted = fit_link(f, y, 5, copies.astype(float))
    assert weighted.thresholds.shape == (4,)


@given(
    arrays(np.float64, (6, 5), elements=st.floats(0.01, 1)),
    arrays(np.float64, (5, 5), elements=st.floats(0, 3)),
)
def test_decisions_have_the_least_expected_cost(weights, costs):
    p = weights / weights.sum(axis=1, keepdims=True)
    scale = np.arange(5)
    for decision, cost in (
        ("mode", 1.0 - np.eye(5)),
        ("median", np.abs(scale[:, None] - scale)),
        ("mean", (scale[:, None] - scale) ** 2.0),
        (costs, costs),
    ):
        chosen = decide(p, decision)
        risk = p @ cost
        np.testing.assert_allclose(risk[np.arange(6), chosen], risk.min(axis=1), atol=1e-9)


def test_an_exact_half_is_the_lower_rank():
    p = np.array([[0.5, 0.5], [0.1 + 0.2 + 0.2, 0.5], [0.49, 0.51], [0.51, 0.49]])
    assert decide(p, "median").tolist() == [0, 0, 1, 0]
    assert decide(p, "mode").tolist() == [0, 0, 1, 0]


def test_a_scale_may_be_given_in_place_of_its_values():
    p, scale = np.array([[0.4, 0.05, 0.25, 0.3]]), Scale([1.0, 2.0, 3.0, 5.0])
    for decision in ("mode", "median", "mean"):
        assert decide(p, decision, scale) == pytest.approx(decide(p, decision, scale.values))


def test_decisions_are_ratings_where_values_are_given():
    p = np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    values = np.array([0.5, 1.0, 3.0, 5.0])
    for decision in ("mode", "median", np.abs(values[:, None] - values)):
        np.testing.assert_array_equal(decide(p, decision, values), values[decide(p, decision)])
    np.testing.assert_array_equal(decide(p, "mean", values), p @ values)
    with pytest.raises(ValueError, match="decision must be"):
        decide(p, "average", values)


def test_expected_rank_and_refusals():
    p = np.array([[0.25, 0.25, 0.5]])
    assert expected_rank(p)[0] == 1.25
    with pytest.raises(ValueError, match="decision must be"):
        decide(p, "average")
    with pytest.raises(ValueError, match="cost matrix must be finite"):
        decide(p, np.zeros((2, 2)))


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_thresholds_that_all_but_coincide_leave_no_probability_and_no_nan(link):
    lower = np.random.default_rng(0).normal(size=100_000) * 5
    for upper in (lower, np.nextafter(lower, np.inf)):
        found = log_interval(lower, upper, link)
        assert not np.isnan(found).any()
        assert (found < -30).all()
