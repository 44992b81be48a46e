"""The solvers of nonparallel SVOR against a generic convex solver and naive references."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.naive_npsvor import admm_by_loops, kkt_by_loops, primal_by_qp

from ordrec.errors import DataError
from ordrec.kernels import Gaussian, Linear, Polynomial
from ordrec.ordinal.gram.matrix import DenseGram, FactoredGram
from ordrec.ordinal.gram.shifted import ShiftedGram
from ordrec.ordinal.npsvor import active_set, admm, smo
from ordrec.ordinal.npsvor.active_set import (
    KINK,
    LOWER,
    NEGATIVE,
    POSITIVE,
    UPPER,
    free_step,
    pivoting_ridge,
)
from ordrec.ordinal.npsvor.admm import ADMM, PartedADMM, similar_rows
from ordrec.ordinal.npsvor.interior import _Rank
from ordrec.ordinal.npsvor.problem import (
    bias,
    bias_bounds,
    dual_objective,
    planes_for,
    primal_objective,
    violation,
)

KERNELS = [Gaussian(0.5), Gaussian(5.0), Linear(), Polynomial(2, 0.5, 1.0)]


@st.composite
def problems(draw):
    """K, y, present, C1, C2, epsilon; some with singular kernels or equal rows of other ranks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n, n_ranks = draw(st.integers(6, 28)), draw(st.integers(2, 6))
    X = rng.normal(size=(n, 2))
    if draw(st.booleans()):
        X = np.round(X)  # duplicates, with different ranks
    y = rng.integers(0, n_ranks, size=n)
    if draw(st.booleans()):
        y = np.sort(y)[np.argsort(np.argsort(X[:, 0]))]  # nearly separable
    y[:2] = [0, 1]
    C1 = 10.0 ** draw(st.integers(-2, 2)) * rng.uniform(0.5, 1.5, size=n)
    C2 = 10.0 ** draw(st.integers(-2, 2)) * rng.uniform(0.5, 1.5, size=n)
    K = draw(st.sampled_from(KERNELS))(X)
    return K, y, np.unique(y), C1, C2, draw(st.sampled_from([0.0, 0.2, 0.5]))


@settings(max_examples=40)
@given(problems())
def test_steps_of_two_multipliers_only_go_down_and_stay_feasible(problem):
    K, y, present, C1, C2, epsilon = problem
    planes = planes_for(y, present, C1, C2, epsilon)
    gram = DenseGram(K)
    with ThreadPoolExecutor(1) as threads:
        z = smo.descend(gram, planes, 1e-4, threads)
    assert (z >= planes.lower).all()
    assert (z <= planes.upper).all()
    np.testing.assert_allclose(z.sum(axis=0), 0.0, atol=1e-9 * np.abs(z).sum() + 1e-12)
    assert (dual_objective(planes, z, K @ z) >= -1e-9).all()  # that of z = 0 is 0


def test_small_costs_are_solved_by_steps_of_two_multipliers(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.digitize(X.sum(axis=1) + 0.5 * rng.normal(size=150), [-1.0, 0.0, 1.0])
    gram, cost = DenseGram(Gaussian(0.5)(X)), rng.uniform(0.5, 1.5, size=150)
    planes = planes_for(y, np.unique(y), cost, cost, 0.2)
    common = {"eta": admm.natural_penalty(gram, planes), "tol": 1e-3, "max_iter": 5000}
    easy = active_set.solve(gram, planes, **common)
    assert easy.converged
    assert easy.n_iter == 1
    assert violation(planes, easy.coef, gram.values @ easy.coef).max() <= 1e-3
    monkeypatch.setattr(smo, "EASY", 0.0)
    by_admm = active_set.solve(gram, planes, **common)
    assert by_admm.n_iter >= 12
    assert easy.objective == pytest.approx(by_admm.objective, rel=1e-3)


def test_the_second_guess_is_nearly_exact(monkeypatch):
    """A wide Gaussian kernel and a large cost: ADMM alone takes thousands of iterations."""
    rng = np.random.default_rng(0)
    X = rng.random((120, 2))
    y = np.digitize(10 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5), [-1.0, -0.1, 0.25, 1.0])
    gram, cost = DenseGram(Gaussian(0.05)(X)), np.full(120, 1000.0)
    planes = planes_for(y, np.unique(y), cost, cost, 0.2)
    common = {"eta": admm.natural_penalty(gram, planes), "tol": 1e-3, "max_iter": 20_000}
    with_newton = active_set.solve(gram, planes, **common)
    monkeypatch.setattr(active_set, "CHEAP", 0.0)
    by_admm = active_set.solve(gram, planes, **common)
    assert with_newton.converged
    assert with_newton.n_iter < 80 < by_admm.n_iter
    assert with_newton.objective <= by_admm.objective * (1 + 1e-6)


