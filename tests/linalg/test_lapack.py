"""Cholesky factors through scipy's LAPACK, against numpy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import config

from ordrec.linalg import lapack
from ordrec.linalg.lapack import (
    ADDRESSES,
    GEMM,
    POTRF,
    ROUTINES,
    add_products,
    factorise,
    from_python,
    integer_bits,
    inverse_diagonal,
    inverse_diagonal_factorised,
    invert,
    solve_factorised,
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
    solve_factorised(factor, one, ADDRESSES)
    np.testing.assert_allclose(one @ A, rows[:1], atol=10 * tol)


def test_an_indefinite_matrix_says_where_it_fails(dtype):
    A = np.diag([1.0, 2.0, -1.0, 3.0]).astype(dtype)
    assert factorise(A, ADDRESSES) == 3


@pytest.mark.parametrize("n", [*SIZES, 600])  # more rows than are copied at a time
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


def test_the_width_of_integers_is_that_of_the_library():
    """The order of a minor, written over ones, shows how many bits LAPACK writes."""
    A, info = np.array([[-1.0]]), np.full(1, -1, dtype=np.int64)
    n, letter = np.ones(1, dtype=np.int64), ctypes.c_char_p(b"L")
    place = [ctypes.c_void_p(each.ctypes.data) for each in (n, A, n, info)]
    ctypes.CFUNCTYPE(None)(int(ADDRESSES[POTRF, 1]))(letter, *place)
    assert integer_bits() == (64 if info[0] == 1 else 32)


def test_every_routine_has_an_address_of_its_own():
    assert ADDRESSES.shape == (len(ROUTINES), 2)
    assert np.unique(ADDRESSES).size == ADDRESSES.size
    assert (ADDRESSES > 0).all()
    assert ROUTINES[GEMM] == "gemm"


@pytest.mark.skipif(not lapack.LITTLE_ENDIAN, reason="64 bits are read on such machines only")
@pytest.mark.parametrize("bits", [32, 64])
def test_integers_are_right_for_libraries_of_both_widths(bits, monkeypatch):
    """A routine that reads and writes integers of either width, in place of ``potrf``."""
    integer = ctypes.POINTER(ctypes.c_int32 if bits == 32 else ctypes.c_int64)
    seen = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, integer, ctypes.c_void_p, integer, integer)
    def potrf(_, n, __, stride, info):
        seen.append((n[0], stride[0], info[0]))
        info[0] = 2

    addresses = ADDRESSES.copy()
    addresses[POTRF] = ctypes.cast(potrf, ctypes.c_void_p).value
    monkeypatch.setattr(lapack, "ADDRESSES", addresses)
    A = np.eye(5)
    assert from_python("potrf", A, b"L", 3, A, 5) == 2
    assert seen == [(3, 5, 0)]
    if not config.DISABLE_JIT:
        assert factorise(A, addresses) == 2
        assert seen[1:] == [(5, 5, 0)]
