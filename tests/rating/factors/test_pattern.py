"""The pattern of who rated what, and the leading singular vectors behind it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.rating.factors.pattern import DAMPING, RatingPattern, leading_svd


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic_ratings(30, 20, n_ratings=250, seed=2)


def features_of(pattern: RatingPattern, ratings: Ratings) -> tuple[np.ndarray, np.ndarray]:
    return (
        pattern.user_features(ratings.users, ratings.items, ratings.n_users),
        pattern.item_features(ratings.items, ratings.users, ratings.n_items),
    )


def test_features_are_scaled_singular_vectors(ratings):
    pattern = RatingPattern.of(ratings, 4)
    counts = ratings.user_counts, ratings.item_counts
    table = ratings.matrix("one").toarray().T / np.sqrt(
        np.outer(counts[0] + DAMPING, counts[1] + DAMPING)
    )
    left, values, right = np.linalg.svd(table, full_matrices=False)
    found = features_of(pattern, ratings)
    for features, vectors, n in zip(found, (left, right.T), counts, strict=True):
        assert features.shape == (n.size, pattern.n_features) == (n.size, 6)
        np.testing.assert_array_equal(features[:, 0], 1)
        sizes = np.log1p(n)
        np.testing.assert_allclose(features[:, 1], (sizes - sizes.mean()) / sizes.std())
        expected = vectors[:, :4] * values[:4] / values[0] * np.sqrt((n > 0).sum())
        signs = np.sign((features[:, 2:] * expected).sum(axis=0))
        np.testing.assert_allclose(features[:, 2:], signs * expected, atol=5e-4)  # half precision
    # the same signs on both sides: the coordinates belong together
    np.testing.assert_allclose(
        np.linalg.norm(
            found[0][:, 2:].T @ table @ found[1][:, 2:]
            - np.diag(values[:4] ** 3 / values[0] ** 2) * np.sqrt(30 * 20)
        ),
        0,
        atol=1e-2,
    )


def test_features_depend_on_the_rows_own_ratings_alone(ratings):
    pattern = RatingPattern.of(ratings, 4)
    of_users, of_items = features_of(pattern, ratings)
    own = ratings.rows_of_user(7)
    alone = pattern.user_features(np.zeros(own.size, int), ratings.items[own], 1)
    np.testing.assert_allclose(alone[0], of_users[7], rtol=1e-6)
    own = ratings.rows_of_item(7)
    alone = pattern.item_features(np.zeros(own.size, int), ratings.users[own], 1)
    np.testing.assert_allclose(alone[0], of_items[7], rtol=1e-6)


def test_further_users_and_items_add_nothing_but_to_the_count(ratings):
    pattern = RatingPattern.of(ratings, 4)
    longer = pattern.extended(2, 3)
    assert longer.of_users.shape == (32, 4)
    assert longer.of_items.shape == (23, 4)
    known, new = np.array([3, 5]), np.array([3, 5, 21])
    there = pattern.user_features(np.zeros(2, int), known, 1)[0]
    here = longer.user_features(np.zeros(3, int), new, 1)[0]
    np.testing.assert_allclose(here[2:] * np.sqrt(3 + DAMPING), there[2:] * np.sqrt(2 + DAMPING))
    assert here[1] > there[1]
    there = pattern.item_features(np.zeros(2, int), known, 1)[0]
    here = longer.item_features(np.zeros(3, int), np.array([3, 5, 31]), 1)[0]
    np.testing.assert_allclose(here[2:] * np.sqrt(3 + DAMPING), there[2:] * np.sqrt(2 + DAMPING))


def test_there_are_no_more_coordinates_than_the_ratings_have(ratings):
    assert RatingPattern.of(ratings, 0).n_features == 2
    assert RatingPattern.of(ratings, 100).n_features == 2 + 19
    everything = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": 3})
    full = Ratings.from_frame(everything, scale=Scale.regular(1, 5))
    of_users, _ = features_of(RatingPattern.of(full, 5), full)
    np.testing.assert_array_equal(of_users[:, 1], 0)  # all have the same number of ratings
    assert of_users.shape == (2, 3)
    one = full.select(np.array([0])).compact()
    assert features_of(RatingPattern.of(one, 5), one)[0].tolist() == [[1, 0]]


# ---- leading singular vectors --------------------------------------------------------------------


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
