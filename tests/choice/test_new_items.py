"""Items without ratings in lists, scored from their columns of the item table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from ordrec import load, save
from ordrec.choice.new_items import NewItems, _Regression
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.recommend import ChoiceMixture, OrderedChoice, Recommender

N_USERS, N_ITEMS, N_NEW, KINDS = 150, 260, 6, 5
QUICK = {"regularization": 50.0, "n_factors": 6, "mix": 0.35, "cold": 16.0, "n_jobs": 1}


def shop(seed: int = 0, dated: bool = False) -> tuple[Ratings, pd.DataFrame]:
    """Users who pick what is of their own kind, and a table of kinds with unsold items."""
    rng = np.random.default_rng(seed)
    kind = np.arange(N_ITEMS + N_NEW) % KINDS
    table = pd.DataFrame({"item": np.arange(kind.size), "kind": [f"kind {k}" for k in kind]})
    users, items = np.nonzero(
        rng.random((N_USERS, N_ITEMS))
        < np.where(kind[:N_ITEMS] == np.arange(N_USERS)[:, None] % KINDS, 0.35, 0.04)
    )
    frame = pd.DataFrame({"user": users, "item": items})
    if dated:
        frame["timestamp"] = 1_000_000 + 86_400 * rng.integers(0, 900, users.size)
    return Ratings.from_frame(frame, rating=None, item_table=table, new_items=True), table


SOLD, TABLE = shop()
NEW = np.arange(N_ITEMS, N_ITEMS + N_NEW)


@pytest.fixture(scope="module")
def mixture() -> ChoiceMixture:
    return ChoiceMixture(**QUICK).fit(SOLD)


def test_unsold_items_of_the_table_are_items(mixture) -> None:
    assert SOLD.n_items == N_ITEMS + N_NEW
    assert SOLD.item_counts[NEW].sum() == 0
    left_out = Ratings.from_frame(SOLD.to_frame()[["user", "item"]], rating=None, item_table=TABLE)
    assert left_out.n_items == N_ITEMS
    assert mixture.new_items_.items.tolist() == NEW.tolist()


def test_new_items_are_listed_for_those_who_pick_their_kind(mixture) -> None:
    for user in range(KINDS):
        listed = mixture.recommend(user, N_NEW, only=NEW)
        assert listed["item"].iloc[0] % KINDS == user
        assert listed["p_pick"].between(0, 1).all()


def test_a_new_item_is_scored_like_those_with_the_same_columns(mixture) -> None:
    """Two new items of one kind have one score, whatever their ids."""
    scores = mixture.scores_block([3])[0]
    twins = NEW[NEW[0] % KINDS == NEW % KINDS]
    assert twins.size == 2
    assert scores[twins[0]] == scores[twins[1]]
    # users pick .35 of their kind and .04 of others; in the time to come a quarter of that
    p = mixture.p_pick(mixture.score_users(np.arange(N_USERS)), SOLD.user_counts)[:, NEW]
    own = np.arange(N_USERS)[:, None] % KINDS == NEW % KINDS
    assert 0.6 < p[own].mean() / (0.25 * 0.35) < 1.6
    assert p[~own].mean() < 0.03


@pytest.mark.parametrize("future", ["next", "latest"])
def test_chances_of_new_items_are_for_the_picks_that_are_asked_for(future: str) -> None:
    """One pick, or a quarter as many as the user has made."""
    rng = np.random.default_rng(3)
    frame = SOLD.to_frame()[["user", "item"]].assign(
        timestamp=rng.integers(1, 10**6, SOLD.n_ratings)
    )
    dated = Ratings.from_frame(frame, rating=None)
    dated = dated.with_side_tables(item_table=TABLE, new_items=True)
    model = OrderedChoice(future, n_factors=4).fit(dated)
    codes = np.arange(N_USERS)
    new, counts = model.new_items_, dated.user_counts
    listed = model.calibration_.p_pick(model.score_users(codes)[:, new.items], counts)
    als = model.mixture_.als_
    if model.order_ is None:  # the factors that are kept, in half precision
        factors = als.factors_of_users(codes)
    else:
        factors = als.factors_of(model.history_rows(codes))
    raw = np.log(np.maximum(factors @ new.factors.T, 0) + 0.01)
    among_all = new.calibration.p_pick(raw.astype(float), counts)
    share = 1 / counts if future == "next" else np.full(N_USERS, 0.25)
    np.testing.assert_allclose(listed, share[:, None] * among_all, rtol=1e-3)


def test_what_is_predicted_is_the_ridge_regression() -> None:
    rng = np.random.default_rng(1)
    X, Q = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    fit = _Regression.of(X, Q, 2.0)
    stacked = np.vstack([X - X.mean(axis=0), np.sqrt(2.0) * np.eye(3)])
    by_rows = np.linalg.lstsq(stacked, np.vstack([Q - Q.mean(axis=0), np.zeros((3, 2))]))[0]
    expected = Q.mean(axis=0) + (X[:4] - X.mean(axis=0)) @ by_rows
    np.testing.assert_allclose(fit.predicted(X[:4]), expected, rtol=1e-5)


def test_p_pick_and_order_agree(mixture) -> None:
    """New and other items are in one order by the chance of being picked."""
    listed = mixture.recommend(2, 60)
    assert set(listed["item"]) & set(NEW.tolist())
    assert (np.diff(listed["p_pick"]) <= 1e-12).all()


def test_a_share_of_the_list_can_be_asked_for(mixture) -> None:
    without = mixture.recommend(1, 10)["item"]
    wanted = mixture.recommend_all(10, explore=0.25)
    counts = wanted["item"].isin(NEW).groupby(wanted["user"]).sum()
    assert counts.min() >= 3  # a quarter of ten, rounded up
    own = mixture.recommend(1, 10, explore=0.25)["item"]
    kept = [item for item in own if item not in NEW]
    assert kept == [item for item in without if item not in NEW][: len(kept)]
    assert mixture.recommend(1, 3, explore=1.0)["item"].isin(NEW).all()
    with pytest.raises(ArgumentError, match="explore must lie between 0 and 1"):
        mixture.recommend(1, explore=2)


def test_rules_hold_for_explored_items(mixture) -> None:
    hidden = NEW[:4]
    listed = mixture.recommend(1, 5, explore=0.4, exclude=hidden)
    assert not set(listed["item"]) & set(hidden.tolist())
    assert listed["item"].isin(NEW).sum() == 2
    capped = mixture.recommend(1, 5, explore=0.4, at_most={"kind": 1})
    assert capped["item"].isin(NEW).sum() == 2
    assert (capped["item"] % KINDS).is_unique


def test_models_without_new_items_say_so() -> None:
    bare = ChoiceMixture(**QUICK).fit(SOLD.compact())
    assert bare.new_items_ is None
    with pytest.raises(ArgumentError, match="has no new items to list"):
        bare.recommend(0, explore=0.1)


def test_a_table_that_says_nothing_brings_no_new_items() -> None:
    titles = TABLE[["item"]].assign(title=[f"Thing {k}" for k in TABLE["item"]])
    frame = SOLD.to_frame()[["user", "item"]]
    named = Ratings.from_frame(frame, rating=None, item_table=titles, new_items=True)
    model = ChoiceMixture(**QUICK).fit(named)
    assert model.new_items_ is None
    assert not model.recommend(0, 300)["item"].isin(NEW).any()


def test_other_items_keep_their_scores(mixture) -> None:
    bare = ChoiceMixture(**QUICK).fit(SOLD.compact())
    own = mixture.score_users(np.arange(5))[:, :N_ITEMS]
    np.testing.assert_allclose(own, bare.score_users(np.arange(5)), rtol=1e-6)


@pytest.mark.parametrize("dated", [False, True])
def test_new_items_are_stored_and_folded_in(dated: bool, tmp_path) -> None:
    sold, _ = shop(3, dated)
    model = Recommender(OrderedChoice(n_factors=6, n_jobs=1)).fit(sold)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    expected = model.recommend(4, 6, explore=0.5)
    assert expected["item"].isin(NEW).sum() >= 3
    pd.testing.assert_frame_equal(again.recommend(4, 6, explore=0.5), expected)
    arrived = pd.DataFrame({"item": [9001, 9002], "kind": ["kind 1", "kind 2"]})
    one = Ratings.from_frame(
        pd.DataFrame({"user": 999, "item": [1, 6, 11, 16, 21]}), rating=None,
        item_table=arrived, new_items=True,
    )  # fmt: skip
    more = again.fold_in(one)
    listed = more.recommend(999, 2, only=[9001, 9002])
    assert listed["item"].tolist() == [9001, 9002]  # of the kind of the five
    assert len(more.item_ids_) == len(again.item_ids_) + 2
    before, after = again.recommend(4, 5), more.recommend(4, 5, exclude=[9001, 9002])
    pd.testing.assert_frame_equal(before, after)
    save(more, tmp_path / "more")
    pd.testing.assert_frame_equal(load(tmp_path / "more").recommend(4), more.recommend(4))


def test_a_text_among_numbered_items_is_refused() -> None:
    wrong = pd.DataFrame({"item": [1, "new"], "kind": ["a", "b"]})
    with pytest.raises(DataError, match="item_table: id 'new' is no whole number"):
        SOLD.with_side_tables(item_table=wrong, new_items=True)


def test_few_items_cannot_choose_anything() -> None:
    few = SOLD.select(SOLD.items < 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ChoiceMixture(**QUICK).fit(few)
    assert model.new_items_ is None


def test_chances_of_new_items_are_those_of_items_set_aside() -> None:
    """Of items that training never saw, as many are picked as their chances say."""
    sold, _ = shop(5)
    held = np.isin(sold.items, np.random.default_rng(0).permutation(N_ITEMS)[:40])
    model = ChoiceMixture(**QUICK).fit(sold.select(~held))
    new: NewItems = model.new_items_
    raw = np.log(np.maximum(model.als_.user_factors_ @ new.factors.T, 0) + 0.01)
    p = new.calibration.p_pick(raw.astype(float), sold.select(~held).user_counts)
    aside = np.unique(sold.items[held])
    columns = np.isin(new.items, aside)
    hits = sold.select(held).n_ratings
    top = np.sort(p[:, columns], axis=1)[:, -10:].sum()
    assert columns.sum() == aside.size
    assert 0.5 * hits < p[:, columns].sum() < 2.0 * hits
    assert top > 0.3 * hits


def test_an_item_of_which_something_is_known_is_listed_and_others_are_not() -> None:
    """A gap in one of two columns is no reason to leave an item out; gaps in all of them are."""
    table = TABLE.assign(maker=[f"maker {k % 7}" for k in range(len(TABLE))]).astype(object)
    table.loc[table.index[NEW[0]], "maker"] = None
    table.loc[table.index[NEW[1]], ["kind", "maker"]] = None
    sold = SOLD.with_side_tables(item_table=table)
    model = ChoiceMixture(**QUICK).fit(sold)
    assert model.new_items_.items.tolist() == [NEW[0], *NEW[2:]]


def test_titles_of_new_items_are_folded_in() -> None:
    sold, table = shop(3, False)
    titled = table.set_index("item").assign(title=lambda frame: [f"No. {k}" for k in frame.index])
    sold = sold.with_side_tables(item_table=titled, new_items=True)
    model = Recommender(ChoiceMixture(**QUICK)).fit(sold)
    arrived = pd.DataFrame({"item": [1, 9001], "kind": "kind 1", "title": ["No. 1", "The last"]})
    bought = pd.DataFrame({"user": 999, "item": [1, 6, 11]})
    one = Ratings.from_frame(bought, rating=None, item_table=arrived, new_items=True)
    more = model.fold_in(one)
    assert more.recommend(4, 1, only=[9001])["title"].tolist() == ["The last"]
    assert more.recommend(999, 1, only=[2])["title"].tolist() == ["No. 2"]
    known = Ratings.from_frame(bought, rating=None)
    assert model.fold_in(known).recommend(999, 1, only=[2])["title"].tolist() == ["No. 2"]
