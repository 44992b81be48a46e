"""EASE against the regressions it stands for."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from ordrec.choice.ease import COPIES
from ordrec.choice.ease_solver import EaseProblem
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.recommend import EASE

RNG_SEED = 0


def random_problem(n_users: int, n_items: int):
    rng = np.random.default_rng(RNG_SEED)
    V = sparse.csr_array(sparse.random_array((n_users, n_items), density=0.4, rng=rng))
    return V, rng.uniform(0.5, 2.0, n_users), rng.uniform(0.5, 3.0, n_items)


def brute_force(V: np.ndarray, d: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Each item regressed on all others, one after the other."""
    Z, n_items = d[:, None] * V, V.shape[1]
    B = np.zeros((n_items, n_items))
    for j in range(n_items):
        o = np.flatnonzero(np.arange(n_items) != j)
        B[o, j] = np.linalg.solve(Z[:, o].T @ Z[:, o] + np.diag(ridges[o]), Z[:, o].T @ V[:, j])
    return B


@pytest.mark.parametrize("n_users", [8, 30])  # fewer users than items, and more
def test_weights_are_those_of_the_constrained_regressions(n_users: int) -> None:
    V, d, ridges = random_problem(n_users, 12)
    problem = EaseProblem(V, d)
    assert problem.by_users == (n_users < 12)
    weights = problem.solve(ridges).weights()
    np.testing.assert_allclose(weights, brute_force(V.toarray(), d, ridges), atol=1e-12)


def test_single_precision_is_close() -> None:
    V, d, ridges = random_problem(40, 15)
    single = EaseProblem(V, d, np.float32).solve(ridges).weights()
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, EaseProblem(V, d).solve(ridges).weights(), atol=1e-5)


@pytest.mark.parametrize("n_users", [9, 30])
def test_left_out_scores_are_those_of_a_fit_without_the_user(n_users: int) -> None:
    V, d, ridges = random_problem(n_users, 12)
    dense = V.toarray()
    solution = EaseProblem(V, d).solve(ridges)
    plain = solution.scores(np.arange(n_users))
    np.testing.assert_allclose(plain, d[:, None] * dense @ solution.weights(), atol=1e-12)
    scores = solution.scores(np.arange(n_users), left_out=True)
    for user in range(n_users):
        others = np.flatnonzero(np.arange(n_users) != user)
        B = brute_force(dense[others], d[others], ridges)
        np.testing.assert_allclose(scores[user], d[user] * dense[user] @ B, atol=1e-10)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_do_not_change_a_digit(n_jobs: int) -> None:
    V, d, _ = random_problem(60, 20)
    one, many = EaseProblem(V, d, n_jobs=1), EaseProblem(V, d, n_jobs=n_jobs)
    assert np.array_equal(one.ZZ, many.ZZ)
    assert np.array_equal(one.ZY, many.ZY)


def test_plain_settings_are_ease_as_published() -> None:
    ratings = synthetic_ratings(50, 20, n_ratings=500, seed=1)
    model = EASE(regularization=30.0, user_power=0.0, item_power=0.0, min_ratings=1).fit(ratings)
    X = ratings.matrix("rank").T.toarray() / ratings.scale.n_ranks
    kept = np.flatnonzero(ratings.item_counts > 0)
    P = np.linalg.inv(X[:, kept].T @ X[:, kept] + 30.0 * np.eye(kept.size))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    np.testing.assert_allclose(model.weights_, B, rtol=1e-3, atol=1e-6)
    scores = model.scores_block(ratings.user_ids)
    np.testing.assert_allclose(scores[:, kept], X[:, kept] @ B, atol=2e-3)


def test_an_item_does_not_score_itself() -> None:
    ratings = synthetic_ratings(60, 20, n_ratings=500, seed=2)
    model = EASE(regularization=10.0).fit(ratings)
    assert (np.diag(model.weights_) == 0).all()


