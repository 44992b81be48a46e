"""Pivots, coordinates and Woodbury's identity against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec.linalg import low_rank
from ordrec.linalg.low_rank import Woodbury, coordinates, expansion, random_pivots


@given(st.integers(0, 1000), st.integers(1, 12))
@settings(max_examples=20)
def test_random_pivots_span_a_matrix_of_low_rank(seed, rank):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(30, rank))
    K = A @ A.T
    random = np.random.RandomState(seed)
    least = 1e-10 * np.diag(K).max()
    pivots = random_pivots(np.diag(K), lambda i: K[:, i], 30, random, least=least)
    assert rank <= pivots.size <= rank + 1
    assert np.unique(pivots).size == pivots.size
    spanned = K[:, pivots] @ np.linalg.pinv(K[np.ix_(pivots, pivots)], rcond=1e-9) @ K[pivots]
    np.testing.assert_allclose(spanned, K, atol=1e-5 * np.abs(K).max())


def test_more_pivots_contain_fewer():
    A = np.random.default_rng(0).normal(size=(40, 20))
    K = A @ A.T
    few, many = (
        random_pivots(np.diag(K), lambda i: K[:, i], m, np.random.RandomState(3), least=1e-9)
        for m in (4, 9)
    )
    assert many[:4].tolist() == few.tolist()


def test_coefficients_over_the_pivots_give_the_same_function():
    A = np.random.default_rng(1).normal(size=(30, 4))
    K = A @ A.T
    L, pivots = coordinates(K)
    w = np.arange(1.0, 5.0)
    np.testing.assert_allclose(K[:, pivots] @ expansion(L[pivots], w), L @ w, atol=1e-8)


@pytest.mark.parametrize("block", [low_rank.CACHED_ENTRIES, 16])
def test_woodbury_solves_the_dense_system(monkeypatch, block):
    monkeypatch.setattr(low_rank, "CACHED_ENTRIES", block)
    rng = np.random.default_rng(2)
    Z, weight = rng.normal(size=(20, 3)), rng.uniform(0.1, 5.0, 20)
    dense = Z @ Z.T + np.diag(1.0 / weight)
    for B in (rng.normal(size=20), rng.normal(size=(20, 2))):
        np.testing.assert_allclose(dense @ Woodbury(Z, weight).solve(B), B, atol=1e-9)


@pytest.mark.parametrize("block", [low_rank.CACHED_ENTRIES, 16])
@pytest.mark.parametrize("least", [1e-9, 1e-3, 1.0])
def test_a_refined_solution_has_all_digits(monkeypatch, block, least):
    monkeypatch.setattr(low_rank, "CACHED_ENTRIES", block)
    rng = np.random.default_rng(4)
    Z, shift = rng.normal(size=(40, 5)), least * 10.0 ** rng.uniform(0, 6, 40)
    system = Woodbury(Z, 1.0 / shift)
    for B in (rng.normal(size=40), rng.normal(size=(40, 2))):
        precise = system.solve(B).astype(np.longdouble)
        wide, D = Z.astype(np.longdouble), shift.astype(np.longdouble)
        for _ in range(5):
            rest = B - wide @ (wide.T @ precise) - (D * precise.T).T
            precise += system.solve(rest.astype(np.float64))
        error = np.abs(system.solve_refined(B) - precise).max() / np.abs(precise).max()
        assert error < 2e-15


def test_a_row_without_weight_has_no_solution_but_zero():
    Z = np.random.default_rng(3).normal(size=(6, 2))
    weight = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0])
    b = np.arange(1.0, 7.0)
    some = weight > 0
    x = Woodbury(Z, weight).solve(b)
    assert x[2] == 0.0
    dense = Z[some] @ Z[some].T + np.diag(1.0 / weight[some])
    np.testing.assert_allclose(x[some], np.linalg.solve(dense, b[some]), atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_no_row_is_drawn_twice_although_rounding_leaves_something_of_it(seed):
    A = np.random.default_rng(seed).normal(size=(40, 40)) * np.logspace(0, 8, 40)
    K = A @ A.T
    random = np.random.RandomState(seed)
    pivots = random_pivots(np.diag(K), lambda i: K[:, i], 40, random, least=0.0)
    assert np.unique(pivots).size == pivots.size > 20
