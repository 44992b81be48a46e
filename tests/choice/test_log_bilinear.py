"""The log-bilinear model of the next item: its gradient, its scores, what it is trained on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from naive import naive_order
from scipy import sparse

from ordrec.choice.log_bilinear import LogBilinear, _Adam, _context, _gradients, _Places
from ordrec.choice.order import DatedRows

N_ITEMS = 7


def dated(seed: int, n_users: int = 12, n_times: int = 5) -> tuple[list, DatedRows]:
    """Histories as lists of (item, value, time) and as rows, with many equal times."""
    rng = np.random.default_rng(seed)
    histories = []
    for _ in range(n_users):
        items = np.sort(rng.permutation(N_ITEMS)[: rng.integers(0, N_ITEMS)])
        times = rng.integers(0, n_times, items.size) * 1e3 + 1e9
        histories.append([(int(i), 1.0, float(t)) for i, t in zip(items, times, strict=True)])
    start = np.cumsum([0, *map(len, histories)])
    flat = [entry for history in histories for entry in history]
    table = sparse.csr_array(
        (np.ones(len(flat)), [i for i, _, _ in flat], start), shape=(n_users, N_ITEMS)
    )
    return histories, DatedRows.of(table, np.array([t for _, _, t in flat]))


def drawn_vectors(seed: int, items: np.ndarray, width: int = 3) -> LogBilinear:
    rng = np.random.default_rng(seed)
    return LogBilinear(
        rng.standard_normal((3 * items.size, width)).astype(np.float32),
        rng.standard_normal((items.size, width)).astype(np.float32),
        rng.standard_normal(items.size).astype(np.float32),
    )


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_sums_over_entries(seed) -> None:
    histories, rows = dated(seed)
    items = np.array([0, 2, 3, 5])
    model = drawn_vectors(seed, items)
    x, y, z = model.contexts.reshape(3, items.size, -1)
    place_of = {item: k for k, item in enumerate(items.tolist())}
    found = model.scores(rows, items)
    for history, scores in zip(histories, found, strict=True):
        h = np.zeros(3)
        for (item, _, _), place in zip(history, naive_order.places(history), strict=True):
            if item in place_of:
                k = place_of[item]
                h += math.exp(-place / 1.5) * x[k] + math.exp(-place / 6) * y[k]
                h += z[k] / (2 * math.sqrt(len(history)))
        np.testing.assert_allclose(scores, model.targets @ h + model.biases, atol=1e-5)


def test_the_gradients_are_those_of_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in ((15, 4), (5, 4), (5,))]
    row, column = np.array([0, 0, 1, 2]), np.array([1, 3, 0, 2])
    context = _context(row, column, np.array([1.0, 0.0, 0.0, 2.0]), np.array([2, 1, 1]), 5)
    picked, seen = np.array([2, 4, 0]), (row, column)

    def loss(values: list[np.ndarray]) -> float:
        scores = (context @ values[0]) @ values[1].T + values[2]
        scores[seen] = -np.inf
        own = scores[np.arange(3), picked]
        return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - own))

    found = _gradients(*values, context, picked, seen)
    for k, gradient in enumerate(found):
        for place in list(np.ndindex(gradient.shape))[::3]:
            moved = []
            for step in (1e-6, -1e-6):
                other = [value.copy() for value in values]
                other[k][place] += step
                moved.append(loss(other))
            expected = (moved[0] - moved[1]) / 2e-6
            assert gradient[place] == pytest.approx(expected, abs=1e-6)


def test_it_starts_from_the_lifts() -> None:
    lifts = np.random.default_rng(1).standard_normal((30, 30)).astype(np.float32)
    shares = np.full(30, 1 / 30)
    model = LogBilinear.start(lifts, shares, np.random.default_rng(0))
    x, y, z = model.contexts.reshape(3, 30, -1)
    np.testing.assert_allclose(x @ model.targets.T, 0.35 * lifts, atol=1e-4)
    np.testing.assert_allclose(y @ model.targets.T, 0.12 * lifts, atol=1e-4)
    assert np.abs(z).max() < 0.1
    np.testing.assert_allclose(model.biases, np.log(1 / 30), rtol=1e-6)


def test_places_are_drawn_with_what_came_before_and_ties_change_places() -> None:
    _, rows = dated(2, n_users=40, n_times=3)
    items = np.arange(N_ITEMS)
    times = np.full(rows.history.shape, np.nan)
    row = np.repeat(np.arange(40), np.diff(rows.history.indptr))
    times[row, rows.history.indices] = rows.times
    drawn = _Places.of(rows, items, np.random.default_rng(0))
    orders = set()
    for number, (context, picked, (user, seen)) in enumerate(drawn.batches(250)):
        if number % 100:
            continue
        weights = context.toarray()
        pairs = zip(user.tolist(), seen.tolist(), strict=True)
        assert all(picked[k] != item for k, item in pairs)
        sizes = np.bincount(user, minlength=picked.size)
        for k, item in enumerate(picked):
            before = seen[user == k]
            np.testing.assert_allclose(
                np.sort(weights[k, before])[::-1], np.exp(-np.arange(sizes[k]) / 1.5), atol=1e-6
            )
            own = next(  # the history it was drawn from: the only one that has it all, in time
                (u for u in range(40)
                 if np.isfinite(times[u, [*before, item]]).all()
                 and (times[u, before] <= times[u, item]).all()), None
            )  # fmt: skip
            assert own is not None
        orders.add(tuple(sorted(zip(user.tolist(), seen.tolist(), strict=True))))
    assert len(orders) == 3


def test_training_learns_what_comes_next_and_nothing_of_the_storage_order() -> None:
    rng = np.random.default_rng(3)
    n_users, n_items = 120, 30
    starts = rng.integers(n_items, size=n_users)
    columns = (starts[:, None] + np.arange(6)) % n_items
    order = np.argsort(columns, axis=1)
    items = np.take_along_axis(columns, order, axis=1)
    times = 1e9 + 60.0 * order
    table = sparse.csr_array(
        (np.ones(items.size), items.ravel(), 6 * np.arange(n_users + 1)), shape=(n_users, n_items)
    )
    rows = DatedRows.of(table, times.ravel())
    every, even = np.arange(n_items), np.full(n_items, 1 / n_items)
    lifts = np.zeros((n_items, n_items), dtype=np.float32)
    begun = LogBilinear.start(lifts, even, np.random.default_rng(0))

    def found(histories: DatedRows, share: float) -> LogBilinear:
        noisy = LogBilinear(
            begun.contexts + 0.01, begun.targets + np.eye(30, dtype=np.float32), begun.biases
        )
        return noisy.trained(histories, every, np.random.default_rng(0), share)

    scores = found(rows, 5.0).scores(rows, every)
    scores[np.arange(n_users)[:, None], items] = -np.inf
    assert (scores.argmax(axis=1) == (starts + 6) % n_items).mean() > 0.9
    same = DatedRows.of(table, np.full(times.size, 1e9))
    scores = found(same, 1.0).scores(same, every)
    back, ahead = (starts - 1) % n_items, (starts + 6) % n_items
    users = np.arange(n_users)
    assert abs((scores[users, ahead] - scores[users, back]).mean()) < 0.5


def test_vectors_of_other_items_keep_what_is_known() -> None:
    own, other = np.array([1, 3, 4]), np.array([0, 3, 4, 6])
    model = drawn_vectors(0, own)
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    moved = model.moved_to(own, other, shares)
    before, after = (m.contexts.reshape(3, -1, 3) for m in (model, moved))
    assert np.array_equal(after[:, 1:3], before[:, 1:3])
    assert np.array_equal(moved.targets[1:3], model.targets[1:3])
    assert not after[:, [0, 3]].any()
    np.testing.assert_allclose(moved.biases[[0, 3]], np.log([0.1, 0.4]), rtol=1e-6)


def test_histories_of_single_entries_teach_nothing() -> None:
    table = sparse.csr_array(np.eye(4))
    rows = DatedRows.of(table, np.arange(4.0) + 1e9)
    model = drawn_vectors(1, np.arange(4))
    assert model.trained(rows, np.arange(4), np.random.default_rng(0)) is model


@pytest.mark.parametrize("gradient", [0.0, 3.0, -1e-3, 1e-8])
def test_steps_of_adam_by_hand(gradient: float) -> None:
    value, mean, square = np.array([2.0]), 0.0, 0.0
    adam, expected = _Adam([value]), 2.0
    for number in (1, 2, 3):
        slope = gradient * number
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        size = math.sqrt(square / (1 - 0.999**number)) + 1e-8
        expected -= 0.05 * mean / (1 - 0.9**number) / size
        adam.step([np.array([slope])], 0.05)
    assert value[0] == pytest.approx(expected, rel=1e-9)
