"""Rows of fitted models: variances along shared axes, in half precision."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.rating.factors.row_updates import NO_DRIFT, compact_probabilities, probabilities
from ordrec.rating.factors.rows import (
    CompactRows,
    RowPosteriors,
    packed_outer,
    shared_axes,
    unpacked,
    usual_sizes,
)

N_FACTORS, N_STEPS = 4, 3


def spd(rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(N_FACTORS, N_FACTORS))
    return root @ root.T + 0.2 * np.eye(N_FACTORS)


def rows_along(rng: np.random.Generator, axes: np.ndarray, n_rows: int) -> RowPosteriors:
    """Rows whose covariances have these axes; means are exact in half precision."""
    mean = rng.normal(size=(n_rows, N_FACTORS + N_STEPS)).astype(np.float16).astype(np.float64)
    spreads = rng.uniform(0.1, 1.0, (n_rows, N_FACTORS)).astype(np.float16).astype(np.float64)
    variances = rng.uniform(0.1, 1.0, (n_rows, N_STEPS)).astype(np.float16)
    lower = np.tril_indices(N_FACTORS)
    covariances = np.stack([(axes * own) @ axes.T for own in spreads])
    moments = covariances[:, lower[0], lower[1]] + packed_outer(mean[:, :N_FACTORS])
    return RowPosteriors.of(mean, moments, variances)


@pytest.fixture
def sides():
    rng = np.random.default_rng(0)
    all_axes = [shared_axes(spd(rng), spd(rng)) for _ in range(2)]
    return [(rows_along(rng, axes, 6), axes) for axes in all_axes]


def test_the_axes_make_both_matrices_diagonal():
    rng = np.random.default_rng(1)
    S, J = spd(rng), spd(rng)
    T = shared_axes(S, J)
    for product in (T.T @ np.linalg.inv(S) @ T, T.T @ J @ T):
        np.testing.assert_allclose(product, np.diag(np.diag(product)), atol=1e-10)


def test_covariances_along_the_axes_are_kept(sides):
    for rows, axes in sides:
        compact = CompactRows.of(rows, axes)
        again = compact.expanded(np.arange(6))
        np.testing.assert_allclose(again.moments, rows.moments, atol=5e-3)
        np.testing.assert_array_equal(again.mean, rows.mean)
        own = unpacked(rows.moments[2] - packed_outer(rows.mean[2:3, :N_FACTORS])[0])
        np.testing.assert_allclose(compact.covariance(2), own, atol=5e-3)


def test_probabilities_are_those_of_full_rows(sides):
    """The variance of a score by (5), from packed triangles, and by the shared axes."""
    users, items = (CompactRows.of(rows, axes) for rows, axes in sides)
    pairs = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    found = compact_probabilities(pairs, NO_DRIFT, users, items)
    every = np.arange(6)
    wanted = probabilities(pairs, NO_DRIFT, users.expanded(every), items.expanded(every))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_pair_has_one_answer_whatever_else_is_asked(sides):
    users, items = (CompactRows.of(rows, axes) for rows, axes in sides)
    pairs = np.array([0, 0, 3, 5]), np.array([4, 1, 1, -1])
    together = compact_probabilities(pairs, NO_DRIFT, users, items)
    for k in range(4):
        one = pairs[0][k : k + 1], pairs[1][k : k + 1]
        alone = compact_probabilities(one, NO_DRIFT, users, items)
        np.testing.assert_array_equal(alone[0], together[k])


def test_what_lies_off_the_axes_is_left_out_and_nothing_else():
    rng = np.random.default_rng(3)
    rows = rows_along(rng, np.linalg.cholesky(spd(rng)), 5)  # other axes
    compact = CompactRows.of(rows, np.eye(N_FACTORS))
    for k in range(5):
        own = unpacked(rows.moments[k] - packed_outer(rows.mean[k : k + 1, :N_FACTORS])[0])
        np.testing.assert_allclose(compact.spreads[k], np.diag(own), rtol=2e-3)


def test_thin_rows_do_not_get_many_factors():
    assert usual_sizes(1_000_000, 10_000) == (64, 128)
    assert usual_sizes(1_000_000, 300_000) == (32, 32)
    assert usual_sizes(1_000_000, 300_000, 48, 8) == (48, 8)
