"""Benchmarks on invented ratings of the size of MovieLens 100K.

pytest -m bench --benchmark-only tests/features
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ordrec.features.low_rank.model import LowRankEM
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.kernel import ItemKernel
from ordrec.kernels.items.pearson import Pearson, Residual

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def matrix() -> RatingMatrix:
    """Popular items and busy users have most of the ratings."""
    random = np.random.default_rng(0)
    items = (1700 * random.random(120_000) ** 2.5).astype(int)
    users = (950 * random.random(120_000) ** 2).astype(int)
    pairs = np.unique(items * 950 + users)
    values = random.integers(1, 6, pairs.size).astype(float)
    return RatingMatrix(sparse.csr_array((values, (pairs // 950, pairs % 950)), shape=(1700, 950)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ten_steps_of_low_rank_em(benchmark, matrix: RatingMatrix) -> None:  # type: ignore[no-untyped-def]
    em = LowRankEM(n_factors=20, anneal=False, max_iter=10, tol=0.0, random_state=0)
    benchmark(em.fit, matrix.values)
    assert em.n_iter_ == 10


def test_biases(benchmark, matrix: RatingMatrix) -> None:  # type: ignore[no-untyped-def]
    assert benchmark(matrix.biases).converged


PARTS = (Pearson().normalised(50), Residual().normalised(100), CoRating().normalised(2))


def test_moments_of_all_pairs(benchmark, matrix: RatingMatrix) -> None:  # type: ignore[no-untyped-def]
    assert benchmark(ItemKernel(PARTS).fit, matrix).stored_


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_of_all_users(benchmark, matrix: RatingMatrix, dtype: str) -> None:  # type: ignore[no-untyped-def]
    kernel = ItemKernel(PARTS, dtype=dtype).fit(matrix)

    def all_users() -> float:
        return sum(float(kernel.for_user(user).sum()) for user in range(matrix.n_users))

    assert np.isfinite(benchmark(all_users))


def test_one_dense_gram(benchmark, matrix: RatingMatrix) -> None:  # type: ignore[no-untyped-def]
    """The reference of the others; pipelines/speed/bench_features.py has the ratio on real data."""
    dense = matrix.to_dense(missing=0.0)
    assert benchmark(lambda: dense @ dense.T).shape == (1700, 1700)
