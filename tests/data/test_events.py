"""Events beside ratings: how they are read, counted, kept and refused."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.data.read import load_events, load_ratings
from ordrec.errors import ArgumentError, DataError, OrdrecWarning
from ordrec.evaluation import split_from_name
from ordrec.evaluation.splits.base import joined_ratings
from ordrec.evaluation.splits.own import own_parts

RATED = pd.DataFrame({"user": [1, 1, 2, 3], "item": [10, 11, 10, 12], "rating": [5, 3, 4, 1]})
RATINGS = Ratings.from_frame(RATED, scale=range(1, 6))
EVENTS = pd.DataFrame(
    {
        "user": [1, 1, 1, 2, 2, 9],
        "item": [10, 12, 12, 12, 12, 13],
        "kind": ["view", "view", "view", "cart", "view", "view"],
        "timestamp": [5, 7, 3, 9, 8, 2],
    }
)


def test_events_are_counted_by_user_item_and_kind_with_their_last_time() -> None:
    found = RATINGS.with_events(EVENTS).events_frame()
    assert found.to_dict("list") == {
        "user": [1, 2, 2, 9],
        "item": [12, 12, 12, 13],
        "kind": ["view", "view", "cart", "view"],
        "count": [2.0, 1.0, 1.0, 1.0],
        "timestamp": [7, 8, 9, 2],
    }


def test_users_and_items_of_events_alone_are_those_of_the_table_with_empty_rows() -> None:
    side = pd.DataFrame({"item": [10, 11, 12], "price": [1.0, 2.0, 3.0]})
    ratings = RATINGS.with_side_tables(item_table=side).with_events(EVENTS)
    assert ratings.user_ids.tolist() == [1, 2, 3, 9]
    assert ratings.item_ids.tolist() == [10, 11, 12, 13]
    assert np.isnan(ratings.item_table["price"].to_numpy()[-1])
    assert np.array_equal(ratings.users, RATINGS.users)
    assert ratings.n_ratings == 4


def test_events_that_repeat_the_ratings_are_none() -> None:
    ratings = RATINGS.with_events(RATED[["user", "item"]])
    assert len(ratings.events) == 0
    assert "no events" in repr(ratings)


def test_further_events_are_added_and_counted_with_those_there_are() -> None:
    once = RATINGS.with_events(EVENTS.drop(columns="timestamp"))
    twice = once.with_events(EVENTS)
    assert twice.events_frame()["count"].tolist() == [4.0, 2.0, 2.0, 2.0]
    assert twice.events_frame()["timestamp"].tolist() == [7, 8, 9, 2]


def test_events_go_where_the_ratings_go(tmp_path: Path) -> None:
    ratings = RATINGS.with_events(EVENTS)
    for again in (copy.deepcopy(ratings), pickle.loads(pickle.dumps(ratings)),
                  ratings.renamed("other"), ratings.without_ratings()):  # fmt: skip
        pd.testing.assert_frame_equal(again.events_frame(), ratings.events_frame())
    assert "timestamp" not in ratings.without_timestamps().events_frame()
    assert ratings.without_events().events is None
    small = ratings.compact()  # user 9 and item 13 have no rating
    assert small.user_ids.tolist() == [1, 2, 3]
    assert small.events_frame()["user"].tolist() == [1, 2, 2]
    few = ratings.select(ratings.users > 0).compact()
    assert few.events_frame()["user"].tolist() == [2, 2]
    assert few.item_ids.tolist() == [10, 12]
    with pytest.raises(ArgumentError, match="partitions hold ratings and no events"):
        ratings.to_partitions(tmp_path / "parts")


def test_a_table_of_picks_is_events_of_one_kind() -> None:
    picks = Ratings.from_frame(EVENTS[["user", "item"]], rating=None)
    assert set(RATINGS.with_events(picks).events_frame()["kind"]) == {"event"}
    with pytest.raises(ArgumentError, match="events must be a data frame, or a table without"):
        RATINGS.with_events(RATINGS)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": ["view"] * 5 + ["View"]}, "row 5: kind 'View' differs from 'view' in capitals"),
        ({"kind": ["view"] * 5 + [" "]}, "row 5: no kind"),
        ({"user": [7, 8, 9, 7, 8, 9]}, "none of the 3 users of the events, such as 7, are among"),
        ({"item": ["a"] * 6}, "not all of the 1 items of the events, such as 'a', are among"),
        ({"count": [1, 1, 0, 1, 1, 1]}, "row 2: count 0 is not a number of picks"),
        ({"user": [1, None, 1, 2, 2, 9]}, "row 1: no user id"),
        ({"timestamp": [5, 7, 3, 9, "never", 2]}, "row 4"),
    ],
)
def test_odd_events_are_refused_with_their_row(changes: dict[str, list[object]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        RATINGS.with_events(EVENTS.assign(**changes))


def test_no_events_and_no_column_of_kinds_are_said() -> None:
    with pytest.raises(DataError, match="the events have no rows: leave them out"):
        RATINGS.with_events(EVENTS.iloc[:0])
    with pytest.raises(DataError, match="no column 'what' of kinds"):
        RATINGS.with_events(EVENTS, kind="what")
    ids = EVENTS.iloc[[0] * 60].assign(kind=[f"k{n}" for n in range(60)])
    with pytest.raises(DataError, match="more than 50: name the column of kinds"):
        RATINGS.with_events(ids)


def test_a_kind_that_may_be_misspelt_is_said() -> None:
    kinds = ["view"] * 150 + ["veiw"]
    events = pd.DataFrame({"user": 1, "item": 12, "kind": kinds})
    with pytest.warns(OrdrecWarning, match=r"'veiw' \(1 rows\) is taken for a kind of its own"):
        assert RATINGS.with_events(events).events.names == ("view", "veiw")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RATINGS.with_events(events.replace("veiw", "cart"))


def test_repeated_picks_keep_their_first_and_their_last_time() -> None:
    picks = Ratings.from_frame(EVENTS.drop(columns="kind"), rating=None)
    found = picks.to_frame()
    assert found["first"].tolist() == [5, 3, 8, 2]
    assert found["timestamp"].tolist() == [5, 7, 9, 2]
    assert picks.select([1, 3]).first_timestamps.tolist() == [3, 2]
    assert joined_ratings([picks.select([1]), picks.select([3])]).to_frame()["first"].size == 2
    assert "first" not in picks.without_timestamps().to_frame()
    assert "first" not in RATINGS.to_frame()


# ---- zeros that are no ratings ------------------------------------------------------------


def test_a_value_can_mean_that_there_is_no_rating(tmp_path: Path) -> None:
    frame = pd.concat([RATED, pd.DataFrame({"user": [1, 4], "item": [12, 10], "rating": 0})])
    ratings = Ratings.from_frame(frame, scale=range(1, 6), no_rating=0)
    assert ratings.n_ratings == 4
    found = ratings.events_frame()
    assert found[["user", "item", "kind"]].to_numpy().tolist() == [
        [1, 12, "no rating"],
        [4, 10, "no rating"],
    ]
    frame.to_csv(tmp_path / "r.csv", index=False)
    read = load_ratings(tmp_path / "r.csv", scale=range(1, 6), no_rating=0)
    pd.testing.assert_frame_equal(read.events_frame(), found)
    with pytest.raises(DataError, match=r"no_rating=7 is to take some .* none of them is 7"):
        Ratings.from_frame(frame, no_rating=7)


def test_frequent_zeros_apart_from_the_rest_are_asked_about() -> None:
    rng = np.random.default_rng(0)
    cells = rng.permutation(4000)[:1200]
    values = np.where(rng.random(1200) < 0.6, 0, rng.integers(5, 11, 1200))
    frame = pd.DataFrame({"user": cells // 40, "item": cells % 40, "rating": values})
    with pytest.warns(OrdrecWarning, match=r"of the ratings are 0, .* pass no_rating=0"):
        Ratings.from_frame(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Ratings.from_frame(frame, no_rating=0)
        Ratings.from_frame(frame.assign(rating=np.maximum(values, 1)))
        Ratings.from_frame(frame.assign(rating=rng.integers(0, 6, 1200)))


# ---- files --------------------------------------------------------------------------------


def test_events_in_files_have_ids_of_the_type_of_the_ratings(tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_text("user_id;item;what;n\n1;12;view;2\n2;12; cart;1\n")
    frame = load_events(file, RATINGS, kind="what", count="n")
    assert frame.to_numpy().tolist() == [[1, 12, "view", 2.0], [2, 12, "cart", 1.0]]
    file.write_text("user,item,kind\n1,12,view\n2,,view\n")
    with pytest.raises(DataError, match=r"e\.csv, line 3: row 1: no item id"):
        load_events(file, RATINGS)
    file.write_text("user,item,kind\n")
    with pytest.raises(DataError, match=r"e\.csv: the events have no rows"):
        load_events(file, RATINGS)


# ---- no leaks -----------------------------------------------------------------------------


def many(n_users: int = 30, n_items: int = 20) -> tuple[Ratings, pd.DataFrame]:
    """Ratings, and events of every pair at the same time as its rating would have."""
    rng = np.random.default_rng(3)
    users, items = np.divmod(np.arange(n_users * n_items), n_items)
    times = rng.permutation(users.size) + 1
    events = pd.DataFrame({"user": users, "item": items, "timestamp": times})
    rated = events[rng.random(users.size) < 0.5]
    rated = rated.assign(rating=rng.integers(1, 6, len(rated)))
    return Ratings.from_frame(rated, scale=range(1, 6)), events


@pytest.mark.parametrize(
    "name",
    ["holdout:0.2", "kfold:3", "leave-out:2", "time:0.2", "user-time:0.2", "last:1", "strong:0.2"],
)
def test_nothing_that_is_held_out_has_an_event(name: str) -> None:
    ratings, events = many()
    ratings = ratings.with_events(events)
    for split in split_from_name(name).split(ratings):
        known = split.train_and_given()
        there = known.events_matrix()
        assert there.nnz
        assert not there[split.test.users, split.test.items].any()
        if "time" in name or "last" in name:
            first = np.full(ratings.n_users, split.test.timestamps.min())
            if not name.startswith("time"):
                first[:] = np.iinfo(np.int64).max
                np.minimum.at(first, split.test.users, split.test.timestamps)
            left = known.events
            assert (left.timestamps < first[left.users]).all()


def test_items_that_are_held_out_as_a_whole_have_no_events_of_others() -> None:
    ratings, events = many()
    split = next(split_from_name("cold-items:0.2").split(ratings.with_events(events)))
    cold = np.unique(split.test.items)
    assert not np.isin(split.train.events.items, cold).any()


def test_events_beside_parts_of_ones_own_leave_out_the_test_pairs() -> None:
    ratings, events = many()
    rows = np.arange(ratings.n_ratings)
    train, test = ratings.select(rows % 3 > 0), ratings.select(rows % 3 == 0)
    joined, parts = own_parts(train.with_events(events), test)
    (split,) = parts.split(joined)
    assert split.train.events_matrix().nnz == len(events) - ratings.n_ratings
    assert not split.train.events_matrix()[split.test.users, split.test.items].any()
    both = joined_ratings([split.train, split.test])  # the same events are not counted twice
    assert both.events_frame()["count"].max() == 1
