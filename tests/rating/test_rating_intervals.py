"""Intervals of ratings, by the model's own distributions and conformal ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.ordinal import SVORIM
from ordrec.rating.intervals import ratings_between
from ordrec.recommend import (
    BiasModel,
    ConformalRatings,
    OrdinalFactors,
    PersonalThresholds,
    PerUserPredictor,
    RatingHistogram,
    RatingPredictor,
)

RATINGS = synthetic_ratings(60, 40, n_ratings=1500, seed=0)
USERS, ITEMS = [0, 1, 5, -7, 8], [0, 3, -7, 2, 7]


@pytest.mark.parametrize(
    "model",
    [
        RatingHistogram(),
        OrdinalFactors(n_factors=2, pattern=2, max_iter=3),
        RatingPredictor("large"),
        PersonalThresholds(BiasModel(), n_splits=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_interval_holds_its_probability(model) -> None:
    model = model.fit(RATINGS)
    p = model.predict_proba(USERS, ITEMS)
    values = np.asarray(RATINGS.scale.values)
    for coverage in (0.5, 0.9):
        ends = model.predict_interval(USERS, ITEMS, coverage)
        inside = (ends[:, :1] <= values) & (values <= ends[:, 1:])
        assert ((p * inside).sum(axis=1) >= coverage - 1e-9).all()
        for row, (low, high) in enumerate(ends):
            for shorter in (values > low, values < high):
                assert (p[row] * (inside[row] & shorter)).sum() < coverage
    with pytest.raises(ArgumentError, match="coverage"):
        model.predict_interval(USERS, ITEMS, coverage=1.5)


def test_times_are_passed_on() -> None:
    times = 1_000_000_000 + 1000 * np.arange(RATINGS.n_ratings)
    dated = Ratings(
        RATINGS.users, RATINGS.items, RATINGS.levels,
        scale=RATINGS.scale, user_ids=RATINGS.user_ids, item_ids=RATINGS.item_ids, timestamps=times,
    )  # fmt: skip
    model = OrdinalFactors(n_factors=2, pattern=2, max_iter=3).fit(dated)
    ends = model.predict_interval(USERS, ITEMS, timestamps=[1_000_900_000] * 5)
    assert ends.shape == (5, 2)


def test_bins_have_ends() -> None:
    scale = Scale.binned(np.linspace(0.0, 100.0, 500), bins=4)
    ends = ratings_between(scale, np.array([[0, 1], [3, 3]]))
    assert ends.tolist() == [[scale.edges[0], scale.edges[2]], [scale.edges[3], scale.edges[4]]]


def test_conformal_intervals_keep_the_promise() -> None:
    """On random splits, even for a model that always says the same."""
    hits, total = 0, 0
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(RATINGS.n_ratings)
        train, test = RATINGS.select(np.sort(order[:1100])), RATINGS.select(np.sort(order[1100:]))
        model = ConformalRatings(RatingHistogram(), coverage=0.75, random_state=seed).fit(train)
        users, items = test.user_ids[test.users], test.item_ids[test.items]
        ends = model.predict_interval(users, items)
        hits += int(((ends[:, 0] <= test.values) & (test.values <= ends[:, 1])).sum())
        total += test.n_ratings
    # each of the ten splits has a coverage of deviation sqrt(.75 * .25 / 112) beside its own noise
    assert hits / total > 0.75 - 4 * np.sqrt(0.75 * 0.25 * (1 / 112 + 1 / 400) / 10)


def test_the_model_given_is_not_changed() -> None:
    blank = OrdinalFactors(n_factors=2, pattern=2, max_iter=2)
    model = ConformalRatings(blank, calibration=0.2).fit(RATINGS)
    assert not hasattr(blank, "scale_")
    np.testing.assert_array_equal(model.predict(USERS, ITEMS), model.model_.predict(USERS, ITEMS))
    with pytest.raises(ArgumentError, match="predict_proba"):
        ConformalRatings(BiasModel()).fit(RATINGS)


def test_without_probabilities_there_are_no_intervals() -> None:
    model = PerUserPredictor(SVORIM(), min_ratings=5).fit(RATINGS)
    with pytest.raises(ArgumentError, match=r"PerUserPredictor has no probabilities.*Logistic"):
        model.predict_interval(USERS, ITEMS)


class Watched(RatingHistogram):
    """Remembers what it was fitted to and asked for."""

    seen: ClassVar[list[set[tuple[int, int]]]] = []

    def fit(self, ratings: Ratings) -> Watched:
        self.seen.append({*zip(ratings.users.tolist(), ratings.items.tolist(), strict=True)})
        return super().fit(ratings)

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        self.seen.append({*zip(list(users), list(items), strict=True)})
        return super().predict_proba(users, items)


def test_intervals_are_calibrated_on_ratings_that_training_has_not_seen() -> None:
    Watched.seen.clear()
    model = ConformalRatings(Watched(), calibration=0.3).fit(RATINGS)
    trained, apart = Watched.seen
    assert len(apart) == round(0.3 * RATINGS.n_ratings)
    assert len(trained) + len(apart) == RATINGS.n_ratings
    assert not trained & apart
    assert isinstance(model.model_, Watched)
