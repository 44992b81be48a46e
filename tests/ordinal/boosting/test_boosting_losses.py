"""Steps and thresholds of a round against sums over samples, thresholds and pairs."""

from __future__ import annotations

import numpy as np
import pytest
from naive import naive_boosting
from scipy.optimize import minimize_scalar

from ordrec.ordinal.boosting.orboost import MarginLoss, bounded_ratio
from ordrec.ordinal.boosting.rankboost import PairLoss
from ordrec.ordinal.losses import Loss, gradient, objective


def state(seed=0, n=25, n_ranks=5):
    rng = np.random.default_rng(seed)
    ranks = np.concatenate([np.arange(n_ranks), rng.integers(0, n_ranks, n - n_ranks)])
    return 2 * rng.normal(size=n), ranks, rng.uniform(0.3, 2, n), rng


@pytest.mark.parametrize("reach", ["immediate", "all"])
def test_pulls_are_the_exponential_row_of_the_shared_table(reach):
    H, ranks, weight, rng = state()
    theta = np.sort(rng.normal(size=4))
    p, q, log_loss = MarginLoss(ranks, 5, weight, reach).pulls(H, theta)
    value = objective(H, theta, ranks, Loss("exponential"), reach, weight)
    assert np.exp(log_loss) == pytest.approx(value)
    assert value == pytest.approx(
        naive_boosting.margin_loss(H, theta, ranks, weight, reach == "immediate")
    )
    by_score, _ = gradient(H, theta, ranks, Loss("exponential"), reach, weight)
    factor = value / (p + q).sum()
    np.testing.assert_allclose(factor * (p - q), by_score)


def test_pulls_of_rankboost_are_those_of_all_pairs():
    H, ranks, weight, _ = state()
    loss = PairLoss(ranks, 5, weight)
    p, q, log_loss = loss.pulls(H, np.zeros(4))
    value = naive_boosting.pair_loss(H, ranks, weight)
    assert np.exp(log_loss) == pytest.approx(value)
    factor = 2 * value / (p + q).sum()
    for i in (0, 7, 20):
        step = 1e-6 * (np.arange(H.size) == i)
        rise = naive_boosting.pair_loss(H + step, ranks, weight)
        rise -= naive_boosting.pair_loss(H - step, ranks, weight)
        assert factor * (p - q)[i] == pytest.approx(rise / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("reach", ["immediate", "all"])
def test_thresholds_minimise_the_loss_and_are_ordered(reach):
    for seed in range(10):
        H, ranks, weight, rng = state(seed)
        loss = MarginLoss(ranks, 5, weight, reach)
        theta = loss.thresholds(H)
        assert (np.diff(theta) >= 0).all()
        least = loss.pulls(H, theta)[2]
        for _ in range(30):
            near = np.sort(theta + 0.1 * rng.normal(size=4))
            assert loss.pulls(H, near)[2] >= least - 1e-12


def test_left_right_thresholds_need_pooling_on_this_example():
    H, ranks, weight, _ = state(1)
    free = [
        0.5
        * np.log(
            (weight * np.exp(H))[ranks == k].sum() / (weight * np.exp(-H))[ranks == k + 1].sum()
        )
        for k in range(4)
    ]
    assert (np.diff(free) < 0).any()
    theta = MarginLoss(ranks, 5, weight, "immediate").thresholds(H)
    assert (np.diff(theta) >= 0).all()
    assert not np.allclose(theta, free)
    apart = np.array(free)[[0, -1]]  # this example pools what lies between the outer ones
    assert apart.min() <= theta.min() <= theta.max() <= np.max(free)


@pytest.mark.parametrize("reach", ["immediate", "all"])
def test_step_is_the_exact_minimum_for_binary_members(reach):
    H, ranks, weight, rng = state(2)
    loss = MarginLoss(ranks, 5, weight, reach)
    theta = loss.thresholds(H)
    h = np.where(rng.random(H.size) < 0.5, 1.0, -1.0)
    p, q, _ = loss.pulls(H, theta)
    best = minimize_scalar(
        lambda a: loss.pulls(H + a * h, theta)[2], bounds=(-5, 5), method="bounded"
    )
    assert loss.step(h, p, q) == pytest.approx(best.x, abs=1e-4)


def test_step_of_rankboost_is_that_of_the_paper():
    """With Z the loss and r = sum h (q - p): a quarter of ln (2Z + r) / (2Z - r)."""
    for seed in range(5):
        H, ranks, weight, rng = state(seed)
        loss = PairLoss(ranks, 5, weight)
        p, q, _ = loss.pulls(H, np.zeros(4))
        assert p.sum() == pytest.approx(q.sum())
        h = rng.uniform(-1, 1, H.size)
        Z, r = p.sum(), h @ (q - p)
        assert loss.step(h, p, q) == pytest.approx(0.25 * np.log((2 * Z + r) / (2 * Z - r)))


@pytest.mark.parametrize("kind", ["immediate", "all", "pairs"])
def test_step_never_raises_the_loss_for_members_within_one(kind):
    for seed in range(20):
        H, ranks, weight, rng = state(seed)
        loss = PairLoss(ranks, 5, weight) if kind == "pairs" else MarginLoss(ranks, 5, weight, kind)
        theta = loss.thresholds(H)
        p, q, before = loss.pulls(H, theta)
        h = rng.uniform(-1, 1, H.size)
        assert loss.pulls(H + loss.step(h, p, q) * h, theta)[2] <= before + 1e-12


def test_huge_scores_leave_everything_finite():
    H, ranks, weight, _ = state(3)
    for loss in (
        MarginLoss(ranks, 5, weight, "all"),
        MarginLoss(ranks, 5, weight, "immediate"),
        PairLoss(ranks, 5, weight),
    ):
        theta = loss.thresholds(1e5 * H)
        p, q, log_loss = loss.pulls(1e5 * H, theta)
        assert np.isfinite(theta).all()
        assert np.isfinite(log_loss)
        assert np.isfinite(p - q).all()
        assert max(p.max(), q.max()) == pytest.approx(1.0)


def test_a_faultless_member_gets_a_long_but_finite_step():
    assert bounded_ratio(1.0, 0.0) == 24.0
    assert bounded_ratio(0.0, 1.0) == -24.0
    assert bounded_ratio(0.0, 0.0) == 0.0
    assert bounded_ratio(np.e, 1.0) == pytest.approx(1.0)
