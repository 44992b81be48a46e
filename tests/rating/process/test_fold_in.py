"""Users who come later: how near `fold_in` is to training with them, on the bundled ratings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.datasets import load_dataset
from ordrec.errors import DataError
from ordrec.linalg.lapack import ADDRESSES, inverse_diagonal_factorised
from ordrec.rating.process import fold_in
from ordrec.recommend import ProcessPredictor

# In stars, of the expected rating, as the docstring of `fold_in` says: mean and most.
TOLERANCE = {"full": (0.15, 0.5), "fast": (0.02, 0.1)}


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    """Eighty users of the bundled ratings, and items with five ratings or more by them."""
    whole = load_dataset("ml-latest-small-2016", offline=True)
    keep = np.random.default_rng(1).permutation(whole.n_users)[:80]
    part = whole.select(np.isin(whole.users, keep))
    return part.select((part.item_counts >= 5)[part.items]).compact()


@pytest.mark.parametrize("preset", TOLERANCE)
@pytest.mark.parametrize("dated", [False, True])
def test_a_new_user_is_predicted_as_by_training_with_him(ratings, preset: str, dated: bool) -> None:
    """Weights are fixed, so that the two models differ in this user alone."""
    newcomers = [12, 31, 55]
    how = {"preset": preset, "learn": "defaults"}
    before = ProcessPredictor(**how).fit(ratings.select(~np.isin(ratings.users, newcomers)))
    mean, most = TOLERANCE[preset]
    for code in newcomers[:2]:
        others = [other for other in newcomers if other != code]
        trained = ProcessPredictor(**how).fit(ratings.select(~np.isin(ratings.users, others)))
        folded = before.fold_in(ratings.select(ratings.users == code))
        items = ratings.item_ids
        users = np.repeat(ratings.user_ids[code], len(items))
        times = np.full(len(items), np.median(ratings.timestamps[ratings.users == code]))
        a, b, c = (
            model.predict_proba(users, items, times if dated else None) @ ratings.scale.values
            for model in (folded, trained, before)
        )
        assert np.abs(a - b).mean() < mean
        assert np.abs(a - b).max() < most
        assert np.abs(a - b).mean() < 0.4 * np.abs(c - b).mean()  # c knows nothing of him


@pytest.mark.parametrize("preset", TOLERANCE)
def test_ratings_one_by_one_are_as_good_as_all_at_once(ratings, preset: str) -> None:
    model = ProcessPredictor(preset=preset, learn="defaults").fit(
        ratings.select(ratings.users != 12)
    )
    own = ratings.select(ratings.users == 12).to_frame().head(6)
    at_once = model.fold_in(Ratings.from_frame(own, scale=ratings.scale))
    one_by_one = model
    for row in own.itertuples():
        one_by_one = one_by_one.update(row.user, row.item, row.rating, row.timestamp)
    users, items = np.repeat(own["user"].iloc[0], 50), ratings.item_ids[:50]
    for times in (None, np.full(50, own["timestamp"].iloc[0])):
        assert np.allclose(
            at_once.predict_proba(users, items, times),
            one_by_one.predict_proba(users, items, times),
            atol=1e-9,
        )
    again = one_by_one.update(row.user, row.item, row.rating, row.timestamp)  # the same once more
    assert np.allclose(
        again.predict_proba(users, items), one_by_one.predict_proba(users, items), atol=1e-9
    )


def test_explanations_of_a_new_user_add_up_with_and_without_a_time(ratings) -> None:
    model = ProcessPredictor(learn="defaults").fit(ratings.select(ratings.users != 12))
    model = model.fold_in(ratings.select(ratings.users == 12))
    user = ratings.user_ids[12]
    rated = ratings.of_user(user)
    for item in (rated["item"].iloc[0], ratings.item_ids[~ratings.item_ids.isin(rated["item"])][0]):
        for time in (None, int(rated["timestamp"].iloc[0])):
            explained = model.explain(user, item, time)
            score = model._scores(model._resolve([user], [item], [time or 0]))
            score = model.units_.outward(score)[0]
            assert explained.score == pytest.approx(score, abs=1e-6)
            assert explained.components.sum() == pytest.approx(score, abs=1e-6)
            assert "because you gave" in str(explained)


def test_items_and_ratings_that_the_model_does_not_know(ratings) -> None:
    model = ProcessPredictor(preset="fast").fit(ratings)
    strange = pd.DataFrame({"user": [-5, -5], "item": [-1, -2], "rating": [5.0, 1.0]})
    folded = model.fold_in(Ratings.from_frame(strange, scale=ratings.scale))
    items = ratings.item_ids[:9]
    assert np.allclose(  # nothing is known of him but that he is there
        folded.predict_proba([-5] * 9, items), model.predict_proba([-6] * 9, items), atol=1e-6
    )
    assert not folded._known([-5], items[:1])[0].any()  # none of the ratings was of use
    with pytest.raises(DataError, match="not on the scale"):
        model.update(-5, items[0], 5.25)


def test_coefficients_and_the_diagonal_of_the_inverse_against_numpy():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    own, noise, right = root @ root.T, rng.uniform(0.5, 2.0, 6), rng.normal(size=6)
    inverse = np.linalg.inv(own + np.diag(noise))
    a, factor = fold_in._coefficients(own, noise, right)
    np.testing.assert_allclose(a, inverse @ right, rtol=1e-10)
    np.testing.assert_allclose(
        inverse_diagonal_factorised(factor, ADDRESSES), np.diag(inverse), rtol=1e-10
    )


@pytest.mark.parametrize("wrong", [-5.0, np.nan, np.inf])
def test_a_user_who_cannot_be_solved_for_is_refused_in_words(wrong):
    own = np.eye(3)
    own[1, 1] = wrong
    with pytest.raises(DataError, match="a user's 3 ratings cannot be solved for"):
        fold_in._coefficients(own, np.ones(3), np.ones(3))
