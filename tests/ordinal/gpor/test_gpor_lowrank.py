"""Inducing inputs against the exact model."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.kernels import ARDGaussian, Gaussian, Linear
from ordrec.ordinal.gpor import GPOR
from ordrec.ordinal.gpor.evidence import Evidence
from ordrec.ordinal.gpor.laplace import laplace
from ordrec.ordinal.gpor.parameters import paper_start
from ordrec.ordinal.gram.posterior import DenseCovariance, InducingPairs, LowRankCovariance


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, [-1.0, 0.0, 1.0])


def evidences(kernel, X, y, rows, inference):
    rho = paper_start(4)
    free = np.ones(rho.size, bool)
    exact = Evidence(kernel, kernel.pairs(X), y, rho, free, inference)
    sparse = Evidence(kernel, InducingPairs.of(kernel, X, rows), y, rho, free, inference)
    return exact, sparse


def test_the_factor_is_the_dense_one_of_the_same_matrix():
    X, _ = problem(40)
    kernel = Gaussian(0.5) * 1.7
    low = LowRankCovariance(kernel, InducingPairs.of(kernel, X, np.arange(0, 40, 4)))
    dense = DenseCovariance(low.Phi @ low.Phi.T + np.diag(low.Lambda))
    assert np.einsum("ij,ij->i", low.Phi, low.Phi) + low.Lambda == pytest.approx(kernel.diag(X))
    rng = np.random.default_rng(0)
    w, v = rng.uniform(0, 5, 40), rng.normal(size=40)
    w[:3] = 0.0
    a, b = low.factor(w), dense.factor(w)
    assert low.times(v) == pytest.approx(dense.times(v))
    assert a.log_det == pytest.approx(b.log_det)
    assert a.solve(v) == pytest.approx(b.solve(v))
    for mine, theirs in zip(a.marginals(), b.marginals(), strict=True):
        assert mine == pytest.approx(theirs)


def test_many_rows_and_little_noise_lose_no_precision():
    X, y = problem(3000)
    kernel = Gaussian(0.5)
    covariance = LowRankCovariance(kernel, InducingPairs.of(kernel, X, np.arange(0, 3000, 75)))
    found = laplace(covariance, y, np.array([-1.0, 0.0, 1.0]), 0.05)
    assert found.converged
    assert found.violation < 1e-6


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_with_all_rows_inducing_it_is_the_exact_model(inference):
    X, y = problem(50)
    exact, sparse = evidences(Gaussian(0.5), X, y, np.arange(50), inference)
    value, gradient = exact(exact.theta)
    near, slope = sparse(sparse.theta)
    assert near == pytest.approx(value, abs=1e-4)
    assert slope == pytest.approx(gradient, abs=1e-3)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.5), ARDGaussian([0.3, 0.9]) * 2.0, Linear() * 0.5 + Gaussian(0.4)],
    ids=["gaussian", "scaled ard", "sum"],
)
def test_the_gradient_is_the_finite_difference(kernel, inference):
    X, y = problem(60, seed=1)
    _, sparse = evidences(kernel, X, y, np.arange(0, 60, 5), inference)
    theta = sparse.theta + 0.1
    _, gradient = sparse(theta)
    for i in range(theta.size):
        move = 1e-4 * (np.arange(theta.size) == i)
        up, down = sparse.posterior(theta + move), sparse.posterior(theta - move)
        slope = (up.log_evidence - down.log_evidence) / 2e-4
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_the_error_falls_with_the_number_of_inducing_rows():
    X, y = problem(300, seed=2)
    test, _ = problem(200, seed=3)
    exact = GPOR(noise=0.3, optimizer=None).fit(X, y)
    errors = []
    for m in (5, 20, 80):
        sparse = GPOR(noise=0.3, optimizer=None, n_landmarks=m, random_state=0).fit(X, y)
        errors.append(np.abs(sparse.predict_proba(test) - exact.predict_proba(test)).max())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-2


def test_it_learns_the_same_parameters():
    X, y = problem(300, seed=4)
    exact = GPOR().fit(X, y)
    sparse = GPOR(n_landmarks=60, random_state=0).fit(X, y)
    assert sparse.log_evidence_ == pytest.approx(exact.log_evidence_, abs=2.0)
    assert sparse.kernel_.gamma == pytest.approx(exact.kernel_.gamma, rel=0.2)
    assert sparse.noise_ == pytest.approx(exact.noise_, rel=0.1)


def test_a_precomputed_kernel_and_chosen_rows():
    X, y = problem(80)
    K = Gaussian(0.25)(X)
    rows = np.arange(0, 80, 4)
    named = GPOR(Gaussian(0.25, bounds="fixed"), n_landmarks=rows).fit(X, y)
    given = GPOR("precomputed", n_landmarks=rows).fit(K, y)
    assert given.log_evidence_ == pytest.approx(named.log_evidence_, abs=1e-6)
    assert given.predict_proba(K) == pytest.approx(named.predict_proba(X), abs=1e-5)
    assert given.landmarks_.tolist() == rows.tolist()


@pytest.mark.parametrize("n_landmarks", [0, 2.5, -3, [0, 500], [[1, 2]], [0.5]])
def test_nonsense_is_refused(n_landmarks):
    X, y = problem(30)
    with pytest.raises(ValueError, match="n_landmarks"):
        GPOR(n_landmarks=n_landmarks).fit(X, y)
