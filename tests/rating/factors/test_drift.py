"""The drift of users' scores: the smoother against the dense Gaussian process."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.rating.factors.drift import (
    STATIONARY_VARIANCE,
    TIME_SCALES,
    VARIANCES,
    at,
    by_time,
    smooth,
)

CLOSE = {"rtol": 2e-6, "atol": 2e-6}  # results are float32

# Some seconds, minutes, hours or years apart, or at the same second.
gaps = st.sampled_from([0, 0, 1, 15, 400, 5000, 10**5, 10**7, 10**9, 10**15])
sites = st.tuples(
    st.integers(0, 3),  # user
    gaps,
    st.sampled_from([0.0, 0.01, 0.3, 2.5, 40.0, 1e6]),  # weight
    st.floats(-3, 3),  # pull
)


def table(rows):
    """Columns of sites; the gaps add up to times."""
    users = np.array([row[0] for row in rows], dtype=np.int64)
    times = 1.0 + np.cumsum([row[1] for row in rows], dtype=np.float64)
    return users, times, np.array([row[2] for row in rows]), np.array([row[3] for row in rows])


def smoothed(users, times, weights, pulls, n_users, pieces=(), dtype=np.float32):
    means, variances = np.full((2, users.size), np.nan, dtype=dtype)
    start, order = by_time(users, times, n_users)
    cuts = [0, *pieces, n_users]
    for first, stop in pairwise(cuts):
        smooth(first, stop, start, order, times, weights, pulls, means, variances)
    return means, variances


def answers(asked, when, users, times, weights, pulls, n_users=6):
    return at(asked, when, *by_time(users, times, n_users), times, weights, pulls)


def covariance(s, t):
    gap = np.abs(s[:, None] - t)
    return sum(v * np.exp(-gap / tau) for v, tau in zip(VARIANCES, TIME_SCALES, strict=True))


def dense(asked, times, weights, pulls):
    """Posterior of g at the times asked for, from the covariances of all sites of one user."""
    across = covariance(asked, times)
    system = np.eye(times.size) + weights[:, None] * covariance(times, times)
    means = across @ np.linalg.solve(system, pulls)
    known = np.linalg.solve(system, weights[:, None] * across.T)
    return means, STATIONARY_VARIANCE - np.sum(across * known.T, axis=1)


# ---- at the ratings ------------------------------------------------------------------------


@given(rows=st.lists(sites, min_size=1, max_size=25), seed=st.integers(0, 99))
def test_posteriors_equal_those_of_the_dense_process_in_any_order_of_rows(rows, seed):
    users, times, weights, pulls = table(rows)
    means, variances = smoothed(users, times, weights, pulls, 5)
    for u in range(4):
        own = users == u
        if own.any():
            mean, variance = dense(times[own], times[own], weights[own], pulls[own])
            np.testing.assert_allclose(means[own], mean, **CLOSE)
            np.testing.assert_allclose(variances[own], variance, **CLOSE)
    mixed = np.random.default_rng(seed).permutation(users.size)
    again = smoothed(users[mixed], times[mixed], weights[mixed], pulls[mixed], 5)
    np.testing.assert_allclose(again[0], means[mixed], **CLOSE)
    np.testing.assert_allclose(again[1], variances[mixed], **CLOSE)


@given(rows=st.lists(sites, min_size=1, max_size=25), cut=st.integers(0, 5))
def test_any_division_into_pieces_gives_the_same_digits(rows, cut):
    whole = smoothed(*table(rows), 5)
    np.testing.assert_array_equal(smoothed(*table(rows), 5, pieces=[cut, max(cut, 3)]), whole)


def test_sites_that_say_nothing_leave_no_trace_even_in_the_last_digit():
    rng = np.random.default_rng(0)
    times = 1e9 + np.cumsum(rng.integers(0, 90, 300)).astype(np.float64)
    weights, pulls = rng.uniform(0, 2, 300), rng.normal(size=300)
    silent = rng.random(300) < 0.5
    silent[0] = True
    weights[silent], pulls[silent] = 0.0, 0.0
    users = np.zeros(300, dtype=np.int64)
    among = smoothed(users, times, weights, pulls, 1, dtype=np.float64)
    telling = (column[~silent] for column in (users, times, weights, pulls))
    alone = smoothed(*telling, 1, dtype=np.float64)
    np.testing.assert_array_equal(np.stack(among)[:, ~silent], alone)


def test_many_ratings_at_the_same_second_are_one_strong_one():
    n = 20_000
    users, times = np.zeros(n + 1, dtype=np.int64), np.full(n + 1, 1e9)
    times[n] += 30.0
    weights, pulls = np.full(n + 1, 0.5), np.full(n + 1, 0.2)
    means, variances = smoothed(users, times, weights, pulls, 1)
    two = [0, n]
    strong = np.array([0.5 * n, 0.5]), np.array([0.2 * n, 0.2])
    mean, variance = dense(times[two], times[two], *strong)
    np.testing.assert_allclose(means, mean[[0] * n + [1]], rtol=1e-6)
    np.testing.assert_allclose(variances, variance[[0] * n + [1]], rtol=1e-6)


def test_a_rating_of_unknown_time_has_the_users_mean_and_tells_nothing():
    users = np.array([0, 0, 0, 0, 1, 2])
    times = np.array([0.0, 5e8, np.nan, 5e8 + 60, 0.0, 7.0])
    weights, pulls = np.ones(6), np.array([3.0, 1.0, -3.0, 2.0, 4.0, 0.5])
    means, variances = smoothed(users, times, weights, pulls, 3)
    dated = np.array([1, 3])
    mean, variance = dense(times[dated], times[dated], weights[dated], pulls[dated])
    np.testing.assert_allclose(means[[1, 3]], mean, **CLOSE)
    np.testing.assert_allclose(variances[[1, 3]], variance, **CLOSE)
    np.testing.assert_allclose(means[[0, 2]], mean.mean(), **CLOSE)
    assert means[4] == 0
    np.testing.assert_allclose(variances[[0, 2, 4]], STATIONARY_VARIANCE, **CLOSE)
    assert means[5] > 0


# ---- at other times ------------------------------------------------------------------------


@given(
    rows=st.lists(sites, max_size=20),
    pairs=st.lists(st.tuples(st.integers(-1, 5), gaps), min_size=1, max_size=12),
)
def test_answers_equal_those_of_the_dense_process(rows, pairs):
    ratings = table(rows)
    asked = np.array([pair[0] for pair in pairs])
    when = 1.0 + np.cumsum([pair[1] for pair in pairs], dtype=np.float64)
    means, variances = answers(asked, when, *ratings)
    assert means.dtype == variances.dtype == np.float32
    for u in np.unique(asked):
        own, theirs = asked == u, ratings[0] == u
        mean, variance = dense(when[own], *(column[theirs] for column in ratings[1:]))
        np.testing.assert_allclose(means[own], mean, **CLOSE)
        np.testing.assert_allclose(variances[own], variance, **CLOSE)
    for k in range(len(pairs)):  # whatever else is asked
        alone = answers(asked[k : k + 1], when[k : k + 1], *ratings)
        np.testing.assert_array_equal(alone, (means[k : k + 1], variances[k : k + 1]))


@given(rows=st.lists(sites, min_size=1, max_size=20))
def test_asked_at_the_ratings_times_it_says_what_smooth_says(rows):
    users, times, weights, pulls = table(rows)
    asked = answers(users, times, users, times, weights, pulls)
    np.testing.assert_allclose(asked, smoothed(users, times, weights, pulls, 4), **CLOSE)


@pytest.mark.parametrize("time", [0.0, np.nan])
def test_without_a_time_and_for_strangers_the_answer_is_the_prior(time):
    ratings = np.array([2, 2]), np.array([10.0, 20.0]), np.ones(2), np.ones(2)
    asked, when = np.array([2, -1, 5, 2]), np.array([time, 15.0, 15.0, 15.0])
    means, variances = answers(asked, when, *ratings)
    np.testing.assert_array_equal(means[:3], 0)
    np.testing.assert_allclose(variances[:3], STATIONARY_VARIANCE)
    assert means[3] > 0.5
    assert variances[3] < 0.5


def test_nothing_asked_nothing_answered():
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    means, variances = answers(none, nothing, none, nothing, nothing, nothing, n_users=0)
    assert means.size == variances.size == 0
