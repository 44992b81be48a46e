"""Events in the histories of choice models: what they bring, and that noise does no harm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from support.tasteful_events import N_ITEMS, N_USERS, SCALE, of_strangers, rated_and_viewed

from ordrec import load, save
from ordrec.choice.events import EventHistories, is_event, merged_rows
from ordrec.choice.inner_splits import inner_splits
from ordrec.data import Ratings
from ordrec.errors import DataError, OrdrecWarning
from ordrec.evaluation import split_from_name
from ordrec.recommend import EASE, ChoiceMixture, ImplicitALS, OrderedChoice, Popularity

RATINGS, VIEWS = rated_and_viewed()
BOTH = RATINGS.with_events(VIEWS)
QUICK = {"n_factors": 6, "n_jobs": 1}


@pytest.fixture(scope="module")
def ease() -> EASE:
    return EASE(n_jobs=1).fit(BOTH)


def test_views_have_a_weight_and_make_better_lists(ease: EASE) -> None:
    assert ease.event_weights_["view"] > 0
    known = next(split_from_name("holdout:0.3").split(BOTH))
    alone = EASE(n_jobs=1).fit(known.train.without_events())
    with_views = EASE(n_jobs=1).fit(known.train)
    hidden = known.train_and_given().events_matrix() + known.train.matrix("one").T
    users = np.unique(known.test.users)
    found = []
    for model in (alone, with_views):
        scores = model.score_users(users)
        scores[hidden[users].toarray() > 0] = -np.inf
        best = np.argsort(-scores, axis=1)[:, :5]
        picked = known.test.matrix("one").T.tocsr()[users].toarray()
        found.append(np.take_along_axis(picked, best, axis=1).mean())
    assert found[1] > 1.1 * found[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_events_of_strangers_have_no_weight_and_change_nothing(seed: int) -> None:
    noisy = RATINGS.with_events(of_strangers(VIEWS, seed))
    model = EASE(n_jobs=1).fit(noisy)
    assert model.event_weights_ == {"view": 0.0}
    plain = EASE(n_jobs=1).fit(RATINGS)
    users, items = np.repeat([0, 5], RATINGS.n_items), np.tile(RATINGS.item_ids, 2)
    assert np.array_equal(model.scores(users, items), plain.scores(users, items))
    assert model.recommend(3)["item"].tolist() == plain.recommend(3)["item"].tolist()


def test_each_kind_has_its_own_weight() -> None:
    mixed = pd.concat([VIEWS, of_strangers(VIEWS, 4).assign(kind="ping")])
    weights = EASE(n_jobs=1).fit(RATINGS.with_events(mixed)).event_weights_
    assert weights["view"] > 0 == weights["ping"]


def test_the_entries_by_hand() -> None:
    events = pd.DataFrame(
        {"user": [0, 0, 0, 1], "item": [1, 1, 2, 2], "kind": ["view", "cart", "view", "ping"],
         "count": [4, 1, 2, 1], "timestamp": [7, 9, 8, 5]}
    )  # fmt: skip
    rated = pd.DataFrame({"user": [0, 1], "item": [0, 1], "rating": [5, 3]})
    ratings = Ratings.from_frame(rated, scale=SCALE).with_events(events)
    found = EventHistories.of(ratings, {"view": 0.5, "cart": 1.0, "ping": 0.0})
    expected = [[0.0, max(0.5 * (1 + np.log(4)), 1.0), 0.5 * (1 + np.log(2))], [0.0] * 3]
    assert np.allclose(found.entries.toarray(), expected)
    assert found.times.tolist() == [7.0, 8.0]


def test_events_are_never_set_aside() -> None:
    history = sparse.csr_array(np.ones((40, 12)))
    events = sparse.csr_array(np.tile([1.0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1], (40, 1)))
    known = is_event(history, events)
    for times in (None, np.arange(history.nnz, dtype=float)):
        (split,) = inner_splits(
            history, 1, 0.25, np.random.default_rng(0), times=times, max_users=40, events=known
        )
        assert split.held.nnz == 40 * 2
        assert not split.held.multiply(events).nnz
        assert split.given.nnz + split.held.nnz == history.nnz


def test_merged_rows_keep_zeros_and_say_their_order() -> None:
    first = sparse.csr_array(([1.0, 0.0], ([0, 1], [2, 0])), shape=(2, 3))
    second = sparse.csr_array(([5.0, 6.0], ([0, 1], [0, 1])), shape=(2, 3))
    table, order = merged_rows(first, second)
    assert table.indices.tolist() == [0, 2, 0, 1]
    assert np.concatenate([first.data, second.data])[order].tolist() == table.data.tolist()


def test_lists_leave_out_what_was_viewed_and_ratings_stay_what_they_were(ease: EASE) -> None:
    viewed = set(VIEWS.loc[VIEWS["user"] == 2, "item"])
    assert not viewed & set(ease.recommend(2, n=N_ITEMS)["item"])
    assert viewed <= set(ease.recommend(2, n=N_ITEMS, include_rated=True)["item"])
    pd.testing.assert_frame_equal(
        ease.known_ratings().of_user(2).sort_values("item", ignore_index=True),
        RATINGS.of_user(2).sort_values("item", ignore_index=True),
        check_dtype=False,
    )
    reasons = ease.reasons(2, int(ease.recommend(2)["item"][0]))
    assert set(reasons.loc[reasons["rating"].isna(), "item"]) <= viewed
    assert reasons["rating"].notna().sum() == len(RATINGS.of_user(2))


def test_a_user_of_views_alone_has_a_list_of_their_own() -> None:
    more = pd.concat(
        [VIEWS, pd.DataFrame({"user": N_USERS, "item": [3, 8, 13, 18], "kind": "view"})]
    )
    model = EASE(n_jobs=1).fit(RATINGS.with_events(more))
    assert (model.recommend(N_USERS, n=5)["item"] % 5 == 3).all()


@pytest.mark.parametrize(
    "model",
    [EASE(n_jobs=1), ImplicitALS(**QUICK), Popularity(), ChoiceMixture(**QUICK),
     OrderedChoice(**QUICK)],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_files_new_users_and_updates_keep_events(model: EASE, tmp_path: Path) -> None:
    ratings, views = rated_and_viewed(dated=isinstance(model, OrderedChoice))
    both = ratings.with_events(views)
    fitted = model.fit(both)
    assert fitted.event_weights_["view"] > 0
    save(fitted, tmp_path / "m.ordrec")
    loaded = load(tmp_path / "m.ordrec")
    assert loaded.event_weights_ == fitted.event_weights_
    assert np.allclose(loaded.scores_block([0, 7]), fitted.scores_block([0, 7]))

    # the same ratings and events under a new id have the same scores
    own, seen = ratings.of_user(7).assign(user=900), views[views["user"] == 7].assign(user=900)
    new = Ratings.from_frame(own, scale=SCALE).with_events(seen)
    joined = loaded.fold_in(new)
    assert np.allclose(joined.scores_block([900]), joined.scores_block([7]), atol=1e-5)
    assert np.allclose(joined.scores_block([0]), fitted.scores_block([0]))
    without = loaded.fold_in(Ratings.from_frame(own, scale=SCALE))
    if not isinstance(model, Popularity):
        assert not np.allclose(without.scores_block([900]), joined.scores_block([7]))

    # a rating of what was viewed takes its place, the other views stay
    item = int(seen["item"].iloc[0])
    updated = joined.update(900, item, 5.0)
    code = updated.user_ids_.get_loc(900)
    row = updated.history_rows(np.array([code]))
    assert row.nnz == len(own) + len(seen)
    assert row[0, updated.item_ids_.get_loc(item)] == 1.0
    assert not len(updated.without_users().user_ids_)


def test_unknown_kinds_are_refused_by_a_fitted_model(ease: EASE) -> None:
    own = RATINGS.of_user(7).assign(user=900)
    seen = pd.DataFrame({"user": [900], "item": [3], "kind": "veiw"})
    with pytest.raises(DataError, match=r"'veiw': it has learnt from 'view': did you mean 'view'"):
        ease.fold_in(Ratings.from_frame(own, scale=SCALE).with_events(seen))


def test_too_few_users_to_learn_from_are_said() -> None:
    few = RATINGS.select(RATINGS.users < 10).compact()
    with pytest.warns(OrdrecWarning, match="users have ratings enough to learn what events say"):
        model = EASE(n_jobs=1).fit(few.with_events(VIEWS[VIEWS["user"] < 10]))
    assert model.event_weights_ == {"view": 0.0}


def test_chances_of_a_pick_are_those_of_ratings() -> None:
    expected, found = 0.0, 0
    for seed in (0, 1):
        ratings, views = rated_and_viewed(seed)
        split = next(split_from_name("user-holdout:0.2").split(ratings.with_events(views)))
        fitted = ChoiceMixture(**QUICK).fit(split.train)
        users = np.flatnonzero(split.train.user_counts)
        listed, columns = fitted.lists(users, 10, fitted.item_filter())
        expected += columns["p_pick"].sum()
        picked = split.test.matrix("one").T.tocsr()[users].toarray()
        found += np.take_along_axis(picked, listed, axis=1).sum()
    assert 0.75 * found < expected < 1.3 * found
