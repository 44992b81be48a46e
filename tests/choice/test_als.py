"""ALS as a first stage: newcomers, and files; the rest is with the baselines."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ordrec.choice.factor_model import solve_rows
from ordrec.data import Ratings, Scale
from ordrec.recommend import ALSRanking, ImplicitALS

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
def model(circles) -> ALSRanking:
    return ALSRanking(factors=3, iterations=60).fit(circles)


def test_folded_in_factors_solve_the_weighted_least_squares_problem(circles, model):
    mine = circles.select(circles.users == 4)
    folded = model.fold_in(mine)
    Q, confidence = model.item_factors_, np.ones(30)
    confidence[mine.items] = model.alpha * mine.ranks / 5
    wanted = np.zeros(30)
    wanted[mine.items] = 1
    left = (Q.T * confidence) @ Q + model.regularization * np.eye(3)
    expected = np.linalg.solve(left, Q.T @ (confidence * wanted))
    np.testing.assert_allclose(folded.user_factors_[4], expected, rtol=1e-8)
    np.testing.assert_allclose(folded.user_factors_[4], model.user_factors_[4], atol=0.05)


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


def test_fitting_says_nothing_about_threads(circles):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ALSRanking(factors=2, iterations=1).fit(circles)


def test_rows_solve_their_dense_systems():
    rng = np.random.default_rng(0)
    entries = sparse.csr_array(sparse.random_array((9, 14), density=0.4, rng=rng))
    extra, pull = rng.uniform(0, 2, entries.nnz), rng.uniform(0, 2, entries.nnz)
    Q, ridge = rng.normal(size=(14, 3)), rng.uniform(0.1, 1.0, 9)
    found = solve_rows(entries, extra, pull, Q, 0.3, ridge)
    for row in range(9):
        own = slice(*entries.indptr[[row, row + 1]])
        q = Q[entries.indices[own]]
        A = 0.3 * Q.T @ Q + (q.T * extra[own]) @ q + ridge[row] * np.eye(3)
        np.testing.assert_allclose(found[row], np.linalg.solve(A, q.T @ pull[own]), rtol=1e-10)
    for n_jobs in (2, 5):
        assert np.array_equal(found, solve_rows(entries, extra, pull, Q, 0.3, ridge, n_jobs))


def test_sweeps_do_not_raise_the_loss_of_the_documentation(circles):
    V = circles.matrix("rank").T.toarray() / 5
    seen, n_u, n_i = V > 0, (V > 0).sum(axis=1), (V > 0).sum(axis=0)
    losses = []
    for iterations in (1, 2, 5, 20):
        model = ImplicitALS(3, 0.02, 0.3, iterations).fit(circles)
        P, Q = model.user_factors_.astype(float), model.item_factors_.astype(float)
        S = P @ Q.T
        ridge = 0.02 * ((n_u + 0.3 * 30) @ (P**2).sum(1) + (n_i + 0.3 * 30) @ (Q**2).sum(1))
        losses.append((V * (1 - S) ** 2)[seen].sum() + 0.3 * (S**2).sum() + ridge)
    assert (np.diff(losses) < 1e-4).all()
