"""The two-sided process against a dense oracle with every leave-out rebuilt from scratch."""

from __future__ import annotations

import gc
import itertools
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from naive.naive_joint import naive_covariance, naive_left_out

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.kernels.items.moments import group_entries, pair_moments
from ordrec.rating.process.kernel.pair_sums import OwnerSide, build_side
from ordrec.rating.process.kernel.weights import DEFAULTS, TIME_SCALES, Layout, Weights
from ordrec.rating.process.preparation import Preparation, SideFeatures, prepare
from ordrec.rating.process.solve.conjugate_gradients import inverse_diagonal, solve
from ordrec.rating.process.solve.covariance import Covariance, JointData
from ordrec.rating.process.solve.fitting import (
    cross_fitted_likelihood,
    fit_process,
    refit_process,
)
from ordrec.rating.process.solve.hold_out import hold_out_objective, learn_weights
from ordrec.rating.process.solve.owner_blocks import assemble
from ordrec.rating.process.solve.posterior_mean import adjoint, new_pairs, parts_of_mean
from ordrec.rating.units import Units

SMALL = Preparation(n_factors=2, n_folds=2, n_rounds=3, ridge=1.0, item_rank=3, user_rank=3)


def small_ratings(seed: int = 0, n_users: int = 9, n_items: int = 8, n: int = 40) -> Ratings:
    """Ratings with a little structure, times (some unknown) and side tables."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(n_users * n_items)[:n]
    users, items = pairs // n_items, pairs % n_items
    taste = rng.normal(size=(n_users, 2)) @ rng.normal(size=(2, n_items))
    rating = np.clip(np.round(3 + taste[users, items] + 0.5 * rng.normal(size=n)), 1, 5)
    times = 1_000_000 + rng.integers(0, 20_000, n)
    times[::7] = 0
    genres = np.array(["Comedy", "War|Drama", "Drama", ""])
    return Ratings.from_frame(
        pd.DataFrame({"user": users, "item": items, "rating": rating, "timestamp": times}),
        scale=Scale.regular(1, 5),
        item_table=pd.DataFrame(
            {"genres": genres[np.arange(n_items) % 4], "year": 1980.0 + 3 * np.arange(n_items)}
        ),
        user_table=pd.DataFrame(
            {"age": 20 + 4 * np.arange(n_users), "gender": ["F", "M", "M"] * (n_users // 3)}
        ),
    )


def everything(ratings: Ratings, seed: int = 1) -> tuple[JointData, Weights, Units]:
    """Ingredients, and all components with random weights."""
    units = Units.of(ratings.values, 1.0)
    data = prepare(ratings, SideFeatures.of(ratings), units, SMALL, 0)
    layout = Layout.choose(data, TIME_SCALES, None, {})
    names = frozenset(name for name in layout.names if not name.startswith("smooth."))
    layout = replace(layout, chosen=names)
    values = np.random.default_rng(seed).uniform(0.1, 0.6, len(layout.names))
    return data, Weights(layout, values), units


def features_of(ratings: Ratings) -> tuple[list[np.ndarray], list[np.ndarray]]:
    side = SideFeatures.of(ratings)
    return list(side.item.values()), list(side.user.values())


@pytest.fixture(scope="module")
def dense() -> tuple[Covariance, np.ndarray]:
    ratings = small_ratings()
    data, weights, _ = everything(ratings)
    K = Covariance(data, weights)
    return K, naive_covariance(data, K.item_weights, K.user_weights, K.omega, *features_of(ratings))


def test_covariance_equals_rebuilding_without_each_owner(dense) -> None:
    K, oracle = dense
    assert np.allclose(K @ np.eye(len(oracle), dtype=np.float32), oracle, atol=5e-4)
    vector = np.random.default_rng(0).normal(size=len(oracle)).astype(np.float32)
    assert np.allclose(K @ vector, oracle @ vector, atol=2e-3)
    assert np.allclose(K.diagonal, np.diag(oracle), atol=5e-4)


def test_covariance_is_positive_semidefinite(dense) -> None:
    K, oracle = dense
    found = K @ np.eye(len(oracle), dtype=np.float32)
    np.testing.assert_allclose(found, found.T, atol=2e-5)
    assert np.linalg.eigvalsh((found + found.T) / 2).min() > -1e-4


def test_solution_and_left_out_scores_equal_brute_force(dense) -> None:
    K, oracle = dense
    y, n = K.data.y, K.data.y.size
    noise = np.ones(n)
    solved = solve(K, y, noise, tol=1e-6, max_iter=200)
    exact = np.linalg.solve(oracle + np.eye(n), y)
    assert solved.converged
    assert np.allclose(solved.x, exact, atol=2e-4)
    d = np.diag(np.linalg.inv(oracle + np.eye(n)))
    assert np.allclose(y - solved.x / d, naive_left_out(oracle, y), atol=2e-3)


def test_batch_of_right_hand_sides_equals_one_by_one(dense) -> None:
    K, _ = dense
    noise = np.linspace(0.5, 2.0, K.data.y.size)
    rights = np.random.default_rng(1).normal(size=(K.data.y.size, 3))
    batch = solve(K, rights, noise, tol=1e-6, max_iter=200).x
    for k in range(3):
        one = solve(K, rights[:, k], noise, tol=1e-6, max_iter=200).x
        assert np.allclose(batch[:, k], one, atol=2e-4)


def test_probes_tend_to_the_inverse_diagonal(dense) -> None:
    K, oracle = dense
    noise = np.ones(K.data.y.size)
    d = inverse_diagonal(K, noise, np.random.default_rng(0), n_probes=2000, n_steps=100)
    exact = np.diag(np.linalg.inv(oracle + np.eye(noise.size)))
    assert np.abs(d / exact - 1).max() < 0.15
    few = inverse_diagonal(K, noise, np.random.default_rng(0), n_probes=2, n_steps=100)
    assert (few >= 1.0 / (K.diagonal + 1.0) - 1e-9).all()
    assert (few <= 1.0).all()


def test_one_sided_process_is_solved_exactly() -> None:
    ratings = small_ratings()
    units = Units.of(ratings.values, 1.0)
    data = prepare(ratings, SideFeatures.of(ratings), units, replace(SMALL, two_sided=False), 0)
    layout = Layout.choose(
        data, TIME_SCALES, ["item.residual", "item.constant", "item.time.2h"], {}
    )
    process = fit_process(
        data, Weights(layout, np.full(len(layout.names), 0.4) * layout.free), 0, 1
    )
    K = Covariance(data, process.K.weights)
    oracle = K @ np.eye(data.y.size, dtype=np.float32)
    prior = data.y - data.target
    assert np.allclose(process.left_out, naive_left_out(oracle, data.target) + prior, atol=1e-4)


def test_mean_at_training_pairs_is_the_smoothed_rating(dense) -> None:
    K, oracle = dense
    data = K.data
    a = np.random.default_rng(2).normal(size=data.y.size)
    pairs = new_pairs(data, data.users, data.items, data.item_side.time)
    mean = parts_of_mean(K, pairs, a).mean
    dated = data.item_side.time > 0  # an undated rating's own time is not known to be the same
    assert np.allclose(mean[dated], (oracle @ a)[dated], rtol=1e-4, atol=1e-4)
    e = np.zeros(data.y.size)
    e[np.flatnonzero(dated)[0]] = 1.0
    assert np.allclose(adjoint(K, pairs, e), oracle @ e, atol=1e-4)


def test_hold_out_gradient_equals_finite_differences() -> None:
    ratings = small_ratings(3, 12, 10, 90)
    held = np.arange(90) % 5 == 0
    data, start, units = everything(ratings.select(~held))
    outer = ratings.select(held)
    pairs = new_pairs(data, outer.users, outer.items, outer.timestamps)
    objective = hold_out_objective(data, pairs, units.inward(outer.values), start, tol=1e-7)
    logs = start.logs + 0.1 * np.random.default_rng(0).normal(size=start.logs.size)
    _, slope, _ = objective(logs)
    for k in range(logs.size):
        step = np.zeros(logs.size)
        step[k] = 0.02
        difference = (objective(logs + step)[0] - objective(logs - step)[0]) / 0.04
        assert slope[k] == pytest.approx(difference, abs=3e-4), start.layout.names[k]


def test_weights_are_held_to_their_start_as_the_prior_says() -> None:
    """Equation (1) of `learn_weights`: half the squared error, and a normal law of deviation 2."""
    ratings = small_ratings(3, 12, 10, 90)
    held = np.arange(90) % 5 == 0
    data, start, units = everything(ratings.select(~held))
    outer = ratings.select(held)
    pairs = new_pairs(data, outer.users, outer.items, outer.timestamps)
    objective = hold_out_objective(data, pairs, units.inward(outer.values), start, tol=1e-7)
    logs = start.logs + 0.3 * np.random.default_rng(0).normal(size=start.logs.size)
    value, _, rmse = objective(logs)
    expected = 0.5 * rmse**2 + 0.5 * np.sum((logs - start.logs) ** 2) / 2.0**2 / outer.n_ratings
    assert value == pytest.approx(expected, rel=1e-9)
    value, _, rmse = objective(start.logs)
    assert value == pytest.approx(0.5 * rmse**2, rel=1e-9)


def test_rounding_does_not_decide_what_is_learnt() -> None:
    """A first step too short for the solver's tolerance made weights differ by a quarter."""
    ratings = synthetic_ratings(150, 120, n_ratings=6000, seed=0)
    held = np.arange(6000) % 6 == 0
    inner, outer = ratings.select(~held), ratings.select(held)
    units = Units.of(ratings.values, 1.0)
    data = prepare(inner, SideFeatures(), units, SMALL, 0)
    start = Layout.choose(data, (), None, DEFAULTS).start(DEFAULTS)
    pairs = new_pairs(data, outer.users, outer.items, None)
    rounding = 1.0 + 1e-6 * np.random.default_rng(0).normal(size=data.y.size)
    found = [
        learn_weights(each, pairs, units.inward(outer.values), start, max_iter=4).weights.logs
        for each in (data, replace(data, y=data.y * rounding))
    ]
    assert np.abs(found[0] - start.logs).max() > 1.0
    assert np.abs(found[0] - found[1]).max() < 0.05


