"""Newton's method against generic convex solvers, and the hinge limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.naive_logistic import solve_with_cvxpy

from ordrec.ordinal.logistic import objective as module
from ordrec.ordinal.logistic.newton import _multipliers, _tie_matrix, solve
from ordrec.ordinal.losses import Loss, objective


def sample(n=36, d=2, n_ranks=4, seed=0, noise=0.8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X @ rng.normal(size=d) + noise * rng.normal(size=n)
    cuts = np.quantile(f, np.arange(1, n_ranks) / n_ranks)
    return X, np.searchsorted(cuts, f)


def disordered_sample():
    """Rank 1 is rare and lies on the wrong side, so that free immediate thresholds cross."""
    X = np.array([[-2.0], [-1.5], [-1.0], [0.9], [-1.2], [0.0], [0.4], [0.8], [1.5], [2.0]])
    return X, np.array([0, 0, 0, 1, 2, 2, 2, 3, 3, 3])


@pytest.mark.parametrize("immediate", [True, False])
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (Loss("logistic"), {"loss": "logistic"}),
        (Loss("shifted", margin=1.5), {"loss": "shifted", "margin": 1.5}),
        (Loss("generalised", sharpness=4.0), {"loss": "generalised", "sharpness": 4.0}),
    ],
    ids=["logistic", "shifted", "generalised"],
)
def test_optimum_of_every_cell_against_a_conic_solver(loss, options, immediate):
    X, y = sample()
    weight = np.linspace(0.5, 2.0, y.size)
    reach = "immediate" if immediate else "all"
    w, b, value = solve_with_cvxpy(
        X, y, 4, immediate=immediate, alpha=0.3, weight=weight, ordered=immediate, **options
    )
    ours = solve(X, y, 4, loss=loss, reach=reach, alpha=0.3, weight=weight)
    assert ours.converged
    assert ours.objective <= value * (1 + 1e-8)
    penalty = 0.15 * ours.coef @ ours.coef
    table = objective(X @ ours.coef, ours.thresholds, y, loss, reach, weight, penalty)
    assert ours.objective == pytest.approx(table)
    np.testing.assert_allclose(ours.coef, w, atol=1e-4)
    np.testing.assert_allclose(ours.thresholds, b, atol=1e-4)


@pytest.mark.parametrize("ordered", [True, False])
def test_disordered_immediate_thresholds_are_free_or_held(ordered):
    X, y = disordered_sample()
    w, b, value = solve_with_cvxpy(
        X, y, 4, loss="logistic", immediate=True, alpha=0.5, ordered=ordered
    )
    ours = solve(X, y, 4, loss=Loss("logistic"), reach="immediate", alpha=0.5, ordered=ordered)
    assert ours.converged
    assert ours.objective == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(ours.thresholds, b, atol=1e-3)
    np.testing.assert_allclose(ours.coef, w, atol=1e-3)
    assert (np.diff(ours.thresholds) >= 0).all() == ordered


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(3, 6), st.sampled_from(["immediate", "all"]))
def test_thresholds_are_ordered_and_stationary_on_any_labels(seed, n_ranks, reach):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(14, 2)), rng.integers(0, n_ranks, 14)
    y[:n_ranks] = np.arange(n_ranks)
    ours = solve(X, y, n_ranks, loss=Loss("logistic"), reach=reach, alpha=0.1)
    assert ours.converged
    gaps = np.diff(ours.thresholds)
    assert (gaps >= (0 if reach == "immediate" else -1e-9)).all()
    # no ordered neighbour does better
    for _ in range(20):
        b = np.sort(ours.thresholds + 0.05 * rng.normal(size=n_ranks - 1))
        w = ours.coef + 0.05 * rng.normal(size=2)
        near = objective(X @ w, b, y, Loss("logistic"), reach, 1.0, 0.05 * w @ w)
        assert near >= ours.objective - 1e-9


@pytest.mark.parametrize("immediate", [True, False], ids=["EXC", "IMC"])
def test_the_limit_of_large_sharpness_is_the_hinge_solution(immediate):
    X, y = sample(n=30, seed=4)
    C = 2.0
    w, _, value = solve_with_cvxpy(
        X, y, 4, loss="hinge", immediate=immediate, alpha=1 / C, ordered=immediate
    )
    reach = "immediate" if immediate else "all"
    distance = []
    for sharpness in (10.0, 100.0, 10000.0):
        loss = Loss("generalised", sharpness=sharpness)
        ours = solve(X, y, 4, loss=loss, reach=reach, alpha=1 / C)
        penalty = ours.coef @ ours.coef / (2 * C)
        hinge = objective(X @ ours.coef, ours.thresholds, y, Loss("hinge"), reach, 1.0, penalty)
        # each of the at most 3 pairs per sample is within ln 2 / sharpness of its hinge
        assert -1e-6 <= hinge - value <= 3 * 30 * np.log(2) / sharpness
        distance.append(np.abs(ours.coef - w).max())
    assert distance[2] < 1e-3
    assert distance[2] < distance[0]


@pytest.mark.parametrize("immediate", [True, False], ids=["EXC", "IMC"])
def test_the_shifted_loss_tends_to_the_hinge_too(immediate):
    X, y = sample(n=30, seed=4)
    C, margin = 2.0, 10000.0
    w, _, _ = solve_with_cvxpy(
        X, y, 4, loss="hinge", immediate=immediate, alpha=1 / C, ordered=immediate
    )
    reach = "immediate" if immediate else "all"
    alpha = 1 / (C * margin)
    ours = solve(X, y, 4, loss=Loss("shifted", margin=margin), reach=reach, alpha=alpha)
    np.testing.assert_allclose(ours.coef / margin, w, atol=1e-3)


def test_shifted_and_generalised_have_one_solution_on_two_scales():
    X, y = sample()
    shifted = solve(X, y, 4, loss=Loss("shifted", margin=6.0), reach="all", alpha=0.1)
    sharp = solve(X, y, 4, loss=Loss("generalised", sharpness=6.0), reach="all", alpha=0.6)
    np.testing.assert_allclose(shifted.coef, 6.0 * sharp.coef, rtol=1e-6)
    np.testing.assert_allclose(shifted.thresholds, 6.0 * sharp.thresholds, rtol=1e-6)
    assert shifted.objective == pytest.approx(6.0 * sharp.objective)


def test_products_and_explicit_hessian_reach_the_same_point(monkeypatch):
    X, y = sample(n=200, d=6)
    explicit = solve(X, y, 4, loss=Loss("logistic"), reach="all")
    monkeypatch.setattr(module, "EXPLICIT", 0)
    products = solve(X, y, 4, loss=Loss("logistic"), reach="all")
    np.testing.assert_allclose(products.coef, explicit.coef, rtol=1e-6)


def test_badly_scaled_features_still_converge(monkeypatch):
    X, y = sample(n=200, d=4)
    monkeypatch.setattr(module, "EXPLICIT", 0)
    scale = np.array([1e-3, 1.0, 1e3, 1e5])
    ours = solve(X * scale, y, 4, loss=Loss("logistic"), reach="all", alpha=1e-6)
    plain = solve(X, y, 4, loss=Loss("logistic"), reach="all", alpha=1e-12)
    assert ours.converged
    np.testing.assert_allclose(ours.coef[1:] * scale[1:], plain.coef[1:], rtol=0.05)


def test_a_start_near_the_end_saves_iterations():
    X, y = sample(n=300, d=5)
    first = solve(X, y, 4, loss=Loss("logistic"), reach="all")
    again = solve(X, y, 4, loss=Loss("logistic"), reach="all", start=first.state)
    assert again.n_iter == 1 < first.n_iter
    np.testing.assert_allclose(again.coef, first.coef, rtol=1e-7)


def test_non_convergence_is_reported_and_not_raised():
    X, y = sample()
    ours = solve(X, y, 4, loss=Loss("logistic"), reach="all", max_iter=1)
    assert not ours.converged
    assert ours.n_iter == 1
    assert ours.violation > 1e-8


def test_tie_matrix_and_multipliers_by_hand():
    tied = np.array([True, False, True, True])
    E = _tie_matrix(tied)
    assert E.argmax(axis=1).tolist() == [0, 0, 1, 1, 1]
    lam = _multipliers(np.array([-1.0, 1.0, 2.0, -5.0, 3.0]), tied)
    assert lam.tolist() == [1.0, np.inf, -2.0, 3.0]
