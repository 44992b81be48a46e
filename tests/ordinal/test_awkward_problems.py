"""Estimators on awkward problems: their objective against that of a generic convex solver.

What a generic solver finds is no lower than the optimum, so the objective of an estimator must not
be higher, but for its tolerance; and it must be the one that its own coefficients have.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cvxpy.error import SolverError
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from naive.naive_logistic import objective as logistic_objective
from naive.naive_logistic import solve_with_cvxpy
from naive.naive_npsvor import primal_by_qp
from naive.naive_svor import oracle, primal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from ordrec.ordinal import NPSVOR, SVOREX, SVORIM, OrdinalLogistic

CLOSE = 2e-5  # share of the objective; generic solvers are less exact at extreme costs
FORMS = ("array", "float32", "sparse", "precomputed")


@st.composite
def awkward(draw):
    """Three rows and more, 2 or 12 ranks and some absent, ties, copies, weights of zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_ranks = draw(st.integers(3, 16)), draw(st.sampled_from([2, 3, 12]))
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    if draw(st.booleans()):
        X = np.round(X)  # ties
    if draw(st.booleans()):
        X = X[rng.integers(0, n, n)]  # copies, also with different labels
    y = rng.integers(0, n_ranks, n)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) if draw(st.booleans()) else np.ones(n)
    rows = rng.choice(n, 2, replace=False)
    y[rows], weight[rows] = [0, n_ranks - 1], 1.0
    X = X.astype(np.float32).astype(np.float64)  # so that both precisions hold the same numbers
    return X, y, weight, n_ranks


def given_as(form: str, X: np.ndarray):
    """What is passed to ``fit``, and the kernel."""
    if form == "precomputed":
        return X @ X.T, form
    if form == "sparse":
        return sparse.csr_matrix(X), "linear"
    return (X.astype(np.float32) if form == "float32" else X), "linear"


def told(oracle, *arguments, **options):
    """What a generic solver says; where it gives up, the example says nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return oracle(*arguments, **options)
    except SolverError:
        reject()


def fitted(estimator, X, y, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        return estimator.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", [SVORIM, SVOREX])
@given(problem=awkward(), power=st.integers(-8, 6))
@settings(max_examples=6)
def test_thresholds_in_a_machine(model, form, problem, power):
    X, y, weight, n_ranks = problem
    C = 10.0**power
    given, kernel = given_as(form, X)
    machine = model(C=C, kernel=kernel, scaling=None, tol=1e-6, classes=range(n_ranks))
    fitted(machine, given, y, weight)
    K, counted = X @ X.T, weight > 0
    beta = np.zeros(y.size)
    beta[machine.support_] = machine.dual_coef_
    assert not beta[~counted].any()
    reach = "all" if model is SVORIM else "immediate"
    mine = primal(K, y, n_ranks, C * weight, beta, machine.thresholds_, reach=reach)
    assert machine.objective_ == pytest.approx(mine, rel=1e-6, abs=1e-12)
    _, f, b = told(oracle, K, y, n_ranks, C * weight, reach=reach, ordered=True)
    b = np.maximum.accumulate(b)
    w = np.linalg.lstsq(K, f, rcond=None)[0]
    assert mine <= primal(K, y, n_ranks, C * weight, w, b, reach=reach) * (1 + CLOSE) + 1e-9 * C
    assert (np.diff(machine.thresholds_) >= 0).all()


@pytest.mark.parametrize("form", FORMS)
@given(problem=awkward(), power=st.integers(-8, 6), ratio=st.integers(-4, 4))
@settings(max_examples=4)
def test_a_plane_for_each_rank(form, problem, power, ratio):
    """At the optimum, or, at costs beyond all measure, honest about not being there."""
    X, y, weight, n_ranks = problem
    C1, C2 = 10.0**power, 10.0 ** (power + ratio)
    given, kernel = given_as(form, X)
    machine = NPSVOR(C1, C2, kernel=kernel, scaling=None, tol=1e-6, classes=range(n_ranks))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.fit(given, y, sample_weight=weight)
    K, counted = X @ X.T, weight > 0
    best = sum(
        told(
            primal_by_qp, K[np.ix_(counted, counted)], y[counted], k, C1 * weight[counted],
            C2 * weight[counted], machine.epsilon,
        )[0]
        for k in np.unique(y[counted])
    )  # fmt: skip
    small = 1e-6 * min(C1, C2)
    assert machine.objective_ - machine.dual_gap_ <= best * (1 + CLOSE) + small
    assert machine.converged_ or max(C1, C2) > 100.0 or abs(ratio) > 2
    if machine.converged_:
        assert machine.objective_ <= best * (1 + CLOSE) + small
    assert np.isfinite(machine.intercept_[np.unique(y[counted])]).all()


@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("threshold", ["all", "immediate"])
@given(problem=awkward(), power=st.integers(-4, 4))
@settings(max_examples=5)
def test_a_logistic_model(threshold, form, problem, power):
    X, y, weight, n_ranks = problem
    given, _ = given_as(form, X)
    alpha, immediate = 10.0**power, threshold == "immediate"
    model = OrdinalLogistic(
        threshold=threshold, alpha=alpha, scaling=None, tol=1e-9, classes=range(n_ranks)
    )
    fitted(model, given, y, weight)
    w, b, _ = told(
        solve_with_cvxpy,
        X,
        y,
        n_ranks,
        loss="logistic",
        immediate=immediate,
        alpha=alpha,
        weight=weight,
        ordered=True,
    )

    def value(w, b):
        def loss(margin):
            return np.logaddexp(0.0, -margin)

        return logistic_objective(w, b, X, y, loss, immediate, alpha, weight)

    mine = value(np.ravel(model.coef_), model.thresholds_)
    assert mine <= value(w, np.maximum.accumulate(b)) * (1 + CLOSE) + 1e-6
