"""Other packages' models behind the same interface; skipped where a package is not installed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation import evaluate
from ordrec.recommend import (
    ImplicitModel,
    MyFMModel,
    ProbabilityModel,
    RankingModel,
    RatingModel,
    SklearnModel,
    SurpriseModel,
    make_model,
)

STARS = Scale.regular(1, 5)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic_ratings(40, 30, n_ratings=800, noise=0.3, seed=5)


def by_code(ratings, n):
    part = ratings.select(np.arange(n))
    return part.user_ids.take(part.users), part.item_ids.take(part.items)


# ---- scikit-learn ----------------------------------------------------------------------------


def test_ridge_on_ids_is_ridge_on_one_hot_columns(ratings):
    model = SklearnModel(Ridge(alpha=2.0, tol=1e-12)).fit(ratings)
    X = np.zeros((ratings.n_ratings, 70))
    X[np.arange(800), ratings.users] = X[np.arange(800), 40 + ratings.items] = 1
    by_hand = Ridge(alpha=2.0, tol=1e-12).fit(X, ratings.values)
    users, items = by_code(ratings, 50)
    expected = np.clip(by_hand.predict(X[:50]), 1, 5)
    np.testing.assert_allclose(model.predict(users, items), expected, atol=1e-6)
    stranger = np.zeros((1, 70))
    stranger[0, 40 + 3] = 1
    np.testing.assert_allclose(
        model.predict(["nobody"], ratings.item_ids[[3]]), by_hand.predict(stranger), atol=1e-6
    )
    assert isinstance(model, RatingModel)
    assert not hasattr(model, "predict_proba")
    assert model.predict([], []).shape == (0,)


def test_a_classifier_gives_distributions_over_the_whole_scale(ratings):
    never_two = ratings.select(ratings.levels != 1)
    model = SklearnModel(LogisticRegression(max_iter=500)).fit(never_two)
    assert isinstance(model, ProbabilityModel)
    users, items = by_code(ratings, 20)
    p = model.predict_proba(users, items)
    assert p.shape == (20, 5)
    assert (p[:, 1] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(users, items), STARS.values[p.argmax(axis=1)])


def test_side_tables_become_columns():
    frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": list("abab"), "rating": [5, 1, 4, 2]})
    items = pd.DataFrame(
        {"genres": ["x|y", "y"], "year": [1990.0, np.nan], "title": ["A", "B"]}, index=list("ab")
    )
    ratings = Ratings.from_frame(frame, scale=STARS, item_table=items)
    model = SklearnModel(Ridge(), features="side").fit(ratings)
    columns = model._sides[1].toarray()
    # year (the mean where missing), genres x and y, titles A and B; last the unknown item
    np.testing.assert_allclose(
        columns, [[1990, 1, 1, 1, 0], [1990, 0, 1, 0, 1], [1990, 0.5, 1, 0.5, 0.5]]
    )
    high, low = model.predict([1, 1], ["a", "b"])
    assert high > low
    both = SklearnModel(Ridge(), features="both").fit(ratings)
    assert both._sides[0].shape == (3, 2)
    assert both._sides[1].shape == (3, 7)
    many = pd.DataFrame({"title": [f"word{k}" for k in range(150)]}, index=range(150))
    frame = pd.DataFrame({"user": 1, "item": range(150), "rating": np.arange(150) % 5 + 1})
    wordy = Ratings.from_frame(frame, scale=STARS, item_table=many)
    assert SklearnModel(Ridge(), "both").fit(wordy)._sides[1].shape == (151, 150)


def test_dense_estimators_and_wrong_arguments(ratings):
    model = SklearnModel(HistGradientBoostingClassifier(max_iter=5), dense=True).fit(ratings)
    assert model.predict_proba(*by_code(ratings, 3)).shape == (3, 5)
    with pytest.raises(ArgumentError, match="no side tables"):
        SklearnModel(Ridge(), features="side").fit(ratings)
    with pytest.raises(ArgumentError, match='features must be "ids"'):
        SklearnModel(Ridge(), features="all").fit(ratings)
    with pytest.raises(ArgumentError, match="estimator must have fit"):
        SklearnModel("ridge").fit(ratings)


# ---- implicit --------------------------------------------------------------------------------


def test_implicit_recommenders_rank_by_their_own_scores(ratings):
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from implicit.nearest_neighbours import CosineRecommender

    model = ImplicitModel(BayesianPersonalizedRanking(factors=4, random_state=0)).fit(ratings)
    assert isinstance(model, RankingModel)
    users, items = by_code(ratings, 60)
    factors = model.model_.user_factors[ratings.users[:60]]
    expected = np.einsum("ij,ij->i", factors, model.model_.item_factors[ratings.items[:60]])
    np.testing.assert_allclose(model.scores(users, items), expected, rtol=1e-4, atol=1e-5)
    last = model.scores([*users[:3], "nobody", users[0]], [*items[:3], items[0], "nothing"])
    assert last[3] < last[:3].min()
    assert last[4] < last[:3].min()
    neighbours = ImplicitModel(CosineRecommender(K=10), entries="rank").fit(ratings)
    scores = neighbours.scores(users, items)
    assert np.isfinite(scores).all()
    assert np.unique(scores).size > 10
    with pytest.raises(ArgumentError, match="must be a recommender of the package implicit"):
        ImplicitModel().fit(ratings)


# ---- Surprise and myFM -----------------------------------------------------------------------


def test_surprise_estimates_come_through(ratings):
    surprise = pytest.importorskip("surprise", reason="scikit-surprise is not installed")
    model = SurpriseModel(surprise.BaselineOnly(verbose=False)).fit(ratings)
    users, items = by_code(ratings, 200)
    said = model.predict(users, items)
    bias = make_model("bias", user_damping=15, item_damping=10).fit(ratings)
    assert np.corrcoef(said, bias.predict(users, items))[0, 1] > 0.98
    assert model.predict(["nobody"], ["nothing"]) == pytest.approx(ratings.values.mean())
    svd = SurpriseModel("SVD", {"n_factors": 3, "random_state": 1}).fit(ratings)
    again = SurpriseModel("SVD", {"n_factors": 3, "random_state": 1}).fit(ratings)
    np.testing.assert_array_equal(svd.predict(users, items), again.predict(users, items))
    with pytest.raises(ArgumentError, match="surprise has no algorithm 'SVM'"):
        SurpriseModel("SVM").fit(ratings)


@pytest.mark.parametrize("implicit", [False, True])
def test_myfm_gives_distributions(ratings, implicit):
    pytest.importorskip("myfm", reason="myfm is not installed")
    never_two = ratings.select(ratings.levels != 1)
    model = MyFMModel(n_factors=2, n_iter=30, implicit=implicit).fit(never_two)
    users, items = by_code(ratings, 300)
    p = model.predict_proba([*users, "nobody"], [*items, "nothing"])
    assert p.shape == (301, 5)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p[:, 1] == 0).all()
    said = model.predict(users, items)
    truth = ratings.values[:300]
    assert np.corrcoef(said, truth)[0, 1] > 0.6
    assert model.predict_proba([], []).shape == (0, 5)


def test_ridge_and_bpr_by_name_are_rows_of_the_table(ratings):
    result = evaluate(
        ratings, ["mean", "ridge", "implicit-bpr"], metrics=["rmse", "ndcg@5"], seed=3
    )
    assert result.complete, result.failures["error"].tolist()
    table = result.summary()
    assert table.loc["ridge", "rmse"] < table.loc["mean", "rmse"]
    assert np.isnan(table.loc["implicit-bpr", "rmse"])
    again = evaluate(ratings, ["implicit-bpr"], metrics=["ndcg@5"], seed=3).summary()
    assert again.loc["implicit-bpr", "ndcg@5"] == table.loc["implicit-bpr", "ndcg@5"]


@pytest.mark.parametrize("name", ["surprise-svd", "surprise-knn", "myfm"])
def test_peers_by_name_are_rows_of_the_table_or_say_what_is_missing(ratings, name):
    package = "myfm" if name == "myfm" else "surprise"
    try:
        __import__(package)
    except ImportError:
        with pytest.raises(ArgumentError, match=r"pip install 'ordrec\[peers\]'"):
            make_model(name).fit(ratings)
    else:
        model = make_model(name, n_iter=10) if name == "myfm" else make_model(name)
        result = evaluate(
            ratings, {"mean": "mean", name: model}, metrics=["rmse"], on_error="raise"
        )
        values = result.frame.query("average == 'micro'").set_index("model")["value"]
        assert values[name] < values["mean"]


@pytest.mark.parametrize("kind", ["cosine", "als"])
def test_blocks_of_implicit_have_the_scores_of_pairs(ratings, kind):
    implicit = pytest.importorskip("implicit")
    from implicit.nearest_neighbours import CosineRecommender

    if kind == "cosine":
        inner = CosineRecommender(K=5, num_threads=1)
    else:
        inner = implicit.als.AlternatingLeastSquares(factors=3, num_threads=1, random_state=0)
    model = ImplicitModel(inner).fit(ratings)
    block = model.scores_block([*ratings.user_ids, "nobody"])
    assert block.shape == (41, 30)
    assert np.isfinite(block).all()
    assert np.unique(block[40]).size == 1
    pairs = model.scores(np.repeat(ratings.user_ids, 30), np.tile(ratings.item_ids, 40))
    pairs = pairs.reshape(40, 30)
    known = pairs > -1e30  # implicit has no score for the others
    np.testing.assert_allclose(block[:40][known], pairs[known], atol=1e-5)
    for row, there in zip(block, known, strict=False):
        assert there.all() or row[~there].max() < row[there].min()
