"""Laplace and EP against optimisers, quadrature, the paper's own sweeps and sampling."""

from __future__ import annotations

import numpy as np
import pytest
from naive.naive_gpor import elliptical_slice, mode_by_bfgs, posterior_by_grid, sequential_ep

from ordrec.kernels import ARDGaussian, ARDLinear, Gaussian, Linear, Polynomial
from ordrec.ordinal.gpor import laplace as laplace_module
from ordrec.ordinal.gpor.ep import expectation_propagation
from ordrec.ordinal.gpor.evidence import Evidence
from ordrec.ordinal.gpor.laplace import laplace
from ordrec.ordinal.gpor.parameters import GapPrior, paper_start
from ordrec.ordinal.gram.posterior import DenseCovariance

INFERENCE = {"laplace": laplace, "ep": expectation_propagation}


def problem(n, n_ranks, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = np.sin(2 * X[:, 0]) + X[:, -1] + 0.3 * rng.normal(size=n)
    cuts = np.quantile(score, np.arange(1, n_ranks) / n_ranks)
    return X, np.digitize(score, cuts), np.sort(cuts)


@pytest.mark.parametrize("noise", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("n_ranks", [2, 3, 6])
def test_the_mode_is_that_of_a_general_optimiser(n_ranks, noise):
    X, y, cuts = problem(25, n_ranks, seed=n_ranks)
    K = Gaussian(0.7)(X)
    found = laplace(DenseCovariance(K), y, cuts, noise)
    assert found.converged
    assert found.latent == pytest.approx(mode_by_bfgs(K, y, cuts, noise), abs=2e-4)
    assert found.coef == pytest.approx(-found.terms.slope, abs=1e-7 / noise)
    assert K @ found.coef == pytest.approx(found.latent, abs=1e-9)


def test_laplace_evidence_is_the_formula_with_inverses_written_out():
    X, y, cuts = problem(20, 4)
    K = Gaussian(0.7)(X) + 1e-6 * np.eye(20)
    found = laplace(DenseCovariance(K), y, cuts, 0.4)
    f, W = found.latent, found.terms.curvature
    energy = found.terms.loss + 0.5 * f @ np.linalg.solve(K, f)
    log_det = np.linalg.slogdet(np.eye(20) + K * W)[1]
    assert found.log_evidence == pytest.approx(-energy - 0.5 * log_det, abs=1e-8)
    variance, rest = found.factor.marginals()
    covariance = np.linalg.inv(np.linalg.inv(K) + np.diag(W))
    assert variance == pytest.approx(np.diag(covariance), rel=1e-6)
    assert rest == pytest.approx(1 - W * np.diag(covariance), rel=1e-6)


def test_noise_of_a_thousandth_and_far_latent_values_converge():
    X, y, cuts = problem(60, 5, seed=3)
    for infer in INFERENCE.values():
        found = infer(DenseCovariance(25.0 * Gaussian(0.5)(X)), y, cuts, 1e-3)
        assert found.converged
        assert np.isfinite(found.log_evidence)


def test_a_singular_covariance_is_no_obstacle():
    X, y, cuts = problem(40, 3)
    K = Linear()(X)  # rank 2
    for infer in INFERENCE.values():
        found = infer(DenseCovariance(K), y, cuts, 0.5)
        assert found.converged
        direction = np.linalg.svd(K)[0][:, 2:]
        assert direction.T @ found.latent == pytest.approx(np.zeros(38), abs=1e-8)


KERNELS = [
    lambda rng, d: Gaussian(rng.uniform(0.1, 1)),
    lambda rng, d: ARDGaussian(rng.uniform(0.1, 1, d)) * rng.uniform(0.5, 3),
    lambda rng, d: ARDLinear(rng.uniform(0.1, 1, d)) + Gaussian(rng.uniform(0.1, 1)),
    lambda rng, d: Polynomial(2, rng.uniform(0.1, 1), 1.0) * Gaussian(0.3),
]


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize(("n_ranks", "kind"), [(2, 0), (3, 1), (5, 2), (7, 3), (10, 0)])
def test_the_gradient_is_the_finite_difference(inference, n_ranks, kind):
    rng = np.random.default_rng(100 * n_ranks + kind)
    X, y, _ = problem(45, n_ranks, seed=n_ranks)
    kernel = KERNELS[kind](rng, 2)
    rho = paper_start(n_ranks)
    evidence = Evidence(kernel, kernel.pairs(X), y, rho, np.ones(rho.size, bool), inference)
    theta = evidence.theta + 0.2 * rng.normal(size=evidence.theta.size)
    _, gradient = evidence(theta)
    step = 1e-4
    for i in range(theta.size):
        move = step * (np.arange(theta.size) == i)
        up, down = evidence.posterior(theta + move), evidence.posterior(theta - move)
        slope = (up.log_evidence - down.log_evidence) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-4)
    assert evidence.n_unconverged == 0


def test_the_gradient_contains_the_prior_of_an_absent_rank():
    X, y, _ = problem(30, 4)
    y[y == 2] = 3
    kernel, rho = Gaussian(0.5), paper_start(4)
    evidence = Evidence(kernel, kernel.pairs(X), y, rho, np.ones(4, bool))
    prior = GapPrior(np.bincount(y, minlength=4), rho)
    assert prior.open.tolist() == [False, True]
    objective = evidence.with_prior(prior)
    theta = evidence.theta + np.array([0.1, -0.2, 0.1, 0.4, -0.6])
    _, gradient = objective(theta)
    for i in range(theta.size):
        move = 1e-4 * (np.arange(theta.size) == i)
        slope = (objective(theta + move)[0] - objective(theta - move)[0]) / 2e-4
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-4)
    assert abs(prior(rho + np.array([0, 0, 0.4, -0.6]))[1]).max() > 0.9  # it is no small part


