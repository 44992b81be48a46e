from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.models.base import replacing_ratings
from ordrec.recommend import (
    BiasModel,
    FoldInModel,
    GlobalMean,
    ImplicitALS,
    ItemKNN,
    ProbabilityModel,
    RankingModel,
    RatingHistogram,
    RatingModel,
    make_model,
    model_names,
    register_model,
)

STARS = Scale.regular(1, 5)
PEERS = ["surprise-svd", "surprise-knn", "myfm"]  # may not be installed
RATING_MODELS = ["mean", "histogram", "bias", "item-knn"]


def invented(seed: int, n_users: int = 12, n_items: int = 10, n: int = 70) -> Ratings:
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(n_users * n_items)[:n]
    frame = pd.DataFrame(
        {
            "user": [f"u{p // n_items}" for p in pairs],
            "item": pairs % n_items + 100,
            "rating": rng.integers(1, 6, n),
        }
    )
    return Ratings.from_frame(frame, scale=STARS)


def checkerboard(n: int = 20) -> Ratings:
    """Users like (5) the items of their own parity and dislike (1) the others; gaps at random."""
    users, items = np.divmod(np.arange(n * n), n)
    keep = np.random.default_rng(0).random(n * n) < 0.8
    stars = np.where((users + items) % 2 == 0, 5, 1)
    frame = pd.DataFrame({"user": users, "item": items, "rating": stars})[keep]
    return Ratings.from_frame(frame, scale=STARS)


def pairs_of(ratings: Ratings):
    return ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items)


# ---- all models --------------------------------------------------------------------------


@pytest.mark.parametrize("name", RATING_MODELS)
def test_unknown_users_and_items_get_a_rating_within_the_scale(name):
    model = make_model(name).fit(invented(0))
    said = model.predict(["u1", "stranger", "u1", "stranger"], [100, 100, -1, -1])
    assert said.shape == (4,)
    assert np.isfinite(said).all()
    assert ((said >= 1) & (said <= 5)).all()
    assert model.predict([], []).shape == (0,)
    assert np.isfinite(model.predict([3, 4], ["text", "ids"])).all()  # ids of another type


@pytest.mark.parametrize("name", RATING_MODELS)
@given(seed=st.integers(0, 10**6))
def test_a_batch_equals_one_by_one(name, seed):
    ratings = invented(seed)
    model = make_model(name).fit(ratings)
    users, items = (list(ids) for ids in pairs_of(invented(seed + 1, n=15)))
    batch = model.predict(users, items)
    single = [model.predict([u], [i])[0] for u, i in zip(users, items, strict=True)]
    np.testing.assert_allclose(batch, single, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in model_names() if name not in PEERS])
def test_models_print_their_parameters_refuse_to_predict_unfitted_and_learn_from_something(name):
    model = make_model(name)
    assert repr(model).startswith(type(model).__name__ + "(")
    ask = model.predict if hasattr(model, "predict") else model.scores
    with pytest.raises(NotFittedError, match=r"not fitted: call fit\(ratings\) first"):
        ask([1], [1])
    with pytest.raises(DataError, match="no ratings to learn from"):
        model.fit(invented(0).select(np.zeros(0, dtype=int)))
    model.fit(invented(0))
    ask = model.predict if hasattr(model, "predict") else model.scores
    with pytest.raises(ArgumentError, match="got 2 users and 1 items"):
        ask(["u1", "u2"], [100])
    with pytest.raises(ArgumentError, match="must be sequences of ids, got 'u1'"):
        ask("u1", 100)


@pytest.mark.parametrize("name", RATING_MODELS)
def test_one_rating_is_enough(name):
    ratings = Ratings.from_frame(
        pd.DataFrame({"user": [1], "item": [1], "rating": [4]}), scale=STARS
    )
    assert make_model(name).fit(ratings).predict([1, 2], [1, 2]) == pytest.approx([4, 4])


def test_the_protocols_tell_models_apart():
    assert isinstance(BiasModel(), RatingModel)
    assert isinstance(BiasModel(), FoldInModel)
    assert not isinstance(BiasModel(), ProbabilityModel)
    assert isinstance(RatingHistogram(), ProbabilityModel)
    assert isinstance(ImplicitALS(), RankingModel)
    assert not isinstance(ImplicitALS(), RatingModel)


# ---- names -------------------------------------------------------------------------------


def test_unknown_names_and_parameters_get_a_suggestion():
    with pytest.raises(ArgumentError, match="unknown model 'itemknn': did you mean 'item-knn'"):
        make_model("itemknn")
    with pytest.raises(ArgumentError, match="choose from mean, histogram, bias, item-knn, "):
        make_model("zzz")
    with pytest.raises(ArgumentError, match="'bias' has no parameter 'damping': did you mean"):
        make_model("bias", damping=3)


