"""The solvers against a generic convex solver, each other, and the optimality conditions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.naive_svor import oracle, primal, violation_by_loops

from ordrec.linalg import lapack
from ordrec.linalg.lapack import factorise_in_threads
from ordrec.ordinal.gram import shifted
from ordrec.ordinal.gram.matrix import FactoredGram, as_gram
from ordrec.ordinal.gram.shifted import BorderedFactor, ShiftedGram
from ordrec.ordinal.svor import solver
from ordrec.ordinal.svor.interior import _evaluate
from ordrec.ordinal.svor.multipliers import bounds_of
from ordrec.ordinal.svor.newton_system import Point
from ordrec.ordinal.svor.pairs import adjacent_pairs, all_pairs, anchored_thresholds
from ordrec.ordinal.svor.problems import solve_explicit, solve_implicit
from ordrec.ordinal.svor.solver import solve_pairs
from ordrec.runtime.parallel import loop_threads

TIGHT = 1e-6


def _gram(kind, X):
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    if kind == "linear":
        return X @ X.T
    if kind == "constant":
        return np.ones_like(distances)
    return np.exp(-distances * {"wide": 0.05, "narrow": 20.0}[kind])


@st.composite
def problems(draw):
    """Small problems: definite and singular kernels, duplicated rows, margins without samples."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_ranks = draw(st.integers(4, 30)), draw(st.integers(2, 10))
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    if draw(st.booleans()):
        X = np.round(X)  # many equal rows
    K = _gram(draw(st.sampled_from(["linear", "constant", "wide", "narrow"])), X)
    score = X[:, 0] + draw(st.sampled_from([0.0, 0.3, 3.0])) * rng.normal(size=n)
    ranks = np.digitize(score, np.quantile(score, np.sort(rng.random(n_ranks - 1))))
    ranks[:2] = [0, n_ranks - 1]
    C = 10.0 ** draw(st.integers(-2, 2)) * np.ones(n)
    if draw(st.booleans()):
        C *= rng.uniform(0.2, 2.0, size=n)
    return K, ranks, n_ranks, C


def _solve(form, K, ranks, n_ranks, C, **options):
    if form == "implicit":
        return solve_implicit(K, ranks, n_ranks, C=C, **options)
    return solve_explicit(K, ranks, n_ranks, C=C, ordered=form == "explicit", **options)


def _no_inner_gap(ranks):
    return np.unique(ranks).size == ranks.max() - ranks.min() + 1


@pytest.mark.parametrize("form", ["implicit", "explicit", "disordered"])
@given(problem=problems())
@settings(max_examples=25)
def test_objective_of_a_generic_solver(form, problem):
    K, ranks, n_ranks, C = problem
    if form == "disordered" and not _no_inner_gap(ranks):
        return  # empty inner ranks are merged there, which the literal problem does not do
    reach = "all" if form == "implicit" else "immediate"
    best, f, _ = oracle(K, ranks, n_ranks, C, reach=reach, ordered=form == "explicit")
    solution = _solve(form, K, ranks, n_ranks, C, tol=TIGHT)
    assert solution.converged
    assert solution.violation <= TIGHT
    mine = primal(K, ranks, n_ranks, C, solution.coef, solution.thresholds, reach=reach)
    assert mine == pytest.approx(best, rel=1e-5)
    assert solution.objective == pytest.approx(mine, rel=1e-6)
    if form != "disordered":
        assert np.all(np.diff(solution.thresholds) >= 0.0)
    assert K @ solution.coef == pytest.approx(f, abs=2e-2 * (1 + np.abs(f).max()))


