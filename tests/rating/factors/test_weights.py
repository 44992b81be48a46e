"""Weights of ratings in fits, fold-in, updates and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.factor_ratings import everything, pairs_of

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.rating.factors.fold_in import Newcomers
from ordrec.rating.factors.model import OrdinalFactors


def weighted(ratings: Ratings, seed: int = 0) -> Ratings:
    """The ratings, three of four of which count less than 1."""
    weights = np.random.default_rng(seed).integers(1, 5, ratings.n_ratings) / 4
    frame = ratings.to_frame().assign(weight=weights)
    return Ratings.from_frame(frame, scale=ratings.scale, weight="weight")


@pytest.fixture(scope="module")
def sure(ratings) -> Ratings:
    return weighted(ratings)


@pytest.fixture(scope="module")
def sure_model(sure) -> OrdinalFactors:
    return OrdinalFactors(n_factors=4, pattern=6).fit(sure)


def apart(one: OrdinalFactors, two: OrdinalFactors, pairs) -> float:
    return float(np.abs(one.predict_proba(*pairs) - two.predict_proba(*pairs)).max())


def test_folding_in_training_users_gives_their_rows(sure, sure_model):
    """They do with their weights, and with those alone."""
    part = sure.select(sure.users < 10)
    pairs = pairs_of(part)
    assert apart(sure_model.fold_in(part), sure_model, pairs) < 0.02
    assert apart(sure_model.fold_in(part.without_weights()), sure_model, pairs) > 0.05


def test_weights_of_one_are_none(ratings, model):
    part = ratings.select(ratings.users < 10)
    ones = Ratings.from_frame(part.to_frame().assign(w=1.0), scale=part.scale, weight="w")
    assert apart(model.fold_in(ones), model.fold_in(part), everything(ratings)) < 1e-5


@pytest.mark.parametrize("dated", [False, True])
def test_a_rating_counts_as_two_of_half_its_weight(request, dated: bool):
    """Users, new items and drift, in both directions of the scale."""
    ratings = request.getfixturevalue("moody" if dated else "ratings")
    model = request.getfixturevalue("dated_model" if dated else "model")
    n_users, n_items = len(model.user_ids_), len(model.item_ids_)
    rows = np.flatnonzero(ratings.users < 3)
    users, items = ratings.users[rows].astype(np.int64), ratings.items[rows].astype(np.int64)
    items[::3] = n_items  # a new one
    weights = np.random.default_rng(1).integers(1, 5, rows.size) / 4
    once = Newcomers.of(
        users, items, ratings.levels[rows], ratings.timestamps[rows] if dated else None, weights,
        model._pattern.extended(0, 1), model._user_side, np.zeros((n_items + 1, 0)),
        (n_users, n_items), ratings.scale.n_ranks - 1, model._met,
    )  # fmt: skip
    twice = replace(
        once,
        users=np.repeat(users, 2),
        items=np.repeat(items, 2),
        levels=np.repeat(once.levels, 2),
        times=None if once.times is None else np.repeat(once.times, 2),
        weights=np.repeat(weights / 2, 2),
    )
    unweighted = replace(once, weights=None)
    pairs = np.repeat(np.arange(3), n_items + 1), np.tile(np.arange(n_items + 1), 3)
    times = np.full(pairs[0].size, float(ratings.timestamps.max())) if dated else None
    for direction in model.dated_ or model.directions_:
        p, same, unlike = (
            each.join(direction).probabilities(*pairs, times) for each in (once, twice, unweighted)
        )
        np.testing.assert_allclose(p, same, atol=5e-4)
        assert np.abs(p - unlike).max() > 0.01


def test_updates_keep_the_weights_of_what_is_known(sure, sure_model, tmp_path):
    user = sure.user_ids[3]
    own = sure.of_user(user)
    new = sure.item_ids.difference(own["item"])[:2].tolist()
    more = pd.DataFrame({"user": user, "item": new, "rating": [1.0, 5.0], "weight": 1.0})
    both = Ratings.from_frame(pd.concat([own, more]), scale=sure.scale, weight="weight")
    pairs = [user] * sure.n_items, sure.item_ids
    folded = sure_model.fold_in(both)
    save(sure_model, tmp_path / "model.ordrec")
    for model in (sure_model, load(tmp_path / "model.ordrec")):
        assert (
            model.known_ratings().weights.tolist()
            == sure.select(np.argsort(sure.users, kind="stable")).weights.tolist()
        )
        updated = model.update([user] * 2, new, [1.0, 5.0])
        assert apart(updated, folded, pairs) == 0.0
        assert apart(updated, sure_model.fold_in(both.without_weights()), pairs) > 0.02


def test_weights_come_and_go_with_users(ratings, model, sure, sure_model):
    """A model of unweighted ratings learns of weights, and one of weighted ratings of others."""
    first, second = (sure.select(sure.users == code) for code in (0, 1))
    assert model.known_ratings().weights is None
    mixed = model.fold_in(first).known_ratings()
    weights = mixed.weights[mixed.users == 0]
    assert sorted(weights.tolist()) == sorted(first.weights.tolist())
    assert (mixed.weights[mixed.users != 0] == 1.0).all()
    mixed = sure_model.fold_in(second.without_weights()).known_ratings()
    assert (mixed.weights[mixed.users == 1] == 1.0).all()
    assert (mixed.weights[mixed.users != 1] < 1.0).any()
