"""The kernel that users share: nothing of the user in it, weights and settings from all users."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from ordrec import load, save
from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.features.low_rank.model import LowRankEM
from ordrec.features.matrix import RatingMatrix
from ordrec.files import contents_of, model_of
from ordrec.ordinal import GPOR, SVORIM, ORBoost, OrdinalLogistic
from ordrec.rating.per_user.pooled import ITEM_DAMPING, PARTS, ItemMeans
from ordrec.recommend import BiasModel, PerUserPredictor, make_model

STARS = Scale.regular(1, 5)
LOGISTIC = OrdinalLogistic("all", kernel="precomputed")


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic_ratings(40, 50, n_ratings=1200, noise=0.3, seed=2)


@pytest.fixture(scope="module")
def fitted(ratings) -> PerUserPredictor:
    grid = {"alpha": [0.1, 1.0, 100.0]}
    return PerUserPredictor(LOGISTIC, kernel="pooled", grid=grid).fit(ratings)


def everywhere(ratings):
    return np.repeat(ratings.user_ids, ratings.n_items), np.tile(ratings.item_ids, ratings.n_users)


def turned(ratings, user):
    """The same ratings, with those of one user turned upside down."""
    frame = ratings.to_frame()
    mine = frame["user"] == ratings.user_ids[user]
    frame.loc[mine, "rating"] = 6 - frame.loc[mine, "rating"]
    return Ratings.from_frame(frame, scale=STARS)


@pytest.mark.parametrize("features", ["mean", LowRankEM(2, random_state=0, tol=1e-3)])
def test_no_part_of_a_users_kernel_contains_their_ratings(ratings, features):
    items = np.array([3, 0, -1, 7])
    others = ratings.items[ratings.rows_of_user(5)].astype(int)[:6]
    parts = [
        PerUserPredictor(features=features, kernel="pooled")
        .fit(each, users=ratings.user_ids[:8])
        .source_.parts(5, items, others)
        for each in (ratings, turned(ratings, 5))
    ]
    assert parts[0].shape == (len(PARTS), 4, 6)
    np.testing.assert_allclose(parts[0], parts[1], atol=1e-12)
    assert (parts[0][:-1, 2] == 0).all()  # an item without ratings is like no other
    assert (parts[0][-1] == 1).all()


def test_item_means_are_damped_means_of_the_others(ratings):
    matrix = RatingMatrix.from_ratings(ratings)
    X = matrix.user_centred().toarray()
    rated = matrix.to_dense()
    own = np.delete(X[4], 6)
    count = np.isfinite(np.delete(rated[4], 6)).sum()
    found = ItemMeans(matrix)(6, np.array([-1, 4]))
    assert found == pytest.approx([0.0, own.sum() / (count + ITEM_DAMPING)])


def test_the_pooled_kernel_beats_pearson_alone_and_rounded_biases():
    ratings = synthetic_ratings(60, 80, n_ratings=2400, noise=0.2, seed=4)
    held = np.random.default_rng(0).random(ratings.n_ratings) < 0.3
    train, test = ratings.select(~held), ratings.select(held)
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)

    def error(model) -> float:
        said = STARS.nearest(model.fit(train).predict(users, items))
        return float(np.abs(said - test.values).mean())

    bias = error(BiasModel())
    assert error(PerUserPredictor(LOGISTIC, kernel="pooled")) < min(
        bias, 0.97 * error(PerUserPredictor(LOGISTIC))
    )
    assert error(PerUserPredictor(GPOR(inference="ep", decision="median"), kernel="pooled")) < bias


def test_ratings_that_were_shuffled_among_a_users_items_cannot_be_predicted():
    ratings = synthetic_ratings(60, 80, n_ratings=3000, noise=0.2, seed=4)
    rng = np.random.default_rng(0)
    frame = ratings.to_frame()
    frame["rating"] = frame.groupby("user")["rating"].transform(rng.permutation)
    held = rng.random(len(frame)) < 0.2
    shuffled = Ratings.from_frame(frame, scale=STARS)
    train, test = shuffled.select(~held), shuffled.select(held)
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
    model = PerUserPredictor(LOGISTIC, kernel="pooled").fit(train)
    error = np.abs(model.predict(users, items) - test.values).mean()
    medians = train.to_frame().groupby("user")["rating"].median()
    assert error > 0.95 * np.abs(medians.reindex(users).to_numpy() - test.values).mean()


def test_the_setting_with_the_smallest_error_is_taken_by_all_users(fitted):
    errors = {setting["alpha"]: error for setting, error in fitted.grid_errors_}
    assert list(errors) == [0.1, 1.0, 100.0]
    assert fitted.setting_ == {"alpha": min(errors, key=errors.get)}
    assert errors[100.0] > min(errors.values()) > 0
    assert {model.alpha for model in fitted.models_.values()} == {fitted.setting_["alpha"]}


class Always(ClassifierMixin, BaseEstimator):
    """Predict the same level for everything."""

    def __init__(self, level: int = 0):
        self.level = level

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.level)


def test_every_rating_is_in_one_fold(ratings):
    users = np.flatnonzero(ratings.user_counts > 20)
    grid = {"level": [0, 3]}
    model = PerUserPredictor(Always(), grid=grid).fit(ratings, users=ratings.user_ids[users])
    rated = [ratings.levels[ratings.rows_of_user(u)] for u in users]
    away = [np.abs(np.concatenate(rated).astype(int) - level).mean() for level in (0, 3)]
    assert [error for _, error in model.grid_errors_] == pytest.approx(away)


def test_gpor_takes_the_noise_and_the_thresholds_of_all_users(ratings):
    model = PerUserPredictor(GPOR(inference="ep"), kernel="pooled").fit(ratings)
    first, *rest = model.models_.values()
    assert first.noise_ == 1.0
    assert all(np.array_equal(each.thresholds_, first.thresholds_) for each in rest)
    assert list(model.kernel_weights_) == list(PARTS)


def test_a_source_serves_several_estimators(ratings, fitted):
    again = PerUserPredictor(LOGISTIC, fitted.source_, grid=fitted.grid).fit(ratings)
    pairs = everywhere(ratings)
    np.testing.assert_array_equal(again.predict_proba(*pairs), fitted.predict_proba(*pairs))
    assert again.kernel_weights_ == fitted.kernel_weights_
    boosted = PerUserPredictor(ORBoost(n_estimators=5), fitted.source_).fit(ratings)
    X = fitted.source_.rows(3, np.array([1, 2]))
    assert X.shape == (2, ratings.n_users)  # other users' ratings, and the item mean
    assert set(boosted.predict(*pairs)) <= set(STARS.values)


def test_jobs_do_not_change_numbers(ratings, fitted):
    other = PerUserPredictor(LOGISTIC, kernel="pooled", grid=fitted.grid, n_jobs=2).fit(ratings)
    pairs = everywhere(ratings)
    np.testing.assert_array_equal(other.predict_proba(*pairs), fitted.predict_proba(*pairs))


def test_files_keep_weights_and_the_chosen_setting(ratings, fitted, tmp_path: Path):
    save(fitted, tmp_path / "m.ordrec")
    back = load(tmp_path / "m.ordrec")
    pairs = everywhere(ratings)
    np.testing.assert_allclose(back.predict_proba(*pairs), fitted.predict_proba(*pairs), atol=1e-12)
    assert back.kernel_weights_ == fitted.kernel_weights_
    assert back.estimator.alpha == fitted.setting_["alpha"]
    assert back.grid is None
    with pytest.raises(
        ArgumentError, match='features=PooledSource cannot be saved: use features="'
    ):
        save(PerUserPredictor(SVORIM(), fitted.source_).fit(ratings), tmp_path / "n.ordrec")
    arrays, metadata = contents_of(fitted)
    with pytest.raises(ModelFileError, match=r"source\.weights"):
        model_of(arrays | {"source.weights": -np.ones(5)}, metadata)


def test_the_logistic_model_by_name_takes_the_pooled_kernel():
    model = make_model("per-user-logistic", kernel="pooled")
    assert model.kernel == "pooled"
    assert hasattr(model, "predict_proba")