def test_rare_items_have_no_weights() -> None:
    ratings = synthetic_ratings(60, 40, n_ratings=300, seed=2)
    model = EASE(min_ratings=6).fit(ratings)
    assert (ratings.item_counts[model.weighted_items_] >= 6).all()
    rare = (ratings.item_counts > 0) & (ratings.item_counts < 6)
    assert rare.any()
    known = ratings.user_ids.take(np.unique(ratings.users[~rare[ratings.items]]))
    assert (model.scores_block(known)[:, rare] == 0).all()
    with pytest.warns(UserWarning, match="no item has 1000 ratings.*popularity takes its place"):
        EASE(min_ratings=1000).fit(ratings)


@pytest.mark.parametrize("n_users", [1000, 2000])  # by users, and by items
def test_a_fit_stays_within_its_estimate_of_memory(n_users: int, monkeypatch) -> None:
    monkeypatch.setattr("ordrec.choice.ease.LARGEST_IN_DOUBLE", 100)
    monkeypatch.setattr("ordrec.linalg.lapack.ROWS_AT_ONCE", 64)
    ratings = synthetic_ratings(n_users, 1500, n_ratings=40_000, seed=2)
    EASE(200.0).fit(ratings.select(np.arange(ratings.n_ratings) < 3_000))  # compile
    n_kept = int((ratings.item_counts >= 3).sum())
    tracemalloc.start()
    EASE(200.0).fit(ratings)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.1 * 4 * COPIES * n_kept**2


def test_the_estimate_of_memory_knows_the_precision(monkeypatch) -> None:
    monkeypatch.setattr("ordrec.choice.ease.LARGEST_IN_DOUBLE", 20)
    ratings = synthetic_ratings(80, 60, n_ratings=1500, seed=2)
    for gigabytes, n_kept in ((1e-5, 25), (5e-6, 12)):  # single precision, double precision
        model = EASE(50.0, max_memory=gigabytes).fit(ratings)
        assert model.block_items.size == n_kept


def test_the_most_rated_items_keep_their_ridges() -> None:
    ratings = synthetic_ratings(80, 60, n_ratings=1500, seed=2)
    model = EASE().fit(ratings)
    inputs = model.inputs(model.history_rows(np.arange(80)))
    part = inputs.most_rated(10)
    place = np.searchsorted(inputs.items, part.items)
    assert part.items.size == part.history.shape[1] == 10
    assert inputs.counts[place].min() >= np.delete(inputs.counts, place).max()
    np.testing.assert_array_equal(part.ridges(50.0), inputs.ridges(50.0)[place])
    assert (part.history != inputs.history[:, place]).nnz == 0
    assert inputs.most_rated(60) is inputs


def test_wrong_parameters_are_refused() -> None:
    ratings = synthetic_ratings(20, 10, n_ratings=100, seed=2)
    with pytest.raises(ArgumentError, match="regularization must be above 0"):
        EASE(regularization=0.0).fit(ratings)
    with pytest.raises(ArgumentError, match="max_memory is too small"):
        EASE(max_memory=0.0).fit(ratings)


def test_the_ridge_is_the_best_by_leave_one_out_of_what_was_tried() -> None:
    ratings = synthetic_ratings(80, 30, n_ratings=900, seed=2)
    model = EASE().fit(ratings)
    assert model.regularization is None
    assert model.regularization_ == max(model.tried_, key=model.tried_.get)
    assert {model.regularization_ / 2, model.regularization_ * 2} <= set(model.tried_)
    given = EASE(model.regularization_).fit(ratings)
    assert np.array_equal(given.weights_, model.weights_)


def test_items_that_nobody_has_change_no_sum() -> None:
    """Items in front, in the middle and at the end, as where a part of the users is left out."""
    rng = np.random.default_rng(8)
    dense = (rng.random((30, 6)) < 0.4) * rng.integers(1, 6, (30, 6)).astype(float)
    some = np.array([1, 2, 4, 5, 7, 8])
    with_empty = np.zeros((30, 10))
    with_empty[:, some] = dense
    d = rng.uniform(0.5, 1.0, 30)
    alone, among = (EaseProblem(sparse.csr_array(each), d) for each in (dense, with_empty))
    for name in ("ZZ", "ZY"):
        found = getattr(among, name)
        np.testing.assert_allclose(found[np.ix_(some, some)], getattr(alone, name), atol=1e-12)
        found[np.ix_(some, some)] = 0.0
        assert not found.any()
