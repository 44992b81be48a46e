"""What the order of histories says, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from naive import naive_order
from scipy import sparse

from ordrec.choice.conditional_logit import LikelyWeights, fitted_weights, log_likelihood
from ordrec.choice.order import DatedRows, places_of, tells_order
from ordrec.choice.successions import DirectedCosines, counted_pairs, item_shares, lag_lifts
from ordrec.choice.trend import RatingTimes

N_ITEMS = 9


def drawn(seed: int, n_users: int = 14, n_times: int = 6) -> tuple[list, DatedRows]:
    """Histories as lists and as rows; few different times, so that many entries are tied."""
    rng = np.random.default_rng(seed)
    histories = []
    for _ in range(n_users):
        size = int(rng.integers(0, N_ITEMS + 1))
        own = np.sort(rng.permutation(N_ITEMS)[:size])
        value = rng.integers(1, 6, size) / 5
        time = rng.integers(0, n_times, size) * 30_000.0 + 1e9
        histories.append(list(zip(own.tolist(), value.tolist(), time.tolist(), strict=True)))
    return histories, rows_of(histories)


def rows_of(histories: list) -> DatedRows:
    """Lists of item, value and time as rows."""
    items, values, times = ([entry[k] for own in histories for entry in own] for k in range(3))
    start = np.concatenate([[0], np.cumsum([len(own) for own in histories])])
    table = sparse.csr_array((values, items, start), shape=(len(histories), N_ITEMS))
    return DatedRows.of(table, np.array(times))


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
    C = DirectedCosines.of(rows, np.arange(N_ITEMS))
    expected = naive_order.cosines(histories, N_ITEMS)
    np.testing.assert_allclose(C.table, expected, rtol=1e-5)
    single = sparse.csr_array(np.eye(N_ITEMS))
    np.testing.assert_array_equal(C.spread(single), C.table)


@each_seed
def test_changed_histories_are_counted_as_if_from_the_beginning(seed) -> None:
    histories, rows = drawn(seed)
    rng, some = np.random.default_rng(seed), np.array([0, 1, 3, 4, 6, 8])
    cosines, rated = DirectedCosines.of(rows, some), RatingTimes.of(rows)
    for user in range(0, 12, 3):  # an entry less, or one more, or one at another time
        own = histories[user][user % 2 :]
        missing = sorted(set(range(N_ITEMS)) - {item for item, _, _ in own})
        own += [(item, 0.4, 1e9 + 30_000.0 * rng.integers(6)) for item in missing[:1]]
        if own:
            own[0] = (*own[0][:2], 1e9 + 500_000.0)
        before = DatedRows.taken(rows.history, rows.times, np.array([user]))
        histories[user] = sorted(own)
        rows = rows_of(histories)
        after = DatedRows.taken(rows.history, rows.times, np.array([user]))
        cosines = cosines.changed(before, after, some)
        rated = rated.changed(before, after)
    T = np.zeros((N_ITEMS, N_ITEMS))
    for (i, j), value in naive_order.pairs(histories, 100.0, 30.0).items():
        T[i, j] = value
    T = T[np.ix_(some, some)]
    roots = np.sqrt(np.outer(T.sum(axis=1), T.sum(axis=0)))
    expected = np.divide(T, roots, out=np.zeros_like(T), where=T > 0)
    found = cosines.spread(sparse.csr_array(np.eye(some.size)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    whole = RatingTimes.of(rows)
    assert np.array_equal(rated.times, whole.times)
    assert np.array_equal(rated.counts(N_ITEMS), whole.counts(N_ITEMS))
    at = np.array([1e9 + 60_000.0, np.nan])
    np.testing.assert_allclose(
        rated.log_popularity(at, 0.3, N_ITEMS), whole.log_popularity(at, 0.3, N_ITEMS)
    )


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


LIKELY = LikelyWeights(np.array([0.5, 0.4, -0.3]), 7.0)


def test_the_gradient_and_the_hessian_are_those_of_the_likelihood() -> None:
    problem, w, h = (*logit_problem(0), LIKELY), np.array([0.3, -0.2, 0.7]), 1e-5
    value, gradient, hessian = log_likelihood(w, *problem)
    features, allowed, targets, _ = problem
    scores = np.where(allowed, np.einsum("k,ukj->uj", w, features), -np.inf)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    expected = logs[np.arange(40), targets.indices].sum() - 3.5 * ((w - LIKELY.mean) ** 2).sum()
    assert value == pytest.approx(expected)
    for k, step in enumerate(np.eye(3) * h):
        above, below = log_likelihood(w + step, *problem), log_likelihood(w - step, *problem)
        assert gradient[k] == pytest.approx((above[0] - below[0]) / (2 * h), rel=1e-6)
        np.testing.assert_allclose(-hessian[k], (above[1] - below[1]) / (2 * h), rtol=1e-6)


def test_the_weights_are_where_the_gradient_vanishes() -> None:
    problem = (*logit_problem(1), LikelyWeights(np.zeros(3), 1.0))
    w = fitted_weights(*problem)
    assert np.abs(log_likelihood(w, *problem)[1]).max() < 1e-3
    assert w[0] > 0.3
    np.testing.assert_allclose(fitted_weights(*problem, np.array([2.0, 2, 2])), w, atol=1e-3)


def test_the_weights_lie_between_the_likely_ones_and_those_of_the_picks() -> None:
    problem = logit_problem(1)
    found = [
        fitted_weights(*problem, LikelyWeights(LIKELY.mean, precision))
        for precision in (1e-6, 10.0, 1e6)
    ]
    gradient = log_likelihood(found[0], *problem, LikelyWeights(np.zeros(3), 0.0))[1]
    assert np.abs(gradient).max() < 1e-3
    np.testing.assert_allclose(found[2], LIKELY.mean, atol=1e-4)
    away = [np.linalg.norm(w - LIKELY.mean) for w in found]
    assert away[0] > away[1] > away[2]


def test_items_that_cannot_be_picked_do_not_count() -> None:
    features, allowed, targets = logit_problem(2)
    w = fitted_weights(features, allowed, targets, LIKELY)
    features = np.where(allowed[:, None, :], features, 1e3)
    np.testing.assert_allclose(fitted_weights(features, allowed, targets, LIKELY), w)
