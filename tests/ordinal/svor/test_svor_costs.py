"""Costs of section 3.1: their mapping to thresholds, and their effect on the thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from naive.naive_svor import oracle

from ordrec.ordinal.svor.problems import (
    check_costs,
    solve_explicit,
    solve_implicit,
    threshold_costs,
)

RANKS = np.arange(4)
ABSOLUTE = np.abs(RANKS[:, None] - RANKS).astype(float)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    ranks = np.digitize(X[:, 0] + 0.7 * rng.normal(size=60), [-0.8, 0.0, 0.8])
    return np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)), ranks


def test_absolute_costs_are_plain_imc(problem):
    K, ranks = problem
    plain = solve_implicit(K, ranks, 4, C=2.0)
    costly = solve_implicit(K, ranks, 4, C=2.0, costs=ABSOLUTE)
    assert np.array_equal(plain.coef, costly.coef)
    assert np.array_equal(plain.thresholds, costly.thresholds)


def test_zero_one_costs_are_exc(problem):
    K, ranks = problem
    explicit = solve_explicit(K, ranks, 4, C=2.0)
    costly = solve_implicit(K, ranks, 4, C=2.0, costs=(ABSOLUTE > 0).astype(float))
    assert costly.objective == pytest.approx(explicit.objective, rel=1e-9)
    assert costly.thresholds == pytest.approx(explicit.thresholds)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_any_costs_reach_the_optimum_of_a_generic_solver(problem, power):
    K, ranks = problem
    costs = np.where(ABSOLUTE > 0, ABSOLUTE**power, 0.0) * np.array([[1.0], [2.0], [1.0], [0.5]])
    best, _, b = oracle(K, ranks, 4, 1.0, reach="all", ordered=True, costs=costs)
    solution = solve_implicit(K, ranks, 4, C=1.0, costs=costs, tol=1e-6)
    assert solution.objective == pytest.approx(best, rel=1e-5)
    assert np.all(np.diff(solution.thresholds) >= 0.0)
    assert solution.thresholds == pytest.approx(b, abs=0.05)


def test_losses_at_the_thresholds_crossed_add_up_to_the_cost():
    costs = check_costs([[0, 1, 4, 9], [2, 0, 2, 3], [4, 1, 0, 1], [9, 5, 1, 0]], 4)
    steps = threshold_costs(costs)
    for true in range(4):
        for predicted in range(4):
            low, high = sorted((true, predicted))
            assert steps[true, low:high].sum() == costs[true, predicted]


def test_costs_pull_the_thresholds(problem):
    K, ranks = problem
    cautious = ABSOLUTE.copy()
    cautious[3, :3] *= 10.0  # never miss the top rank
    plain = solve_implicit(K, ranks, 4, C=1.0)
    careful = solve_implicit(K, ranks, 4, C=1.0, costs=cautious)
    missed = [np.mean((K @ s.coef)[ranks == 3] < s.thresholds[2]) for s in (plain, careful)]
    assert missed[1] < missed[0]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (np.ones((3, 3)), "shape"),
        (ABSOLUTE + 1, "zero on the diagonal"),
        (np.where(ABSOLUTE == 2, 0.5, ABSOLUTE), "must not fall"),
        (np.zeros((4, 4)), "tell any two neighbouring ranks apart"),
        (np.where(ABSOLUTE == 3, np.nan, ABSOLUTE), "finite"),
    ],
)
def test_invalid_costs_are_refused(costs, message):
    with pytest.raises(ValueError, match=message):
        check_costs(costs, 4)


def test_a_rank_that_costs_nothing_has_no_influence(problem):
    K, ranks = problem
    costs = ABSOLUTE.copy()
    costs[1] = 0.0
    counted = np.flatnonzero(ranks != 1)
    free = solve_implicit(K, ranks, 4, C=1.0, costs=costs, tol=1e-6)
    without = solve_implicit(
        K[np.ix_(counted, counted)], ranks[counted], 4, C=1.0, costs=costs, tol=1e-6
    )
    assert free.converged
    assert free.n_iter < 50
    assert not free.coef[ranks == 1].any()
    assert free.objective == pytest.approx(without.objective, rel=1e-6)
