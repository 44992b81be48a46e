"""The pool of two distributions, and the exponents that are learnt for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize
from scipy.optimize import approx_fprime
from scipy.special import softmax

from ordrec.rating.pool import EQUAL, FEW, LIMIT, PRIOR, learnt_pool, pooled

N_RANKS = 5
EXPONENT = st.floats(0.0, LIMIT)


def distributions(values: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, (4, N_RANKS), elements=values).map(
        lambda logits: softmax(logits, axis=1)
    )


MILD, EXTREME = st.floats(-5, 5), st.floats(-700, 700)


@given(distributions(EXTREME), distributions(EXTREME), EXPONENT, EXPONENT)
def test_a_pool_is_a_distribution_however_sure_its_members_are(first, second, a, b) -> None:
    p = pooled(first, second, (a, b))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p >= 0).all()


@given(distributions(MILD), distributions(MILD))
def test_exponents_of_one_and_zero_give_the_members(first, second) -> None:
    np.testing.assert_allclose(pooled(first, second, (1.0, 0.0)), first, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(pooled(first, second, (0.0, 1.0)), second, rtol=1e-9, atol=1e-11)
    uniform = pooled(first, second, (0.0, 0.0))
    np.testing.assert_allclose(uniform, 1.0 / N_RANKS, rtol=1e-12)


@given(distributions(MILD), distributions(MILD), EXPONENT, EXPONENT)
def test_a_pool_by_hand_and_its_symmetry(first, second, a, b) -> None:
    by_hand = first**a * second**b
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    p = pooled(first, second, (a, b))
    np.testing.assert_allclose(p, by_hand, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(p, pooled(second, first, (b, a)), rtol=1e-9, atol=1e-12)


def experts(seed: int, n: int, noises: tuple[float, float]) -> tuple[np.ndarray, ...]:
    """Two noisy opinions about logits, and ranks drawn from the logits themselves."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, N_RANKS))
    p = softmax(truth, axis=1)
    levels = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(max=N_RANKS - 1)
    first, second = (
        softmax(truth + noise * rng.normal(size=truth.shape), axis=1) for noise in noises
    )
    return first, second, levels


def objective(first: np.ndarray, second: np.ndarray, levels: np.ndarray, a: float, b: float):
    """Minus the log-likelihood of the ratings, and the belief in equal exponents."""
    own = pooled(first, second, (a, b))[np.arange(levels.size), levels]
    return -np.log(own).sum() + PRIOR * ((a - EQUAL[0]) ** 2 + (b - EQUAL[1]) ** 2) / 2


@pytest.mark.parametrize("noises", [(0.3, 0.3), (0.3, 2.0), (2.0, 0.1), (1.0, 1.0)])
def test_learnt_exponents_are_the_best_of_a_grid(noises) -> None:
    first, second, levels = experts(0, 800, noises)
    a, b = learnt_pool(first, second, levels)
    found = objective(first, second, levels, a, b)
    grid = np.linspace(0.0, LIMIT, 31)
    assert found <= min(objective(first, second, levels, x, y) for x in grid for y in grid) + 1e-6
    near = [(a + da, b + db) for da in (-0.01, 0, 0.01) for db in (-0.01, 0, 0.01)]
    inside = [(x, y) for x, y in near if 0 <= x <= LIMIT and 0 <= y <= LIMIT]
    assert found <= min(objective(first, second, levels, x, y) for x, y in inside) + 1e-3


def test_the_gradient_is_that_of_the_loss(monkeypatch) -> None:
    first, second, levels = experts(1, 300, (0.5, 0.8))
    seen = []
    usual = optimize.minimize
    monkeypatch.setattr(
        optimize,
        "minimize",
        lambda loss, *words, **more: seen.append(loss) or usual(loss, *words, **more),
    )
    learnt_pool(first, second, levels)
    (loss,) = seen
    for at in ([0.5, 0.5], [0.0, 1.7], [2.5, 0.1]):
        numerical = approx_fprime(np.array(at), lambda weights: loss(weights)[0], 1e-6)
        np.testing.assert_allclose(loss(np.array(at))[1], numerical, atol=1e-5)
        by_hand = objective(first, second, levels, *at) / levels.size
        assert loss(np.array(at))[0] == pytest.approx(by_hand, rel=1e-9)


def test_from_few_ratings_nothing_is_learnt() -> None:
    first, second, levels = experts(2, FEW, (0.1, 3.0))
    assert learnt_pool(first[:-1], second[:-1], levels[:-1]) == EQUAL
    assert learnt_pool(first, second, levels) != EQUAL


def test_a_member_of_pure_noise_has_no_say() -> None:
    first, _, levels = experts(3, 5_000, (0.0, 0.0))
    noise = softmax(np.random.default_rng(9).normal(size=first.shape), axis=1)
    a, b = learnt_pool(first, noise, levels)
    assert a == pytest.approx(1.0, abs=0.1)
    assert b < 0.05
    assert learnt_pool(noise, first, levels) == pytest.approx((b, a), abs=1e-3)


def test_members_who_err_independently_are_surer_together() -> None:
    first, second, levels = experts(4, 5_000, (0.7, 0.7))
    a, b = learnt_pool(first, second, levels)
    loss = -np.log(pooled(first, second, (a, b))[np.arange(levels.size), levels]).mean()
    for member in (first, second):
        assert loss < -np.log(member[np.arange(levels.size), levels]).mean() - 0.05
    alone, _ = learnt_pool(first, np.full_like(first, 1.0 / N_RANKS), levels)
    assert a + b > alone + 0.05
    assert a == pytest.approx(b, abs=0.1)
