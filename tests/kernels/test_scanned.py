"""Kernels summed over chunks of users: those of the whole matrix, for any chunks and threads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.features.matrix import RatingMatrix, item_deviations
from ordrec.kernels import (
    Constant,
    Content,
    CoRating,
    Pearson,
    Residual,
    item_moments,
    scan_gram,
)

KERNELS = [
    Pearson(),
    Pearson().normalised(),
    Pearson().normalised(20),
    Residual(),
    Residual(damping=0).normalised(100),
    CoRating(),
    CoRating().normalised(3),
]


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    """With an item nobody rated, one rated once, and one whose ratings are all equal."""
    drawn = synthetic_ratings(70, 25, n_ratings=700, seed=4).to_frame()
    drawn = drawn[~drawn["item"].isin([3, 5, 7])]
    odd = pd.DataFrame({"user": [2, 4, 6, 8], "item": [5, 7, 7, 7], "rating": [2.0, 4, 4, 4]})
    frame = pd.concat([drawn, odd], ignore_index=True)
    whole = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    codes = np.append(np.arange(3), np.arange(4, 25))  # 3 keeps its place
    return Ratings(
        whole.users, codes[whole.items], whole.levels, scale=whole.scale, user_ids=whole.user_ids,
        item_ids=pd.RangeIndex(25),
    )  # fmt: skip


@pytest.fixture(scope="module")
def scan(ratings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scanned") / "ratings"
    ratings.to_partitions(folder, rows_per_part=150)
    return Ratings.scan(folder)


def in_memory(kernel, ratings: Ratings) -> np.ndarray:
    matrix = RatingMatrix.from_ratings(ratings)
    residual = "Residual" in repr(kernel)
    return np.asarray(kernel(matrix.user_centred() if residual else matrix.values))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("rows", [1, 40, 10_000])
def test_the_kernel_of_the_whole(ratings, scan, kernel, rows):
    K = scan_gram(scan, kernel, rows=rows)
    np.testing.assert_allclose(K, in_memory(kernel, ratings), rtol=1e-10, atol=1e-11)
    assert (K == K.T).all()


def test_a_weighted_sum_is_the_sum(ratings, scan):
    parts = [Pearson().normalised(5), Residual().normalised(50), CoRating()]
    expected = 0.5 * in_memory(parts[0], ratings) + 2 * in_memory(parts[1], ratings)
    expected = expected + in_memory(parts[2], ratings) + 3.0
    kernel = 0.5 * parts[0] + 2.0 * parts[1] + parts[2] + Constant(3.0)
    np.testing.assert_allclose(scan_gram(scan, kernel), expected, rtol=1e-10)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(1, 400),
    n_jobs=st.integers(1, 3),
    items=st.lists(st.integers(0, 24), min_size=1, unique=True),
)
def test_some_items_in_any_order(ratings, scan, rows, n_jobs, items):
    kernel = Pearson().normalised(10) + CoRating()
    K = scan_gram(scan, kernel, items=items, rows=rows, n_jobs=n_jobs)
    np.testing.assert_allclose(K, in_memory(kernel, ratings)[np.ix_(items, items)], rtol=1e-9)


def test_threads_change_nothing(scan):
    one, two = (scan_gram(scan, Residual(), rows=60, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert (one == two).all()


def test_single_precision(ratings, scan):
    K = scan_gram(scan, Pearson(), dtype="float32", rows=100)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, in_memory(Pearson(), ratings), rtol=1e-5, atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(rows=st.integers(1, 400))
def test_moments_are_those_of_the_whole(ratings, scan, rows):
    matrix = RatingMatrix.from_ratings(ratings)
    _, spread = item_deviations(matrix.values)
    found = item_moments(scan, rows=rows)
    assert (found.counts == ratings.item_counts).all()
    means = matrix.values.sum(axis=1) / np.maximum(ratings.item_counts, 1)
    np.testing.assert_allclose(found.means, means, rtol=1e-12)
    np.testing.assert_allclose(found.deviations, spread, rtol=1e-10)
    assert found.deviations[7] == 0  # all equal, exactly
    centred = item_moments(scan, user_shrinkage=5.0, rows=rows)
    sums = matrix.user_centred().sum(axis=1)
    np.testing.assert_allclose(centred.means * centred.counts, sums, atol=1e-10)


def test_means_far_from_zero_lose_no_digits(tmp_path):
    """Sums of squares of numbers near a million would leave nothing of their spread."""
    scale = Scale(1e6 + np.array([0.0, 1e-3, 2e-3]))
    drawn = synthetic_ratings(60, 8, n_ratings=300, n_ranks=3, seed=1)
    far = Ratings(
        drawn.users, drawn.items, drawn.levels, scale=scale, user_ids=drawn.user_ids,
        item_ids=drawn.item_ids,
    )  # fmt: skip
    far.to_partitions(tmp_path / "x")
    _, spread = item_deviations(drawn.matrix("rank"))
    squares = item_moments(Ratings.scan(tmp_path / "x"), rows=20).squares
    np.testing.assert_allclose(np.sqrt(squares / far.item_counts), 1e-3 * spread, rtol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (Pearson() * CoRating(), {}, "multiply the matrices"),
        (Content("genres"), {}, "not a sum over users"),
        (Pearson(), {"memory_bound": 1000}, "float32"),
        (Pearson(), {"items": [1, 1]}, "distinct"),
        (Pearson(), {"items": []}, "distinct"),
        (Pearson(), {"items": [25]}, r"0\.\.24"),
        (Pearson(), {"dtype": "int32"}, "dtype"),
    ],
)
def test_senseless_arguments(scan, kernel, options, message):
    with pytest.raises(ArgumentError, match=message):
        scan_gram(scan, kernel, **options)
