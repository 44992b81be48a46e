"""Priors of users and items: the best for given rows, and regressions on side data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ordrec.rating.factors.fit import _starting_steps
from ordrec.rating.factors.row_priors import (
    PATTERN_RIDGE,
    PRIOR_ROWS,
    PRIOR_VARIANCE,
    SIDE_RIDGE,
    ColdPrior,
    LearntRows,
    RowPrior,
    least_to_learn_from,
    precision_of,
    starting_covariance,
)
from ordrec.rating.factors.rows import RowPosteriors, packed_outer

# ---- the prior of rows with ratings --------------------------------------------------------------

WIDTH = 3
RIDGE = np.array([0, PATTERN_RIDGE, PATTERN_RIDGE, SIDE_RIDGE, SIDE_RIDGE])


@pytest.fixture
def rows():
    """Features, which rows are seen, means and covariances of posteriors."""
    rng = np.random.default_rng(1)
    features = np.column_stack([np.ones(40), 3 * rng.normal(size=(40, 4))])
    roots = rng.normal(size=(40, WIDTH, WIDTH))
    means = features @ rng.normal(size=(5, WIDTH)) + rng.normal(size=(40, WIDTH))
    return features, np.arange(40) < 33, means, 0.1 * roots @ roots.swapaxes(1, 2)


def starting_prior(features, n_side, counts, mean, S) -> RowPrior:
    F = features[counts >= least_to_learn_from(counts)]
    return RowPrior.start(F.T @ F, n_side, counts, mean, S)


def learnt_and_of_rows(features, seen, means, covariances, sums=False):
    """The prior that is learnt from these rows, and what it says of each of them."""
    few = seen & (np.arange(40) % 3 == 0)  # the sums of two groups are kept apart
    counts = np.where(few, 2, np.where(seen, 5, 0))
    prior = starting_prior(features, 2, counts, np.zeros(WIDTH), np.eye(WIDTH))
    by_span = {(1, 3): covariances[few].sum(axis=0), (4, 9): covariances[seen & ~few].sum(axis=0)}
    own = features, means.astype(np.float32), counts
    rows = prior.rows_to_learn_from(*own)
    prior = prior.learnt(rows.sums() if sums else rows, by_span)
    return prior, prior.of_rows(*own)


def learnt(*rows):
    return learnt_and_of_rows(*rows)[0]


def loss(B, S, features, seen, means, covariances):
    """Expected negative log-density of the rows, and of what (1) and (2) are told beforehand."""
    P = np.linalg.inv(S)
    total = 0.0
    for f, m, C in zip(features[seen], means[seen], covariances[seen], strict=True):
        total += np.trace(P @ C) / 2 - multivariate_normal(f @ B, S).logpdf(m)
    for d, b in zip(RIDGE[1:], B[1:], strict=True):
        total += d * b @ P @ b / 2  # N(0, S / d), but for the volume, which B does not change
    return total + PRIOR_ROWS / 2 * (np.linalg.slogdet(S)[1] + PRIOR_VARIANCE * np.trace(P))


def test_learned_priors_are_the_best_ones(rows):
    prior = learnt(*rows)
    best = loss(prior.B, prior.S, *rows)
    rng = np.random.default_rng(0)
    for size in (0.3, 0.03, 0.003):
        for _ in range(10):
            B = prior.B + size * rng.normal(size=prior.B.shape)
            move = np.eye(WIDTH) + size * rng.normal(size=(WIDTH, WIDTH))
            assert loss(B, prior.S, *rows) > best
            assert loss(prior.B, move @ prior.S @ move.T, *rows) > best
            assert loss(B, move @ prior.S @ move.T, *rows) > best


def test_coefficients_solve_the_ridge_regression_of_seen_rows(rows):
    features, seen, means, _ = rows
    prior = learnt(*rows)
    F, M = features[seen], means[seen].astype(np.float32)
    np.testing.assert_allclose(F.T @ (M - F @ prior.B), RIDGE[:, None] * prior.B, atol=1e-8)
    elsewhere = learnt(features, seen, np.where(seen[:, None], means, 1e6), rows[3])
    np.testing.assert_array_equal(elsewhere.B, prior.B)  # unseen rows do not count


def test_a_row_has_the_prior_of_a_regression_without_it(rows):
    """(3): mean and covariance are those of the posterior of B given all other rows."""
    features, seen, means, _ = rows
    prior, of_rows = learnt_and_of_rows(*rows)
    P = precision_of(prior.S)
    np.testing.assert_allclose(P @ prior.S, np.eye(WIDTH), atol=1e-9)
    np.testing.assert_array_equal(P, P.T)
    np.testing.assert_array_equal(of_rows.P, P.astype(np.float32))
    for row in np.flatnonzero(seen):
        others = seen & (np.arange(40) != row)
        F, f = features[others], features[row]
        inverse = np.linalg.inv(F.T @ F + np.diag(RIDGE))
        mean, inflated = f @ inverse @ F.T @ means[others], 1 + f @ inverse @ f
        assert of_rows.weights[row] == pytest.approx(1 / inflated, rel=1e-5)
        expected = mean @ P / inflated
        np.testing.assert_allclose(of_rows.pulls[row], expected, rtol=1e-4, atol=1e-4)


def test_sums_are_enough_to_learn_from(rows):
    whole, by_sums = learnt(*rows), learnt_and_of_rows(*rows, sums=True)[0]
    np.testing.assert_array_equal(by_sums.B, whole.B)
    np.testing.assert_allclose(by_sums.S, whole.S, rtol=1e-9)
    features, seen, means, _ = rows
    half = seen & (np.arange(40) % 2 == 0)
    parts = [LearntRows(features[own], means[own]).sums() for own in (half, seen & ~half)]
    added, of_all = parts[0] + parts[1], LearntRows(features[seen], means[seen])
    np.testing.assert_allclose(added.FM, of_all.FM, rtol=1e-9)
    np.testing.assert_allclose(
        added.residual_squares(whole.B), of_all.residual_squares(whole.B), rtol=1e-6, atol=1e-6
    )


def test_rows_with_few_ratings_are_not_learnt_from_where_there_are_others():
    rng = np.random.default_rng(4)
    features = np.column_stack([np.ones(150), rng.normal(size=(150, 2))])
    means, counts = rng.normal(size=(150, WIDTH)), np.where(np.arange(150) < 120, 4, 3)

    def prior_of(means, covariance_of_few, rows=slice(None)):
        prior = starting_prior(features[rows], 0, counts[rows], np.zeros(WIDTH), np.eye(WIDTH))
        by_span = {(1, 3): covariance_of_few, (4, 9): 12 * np.eye(WIDTH)}
        own = features[rows], means[rows].astype(np.float32), counts[rows]
        prior = prior.learnt(prior.rows_to_learn_from(*own), by_span)
        return prior, prior.of_rows(*own)

    prior, of_rows = prior_of(means, np.eye(WIDTH))
    others, _ = prior_of(np.where(counts[:, None] > 3, means, 9.0), 100 * np.eye(WIDTH))
    np.testing.assert_array_equal(prior.B, others.B)
    np.testing.assert_array_equal(prior.S, others.S)
    np.testing.assert_array_equal(of_rows.weights[120:], 1.0)  # B says nothing of its own to them
    expected = features[120:] @ prior.B @ precision_of(prior.S)
    np.testing.assert_allclose(of_rows.pulls[120:], expected, atol=1e-4)
    few = slice(60, None)  # 60 rows with more ratings are not enough
    prior, of_rows = prior_of(means, np.eye(WIDTH), few)
    assert (prior.S < prior_of(means, np.ones((3, 3)), few)[0].S).any()
    assert (of_rows.weights < 1).all()


def test_learning_leaves_the_prior_before_as_it_was(rows):
    prior = learnt(*rows)
    B, S = prior.B.copy(), prior.S.copy()
    ones = LearntRows(rows[0], np.ones((40, WIDTH)))
    assert not np.allclose(prior.learnt(ones, {(4, 9): np.eye(WIDTH)}).B, B)
    np.testing.assert_array_equal(prior.B, B)
    np.testing.assert_array_equal(prior.S, S)


def test_before_learning_all_rows_have_the_starting_mean(rows):
    features, seen = rows[:2]
    S = starting_covariance(1, 2, "user")
    counts = seen.astype(int)
    prior = starting_prior(features, 2, counts, np.array([0.0, 1.0, -2.0]), S)
    of_rows = prior.of_rows(features, np.ones((40, 3), np.float32), counts)
    np.testing.assert_allclose(of_rows.pulls @ S, np.tile([0, 1, -2], (40, 1)), atol=1e-5)
    np.testing.assert_array_equal(of_rows.weights, 1.0)


# ---- rows without ratings ------------------------------------------------------------------------


@pytest.fixture
def cold_case():
    """Posteriors with two factors and one step, side data and weights of rows."""
    rng = np.random.default_rng(2)
    side = rng.normal(size=(30, 2))
    means = 1 + side @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(30, 3))
    roots = rng.normal(size=(30, 2, 2))
    covariances = 0.1 * roots @ roots.swapaxes(1, 2)
    moments = packed_outer(means[:, :2]) + covariances[:, [0, 1, 1], [0, 0, 1]]
    rows = RowPosteriors.of(means, moments, rng.uniform(0.1, 1, (30, 1)))
    weights = np.where(rng.random(30) < 0.3, 0.0, rng.integers(1, 50, 30))
    return rows, covariances, side, weights


def test_cold_rows_are_a_weighted_regression_on_side_data(cold_case):
    rows, covariances, side, weights = cold_case
    cold = ColdPrior.of(rows, side, weights)
    w = weights / weights[weights > 0].mean()
    root = np.sqrt(w)[:, None]
    # rows of zero with a target of zero are a ridge
    F = np.vstack([root * np.column_stack([np.ones(30), side]), np.zeros((2, 3))])
    F[30:, 1:] = np.sqrt(SIDE_RIDGE) * np.eye(2)
    M = np.vstack([root * rows.mean, np.zeros((2, 3))])
    B = np.linalg.lstsq(F, M, rcond=None)[0]
    np.testing.assert_allclose(cold.B, B, rtol=1e-5)
    np.testing.assert_allclose(cold.average, np.average(rows.mean, axis=0, weights=w), rtol=1e-5)

    there = np.array([[0.5, -1.0], [0.0, 0.0]])  # the second has no side data
    found = cold.rows(there)
    np.testing.assert_allclose(found.mean[0], B[0] + there[0] @ B[1:], rtol=1e-5)
    np.testing.assert_allclose(found.mean[1], cold.average, rtol=1e-6)
    predictions = np.column_stack([np.ones(30), side]) @ B, cold.average
    for row, predicted in enumerate(predictions):
        rest = rows.mean - predicted
        outer = rest[:, :2, None] * rest[:, None, :2] + covariances
        wanted = np.average(outer, axis=0, weights=w)
        p = found.mean[row, :2]
        wanted = wanted[[0, 1, 1], [0, 0, 1]] + packed_outer(p[None])[0]
        np.testing.assert_allclose(found.moments[row], wanted, rtol=1e-4)
        variances = rows.variances[:, 0] + rest[:, 2] ** 2
        assert found.variances[row, 0] == pytest.approx(np.average(variances, weights=w), rel=1e-4)
    assert found.variances[0, 0] < found.variances[1, 0]  # side data make rows more certain


def test_rows_of_no_weight_do_not_count(cold_case):
    rows, _, side, weights = cold_case
    cold = ColdPrior.of(rows, side, weights)
    used = weights > 0
    alone = ColdPrior.of(rows.take(np.flatnonzero(used)), side[used], weights[used])
    np.testing.assert_allclose(cold.B, alone.B)
    np.testing.assert_allclose(cold.moments, alone.moments)


def test_without_side_columns_all_cold_rows_are_average(cold_case):
    rows, _, _, weights = cold_case
    cold = ColdPrior.of(rows, np.zeros((30, 0)), weights)
    np.testing.assert_allclose(cold.B[0], cold.average)
    np.testing.assert_allclose(cold.moments[0], cold.moments[1])
    found = cold.rows(np.zeros((2, 0)))
    np.testing.assert_allclose(found.mean, [cold.average, cold.average], rtol=1e-6)


def test_moments_in_blocks_are_the_same(cold_case, monkeypatch):
    rows, _, side, weights = cold_case
    whole = ColdPrior.of(rows, side, weights)
    monkeypatch.setattr("ordrec.rating.factors.row_priors.BLOCK", 4)
    np.testing.assert_allclose(ColdPrior.of(rows, side, weights).moments, whole.moments)


def test_factors_start_from_the_log_odds_of_going_on() -> None:
    counts = np.array([3, 0, 5, 12])
    smooth = counts + 1.0  # one rating more on each rank
    steps = _starting_steps(counts)
    for k in range(3):
        beyond = smooth[k + 1 :].sum()
        assert steps[k] == pytest.approx(np.log(beyond / smooth[k]))
