"""Alternating least squares, our own and that of the package implicit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ordrec.choice import als
from ordrec.choice.als import Rotated, _solve_rows, _solved_rows
from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError
from ordrec.recommend import ImplicitALS, make_model

STARS = Scale.regular(1, 5)


@pytest.fixture(scope="module")
def circles() -> Ratings:
    """Users 0..14 rate items 0..14 and users 15..29 rate items 15..29, with gaps."""
    users, items = np.divmod(np.arange(900), 30)
    keep = (users // 15 == items // 15) & (np.random.default_rng(1).random(900) < 0.6)
    stars = np.random.default_rng(2).integers(1, 6, 900)
    frame = pd.DataFrame({"user": users, "item": items, "rating": stars})[keep]
    return Ratings.from_frame(frame, scale=STARS)


@pytest.fixture(scope="module")
def model(circles) -> ImplicitALS:
    return ImplicitALS(n_factors=3, n_iter=60).fit(circles)


def test_folded_in_factors_solve_the_weighted_least_squares_problem(circles, model):
    mine = circles.select(circles.users == 4)
    folded = model.fold_in(mine)
    Q, weight = model.item_factors_.astype(np.float64), np.zeros(30)
    weight[mine.items] = mine.ranks / 5
    n_items = int((circles.item_counts > 0).sum())
    ridge = model.regularization * (mine.n_ratings + model.unseen_weight * n_items)
    left = (Q.T * (weight + model.unseen_weight)) @ Q + ridge * np.eye(3)
    expected = np.linalg.solve(left, Q.T @ weight)
    np.testing.assert_allclose(folded.user_factors_[4], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(folded.user_factors_[4], model.user_factors_[4], atol=1e-6)


def test_a_newcomer_gets_candidates_of_his_circle_that_he_has_not_rated(circles, model):
    frame = pd.DataFrame({"user": ["new"] * 3, "item": [20, 21, 10**6], "rating": [5, 4, 3]})
    with pytest.warns(UserWarning, match="1 of 3 ratings"):
        folded = model.fold_in(Ratings.from_frame(frame, scale=STARS))
    best = folded.recommend("new", n=8)["item"].tolist()
    assert all(item >= 15 for item in best)
    assert not {20, 21} & set(best)
    before = model.recommend(3, n=5)
    pd.testing.assert_frame_equal(folded.recommend(3, n=5), before)
    assert len(model.user_ids_) == 30


def test_a_user_folded_in_again_is_known_by_the_new_ratings_alone(circles, model):
    frame = pd.DataFrame({"user": [4] * 2, "item": [20, 21], "rating": [5, 4]})
    folded = model.fold_in(Ratings.from_frame(frame, scale=STARS))
    rated_before = set(circles.of_user(4)["item"])
    ranked = folded.recommend(4, n=100)["item"].tolist()
    assert rated_before < set(ranked)
    assert not {20, 21} & set(ranked)


@pytest.mark.parametrize("name", ["als", "implicit-als"])
def test_fitting_says_nothing_about_threads(circles, name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_model(name, n_factors=2, n_iter=1).fit(circles)


def test_rows_solve_their_dense_systems():
    rng = np.random.default_rng(0)
    entries = sparse.csr_array(sparse.random_array((9, 14), density=0.4, rng=rng))
    weight = entries.data
    Q, ridge = rng.normal(size=(14, 3)), rng.uniform(0.1, 1.0, 9)
    found = _solve_rows(entries, Q, 0.3, ridge)
    for row in range(9):
        own = slice(*entries.indptr[[row, row + 1]])
        q = Q[entries.indices[own]]
        A = 0.3 * Q.T @ Q + (q.T * weight[own]) @ q + ridge[row] * np.eye(3)
        np.testing.assert_allclose(found[row], np.linalg.solve(A, q.T @ weight[own]), rtol=1e-10)
    for n_jobs in (2, 5):
        assert np.array_equal(found, _solve_rows(entries, Q, 0.3, ridge, n_jobs))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_few_entries_solve_their_dense_systems(monkeypatch, dtype):
    """Of 40 rows with up to 6 entries, those with up to 3 are solved by their entries."""
    monkeypatch.setattr(als, "LEAST_THIN", 1)
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 7, 40)
    columns = np.concatenate([np.sort(rng.choice(20, size, replace=False)) for size in sizes])
    weight = rng.uniform(0.0, 2.0, sizes.sum())
    weight[0] = 0.0
    start = np.concatenate([[0], np.cumsum(sizes)])
    entries = sparse.csr_array((weight, columns, start), shape=(40, 20))
    Q, ridge = rng.normal(size=(20, 12)).astype(dtype), rng.uniform(0.1, 1.0, 40)
    found = _solve_rows(entries, Q, 0.3, ridge)
    expected, wide = np.zeros((40, 12)), Q.astype(np.float64)
    for row in range(40):
        own = slice(start[row], start[row + 1])
        q = wide[columns[own]]
        A = 0.3 * wide.T @ wide + (q.T * weight[own]) @ q + ridge[row] * np.eye(12)
        expected[row] = np.linalg.solve(A, q.T @ weight[own])
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, atol=2e-5 if dtype == np.float32 else 1e-12)
    for n_jobs in (2, 5):
        assert np.array_equal(found, _solve_rows(entries, Q, 0.3, ridge, n_jobs))


def test_sweeps_do_not_raise_the_loss_of_the_documentation(circles):
    V = circles.matrix("rank").T.toarray() / 5
    seen, n_u, n_i = V > 0, (V > 0).sum(axis=1), (V > 0).sum(axis=0)
    losses = []
    for n_iter in (1, 2, 5, 20):
        model = ImplicitALS(3, 0.02, 0.3, n_iter).fit(circles)
        P, Q = model.user_factors_.astype(float), model.item_factors_.astype(float)
        S = P @ Q.T
        ridge = 0.02 * ((n_u + 0.3 * 30) @ (P**2).sum(1) + (n_i + 0.3 * 30) @ (Q**2).sum(1))
        losses.append((V * (1 - S) ** 2)[seen].sum() + 0.3 * (S**2).sum() + ridge)
    assert (np.diff(losses) < 1e-4).all()


# ---- both kinds --------------------------------------------------------------------------


both = pytest.mark.parametrize("name", ["als", "implicit-als"])


@pytest.fixture(scope="module")
def two_circles() -> Ratings:
    """Users 0..9 rate items 0..9 and users 10..19 rate items 10..19, with gaps."""
    users, items = np.divmod(np.arange(400), 20)
    keep = (users // 10 == items // 10) & (np.random.default_rng(1).random(400) < 0.7)
    frame = pd.DataFrame({"user": users, "item": items, "rating": 5})[keep]
    return Ratings.from_frame(frame, scale=STARS)


@both
def test_als_recommends_from_the_users_own_circle_what_is_not_rated_yet(two_circles, name: str):
    model = make_model(name, n_factors=2).fit(two_circles)
    rated = set(two_circles.of_user(3)["item"])
    missing = set(range(10)) - rated
    best = model.recommend(3, n=len(missing))
    assert set(best["item"]) == missing
    assert best["score"].is_monotonic_decreasing
    assert len(model.recommend(3, n=1000)) == two_circles.n_items - len(rated)
    with pytest.raises(ArgumentError, match="n must be a whole number of at least 1"):
        model.recommend(3, n=0)


@both
def test_als_scores_are_those_of_its_recommendations_and_reproducible(two_circles, name: str):
    model = make_model(name, n_factors=2, random_state=3).fit(two_circles)
    best = model.recommend(12, n=5)
    scores = model.scores([12] * 5, best["item"])
    np.testing.assert_allclose(scores, best["score"])
    again = make_model(name, n_factors=2, random_state=3).fit(two_circles)
    np.testing.assert_allclose(again.scores([12] * 5, best["item"]), scores)


@both
def test_als_ranks_for_strangers_and_puts_unknown_items_last(two_circles, name: str):
    model = make_model(name, n_factors=2).fit(two_circles)
    scores = model.scores([3, 3, 999, 999], [0, 777, 0, 777])
    assert np.isfinite(scores).all()
    assert scores[1] < scores[0]
    assert scores[3] < scores[2] or (name == "implicit-als" and scores[3] == scores[2])
    assert len(model.recommend("nobody", n=5)) == 5


def test_the_adapter_scores_as_implicit_does(two_circles):
    model = make_model("implicit-als", n_factors=2).fit(two_circles)
    theirs = model.model_.user_factors @ model.model_.item_factors.T
    np.testing.assert_allclose(model.scores_block(two_circles.user_ids), theirs, rtol=1e-5)
    assert model.model_.alpha == 10.0
    items, levels = model.history_of(3)
    assert sorted(items) == sorted(two_circles.of_user(3)["item"])
    assert set(levels) == {4}
    assert model.history_of("nobody")[0].size == 0


@pytest.mark.parametrize("thin", [False, True])
def test_rows_solved_in_pieces_are_those_solved_at_once(thin: bool) -> None:
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(20, 8))
    entries = sparse.random_array((30, 20), density=0.2, rng=rng, format="csr")
    base, ridge = Q.T @ Q, 0.1 + rng.random(30)
    rotated = Rotated.of(base, Q, entries.indices) if thin else None
    shared = entries, Q, base, ridge, rotated
    whole = _solved_rows((0, 30), *shared)
    pieces = [_solved_rows(span, *shared) for span in ((0, 7), (7, 8), (8, 8), (8, 30))]
    assert np.concatenate(pieces) == pytest.approx(whole, abs=1e-12)
    W = entries.toarray()
    for row in range(30):
        A = base + (Q.T * W[row]) @ Q + ridge[row] * np.eye(8)
        assert whole[row] == pytest.approx(np.linalg.solve(A, Q.T @ W[row]), abs=1e-8)
