"""Ordinal factors as a model: what they find, what they must not find, and the same digits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.factor_ratings import STARS, everything, log_loss, split

from ordrec.data import Ratings, Scale
from ordrec.data.synthetic import latent_model
from ordrec.datasets import load_movielens, synthetic_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import evaluate
from ordrec.files import contents_of
from ordrec.models.protocols import FoldInModel, ProbabilityModel
from ordrec.rating.factors import rows as rows_module
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.recommend import make_model

# ---- accuracy ------------------------------------------------------------------------------------


def test_it_comes_near_the_truth_that_made_the_ratings():
    truth = latent_model(150, 100, n_factors=2, noise=0.4, seed=0)
    ratings = synthetic_ratings(150, 100, n_ratings=9000, n_factors=2, noise=0.4, seed=0)
    model = OrdinalFactors(n_factors=4, pattern=0).fit(ratings)
    p = model.predict_proba(*everything(ratings))
    users, items = np.divmod(np.arange(150 * 100), 100)
    known = truth.probabilities(users, items)
    assert np.abs(p - known).mean() < 0.06
    best = -np.sum(known * np.log(known + 1e-300), axis=1).mean()
    ours = -np.sum(known * np.log(p), axis=1).mean()
    assert ours < best + 0.08  # the histogram is at best + 0.75


def test_held_out_ratings_are_predicted_better_than_by_biases_and_the_histogram(ratings):
    known, held = split(ratings, 0.2)
    model = OrdinalFactors(n_factors=4, pattern=6).fit(known)
    assert log_loss(model, held) < log_loss(make_model("histogram").fit(known), held) - 0.3
    users, items = held.user_ids.take(held.users), held.item_ids.take(held.items)
    mean = OrdinalFactors(n_factors=4, pattern=6, decision="mean").fit(known).predict(users, items)
    bias = make_model("bias").fit(known).predict(users, items)
    squares = [((said - held.values) ** 2).mean() for said in (mean, bias)]
    assert squares[0] < 0.75 * squares[1]


def test_noise_is_predicted_by_the_histogram():
    """Ratings drawn without regard to users and items: there is nothing to find."""
    rng = np.random.default_rng(0)
    pairs = synthetic_ratings(200, 100, n_ratings=10_000, seed=0)
    levels = rng.choice(5, pairs.n_ratings, p=[0.1, 0.15, 0.3, 0.3, 0.15])
    noise = Ratings(
        pairs.users, pairs.items, levels,
        scale=STARS, user_ids=pairs.user_ids, item_ids=pairs.item_ids,
    )  # fmt: skip
    known, held = split(noise, 0.25, seed=1)
    shares = np.bincount(known.levels, minlength=5) / known.n_ratings
    histogram = -np.log(shares[held.levels]).mean()
    ours = log_loss(OrdinalFactors(n_factors=6, pattern=6).fit(known), held)
    # 0.0061 when this was written: the price of learning from 7500 ratings that there is nothing
    assert histogram - 0.005 < ours < histogram + 0.0075


# ---- distributions -------------------------------------------------------------------------------


def test_distributions_decisions_and_attributes(ratings, model):
    users, items = everything(ratings)
    p = model.predict_proba(users, items)
    assert p.shape == (80 * 60, 5)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p > 0).all()
    assert isinstance(model, ProbabilityModel)
    assert isinstance(model, FoldInModel)
    values = ratings.scale.values
    median = values[(p.cumsum(axis=1) < 0.5).sum(axis=1)]
    mode = values[p.argmax(axis=1)]
    for decision, want in (("mode", mode), ("median", median), ("mean", p @ values)):
        twin = OrdinalFactors(n_factors=4, pattern=6, decision=decision).fit(ratings)
        np.testing.assert_array_equal(twin.predict(users, items), want)
    np.testing.assert_array_equal(model.predict(users, items), p @ values)
    assert model.item_factors_.shape == (60, 4)
    assert model.user_factors_.shape == (80, 4)
    assert model.side_columns_ == {}
    assert model.loss_[-1] < model.loss_[0]


@pytest.mark.parametrize("n_ranks", [2, 5, 10])
def test_a_reversed_scale_reverses_the_answer(n_ranks):
    ratings = synthetic_ratings(50, 40, n_ratings=900, n_ranks=n_ranks, seed=1)
    turned = Ratings(
        ratings.users, ratings.items, n_ranks - 1 - ratings.levels,
        scale=ratings.scale, user_ids=ratings.user_ids, item_ids=ratings.item_ids,
    )  # fmt: skip
    one, other = (OrdinalFactors(n_factors=3, pattern=4).fit(each) for each in (ratings, turned))
    pairs = everything(ratings)
    p, q = one.predict_proba(*pairs), other.predict_proba(*pairs)
    np.testing.assert_allclose(q[:, ::-1], p, rtol=0, atol=1e-12)
    assert p.std(axis=0).min() > 0.01  # which is not because all are alike


def test_both_directions_are_pooled(ratings, model):
    one = OrdinalFactors(n_factors=4, pattern=6, symmetric=False).fit(ratings)
    assert len(model.directions_) == 2
    assert len(one.directions_) == 1
    users, items = np.divmod(np.arange(80 * 60), 60)  # ids are codes
    up, down = (direction.probabilities(users, items) for direction in model.directions_)
    np.testing.assert_array_equal(one.predict_proba(users, items), up)
    pooled = np.sqrt(up * down[:, ::-1])
    expected = pooled / pooled.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(users, items), expected)
    assert 0.005 < np.abs(up - down[:, ::-1]).mean() < 0.05  # two views of the same


def test_strangers_are_average_and_less_certain(ratings, model):
    p = model.predict_proba(["nobody", 0, "nobody"], [0, "nothing", "nothing"])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    counts = np.bincount(ratings.levels, minlength=5) / ratings.n_ratings
    assert np.abs(p[2] - counts).max() < 0.15
    entropy = -(p * np.log(p)).sum(axis=1)
    known = model.predict_proba(*everything(ratings))
    assert (entropy > -(known * np.log(known)).sum(axis=1).mean() + 0.2).all()
    part = ratings.select((ratings.users != 5) & (ratings.items != 7))
    model = OrdinalFactors(n_factors=4, pattern=6, max_iter=4).fit(part)
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
    model = OrdinalFactors(n_factors=2, pattern=0, decision="mode")
    model.fit(Ratings.from_frame(thumbs, scale=[0, 1]))
    said = model.predict(users, items)
    assert (said == thumbs["rating"]).mean() > 0.95  # a checkerboard has rank one
    halves = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 11, 600) / 2})
    halves.loc[users == 3, "rating"] = 5.0
    fives = OrdinalFactors(n_factors=2).fit(Ratings.from_frame(halves))
    p = fives.predict_proba([3], [0])
    assert p.shape == (1, 10)
    assert p.argmax() == 9


def test_pairs_are_answered_one_by_one_as_together(ratings, model):
    users, items = (codes[::37] for codes in everything(ratings))
    order = np.random.default_rng(0).permutation(users.size)
    together = model.predict_proba(users, items)
    np.testing.assert_array_equal(model.predict_proba(users[order], items[order]), together[order])
    np.testing.assert_array_equal(model.predict_proba(users[5:6], items[5:6]), together[5:6])
    assert model.predict_proba([], []).shape == (0, 5)


# ---- sweeps --------------------------------------------------------------------------------------


def test_sweeps_end_when_they_change_little(ratings, model):
    assert 5 < model.loss_.size < 30
    short = OrdinalFactors(n_factors=4, pattern=6, max_iter=3).fit(ratings)
    assert short.loss_.size == 3
    np.testing.assert_array_equal(short.loss_, model.loss_[:3])
    longer = OrdinalFactors(n_factors=4, pattern=6, max_iter=model.loss_.size + 10).fit(ratings)
    np.testing.assert_array_equal(longer.loss_, model.loss_)


def test_more_ratings_get_more_factors(ratings, monkeypatch):
    def sizes(**parameters):
        model = OrdinalFactors(max_iter=1, **parameters).fit(ratings)
        return model.item_factors_.shape[1], model._pattern.of_items.shape[1]

    most = min(ratings.n_users, ratings.n_items) - 1
    assert sizes() == (32, min(32, most))
    monkeypatch.setattr(rows_module, "MANY", 2500)
    assert sizes() == (64, min(128, most))
    assert sizes(n_factors=3, pattern=5) == (3, 5)
    assert sizes(pattern=0) == (64, 0)
    monkeypatch.setattr(rows_module, "TOO_MANY", 2499)
    assert sizes() == (32, min(32, most))


# ---- the same digits -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_any_number_of_threads_gives_the_same_numbers(ratings, model, n_jobs):
    again = OrdinalFactors(n_factors=4, pattern=6, n_jobs=n_jobs).fit(ratings)
    for one, other in zip(again.directions_, model.directions_, strict=True):
        for array, expected in zip(one.users.arrays, other.users.arrays, strict=True):
            np.testing.assert_array_equal(array, expected)
        for array, expected in zip(one.items.arrays, other.items.arrays, strict=True):
            np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(again.loss_, model.loss_)


def test_the_order_of_the_ratings_does_not_matter(ratings):
    order = np.random.default_rng(0).permutation(len(ratings))
    # a fixed number of sweeps: rounding might end one of the fits a sweep earlier
    one, other = (
        OrdinalFactors(n_factors=4, pattern=6, max_iter=6).fit(each)
        for each in (ratings, ratings.select(order))
    )
    assert one.loss_.size == other.loss_.size == 6
    pairs = everything(ratings)
    found, wanted = other.predict_proba(*pairs), one.predict_proba(*pairs)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-4)  # rows are in half precision


def test_other_seeds_give_nearly_the_same_answer(ratings, model):
    pairs = everything(ratings)
    other = OrdinalFactors(n_factors=4, pattern=6, random_state=1).fit(ratings)
    change = np.abs(other.predict_proba(*pairs) - model.predict_proba(*pairs))
    assert 0 < change.mean() < 0.04


# ---- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_factors": 0},
        {"pattern": -1},
        {"max_iter": 0},
        {"decision": "best"},
        {"use_time": "yes"},
        {"use_side": None},
    ],
)
def test_parameters_that_make_no_sense(ratings, wrong):
    with pytest.raises(ArgumentError, match=f"{next(iter(wrong))} must be"):
        OrdinalFactors(**wrong).fit(ratings)


def test_there_must_be_ratings_and_a_fit(ratings):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(DataError, match="no ratings to learn from"):
        OrdinalFactors().fit(ratings.select(np.zeros(0, dtype=int)))
    for call in (
        lambda: OrdinalFactors().predict([1], [1]),
        lambda: OrdinalFactors().fold_in(ratings),
        lambda: OrdinalFactors().update(1, 1, 1),
        lambda: OrdinalFactors().without_users(),
        lambda: contents_of(OrdinalFactors()),
    ):
        with pytest.raises(NotFittedError, match="OrdinalFactors is not fitted"):
            call()


def test_a_level_that_nobody_used_is_possible():
    frame = synthetic_ratings(30, 20, n_ratings=300, seed=0).to_frame()
    frame["rating"] = frame["rating"].replace({5: 4})
    model = OrdinalFactors(n_factors=2, pattern=2).fit(
        Ratings.from_frame(frame, scale=Scale([1, 2, 3, 4, 5]))
    )
    p = model.predict_proba(frame["user"], frame["item"])
    assert p[:, 4].min() > 0
    assert p[:, 4].mean() < 0.02


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
