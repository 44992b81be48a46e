"""Compiled loops of the ordinal factors against dense double-precision twins, and by properties."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import naive_factors
from naive.naive_factors import Rated, Row
from scipy.optimize import approx_fprime
from scipy.special import expit

from ordrec.rating.factors.row_updates import (
    NO_DRIFT,
    UNIFORM,
    LinearSystems,
    add_ratings,
    drift_sites,
    exp_of_minus,
    invert_and_negate,
    probabilities,
    solve_rows,
    update_rows,
)
from ordrec.rating.factors.rows import GroupedRatings, PriorArrays, RowPosteriors, packed_outer
from ordrec.runtime.compiling import compiled

SINGLE = {"rtol": 2e-4, "atol": 2e-5}  # a few hundred roundings of single precision

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "n_factors": st.integers(1, 4),
        "n_steps": st.integers(1, 5),
        "spread": st.sampled_from([0.0, 0.1, 1.0]),
        "dated": st.booleans(),
    }
)


class Problem(NamedTuple):
    """Random rows of both sides, ratings, a prior and a drift of each rating."""

    rows: list[Row]
    others: list[Row]
    ratings: GroupedRatings
    drift: np.ndarray
    prior: np.ndarray
    prior_weights: np.ndarray
    P: np.ndarray
    n_steps: int

    def of_row(self, row: int) -> list[Rated]:
        at = range(self.ratings.start[row], self.ratings.start[row + 1])
        known = self.drift if len(self.drift) else np.zeros((self.ratings.levels.size, 2))
        return [
            Rated(self.others[self.ratings.others[a]], int(self.ratings.levels[a]), tuple(known[a]))
            for a in at
        ]

    @property
    def of_prior(self) -> PriorArrays:
        """The prior as the compiled loop takes it."""
        pulls = self.prior_weights[:, None] * (self.prior @ self.P)
        arrays = pulls, self.prior_weights, self.P
        return PriorArrays(*(each.astype(np.float32) for each in arrays))

    @property
    def rated(self) -> np.ndarray:
        """The rows that have ratings."""
        return np.flatnonzero(self.ratings.counts)

    def update(self, floor: float) -> tuple[RowPosteriors, np.ndarray]:
        """What the compiled loop makes of all rows, and the sum of their covariances."""
        width = self.prior.shape[1]
        rows, covariances = posteriors(self.rows, self.n_steps), np.zeros((width, width))
        others = posteriors(self.others, self.n_steps)
        update_rows(
            self.rated, self.ratings, self.drift, others, self.of_prior, floor, rows, covariances
        )
        return rows, np.tril(covariances) + np.tril(covariances, -1).T


def posteriors(rows: list[Row], n_steps: int) -> RowPosteriors:
    n_factors = rows[0].mean.size - n_steps
    lower = np.tril_indices(n_factors)
    return RowPosteriors.of(
        np.array([row.mean for row in rows]),
        np.array([naive_factors.second_moment(row, n_factors)[lower] for row in rows]),
        np.array([np.diag(row.covariance)[n_factors:] for row in rows]),
    )


def covariance_of(rng, width: int, spread: float) -> np.ndarray:
    root = rng.normal(size=(width, width))
    return spread * (root @ root.T / width + 0.1 * np.eye(width))


def problem(seed: int, n_factors: int, n_steps: int, spread: float, dated: bool) -> Problem:
    """Four rows of each side; the last row of this side has no ratings."""
    rng, width = np.random.default_rng(seed), n_factors + n_steps
    rows, others = (
        [Row(rng.normal(size=width), covariance_of(rng, width, spread)) for _ in range(4)]
        for _ in range(2)
    )
    here, there = np.nonzero(rng.random((3, 4)) < 0.7)
    ratings = GroupedRatings.of(here, there, rng.integers(0, n_steps + 1, here.size), 4)
    drift = NO_DRIFT
    if dated:
        drift = np.column_stack([rng.normal(size=here.size), rng.uniform(0, 1, here.size)])
    P = np.linalg.inv(covariance_of(rng, width, 1.0))
    prior, weights = rng.normal(size=(4, width)), rng.uniform(0.3, 1.0, 4)
    return Problem(rows, others, ratings, drift.astype(np.float32), prior, weights, P, n_steps)


# ---- updates of rows -----------------------------------------------------------------------------


@given(kind=problems, floor=st.sampled_from([0.0, 0.5, 1.0]))
def test_rows_are_those_of_the_dense_twin(kind, floor):
    case = problem(**kind)
    rows, covariances = case.update(floor)
    total = np.zeros_like(covariances)
    for number, row in enumerate(case.rows):
        ratings = case.of_row(number)
        if not ratings:
            continue
        wanted = naive_factors.updated(
            row,
            ratings,
            case.prior[number],
            case.prior_weights[number] * case.P,
            floor,
            case.n_steps,
        )
        total += case.prior_weights[number] * wanted.covariance
        expected = posteriors([wanted], case.n_steps)
        for found, want in zip(rows.arrays, expected.arrays, strict=True):
            np.testing.assert_allclose(found[number], want[0], **SINGLE)
    np.testing.assert_allclose(covariances, total, **SINGLE)


@given(kind=problems)
def test_a_rating_of_weight_one_counts_and_one_of_weight_zero_does_not(kind):
    case = problem(**kind)
    n_ratings = case.ratings.levels.size
    plain, _ = case.update(0.5)
    ones = replace(case.ratings, weights=np.ones(n_ratings, np.float32))
    weighted, _ = case._replace(ratings=ones).update(0.5)
    for found, want in zip(weighted.arrays, plain.arrays, strict=True):
        np.testing.assert_allclose(found, want, **SINGLE)
    here = np.repeat(np.arange(4), np.diff(case.ratings.start))
    kept = np.arange(n_ratings) % 2 == 0
    drift = case.drift[kept] if len(case.drift) else case.drift
    rest = GroupedRatings.of(here[kept], case.ratings.others[kept], case.ratings.levels[kept], 4)
    halved = replace(case.ratings, weights=kept.astype(np.float32))
    without, _ = case._replace(ratings=rest, drift=drift).update(0.5)
    weighted, _ = case._replace(ratings=halved).update(0.5)
    for found, want in zip(weighted.arrays, without.arrays, strict=True):
        rated = np.diff(rest.start) > 0  # a row whose ratings all weigh nothing has its prior
        np.testing.assert_allclose(found[rated], want[rated], **SINGLE)


@given(kind=problems)
def test_rows_without_ratings_and_those_not_chosen_are_left_alone(kind):
    case = problem(**kind)
    before = posteriors(case.rows, case.n_steps)
    after, _ = case.update(0.5)
    width = case.prior.shape[1]
    part = RowPosteriors(*(array.copy() for array in before.arrays))
    covariances = np.ones((width, width))
    chosen = case.rated[case.rated == 1]
    others = posteriors(case.others, case.n_steps)
    update_rows(chosen, case.ratings, case.drift, others, case.of_prior, 0.5, part, covariances)
    for old, new, one in zip(before.arrays, after.arrays, part.arrays, strict=True):
        np.testing.assert_array_equal(new[3], old[3])
        np.testing.assert_array_equal(one[[0, 2, 3]], old[[0, 2, 3]])
        np.testing.assert_array_equal(one[1], new[1])  # the same, whatever else is updated
    assert (covariances - 1).trace() > 0 or not case.of_row(1)  # added, not overwritten


@given(kind=problems)
def test_ratings_may_be_added_in_parts(kind):
    """As blocks of users add theirs to the systems of the items."""
    case = problem(**kind)
    rows, _ = case.update(0.5)
    one, other = posteriors(case.rows, case.n_steps), posteriors(case.others, case.n_steps)
    systems = LinearSystems.zeros(case.rated.size, one.n_factors, case.n_steps)
    here = np.repeat(np.arange(4), case.ratings.counts)
    first = np.arange(here.size) % 2 == 0
    for part in (first, ~first):
        drift = case.drift[part] if len(case.drift) else case.drift
        theirs = case.ratings.others[part], case.ratings.levels[part]
        ratings = GroupedRatings.of(here[part], *theirs, 4)
        add_ratings(case.rated, ratings, drift, other, 0.5, one, systems)
    width = case.prior.shape[1]
    solve_rows(case.rated, systems, case.of_prior, one, np.zeros((width, width)))
    for found, want in zip(one.arrays, rows.arrays, strict=True):
        np.testing.assert_allclose(found, want, **SINGLE)


@pytest.mark.parametrize("floor", [0.5, 1.0])
def test_without_variance_updates_end_at_the_mode_of_the_posterior(floor):
    """Where the log-posterior has no slope, by finite differences."""
    case = problem(seed=5, n_factors=3, n_steps=4, spread=0.0, dated=False)
    width = case.prior.shape[1]
    others, rows = posteriors(case.others, 4), posteriors(case.rows, 4)
    for _ in range(60):
        covariances = np.zeros((width, width))
        update_rows(
            case.rated, case.ratings, NO_DRIFT, others, case.of_prior, floor, rows, covariances
        )
        # the row is known exactly too: its second moments are those of its mean
        rows.moments[:], rows.variances[:] = packed_outer(rows.mean[:, :3]), 0.0
    for number in range(3):
        ratings = case.of_row(number)

        P = case.prior_weights[number] * case.P

        def log_posterior(x, ratings=ratings, prior=case.prior[number], P_of_row=P):
            rest = x - prior
            own = P_of_row @ rest
            return naive_factors.log_likelihood(x, ratings, 4) - rest @ own / 2

        mode = rows.mean[number].astype(np.float64)
        slope = approx_fprime(mode, log_posterior, 1e-6)
        away = approx_fprime(case.rows[number].mean, log_posterior, 1e-6)
        assert ratings
        assert np.abs(slope).max() < 2e-3 * np.abs(away).max()


@given(
    m=st.floats(-8, 8),
    v=st.floats(0, 9),
    onward=st.booleans(),
    floor=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_one_rating_on_two_ranks_weighs_what_the_quadratic_says(m, v, onward, floor):
    """A row of one step and no factor in use: the precision is the weight, (3) and (4)."""
    step = Row(np.array([0.0, m]), np.diag([0.0, v]))
    ratings = GroupedRatings.of(
        np.zeros(1, int), np.zeros(1, int), np.array([onward]).astype(int), 1
    )
    rows, covariances = posteriors([step], 1), np.zeros((2, 2))
    nobody = posteriors([Row(np.zeros(2), np.zeros((2, 2)))], 1)
    arrays = np.zeros((1, 2)), np.ones(1), np.eye(2)
    prior = PriorArrays(*(each.astype(np.float32) for each in arrays))
    update_rows(np.array([0]), ratings, NO_DRIFT, nobody, prior, floor, rows, covariances)
    w, h = naive_factors.quadratic(m, v, onward, floor)
    assert 1 / covariances[1, 1] - 1 == pytest.approx(w, rel=1e-4, abs=1e-6)
    assert rows.mean[0, 1] == pytest.approx(h / (1 + w), rel=1e-4, abs=1e-5)
    xi = np.hypot(m, np.sqrt(v))
    assert w >= floor * (np.tanh(xi / 2) / (2 * xi) if xi else 0.25) * (1 - 1e-12)


# ---- sites of the drift --------------------------------------------------------------------------


@given(kind=problems)
def test_sites_of_the_drift_are_those_of_the_dense_twin(kind):
    case = problem(**{**kind, "dated": True})
    n_ratings = case.ratings.levels.size
    weights, pulls = np.full((2, n_ratings), np.nan, np.float32)
    rows, others = posteriors(case.rows, case.n_steps), posteriors(case.others, case.n_steps)
    drift_sites((0, 4), case.ratings, case.drift, rows, others, weights, pulls)
    expected = [
        naive_factors.site(row, rated, case.n_steps, 0.5)
        for number, row in enumerate(case.rows)
        for rated in case.of_row(number)
    ]
    found = np.column_stack([weights, pulls])
    np.testing.assert_allclose(found, np.reshape(expected, (-1, 2)), **SINGLE)


# ---- probabilities -------------------------------------------------------------------------------


def probability(user: Row, item: Row, n_steps: int, drift: np.ndarray = NO_DRIFT) -> np.ndarray:
    zero = np.zeros(1, np.int64)
    rows = posteriors([user], n_steps), posteriors([item], n_steps)
    return probabilities((zero, zero), drift, *rows)[0]


@given(kind=problems)
def test_probabilities_are_those_of_the_dense_twin(kind):
    case = problem(**kind)
    drift = np.array([[0.4, 0.6]], np.float32) if kind["dated"] else NO_DRIFT
    rated = Rated(case.others[0], 0, (0.4, 0.6) if kind["dated"] else (0.0, 0.0))
    expected = naive_factors.rank_probabilities(case.rows[0], rated, case.n_steps)
    expected = (1 - UNIFORM) * expected + UNIFORM / expected.size
    found = probability(case.rows[0], case.others[0], case.n_steps, drift)
    np.testing.assert_allclose(found, expected, **SINGLE)


@given(
    steps=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=11),
    variance=st.floats(0, 1e4),
    known=st.tuples(st.floats(-1e3, 1e3), st.floats(0, 1e3)),
)
def test_probabilities_sum_to_one_whatever_the_steps(steps, variance, known):
    n_steps = len(steps)
    user = Row(np.array([1.0, *steps]), variance * np.eye(n_steps + 1))
    item = Row(np.array([2.0, *steps[::-1]]), variance * np.eye(n_steps + 1))
    p = probability(user, item, n_steps, np.array([known], np.float32))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p >= UNIFORM / (n_steps + 1) * (1 - 1e-9)).all()  # no rank is ruled out


def test_without_variance_probabilities_are_products_of_sigmoids():
    certain = np.zeros((4, 4))
    user, item = Row(np.array([0.5, -1.0, 0.0, 2.0]), certain), Row(np.arange(4) / 4, certain)
    p = (probability(user, item, 3) - UNIFORM / 4) / (1 - UNIFORM)
    on = expit(user.mean[0] * item.mean[0] + user.mean[1:] + item.mean[1:])
    expected = [1 - on[0], on[0] * (1 - on[1]), on[0] * on[1] * (1 - on[2]), on.prod()]
    np.testing.assert_allclose(p, expected, rtol=1e-6)


def test_more_variance_gives_wider_distributions():
    user, item = Row(np.array([1.0, 2.0, 2.0, -3.0]), None), Row(np.zeros(4), None)
    entropies = []
    for variance in (0.0, 0.5, 2.0, 8.0):
        both = (row._replace(covariance=variance * np.eye(4)) for row in (user, item))
        p = probability(*both, 3)
        entropies.append(-(p * np.log(p)).sum())
    assert (np.diff(entropies) > 0.01).all()


def test_pairs_do_not_depend_on_those_beside_them():
    case = problem(seed=1, n_factors=3, n_steps=4, spread=1.0, dated=False)
    rows, others = posteriors(case.rows, 4), posteriors(case.others, 4)
    users, items = np.array([0, 0, 2, 0, -1, 3]), np.array([1, 3, 3, 1, 0, -1])
    together = probabilities((users, items), NO_DRIFT, rows, others)
    for a in range(6):
        own = users[a : a + 1], items[a : a + 1]
        alone = probabilities(own, NO_DRIFT, rows, others)
        np.testing.assert_array_equal(alone[0], together[a])
    np.testing.assert_array_equal(together[0], together[3])


# ---- single-precision mathematics ---------------------------------------------------------------


@compiled
def all_falling(x, out):
    for k in range(x.size):
        out[k] = exp_of_minus(x[k])


@compiled
def inverted(A, column):
    invert_and_negate(A, column)


def test_the_exponential_falls_as_numpys_does():
    x = np.concatenate([[0.0, 1e-30, 1e-6], np.linspace(0.0, 80.0, 20_001)]).astype(np.float32)
    found = np.empty_like(x)
    all_falling(x, found)
    np.testing.assert_allclose(found, np.exp(-x.astype(np.float64)), rtol=5e-7)
    assert found[0] == 1.0


def test_far_out_the_exponential_is_nothing():
    found = np.empty(3, np.float32)
    all_falling(np.array([81.0, 1e4, 1e30], np.float32), found)
    assert (found >= 0).all()
    assert (found < 1e-30).all()


@given(n=st.integers(1, 45), seed=st.integers(0, 1000), least=st.sampled_from([1.0, 0.1, 0.01]))
def test_the_inverse_is_that_of_double_precision(n, seed, least):
    root = np.random.default_rng(seed).normal(size=(n, n))
    whole = root @ root.T / n + least * np.eye(n)
    A = whole.astype(np.float32)
    A[np.triu_indices(n, 1)] = np.nan  # is not read
    inverted(A, np.empty(n, np.float32))
    wanted = np.linalg.inv(whole)
    lower = np.tril_indices(n)
    assert np.abs(A[lower] + wanted[lower]).max() < 1e-5 / least * np.abs(wanted).max()
