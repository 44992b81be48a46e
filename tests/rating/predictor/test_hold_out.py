"""The exponents of the pool are learnt on ratings that the inner members have not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.two_taste_ratings import ids, parts, two_taste_ratings

from ordrec.data import Ratings
from ordrec.rating import predictor as predictor_model
from ordrec.rating.pool import EQUAL, pooled
from ordrec.recommend import OrdinalFactors, ProcessPredictor, RatingPredictor

RATINGS = two_taste_ratings(n_users=80, n_items=30, share=0.9)  # enough to learn exponents from


def pairs_of(ratings: Ratings) -> set[tuple[Any, Any]]:
    return set(zip(*(own.tolist() for own in ids(ratings)), strict=True))


class Watch:
    """What the members are fitted to, and what they say about the held-out ratings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fitted_to: dict[str, list[Ratings]] = {"process": [], "factors": []}
        self.asked: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for name, kind, method in (
            ("process", ProcessPredictor, "follow_in_part"),
            ("factors", OrdinalFactors, "fit_with_kinds"),  # which `fit` calls
        ):
            self._record(monkeypatch, name, kind, method)

        def learnt(first: np.ndarray, second: np.ndarray, levels: np.ndarray) -> Any:
            self.asked.append((first.copy(), second.copy(), levels))
            return EQUAL

        monkeypatch.setattr(predictor_model, "learnt_pool", learnt)

    def _record(self, monkeypatch: pytest.MonkeyPatch, name: str, kind: Any, method: str) -> None:
        usual = getattr(kind, method)

        def recorded(model: Any, *arguments: Any) -> Any:
            self.fitted_to[name] += [each for each in arguments if isinstance(each, Ratings)]
            return usual(model, *arguments)

        monkeypatch.setattr(kind, method, recorded)


@pytest.mark.parametrize("dated", [False, True])
def test_the_inner_members_do_not_see_what_is_held_out(monkeypatch, dated: bool) -> None:
    ratings = two_taste_ratings(n_users=40, dated=dated)
    watch = Watch(monkeypatch)
    model = RatingPredictor(preset="fast").fit(ratings)
    (inner,) = watch.fitted_to["process"]
    whole, inner_too = watch.fitted_to["factors"]
    assert inner_too is inner
    assert pairs_of(whole) == pairs_of(ratings)
    held_out = pairs_of(ratings) - pairs_of(inner)
    assert 0.1 < len(held_out) / ratings.n_ratings < 0.2
    ((first, second, levels),) = watch.asked
    assert first.shape == second.shape == (levels.size, 5)
    assert 0.8 * len(held_out) < levels.size <= len(held_out)
    assert model.factors_._history.items.size == ratings.n_ratings  # the outer members know all


def test_a_held_out_rating_does_not_change_what_is_said_about_it(monkeypatch) -> None:
    """Neither in values nor in times: the members are the same to the last bit."""
    ratings = two_taste_ratings(n_users=40, dated=True)
    watch = Watch(monkeypatch)
    RatingPredictor(preset="fast").fit(ratings)
    held = ~np.isin(
        np.arange(ratings.n_ratings),
        np.flatnonzero([pair in pairs_of(watch.fitted_to["process"][0]) for pair in
                        zip(*(own.tolist() for own in ids(ratings)), strict=True)]),
    )  # fmt: skip
    assert held.any()
    levels = np.where(held, 4 - ratings.levels, ratings.levels)
    perturbed = ratings._replaced(levels=levels.astype(ratings.levels.dtype))
    RatingPredictor(preset="fast").fit(perturbed)
    half = len(watch.asked) // 2
    for one, two in zip(watch.asked[:half], watch.asked[half:], strict=True):
        assert np.array_equal(one[0], two[0])
        assert np.array_equal(one[1], two[1])
        assert np.array_equal(one[2], 4 - two[2])


def test_the_weights_are_those_of_the_members_with_times_and_without() -> None:
    ratings = two_taste_ratings(n_users=40, dated=True)
    model = RatingPredictor(preset="fast").fit(ratings)
    users, items = ids(ratings)
    users, items, times = users[:50], items[:50], np.asarray(ratings.timestamps)[:50]
    process, factors = model.process_model_, model.factors_
    for weights, member in (((1.0, 0.0), process), ((0.0, 1.0), factors)):
        model.pool_weights_ = weights
        for when in (None, times, np.where(np.arange(50) % 2, times, 0), np.full(50, np.nan)):
            np.testing.assert_allclose(
                model.predict_proba(users, items, when),
                member.predict_proba(users, items, when),
                rtol=1e-7,
                atol=1e-9,
            )
    model.pool_weights_ = (0.3, 0.6)
    for when in (None, times):
        members = (member.predict_proba(users, items, when) for member in (process, factors))
        assert np.array_equal(model.predict_proba(users, items, when), pooled(*members, (0.3, 0.6)))
    dated, undated = model.predict_proba(users, items, times), model.predict_proba(users, items)
    assert not np.allclose(dated, undated)
    some = model.predict_proba(users, items, np.where(np.arange(50) % 2, times, 0))
    np.testing.assert_allclose(some[1::2], dated[1::2], rtol=1e-9)
    np.testing.assert_allclose(some[::2], undated[::2], rtol=1e-9)


def test_times_that_are_not_to_be_used_make_no_difference() -> None:
    dated = two_taste_ratings(n_users=30, n_items=20, dated=True)
    model = RatingPredictor(preset="fast", use_time=False).fit(dated)
    users, items = ids(dated)
    assert np.array_equal(
        model.predict_proba(users, items, dated.timestamps), model.predict_proba(users, items)
    )


@pytest.mark.parametrize("n_ratings", [1, 2, 5])
def test_next_to_no_ratings_are_pooled_equally(n_ratings: int) -> None:
    few = RATINGS.select(np.arange(RATINGS.n_ratings) < n_ratings)
    model = RatingPredictor(preset="fast").fit(few)
    assert model.pool_weights_ == EQUAL
    p = model.predict_proba([100, -1], [500, -7])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()


def test_the_pool_is_about_as_good_as_the_better_member_and_the_same_each_time() -> None:
    train, test = parts(RATINGS)
    model = RatingPredictor(preset="fast", n_jobs=1).fit(train)
    assert model.pool_weights_ != EQUAL
    rows = np.arange(test.n_ratings)

    def loss(of: Any) -> float:
        return float(-np.log(of.predict_proba(*ids(test))[rows, test.levels]).mean())

    learnt = loss(model)
    assert learnt < min(loss(model.process_model_), loss(model.factors_)) + 0.03
    weights, model.pool_weights_ = model.pool_weights_, EQUAL
    assert learnt < loss(model)
    model.pool_weights_ = weights
    again = RatingPredictor(preset="fast", n_jobs=2).fit(train)
    assert again.pool_weights_ == model.pool_weights_
    assert np.array_equal(again.predict_proba(*ids(test)), model.predict_proba(*ids(test)))
