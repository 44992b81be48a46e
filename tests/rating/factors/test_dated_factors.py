"""Ordinal factors of dated ratings: moods that come and go, and ratings whose time is unknown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.factor_ratings import STARS, everything, log_loss, pairs_of, split

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.rating.factors.drift import STATIONARY_VARIANCE, by_time, smooth
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.rating.factors.row_updates import drift_sites
from ordrec.rating.factors.rows import GroupedRatings

SMALL = {"n_factors": 2, "pattern": 2, "max_iter": 8}
DAY = 86_400
LATER = 1_000_000_000 + 1000 * DAY  # long after all moods


def shuffled(ratings: Ratings) -> Ratings:
    return ratings.select(np.random.default_rng(0).permutation(len(ratings)))


def test_moods_of_a_sitting_are_found(moody):
    known, held = split(moody, 0.2)
    model = OrdinalFactors(**SMALL).fit(known)
    assert log_loss(model, held, held.timestamps) < log_loss(model, held) - 0.15
    wrong = shuffled(held).timestamps
    assert log_loss(model, held, wrong) > log_loss(model, held) - 0.02  # the time, not its use


def test_predictions_without_a_time_are_those_of_a_fit_without_times(moody, dated_model):
    plain = OrdinalFactors(**SMALL, use_time=False).fit(moody)
    assert plain.dated_ == ()
    pairs = everything(moody)
    expected = plain.predict_proba(*pairs)
    np.testing.assert_array_equal(dated_model.predict_proba(*pairs), expected)
    unknown = np.zeros(len(pairs[0]))
    np.testing.assert_array_equal(dated_model.predict_proba(*pairs, unknown), expected)
    np.testing.assert_array_equal(dated_model.predict_proba(*pairs, unknown * np.nan), expected)
    bare = OrdinalFactors(**SMALL).fit(moody.without_timestamps())
    np.testing.assert_array_equal(bare.predict_proba(*pairs), expected)
    np.testing.assert_array_equal(plain.predict_proba(*pairs, unknown + LATER), expected)


def test_times_matter_where_they_are_known(moody, dated_model):
    users, items = np.repeat([3, 7], 4), np.tile([1, 2], 4)
    times = np.array([0, 0, 1_000_000_100, 1_000_000_100] * 2)
    p = dated_model.predict_proba(users, items, times)
    plain = dated_model.predict_proba(users, items)
    known = times > 0
    np.testing.assert_array_equal(p[~known], plain[~known])
    assert (np.abs(p - plain)[known].max(axis=1) > 1e-3).all()
    order = np.random.default_rng(0).permutation(8)
    again = dated_model.predict_proba(users[order], items[order], times[order])
    np.testing.assert_array_equal(again, p[order])
    np.testing.assert_array_equal(
        dated_model.predict_proba(users[2:3], items[2:3], times[2:3]), p[2:3]
    )


def test_long_after_the_last_rating_nothing_is_known_of_the_mood(moody, dated_model):
    drift = dated_model.dated_[0].drift
    codes = np.arange(moody.n_users)
    far = drift.at(codes, np.full(codes.size, float(LATER) + 1e10))
    np.testing.assert_allclose(far, np.tile([0, STATIONARY_VARIANCE], (codes.size, 1)), atol=1e-6)
    near = drift.at(codes, np.full(codes.size, 1_000_000_000.0))
    assert np.abs(near[:, 0]).mean() > 0.2
    assert (near[:, 1] < 0.8 * STATIONARY_VARIANCE).all()


def test_strangers_have_no_mood_but_may_have_a_time(dated_model):
    p = dated_model.predict_proba(["nobody"] * 2, [1, 1], [1_000_000_100, LATER])
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_the_drift_of_a_fit_is_that_of_its_rows(moody, dated_model):
    """Sites and posteriors agree with the rows of users and items that are kept."""
    direction = dated_model.dated_[0]
    drift, n_users = direction.drift, moody.n_users
    grouped = GroupedRatings.of(moody.users, moody.items, moody.levels, n_users)
    np.testing.assert_array_equal(drift.times, moody.timestamps[grouped.order])
    weights, pulls, means, variances = np.empty((4, len(moody)), np.float32)
    rows = (side.expanded(np.arange(len(side.mean))) for side in (direction.users, direction.items))
    drift_sites((0, n_users), grouped, drift.smoothed, *rows, weights, pulls)
    smooth(
        0, n_users, *by_time(drift.users, drift.times, n_users), drift.times,
        weights, pulls, means, variances,
    )  # fmt: skip
    # one more step from where the sweeps ended changes little
    assert np.abs(means - drift.smoothed[:, 0]).mean() < 0.05
    assert np.abs(variances - drift.smoothed[:, 1]).mean() < 0.02
    asked = drift.at(drift.users, drift.times)
    np.testing.assert_allclose(asked, drift.smoothed, atol=2e-3)
    assert dated_model.directions_[0].drift is None


def test_any_number_of_threads_gives_the_same_numbers(moody, dated_model):
    pairs, times = pairs_of(moody), moody.timestamps
    expected = dated_model.predict_proba(*pairs, times)
    for n_jobs in (1, 3):
        again = OrdinalFactors(**SMALL, n_jobs=n_jobs).fit(moody)
        np.testing.assert_array_equal(again.predict_proba(*pairs, times), expected)


def test_the_order_of_the_ratings_does_not_matter(moody, dated_model):
    """Drift is kept by user: each item must get that of its own ratings."""
    again = OrdinalFactors(**SMALL).fit(shuffled(moody))
    pairs, times = pairs_of(moody), moody.timestamps
    np.testing.assert_allclose(
        again.predict_proba(*pairs, times), dated_model.predict_proba(*pairs, times), atol=1e-3
    )


# ---- newcomers with and without times ------------------------------------------------------------


def test_folding_in_a_training_user_gives_the_same_mood(moody, dated_model):
    mine = moody.select(moody.users == 5)
    folded = dated_model.fold_in(mine)
    pairs = pairs_of(mine)
    p, q = (m.predict_proba(*pairs, mine.timestamps) for m in (folded, dated_model))
    np.testing.assert_allclose(p, q, atol=0.015)
    rest = moody.select(moody.users != 5)
    np.testing.assert_array_equal(
        folded.predict_proba(*pairs_of(rest), rest.timestamps),
        dated_model.predict_proba(*pairs_of(rest), rest.timestamps),
    )


def test_a_newcomer_with_times_has_moods(moody):
    others = OrdinalFactors(**SMALL).fit(moody.select(moody.users >= 10).compact())
    known, held = split(moody.select(moody.users < 10), 0.3)
    folded = others.fold_in(known)
    assert log_loss(folded, held, held.timestamps) < log_loss(folded, held) - 0.1
    bare = others.without_users().fold_in(known)
    np.testing.assert_array_equal(
        bare.predict_proba(*pairs_of(held), held.timestamps),
        folded.predict_proba(*pairs_of(held), held.timestamps),
    )


def test_ratings_without_times_say_nothing_of_the_mood(moody, dated_model):
    mine = moody.select(moody.users == 5).without_timestamps().compact()
    folded = dated_model.fold_in(mine)
    when = np.array([1_000_000_100.0])
    for direction in folded.dated_:
        found = direction.drift.at(np.array([5]), when)
        np.testing.assert_allclose(found, [[0, STATIONARY_VARIANCE]], rtol=1e-6)
    zeros = mine.to_frame().assign(timestamp=0)
    same = dated_model.fold_in(Ratings.from_frame(zeros, scale=STARS))
    np.testing.assert_array_equal(
        same.predict_proba([5], [3], when), folded.predict_proba([5], [3], when)
    )
    rest = moody.select(moody.users != 5)
    np.testing.assert_array_equal(
        folded.predict_proba(*pairs_of(rest), rest.timestamps),
        dated_model.predict_proba(*pairs_of(rest), rest.timestamps),
    )


def test_an_update_changes_the_mood_of_the_time(moody, dated_model):
    now = LATER + 50 * DAY
    users, items = ["new"] * 6, [0, 1, 2, 3, 4, 5]
    moods = [dated_model.update(users, items, [value] * 6, range(now, now + 6)) for value in (1, 5)]
    values, asked = moody.scale.values, (["new"] * 2, [20, 20], [now + 60, now + 3000 * DAY])
    low, high = (model.predict_proba(*asked) @ values for model in moods)
    assert (high - low)[0] > (high - low)[1] + 0.2  # at the time, more than ever after
    known = dated_model.update(5, 0, 5, now)  # keeps the times of the user's other ratings
    start = known._history.start
    times = known._history.times[start[5] : start[6]]
    assert sorted(times)[:-1] == sorted(moody.timestamps[(moody.users == 5) & (moody.items != 0)])
    assert times[-1] == now


def test_the_history_has_the_times_of_the_drift(moody, dated_model):
    mine = moody.select(moody.users == 5)
    bare = dated_model.without_users()
    for model in (
        dated_model,
        dated_model.fold_in(mine),
        dated_model.fold_in(mine.without_timestamps()),
        dated_model.update([5, 10**6], [0, 10**6], [1, 2]),
        bare,
        bare.fold_in(mine.without_timestamps()),
        bare.fold_in(mine).update(10**6, 3, 4, LATER),
    ):
        drift = model.dated_[1].drift
        np.testing.assert_array_equal(model._history.start, drift.start)
        np.testing.assert_array_equal(model._history.times, drift.times)


def test_new_items_of_dated_ratings_are_learnt(moody):
    known = moody.select(moody.items >= 5).compact()
    model = OrdinalFactors(**SMALL).fit(known)
    rest, held = split(moody.select(moody.items < 5), 0.5)
    frame = pd.concat([known.to_frame(), rest.to_frame()])
    folded = model.fold_in(Ratings.from_frame(frame, scale=STARS))
    assert log_loss(folded, held, held.timestamps) < log_loss(model, held, held.timestamps) - 0.1
    again = model.fold_in(shuffled(Ratings.from_frame(frame, scale=STARS)))
    np.testing.assert_allclose(
        again.predict_proba(*pairs_of(held), held.timestamps),
        folded.predict_proba(*pairs_of(held), held.timestamps),
        atol=1e-4,
    )


# ---- arguments -----------------------------------------------------------------------------------


def test_use_time_needs_times(moody):
    with pytest.raises(ArgumentError, match="the ratings have no times"):
        OrdinalFactors(**SMALL, use_time=True).fit(moody.without_timestamps())
    frame = moody.to_frame().assign(timestamp=0)
    unknown = Ratings.from_frame(frame, scale=STARS)
    with pytest.raises(ArgumentError, match="the ratings have no times"):
        OrdinalFactors(**SMALL, use_time=True).fit(unknown)
    assert OrdinalFactors(n_factors=2, max_iter=1).fit(unknown).dated_ == ()


def test_times_pair_up_with_users(dated_model, model):
    for times in ([LATER], [LATER] * 3, LATER):
        for each in (dated_model, model):
            with pytest.raises(ArgumentError, match="timestamps must pair up with users"):
                each.predict_proba([1, 2], [1, 2], times)
