"""Small Cholesky factors, solves and inverses, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.linalg.small import factorise_small, invert_lower, solve_small

SIZES = [1, 2, 7, 48, 49, 130]


def positive_definite(n: int) -> np.ndarray:
    root = np.random.default_rng(n).normal(size=(n, n + 3))
    return root @ root.T / n + np.eye(n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_factors_solutions_and_inverses(n, order):
    A = positive_definite(n)
    factor = np.array(A, order=order)
    factor[np.triu_indices(n, 1)] = np.nan  # only the lower triangle is read
    assert factorise_small(factor, -np.inf)
    L = np.tril(factor)
    np.testing.assert_allclose(L, np.linalg.cholesky(A), atol=1e-12)
    rhs, x = np.random.default_rng(1).normal(size=n), np.empty(n)
    solve_small(factor, rhs, x)
    np.testing.assert_allclose(A @ x, rhs, atol=1e-10)
    np.testing.assert_allclose(invert_lower(L) @ L, np.eye(n), atol=1e-12)


def test_pivots_that_are_too_small_are_raised():
    A = np.array([[1.0, 0.0], [1.0, 1.0]])  # singular
    assert factorise_small(A, 1e-14)
    assert A[1, 1] == 1e-7


def test_entries_that_are_not_finite_are_noticed():
    assert not factorise_small(np.array([[1.0, 0.0], [np.nan, 1.0]]), 0.0)
