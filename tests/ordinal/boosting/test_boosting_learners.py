"""The learners against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import naive_boosting
from numba import njit

from ordrec.ordinal.boosting.ensemble import EarlyStopping
from ordrec.ordinal.boosting.model import DEPTHS, ORBoost, TreeSearch
from ordrec.ordinal.boosting.perceptron import (
    PerceptronRCD,
    SigmoidRCD,
    _line_search,
    ascending,
    sorting_workspace,
)
from ordrec.ordinal.boosting.stump import StumpSearch
from ordrec.ordinal.thresholds.absent import PresentRanks

FINITE = st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, 1.0 + 1e-15, -1.0, 1e-300, np.inf])


@njit
def call_ascending(bits, keys, spare, places, order):
    ascending(bits, keys, spare, places, order)


@njit
def call_line_search(s, u, g, value, sorting):
    return _line_search(s, u, g, value, sorting)


def order_of(values):
    workspace = sorting_workspace(values.size)
    workspace.values[:] = values
    call_ascending(*workspace[1:6])
    return workspace.order


def line_search(s, u, g, value):
    return call_line_search(s, u, g, value, sorting_workspace(s.size))


def descent(X, start, directions, g):
    learner = PerceptronRCD().prepare(X, np.ones(len(X)), np.random.default_rng(0))
    return learner._descended(X @ start, directions @ X.T, g, with_bias=True)


@given(arrays(np.float64, st.integers(1, 60), elements=FINITE))
def test_ascending_is_the_order(values):
    order = order_of(values)
    assert sorted(order.tolist()) == list(range(values.size))
    assert (values[order] == np.sort(values)).all()


def test_ascending_separates_numbers_that_agree_in_the_leading_bits():
    rng = np.random.default_rng(0)
    values = 1.0 + 1e-14 * rng.normal(size=3000)
    assert (values[order_of(values)] == np.sort(values)).all()


@given(st.integers(0, 10**6), st.booleans())
def test_line_search_finds_the_best_point_of_the_line(seed, ties):
    rng = np.random.default_rng(seed)
    s, u, g = rng.normal(size=(3, 12))
    if ties:
        s, u = np.round(s), np.round(u)
        u[0] = 1.0
    a, value = line_search(s, u, g, np.inf)
    assert value == pytest.approx(naive_boosting.best_on_line(s, u, g), abs=1e-9)
    if a != 0.0:
        assert g @ np.where(s + a * u >= 0, 1.0, -1.0) == pytest.approx(value, abs=1e-9)


@given(st.integers(0, 10**6), st.sampled_from(["normal", "ties", "far", "some"]))
@settings(max_examples=40)
def test_buckets_find_the_best_point_of_a_line_with_many_samples(seed, kind):
    rng = np.random.default_rng(seed)
    s, u, g = rng.normal(size=(3, 700))
    if kind == "ties":
        s, u = np.round(3.0 * s), np.round(u)
    elif kind == "far":  # all breakpoints are in a few buckets
        s += 1e4
    elif kind == "some":
        u[::3], s[::5] = 0.0, 0.0
    a, value = line_search(s, u, g, np.inf)
    assert value == pytest.approx(naive_boosting.best_on_line(s, u, g), abs=1e-8)
    assert g @ np.where(s + a * u >= 0, 1.0, -1.0) == pytest.approx(value, abs=1e-8)
    everything_sorted = sorting_workspace(700)._replace(buckets=sorting_workspace(1).buckets)
    assert call_line_search(s, u, g, np.inf, everything_sorted) == pytest.approx((a, value))
    assert line_search(s, u, g, value - 1e-3) == (0.0, value - 1e-3)


def test_line_search_stays_where_nothing_is_gained():
    s, u, g = np.array([-1.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, -1.0])
    a, value = line_search(s, u, g, -2.0)
    assert (a, value) == (0.0, -2.0)
    a, value = line_search(s, np.zeros(2), g, -1.0)
    assert (a, value) == (0.0, -1.0)


def test_steps_of_the_descent_add_up_to_its_plane():
    rng = np.random.default_rng(1)
    X, g = rng.normal(size=(40, 3)), rng.normal(size=40)
    start, directions = rng.normal(size=3), rng.normal(size=(30, 3))
    steps, bias = descent(X, start, directions, g)
    w = start + steps @ directions
    reached = g @ np.where(X @ w + bias >= 0, 1.0, -1.0)
    only_bias, _ = descent(X, start, directions[:0], g)
    assert only_bias.size == 0
    assert reached < -0.3 * np.abs(g).sum()


def test_descent_separates_what_a_plane_separates():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    g = np.where(X @ [1.0, 2.0] > 0.3, -1.0, 1.0)
    member = PerceptronRCD(n_iter=400).prepare(X, np.ones(len(X)), rng).train(g)
    assert g @ member(X) < -0.97 * 200


def test_the_authors_search_by_loops():
    rng = np.random.default_rng(5)
    X, g = rng.normal(size=(40, 3)), rng.normal(size=40)
    learner = PerceptronRCD(30, published=True).prepare(X, np.ones(40), np.random.default_rng(7))
    member = learner.train(g)
    directions = np.random.default_rng(7).uniform(-1, 1, size=(30, 3))
    w, b = np.zeros(3), 0.0
    for turn, d in enumerate(directions):
        is_bias = turn % 4 == 0
        u = np.ones(40) if is_bias else X @ d
        value = g @ np.where(X @ w + b >= 0, 1.0, -1.0)
        a, _ = line_search(X @ w + b, u, g, value)
        if is_bias:
            b += a
        else:
            w = w + a * d
    np.testing.assert_allclose(member.weights, w)
    assert member.bias == pytest.approx(b)
    assert "published=True" in repr(SigmoidRCD(published=True))


@given(st.integers(0, 10**6))
def test_stump_search_against_every_stump(seed):
    rng = np.random.default_rng(seed)
    X, g = np.round(rng.normal(size=(15, 3)), 1), rng.normal(size=15)
    member = StumpSearch().prepare(X, np.ones(len(X)), rng).train(g)
    assert g @ member(X) == pytest.approx(naive_boosting.best_stump(X, g), abs=1e-9)


def test_stump_on_constant_features_is_constant():
    X, g = np.ones((4, 2)), np.array([1.0, -3.0, 0.5, 0.2])
    member = StumpSearch().prepare(X, np.ones(len(X)), np.random.default_rng(0)).train(g)
    assert member(X).tolist() == [1.0] * 4


def test_stump_parts_neighbouring_floats():
    """Half way between the second and the third float from 1 rounds to the third."""
    one = np.nextafter(1.0, 2.0)
    x = np.array([[one], [np.nextafter(one, 2.0)]])
    assert 0.5 * (x[0, 0] + x[1, 0]) == x[1, 0]
    member = (
        StumpSearch().prepare(x, np.ones(2), np.random.default_rng(0)).train(np.array([1.0, -1.0]))
    )
    assert member(x).tolist() == [-1.0, 1.0]


def test_sigmoid_is_the_perceptron_on_the_sphere_of_radius_gamma():
    rng = np.random.default_rng(3)
    X, g = rng.normal(size=(30, 4)), rng.normal(size=30)
    hard = PerceptronRCD(50).prepare(X, np.ones(len(X)), np.random.default_rng(0)).train(g)
    soft = SigmoidRCD(4.0, 50).prepare(X, np.ones(len(X)), np.random.default_rng(0)).train(g)
    assert soft.weights @ soft.weights + soft.bias**2 == pytest.approx(16.0)
    assert (np.sign(soft(X)) == hard(X)).all()
    assert (np.abs(soft(X)) <= 1).all()


def test_scale_of_a_feature_does_not_matter_to_perceptrons():
    rng = np.random.default_rng(4)
    X, g = rng.normal(size=(60, 3)), rng.normal(size=60)
    scale = np.array([1.0, 1e4, 1e-4])
    plain = PerceptronRCD(50).prepare(X, np.ones(len(X)), np.random.default_rng(0)).train(g)
    scaled = (
        PerceptronRCD(50).prepare(X * scale, np.ones(len(X)), np.random.default_rng(0)).train(g)
    )
    assert (plain(X) == scaled(X * scale)).all()


@pytest.mark.parametrize("max_depth", [1, 3])
def test_a_tree_holds_the_weighted_mean_of_its_leaves(max_depth):
    rng = np.random.default_rng(0)
    X, g = rng.normal(size=(80, 3)), rng.normal(size=80)
    tree = TreeSearch(max_depth).prepare(X, np.ones(80), rng).train(g)
    h = tree(X)
    assert np.abs(h).max() <= 1.0
    assert np.unique(h).size <= 2**max_depth
    for value in np.unique(h):
        leaf = h == value
        assert value == pytest.approx(-g[leaf].sum() / np.abs(g[leaf]).sum())
    assert (g @ h) < 0


def test_the_depth_is_chosen_on_held_out_samples():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = np.digitize(np.sign(X[:, 0] * X[:, 1]) + 0.3 * rng.normal(size=400), [-0.5, 0.5])
    model = ORBoost(base="tree", n_estimators=60, random_state=0).fit(X, y)
    assert model.max_depth_ in DEPTHS[1:]  # no sum of functions of one feature has such corners
    tree = TreeSearch(model.max_depth_).prepare(X, np.ones(400), rng).train(np.sin(np.arange(400)))
    assert 2 < np.unique(tree(X)).size <= 2**model.max_depth_
    leaves = [np.unique(member(X)).size for member in model.ensemble_.members]
    assert 2 ** (model.max_depth_ - 1) < max(leaves) <= 2**model.max_depth_
    flat = ORBoost(base="tree", max_depth=1, n_estimators=60, random_state=0).fit(X, y)
    assert np.abs(model.predict(X) - y).mean() < 0.5 * np.abs(flat.predict(X) - y).mean()
    with pytest.raises(ValueError, match="max_depth must be"):
        ORBoost(base="tree", max_depth=0).fit(X, y)


def test_early_stopping_counts_the_weights() -> None:
    """First all samples are below the threshold, then all are above it."""
    ranks, part = np.array([1, 1, 0, 0, 0]), PresentRanks(np.array([0, 1]), 2, inner=False)

    def best(weight: list[float]) -> tuple[int, float]:
        stopping = EarlyStopping(np.zeros((5, 1)), ranks, np.array(weight), part, "all", patience=3)
        for theta in (2.0, -2.0):
            stopping(lambda rows: np.zeros(len(rows)), 1.0, np.array([theta]))
        return stopping.best_round, float(stopping.best_error)

    assert best([1, 1, 1, 1, 1]) == (1, 2.0)
    assert best([9, 9, 1, 1, 1]) == (2, 3.0)
