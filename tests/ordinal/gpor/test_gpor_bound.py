"""The variational bound of appendix C, against its definition and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from contracts.ordinal_contract import ordered_sample
from scipy.integrate import quad
from scipy.stats import norm

from ordrec.kernels import Gaussian
from ordrec.ordinal import GPOR
from ordrec.ordinal.gpor.bound import variational_bound
from ordrec.ordinal.gpor.ep import expectation_propagation
from ordrec.ordinal.gram.posterior import DenseCovariance

THRESHOLDS, NOISE = np.array([-0.6, 0.7]), 0.8


def bound_by_definition(K, h, A, ranks, thresholds, noise):
    """(B1) for a given Gaussian, with inverses and adaptive quadrature."""
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    total = 0.0
    for mean, deviation, rank in zip(h, np.sqrt(np.diag(A)), ranks, strict=True):

        def integrand(f, mean=mean, deviation=deviation, rank=rank):
            ends = norm.cdf((edges[rank : rank + 2] - f) / noise)
            return norm.pdf(f, mean, deviation) * np.log(ends[1] - ends[0])

        total += quad(integrand, mean - 7 * deviation, mean + 7 * deviation)[0]
    inverse = np.linalg.inv(K)
    _, of_K = np.linalg.slogdet(K)
    _, of_A = np.linalg.slogdet(A)
    divergence = np.trace(inverse @ A) - len(h) + h @ inverse @ h + of_K - of_A
    return total - 0.5 * divergence


def fitted(gamma):
    X, ranks = ordered_sample(14, n_ranks=3)
    kernel = Gaussian(gamma)
    pairs = kernel.pairs(X)
    covariance = DenseCovariance(kernel.from_pairs(pairs), pairs)
    return kernel, X, ranks, expectation_propagation(covariance, ranks, THRESHOLDS, NOISE)


def test_value_and_slopes_are_those_of_the_definition():
    kernel, X, ranks, found = fitted(3.0)
    K = kernel(X)
    A = np.linalg.inv(np.linalg.inv(K) + np.diag(found.precision))
    value, (by_kernel, by_noise, by_thresholds) = variational_bound(found, THRESHOLDS, kernel)

    def F(theta=kernel.theta, thresholds=THRESHOLDS, noise=NOISE):
        own = kernel.with_theta(theta)(X)
        return bound_by_definition(own, found.latent, A, ranks, thresholds, noise)

    assert value == pytest.approx(F(), abs=1e-6)
    assert value <= found.log_evidence + 0.05  # EP's evidence is close to the true one
    e = 1e-4
    slope = (F(theta=kernel.theta + e) - F(theta=kernel.theta - e)) / (2 * e)
    assert by_kernel[0] == pytest.approx(slope, rel=1e-4, abs=1e-5)
    slope = (F(noise=NOISE * np.exp(e)) - F(noise=NOISE * np.exp(-e))) / (2 * e)
    assert by_noise == pytest.approx(slope, rel=1e-4, abs=1e-5)
    for j, move in enumerate(e * np.eye(2)):
        slope = (F(thresholds=THRESHOLDS + move) - F(thresholds=THRESHOLDS - move)) / (2 * e)
        assert by_thresholds[j] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_models_chosen_by_the_bound_predict_as_well():
    X, y = ordered_sample(60)
    new, truth = ordered_sample(200, seed=1)
    by = {
        objective: GPOR(inference="ep", objective=objective, max_iter=30).fit(X, y)
        for objective in ("evidence", "variational")
    }
    errors = {name: np.mean(model.predict(new) != truth) for name, model in by.items()}
    assert errors["variational"] <= errors["evidence"] + 0.03
    with pytest.raises(ValueError, match="objective must be"):
        GPOR(objective="variational").fit(X, y)
