"""Loops of `ordrec.rating.factors.vectors` against numpy in double precision."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ordrec.rating.factors.vectors import falling_exponential, negative_inverse
from ordrec.runtime.compiling import compiled


@compiled
def all_falling(x, out):
    for k in range(x.size):
        out[k] = falling_exponential(x[k])


@compiled
def inverted(A, column):
    negative_inverse(A, column)


def test_the_exponential_falls_as_numpys_does():
    x = np.concatenate([[0.0, 1e-30, 1e-6], np.linspace(0.0, 80.0, 20_001)]).astype(np.float32)
    found = np.empty_like(x)
    all_falling(x, found)
    np.testing.assert_allclose(found, np.exp(-x.astype(np.float64)), rtol=5e-7)
    assert found[0] == 1.0


def test_far_out_the_exponential_is_nothing():
    found = np.empty(3, np.float32)
    all_falling(np.array([81.0, 1e4, 1e30], np.float32), found)
    assert (found >= 0).all()
    assert (found < 1e-30).all()


@given(n=st.integers(1, 45), seed=st.integers(0, 1000), least=st.sampled_from([1.0, 0.1, 0.01]))
def test_the_inverse_is_that_of_double_precision(n, seed, least):
    root = np.random.default_rng(seed).normal(size=(n, n))
    whole = root @ root.T / n + least * np.eye(n)
    A = whole.astype(np.float32)
    A[np.triu_indices(n, 1)] = np.nan  # is not read
    inverted(A, np.empty(n, np.float32))
    wanted = np.linalg.inv(whole)
    lower = np.tril_indices(n)
    assert np.abs(A[lower] + wanted[lower]).max() < 1e-5 / least * np.abs(wanted).max()
