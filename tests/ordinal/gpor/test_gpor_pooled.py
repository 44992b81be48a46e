"""Pooled evidence over many problems against the same problems one by one."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.errors import ArgumentError, DataError
from ordrec.kernels import Gaussian, Linear
from ordrec.ordinal.gpor import GPOR
from ordrec.ordinal.gpor.evidence import Evidence, LikelihoodBounds
from ordrec.ordinal.gpor.parameters import paper_start
from ordrec.ordinal.gpor.pooled import PooledEvidence, fit_many


def users(count, n_ranks=5, sizes=(3, 120), seed=0):
    """Inputs and ranks of problems that share one model."""
    rng = np.random.default_rng(seed)
    cuts = np.linspace(-1.2, 1.2, n_ranks - 1)
    for _ in range(count):
        X = rng.normal(size=(rng.integers(*sizes), 3))
        K = 1.5 * Gaussian(0.3)(X) + 1e-9 * np.eye(len(X))
        f = np.linalg.cholesky(K) @ rng.normal(size=len(X))
        yield X, np.digitize(f + 0.5 * rng.normal(size=len(X)), cuts)


@pytest.mark.parametrize("n_kernels", [1, 2])
def test_it_is_the_sum_of_the_single_evidences(n_kernels):
    data = list(users(7))
    kernels = [Gaussian(0.3, bounds="fixed") * 1.0, Linear() * 1.0][:n_kernels]
    kernel = kernels[0] if n_kernels == 1 else kernels[0] + kernels[1]
    pooled = PooledEvidence([(np.stack([k(X) for k in kernels]), y) for X, y in data], 5)
    theta = np.concatenate([[0.3, -0.4][:n_kernels], paper_start(5)])
    value, gradient = pooled(theta)
    expected, slopes = 0.0, np.zeros(theta.size)
    for X, y in data:
        one = Evidence(kernel, kernel.pairs(X), y, paper_start(5), np.ones(5, bool))
        part, slope = one(theta)
        expected += part
        slopes += slope
    assert value == pytest.approx(expected, abs=1e-7)
    assert gradient == pytest.approx(slopes, abs=1e-6)


def test_the_gradient_is_the_finite_difference():
    problems = [(np.stack([Gaussian(0.3)(X), Linear()(X)]), y) for X, y in users(6, 4)]
    pooled = PooledEvidence(problems, 4)
    theta = np.concatenate([[0.1, -0.7, -0.5], [-0.8, -0.3, 0.1]])
    _, gradient = pooled(theta)
    for i in range(theta.size):
        move = 1e-4 * (np.arange(theta.size) == i)
        slope = (pooled(theta + move)[0] - pooled(theta - move)[0]) / 2e-4
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_threads_and_starts_change_nothing():
    problems = [(Gaussian(0.3)(X), y) for X, y in users(9)]
    theta = np.concatenate([[0.0], paper_start(5)])
    one, three = PooledEvidence(problems, 5, n_jobs=1), PooledEvidence(problems, 5, n_jobs=3)
    value, gradient = one(theta)
    same, slopes = three(theta)
    assert same == pytest.approx(value, rel=1e-12)
    assert slopes == pytest.approx(gradient, abs=1e-9)
    one(theta + 0.3)
    assert one(theta)[0] == pytest.approx(value, abs=1e-6)


def test_single_precision_matrices_are_accepted():
    problems = [(Gaussian(0.3)(X), y) for X, y in users(4)]
    single = [(K.astype(np.float32), y) for K, y in problems]
    theta = np.concatenate([[0.0], paper_start(5)])
    assert PooledEvidence(single, 5)(theta)[0] == pytest.approx(
        PooledEvidence(problems, 5)(theta)[0], abs=1e-3
    )


def test_shared_parameters_are_recovered():
    problems = [(Gaussian(0.3)(X), y) for X, y in users(60, seed=1)]
    fit = fit_many(problems, 5)
    assert fit.converged
    # the scale of the latent function is arbitrary: compare in units of the noise
    assert fit.weights[0] / fit.noise**2 == pytest.approx(1.5 / 0.25, rel=0.35)
    assert fit.thresholds / fit.noise == pytest.approx(np.linspace(-2.4, 2.4, 4), abs=0.4)
    start = PooledEvidence(problems, 5)(np.concatenate([[0.0], paper_start(5)]))[0]
    assert fit.log_evidence > start


def test_predictions_are_those_of_the_estimator():
    X, y = next(users(1, sizes=(60, 61)))
    new = np.random.default_rng(9).normal(size=(20, 3))
    kernel = Gaussian(0.3, bounds="fixed")
    fit = fit_many([(kernel(X), y)], 5, optimizer=None, noise=0.7)
    model = GPOR(kernel, optimizer=None, noise=0.7, classes=range(5)).fit(X, y)
    mean, std = fit.predict_latent(0, kernel(X), kernel(new, X), np.ones(20))
    expected_mean, expected_std = model.predict_latent(new, return_std=True)
    assert mean == pytest.approx(expected_mean, abs=1e-7)
    assert std == pytest.approx(expected_std, abs=1e-7)
    found = fit.predict_proba(0, kernel(X), kernel(new, X), np.ones(20))
    assert found == pytest.approx(model.predict_proba(new), abs=1e-7)
    assert fit.log_evidence == pytest.approx(model.log_evidence_, abs=1e-7)


def test_a_rank_that_nobody_has_keeps_some_room():
    problems = [(Gaussian(0.3)(X), np.minimum(y, 3)) for X, y in users(20)]
    fit = fit_many(problems, 5)
    gaps = np.diff(fit.thresholds)
    assert fit.thresholds.size == 4
    assert 0.05 * gaps[:2].mean() < gaps[2] < 20 * gaps[:2].mean()
    K, _ = problems[0]
    assert fit.predict_proba(0, K, K, np.diag(K))[:, 4].max() > 0


def test_what_is_fixed_stays():
    problems = [(Gaussian(0.3)(X), y) for X, y in users(8)]
    fit = fit_many(
        problems, 5, weights=[2.0], weight_bounds="fixed", bounds=LikelihoodBounds(noise="fixed")
    )
    assert fit.weights.tolist() == [2.0]
    assert fit.noise == 1.0
    assert fit.thresholds[0] != -1.0


def test_an_unfinished_ascent_is_reported():
    problems = [(Gaussian(0.3)(X), y) for X, y in users(8)]
    fit = fit_many(problems, 5, max_iter=1)
    assert not fit.converged
    assert fit.n_iter == 1
    assert fit.message


EYE = np.eye(3)


@pytest.mark.parametrize(
    ("problems", "message"),
    [
        ([(EYE, [0, 1])], "problem 0: K has shape"),
        ([(EYE, [0, 1, 2]), (EYE[:2], [0, 1])], "problem 1"),
        ([(EYE * np.nan, [0, 1, 2])], "not finite"),
        ([(EYE, [0, 1, 7])], "rank 7 on a scale of 3"),
        ([(EYE, [0, 1, -1])], "integers from 0"),
        ([(EYE, [0, 1, 0.5])], "integers from 0"),
        ([(EYE, [0, 1, 2]), (np.stack([EYE, EYE]), [0, 1, 2])], "same number of Gram"),
        ([(np.empty((0, 0)), [])], "problem 0"),
    ],
)
def test_bad_problems_are_named(problems, message):
    with pytest.raises(DataError, match=message):
        fit_many(problems, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": -1.0}, "noise"),
        ({"thresholds": [1.0, 0.0]}, "ascending"),
        ({"thresholds": [0.0]}, "need 2 thresholds"),
        ({"weights": [1.0, 2.0]}, "weights"),
        ({"weight_bounds": "none"}, "weight_bounds"),
        ({"bounds": LikelihoodBounds(noise=(2.0, 1.0))}, "noise_bounds"),
        ({"optimizer": "adam"}, "optimizer"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        fit_many([(EYE, [0, 1, 2])], 3, **arguments)


def test_no_problems_and_one_rank_are_refused():
    with pytest.raises(ArgumentError, match="no problems"):
        fit_many([], 3)
    with pytest.raises(ArgumentError, match="two ranks"):
        fit_many([(EYE, [0, 0, 0])])


def test_the_scale_is_that_of_the_highest_rank_of_any_problem() -> None:
    K = np.eye(4)
    fit = fit_many([(K, [0, 1, 1, 0]), (K, [0, 1, 4, 2]), (K, [0, 0, 0, 0])], optimizer=None)
    assert fit.thresholds.size == 4
    assert fit_many([(K, [0, 1, 1, 0])], optimizer=None).thresholds.size == 1