def test_a_search_that_stalls_far_from_the_mode_has_not_converged(monkeypatch):
    X, y, cuts = problem(25, 3)
    covariance = DenseCovariance(Gaussian(0.7)(X))
    usual = laplace(covariance, y, cuts, 0.5)
    monkeypatch.setattr(laplace_module, "_halve_until_lower", lambda *words: None)
    stalled = laplace(covariance, y, cuts, 0.5)
    assert not stalled.converged
    assert stalled.violation > laplace_module.STALLED
    near = laplace(covariance, y, cuts, 0.5, start=usual.state * (1 + 1e-7))
    assert near.converged  # there rounding alone stops the search


def test_fixed_parameters_leave_the_gradient():
    X, y, _ = problem(30, 4)
    kernel = Gaussian(0.5)
    rho = paper_start(4)
    full = Evidence(kernel, kernel.pairs(X), y, rho, np.ones(4, bool))
    part = Evidence(kernel, kernel.pairs(X), y, rho, np.array([True, False, True, False]))
    value, gradient = full(full.theta)
    same, fewer = part(part.theta)
    assert same == value
    assert fewer == pytest.approx(gradient[[0, 1, 3]])


@pytest.mark.parametrize("y", [[0], [1], [2]])
def test_ep_for_one_sample_is_exact(y):
    K, cuts = np.array([[2.3]]), np.array([-0.5, 0.8])
    found = expectation_propagation(DenseCovariance(K), np.array(y), cuts, 0.6)
    evidence, mean, covariance = posterior_by_grid(K, y, cuts, 0.6, points=4001)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-8)
    assert found.latent == pytest.approx(mean, abs=1e-6)
    assert found.factor.marginals()[0] == pytest.approx(np.diag(covariance), abs=1e-6)


@pytest.mark.parametrize("y", [[0, 0], [0, 2], [1, 1], [2, 1]])
def test_ep_for_two_samples_is_close_to_quadrature(y):
    K, cuts = np.array([[1.5, 0.9], [0.9, 1.2]]), np.array([-0.5, 0.8])
    found = expectation_propagation(DenseCovariance(K), np.array(y), cuts, 0.6)
    evidence, mean, covariance = posterior_by_grid(K, y, cuts, 0.6, points=401)
    assert found.log_evidence == pytest.approx(evidence, abs=5e-3)
    assert found.latent == pytest.approx(mean, abs=1e-2)
    assert found.factor.marginals()[0] == pytest.approx(np.diag(covariance), rel=2e-2)


@pytest.mark.parametrize("n_ranks", [2, 4])
def test_parallel_sweeps_end_where_those_of_the_paper_do(n_ranks):
    X, y, cuts = problem(12, n_ranks, seed=5)
    K = Gaussian(0.5)(X) + 1e-6 * np.eye(12)
    found = expectation_propagation(DenseCovariance(K), y, cuts, 0.4)
    mean, covariance, log_evidence = sequential_ep(K, y, cuts, 0.4)
    assert found.converged
    assert found.latent == pytest.approx(mean, abs=1e-4)
    assert found.factor.marginals()[0] == pytest.approx(np.diag(covariance), abs=1e-4)
    assert found.log_evidence == pytest.approx(log_evidence, abs=1e-5)


