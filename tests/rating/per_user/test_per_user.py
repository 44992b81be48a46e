"""One model per user: equal to building everything without the user, and fallbacks by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.features.low_rank.model import LowRankEM
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels import Gaussian
from ordrec.kernels.items.pearson import Pearson
from ordrec.ordinal import GPOR, SVOREX, SVORIM, ORBoost, OrdinalLogistic
from ordrec.rating.per_user.items import LowRankSource, MeanSource, filled_source
from ordrec.recommend import BiasModel, PerUserPredictor, make_model

STARS = Scale.regular(1, 5)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic_ratings(25, 30, n_ratings=450, noise=0.3, seed=2)


def pairs(ratings, user):
    return np.repeat(ratings.user_ids[user], ratings.n_items), ratings.item_ids


def in_codes(ratings, user):
    rows = ratings.rows_of_user(user)
    return ratings.items[rows].astype(int), ratings.levels[rows].astype(int)


# ---- against building everything without the user ------------------------------------------


@pytest.mark.parametrize("estimator", [SVORIM(C=2.0), SVOREX(), OrdinalLogistic(kernel="rbf")])
def test_a_users_model_is_the_one_made_by_hand_without_their_column(ratings, estimator):
    model = PerUserPredictor(estimator).fit(ratings)
    matrix = RatingMatrix.from_ratings(ratings)
    for user in (0, 7):
        items, levels = in_codes(ratings, user)
        K = Pearson().normalised()(matrix.without_users([user]).values)
        by_hand = type(estimator)(**estimator.get_params() | {"kernel": "precomputed"})
        by_hand.set_params(classes=np.arange(5)).fit(K[np.ix_(items, items)], levels)
        expected = STARS.values[by_hand.predict(K[:, items])]
        np.testing.assert_array_equal(model.predict(*pairs(ratings, user)), expected)
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(
                model.predict_proba(*pairs(ratings, user)),
                by_hand.predict_proba(K[:, items]),
                atol=1e-5,
            )


def test_feature_rows_are_the_other_users_ratings_filled_with_the_means_of_the_others(ratings):
    source = MeanSource(ratings, Pearson())
    X = source.rows(3, np.array([4, -1]))
    dense = RatingMatrix.from_ratings(ratings).to_dense()
    others = np.delete(dense[4], 3)
    np.testing.assert_allclose(X[0], np.where(np.isnan(others), np.nanmean(others), others))
    assert (X[1] == 3.0).all()


def test_low_rank_features_are_fitted_without_the_users_fold(ratings):
    em = LowRankEM(n_factors=2, random_state=0, max_iter=50, tol=1e-3)
    source = LowRankSource(ratings, Gaussian(0.1), em)
    values = RatingMatrix.from_ratings(ratings).values
    target = np.arange(25)[np.arange(25) % 5 == 2]
    filled = LowRankEM(n_factors=2, random_state=0, max_iter=50, tol=1e-3, target=target)
    filled = filled.fit(values).transform(values)
    np.testing.assert_allclose(source.rows(7, np.arange(30)), filled)
    K = source.gram(7, np.array([3, -1, 5]), np.array([1, 2]))
    np.testing.assert_allclose(K[[0, 2]], Gaussian(0.1)(filled)[np.ix_([3, 5], [1, 2])])
    assert (K[1] == 0).all()
    frame = ratings.to_frame()
    mine = frame["user"] == ratings.user_ids[7]
    frame.loc[mine, "rating"] = 6 - frame.loc[mine, "rating"]
    turned = LowRankSource(Ratings.from_frame(frame, scale=STARS), Gaussian(0.1), em)
    np.testing.assert_array_equal(turned.gram(7, np.arange(30)), source.gram(7, np.arange(30)))


@pytest.mark.parametrize(
    ("estimator", "features"),
    [
        (ORBoost(n_estimators=20, random_state=0), "mean"),
        (DecisionTreeClassifier(max_depth=2, random_state=0), "mean"),
        (DecisionTreeClassifier(max_depth=2, random_state=0), LowRankEM(2, random_state=0)),
        (SVORIM(), LowRankEM(2, random_state=0)),
        (GPOR(optimizer=None), "mean"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_estimators_and_features(ratings, estimator, features):
    model = PerUserPredictor(estimator, features=features).fit(ratings)
    said = model.predict(*pairs(ratings, 1))
    assert set(said) <= set(STARS.values)
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(*pairs(ratings, 1))
        np.testing.assert_allclose(p.sum(axis=1), 1)


def test_weights_of_ratings_are_weights_of_samples(ratings):
    frame = ratings.to_frame()
    frame["count"] = np.random.default_rng(0).uniform(0.1, 1.0, len(frame))
    weighted = Ratings.from_frame(frame, scale=STARS, weight="count")
    model = PerUserPredictor(SVORIM(C=2.0), grid={"C": [0.5, 2.0]}).fit(weighted)
    items, levels = in_codes(weighted, 7)
    K = MeanSource(weighted, Pearson().normalised()).gram(7, items)
    by_hand = SVORIM(**model.setting_, kernel="precomputed", classes=np.arange(5))
    by_hand.fit(K, levels, weighted.weights[weighted.rows_of_user(7)])
    np.testing.assert_allclose(model.models_[7].thresholds_, by_hand.thresholds_, atol=1e-9)
    plain = PerUserPredictor(SVORIM(**model.setting_)).fit(weighted.without_weights())
    assert not np.allclose(model.models_[7].thresholds_, plain.models_[7].thresholds_)
    with pytest.raises(ArgumentError, match="GPOR takes no weights"):
        PerUserPredictor(GPOR()).fit(weighted)
    low_rank = LowRankEM(n_factors=2, random_state=0, max_iter=50, tol=1e-3)
    rows = [
        LowRankSource(each, Gaussian(0.1), low_rank).rows(7, np.arange(30))
        for each in (weighted, ratings)
    ]
    assert not np.allclose(*rows)


# ---- it learns, and does not leak ----------------------------------------------------------------


def test_it_beats_the_users_own_median_on_held_out_ratings():
    ratings = synthetic_ratings(60, 80, n_ratings=3000, noise=0.2, seed=4)
    held = np.random.default_rng(0).random(ratings.n_ratings) < 0.2
    train, test = ratings.select(~held), ratings.select(held)
    model = make_model("per-user-logistic").fit(train)
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
    error = np.abs(model.predict(users, items) - test.values).mean()
    medians = train.to_frame().groupby("user")["rating"].median()
    assert error < 0.8 * np.abs(medians.reindex(users).to_numpy() - test.values).mean()


def test_ratings_that_were_shuffled_among_a_users_items_cannot_be_predicted():
    ratings = synthetic_ratings(60, 80, n_ratings=3000, noise=0.2, seed=4)
    rng = np.random.default_rng(0)
    frame = ratings.to_frame()
    frame["rating"] = frame.groupby("user")["rating"].transform(rng.permutation)
    held = rng.random(len(frame)) < 0.2
    shuffled = Ratings.from_frame(frame, scale=STARS)
    train, test = shuffled.select(~held), shuffled.select(held)
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
    error = np.abs(make_model("per-user-svor").fit(train).predict(users, items) - test.values)
    medians = train.to_frame().groupby("user")["rating"].median()
    assert error.mean() > 0.95 * np.abs(medians.reindex(users).to_numpy() - test.values).mean()


# ---- the same for any number of jobs -------------------------------------------------------------


def test_threads_and_processes_give_the_same_numbers(ratings):
    users, items = np.repeat(ratings.user_ids, 30), np.tile(ratings.item_ids, 25)
    one = make_model("per-user-logistic").fit(ratings).predict_proba(users, items)
    two = make_model("per-user-logistic", n_jobs=2).fit(ratings).predict_proba(users, items)
    np.testing.assert_array_equal(one, two)
    part = ratings.select(ratings.users < 4)
    tree = DecisionTreeClassifier(random_state=0)
    model = PerUserPredictor(tree, n_jobs=2, engine="processes").fit(part)
    again = PerUserPredictor(DecisionTreeClassifier(random_state=0)).fit(part)
    np.testing.assert_array_equal(model.predict(users, items), again.predict(users, items))


# ---- users without a model, items without a rating -------------------------------------------


def test_fallbacks_by_hand():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "user": ["many"] * 12 + ["fives"] * 12 + ["few"] * 2,
            "item": [*range(12), *range(12), 0, 1],
            "rating": [*rng.integers(1, 6, 12), *[5] * 12, 2, 3],
        }
    )
    ratings = Ratings.from_frame(frame, scale=STARS)
    model = PerUserPredictor(OrdinalLogistic(kernel="linear")).fit(ratings)
    assert [ratings.user_ids[code] for code in model.models_] == ["many"]
    users, items = ["fives", "few", "stranger", "few", "many"], [3, 3, 3, "new", "new"]
    said = model.predict(users, items)
    assert said[0] == 5
    bias = STARS.nearest(BiasModel().fit(ratings).predict(users, items))
    assert said[1:4].tolist() == bias[1:4].tolist()
    assert said[4] in STARS.values
    pooled = np.bincount(ratings.levels, minlength=5) + 1
    p = model.predict_proba(users, items)
    np.testing.assert_allclose(p[2], pooled / pooled.sum())
    own = np.array([0, 1, 1, 0, 0]) + 5 * pooled / pooled.sum()
    np.testing.assert_allclose(p[1], own / own.sum())
    assert p[0].argmax() == 4
    assert model.predict([], []).shape == (0,)
    assert model.predict_proba([], []).shape == (0, 5)


@pytest.mark.parametrize("features", ["mean", LowRankEM(2, random_state=0, max_iter=300)])
def test_a_users_ratings_do_not_move_what_they_are_predicted_from(ratings, features):
    """The kernel and the features of a user's items, after one of the user's ratings changed."""
    user = 4
    row = ratings.rows_of_user(user)[1]
    levels = ratings.levels.copy()
    levels[row] = 4 if levels[row] < 2 else 0
    sources = [
        filled_source(features, Pearson().normalised(), part)
        for part in (ratings, ratings._replaced(levels=levels))
    ]
    own = ratings.items[ratings.rows_of_user(user)].astype(np.int64)
    grams = [source.gram(user, own) for source in sources]
    np.testing.assert_allclose(*grams, atol=1e-12)
    np.testing.assert_array_equal(*(source.rows(user, own) for source in sources))
    others = [source.gram(user + 1, own) for source in sources]
    assert not np.allclose(*others)  # what others are predicted from does move


def test_exactly_min_ratings_are_enough():
    frame = pd.DataFrame(
        {
            "user": ["four"] * 4 + ["three"] * 3 + ["fives"] * 4 + ["fewer fives"] * 3,
            "item": [0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2],
            "rating": [1, 2, 4, 5, 1, 3, 4, 5, 5, 5, 5, 5, 5, 5],
        }
    )
    ratings = Ratings.from_frame(frame, scale=STARS)
    model = PerUserPredictor(OrdinalLogistic(kernel="linear"), min_ratings=4).fit(ratings)
    assert [ratings.user_ids[code] for code in model.models_] == ["four"]
    users, items = ["fives", "fewer fives"], [99, 99]
    bias = STARS.nearest(BiasModel().fit(ratings).predict(users, items))
    assert bias[1] != 5  # the prediction of someone with too few ratings
    assert model.predict(users, items).tolist() == [5, bias[1]]


@pytest.mark.parametrize("grid", [None, {"alpha": [0.1, 1.0]}], ids=["one", "grid"])
@pytest.mark.parametrize("kernel", ["pearson", "pooled"])
def test_a_user_whose_weights_leave_nothing_to_learn_has_no_model(ratings, grid, kernel):
    """One user counts for nothing, and one has a single class left."""
    weights = np.where(ratings.users == 3, 0.0, 1.0)
    weights[(ratings.users == 5) & (ratings.levels != ratings.levels[ratings.users == 5][0])] = 0.0
    solver = OrdinalLogistic(kernel="linear")
    model = PerUserPredictor(solver, kernel=kernel, grid=grid).fit(
        ratings._replaced(weights=weights)
    )
    plain = PerUserPredictor(solver, kernel=kernel).fit(ratings)
    assert set(plain.models_) - set(model.models_) == {3, 5}
    for user in (3, 5):
        users, items = pairs(ratings, user)
        assert set(model.predict(users, items)) <= set(STARS.values)
        np.testing.assert_allclose(model.predict_proba(users, items).sum(axis=1), 1.0)


def test_probabilities_are_there_only_where_the_solver_has_them():
    assert not hasattr(PerUserPredictor(), "predict_proba")
    assert not hasattr(PerUserPredictor(SVORIM()), "predict_proba")
    assert hasattr(PerUserPredictor(SVORIM(probability=True)), "predict_proba")
    assert hasattr(make_model("per-user-logistic"), "predict_proba")


def test_wrong_parameters(ratings):
    with pytest.raises(ArgumentError, match="min_ratings must be at least 2"):
        PerUserPredictor(min_ratings=1).fit(ratings)
    with pytest.raises(ArgumentError, match='features must be "mean" or a LowRankEM'):
        PerUserPredictor(features="median").fit(ratings)
    with pytest.raises(ArgumentError, match='kernel must be "pearson", "pooled" or a kernel'):
        PerUserPredictor(kernel="rbf").fit(ratings)
    with pytest.raises(ArgumentError, match="leave target=None"):
        PerUserPredictor(features=LowRankEM(2, target=1)).fit(ratings)
