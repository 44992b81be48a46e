"""Users and items that join fitted ordinal factors: fold-in, update, side data, scales."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.factor_ratings import STARS, everything, log_loss, pairs_of

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.rating.factors.model import OrdinalFactors


def rated(user, items, values, scale=STARS, **columns) -> Ratings:
    frame = pd.DataFrame({"user": user, "item": items, "rating": values, **columns})
    return Ratings.from_frame(frame, scale=scale)


def of_user(model, user, items) -> np.ndarray:
    return model.predict_proba(np.repeat(user, len(items)), items)


def unchanged(before, after, users, items) -> None:
    np.testing.assert_array_equal(
        after.predict_proba(users, items), before.predict_proba(users, items)
    )


# ---- users ---------------------------------------------------------------------------------------


def test_folding_in_training_users_gives_their_rows(ratings, model):
    folded = model.fold_in(ratings.select(np.isin(ratings.users, [4, 9])))
    for one, other in zip(folded.directions_, model.directions_, strict=True):
        for array, expected in zip(one.users.arrays, other.users.arrays, strict=True):
            np.testing.assert_allclose(array[[4, 9]], expected[[4, 9]], rtol=0.03, atol=0.005)
            rest = np.setdiff1d(np.arange(81), [4, 9])
            np.testing.assert_array_equal(array[rest], expected[rest])
        for array, expected in zip(one.items.arrays, other.items.arrays, strict=True):
            np.testing.assert_array_equal(array, expected)
    items = ratings.item_ids
    np.testing.assert_allclose(of_user(folded, 4, items), of_user(model, 4, items), atol=0.002)


def test_a_newcomer_is_folded_in_near_a_refit_and_nobody_else_changes(ratings, model):
    others = OrdinalFactors(n_factors=4, pattern=6).fit(
        ratings.select(ratings.users != 4).compact()
    )
    mine = ratings.select(ratings.users == 4).to_frame()
    folded = others.fold_in(rated("new", mine["item"], mine["rating"]))
    items = ratings.item_ids
    refit, stranger = of_user(model, 4, items), of_user(others, "new", items)
    assert np.abs(of_user(folded, "new", items) - refit).mean() < 0.04
    assert np.abs(stranger - refit).mean() > 0.08
    unchanged(others, folded, *everything(ratings))  # user 4 is still unknown
    np.testing.assert_array_equal(of_user(folded, "nobody", items), stranger)
    assert "new" not in others.user_ids_  # the model itself is as it was


def test_without_its_users_a_model_folds_in_the_same(ratings, model):
    bare = model.without_users()
    assert len(bare.user_ids_) == 0
    np.testing.assert_array_equal(
        of_user(bare, 4, ratings.item_ids), of_user(model, "nobody", ratings.item_ids)
    )
    mine = ratings.select(ratings.users == 4).compact()
    one, other = bare.fold_in(mine), model.fold_in(mine)
    assert one.user_ids_.tolist() == [4]
    unchanged(other, one, np.repeat(4, 60), ratings.item_ids)


def test_a_scale_of_its_own_is_converted_by_value(ratings, model):
    items = ratings.item_ids[:3]
    whole = model.fold_in(rated("new", items, [3, 4, 5]))
    part = model.fold_in(rated("new", items, [3, 4, 5], scale=Scale([3, 4, 5])))
    unchanged(whole, part, np.repeat("new", 60), ratings.item_ids)
    low = model.fold_in(rated("new", items, [1, 2, 3]))
    assert np.abs(of_user(low, "new", items) - of_user(part, "new", items)).max() > 0.1
    with pytest.raises(DataError, match=r"row 0: rating 3\.5 is not on the declared scale"):
        model.fold_in(rated("new", items, [3.5, 4, 5], scale=Scale([3.5, 4, 5])))


def test_no_ratings_change_nothing(ratings, model):
    folded = model.fold_in(ratings.select(np.zeros(0, dtype=int)))
    unchanged(model, folded, *everything(ratings))


# ---- items ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_new_items(described):
    """Ratings without 15 items and 20 users, with half of the ratings of those items, the rest."""
    warm = (described.users >= 20) & (described.items >= 15)
    of_new = (described.users >= 20) & (described.items < 15)
    half = np.random.default_rng(1).random(len(described)) < 0.5
    known = described.select(warm).compact()
    return known, described.select(warm | (of_new & half)), described.select(of_new & ~half)


@pytest.fixture(scope="module")
def before(with_new_items) -> OrdinalFactors:
    return OrdinalFactors(n_factors=4, pattern=4).fit(with_new_items[0])


def test_new_items_are_folded_in_near_a_fit_that_had_them(with_new_items, before):
    _, both, later = with_new_items
    folded = before.fold_in(both)
    refit = OrdinalFactors(n_factors=4, pattern=4).fit(both)
    losses = {name: log_loss(m, later) for name, m in [("old", before), ("new", folded)]}
    best = log_loss(refit, later)
    assert losses["old"] > best + 0.4
    assert losses["new"] < best + 0.05
    pairs = pairs_of(later)
    change = np.abs(folded.predict_proba(*pairs) - refit.predict_proba(*pairs))
    assert change.mean() < 0.03
    rest = folded.directions_[0].items.mean[: len(before.item_ids_)]
    np.testing.assert_array_equal(rest, before.directions_[0].items.mean[:-1])


def test_users_who_rated_new_items_fit_to_them(with_new_items, before):
    """Folded in again, when the new items are known ones, the users are the same."""
    _, both, later = with_new_items
    folded = before.fold_in(both)
    unchanged(folded, folded.fold_in(both), *pairs_of(later))


def test_a_new_item_is_learnt_from_known_and_from_new_users(ratings, model):
    users = ratings.user_ids[:30]
    known = [model.update(users, ["fresh"] * 30, [value] * 30) for value in (1, 5)]
    folded = [
        one.fold_in(rated([f"n{k}" for k in range(30)], "other", value))
        for one, value in zip(known, (5, 1), strict=True)
    ]
    values = ratings.scale.values
    for item, at in (("fresh", 0), ("other", 1)):
        low, high = (
            m.predict_proba([50, "nobody"], [item, item]) @ values
            for m in (folded if at == 0 else folded[::-1])
        )
        assert (high - low > 1).all()
    assert folded[0].item_ids_[-2:].tolist() == ["fresh", "other"]
    bystanders = everything(ratings.select(ratings.users >= 30).compact())
    unchanged(model, folded[0], *bystanders)


def test_users_of_new_items_alone_are_known_by_them(model):
    folded = model.fold_in(rated(["a", "b"], ["x", "x"], [1, 5]))
    p = folded.predict_proba(["a", "b"], ["x", "x"]) @ STARS.values
    assert p[1] > p[0] + 0.3


# ---- side data -----------------------------------------------------------------------------------


def test_side_data_predict_users_and_items_without_ratings(described):
    cold = described.items < 15, described.users < 20
    known = described.select(~cold[0] & ~cold[1])
    with_side = OrdinalFactors(n_factors=4, pattern=4).fit(known)
    without = OrdinalFactors(n_factors=4, pattern=4, use_side=False).fit(known)
    assert with_side.side_columns_ == {
        "user": {"age": "numeric"},
        "item": {"genre": "categorical", "year": "numeric"},
    }
    assert without.side_columns_ == {}
    for rows in (cold[0] & ~cold[1], ~cold[0] & cold[1], cold[0] & cold[1]):
        there = described.select(rows)
        assert log_loss(with_side, there) < log_loss(without, there) - 0.15


def test_ids_without_ratings_join_by_their_side_rows(described, before):
    cold = described.select((described.users < 20) | (described.items < 15))
    nothing = described.select(np.zeros(0, dtype=int))  # but all ids and side tables
    joined = before.fold_in(nothing)
    assert set(joined.user_ids_) == set(described.user_ids)
    assert log_loss(joined, cold) < log_loss(before, cold) - 0.15
    known = described.select((described.users >= 20) & (described.items >= 15)).compact()
    unchanged(before, joined, *everything(known))
    # as a fit says of ids that had side rows and no ratings when it was done
    kept = described.select((described.users >= 20) & (described.items >= 15))
    refit = OrdinalFactors(n_factors=4, pattern=4).fit(kept)
    pairs = everything(described)
    change = np.abs(joined.predict_proba(*pairs) - refit.predict_proba(*pairs))
    assert change.mean() < 0.005  # not 0: with more items, factors start elsewhere


@pytest.mark.parametrize("side", ["user", "item"])
def test_side_data_help_newcomers_of_few_ratings(described, before, side):
    """A tenth of their ratings, with their side rows and without."""
    new_users, new_items = described.users < 20, described.items < 15
    theirs = new_users & ~new_items if side == "user" else new_items & ~new_users
    tenth = np.random.default_rng(0).random(len(described)) < 0.1
    few = described.select((~new_users & ~new_items) | (theirs & tenth))
    rest = described.select(theirs & ~tenth)
    bare = Ratings.from_frame(few.to_frame(), scale=STARS)
    assert log_loss(before.fold_in(few), rest) < log_loss(before.fold_in(bare), rest) - 0.1


def test_side_columns_that_newcomers_lack_count_as_missing(before):
    users = pd.DataFrame({"height": [1.8]}, index=pd.Index(["tall"], name="user"))
    ratings = Ratings.from_frame(
        pd.DataFrame({"user": ["tall"], "item": [20], "rating": [4]}), scale=STARS, user_table=users
    )
    bare = before.fold_in(rated("plain", [20], [4]))
    items = before.item_ids_
    found = of_user(before.fold_in(ratings), "tall", items)
    np.testing.assert_array_equal(found, of_user(bare, "plain", items))


def test_declared_kinds_are_obeyed(described):
    model = OrdinalFactors(n_factors=2, pattern=2, max_iter=2, side_kinds={"year": "ignore"})
    columns = model.fit(described).side_columns_
    assert columns["item"] == {"genre": "categorical", "year": "ignored: as declared"}


# ---- updates -------------------------------------------------------------------------------------


def test_an_update_adds_to_what_the_user_rated(ratings, model):
    mine = ratings.select(ratings.users == 4).to_frame()[["user", "item", "rating"]]
    fresh = np.setdiff1d(ratings.item_ids, mine["item"])[:2]
    more = pd.DataFrame({"user": 4, "item": fresh, "rating": [1.0, 5.0]})
    wanted = model.fold_in(Ratings.from_frame(pd.concat([mine, more]), scale=STARS))
    together = model.update([4, 4], fresh, [1, 5])
    one_by_one = model.update(4, fresh[0], 1).update(4, fresh[1], 5.0)
    for updated in (together, one_by_one):
        np.testing.assert_allclose(
            of_user(updated, 4, ratings.item_ids), of_user(wanted, 4, ratings.item_ids), atol=1e-6
        )
    others = ratings.select(ratings.users != 4).compact()
    unchanged(model, together, *everything(others))


def test_an_update_replaces_a_rating_of_the_same_pair(ratings, model):
    mine = ratings.select(ratings.users == 4).to_frame()[["user", "item", "rating"]]
    item = mine["item"].iloc[3]
    changed = mine.assign(rating=mine["rating"].where(mine["item"] != item, 1.0))
    wanted = model.fold_in(Ratings.from_frame(changed, scale=STARS))
    updated = model.update(4, item, 5).update(4, item, 1)
    np.testing.assert_allclose(
        of_user(updated, 4, ratings.item_ids), of_user(wanted, 4, ratings.item_ids), atol=1e-6
    )
    twice = model.update([4, 4], [item, item], [5, 1])  # the last word counts
    unchanged(updated, twice, np.repeat(4, 60), ratings.item_ids)


def test_updates_take_new_users_and_items_and_text_ids(ratings, model):
    updated = model.update("you", 3, 5).update("you", "new", 1).update("me", "new", 1)
    assert {"you", "me"} <= set(updated.user_ids_)
    assert "new" in updated.item_ids_
    values = ratings.scale.values
    p = updated.predict_proba(["you", "nobody"], ["new", 3]) @ values
    assert p[0] < model.predict_proba(["you"], ["new"]) @ values
    items, levels = updated._history.of_user(updated.user_ids_.get_loc("you"))
    assert (items.tolist(), levels.tolist()) == ([3, 60], [4, 0])


def test_updates_that_make_no_sense(model):
    with pytest.raises(ArgumentError, match="must pair up, got 2, 1, 1 and 2"):
        model.update([1, 2], [3], [5])
    with pytest.raises(ArgumentError, match="must pair up, got 1, 1, 1 and 2"):
        model.update(1, 3, 5, [1, 2])
    with pytest.raises(DataError, match=r"value 5\.5 is not on the scale"):
        model.update(1, 3, 5.5)
    with pytest.raises(DataError, match="ratings must be numbers on the scale"):
        model.update(1, 3, "good")
    with pytest.raises(DataError, match="no ratings"):
        model.update([], [], [])


def test_newcomers_where_everybody_gave_as_many_ratings() -> None:
    """Equal numbers have a spread of rounding, which once made a rating of 5 lower all others."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(120), 25)
    items = np.concatenate([rng.choice(60, 25, replace=False) for _ in range(120)])
    mean = 3.5 + 0.5 * rng.normal(size=120)[users] + 0.6 * rng.normal(size=60)[items]
    stars = np.clip(np.rint(mean + 0.8 * rng.normal(size=users.size)), 1, 5)
    frame = pd.DataFrame({"user": users, "item": items, "rating": stars})
    model = OrdinalFactors(n_factors=2, use_time=False, max_iter=6).fit(
        Ratings.from_frame(frame, scale=STARS)
    )
    everything = np.arange(60)
    before = model.predict(["nobody"] * 60, everything)
    low, high = (
        model.fold_in(rated("new", [7], [stars])).predict(["new"] * 60, everything)
        for stars in (1, 5)
    )
    assert low.mean() < before.mean() < high.mean()
    assert high.mean() - low.mean() < 2.0