@pytest.mark.slow
def test_ep_agrees_with_a_long_sampling_run():
    X, y, cuts = problem(10, 3, seed=7)
    K = 2.0 * Gaussian(0.4)(X) + 1e-8 * np.eye(10)
    found = expectation_propagation(DenseCovariance(K), y, cuts, 0.5)
    draws = elliptical_slice(K, y, cuts, 0.5, 120_000, np.random.default_rng(0))[2000:]
    blocks = draws[: len(draws) // 50 * 50].reshape(50, -1, 10)
    error = blocks.mean(axis=1).std(axis=0) / np.sqrt(50)
    A, _ = found.factor.marginals()
    assert np.all(np.abs(found.latent - draws.mean(axis=0)) < 4 * error + 0.03 * np.sqrt(A))
    assert np.sqrt(A) == pytest.approx(draws.std(axis=0), rel=0.06)


def test_ep_is_nearer_to_the_truth_than_laplace():
    K, cuts, y = np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([0.0, 1.0]), np.array([2, 2])
    exact, *_ = posterior_by_grid(K, y, cuts, 0.3, points=401)
    errors = {
        name: abs(infer(DenseCovariance(K), y, cuts, 0.3).log_evidence - exact)
        for name, infer in INFERENCE.items()
    }
    assert errors["ep"] < 0.1 * errors["laplace"]


@pytest.mark.parametrize("infer", INFERENCE.values(), ids=INFERENCE)
def test_order_of_samples_and_direction_of_the_scale_do_not_matter(infer):
    X, y, cuts = problem(30, 4, seed=2)
    K = Gaussian(0.6)(X)
    found = infer(DenseCovariance(K), y, cuts, 0.5)
    shuffled = np.random.default_rng(0).permutation(30)
    moved = infer(DenseCovariance(K[np.ix_(shuffled, shuffled)]), y[shuffled], cuts, 0.5)
    assert moved.log_evidence == pytest.approx(found.log_evidence, abs=1e-6)
    assert moved.latent == pytest.approx(found.latent[shuffled], abs=1e-5)
    turned = infer(DenseCovariance(K), 3 - y, -cuts[::-1], 0.5)
    assert turned.log_evidence == pytest.approx(found.log_evidence, abs=1e-6)
    assert turned.latent == pytest.approx(-found.latent, abs=1e-5)


@pytest.mark.parametrize("infer", INFERENCE.values(), ids=INFERENCE)
def test_a_warm_start_ends_at_the_same_place_sooner(infer):
    X, y, cuts = problem(60, 5, seed=4)
    K = Gaussian(0.5)(X)
    near = infer(DenseCovariance(1.05 * K), y, cuts, 0.4)
    cold = infer(DenseCovariance(K), y, cuts, 0.4)
    warm = infer(DenseCovariance(K), y, cuts, 0.4, near.state)
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-6)
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("infer", INFERENCE.values(), ids=INFERENCE)
def test_too_few_iterations_are_reported(infer):
    X, y, cuts = problem(40, 5)
    found = infer(DenseCovariance(Gaussian(0.5)(X)), y, cuts, 0.05, max_iter=1)
    assert not found.converged
    assert found.n_iter == 1
    assert found.violation > 1e-6


def test_an_indefinite_matrix_is_refused():
    K = np.array([[1.0, 5.0], [5.0, 1.0]])
    with pytest.raises(ValueError, match="positive semidefinite"):
        laplace(DenseCovariance(K), np.array([0, 2]), np.array([-0.1, 0.1]), 0.1)


@pytest.mark.parametrize("rank", [4, 30])
def test_what_the_data_leave_is_computed_without_cancellation(rank):
    """v - R K v in both ways, with some precisions of zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, rank))
    K, w = X @ X.T, np.exp(rng.normal(scale=3, size=30))
    w[:5] = [0.0, 1e-300, 1e-40, 0.0, 1e-9]
    v = rng.normal(size=30)
    factor = DenseCovariance(K).factor(w)
    assert factor.remainder(v) == pytest.approx(v - factor.solve(K @ v), abs=1e-9)