@pytest.mark.parametrize("form", ["implicit", "explicit", "disordered"])
@pytest.mark.parametrize("seed", range(4))
def test_thresholds_to_five_digits_where_they_are_unique(form, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    ranks = np.digitize(X[:, 0] + 0.5 * rng.normal(size=40), [-0.8, 0.0, 0.8])
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    reach = "all" if form == "implicit" else "immediate"
    best, _, b = oracle(K, ranks, 4, 2.0, reach=reach, ordered=form == "explicit")
    solution = _solve(form, K, ranks, 4, 2.0, tol=1e-8)
    assert solution.objective == pytest.approx(best, rel=1e-8)
    state = solution.state
    bounds = bounds_of(state.pairs, state.alpha, state.mu, K @ solution.coef, form == "explicit")
    assert np.all(bounds.low - 1e-5 <= b)  # a whole interval may be optimal
    assert np.all(b <= bounds.up + 1e-5)
    unique = bounds.up - bounds.low < 1e-6
    assert unique.any()
    assert solution.thresholds[unique] == pytest.approx(b[unique], abs=1e-5)


@pytest.mark.parametrize("form", ["implicit", "explicit", "disordered"])
@given(problem=problems())
@settings(max_examples=15)
def test_smo_and_interior_point_agree(form, problem):
    K, ranks, n_ranks, C = problem
    fast = _solve(form, K, ranks, n_ranks, C)
    slow = _solve(form, K, ranks, n_ranks, C, method="smo")
    assert fast.converged
    assert slow.converged
    assert fast.objective == pytest.approx(slow.objective, rel=2e-4)


@pytest.mark.parametrize("form", ["implicit", "explicit", "disordered"])
@pytest.mark.parametrize("method", ["interior", "smo"])
@given(problem=problems())
@settings(max_examples=10)
def test_violation_and_gap_recomputed_from_scratch(form, method, problem):
    K, ranks, n_ranks, C = problem
    solution = _solve(form, K, ranks, n_ranks, C, method=method)
    state = solution.state
    alpha, pairs = state.alpha, state.pairs
    assert np.all((alpha >= 0.0) & (alpha <= pairs.cap))
    beta = np.bincount(pairs.sample, pairs.sign * alpha, minlength=len(ranks))
    assert beta == pytest.approx(solution.coef, abs=1e-9 * (1 + np.abs(beta).max()))
    balance = np.bincount(pairs.threshold, pairs.sign * alpha, minlength=state.mu.size)
    balance -= state.mu - np.append(state.mu[1:], 0.0)
    assert np.abs(balance).max() <= 1e-9 * pairs.cap.sum()
    assert np.all(state.mu >= 0.0)
    violation = violation_by_loops(
        K @ beta, alpha, pairs.cap, pairs.sample, pairs.threshold, pairs.sign, state.mu
    )
    assert violation == pytest.approx(solution.violation, abs=1e-6)
    gap = solution.objective - (alpha.sum() - 0.5 * beta @ K @ beta)
    assert gap == pytest.approx(solution.gap, abs=1e-6 * (1 + solution.objective))
    assert solution.converged
    assert solution.violation <= 1e-3
    assert solution.gap <= 1e-4 * solution.objective + 1e-6


@given(problem=problems(), seed=st.integers(0, 100))
@settings(max_examples=10)
def test_order_of_samples_does_not_matter(problem, seed):
    K, ranks, n_ranks, C = problem
    order = np.random.default_rng(seed).permutation(len(ranks))
    for form in ("implicit", "explicit"):
        one = _solve(form, K, ranks, n_ranks, C, tol=TIGHT)
        two = _solve(form, K[np.ix_(order, order)], ranks[order], n_ranks, C[order], tol=TIGHT)
        assert two.objective == pytest.approx(one.objective, rel=1e-6)
        assert K @ one.coef == pytest.approx(
            (K @ np.eye(len(ranks))[order].T) @ two.coef,
            abs=1e-3 * (1 + np.abs(K @ one.coef).max()),
        )


def test_a_repeated_sample_is_one_of_double_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    ranks = np.digitize(X[:, 0], [-0.5, 0.5])
    K = X @ X.T + np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    twice = np.append(np.arange(30), [3, 3, 7])
    weight = np.bincount(twice, minlength=30).astype(float)
    for form in ("implicit", "explicit", "disordered"):
        repeated = _solve(form, K[np.ix_(twice, twice)], ranks[twice], 3, np.ones(33), tol=1e-7)
        weighted = _solve(form, K, ranks, 3, weight, tol=1e-7)
        assert repeated.objective == pytest.approx(weighted.objective, rel=1e-6)
        assert repeated.thresholds == pytest.approx(weighted.thresholds, abs=1e-4)


def test_ordering_constraints_that_bind():
    # few samples of the middle rank between two overlapping crowds: SLA turns the thresholds
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, 1, 60), rng.normal(0.5, 1, 8), rng.normal(1, 1, 60)])
    ranks = np.repeat([0, 1, 2], [60, 8, 60])
    K = np.exp(-0.5 * (x[:, None] - x) ** 2)
    for C in (10.0, 100.0):
        free = solve_explicit(K, ranks, 3, C=C, ordered=False)
        bound = solve_explicit(K, ranks, 3, C=C)
        best, _, b = oracle(K, ranks, 3, C, reach="immediate", ordered=True)
        assert free.thresholds[1] < free.thresholds[0]
        assert bound.thresholds[0] == bound.thresholds[1]
        assert bound.state.mu[1] > 0
        assert bound.thresholds == pytest.approx(b, abs=1e-2)
        assert bound.objective == pytest.approx(best, rel=1e-4)


