"""Estimates by inverse propensities, against sums in plain numpy and a known world."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import evaluate


def chosen_ratings(seed: int = 0, n_users: int = 120, n_items: int = 40):
    """All pairs of a world, the propensity of each to be rated, and which were rated."""
    rng = np.random.default_rng(seed)
    users, items = np.indices((n_users, n_items)).reshape(2, -1)
    stars = np.clip(
        np.rint(3 + rng.normal(size=n_items)[items] + rng.normal(size=users.size)), 1, 5
    )
    p = np.where(stars >= 4, 0.5, 0.08)  # people rate what they like
    world = pd.DataFrame({"user": users, "item": items, "rating": stars, "propensity": p})
    return world, rng.random(users.size) < p


def test_estimates_are_sums_over_inverse_propensities():
    world, rated = chosen_ratings()
    table = world[rated].reset_index(drop=True)
    ratings = Ratings.from_frame(table[["user", "item", "rating"]], scale=range(1, 6))
    given = world[["user", "item", "propensity"]]
    result = evaluate(
        ratings, ["bias"], metrics=["rmse", "mae", "fcp"], propensity=given, keep_predictions=True
    )
    kept = result.predictions().merge(given)
    apart, p = (kept["rating"] - kept["prediction"]).abs(), kept["propensity"]
    n_pairs = kept["user"].nunique() * 40
    for metric, error in (("mae", apart), ("rmse", apart**2)):
        root = np.sqrt if metric == "rmse" else float
        ips, snips = ((error / p).sum() / total for total in (n_pairs, (1 / p).sum()))
        assert result.summary("ips").loc["bias", metric] == pytest.approx(root(ips))
        assert result.summary("snips").loc["bias", metric] == pytest.approx(root(snips))
        assert result.standings("snips")[metric, "bias"].half_width > 0
    assert result.averages("snips")["fcp"] == "micro"  # which has no such estimate
    assert "inverse propensities, given" in result.caption("snips")


def test_equal_propensities_change_nothing_by_snips():
    world, rated = chosen_ratings(1)
    ratings = Ratings.from_frame(world[rated][["user", "item", "rating"]], scale=range(1, 6))
    result = evaluate(
        ratings, ["bias", "histogram"], metrics=["mae", "log_loss"], n_resamples=0,
        propensity=world.assign(propensity=0.3),
    )  # fmt: skip
    pd.testing.assert_frame_equal(
        result.summary("snips").iloc[:, :2], result.summary("micro").iloc[:, :2], check_exact=False
    )


def test_true_propensities_find_the_error_on_all_pairs():
    """Where likes are rated more often, the plain error of the mean is far off; snips is near."""
    world, rated = chosen_ratings(2, n_users=400)
    ratings = Ratings.from_frame(world[rated][["user", "item", "rating"]], scale=range(1, 6))

    class Three:
        def fit(self, ratings):
            return self

        def predict(self, users, items):
            return np.full(len(users), 4.0)

    result = evaluate(ratings, {"three": Three()}, metrics=["mae"], propensity=world, n_resamples=0)
    truth = (world["rating"] - 4).abs().mean()
    plain = result.summary().loc["three", "mae"]
    snips = result.summary("snips").loc["three", "mae"]
    assert abs(snips - truth) < 0.25 * abs(plain - truth)


def test_popularity_weighs_rare_items_more():
    world, rated = chosen_ratings(3)
    ratings = Ratings.from_frame(world[rated][["user", "item", "rating"]], scale=range(1, 6))
    result = evaluate(
        ratings, ["mean"], metrics=["mae"], propensity="popularity", keep_predictions=True,
    )  # fmt: skip
    kept = result.predictions()
    train = world[rated].merge(kept[["user", "item"]], how="left", indicator=True)
    train = train[train["_merge"] == "left_only"]
    counts = train.groupby("item").size().reindex(range(40), fill_value=0) + 1
    weights = (1 / counts)[kept["item"]].to_numpy()
    apart = (kept["rating"] - kept["prediction"]).abs()
    said = result.summary("snips").loc["mean", "mae"]
    assert said == pytest.approx(np.average(apart, weights=weights))


def test_wrong_propensities_are_refused():
    world, rated = chosen_ratings(4)
    ratings = Ratings.from_frame(world[rated][["user", "item", "rating"]], scale=range(1, 6))
    options = {"metrics": ["mae"], "on_error": "raise"}
    with pytest.raises(ArgumentError, match='propensity must be "popularity" or a data frame'):
        evaluate(ratings, ["mean"], propensity="fame", **options)
    with pytest.raises(DataError, match=r"row 0: propensity 0 is not in \(0, 1\]"):
        evaluate(ratings, ["mean"], propensity=world.assign(propensity=0.0), **options)
    with pytest.raises(DataError, match="no propensity for user"):
        evaluate(ratings, ["mean"], propensity=world[:9], **options)
    with pytest.raises(DataError, match="no column 'propensity'"):
        evaluate(ratings, ["mean"], propensity=world[["user", "item"]], **options)
