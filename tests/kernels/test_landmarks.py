"""Landmarks against scikit-learn's Nystroem and against the whole kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import Nystroem

from ordrec.errors import ArgumentError
from ordrec.kernels import Gaussian, Linear, Precomputed
from ordrec.kernels import landmarks as module
from ordrec.kernels.landmarks import Landmarks


def rows(n=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def chosen(kernel, X, wanted, seed=0):
    return Landmarks.chosen(kernel, X, wanted, np.random.RandomState(seed))


def test_the_kernel_is_that_of_nystroem_on_the_same_landmarks():
    X, new = rows(), rows(20, seed=1)
    theirs = Nystroem(gamma=0.3, n_components=12, random_state=0).fit(X)
    mine = Landmarks(Gaussian(0.3), X, theirs.component_indices_)
    np.testing.assert_allclose(
        mine.features(new) @ mine.features(X).T,
        theirs.transform(new) @ theirs.transform(X).T,
        atol=1e-8,
    )


def test_coefficients_over_the_landmarks_give_the_same_function():
    X, kernel = rows(), Gaussian(0.3)
    landmarks = chosen(kernel, X, 10)
    w = np.arange(10.0)
    expanded = kernel(X, X[landmarks.rows]) @ landmarks.coefficients(w)
    np.testing.assert_allclose(expanded, landmarks.features(X) @ w, atol=1e-8)


def test_enough_landmarks_are_exact_and_repeated_rows_need_none():
    distinct, kernel = rows(15), Gaussian(0.5)
    X = np.tile(distinct, (4, 1))
    landmarks = chosen(kernel, X, 60)
    assert landmarks.rows.size == 15
    Z = landmarks.features(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=1e-8)


def test_a_linear_kernel_needs_as_many_as_it_has_features():
    X = rows(50)
    assert chosen(Linear(), X, 20).rows.size == 3


def test_rows_that_the_sample_missed_are_found(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 5)
    monkeypatch.setattr(module, "SAMPLE_PER_LANDMARK", 1)
    X = np.zeros((300, 1))
    X[[17, 130, 255, 299], 0] = [1.0, 2.0, 3.0, 4.0]
    landmarks = chosen(Gaussian(1.0), X, 6)
    assert sorted(X[landmarks.rows, 0]) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_blocks_and_sparse_rows_change_nothing(monkeypatch):
    X, kernel = rows(), Gaussian(0.3)
    whole = chosen(kernel, X, 8).features(X)
    np.testing.assert_allclose(
        chosen(kernel, sparse.csr_array(X), 8).features(sparse.csr_array(X)), whole, atol=1e-8
    )
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 40)
    np.testing.assert_allclose(chosen(kernel, X, 8).features(X), whole, atol=1e-12)


def test_a_precomputed_matrix_gives_the_same_landmarks():
    X, kernel = rows(), Gaussian(0.3)
    K = kernel(X)
    named, given = chosen(kernel, X, 8), chosen(Precomputed(), K, 8)
    assert given.rows.tolist() == named.rows.tolist()
    np.testing.assert_allclose(given.features(K), named.features(X), atol=1e-10)


def test_the_random_state_decides():
    X, kernel = rows(), Gaussian(0.3)
    first, again, other = (chosen(kernel, X, 8, seed).rows.tolist() for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_kernel_of_zeros_has_one_feature_that_is_zero():
    X = np.zeros((5, 2))
    landmarks = chosen(Linear(), X, 3)
    assert not landmarks.features(X).any()
    assert not landmarks.coefficients(np.ones(1)).any()


@pytest.mark.parametrize("wanted", [0, -1, 2.5, True, [0, 500], [[1, 2]], [0.5], [], "all"])
def test_nonsense_is_refused(wanted):
    with pytest.raises(ArgumentError, match="n_landmarks"):
        chosen(Gaussian(1.0), rows(), wanted)


def test_infinite_kernels_are_refused():
    with pytest.raises(ArgumentError, match="scale the features"), np.errstate(over="ignore"):
        chosen(Linear(), np.full((3, 1), 1e200), 2)


def test_how_many_rows_span_the_others_does_not_depend_on_the_smallest():
    """A row of zeros, and one that is tiny: what is left of a row counts against the largest."""
    X = np.vstack([rows(50), np.zeros((1, 3)), 1e-7 * rows(1, seed=2)])
    assert chosen(Linear(), X, 20).rows.size == 3
