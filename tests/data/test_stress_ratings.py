"""Every rating model on difficult ratings: finite, on the scale, probabilities that sum to one."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import OrdrecError
from ordrec.recommend import PersonalThresholds, make_model


def table(rows, scale=range(1, 6), times=None):
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    if times is not None:
        frame["timestamp"] = times
    return Ratings.from_frame(frame, scale=Scale(scale))


def grid(n_users, n_items, rating):
    """Every user rates most items."""
    return [(u, i, rating(u, i)) for u in range(n_users) for i in range(n_items) if (u + 2 * i) % 5]


ROWS = grid(8, 7, lambda u, i: 1 + (u * i + u) % 5)
N = len(ROWS)
RATINGS = {
    "all equal": table(grid(8, 7, lambda u, i: 3)),
    "all lowest": table(grid(8, 7, lambda u, i: 1)),
    "all highest": table(grid(8, 7, lambda u, i: 5)),
    "one user": table([(0, i, 1 + i % 5) for i in range(9)]),
    "one item": table([(u, 0, 1 + u % 5) for u in range(9)]),
    "one rating": table([(0, 0, 4)]),
    "two ratings": table([(0, 0, 1), (1, 1, 5)]),
    "every user once": table([(u, u, 1 + u % 5) for u in range(9)]),
    "two values": table(grid(8, 7, lambda u, i: (u + i) % 2), scale=[0, 1]),
    "thirty values": table(grid(8, 7, lambda u, i: (u * 7 + i) % 30), scale=range(30)),
    "a tiny scale": table(grid(8, 7, lambda u, i: 1e-12 * ((u + i) % 3)), scale=[0, 1e-12, 2e-12]),
    "a huge scale": table(grid(8, 7, lambda u, i: 1e12 * ((u + i) % 3)), scale=[0, 1e12, 2e12]),
    "an uneven scale": table(grid(8, 7, lambda u, i: [-1e6, 0, 1][(u + i) % 3]), [-1e6, 0, 1]),
    "times of zero": table(ROWS, times=np.zeros(N, dtype=np.int64)),
    "huge times": table(ROWS, times=np.full(N, 2**62) + np.arange(N)),
    "times of both ends": table(ROWS, times=np.where(np.arange(N) % 2, 2**62, 2**57)),
    "one rates all, others once": table(
        [(0, i, 1 + i % 5) for i in range(12)] + [(u, u, 5) for u in range(1, 6)]
    ),
    "users of opposite taste": table(grid(8, 7, lambda u, i: 1 + 4 * ((u + i) % 2))),
}
QUICK = {
    "mean": {},
    "histogram": {},
    "bias": {},
    "item-knn": {},
    "als": {"n_factors": 2, "n_iter": 2},
    "factors": {"n_factors": 2, "max_iter": 3},
    "per-user-svor": {},
    "per-user-logistic": {},
    "predictor-fast": {},
}
SLOW = {"predictor": {}}


def stress(name, options, ratings):
    """Fit, predict known and unknown pairs, and check; numpy must not warn."""
    if name == "PersonalThresholds":
        model = PersonalThresholds(make_model("bias"))
    else:
        model = make_model(name, **options)
    users = [*(list(ratings.user_ids) * 4)[:4], -99, ratings.user_ids[0]]
    items = [*(list(ratings.item_ids) * 4)[:4], ratings.item_ids[0], -99]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        if (name, ratings.n_ratings) == ("PersonalThresholds", 1):
            with pytest.raises(OrdrecError, match="two ratings are needed"):
                model.fit(ratings)
            return
        model.fit(ratings)
        if hasattr(model, "predict"):
            predicted = model.predict(users, items)
            low, high = ratings.scale.values[[0, -1]]
            slack = 1e-9 * (high - low)
            assert ((predicted >= low - slack) & (predicted <= high + slack)).all(), predicted
        if hasattr(model, "scores"):
            assert np.isfinite(model.scores(users, items)).all()
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(users, items)
            assert probabilities.shape == (6, ratings.scale.n_ranks)
            assert (probabilities >= 0).all()
            np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-8)
    for warning in said:
        if issubclass(warning.category, ConvergenceWarning):
            assert re.search(r"\d", str(warning.message)), warning.message


@pytest.mark.parametrize("case", RATINGS)
@pytest.mark.parametrize("name", [*QUICK, "PersonalThresholds"])
def test_nasty_ratings(name, case):
    stress(name, QUICK.get(name, {}), RATINGS[case])


@pytest.mark.parametrize("case", RATINGS)
def test_nasty_ratings_for_the_full_predictor(case):
    stress("predictor", SLOW["predictor"], RATINGS[case])


def test_the_cases_are_nasty_and_a_plain_one_passes():
    stress("bias", {}, synthetic_ratings(8, 7, n_ratings=30, seed=0))
    assert min(len(ratings) for ratings in RATINGS.values()) == 1
