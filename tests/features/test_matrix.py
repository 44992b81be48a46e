"""Rating matrices and damped biases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.naive_features import alternating_means
from naive.naive_items import z_scores
from scipy import sparse

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.features.matrix import RatingMatrix, damped_biases


def dense_sample(seed: int = 0, shape: tuple[int, int] = (12, 9)) -> np.ndarray:
    random = np.random.default_rng(seed)
    dense = random.integers(0, 5, shape).astype(float)
    dense[random.random(shape) > 0.5] = np.nan
    dense[2] = np.nan
    dense[:, 3] = np.nan
    dense[4, 0] = 0.0  # a rating of zero is a rating
    return dense


def stored(dense: np.ndarray) -> sparse.csr_array:
    rows, columns = np.nonzero(~np.isnan(dense))
    return sparse.csr_array((dense[rows, columns], (rows, columns)), shape=dense.shape)


@pytest.mark.parametrize(("user", "item"), [(5, 5), (0, 3), (2, 0), (0, 0)])
def test_biases_are_the_fixed_point_of_alternating_means(user: float, item: float) -> None:
    dense = dense_sample()
    found = RatingMatrix(stored(dense)).biases(user_damping=user, item_damping=item)
    mean, of_user, of_item = alternating_means(dense, user, item)
    assert found.converged
    assert found.mean == pytest.approx(mean)
    both = found.user[None, :] + found.item[:, None]
    seen = ~np.isnan(dense)
    expected = of_user[None, :] + of_item[:, None]
    np.testing.assert_allclose(both[seen], expected[seen], atol=1e-7)
    if user and item:  # otherwise a constant may move between the two
        np.testing.assert_allclose(found.user, of_user, atol=1e-7)
        np.testing.assert_allclose(found.item, of_item, atol=1e-7)
    assert found.user[3] == 0
    assert found.item[2] == 0


def test_biases_minimise_their_objective() -> None:
    matrix = RatingMatrix(stored(dense_sample(1)))
    fitted = matrix.biases(user_damping=2, item_damping=7)

    def objective(user: np.ndarray, item: np.ndarray) -> float:
        left = matrix.values.data - fitted.mean - user[matrix.users] - item[matrix.items]
        return np.sum(left**2) + 2 * np.sum(user**2) + 7 * np.sum(item**2)

    best = objective(fitted.user, fitted.item)
    random = np.random.default_rng(0)
    for _ in range(20):
        step = 1e-3 * random.standard_normal(fitted.user.size)
        other = 1e-3 * random.standard_normal(fitted.item.size)
        assert objective(fitted.user + step, fitted.item + other) > best


def test_too_few_rounds_are_reported() -> None:
    matrix = RatingMatrix(stored(dense_sample()))
    fitted = damped_biases(matrix.users, matrix.items, matrix.values.data, 9, 12, max_iter=1)
    assert not fitted.converged
    assert fitted.change > 1e-8


def test_residuals_keep_the_pattern() -> None:
    dense = dense_sample()
    matrix = RatingMatrix(stored(dense))
    biases = matrix.biases()
    residuals = matrix.residuals(biases)
    assert residuals.nnz == np.count_nonzero(~np.isnan(dense))
    expected = dense - (biases.mean + biases.user[None, :] + biases.item[:, None])
    np.testing.assert_allclose(residuals.toarray(), np.nan_to_num(expected), atol=1e-12)


@given(seed=st.integers(0, 1000), shape=st.tuples(st.integers(1, 7), st.integers(1, 7)))
def test_z_scores_match_the_definition(seed: int, shape: tuple[int, int]) -> None:
    random = np.random.default_rng(seed)
    dense = random.choice([0.1, 0.7, 3.3], shape)
    dense[random.random(shape) > 0.7] = np.nan
    dense[0, 0] = 0.7
    z = RatingMatrix(stored(dense)).z_scores().toarray()
    assert np.isfinite(z).all()
    np.testing.assert_allclose(z, z_scores(dense), atol=1e-9)


def test_columns_of_user_centred_depend_on_their_user_alone() -> None:
    dense = dense_sample()
    before = RatingMatrix(stored(dense), centre=2.0).user_centred().toarray()
    other = dense.copy()
    other[~np.isnan(dense[:, 5]), 5] = 4.0
    after = RatingMatrix(stored(other), centre=2.0).user_centred().toarray()
    keep = np.arange(9) != 5
    np.testing.assert_array_equal(before[:, keep], after[:, keep])
    seen = ~np.isnan(dense[:, 5])
    level = 2.0 + np.sum(dense[seen, 5] - 2.0) / (seen.sum() + 5)
    np.testing.assert_allclose(before[seen, 5], dense[seen, 5] - level)


def test_from_ratings_uses_the_declared_scale() -> None:
    frame = pd.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rating": [2.0, 3.0, 3.0]})
    matrix = RatingMatrix.from_ratings(Ratings.from_frame(frame, scale=Scale.regular(1, 5)))
    assert matrix.shape == (2, 2)
    assert matrix.centre == 3.0
    items, values = matrix.of_user(0)
    assert items.tolist() == [0, 1]
    assert values.tolist() == [2.0, 3.0]
    assert matrix.indicator().toarray().tolist() == [[1, 1], [1, 0]]


def test_parts_and_dense_form() -> None:
    dense = dense_sample()
    matrix = RatingMatrix(stored(dense))
    np.testing.assert_array_equal(matrix.to_dense(), dense)
    without = matrix.without_users([0, 1])
    assert without.shape == matrix.shape
    assert without.centre == matrix.centre
    dense[:, :2] = np.nan
    np.testing.assert_array_equal(without.to_dense(), dense)
    with pytest.raises(DataError, match="no rating is left"):
        matrix.without_users(np.arange(9))


def test_one_user_and_one_item() -> None:
    one = RatingMatrix(sparse.csr_array([[4.0]]))
    assert one.z_scores().toarray().tolist() == [[0.0]]
    assert one.biases().converged
    assert one.user_centred(0).toarray().tolist() == [[0.0]]


def test_bad_input_is_named() -> None:
    with pytest.raises(ArgumentError, match="sparse"):
        RatingMatrix(np.eye(3))
    with pytest.raises(DataError, match="no rating"):
        RatingMatrix(sparse.csr_array((3, 3)))
    entries = sparse.csr_array(([1.0, np.inf], ([0, 2], [1, 1])), shape=(3, 3))
    with pytest.raises(DataError, match="item 2 has an infinite"):
        RatingMatrix(entries)
    with pytest.raises(ArgumentError, match="item_damping"):
        RatingMatrix(sparse.csr_array([[4.0]])).biases(item_damping=-1)
    with pytest.raises(DataError, match="at least one rating"):
        damped_biases(np.empty(0, int), np.empty(0, int), np.empty(0), 1, 1)


def test_the_centre_is_midway_between_the_ends_unless_given() -> None:
    values = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [7.0, 2.0, 0.0]]))
    assert RatingMatrix(values).centre == 4.0
    assert RatingMatrix(values, centre=1.5).centre == 1.5