def test_a_ridge_lets_the_first_guesses_suffice():
    """Without one, multipliers of nearly dependent rows leap from bound to bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    noise = 0.5 * rng.normal(size=300)
    y = np.digitize(X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + noise, [-0.8, 0.0, 0.8])
    K, cost = Gaussian(0.03)(X), np.full(300, 100.0)
    planes = planes_for(y, np.unique(y), cost, cost, 0.2)
    found = {}
    for largest in (np.inf, 100.0):
        gram = DenseGram(K)
        eta = admm.natural_penalty(gram, planes)
        found[largest] = active_set.solve(
            gram, planes, eta=eta, tol=1e-3, max_iter=5000, largest=largest
        )
        assert found[largest].converged
    assert 4 * found[100.0].n_iter <= found[np.inf].n_iter
    assert found[100.0].objective == pytest.approx(found[np.inf].objective, rel=1e-4)


@settings(max_examples=40)
@given(problems())
def test_reaches_the_optimum_of_a_generic_solver(problem):
    K, y, present, C1, C2, epsilon = problem
    planes = planes_for(y, present, C1, C2, epsilon)
    gram = DenseGram(K)
    eta = admm.natural_penalty(gram, planes)
    solution = active_set.solve(gram, planes, eta=eta, tol=1e-8, max_iter=20_000)
    assert solution.converged
    F = K @ solution.coef
    P = primal_objective(planes, solution.coef, F, solution.thresholds)
    for column, k in enumerate(present):
        best, f = primal_by_qp(K, y, k, C1, C2, epsilon)
        assert P[column] == pytest.approx(best, rel=1e-5, abs=1e-5)
        # w is unique; b need not be where no multiplier is free
        mine, theirs = F[:, column], f
        scale = 1 + np.abs(theirs).max()
        assert np.abs((mine - mine.mean()) - (theirs - theirs.mean())).max() < 2e-2 * scale
    assert solution.gap <= 1e-5 * solution.objective + 1e-6
    assert solution.objective == pytest.approx(P.sum())


@settings(max_examples=30)
@given(problems())
def test_meets_the_conditions_of_optimality_from_scratch(problem):
    K, y, present, C1, C2, epsilon = problem
    planes = planes_for(y, present, C1, C2, epsilon)
    gram = DenseGram(K)
    eta = admm.natural_penalty(gram, planes)
    solution = active_set.solve(gram, planes, eta=eta, tol=1e-4, max_iter=20_000)
    for column, k in enumerate(present):
        rho, b = solution.coef[:, column], solution.thresholds[column]
        assert kkt_by_loops(K, y, k, rho, b, C1, C2, epsilon) < 2e-4


@pytest.mark.parametrize("as_printed", [False, True])
@pytest.mark.parametrize("n_iter", [1, 2, 25])
def test_all_ranks_together_iterate_as_each_alone(n_iter, as_printed):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.integers(0, 4, size=20)
    K, C1, C2, epsilon, eta = Gaussian(0.7)(X), 2.0, 5.0, 0.2, 0.6
    planes = planes_for(y, np.arange(4), np.full(20, C1), np.full(20, C2), epsilon)
    solution = admm.solve(
        DenseGram(K), planes, eta=eta, tol=1e-12, max_iter=n_iter, as_printed=as_printed
    )
    z, u = solution.state
    assert not solution.converged
    for k in range(4):
        relaxation = 1.0 if as_printed else 1.6
        expected = admm_by_loops(K, y, k, C1, C2, epsilon, eta, n_iter, relaxation)
        np.testing.assert_allclose(z[:, k], expected[0], atol=1e-10)
        np.testing.assert_allclose(u[:, k], expected[1], atol=1e-10)


@settings(max_examples=15)
@given(problems())
def test_admm_alone_arrives_at_the_same_point(problem):
    K, y, present, C1, C2, epsilon = problem
    planes = planes_for(y, present, C1, C2, epsilon)
    gram = DenseGram(K)
    eta = admm.natural_penalty(gram, planes)
    exact = active_set.solve(gram, planes, eta=eta, tol=1e-6, max_iter=20_000)
    slow = admm.solve(gram, planes, eta=eta, tol=1e-8, max_iter=50_000)
    assert slow.objective >= exact.objective * (1 - 1e-6) - 1e-6
    assert slow.objective == pytest.approx(exact.objective, rel=1e-2, abs=1e-3)
    assert ((slow.coef >= planes.lower) & (slow.coef <= planes.upper)).all()
    assert np.abs(slow.coef.sum(axis=0)).max() < 1e-6 * (C1.max() + C2.max())


def test_admm_goes_on_from_its_own_state():
    rng = np.random.default_rng(1)
    K, y = Gaussian(1.0)(rng.normal(size=(30, 2))), rng.integers(0, 3, size=30)
    planes = planes_for(y, np.arange(3), np.ones(30), np.ones(30), 0.2)
    half = admm.solve(DenseGram(K), planes, eta=0.5, tol=1e-12, max_iter=20)
    rest = admm.solve(DenseGram(K), planes, eta=0.5, tol=1e-12, max_iter=20, start=half.state)
    whole = admm.solve(DenseGram(K), planes, eta=0.5, tol=1e-12, max_iter=40)
    np.testing.assert_allclose(rest.coef, whole.coef, atol=1e-12)


def test_a_solver_out_of_iterations_says_how_far_it_got():
    rng = np.random.default_rng(2)
    K, y = Gaussian(0.01)(rng.normal(size=(60, 2))), rng.integers(0, 3, size=60)
    planes = planes_for(y, np.arange(3), np.ones(60), np.ones(60), 0.2)
    solution = active_set.solve(DenseGram(K), planes, eta=100.0, tol=1e-9, max_iter=1)
    F = K @ solution.coef
    assert not solution.converged
    assert solution.violation == pytest.approx(violation(planes, solution.coef, F).max())
    assert solution.violation > 1e-9
    assert solution.gap > 0


def test_the_ranks_mirror_when_the_order_is_reversed():
    rng = np.random.default_rng(4)
    K, y = Gaussian(0.5)(rng.normal(size=(40, 2))), rng.integers(0, 4, size=40)
    both = []
    for ranks in (y, 3 - y):
        planes = planes_for(ranks, np.arange(4), np.full(40, 3.0), np.full(40, 2.0), 0.2)
        both.append(active_set.solve(DenseGram(K), planes, eta=0.4, tol=1e-8, max_iter=5000))
    np.testing.assert_allclose(both[0].coef, -both[1].coef[:, ::-1], atol=1e-5)
    np.testing.assert_allclose(both[0].thresholds, -both[1].thresholds[::-1], atol=1e-6)


@given(st.integers(0, 10_000), st.floats(0.1, 10.0))
@settings(max_examples=20)
def test_only_the_product_of_kernel_and_cost_matters(seed, scale):
    rng = np.random.default_rng(seed)
    K, y = Gaussian(0.5)(rng.normal(size=(25, 2))), rng.integers(0, 3, size=25)
    y[:3] = [0, 1, 2]
    functions = []
    for s in (1.0, scale):
        planes = planes_for(y, np.arange(3), np.full(25, 2 / s), np.full(25, 2 / s), 0.2)
        gram = DenseGram(s * K)
        eta = admm.natural_penalty(gram, planes)
        assert eta == pytest.approx(s * admm.natural_penalty(DenseGram(K), _unit(y)))
        solution = active_set.solve(gram, planes, eta=eta, tol=1e-8, max_iter=5000)
        functions.append(s * K @ solution.coef)
    np.testing.assert_allclose(functions[0], functions[1], atol=1e-4)


def _unit(y):
    return planes_for(y, np.arange(3), np.full(25, 2.0), np.full(25, 2.0), 0.2)


def test_a_multiplier_within_rounding_of_zero_is_zero():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, size=30)
    K = Gaussian(0.5)(X)
    planes = planes_for(y, np.arange(3), np.full(30, 1.0), np.full(30, 1.0), 0.3)
    gram = DenseGram(K)
    eta = admm.natural_penalty(gram, planes)
    z = active_set.solve(gram, planes, eta=eta, tol=1e-8, max_iter=5000).coef
    at_kink = (z == 0) & (planes.side == 0)
    assert at_kink.any()
    nearly = np.where(at_kink, 2e-16, z)
    np.testing.assert_allclose(violation(planes, nearly, K @ nearly), 0.0, atol=1e-8)


def test_bias_comes_from_the_bounds_when_no_multiplier_is_free():
    # two samples at the cost bound: any b between the two bounds is optimal
    K, y = np.eye(2), np.array([0, 1])
    planes = planes_for(y, np.array([0, 1]), np.full(2, 0.1), np.full(2, 0.1), 0.2)
    z = np.array([[-0.1, -0.1], [0.1, 0.1]])
    low, high = bias_bounds(planes, z, K @ z)
    b = bias(planes, K @ z)
    assert (low < high).all()
    np.testing.assert_allclose(b, (low + high) / 2)
    np.testing.assert_allclose(b, [0.6, -0.6])  # half way between -0.2 or 0.2 and the margins
    gap = primal_objective(planes, z, K @ z, b) - dual_objective(planes, z, K @ z)
    np.testing.assert_allclose(gap, 0.0, atol=1e-12)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_the_bias_minimises_the_losses(seed):
    rng = np.random.default_rng(seed)
    y, F = rng.integers(0, 3, 12), rng.normal(size=(12, 3)).round(1)
    C1, C2 = 10.0 ** rng.uniform(-6, 6, 2)
    present = np.unique(y)
    planes = planes_for(y, present, np.full(12, C1), np.full(12, C2), 0.2)
    F = F[:, : present.size]
    b, zero = bias(planes, F), np.zeros_like(F)
    kinks = np.vstack([1 - F, -1 - F, 0.2 - F, -0.2 - F])  # the loss is linear between them
    tried = np.array([primal_objective(planes, zero, F, each) for each in kinks])
    np.testing.assert_allclose(primal_objective(planes, zero, F, b), tried.min(axis=0), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bordered_block_solves_like_a_fresh_one(dtype):
    rng = np.random.default_rng(6)
    K = Gaussian(2.0)(rng.normal(size=(50, 3))).astype(dtype)
    gram = DenseGram(K)
    ridge = pivoting_ridge(gram)
    block = ShiftedGram(gram, ridge, widest=active_set.WIDEST)
    assert block.factorise(np.where((np.arange(50) >= 10) & (np.arange(50) < 40), 0.0, np.inf))
    for _ in range(4):
        free = np.zeros(50, dtype=bool)
        free[10:40] = True
        flipped = rng.choice(50, size=12, replace=False)
        free[flipped] ^= True
        g, total = rng.normal(size=50), rng.normal()
        fixed = np.where(free, 0.0, rng.normal(size=50))
        x, db = free_step(block, free, g, fixed, total)
        assert block.bordered
        exact = K.astype(np.float64) + ridge * np.eye(50)
        rest = exact @ x + db - g
        np.testing.assert_array_equal(x[~free], fixed[~free])
        atol = 2e-2 if dtype == np.float32 else 1e-6
        np.testing.assert_allclose(rest[free] - ridge * fixed[free], 0.0, atol=atol)
        assert x.sum() == pytest.approx(total, abs=atol)


def test_single_precision_products_are_summed_in_double():
    rng = np.random.default_rng(7)
    K = rng.uniform(size=(1500, 1500))
    K = (K + K.T).astype(np.float32)
    B = np.sort(100 * rng.normal(size=(1500, 2)), axis=0)  # partial sums are large before they fall
    exact = K.astype(np.float64) @ B
    careful = np.abs(DenseGram(K).times(B) - exact).max()
    plain = np.abs(DenseGram(K).quick_times(B) - exact).max()
    assert careful < 1e-8 < 1e-3 < plain


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_the_same_in_threads(dtype):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2500, 5))
    gram, B = DenseGram((A @ A.T).astype(dtype)), rng.normal(size=(2500, 3))
    with ThreadPoolExecutor(2) as threads:
        assert np.array_equal(gram.times(B), gram.times(B, threads.map))
        assert np.array_equal(gram.quick_times(B), gram.quick_times(B, threads.map))
    assert gram.times(B) == pytest.approx(gram.values.astype(float) @ B, rel=1e-5, abs=1e-3)


def test_a_block_that_is_not_positive_definite_is_reported():
    gram = DenseGram(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert not ShiftedGram(gram, 0.0).factorise(np.zeros(2))
    free = np.ones(2, dtype=bool)
    assert free_step(ShiftedGram(gram, 0.0), free, np.ones(2), np.zeros(2), 0.0) is None
    with pytest.raises(DataError, match="not positive semidefinite"):
        ADMM(gram, _planes(np.array([0, 1])), 0.5)


def test_factored_and_dense_kernels_have_the_same_solution():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 4, size=80)
    G = X @ rng.normal(size=(3, 3))
    planes = planes_for(y, np.arange(4), np.ones(80), np.full(80, 2.0), 0.2)
    options = {"eta": 0.5, "tol": 1e-6, "max_iter": 20_000}
    dense = active_set.solve(DenseGram(G @ G.T), planes, **options)
    factored = active_set.solve(FactoredGram(G), planes, **options)
    assert dense.converged
    assert factored.converged
    assert factored.objective == pytest.approx(dense.objective, rel=1e-6)
    np.testing.assert_allclose(G.T @ factored.coef, G.T @ dense.coef, atol=1e-3)
    B = rng.normal(size=(80, 2))
    system = ShiftedGram(FactoredGram(G), 0.0)
    assert system.factorise(np.full(80, 0.3))
    shifted = system.solve(B.T).T
    np.testing.assert_allclose(G @ (G.T @ shifted) + 0.3 * shifted, B, atol=1e-9)


def test_parts_hold_alike_rows_and_every_row_once():
    rng = np.random.default_rng(10)
    side = rng.permutation(np.repeat([0, 1], 30))
    K = Gaussian(0.5)(rng.normal(size=(60, 2)) + 5.0 * side[:, None])
    parts = similar_rows(K, 30)
    assert len(parts) == 2
    assert all(np.unique(side[rows]).size == 1 for rows in parts)
    many = similar_rows(K, 7)
    assert max(rows.size for rows in many) <= 7
    np.testing.assert_array_equal(np.sort(np.concatenate(many)), np.arange(60))


def test_parts_that_do_not_touch_iterate_as_each_alone():
    rng = np.random.default_rng(11)
    y = rng.integers(0, 3, size=40)
    X = rng.normal(size=(40, 2)) + 100.0 * (np.arange(40) % 2)[:, None]
    gram, planes = DenseGram(Gaussian(1.0)(X)), _planes(y)
    with ThreadPoolExecutor(2) as threads:
        parted = PartedADMM(gram, planes, 0.5, size=20, threads=threads)
        for _ in range(7):
            parted.step(1e-3)
    for rows in (np.arange(0, 40, 2), np.arange(1, 40, 2)):
        alone = admm.solve(
            gram.part(rows),
            _planes(y[rows]),
            eta=0.5,
            tol=1e-12,
            max_iter=7,
        )
        np.testing.assert_allclose(parted.z[rows], alone.state[0], atol=1e-12)


def _planes(y):
    return planes_for(y, np.arange(3), np.ones(y.size), np.full(y.size, 2.0), 0.2)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_guess_in_parts_ends_at_the_same_optimum(monkeypatch, n_jobs):
    rng = np.random.default_rng(12)
    K, y = Gaussian(0.5)(rng.normal(size=(120, 3))), rng.integers(0, 3, size=120)
    options = {"eta": 0.5, "tol": 1e-7, "max_iter": 20_000}
    whole = active_set.solve(DenseGram(K), _planes(y), **options)
    monkeypatch.setattr(active_set, "LARGE", 100)
    parted = active_set.solve(DenseGram(K), _planes(y), n_jobs=n_jobs, **options)
    assert parted.converged
    assert parted.objective == pytest.approx(whole.objective, rel=1e-7)
    np.testing.assert_allclose(K @ parted.coef, K @ whole.coef, atol=1e-5)


def test_after_a_guess_in_parts_that_fails_the_whole_is_iterated(monkeypatch):
    rng = np.random.default_rng(13)
    K, y = Gaussian(0.5)(rng.normal(size=(120, 3))), rng.integers(0, 3, size=120)
    monkeypatch.setattr(active_set, "LARGE", 100)
    pivot, guesses = active_set._pivot, []

    def failing_first(gram, planes, z, *others):
        guesses.append(z)
        return z if len(guesses) == 1 else pivot(gram, planes, z, *others)

    monkeypatch.setattr(active_set, "_pivot", failing_first)
    solution = active_set.solve(DenseGram(K), _planes(y), eta=0.5, tol=1e-6, max_iter=5000)
    assert solution.converged
    assert len(guesses) > 1


def test_exchanges_by_hand():
    """What the derivative says of each place, by the sign of -loss'(t) that z must equal."""
    on, above, below = 0, 1, -1
    cases = [  # side, place, z, t, place afterwards; bounds of 2, a tube of 0.2, a slack of 0.04
        (on, KINK, 0.0, -0.3, POSITIVE),
        (on, KINK, 0.0, 0.3, NEGATIVE),
        (on, KINK, 0.0, 0.23, KINK),
        (on, KINK, 0.0, -0.23, KINK),
        (on, UPPER, 2.0, 0.0, POSITIVE),  # inside the tube nothing may stay at a bound
        (on, UPPER, 2.0, -0.1, POSITIVE),
        (on, UPPER, 2.0, -0.3, UPPER),
        (on, LOWER, -2.0, 0.0, NEGATIVE),
        (on, LOWER, -2.0, 0.1, NEGATIVE),
        (on, LOWER, -2.0, 0.3, LOWER),
        (on, POSITIVE, -0.5, -0.2, KINK),
        (on, NEGATIVE, 0.5, 0.2, KINK),
        (on, POSITIVE, 2.5, -0.2, UPPER),
        (on, NEGATIVE, -2.5, 0.2, LOWER),
        (above, LOWER, 0.0, 0.5, POSITIVE),
        (above, LOWER, 0.0, 1.5, LOWER),
        (above, UPPER, 2.0, 1.5, POSITIVE),
        (above, UPPER, 2.0, 0.5, UPPER),
        (above, POSITIVE, 2.5, 1.0, UPPER),
        (below, UPPER, 0.0, -0.5, POSITIVE),
        (below, UPPER, 0.0, -1.5, UPPER),
        (below, LOWER, -2.0, -1.5, POSITIVE),
        (below, LOWER, -2.0, -0.5, LOWER),
        (below, POSITIVE, 0.5, -1.0, UPPER),
    ]
    side, place, z, t, expected = (np.array(column) for column in zip(*cases, strict=True))
    cost = np.full(side.size, 2.0)
    planes = planes_for(side + 1, np.array([1]), cost, cost, 0.2)
    rank = active_set._Rank(DenseGram(np.eye(side.size)), planes, 0, z, ridge=0.0)
    rank.restart(z, t)
    rank.place = place
    assert rank._exchanged(tol=0.1).tolist() == expected.tolist()


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_the_interior_point_starts_where_its_first_conditions_hold(unit: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=30)
    gram = FactoredGram(unit * rng.normal(size=(30, 4)))
    planes = planes_for(y, np.arange(3), np.full(30, 0.7), np.full(30, 2.0), 0.1)
    for k in range(3):
        rank = _Rank(gram, planes.columns(np.array([k])))
        rho = np.zeros(30)
        sign, cost = rank.sign, rank.cost
        samples = np.concatenate([np.arange(30), np.flatnonzero(y == k)])
        np.add.at(rho, samples, sign * rank.x)
        scores = gram.values @ (gram.values.T @ rho)
        assert sign * scores[samples] + cost - rank.u + rank.v == pytest.approx(
            0, abs=1e-9 * unit**2
        )
        assert min(rank.u.min(), rank.v.min()) >= 1.0
        assert cost.tolist() == [0.1 if each == k else -1.0 for each in y[samples]]