def test_two_ranks_make_all_forms_equal():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3))
    ranks = (X[:, 0] + 0.3 * rng.normal(size=50) > 0).astype(int)
    results = [_solve(form, X @ X.T, ranks, 2, 1.0) for form in ("implicit", "explicit", "SLA")]
    for other in results[1:]:
        assert other.coef == pytest.approx(results[0].coef)
        assert other.thresholds == pytest.approx(results[0].thresholds)


def test_single_precision_gives_nearly_the_same():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 4))
    ranks = np.digitize(X.sum(axis=1), [-2.0, 0.0, 2.0])
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    double = solve_implicit(K, ranks, 4, C=10.0)
    single = solve_implicit(K.astype(np.float32), ranks, 4, C=10.0)
    assert single.converged
    assert single.objective == pytest.approx(double.objective, rel=1e-4)
    assert single.thresholds == pytest.approx(double.thresholds, abs=5e-3)


def test_float32_products_are_summed_in_double_precision():
    rng = np.random.default_rng(5)
    K = rng.normal(size=(200, 200)).astype(np.float32)
    K += K.T
    beta = 1e4 * rng.normal(size=200)
    f = as_gram(K).times(beta)
    assert f == pytest.approx(K.astype(np.float64) @ beta, rel=1e-12, abs=1e-8)


def test_empty_ranks_have_ordered_finite_thresholds():
    rng = np.random.default_rng(6)
    x = np.sort(rng.normal(size=40))
    K = np.exp(-((x[:, None] - x) ** 2))
    ranks = np.repeat([2, 4], 20)  # of 0..6: empty below, between and above
    for form in ("implicit", "explicit", "disordered"):
        solution = _solve(form, K, ranks, 7, 1.0)
        b, f = solution.thresholds, K @ solution.coef
        assert np.all(np.isfinite(b))
        assert np.all(np.diff(b) >= 0.0)
        assert b[2] == pytest.approx(b[3], abs=1e-3)  # rank 3 is an empty interval
        assert b[1] <= f.min() - 1 + 1e-9  # no training sample is near the ranks below
        assert b[4] >= f.max() + 1 - 1e-9


def test_one_sample_of_each_rank():
    for n_ranks in range(2, 8):
        x = np.arange(n_ranks, dtype=float)
        K = np.outer(x, x)
        for form in ("implicit", "explicit", "disordered"):
            solution = _solve(form, K, np.arange(n_ranks), n_ranks, 1e3)
            assert solution.converged
            # neighbours 2 apart: w = 2, thresholds halfway
            assert K @ solution.coef == pytest.approx(2 * x, abs=1e-2)
            assert solution.thresholds == pytest.approx(2 * x[1:] - 1, abs=1e-2)


def test_iterations_are_limited_and_non_convergence_is_reported():
    rng = np.random.default_rng(7)
    X = 1e4 * rng.normal(size=(40, 3))  # never scaled, C far too large
    ranks = np.digitize(rng.normal(size=40), [-0.5, 0.5])
    short = solve_implicit(X @ X.T, ranks, 3, C=1e3, max_iter=2)
    assert not short.converged
    assert short.n_iter <= 2
    assert short.violation > 1e-3 or short.gap > 1e-4 * short.objective
    steps = solve_explicit(X @ X.T, ranks, 3, C=1e3, method="smo", max_iter=50)
    assert not steps.converged
    assert steps.n_iter == 50
    long = solve_implicit(X @ X.T, ranks, 3, C=1e3)
    assert np.isfinite(long.objective)
    assert long.objective >= long.objective - long.gap


