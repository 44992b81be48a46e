"""Item kernels on explicit matrices: Pearson, residual, co-rating, content, low rank."""

from __future__ import annotations

import numpy as np
import pytest
from contracts.kernel_contract import KernelContract, inputs, pytest_generate_tests  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from naive import naive_items as naive
from scipy import sparse

from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.items.content import Content
from ordrec.kernels.items.corating import CoRating, als_item_factors
from ordrec.kernels.items.low_rank import LowRank
from ordrec.kernels.items.pearson import Pearson, Residual

KERNELS = [Pearson(), Residual(), Residual(0.0), CoRating(), Content(), LowRank()]


class TestFeatureKernels(KernelContract):
    kernels = (Content(), Content("genres").normalised(0.5), LowRank(), 2.0 * LowRank())


class TestRatingKernels(KernelContract):
    kernels = (Pearson(), Pearson().normalised(3.0), Residual(2.0), CoRating().normalised(1.0))

    def test_sparse_rows_are_dense_rows(self, kernel) -> None:  # type: ignore[no-untyped-def]
        """What is not stored is missing, not zero: NaN is its dense form."""
        X = inputs(9)
        X[np.abs(X) < 0.5] = np.nan
        np.testing.assert_allclose(kernel(stored(X)), kernel(X), atol=1e-12)
        np.testing.assert_allclose(kernel.diag(stored(X)), kernel.diag(X), atol=1e-12)
        assert np.abs(kernel(X) - kernel(np.nan_to_num(X))).max() > 1e-3


def ratings(seed: int, shape: tuple[int, int], missing: float = 0.4) -> np.ndarray:
    random = np.random.default_rng(seed)
    dense = random.integers(1, 6, shape).astype(float)
    dense[random.random(shape) < missing] = np.nan
    return dense


def stored(dense: np.ndarray) -> sparse.csr_array:
    rows, columns = np.nonzero(~np.isnan(dense))
    return sparse.csr_array((dense[rows, columns], (rows, columns)), shape=dense.shape)


def test_definitions() -> None:
    X = ratings(0, (9, 12))
    X[2] = np.where(np.isnan(X[2]), np.nan, 3.0)  # no spread
    X[4] = np.nan
    np.testing.assert_allclose(Pearson()(X), naive.pearson(X), atol=1e-12)
    np.testing.assert_array_equal(Pearson()(X)[[2, 4]], 0)
    np.testing.assert_allclose(CoRating()(X), naive.corating(X))
    centred = stored(X - 3.0)
    dense = np.where(np.isnan(X), 0.0, X - 3.0)
    seen = ~np.isnan(X)
    dense -= seen * (dense.sum(axis=1) / (seen.sum(axis=1) + 2.0))[:, None]
    np.testing.assert_allclose(Residual(2.0)(centred), dense @ dense.T, atol=1e-12)


def test_pearson_without_missing_entries_is_the_correlation() -> None:
    X = np.random.default_rng(0).standard_normal((5, 30))
    np.testing.assert_allclose(Pearson().normalised()(X), np.corrcoef(X), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_all_routes_agree(kernel) -> None:  # type: ignore[no-untyped-def]
    complete = isinstance(kernel, Content | LowRank)
    X = ratings(1, (8, 10), 0.0 if complete else 0.4)
    Y = ratings(2, (5, 10), 0.0 if complete else 0.4)
    both = kernel(np.vstack([X, Y]))
    np.testing.assert_allclose(kernel(X, Y), both[:8, 8:], atol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(both)[:8], atol=1e-12)
    np.testing.assert_allclose(kernel(stored(X), stored(Y)), both[:8, 8:], atol=1e-12)
    np.testing.assert_allclose(kernel.from_pairs(kernel.pairs(X)), both[:8, :8], atol=1e-12)
    smooth = kernel.normalised(3.0)
    np.testing.assert_allclose(smooth(X), naive.normalised(both[:8, :8], 3.0), atol=1e-12)
    assert kernel.theta.size == 0


@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    smooth=st.floats(0, 50),
)
def test_positive_semidefinite_and_never_nan(seed, shape, smooth) -> None:  # type: ignore[no-untyped-def]
    X = ratings(seed, shape)
    for kernel in (Pearson(), Residual(), CoRating()):
        for K in (kernel(X), kernel.normalised(smooth)(X)):
            assert np.isfinite(K).all()
            assert np.linalg.eigvalsh(K).min() > -1e-10 * max(1.0, K.max())


def test_als_factors_find_who_goes_with_whom() -> None:
    """Two groups of users who never touch each other's items."""
    taste = np.kron(np.eye(2), np.ones((10, 15)))
    taste[np.random.default_rng(0).random(taste.shape) < 0.3] = 0
    factors = als_item_factors(RatingMatrix(sparse.csr_array(taste)), n_factors=2)
    K = LowRank().normalised()(factors)
    assert K[:10, :10].min() > 0.8
    assert K[10:, 10:].min() > 0.8
    assert K[:10, 10:].max() < 0.3


def test_als_factors_are_those_of_who_rated_what() -> None:
    rng = np.random.default_rng(0)
    seen = rng.random((12, 9)) < 0.4
    one, other = (sparse.csr_array(seen * rng.uniform(1, 5, seen.shape)) for _ in range(2))
    factors = [als_item_factors(RatingMatrix(values), n_factors=3) for values in (one, other)]
    assert np.array_equal(*factors)


def test_low_rank_factors_explain_covariances() -> None:
    random = np.random.default_rng(0)
    q = random.standard_normal((20, 2))
    dense = 3 + q @ random.standard_normal((2, 400))
    dense -= dense.mean(axis=0) - 3
    factors = LowRank(2, n_iter=50).factors(RatingMatrix(sparse.csr_array(dense)))
    assert factors.shape == (5, 20, 2)
    covariance = np.cov(dense - dense.mean(axis=1, keepdims=True), bias=True)
    for some in factors:
        np.testing.assert_allclose(LowRank()(some), covariance, atol=0.5)
        assert np.corrcoef(LowRank()(some).ravel(), covariance.ravel())[0, 1] > 0.98


def test_bad_parameters_are_named() -> None:
    with pytest.raises(ValueError, match="damping"):
        Residual(-1.0)
    with pytest.raises(ValueError, match="source"):
        LowRank(source="titles")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_folds at least 2"):
        LowRank(n_folds=1)
    with pytest.raises(ValueError, match="n_factors=8 is larger"):
        LowRank(8).factors(RatingMatrix(sparse.csr_array(np.ones((3, 3)))))
    with pytest.raises(ValueError, match="NaN"):
        Pearson()(sparse.csr_array([[np.nan]]))