def test_a_test_rating_never_changes_a_training_feature() -> None:
    ratings = small_ratings(5)
    held = np.arange(40) % 4 == 0
    frame = ratings.to_frame()
    changed = frame.copy()
    changed.loc[held, "rating"] = 6 - changed.loc[held, "rating"]
    K = []
    for table in (frame, changed):
        part = Ratings.from_frame(table, scale=ratings.scale).select(~held)
        data = prepare(part, SideFeatures.of(part), Units.of(part.values, 1.0), SMALL, 0)
        layout = Layout.choose(data, (), None, {"item.residual": 1.0, "user.residual": 1.0})
        K.append(Covariance(data, layout.start({"smooth.item.residual": 5.0})).item_blocks)
    assert np.array_equal(K[0].numbers, K[1].numbers)
    assert np.array_equal(K[0].scale, K[1].scale)


def test_own_rating_is_not_in_the_item_side_of_its_own_user() -> None:
    """With biases held, a user's block does not move when one of his ratings does."""
    ratings = small_ratings(6)
    data, weights, _ = everything(ratings)
    side = data.item_side
    own = slice(side.start[2], side.start[3])

    def blocks(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rebuilt = build_side(
            side.start, side.entry, x, side.time, side.n_entries, [], side.fold, side.loadings
        )
        layout = replace(weights.layout, item_side=())
        w = weights.side("item", data.popularity[0])
        w = w._replace(weights=np.full(len(layout.names), 0.3)[: 8 + len(w.scales)])
        found = assemble(rebuilt, w)
        theirs = np.repeat(np.arange(side.sizes.size) == 2, np.diff(found.base))
        widths = np.concatenate([np.arange(1, n + 1) for n in side.sizes])
        return found.numbers * np.repeat(found.scale, widths), theirs

    moved = side.x.copy()
    moved[own.start] += 2.0
    (before, theirs), (after, _) = blocks(side.x), blocks(moved)
    assert np.allclose(before[theirs], after[theirs], atol=1e-4)
    change = np.abs(before - after)
    change[theirs] = 0.0
    assert change.max() > 0.01  # in the blocks of others who rated the item, it counts


def of_all_pairs(side: OwnerSide) -> OwnerSide:
    """The same side with the sums of all pairs of entries, with or without a common owner."""
    owner = np.repeat(np.arange(side.sizes.size), side.sizes)
    grouped = group_entries(
        owner, side.entry, side.x[None], side.sizes.size, side.n_entries, side.activity
    )
    edges = side.pairs.edges
    features = [side.pairs.features[:, a:b] for a, b in itertools.pairwise(edges)]
    return side._replace(pairs=pair_moments(grouped, features, dtype=np.float32))


def test_sums_of_pairs_with_a_common_owner_predict_like_those_of_all_pairs() -> None:
    ratings = small_ratings(8, 60, 48, 300)
    data, weights, _ = everything(ratings)
    every = replace(
        data, item_side=of_all_pairs(data.item_side), user_side=of_all_pairs(data.user_side)
    )
    for side, whole in ((data.item_side, every.item_side), (data.user_side, every.user_side)):
        assert len(side.pairs.table) < 0.7 * len(whole.pairs.table)
    users, items = (codes.ravel() for codes in np.mgrid[:60, :48])
    found = []
    for each in (data, every):
        process = fit_process(each, weights, 0, 1, final=False)
        process = refit_process(process, cross_fitted_likelihood(process, 5, 0), 1)
        times = np.where(users % 2 == 0, 1_010_000.0, 0.0)
        found.append((process.a, process.left_out, process.scores(users, items, times)))
    for some, all_of_them in zip(found[0][:2], found[1][:2], strict=True):
        assert np.array_equal(some, all_of_them)
    # products of side columns of a pair without a common owner are summed in another order
    assert np.abs(found[0][2] - found[1][2]).max() < 1e-5


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_numbers_do_not_depend_on_the_number_of_threads(n_jobs: int) -> None:
    ratings = small_ratings(7, 12, 10, 80)
    data, weights, units = everything(ratings)
    again = prepare(ratings, SideFeatures.of(ratings), units, SMALL, 0, n_jobs)
    one = fit_process(data, weights, 0, 1)
    more = fit_process(again, weights, 0, n_jobs)
    assert np.array_equal(one.a, more.a)
    assert np.array_equal(one.left_out, more.left_out)


@pytest.mark.parametrize("dated", [False, True])
def test_a_process_that_is_not_needed_leaves_memory_at_once(dated: bool) -> None:
    """The pool's process must be gone before that of all ratings takes memory."""
    data, weights, _ = everything(small_ratings())
    if not dated:
        weights = Layout.choose(data, (), None, DEFAULTS).start(DEFAULTS)
    process = fit_process(data, weights, 0, 1)
    process.scores(data.users[:3], data.items[:3], np.array([0.0, 1e6, 1e6]))
    alive = weakref.ref(process)
    gc.disable()
    try:
        del process
        assert alive() is None
    finally:
        gc.enable()