@pytest.mark.parametrize("form", ["implicit", "explicit"])
def test_warm_starts_do_not_change_the_solution(form):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 3))
    ranks = np.digitize(X[:, 0] + rng.normal(size=60), [-1.0, 0.0, 1.0])
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    state = None
    for C in (0.1, 0.16, 0.25, 1.0, 1.6, 100.0, 1e4, 1e5):
        cold = _solve(form, K, ranks, 4, C)
        warm = _solve(form, K, ranks, 4, C, start=state)
        state = warm.state
        assert warm.converged
        assert warm.objective == pytest.approx(cold.objective, rel=2e-4)


def test_larger_caps_that_change_nothing_cost_nothing():
    K = np.eye(6) + 0.1
    ranks = np.repeat([0, 1, 2], 2)
    first = solve_implicit(K, ranks, 3, C=1e3)
    second = solve_implicit(K, ranks, 3, C=1e5, start=first.state)
    assert second.n_iter == 0
    assert second.coef == pytest.approx(first.coef)


def test_problems_in_threads_equal_those_one_by_one():
    rng = np.random.default_rng(9)
    grams, targets = [], []
    for n in (20, 35, 50, 20):
        X = rng.normal(size=(n, 2))
        grams.append(np.exp(-((X[:, None] - X) ** 2).sum(axis=2)))
        targets.append(np.digitize(X[:, 0], [-0.5, 0.5]))
    for form in ("implicit", "explicit"):
        with loop_threads(2) as threads:
            many = list(threads.map(partial(_solve, form, n_ranks=3, C=2.0), grams, targets))
        for K, ranks, solution in zip(grams, targets, many, strict=True):
            alone = _solve(form, K, ranks, 3, 2.0)
            assert np.array_equal(solution.coef, alone.coef)
            assert np.array_equal(solution.thresholds, alone.thresholds)


def test_pairs_of_both_forms():
    ranks = np.array([0, 1, 2])
    near = adjacent_pairs(ranks, 4, np.array([1.0, 2.0, 3.0]))
    assert near.sample.tolist() == [0, 1, 1, 2, 2]
    assert near.threshold.tolist() == [0, 0, 1, 1, 2]
    assert near.sign.tolist() == [-1, 1, -1, 1, -1]
    assert near.cap.tolist() == [1, 2, 2, 3, 3]
    every = all_pairs(ranks, 4, np.ones(3), np.ones((4, 3)))
    assert every.cap.size == 9
    assert anchored_thresholds(every, 3, ordered=False).tolist() == [True, True, False]
    assert anchored_thresholds(near, 3, ordered=True).tolist() == [True, True, False]


@pytest.mark.parametrize("ordered", [True, False])
def test_the_interior_point_is_far_while_multipliers_are_out_of_balance(ordered):
    """The stage alone: multipliers of 2 and 1 do not balance, however small the gap."""
    ranks = np.array([0, 1, 2])
    pairs = adjacent_pairs(ranks, 3, np.full(3, 2.0))  # signs -1, +1, -1, +1
    alpha = np.array([1.9, 1.9, 1.0, 2.0])
    b, mu, v = np.array([0.0, 0.5]), np.array([0.0, 0.1]), np.ones(2)
    z, w = np.ones(4), np.ones(4)
    K = as_gram(np.diag([0.01, 0.01, 0.01]))
    primal, far, _, balance, *_ = _evaluate(K, pairs, Point(alpha, z, w, b, mu, v), ordered)
    beta = np.array([-1.9, 0.9, 2.0])
    by_hand = np.array([0.0, 1.0]) + ordered * np.array([0.1, -0.1])
    np.testing.assert_allclose(balance, by_hand)
    score, half = 0.01 * beta, 0.5 * beta @ (0.01 * beta)
    short = np.maximum(1 - pairs.sign * (score[pairs.sample] - b[pairs.threshold]), 0)
    assert primal == pytest.approx(half + 2.0 * short.sum())
    gap = (primal - (alpha.sum() - half)) / abs(primal)
    assert far == pytest.approx(max(gap, np.abs(by_hand).max() / 2.0))
    assert 0 < gap < 0.2


