"""The generic kernels keep the contract, and equal their formulas."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from contracts.kernel_contract import KernelContract, inputs, pytest_generate_tests  # noqa: F401
from scipy import sparse
from sklearn.metrics import pairwise

from ordrec.kernels import (
    ARDGaussian,
    ARDLinear,
    Constant,
    Gaussian,
    Linear,
    Normalised,
    Polynomial,
    Precomputed,
    Scaled,
    kernel_for,
)
from ordrec.kernels.distances import WIDE, squared_distances

WIDTHS = [0.3, 1.0, 2.0]


class TestPlainKernels(KernelContract):
    kernels: ClassVar = [
        Gaussian(0.5),
        Gaussian(2.0, bounds="fixed"),
        ARDGaussian(WIDTHS),
        Linear(),
        ARDLinear(WIDTHS),
        Polynomial(2, 0.5, 1.0),
        Polynomial(3, 1.0),
        Constant(2.0),
    ]


class TestCombinations(KernelContract):
    kernels: ClassVar = [
        Scaled(Gaussian(0.5), 3.0),
        Scaled(ARDLinear(WIDTHS), 0.5, bounds="fixed"),
        Gaussian(0.5) + 0.3 * Linear(),
        Gaussian(0.5) * ARDGaussian(WIDTHS),
        2.0 * (Gaussian(0.2) + Constant(0.1)) * Polynomial(2, 0.5, 1.0),
        Gaussian(0.5, bounds="fixed") * Gaussian(0.1),
        Normalised(Polynomial(2, 0.5, 1.0)),
        Normalised(ARDLinear(WIDTHS), 0.7, bounds=(1e-3, 1e3)),
        Normalised(Gaussian(0.5), 0.7) + Linear(),
    ]


X, OTHER = inputs(8), inputs(5, seed=1)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Gaussian(0.7), pairwise.rbf_kernel(X, OTHER, gamma=0.7)),
        (Linear(), pairwise.linear_kernel(X, OTHER)),
        (Polynomial(3, 0.5, 2.0), pairwise.polynomial_kernel(X, OTHER, 3, 0.5, 2.0)),
        (
            ARDGaussian(WIDTHS),
            pairwise.rbf_kernel(X * np.sqrt(WIDTHS), OTHER * np.sqrt(WIDTHS), gamma=1.0),
        ),
        (ARDLinear(WIDTHS), (X * WIDTHS) @ OTHER.T),
        (Linear().normalised(), pairwise.cosine_similarity(X, OTHER)),
    ],
    ids=lambda value: repr(value) if not isinstance(value, np.ndarray) else "",
)
def test_equals_its_formula(kernel, expected):
    np.testing.assert_allclose(kernel(X, OTHER), expected, atol=1e-12)


def test_a_precomputed_matrix_is_passed_on():
    K = Gaussian(1.0)(X)
    kernel = Precomputed()
    np.testing.assert_array_equal(kernel(K), K)
    np.testing.assert_array_equal(kernel.diag(K), np.ones(8))
    assert kernel(K) is not K
    with pytest.raises(ValueError, match="diagonal"):
        kernel.diag(K[:, :3])


@pytest.mark.parametrize("columns", [2, WIDE, WIDE + 1])
def test_distances_are_zero_for_equal_rows_and_exact_for_far_outliers(columns):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, columns))
    A[3] *= 1e4
    A[7] = A[2]
    exact = ((A[:, None, :] - A[None, :, :]) ** 2).sum(axis=2)
    for rows in (A, sparse.csr_array(A)):
        D = squared_distances(rows)
        assert (np.diag(D) == 0).all()
        assert (D >= 0).all()
        # the expansion used for many columns loses digits near an outlier, not near the rest
        np.testing.assert_allclose(D, exact, rtol=1e-9, atol=1e-5)
    single = squared_distances(A[:, :2].astype(np.float32))
    assert single.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rbf", Gaussian(0.5)),
        ("linear", Linear()),
        ("poly", Polynomial(2, 0.5, 1.0)),
        ("precomputed", Precomputed()),
        ("ard", ARDGaussian([0.5, 0.5, 0.5])),
        ("ard-linear", ARDLinear([1.0, 1.0, 1.0])),
    ],
)
def test_a_name_stands_for_a_kernel(name, expected):
    assert kernel_for(name, X, gamma=0.5, degree=2, coef0=1.0) == expected


def test_gamma_is_scikit_learns():
    assert kernel_for("rbf", X, gamma="auto") == Gaussian(1 / 3)
    scale = kernel_for("rbf", X, gamma="scale")
    assert scale.gamma == pytest.approx(1 / (3 * X.var()))
    assert kernel_for("rbf", sparse.csr_array(X), gamma="scale").gamma == pytest.approx(scale.gamma)
    assert kernel_for("rbf", np.ones((4, 2)), gamma="scale") == Gaussian(1.0)
    mine = Gaussian(3.0)
    assert kernel_for(mine, X) is mine


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Gaussian(0.0),
        lambda: Gaussian(np.nan),
        lambda: ARDGaussian([1.0, -1.0]),
        lambda: ARDLinear([[1.0]]),
        lambda: Polynomial(1.5),
        lambda: Polynomial(2, coef0=-1.0),
        lambda: Constant(-1.0),
        lambda: Normalised(Linear(), -0.1),
        lambda: kernel_for("sigmoid", X),
        lambda: kernel_for("rbf", X, gamma="wide"),
        lambda: kernel_for("rbf", X, gamma=-1.0),
        lambda: ARDGaussian([1.0, 1.0])(X),
        lambda: ARDLinear([1.0, 1.0])(X),
    ],
)
def test_what_is_no_kernel_is_refused(broken):
    with pytest.raises(ValueError, match=r"must|weights"):
        broken()


@pytest.mark.parametrize("kernel", [Linear(), ARDLinear(WIDTHS)])
def test_linear_kernels_have_a_factor(kernel):
    for given in (X, sparse.csr_matrix(X)):
        Z = kernel.factor(given)
        assert Z.shape == X.shape
        product = Z @ Z.T
        assert product == pytest.approx(kernel(X))
    assert (Gaussian(0.5) + kernel).factor(X) is None
