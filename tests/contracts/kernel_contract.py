"""Tests that every kernel must pass.

    class TestGaussian(KernelContract):
        kernels = [Gaussian(0.5), Gaussian(2.0, bounds="fixed")]

All ways to compute a kernel agree; its matrices are positive semidefinite; its derivatives agree
with finite differences; its parameters can be read, changed and compared.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ordrec.kernels import Kernel

N_FEATURES = 3


def inputs(n: int, seed: int = 0) -> np.ndarray:
    """Random rows, among them a duplicate and a row of zeros."""
    X = np.random.default_rng(seed).normal(size=(n, N_FEATURES))
    X[-1] = X[0]
    X[n // 2] = 0.0
    return X


def pytest_generate_tests(metafunc: Any) -> None:
    """Run each contract test once for each of the class's kernels."""
    kernels = getattr(metafunc.cls, "kernels", None)
    if kernels is not None and "kernel" in metafunc.fixturenames:
        metafunc.parametrize("kernel", kernels, ids=repr)


class KernelContract:
    """Tests for the ``kernels`` of a subclass, all of which take rows of three features."""

    kernels: ClassVar[list[Kernel]]

    def test_all_ways_to_compute_it_agree(self, kernel: Kernel) -> None:
        X, Y = inputs(9), inputs(6, seed=1)
        K = kernel(X)
        np.testing.assert_allclose(kernel(X, X), K, atol=1e-10)
        np.testing.assert_allclose(kernel.from_pairs(kernel.pairs(X)), K, atol=1e-12)
        np.testing.assert_allclose(kernel.diag(X), np.diag(K), atol=1e-12)
        np.testing.assert_allclose(kernel(X, Y), kernel(Y, X).T, atol=1e-10)
        np.testing.assert_allclose(K, K.T, atol=1e-12)
        whole = kernel(np.vstack([X, Y]))
        np.testing.assert_allclose(whole[:9, 9:], kernel(X, Y), atol=1e-10)

    def test_a_row_is_compared_without_regard_to_the_others(self, kernel: Kernel) -> None:
        X, Y = inputs(9), inputs(6, seed=1)
        K = kernel(X, Y)
        for i in range(9):
            np.testing.assert_allclose(kernel(X[[i]], Y), K[[i]], atol=1e-10)

    def test_pairs_can_be_taken_in_part(self, kernel: Kernel) -> None:
        X, Y = inputs(9), inputs(6, seed=1)
        rows, columns = np.array([4, 0, 7]), np.array([5, 1])
        part = kernel.take_pairs(kernel.pairs(X, Y), rows, columns)
        np.testing.assert_allclose(
            kernel.from_pairs(part), kernel(X, Y)[np.ix_(rows, columns)], atol=1e-10
        )
        own = kernel.take_pairs(kernel.pairs(X), rows, rows)
        np.testing.assert_allclose(
            kernel.from_pairs(own), kernel(X)[np.ix_(rows, rows)], atol=1e-10
        )

    def test_the_matrix_may_be_overwritten(self, kernel: Kernel) -> None:
        X = inputs(7)
        before, pairs = X.copy(), kernel.pairs(X)
        K = kernel.from_pairs(pairs)
        expected = K.copy()
        K += 17.0
        np.testing.assert_array_equal(X, before)
        np.testing.assert_allclose(kernel.from_pairs(pairs), expected, atol=1e-12)

    def test_positive_semidefinite(self, kernel: Kernel) -> None:
        @settings(max_examples=20)
        @given(seed=st.integers(0, 10_000), size=st.sampled_from([1e-3, 1.0, 30.0]))
        def check(seed: int, size: float) -> None:
            K = kernel(size * inputs(12, seed))
            assert np.linalg.eigvalsh(K).min() >= -1e-9 * max(np.abs(K).max(), 1e-300)

        check()

    def test_sparse_rows_are_dense_rows(self, kernel: Kernel) -> None:
        X, Y = inputs(9), inputs(6, seed=1)
        X[np.abs(X) < 0.5] = 0.0
        A, B = sparse.csr_array(X), sparse.csr_array(Y)
        np.testing.assert_allclose(kernel(A), kernel(X), atol=1e-9)
        np.testing.assert_allclose(kernel(A, B), kernel(X, Y), atol=1e-9)
        np.testing.assert_allclose(kernel.diag(A), kernel.diag(X), atol=1e-9)
        rows = np.array([1, 5])
        part = kernel.take_pairs(kernel.pairs(A), rows, rows)
        np.testing.assert_allclose(kernel.from_pairs(part), kernel(X[rows]), atol=1e-9)

    def test_gradient_equals_finite_differences(self, kernel: Kernel) -> None:
        X, theta, step = inputs(7), kernel.theta, 1e-5
        gradient = kernel.gradient(X)
        assert gradient.shape == (theta.size, 7, 7)
        for p in range(theta.size):
            shift = np.eye(theta.size)[p] * step
            up, down = kernel.with_theta(theta + shift)(X), kernel.with_theta(theta - shift)(X)
            np.testing.assert_allclose(gradient[p], (up - down) / (2 * step), rtol=1e-5, atol=1e-7)

    def test_gradient_across_two_sets_is_a_block_of_the_joint_one(self, kernel: Kernel) -> None:
        X, Y = inputs(5), inputs(4, seed=1)
        whole = kernel.gradient(np.vstack([X, Y]))
        across = kernel.gradient_from_pairs(kernel.pairs(X, Y))
        np.testing.assert_allclose(across, whole[:, :5, 5:], atol=1e-9)

    def test_gradient_trace_is_the_contraction(self, kernel: Kernel) -> None:
        X = inputs(7)
        W = np.random.default_rng(2).normal(size=(7, 7))  # not symmetric
        expected = [np.sum(W * slope) for slope in kernel.gradient(X)]
        trace = kernel.gradient_trace(kernel.pairs(X), W)
        np.testing.assert_allclose(trace, np.array(expected), rtol=1e-8, atol=1e-9)
        across = kernel.pairs(X, inputs(4, seed=1))  # where the two axes differ
        expected = [np.sum(W[:, :4] * slope) for slope in kernel.gradient_from_pairs(across)]
        trace = kernel.gradient_trace(across, W[:, :4])
        np.testing.assert_allclose(trace, np.array(expected), rtol=1e-8, atol=1e-9)

    def test_parameters_are_read_and_moved(self, kernel: Kernel) -> None:
        theta = kernel.theta
        assert kernel.theta_bounds.shape == (theta.size, 2)
        assert len(kernel.theta_names) == theta.size
        assert (kernel.theta_bounds[:, 0] < kernel.theta_bounds[:, 1]).all()
        moved = kernel.with_theta(theta + 0.1)
        np.testing.assert_allclose(moved.theta, theta + 0.1)
        np.testing.assert_allclose(kernel.theta, theta)  # the original is unchanged
        np.testing.assert_allclose(kernel.with_theta(theta)(inputs(6)), kernel(inputs(6)))
        with pytest.raises(ValueError, match="free parameters"):
            kernel.with_theta(np.append(theta, 0.0))

    def test_equal_kernels_are_equal(self, kernel: Kernel) -> None:
        twin = copy.deepcopy(kernel)
        assert twin == kernel
        assert hash(twin) == hash(kernel)
        assert pickle.loads(pickle.dumps(kernel)) == kernel
        assert kernel != "kernel"
        if kernel.theta.size:
            assert kernel.with_theta(kernel.theta + 0.1) != kernel

    def test_algebra(self, kernel: Kernel) -> None:
        X = inputs(6)
        K = kernel(X)
        np.testing.assert_allclose((kernel + kernel)(X), 2 * K)
        np.testing.assert_allclose((kernel * kernel)(X), K * K)
        np.testing.assert_allclose((3.0 * kernel + 2.0)(X), 3 * K + 2)
        np.testing.assert_allclose((2.0 + kernel * 3.0).diag(X), 3 * np.diag(K) + 2)
        scale = np.sqrt(np.diag(K) + 0.5)
        np.testing.assert_allclose(kernel.normalised(0.5)(X), K / np.outer(scale, scale))

    def test_shows_its_parameters(self, kernel: Kernel) -> None:
        assert repr(kernel)
        assert "object at" not in repr(kernel)
