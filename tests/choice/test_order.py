"""What the order of histories says, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from naive import naive_order
from scipy import sparse

from ordrec.choice.conditional_logit import fitted_weights, log_likelihood
from ordrec.choice.order import DatedRows, places_of, tells_order
from ordrec.choice.successions import counted_pairs, directed_cosines, item_shares, lag_lifts
from ordrec.choice.trend import RatingTimes

N_ITEMS = 9


def drawn(seed: int, n_users: int = 14, n_times: int = 6) -> tuple[list, DatedRows]:
    """Histories as lists and as rows; few different times, so that many entries are tied."""
    rng = np.random.default_rng(seed)
    histories, items, values, times, start = [], [], [], [], [0]
    for _ in range(n_users):
        size = int(rng.integers(0, N_ITEMS + 1))
        own = np.sort(rng.permutation(N_ITEMS)[:size])
        value = rng.integers(1, 6, size) / 5
        time = rng.integers(0, n_times, size) * 30_000.0 + 1e9
        histories.append(list(zip(own.tolist(), value.tolist(), time.tolist(), strict=True)))
        items += own.tolist()
        values += value.tolist()
        times += time.tolist()
        start.append(len(items))
    table = sparse.csr_array((values, items, start), shape=(n_users, N_ITEMS))
    return histories, DatedRows.of(table, np.array(times))


each_seed = pytest.mark.parametrize("seed", range(4))


@each_seed
def test_places_share_their_mean_where_times_are_equal(seed) -> None:
    histories, rows = drawn(seed)
    expected = [place for history in histories for place in naive_order.places(history)]
    np.testing.assert_allclose(rows.places, expected)


def test_equal_times_tell_no_order() -> None:
    start = np.array([0, 2, 2, 5])
    assert not tells_order(start, np.array([7.0, 7, 3, 3, 3]))
    assert tells_order(start, np.array([7.0, 7, 3, 3, 4]))
    assert not tells_order(np.array([0]), np.zeros(0))
    assert places_of(start, np.array([7.0, 7, 3, 3, 3])).tolist() == [0.5, 0.5, 1, 1, 1]


@each_seed
def test_pairs_are_counted_by_their_lags(seed) -> None:
    histories, rows = drawn(seed)
    for window, decay in ((15.0, 3.0), (2.0, 1.5)):
        T = counted_pairs(rows, np.arange(N_ITEMS), window, decay)
        expected = naive_order.pairs(histories, window, decay)
        for (i, j), value in expected.items():
            assert T[i, j] == pytest.approx(value, rel=1e-5)
        assert T.sum() == pytest.approx(sum(expected.values()), rel=1e-5)


@each_seed
def test_pairs_among_some_items_keep_the_places_among_all(seed) -> None:
    _, rows = drawn(seed)
    some = np.array([1, 4, 5])
    whole = counted_pairs(rows, np.arange(N_ITEMS), 15.0, 3.0)
    np.testing.assert_allclose(counted_pairs(rows, some, 15.0, 3.0), whole[np.ix_(some, some)])


@each_seed
def test_directed_cosines(seed) -> None:
    histories, rows = drawn(seed)
    C = directed_cosines(rows, np.arange(N_ITEMS))
    np.testing.assert_allclose(C, naive_order.cosines(histories, N_ITEMS), rtol=1e-5)


@each_seed
def test_lag_lifts_after_one_step_of_em(seed) -> None:
    histories, rows = drawn(seed)
    q = item_shares(np.bincount(rows.history.indices, minlength=N_ITEMS))
    lift = lag_lifts(rows, np.arange(N_ITEMS), q)
    np.testing.assert_allclose(lift, naive_order.lifts(histories, q.tolist()), atol=1e-5)


@each_seed
def test_the_trend_of_popularity(seed) -> None:
    histories, rows = drawn(seed)
    at = np.array([1e9 + 60_000.0, 1e9, np.nan, 1e9 + 95_000.0])
    found = RatingTimes.of(rows).log_popularity(at, 0.3, N_ITEMS)
    at[2] = rows.times.max() + 1
    for row, time in zip(found, at, strict=True):
        np.testing.assert_allclose(row, naive_order.trend(histories, N_ITEMS, time, 0.3))


def test_rows_are_taken_by_code() -> None:
    _, rows = drawn(1)
    dense = rows.history.toarray()
    full = int(np.argmax(np.diff(rows.history.indptr)))
    taken = DatedRows.taken(rows.history, rows.times, np.array([full, -1, full, 0]))
    np.testing.assert_array_equal(
        taken.history.toarray(), np.stack([dense[full], np.zeros(N_ITEMS), dense[full], dense[0]])
    )
    own = slice(*rows.history.indptr[[full, full + 1]])
    np.testing.assert_array_equal(taken.places[: own.stop - own.start], rows.places[own])
    assert np.isnan(taken.newest[1])
    assert taken.newest[0] == rows.times[own].max()


# ---- the conditional logit ----------------------------------------------------------------


def logit_problem(seed: int) -> tuple[np.ndarray, np.ndarray, sparse.csr_array]:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((40, 3, 12))
    allowed = rng.random((40, 12)) < 0.8
    allowed[:, 0] = True
    p = np.where(allowed, np.exp(np.einsum("k,ukj->uj", [1.0, -0.5, 0.0], features)), 0.0)
    p /= p.sum(axis=1, keepdims=True)
    picked = np.array([rng.choice(12, p=row) for row in p])
    return features, allowed, sparse.csr_array((np.ones(40), picked, np.arange(41)), shape=(40, 12))


def test_the_gradient_and_the_hessian_are_those_of_the_likelihood() -> None:
    problem, w, h = logit_problem(0), np.array([0.3, -0.2, 0.7]), 1e-5
    _, gradient, hessian = log_likelihood(w, *problem)
    for k, step in enumerate(np.eye(3) * h):
        above, below = log_likelihood(w + step, *problem), log_likelihood(w - step, *problem)
        assert gradient[k] == pytest.approx((above[0] - below[0]) / (2 * h), rel=1e-6)
        np.testing.assert_allclose(-hessian[k], (above[1] - below[1]) / (2 * h), rtol=1e-6)


def test_the_weights_are_where_the_gradient_vanishes() -> None:
    problem = logit_problem(1)
    w = fitted_weights(*problem)
    assert np.abs(log_likelihood(w, *problem)[1]).max() < 1e-3
    assert w[0] > 0.3


def test_items_that_cannot_be_picked_do_not_count() -> None:
    features, allowed, targets = logit_problem(2)
    w = fitted_weights(features, allowed, targets)
    features = np.where(allowed[:, None, :], features, 1e3)
    np.testing.assert_allclose(fitted_weights(features, allowed, targets), w)