def test_bounds_are_passed_on_by_hand():
    """An ordered threshold is bounded by those before it, and by those after it, (18)."""
    pairs = adjacent_pairs(np.array([0, 1, 2]), 3, np.ones(3))  # thresholds 0 0 1 1, - + - +
    alpha, mu, f = np.full(4, 0.5), np.zeros(2), np.array([5.0, 0.0, -5.0])
    free = bounds_of(pairs, alpha, mu, f, ordered=False)
    assert (free.low.tolist(), free.up.tolist()) == ([6.0, 1.0], [-1.0, -6.0])
    bound = bounds_of(pairs, alpha, mu, f, ordered=True)
    assert (bound.low.tolist(), bound.up.tolist()) == ([6.0, 6.0], [-6.0, -6.0])
    tied = bounds_of(pairs, alpha, np.array([0.0, 1.0]), -f, ordered=True)
    loose = bounds_of(pairs, alpha, mu, -f, ordered=True)
    assert (loose.low.tolist(), loose.up.tolist()) == ([-1.0, 4.0], [-4.0, 1.0])
    assert (tied.low.tolist(), tied.up.tolist()) == ([4.0, 4.0], [-4.0, -4.0])  # mu holds them


def test_no_threshold_to_place():
    pairs = adjacent_pairs(np.array([0, 0]), 2, np.ones(2))
    solution = solve_pairs(np.eye(2), pairs, 1, ordered=True)
    assert solution.converged
    assert solution.thresholds.tolist() == [1.0]


@pytest.mark.parametrize("form", ["implicit", "explicit"])
@pytest.mark.parametrize("seed", [1, 2, 3, 23])
def test_unscaled_features_and_a_large_cost_converge(form, seed):
    # the objective falls by ten decades while the relative gap stays near 1
    rng = np.random.default_rng(seed)
    X = 80.0 * rng.normal(size=(180, 7))
    ranks = np.digitize(X[:, 0] / 80.0 + 0.1 * rng.normal(size=180), [-1.0, -0.3, 0.3, 1.0])
    K, C = X @ X.T, np.full(180, 4e3)
    solution = _solve(form, K, ranks, 5, C)
    assert solution.converged
    reach = "all" if form == "implicit" else "immediate"
    exact = primal(K, ranks, 5, C, solution.coef, solution.thresholds, reach=reach)
    assert solution.objective == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("form", ["implicit", "explicit", "disordered"])
@given(problem=problems(), width=st.integers(1, 3), method=st.sampled_from(["interior", "smo"]))
@settings(max_examples=25, deadline=None)
def test_a_factor_gives_what_its_gram_matrix_gives(form, problem, width, method):
    _, ranks, n_ranks, C = problem
    rng = np.random.default_rng(ranks.size)
    Z = np.round(rng.normal(size=(ranks.size, width)), 1)  # some equal rows
    whole = _solve(form, Z @ Z.T, ranks, n_ranks, C, tol=TIGHT)
    narrow = _solve(form, FactoredGram(Z), ranks, n_ranks, C, tol=TIGHT, method=method)
    assert whole.converged
    assert narrow.converged
    assert narrow.objective == pytest.approx(whole.objective, rel=1e-6)
    assert Z @ (Z.T @ narrow.coef) == pytest.approx(Z @ (Z.T @ whole.coef), abs=1e-3)


def test_systems_with_a_factor():
    rng = np.random.default_rng(3)
    Z, rows = rng.normal(size=(40, 4)), np.sort(rng.choice(40, 25, replace=False))
    shift, B = np.full(40, np.inf), np.ones((3, 40))
    shift[rows] = 10.0 ** rng.uniform(-9, 3, size=25)
    B[:, rows] = rng.normal(size=(3, 25))
    system = ShiftedGram(FactoredGram(Z), 0.0)
    assert system.factorise(shift)
    X = system.solve(B.copy())
    M = Z[rows] @ Z[rows].T + np.diag(shift[rows])
    assert pytest.approx(B[:, rows], abs=1e-8) == X[:, rows] @ M
    assert not np.delete(X, rows, axis=1).any()


