"""Leading singular vectors, against scikit-learn and the dense decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from ordrec.rating.factors.randomized import leading_svd


@pytest.mark.parametrize("shape", [(30, 70), (70, 30), (12, 12)])
def test_scikit_learn_has_the_same_numbers(shape: tuple[int, int]) -> None:
    A = sparse.random_array(shape, density=0.3, rng=np.random.default_rng(0), format="csr")
    ours, theirs = leading_svd(A, 5, n_steps=4), randomized_svd(A, 5, n_iter=4, random_state=0)
    for mine, other in zip(ours, theirs, strict=True):
        assert np.allclose(mine, other, rtol=0, atol=1e-12)


def test_the_product_is_the_best_of_its_rank() -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 25))
    left, values, right = leading_svd(sparse.csr_array(A), 3, n_steps=3)
    assert np.allclose((left * values) @ right, A)
    assert (left[np.abs(left).argmax(axis=0), [0, 1, 2]] > 0).all()
