"""Cholesky factors through scipy's LAPACK, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.linalg.lapack import (
    ADDRESSES,
    add_products,
    factorise,
    inverse_diagonal,
    inverse_diagonal_factorised,
    invert,
    solve_factorised,
    solve_rows_factorised,
    solve_rows_triangular,
)

SIZES = [1, 2, 7, 64, 130]


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def positive_definite(n: int, dtype: type) -> np.ndarray:
    root = np.random.default_rng(n).normal(size=(n, n + 3))
    return (root @ root.T / n + np.eye(n)).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
def test_solutions_and_diagonals_of_inverses(n, dtype):
    A = positive_definite(n, dtype)
    expected = np.linalg.inv(A.astype(np.float64))
    tol = 1e-4 if dtype is np.float32 else 1e-12
    factor = A.copy()
    assert factorise(factor, ADDRESSES) == 0
    rows = np.random.default_rng(1).normal(size=(3, n)).astype(dtype)
    solved = rows.copy()
    solve_factorised(factor, solved, ADDRESSES)
    np.testing.assert_allclose(solved, rows @ expected, atol=tol)
    one = rows[:1].copy()
    solve_factorised(factor, one, ADDRESSES)
    np.testing.assert_allclose(one, rows[:1] @ expected, atol=tol)
    diagonal = inverse_diagonal_factorised(factor.copy(), ADDRESSES)
    np.testing.assert_allclose(diagonal, np.diag(expected), atol=tol)


@pytest.mark.parametrize("n", SIZES)
def test_weighted_products_of_the_first_rows_are_added(n, dtype):
    rng = np.random.default_rng(n)
    left, before = rng.normal(size=(9, n)).astype(dtype), positive_definite(n, dtype)
    right = left * rng.uniform(0.1, 2.0, size=(9, 1)).astype(dtype)
    out = before.copy()
    add_products(6, left, right, np.ones(1, dtype), out, ADDRESSES)
    tol = 1e-4 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(out, before + left[:6].T @ right[:6], atol=tol)


@pytest.mark.parametrize("n", SIZES)
def test_triangular_solves(n, dtype):
    A = positive_definite(n, dtype)
    L = np.linalg.cholesky(A.astype(np.float64))
    tol = 1e-4 if dtype is np.float32 else 1e-12
    factor = A.copy()
    assert factorise(factor, ADDRESSES) == 0
    rows = np.random.default_rng(2).normal(size=(2, n)).astype(dtype)
    for transposed, triangle in ((False, L), (True, L.T)):
        solved = rows.copy()
        solve_rows_triangular(factor, solved, transposed, ADDRESSES)
        np.testing.assert_allclose(solved @ triangle.T, rows, atol=tol)
    one = rows[:1].copy()
    solve_rows_factorised(factor, one, ADDRESSES)
    np.testing.assert_allclose(one @ A, rows[:1], atol=10 * tol)


def test_an_indefinite_matrix_says_where_it_fails(dtype):
    A = np.diag([1.0, 2.0, -1.0, 3.0]).astype(dtype)
    assert factorise(A, ADDRESSES) == 3


@pytest.mark.parametrize("n", SIZES)
def test_inverses_without_compiling(n, dtype):
    A = positive_definite(n, dtype)
    expected = np.linalg.inv(A.astype(np.float64))
    tol = 1e-4 if dtype is np.float32 else 1e-12
    inverse = A.copy()
    assert invert(inverse)
    assert np.allclose(inverse, expected, rtol=0, atol=tol)
    assert (inverse == inverse.T).all()
    assert np.allclose(inverse_diagonal(A.copy()), np.diag(expected), rtol=0, atol=tol)


def test_indefinite_matrices_have_no_inverse_here(dtype):
    A = np.diag([1.0, -1.0]).astype(dtype)
    assert not invert(A.copy())
    assert inverse_diagonal(A.copy()) is None
