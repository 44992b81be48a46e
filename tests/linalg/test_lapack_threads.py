"""The Cholesky factor in threads, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.linalg import lapack
from ordrec.linalg.lapack import factorise_in_threads


def positive_definite(n: int, dtype: type) -> np.ndarray:
    root = np.random.default_rng(n).normal(size=(n, 20))
    return (root @ root.T / 20 + np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 40, 41, 333])
def test_the_factor_is_that_of_numpy(n, dtype, monkeypatch):
    monkeypatch.setattr(lapack, "SMALLEST", 20)
    monkeypatch.setattr(lapack, "PIECE", 30)
    A = positive_definite(n, dtype)
    factor = A.copy()
    assert factorise_in_threads(factor)
    expected = np.linalg.cholesky(A.astype(np.float64))
    np.testing.assert_allclose(
        np.triu(factor).T, expected, atol=1e-4 if dtype is np.float32 else 1e-12
    )
    assert (np.tril(factor, -1) == np.tril(A, -1)).all()


def test_the_number_of_threads_changes_no_digit(monkeypatch):
    monkeypatch.setattr(lapack, "SMALLEST", 20)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(lapack, "worker_count", lambda n_jobs, threads=threads: threads)
        A = positive_definite(200, np.float32)
        assert factorise_in_threads(A)
        found.append(A)
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("row", [0, 60, 99])
def test_a_matrix_that_is_not_positive_definite(row, monkeypatch):
    monkeypatch.setattr(lapack, "SMALLEST", 20)
    A = positive_definite(100, np.float64)
    A[row, row] = -1.0
    assert not factorise_in_threads(A)