@pytest.mark.parametrize(("dtype", "close"), [(np.float32, 1e-3), (np.float64, 1e-9)])
@pytest.mark.parametrize("first", [100, 200])
def test_a_factor_serves_rows_that_leave_come_and_change(dtype, close, first, monkeypatch):
    rng = np.random.default_rng(4)
    K = _gram("wide", rng.normal(size=(200, 3))).astype(dtype)
    shift = np.where(np.arange(200) < first, rng.uniform(0.5, 2.0, 200), np.inf)
    system = ShiftedGram(as_gram(K), 0.0)
    assert system.factorise(shift)
    monkeypatch.setattr(ShiftedGram, "factorise", lambda self, shift: pytest.fail("a new factor"))
    for leave, come, change in ([3], [], []), ([], [170], []), ([3, 4], [180], [5]), ([], [], []):
        other = shift.copy()
        other[leave] = np.inf
        other[come] = 1.5
        other[change] = 0.7
        rows = np.flatnonzero(np.isfinite(other))
        B = rng.normal(size=(3, 200))
        assert system.refactorise(other)
        X = system.solve(B.copy())
        M = K[np.ix_(rows, rows)] + np.diag(other[rows])
        assert X[:, rows] @ M == pytest.approx(
            B[:, rows], abs=1e-3 if dtype == np.float32 else 1e-9
        )
        assert not np.delete(X, rows, axis=1).any()


def test_a_factor_does_not_serve_too_many_rows():
    rng = np.random.default_rng(5)
    K = _gram("wide", rng.normal(size=(50, 2)))
    system = ShiftedGram(as_gram(K), 0.0)
    B = rng.normal(size=(2, 50))
    for shift in rng.uniform(0.5, 2.0, size=50), np.full(50, 0.3), np.full(50, np.inf):
        assert system.refactorise(shift)
        rows = np.flatnonzero(np.isfinite(shift))
        X, M = system.solve(B.copy()), K[np.ix_(rows, rows)] + np.diag(shift[rows])
        assert X[:, rows] @ M == pytest.approx(B[:, rows], abs=1e-9)
        assert not np.delete(X, rows, axis=1).any()


def test_factors_in_threads_give_the_same_solution(monkeypatch):
    rng = np.random.default_rng(6)
    K, ranks = _gram("wide", rng.normal(size=(80, 2))), rng.integers(0, 4, size=80)
    expected = solve_implicit(K, ranks, 4, C=5.0, tol=TIGHT)
    called = []

    def watched(M):
        called.append(M.shape[0])
        return factorise_in_threads(M)

    monkeypatch.setattr(shifted, "LARGE", 10)
    monkeypatch.setattr(lapack, "SMALLEST", 10)
    monkeypatch.setattr(shifted, "factorise_in_threads", watched)
    found = solve_implicit(K, ranks, 4, C=5.0, tol=TIGHT)
    assert max(called) == 80
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    assert found.thresholds == pytest.approx(expected.thresholds, abs=1e-4)


def test_a_border_that_is_too_rough_is_given_up(monkeypatch):
    rng = np.random.default_rng(7)
    K, ranks = _gram("narrow", rng.normal(size=(120, 2))), rng.integers(0, 5, size=120)
    expected = solve_implicit(K, ranks, 5, C=100.0)
    serves, solve, rough = BorderedFactor.serves, BorderedFactor.solve, []

    def wrong(self, B):
        if self.width == 0:
            return solve(self, B)
        rough.append(self.width)
        return 3.0 * solve(self, B)

    def wide(self, shift, widest):
        return serves(self, shift, 0.5 * self.rows.size)

    monkeypatch.setattr(BorderedFactor, "serves", wide)
    monkeypatch.setattr(BorderedFactor, "solve", wrong)
    found = solve_implicit(K, ranks, 5, C=100.0)
    assert rough
    assert found.converged
    assert found.n_iter == expected.n_iter
    assert found.objective == pytest.approx(expected.objective, rel=1e-5)


@pytest.mark.parametrize("kind", ["wide", "linear"])
def test_what_cannot_be_polished_is_finished_pair_by_pair(monkeypatch, kind: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=40), [-0.5, 0.5])
    K = _gram(kind, X)
    expected = solve_implicit(K, y, 3, C=3.0, tol=TIGHT)
    monkeypatch.setattr(solver, "LEVELS", 0)
    found = solve_implicit(K, y, 3, C=3.0, tol=TIGHT)
    assert found.converged
    assert K @ found.coef == pytest.approx(K @ expected.coef, abs=1e-3)
