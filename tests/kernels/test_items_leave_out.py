"""A user's item kernel is the one built without him."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import naive_items as naive
from scipy import sparse

from ordrec.errors import ArgumentError, DataError
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels import Constant, Gaussian
from ordrec.kernels.items.content import Content
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.kernel import ItemKernel
from ordrec.kernels.items.low_rank import LowRank
from ordrec.kernels.items.pearson import Pearson, Residual

CENTRE, USER_DAMPING = 3.0, 5.0


def sample(seed: int = 0, n_items: int = 30, n_users: int = 40, density: float = 0.35):
    """Ratings with NaN, among them an unrated item, a constant one and a user without any."""
    random = np.random.default_rng(seed)
    dense = random.integers(1, 6, (n_items, n_users)).astype(float)
    dense[random.random(dense.shape) > density] = np.nan
    dense[3] = np.nan
    dense[5, ~np.isnan(dense[5])] = 4.0
    dense[:, 7] = np.nan
    # an item that only user 0 makes interesting, and one that only he rated
    dense[8] = np.nan
    dense[8, [0, 1, 2]] = 5.0, 2.0, 2.0
    dense[9] = np.nan
    dense[9, 0] = 1.0
    return dense


def matrix_of(dense: np.ndarray) -> RatingMatrix:
    rows, columns = np.nonzero(~np.isnan(dense))
    entries = sparse.csr_array((dense[rows, columns], (rows, columns)), shape=dense.shape)
    return RatingMatrix(entries, centre=CENTRE)


FEATURES = np.random.default_rng(1).integers(0, 2, (30, 6)).astype(float)

COMPONENTS = {
    "pearson": (Pearson(), naive.pearson),
    "pearson smoothed": (
        Pearson().normalised(4.0),
        lambda d: naive.normalised(naive.pearson(d), 4.0),
    ),
    "pearson cosine": (Pearson().normalised(), lambda d: naive.normalised(naive.pearson(d), 0.0)),
    "residual": (Residual(1.0), lambda d: naive.residual(d, CENTRE, USER_DAMPING, 1.0)),
    "residual smoothed": (
        Residual(2.0).normalised(10.0),
        lambda d: naive.normalised(naive.residual(d, CENTRE, USER_DAMPING, 2.0), 10.0),
    ),
    "co-rating": (CoRating(), naive.corating),
    "co-rating cosine": (
        CoRating().normalised(),
        lambda d: naive.normalised(naive.corating(d), 0.0),
    ),
    "co-rating squared": (
        CoRating().normalised(5.0) * CoRating().normalised(5.0),
        lambda d: naive.normalised(naive.corating(d), 5.0) ** 2,
    ),
    "content": (
        Content().normalised(0.5),
        lambda d: naive.normalised(FEATURES @ FEATURES.T, 0.5),
    ),
    "two smoothings": (
        Pearson().normalised(4.0) + 2.0 * Pearson().normalised(50.0),
        lambda d: (
            naive.normalised(naive.pearson(d), 4.0) + 2.0 * naive.normalised(naive.pearson(d), 50.0)
        ),
    ),
    "products and constant": (
        0.5 * Residual() * Content().normalised() + Constant(0.3),
        lambda d: (
            0.5
            * naive.residual(d, CENTRE, USER_DAMPING, 1.0)
            * naive.normalised(FEATURES @ FEATURES.T, 0.0)
            + 0.3
        ),
    ),
}


@pytest.mark.parametrize("bound", [1 << 30, 0], ids=["stored", "blocked"])
@pytest.mark.parametrize("name", COMPONENTS)
def test_equals_rebuilding_without_the_user(name: str, bound: int) -> None:
    dense = sample()
    component, reference = COMPONENTS[name]
    kernel = ItemKernel(component, memory_bound=bound, user_damping=USER_DAMPING)
    kernel.fit(matrix_of(dense), {"content": FEATURES})
    assert kernel.stored_ == (bound > 0)
    everything = np.arange(len(dense))
    for user in [None, *range(0, dense.shape[1], 3), 7]:
        expected = reference(naive.ratings_without(dense, user))
        np.testing.assert_allclose(kernel.for_user(user, everything), expected, atol=1e-10)
        np.testing.assert_allclose(
            kernel.diag_for_user(user, everything), np.diag(expected), atol=1e-10
        )


@pytest.mark.parametrize("name", COMPONENTS)
@pytest.mark.parametrize("items", [[2, 9, 2, 4], list(range(30))], ids=["few", "many"])
def test_blocks_are_summed_over_either_side(name: str, items: list[int]) -> None:
    dense = sample()
    others = [11, 6, 6, 20, 1]
    found = []
    for bound in (1 << 30, 0):
        kernel = ItemKernel(COMPONENTS[name][0], memory_bound=bound, user_damping=USER_DAMPING)
        kernel.fit(matrix_of(dense), {"content": FEATURES})
        found.append(kernel.for_user(4, items, others))
    np.testing.assert_allclose(found[1], found[0], atol=1e-10)


def test_the_downdate_matters() -> None:
    dense = sample()
    kernel = ItemKernel(Pearson()).fit(matrix_of(dense))
    items = kernel.items_of(0)
    assert np.abs(kernel.for_user(0) - kernel.for_user(None, items)).max() > 0.1


@pytest.mark.parametrize("source", ["ratings", "corating"])
def test_low_rank_factors_do_not_know_the_user(source: str) -> None:
    dense = sample()
    component = LowRank(3, source=source).normalised(0.1)
    kernel = ItemKernel(component).fit(matrix_of(dense))
    everything = np.arange(len(dense))
    for user in (0, 5, 11, 22):
        without = dense.copy()
        without[:, user] = np.nan
        rebuilt = ItemKernel(component).fit(matrix_of(without))
        np.testing.assert_allclose(
            kernel.for_user(user, everything), rebuilt.for_user(user, everything), atol=1e-10
        )
        garbled = dense.copy()
        garbled[~np.isnan(dense[:, user]), user] = 1.0
        other = ItemKernel(component).fit(matrix_of(garbled))
        np.testing.assert_allclose(
            kernel.for_user(user, everything), other.for_user(user, everything), atol=1e-10
        )
    assert np.abs(kernel.for_user(0, everything)).max() > 0.01


def all_components() -> list:
    return [
        Pearson().normalised(4),
        Residual().normalised(10),
        CoRating().normalised(2),
        Content().normalised(),
        LowRank(3),
        CoRating().normalised(1) * Residual(),
    ]


@pytest.mark.parametrize("bound", [1 << 30, 0])
def test_blocks_of_other_items_and_any_order(bound: int) -> None:
    dense = sample()
    kernel = ItemKernel(all_components(), weights=[1, 2, 3, 0.5, 0.1, 0.2], memory_bound=bound)
    kernel.fit(matrix_of(dense), {"content": FEATURES})
    everything = np.arange(len(dense))
    for user in (0, 4, None):
        whole = kernel.for_user(user, everything)
        items, others = np.array([9, 2, 17, 5, 8]), np.array([29, 0, 3, 17, 2, 2])
        np.testing.assert_allclose(
            kernel.for_user(user, items, others), whole[np.ix_(items, others)], atol=1e-12
        )
        np.testing.assert_allclose(
            kernel.for_user(user, items), whole[np.ix_(items, items)], atol=1e-12
        )
        np.testing.assert_allclose(
            kernel.diag_for_user(user, items), np.diag(whole)[items], atol=1e-12
        )


def test_parts_add_up_and_default_items_are_the_users_own() -> None:
    dense = sample()
    kernel = ItemKernel(all_components(), weights=[1, 2, 3, 0.5, 0.1, 0.2])
    kernel.fit(matrix_of(dense), {"content": FEATURES})
    own = np.flatnonzero(~np.isnan(dense[:, 4]))
    np.testing.assert_array_equal(np.sort(kernel.items_of(4)), own)
    assert (np.diff((~np.isnan(dense[kernel.items_of(4)])).sum(axis=1)) <= 0).all()
    np.testing.assert_allclose(kernel.for_user(4), kernel.for_user(4, kernel.items_of(4)))
    parts = kernel.parts_for_user(4)
    assert parts.shape == (6, len(own), len(own))
    np.testing.assert_allclose(parts.sum(axis=0), kernel.for_user(4), atol=1e-12)
    single = ItemKernel(Residual().normalised(10)).fit(matrix_of(dense)).for_user(4)
    np.testing.assert_allclose(parts[1], 2 * single, atol=1e-12)


def test_many_items_cross_chunk_and_tile_borders() -> None:
    dense = sample(n_items=200, n_users=30, density=0.8)
    kernel = ItemKernel(Pearson().normalised(3), n_jobs=2).fit(matrix_of(dense))
    expected = naive.normalised(naive.pearson(naive.ratings_without(dense, 2)), 3)
    np.testing.assert_allclose(kernel.for_user(2, np.arange(200)), expected, atol=1e-10)
    items, others = np.arange(0, 200, 2), np.arange(199, 0, -1)
    np.testing.assert_allclose(
        kernel.for_user(2, items, others), expected[np.ix_(items, others)], atol=1e-10
    )


def test_single_precision_is_close() -> None:
    dense = sample()
    arguments = all_components(), [1, 2, 3, 0.5, 0.1, 0.2]
    features = {"content": FEATURES}
    double = ItemKernel(*arguments).fit(matrix_of(dense), features)
    single = ItemKernel(*arguments, dtype="float32").fit(matrix_of(dense), features)
    assert single.for_user(0).dtype == np.float32
    np.testing.assert_allclose(single.for_user(0), double.for_user(0), atol=2e-5)


@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    smooth=st.floats(0, 20),
    user=st.integers(0, 8),
)
def test_positive_semidefinite_and_finite(seed, shape, smooth, user) -> None:  # type: ignore[no-untyped-def]
    random = np.random.default_rng(seed)
    dense = random.integers(1, 4, shape).astype(float)
    dense[random.random(shape) > 0.6] = np.nan
    if np.isnan(dense).all():
        dense[0, 0] = 2.0
    parts = [Pearson().normalised(smooth), Residual(0.0).normalised(smooth), Pearson(),
             CoRating().normalised(smooth) * CoRating().normalised(smooth)]  # fmt: skip
    kernel = ItemKernel(parts).fit(matrix_of(dense))
    for part in kernel.parts_for_user(user % shape[1], np.arange(shape[0])):
        assert np.isfinite(part).all()
        assert np.linalg.eigvalsh(part).min() > -1e-9 * max(1.0, np.abs(part).max())


def test_choice_of_layout_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ordrec.kernels.items.kernel"):
        ItemKernel(CoRating()).fit(matrix_of(sample()))
        ItemKernel(CoRating(), memory_bound=100).fit(matrix_of(sample()))
    assert "all pairs stored" in caplog.messages[0]
    assert "blocks summed on demand" in caplog.messages[1]


def test_bad_input_is_named() -> None:
    matrix = matrix_of(sample())
    with pytest.raises(ArgumentError, match="cannot leave a user out of Gaussian"):
        ItemKernel(Gaussian(1.0))
    with pytest.raises(ArgumentError, match="at least one component"):
        ItemKernel([])
    with pytest.raises(ArgumentError, match="2 numbers of at least 0"):
        ItemKernel([Pearson(), CoRating()], weights=[1.0, -1.0])
    with pytest.raises(ArgumentError, match="dtype"):
        ItemKernel(Pearson(), dtype="int8")
    with pytest.raises(ArgumentError, match="needs its feature table"):
        ItemKernel(Content("genres")).fit(matrix)
    with pytest.raises(DataError, match="one row for each of the 30 items"):
        ItemKernel(Content()).fit(matrix, {"content": FEATURES[:4]})
    with pytest.raises(DataError, match="NaN"):
        ItemKernel(Content()).fit(matrix, {"content": FEATURES * np.nan})
    with pytest.raises(ArgumentError, match="not fitted"):
        ItemKernel(Pearson()).for_user(0)
    fitted = ItemKernel(Pearson()).fit(matrix)
    with pytest.raises(ArgumentError, match=r"user must be a code in 0\.\.39"):
        fitted.for_user(40)
    with pytest.raises(ArgumentError, match=r"codes in 0\.\.29"):
        fitted.for_user(0, [30])
    with pytest.raises(ArgumentError, match="pass items"):
        fitted.for_user(None)
    assert fitted.for_user(0, []).shape == (0, 0)
    assert fitted.for_user(7).shape == (0, 0)