def test_other_models_can_join(monkeypatch):
    monkeypatch.setattr("ordrec.recommend.registry.MODELS", [])
    register_model("average", "ordrec.rating.baselines.mean:GlobalMean")
    assert isinstance(make_model("average"), GlobalMean)
    register_model("average", "ordrec.rating.baselines.mean:GlobalMean")  # twice is allowed
    with pytest.raises(ArgumentError, match="'average' is taken by ordrec"):
        register_model("average", "ordrec.rating.baselines.bias:BiasModel")
    with pytest.raises(ArgumentError, match="package"):
        register_model("other", "GlobalMean")


# ---- mean and histogram --------------------------------------------------------------------


def test_mean_and_histogram_by_hand():
    frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [1, 5, 5, 5]})
    ratings = Ratings.from_frame(frame, scale=STARS)
    assert GlobalMean().fit(ratings).predict([1, 9], [1, 9]).tolist() == [4.0, 4.0]
    p = RatingHistogram(damping=1).fit(ratings).predict_proba([1, 9], [1, 9])
    np.testing.assert_allclose(p, np.tile([2 / 9, 1 / 9, 1 / 9, 1 / 9, 4 / 9], (2, 1)))
    rough = RatingHistogram(damping=0).fit(ratings).predict_proba([1], [1])
    np.testing.assert_allclose(rough, [[1 / 4, 0, 0, 0, 3 / 4]])


# ---- biases ------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), user_damping=st.floats(0.1, 30), item_damping=st.floats(0.1, 30))
def test_biases_solve_the_ridge_problem(seed, user_damping, item_damping):
    ratings = invented(seed)
    model = BiasModel(user_damping, item_damping, tol=1e-12, max_iter=20_000).fit(ratings)
    design = np.zeros((ratings.n_ratings, ratings.n_users + ratings.n_items))
    design[np.arange(ratings.n_ratings), ratings.users] = 1
    design[np.arange(ratings.n_ratings), ratings.n_users + ratings.items] = 1
    damping = np.repeat([user_damping, item_damping], [ratings.n_users, ratings.n_items])
    expected = np.linalg.solve(
        design.T @ design + np.diag(damping), design.T @ (ratings.values - ratings.values.mean())
    )
    ours = np.concatenate([model.user_bias_, model.item_bias_])
    np.testing.assert_allclose(ours, expected, atol=1e-8)


def test_undamped_biases_recover_an_additive_table():
    users, items = np.divmod(np.arange(12), 4)
    frame = pd.DataFrame({"user": users, "item": items, "rating": 1 + users + items})
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 6))
    model = BiasModel(0, 0).fit(ratings)
    np.testing.assert_allclose(model.predict(users, items), 1 + users + items, atol=1e-5)


def test_biases_that_have_not_converged_warn_with_numbers():
    with pytest.warns(ConvergenceWarning, match=r"after 1 rounds the biases still moved by"):
        BiasModel(max_iter=1).fit(invented(0))
    with pytest.raises(ArgumentError, match="damping must not be negative"):
        BiasModel(user_damping=-1).fit(invented(0))


def test_users_without_training_ratings_have_no_bias():
    ratings = invented(0)
    train = ratings.select(ratings.users != 3)
    model = BiasModel().fit(train)
    assert model.user_bias_[3] == 0.0
    known = model.predict([ratings.user_ids[3]], [100])
    assert known == model.predict(["stranger"], [100])


# ---- fold-in -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bias", "item-knn"])
def test_folding_in_a_user_the_model_was_trained_on_changes_nothing(name):
    ratings = invented(3)
    model = make_model(name).fit(ratings)
    again = model.fold_in(ratings.select(ratings.users == 2))
    users, items = np.repeat(ratings.user_ids, 10), np.tile(ratings.item_ids, 12)
    np.testing.assert_allclose(again.predict(users, items), model.predict(users, items), atol=1e-4)


@pytest.mark.parametrize("name", ["bias", "item-knn"])
def test_a_stranger_is_folded_in_by_original_ids_and_the_model_stays_as_it_was(name):
    ratings = checkerboard()
    model = make_model(name, user_damping=0.1).fit(ratings)
    frame = pd.DataFrame({"user": [777] * 4, "item": [0, 2, 4, 999], "rating": [5, 5, 5, 1]})
    newcomer = Ratings.from_frame(frame, scale=STARS)
    before = model.predict([777, 0], [6, 6])
    folded = model.fold_in(newcomer)
    after = folded.predict([777, 0], [6, 6])
    assert after[0] > before[0] + 0.3
    assert after[1] == before[1]
    np.testing.assert_array_equal(model.predict([777, 0], [6, 6]), before)


