"""Events in the pattern of `OrdinalFactors`: what they bring, and that noise does no harm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.tasteful_events import SCALE, of_strangers, rated_and_viewed

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.evaluation import split_from_name
from ordrec.rating.factors.met import MetPairs, learnt_kinds
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.rating.factors.pattern import RatingPattern

RATINGS, VIEWS = rated_and_viewed()
BOTH = RATINGS.with_events(VIEWS)
QUICK = {"n_factors": 4, "pattern": 8, "symmetric": False, "n_jobs": 1}


@pytest.fixture(scope="module")
def model() -> OrdinalFactors:
    return OrdinalFactors(**QUICK).fit_with_kinds(BOTH, ("view",))


def errors(ratings: Ratings, kinds: tuple[str, ...]) -> np.ndarray:
    """Squared errors of held-out ratings."""
    split = next(split_from_name("holdout:0.3").split(ratings))
    fitted = OrdinalFactors(**QUICK).fit_with_kinds(split.train, kinds)
    test = split.test
    expected = fitted.predict(test.user_ids[test.users], test.item_ids[test.items])
    return (expected - test.values) ** 2


def test_views_lower_the_error_of_ratings() -> None:
    ratings, views = rated_and_viewed(n_users=600)
    both = ratings.with_events(views)
    with_views, alone = errors(both, ("view",)), errors(both, ())
    gain = alone - with_views
    assert gain.mean() > 2 * gain.std() / np.sqrt(gain.size)


def test_kinds_are_taken_that_are_better_than_none_and_than_those_of_strangers() -> None:
    """By invented errors of each fit: the rule itself."""
    rng, tried = np.random.default_rng(0), []
    ratings = BOTH.with_events(of_strangers(VIEWS).assign(kind="ping"))
    ratings = ratings.select(np.tile(np.arange(ratings.n_ratings), 6))  # enough for a decision

    def users_of(kind: str, one: Ratings) -> np.ndarray:
        return one.events.users[one.events.kinds == one.events.names.index(kind)]

    def invented(inner: Ratings, kinds: tuple[str, ...], outer: Ratings) -> np.ndarray:
        tried.append(kinds)
        own = np.array_equal(users_of("view", inner), users_of("view", ratings))
        better = 0.3 * ("view" in kinds and own) + 0.25 * ("ping" in kinds)
        return 2.0 - better + 0.01 * rng.normal(size=outer.n_ratings)

    assert learnt_kinds(ratings, invented, 0) == ("view",)
    first, second = ratings.events.names
    alone = (second,) if first == "ping" else ("view", "ping")
    assert tried == [(), (first,), (first,), alone, alone]


def test_events_that_repeat_the_ratings_change_nothing() -> None:
    repeated = RATINGS.with_events(RATINGS.to_frame()[["user", "item"]])
    pattern = RatingPattern.of(RATINGS, 6)
    met = MetPairs.of(repeated.events, ("event",), RATINGS.n_items)
    again = RatingPattern.of(repeated, 6, met)
    assert np.allclose(pattern.of_items, again.of_items, atol=1e-7)
    assert np.allclose(pattern.of_users, again.of_users, atol=1e-7)
    one, other = (OrdinalFactors(**QUICK).fit(each) for each in (RATINGS, repeated))
    pairs = [0, 1, 2], [0, 7, 9]
    assert np.array_equal(one.predict_proba(*pairs), other.predict_proba(*pairs))


def test_each_pair_is_met_once_and_only_by_the_kinds_that_count() -> None:
    more = pd.concat([VIEWS.iloc[:5].assign(kind="cart"), VIEWS.iloc[7:9].assign(kind="ping")])
    events = RATINGS.with_events(VIEWS.iloc[:7]).with_events(more).events
    n_items = RATINGS.n_items
    assert MetPairs.of(events, ("view", "cart"), n_items).users.size == 7
    assert MetPairs.of(events, ("ping",), n_items).users.size == 2
    assert MetPairs.of(events, (), n_items).users.size == 0


def test_files_and_new_users_keep_what_was_met(model: OrdinalFactors, tmp_path: Path) -> None:
    save(model, tmp_path / "m.ordrec")
    loaded = load(tmp_path / "m.ordrec")
    assert loaded.event_kinds_ == ("view",)
    pairs = [7, 8, 9], [3, 4, 5]
    assert np.allclose(loaded.predict_proba(*pairs), model.predict_proba(*pairs), atol=1e-6)

    # a new user with the ratings and the views of a known one has nearly the same predictions
    own, views = RATINGS.of_user(7).assign(user=900), VIEWS[VIEWS["user"] == 7].assign(user=900)
    bare = Ratings.from_frame(own, scale=SCALE)
    joined, alone = loaded.fold_in(bare.with_events(views)), loaded.fold_in(bare)
    items = list(range(40))
    there = model.predict([7] * 40, items)
    with_views, without = joined.predict([900] * 40, items), alone.predict([900] * 40, items)
    assert np.abs(with_views - there).mean() < 0.5 * np.abs(without - there).mean()

    # further ratings leave the other views in place
    code = joined.user_ids_.get_loc(900)
    assert (joined._met.users == code).sum() == len(views)
    seen = int(views["item"].iloc[0])
    updated = joined.update(900, seen, 5.0)
    assert (updated._met.users == code).sum() == len(views) - 1
    assert joined.without_users()._met.users.size == 0
