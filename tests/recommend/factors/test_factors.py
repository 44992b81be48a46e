"""Ordinal factors: row updates against loops, a bound that never rises, recovery of the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from ordrec.datasets import load_movielens, synthetic_ratings
from ordrec.datasets.synthetic import latent_model
from ordrec.errors import ArgumentError
from ordrec.evaluation import evaluate
from ordrec.ordinal.losses import Loss, objective
from ordrec.persistence import load, load_arrays, save, save_arrays
from ordrec.ratings import Ratings, Scale
from ordrec.recommend.factors.model import OrdinalFactors, _Rows
from ordrec.recommend.factors.row_priors import PRIOR_ROWS, PRIOR_VARIANCE, RIDGE, RowPrior
from ordrec.recommend.factors.row_updates import probabilities, update_items, update_users
from ordrec.recommend.protocols import FoldInModel, ProbabilityModel

STARS = Scale.regular(1, 5)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic_ratings(80, 60, n_ratings=2500, noise=0.4, seed=3)


@pytest.fixture(scope="module")
def model(ratings) -> OrdinalFactors:
    return OrdinalFactors(rank=4, pattern=6).fit(ratings)


def everything(ratings):
    users = np.repeat(ratings.user_ids, ratings.n_items)
    return users, np.tile(ratings.item_ids, ratings.n_users)


# ---- rows against plain formulas -----------------------------------------------------------


def moments(design, mean, variance):
    """E and Var of design . x for independent entries of x."""
    return design @ mean, design**2 @ variance


def naive_row(terms, prior, P, mean, variance):
    """One row's update with dense designs.

    ``terms``: (design mean, design variance, offset mean, offset variance, sign) of every
    m = design . row + offset.
    """
    A, g = P.copy(), P @ prior
    for x, vx, c, vc, sign in terms:
        m = x @ mean + c
        spread = vx @ (mean**2 + variance) + x**2 @ variance + vc
        xi = np.sqrt(m**2 + spread)
        w = np.tanh(xi / 2) / (2 * xi)
        A += w * (np.outer(x, x) + np.diag(vx))
        g += sign / 2 * x - w * c * x
    return np.linalg.solve(A, g), 1 / np.diag(A)


@given(seed=st.integers(0, 10**6), rank=st.integers(1, 3), n_ranks=st.integers(2, 5))
def test_row_updates_equal_plain_formulas(seed, rank, n_ranks):
    rng = np.random.default_rng(seed)
    n, cuts = 4, n_ranks - 1
    z, vz = rng.normal(size=(n, rank + cuts)), rng.uniform(0.1, 1, (n, rank + cuts))
    e, ve = rng.normal(size=(n, rank + 1)), rng.uniform(0.1, 1, (n, rank + 1))
    rows, others = np.nonzero(rng.random((n, n)) < 0.6)
    levels = rng.integers(0, n_ranks, rows.size)
    prior, P = rng.normal(size=(n, rank + cuts)), np.cov(rng.normal(size=(rank + cuts, 20))) + 1
    P = np.linalg.inv(P + np.eye(rank + cuts))
    expected = []
    for u in range(n):
        terms = []
        for i, y in zip(others[rows == u], levels[rows == u], strict=True):
            for k in range(cuts):
                x, vx = np.zeros(rank + cuts), np.zeros(rank + cuts)
                x[:rank], vx[:rank], x[rank + k] = e[i, :rank], ve[i, :rank], -1
                terms.append((x, vx, e[i, rank], ve[i, rank], 1 if y > k else -1))
        expected.append(naive_row(terms, prior[u], P, z[u], vz[u]))
    new_z, new_vz = z.copy(), vz.copy()
    arrays = _Rows.of(rows, others, levels, n).arrays
    update_users(0, n, *arrays, e, ve, prior, P, new_z, new_vz)
    np.testing.assert_allclose(new_z, [mean for mean, _ in expected], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(new_vz, [variance for _, variance in expected], rtol=1e-12)

    prior, P = rng.normal(size=(n, rank + 1)), np.diag(rng.uniform(0.5, 2, rank + 1))
    expected, bound = [], []
    for i in range(n):
        terms, total = [], 0.0
        for u, y in zip(others[rows == i], levels[rows == i], strict=True):
            for k in range(cuts):
                x, vx = np.append(z[u, :rank], 1.0), np.append(vz[u, :rank], 0.0)
                offset, sign = (-z[u, rank + k], vz[u, rank + k]), 1 if y > k else -1
                terms.append((x, vx, *offset, sign))
                m = x @ e[i] + offset[0]
                xi = np.sqrt(m**2 + vx @ (e[i] ** 2 + ve[i]) + x**2 @ ve[i] + offset[1])
                total += np.log1p(np.exp(-xi)) + (xi - sign * m) / 2  # (3) where it touches
        expected.append(naive_row(terms, prior[i], P, e[i], ve[i]))
        bound.append(total)
    new_e, new_ve, loss = e.copy(), ve.copy(), np.empty(n)
    update_items(0, n, *arrays, z, vz, prior, P, new_e, new_ve, loss)
    np.testing.assert_allclose(new_e, [mean for mean, _ in expected], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(new_ve, [variance for _, variance in expected], rtol=1e-12)
    np.testing.assert_allclose(loss, bound, rtol=1e-12)


def test_without_variance_the_bound_equals_the_all_threshold_loss():
    rng = np.random.default_rng(0)
    z, e = rng.normal(size=(1, 2 + 3)), rng.normal(size=(6, 3))
    levels = rng.integers(0, 4, 6)
    items, users = np.arange(6), np.zeros(6, dtype=int)
    loss = np.empty(6)
    args = z, np.zeros_like(z), e.copy(), np.eye(3), e.copy(), np.zeros_like(e), loss
    update_items(0, 6, *_Rows.of(items, users, levels, 6).arrays, *args)
    f = e[:, :2] @ z[0, :2] + e[:, 2]
    exact = objective(f, z[0, 2:], levels, Loss("logistic"), "all")
    assert loss.sum() == pytest.approx(exact, rel=1e-9)  # xi = |m|: the bound is tight


def test_probabilities_without_variance_are_differences_of_sigmoids():
    z, e = np.array([[0.5, -1.0, 0.0, 2.0]]), np.array([[2.0, 0.3]])
    zero = np.zeros(1, dtype=np.int64)
    p = probabilities(zero, zero, z, np.zeros_like(z), e, np.zeros_like(e))
    above = expit(1.3 - z[0, 1:])
    np.testing.assert_allclose(p[0], [1 - above[0], *-np.diff(above), above[-1]])
    wide = probabilities(zero, zero, z, z**2, e, e**2)
    assert wide.max() < p.max()  # more uncertainty gives wider distributions
    crossed = probabilities(zero, zero, z[:, [0, 3, 2, 1]], 0 * z, e, 0 * e)
    assert (crossed >= 0).all()
    assert crossed.sum() == pytest.approx(1)


# ---- the prior -----------------------------------------------------------------------------


def test_learned_priors_minimise_the_penalty():
    rng = np.random.default_rng(1)
    features = np.column_stack([np.ones(30), rng.normal(size=(30, 2))])
    seen = np.arange(30) < 25
    mean, variance = rng.normal(size=(30, 3)), rng.uniform(0.1, 1, (30, 3))
    prior = RowPrior(features, seen, np.zeros(3))
    prior.learn(mean, variance)
    best = prior.penalty(mean, variance)
    for _ in range(20):
        other = RowPrior(features, seen, np.zeros(3))
        other.B = prior.B + 0.05 * rng.normal(size=prior.B.shape)
        move = 0.1 * rng.normal(size=(3, 3))
        other._set((np.eye(3) + move) @ prior.S @ (np.eye(3) + move).T)
        assert other.penalty(mean, variance) > best
    rest = mean[seen] - features[seen] @ prior.B
    total = rest.T @ rest + np.diag(variance[seen].sum(axis=0) + PRIOR_ROWS * PRIOR_VARIANCE)
    total += RIDGE * prior.B[1:].T @ prior.B[1:]
    np.testing.assert_allclose(prior.S, total / (25 + PRIOR_ROWS))


# ---- the model -----------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [0, 6])
def test_no_sweep_raises_the_bound(ratings, pattern):
    model = OrdinalFactors(rank=3, pattern=pattern, n_iter=30).fit(ratings)
    falls = -np.diff(model.objective_)
    assert (falls > -1e-6 * model.objective_[0]).all()
    assert falls[0] > falls[-1]


def test_any_number_of_threads_gives_the_same_numbers(ratings, model):
    again = OrdinalFactors(rank=4, pattern=6, n_jobs=3).fit(ratings)
    np.testing.assert_array_equal(again._z, model._z)
    np.testing.assert_array_equal(again._ve, model._ve)
    np.testing.assert_array_equal(again.objective_, model.objective_)


def test_it_comes_near_the_truth_that_made_the_ratings():
    truth = latent_model(150, 100, rank=2, noise=0.4, seed=0)
    ratings = synthetic_ratings(150, 100, n_ratings=9000, rank=2, noise=0.4, seed=0)
    model = OrdinalFactors(rank=4, pattern=0).fit(ratings)
    p = model.predict_proba(*everything(ratings))
    users, items = np.divmod(np.arange(150 * 100), 100)
    known = truth.probabilities(users, items)
    assert np.abs(p - known).mean() < 0.06
    best = -np.sum(known * np.log(known + 1e-300), axis=1).mean()
    ours = -np.sum(known * np.log(p), axis=1).mean()
    assert ours < best + 0.08
    assert (np.diff(model.thresholds_, axis=1) > 0).mean() > 0.99


def test_distributions_decisions_and_attributes(ratings, model):
    users, items = everything(ratings)
    p = model.predict_proba(users, items)
    assert p.shape == (80 * 60, 5)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()
    assert isinstance(model, ProbabilityModel)
    assert isinstance(model, FoldInModel)
    values = ratings.scale.values
    for decision, want in (("mode", values[p.argmax(axis=1)]), ("mean", p @ values)):
        twin = OrdinalFactors(rank=4, pattern=6, decision=decision).fit(ratings)
        np.testing.assert_array_equal(twin.predict(users, items), want)
    assert set(model.predict(users, items)) <= set(values)
    assert model.item_factors_.shape == (60, 4)
    assert model.item_effects_.shape == (60,)
    assert model.user_factors_.shape == (80, 4)
    assert model.thresholds_.shape == (80, 4)


def test_permuted_ratings_predict_nothing(ratings):
    rng = np.random.default_rng(0)
    held = rng.random(ratings.n_ratings) < 0.2
    frame = ratings.to_frame()
    frame["rating"] = rng.permutation(frame["rating"])
    shuffled = Ratings.from_frame(frame, scale=STARS, folds={"held": held})
    models = ["histogram", OrdinalFactors(rank=4)]
    result = evaluate(shuffled, models, "fold:held", metrics=["log_loss"])
    losses = result.frame.query("average == 'micro'").set_index("model")["value"]
    assert losses["OrdinalFactors"] > losses["histogram"] - 0.01


def test_strangers_are_average_and_less_certain(ratings, model):
    p = model.predict_proba(["nobody", 0, "nobody"], [0, "nothing", "nothing"])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    counts = np.bincount(ratings.levels, minlength=5) / ratings.n_ratings
    assert np.abs(p[2] - counts).max() < 0.15
    part = ratings.select((ratings.users != 5) & (ratings.items != 7))
    model = OrdinalFactors(rank=4, pattern=6).fit(part)
    np.testing.assert_array_equal(
        model.predict_proba([ratings.user_ids[5], 0], [0, ratings.item_ids[7]]),
        model.predict_proba(["nobody", 0], [0, "nothing"]),
    )


@pytest.mark.parametrize(
    "frame",
    [
        {"user": [1], "item": [1], "rating": [4]},
        {"user": [1, 1, 1], "item": [1, 2, 3], "rating": [5, 5, 5]},
        {"user": [1, 2, 3], "item": [1, 1, 1], "rating": [1, 3, 5]},
    ],
)
def test_tiny_tables_are_enough(frame):
    ratings = Ratings.from_frame(pd.DataFrame(frame), scale=STARS)
    p = OrdinalFactors().fit(ratings).predict_proba([1, 9], [1, 9])
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_two_values_and_half_stars_and_constant_raters():
    rng = np.random.default_rng(0)
    users, items = np.divmod(np.arange(600), 20)
    thumbs = pd.DataFrame({"user": users, "item": items, "rating": (users + items) % 2})
    model = OrdinalFactors(rank=2, pattern=0).fit(Ratings.from_frame(thumbs, scale=[0, 1]))
    said = model.predict(users, items)
    assert (said == thumbs["rating"]).mean() > 0.95  # a checkerboard has rank one
    halves = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 11, 600) / 2})
    halves.loc[users == 3, "rating"] = 5.0
    fives = OrdinalFactors(rank=2).fit(Ratings.from_frame(halves))
    p = fives.predict_proba([3], [0])
    assert p.shape == (1, 10)
    assert p.argmax() == 9


# ---- new users -------------------------------------------------------------------------------


def test_folding_in_a_training_user_says_nearly_what_was_learned(ratings, model):
    folded = model.fold_in(ratings.select(ratings.users == 4))
    pairs = np.repeat(ratings.user_ids[4], 60), ratings.item_ids
    np.testing.assert_allclose(folded.predict_proba(*pairs), model.predict_proba(*pairs), atol=0.02)


def test_a_newcomer_is_folded_in_near_a_refit_and_nobody_else_changes(ratings, model):
    others = OrdinalFactors(rank=4, pattern=6).fit(ratings.select(ratings.users != 4))
    mine = ratings.select(ratings.users == 4)
    frame = mine.to_frame().assign(user="new")
    frame = pd.concat([frame, pd.DataFrame({"user": ["new"], "item": [10**6], "rating": [1.0]})])
    folded = others.fold_in(Ratings.from_frame(frame, scale=STARS))
    pairs = np.repeat("new", 60), ratings.item_ids
    refit = model.predict_proba(np.repeat(ratings.user_ids[4], 60), ratings.item_ids)
    stranger = others.predict_proba(*pairs)
    assert np.abs(folded.predict_proba(*pairs) - refit).mean() < 0.04
    assert np.abs(stranger - refit).mean() > 0.08
    rest = np.repeat(ratings.user_ids[9], 60), ratings.item_ids
    np.testing.assert_array_equal(folded.predict_proba(*rest), others.predict_proba(*rest))
    unknown = np.repeat("nobody", 60), ratings.item_ids
    np.testing.assert_array_equal(folded.predict_proba(*unknown), stranger)


def test_item_factors_by_fold_have_not_seen_the_fold(ratings):
    model = OrdinalFactors(rank=2, pattern=0, n_iter=8)
    sets = model.item_factors_by_fold(ratings, n_folds=3)
    assert sets.shape == (4, 60, 2)
    frame = ratings.to_frame()
    inside = ratings.users % 3 == 1
    frame.loc[inside, "rating"] = 6 - frame.loc[inside, "rating"]
    turned = model.item_factors_by_fold(Ratings.from_frame(frame, scale=STARS), n_folds=3)
    np.testing.assert_array_equal(turned[1], sets[1])
    assert not np.allclose(turned[3], sets[3])
    with pytest.raises(ArgumentError, match="n_folds must be at least 2"):
        model.item_factors_by_fold(ratings, n_folds=1)


# ---- parameters and files ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"rank": 0}, {"pattern": -1}, {"n_iter": 0}, {"decision": "best"}]
)
def test_parameters_that_make_no_sense(ratings, wrong):
    with pytest.raises(ArgumentError, match=f"{next(iter(wrong))} must be"):
        OrdinalFactors(**wrong).fit(ratings)


def test_a_saved_model_is_the_same_and_folds_in_the_same(tmp_path, ratings, model):
    path = tmp_path / "factors.ordrec"
    save(model, path)
    again = load(path)
    pairs = everything(ratings)
    np.testing.assert_array_equal(again.predict_proba(*pairs), model.predict_proba(*pairs))
    part = ratings.select(ratings.users == 4)
    np.testing.assert_array_equal(again.fold_in(part)._z, model.fold_in(part)._z)
    arrays, metadata = load_arrays(path)
    for key in arrays:
        others = {name: array for name, array in arrays.items() if name != key}
        save_arrays(path, others, metadata)
        with pytest.raises(Exception, match=r"factors\.ordrec"):
            load(path)


@pytest.mark.realdata
def test_it_beats_biases_and_neighbours_on_movielens(real_data):
    ratings = load_movielens(real_data / "ml-100k")
    models = {
        "knn": "item-knn",
        "bias": "bias",
        "histogram": "histogram",
        "factors": OrdinalFactors(),
    }
    result = evaluate(ratings, models, "fold:u1", metrics=["rmse", "int_mae", "mze", "log_loss"])
    table = result.frame.query("average == 'micro'").pivot(
        index="model", columns="metric", values="value"
    )
    ours = table.loc["factors"]
    assert ours["rmse"] < 0.885
    assert ours["int_mae"] < table["int_mae"].drop("factors").min() - 0.04
    assert ours["mze"] < table["mze"].drop("factors").min() - 0.04
    assert ours["log_loss"] < 1.19
