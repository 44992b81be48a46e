from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import naive_metrics as naive

from ordrec import evaluation as ev
from ordrec.errors import ArgumentError, DataError

NAMES = ["log_loss", "ranked_probability_score", "brier_score", "expected_calibration_error"]


def draw(seed: int, n: int, n_ranks: int):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_ranks, 0.5), size=n)
    return rng.integers(0, n_ranks, n), p, rng.integers(0, 4, n)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), n_ranks=st.integers(2, 6))
def test_pooled_and_per_user_forms_equal_plain_loops(name, seed, n, n_ranks):
    levels, p, users = draw(seed, n, n_ranks)
    metric, twin = getattr(ev, name), getattr(naive, name)
    assert metric(levels, p) == pytest.approx(twin(levels.tolist(), p.tolist()), abs=1e-12)
    expected = naive.macro(twin, levels.tolist(), p.tolist(), users.tolist())
    assert metric(levels, p, groups=users) == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 10**6), n_bins=st.integers(1, 20))
def test_calibration_of_cumulative_events_equals_plain_loops(seed, n_bins):
    levels, p, _ = draw(seed, 30, 5)
    ours = ev.expected_calibration_error(levels, p, event="cumulative", n_bins=n_bins)
    twin = naive.expected_calibration_error(levels.tolist(), p.tolist(), "cumulative", n_bins)
    assert ours == pytest.approx(twin, abs=1e-12)


def test_a_bin_includes_its_upper_end():
    """0.5 is in the lower of two bins: with 0.25 there, and apart from 1."""
    p = [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]
    ours = ev.expected_calibration_error([0, 0, 1], p, event="cumulative", n_bins=2)
    assert ours == pytest.approx((abs(0.5 + 0.25 - 2) + abs(1.0 - 0)) / 3)


@given(seed=st.integers(0, 10**6))
def test_log_loss_agrees_with_scikit_learn(seed):
    from sklearn.metrics import log_loss

    levels, p, _ = draw(seed, 30, 4)
    assert ev.log_loss(levels, p) == pytest.approx(log_loss(levels, p, labels=range(4)))


def test_certain_predictions():
    sure = np.eye(5)
    assert ev.ranked_probability_score([0, 4], sure[[3, 4]]) == pytest.approx(3 / 4 / 2)
    assert ev.brier_score([0, 4], sure[[3, 4]]) == 1.0
    assert ev.log_loss([0], sure[[1]]) == pytest.approx(-np.log(1e-15))


def test_ranked_probability_score_knows_the_order_and_the_brier_score_does_not():
    near, far = [[0.0, 1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]]
    assert ev.ranked_probability_score([0], near) < ev.ranked_probability_score([0], far)
    assert ev.brier_score([0], near) == ev.brier_score([0], far)


def test_calibrated_forecasts_have_almost_no_calibration_error_and_boasts_do():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), size=20_000)
    levels = (rng.random((20_000, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    boast = p**3 / (p**3).sum(axis=1, keepdims=True)
    for event in ("top", "cumulative"):
        assert ev.expected_calibration_error(levels, p, event=event) < 0.02
        assert ev.expected_calibration_error(levels, boast, event=event) > 0.05


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_named(name):
    metric = getattr(ev, name)
    good = [[0.5, 0.5]]
    with pytest.raises(DataError, match=r"2 is not a level 0\.\.1"):
        metric([2], good)
    with pytest.raises(DataError, match="is not a level"):
        metric([0.5], good)
    with pytest.raises(DataError, match="negative or do not sum to 1"):
        metric([0], [[0.5, 0.6]])
    with pytest.raises(DataError, match="negative or do not sum to 1"):
        metric([0], [[-0.5, 1.5]])
    with pytest.raises(ArgumentError, match="one row per prediction"):
        metric([0], [0.5])
    with pytest.raises(DataError, match="nothing to measure"):
        metric([], np.zeros((0, 2)))
    with pytest.raises(DataError, match="prediction of row 0"):
        metric([0], [[np.nan, 1.0]])
    with pytest.raises(ArgumentError, match="one column of probabilities per level"):
        metric([0], [[1.0]])


def test_unknown_event_and_bins():
    with pytest.raises(ArgumentError, match='"top" or "cumulative"'):
        ev.expected_calibration_error([0], [[0.5, 0.5]], event="bottom")
    with pytest.raises(ArgumentError, match="n_bins"):
        ev.expected_calibration_error([0], [[0.5, 0.5]], n_bins=0)