def test_item_neighbours_of_a_folded_in_user_come_from_what_was_given():
    ratings = checkerboard()
    model = ItemKNN(damping=1).fit(ratings)
    frame = pd.DataFrame({"user": ["eve"] * 4, "item": [0, 2, 1, 3], "rating": [5, 5, 1, 1]})
    # The ids of the training users are integers; a string is a new user among them.
    folded = model.fold_in(Ratings.from_frame(frame, scale=STARS))
    like, dislike = folded.predict(["eve", "eve"], [10, 11])
    assert like > 4
    assert dislike < 2


# ---- item neighbours -----------------------------------------------------------------------


def naive_item_knn(ratings: Ratings, model: ItemKNN, user: int, item: int) -> float:
    """Equations (2) and (3) of `item_knn` for one pair of codes, with dictionaries."""
    b = model.bias_
    error = {
        (u, i): r - b.mean_ - b.user_bias_[u] - b.item_bias_[i]
        for u, i, r in zip(ratings.users, ratings.items, ratings.values, strict=True)
    }
    raters = {i: {u for u, j in error if j == i} for i in range(ratings.n_items)}
    near = []
    for j in range(ratings.n_items):
        common = raters[item] & raters[j]
        if j == item or (user, j) not in error or len(common) < 2:
            continue
        dot = sum(error[u, item] * error[u, j] for u in common)
        left, right = (
            (common, common) if model.similarity == "pearson" else (raters[item], raters[j])
        )
        norm = np.sqrt(
            sum(error[u, item] ** 2 for u in left) * sum(error[u, j] ** 2 for u in right)
        )
        s = (len(common) - 1) / (len(common) - 1 + model.damping) * dot / norm
        if s > 0:
            near.append((s, error[user, j]))
    near = sorted(near, reverse=True)[: model.k]
    offset = sum(s * e for s, e in near) / sum(s for s, _ in near) if near else 0.0
    said = b.mean_ + b.user_bias_[user] + b.item_bias_[item] + offset
    return float(np.clip(said, 1, 5))


@pytest.mark.parametrize("similarity", ["pearson", "cosine"])
@given(seed=st.integers(0, 10**6), k=st.integers(1, 5), damping=st.floats(0, 20))
def test_item_neighbours_equal_plain_loops(similarity, seed, k, damping):
    ratings = invented(seed)
    model = ItemKNN(k=k, similarity=similarity, damping=damping).fit(ratings)
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, ratings.n_users, 8), rng.integers(0, ratings.n_items, 8)
    said = model.predict(ratings.user_ids.take(users), ratings.item_ids.take(items))
    expected = [naive_item_knn(ratings, model, u, i) for u, i in zip(users, items, strict=True)]
    np.testing.assert_allclose(said, expected, atol=1e-9)


@pytest.mark.parametrize("similarity", ["pearson", "cosine"])
def test_item_neighbours_see_the_checkerboard_that_biases_cannot(similarity):
    ratings = checkerboard()
    n = ratings.n_users
    users, items = np.divmod(np.arange(n * n), n)
    truth = np.where((users + items) % 2 == 0, 5.0, 1.0)
    knn = ItemKNN(similarity=similarity, damping=1).fit(ratings).predict(users, items)
    bias = BiasModel().fit(ratings).predict(users, items)
    assert np.abs(knn - truth).mean() < 0.3
    assert np.abs(bias - truth).mean() > 1.5


def test_a_rating_does_not_predict_itself():
    ratings = invented(5)
    model = ItemKNN(damping=0).fit(ratings)
    users, items = pairs_of(ratings)
    said = model.predict(users, items)
    expected = [
        naive_item_knn(ratings, model, u, i)
        for u, i in zip(ratings.users, ratings.items, strict=True)
    ]
    np.testing.assert_allclose(said, expected, atol=1e-9)


def test_item_neighbours_refuse_wrong_parameters():
    with pytest.raises(ArgumentError, match='similarity must be "pearson" or "cosine"'):
        ItemKNN(similarity="jaccard").fit(invented(0))
    with pytest.raises(ArgumentError, match="need k >= 1"):
        ItemKNN(k=0).fit(invented(0))


def test_old_ratings_of_a_known_user_folded_in_again_do_not_count() -> None:
    ratings = checkerboard()
    model = ItemKNN(damping=1).fit(ratings)
    given = {"item": [0, 2, 1, 3], "rating": [1, 1, 5, 5]}
    user = ratings.user_ids[0]
    with replacing_ratings():
        folded = [
            model.fold_in(Ratings.from_frame(pd.DataFrame(given | {"user": who}), scale=STARS))
            for who in (user, 999)
        ]
    items = list(range(4, 12))
    np.testing.assert_array_equal(
        folded[0].predict([user] * 8, items), folded[1].predict([999] * 8, items)
    )
    assert np.abs(folded[0].predict([user] * 8, items) - model.predict([user] * 8, items)).max() > 1
