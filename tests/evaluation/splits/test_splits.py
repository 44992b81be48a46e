from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from contracts.split_contract import SplitContract, pytest_generate_tests, rows  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import (
    ColdItems,
    GlobalTime,
    HoldOut,
    KFold,
    LeaveLast,
    LeaveOut,
    PublishedFolds,
    StratifiedHoldOut,
    StratifiedKFold,
    StrongGeneralisation,
    UserHoldOut,
    UserTime,
    split_from_name,
)

ALL = [
    HoldOut(0.3, repeats=2, random_state=1),
    KFold(3, random_state=1),
    UserHoldOut(0.4, random_state=1),
    LeaveOut(1, random_state=1),
    StrongGeneralisation(0.4, random_state=1),
    GlobalTime(0.3),
    UserTime(0.4, random_state=1),
    LeaveLast(1, random_state=1),
    ColdItems(0.3, random_state=1),
    PublishedFolds(("a", "b")),
]


def invented(seed: int, n_users: int = 8, n_items: int = 9, n: int = 40) -> Ratings:
    """Random ratings with strings for ids, few distinct times and two published folds."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(n_users * n_items)[:n]
    frame = pd.DataFrame(
        {
            "user": [f"u{p // n_items}" for p in pairs],
            "item": pairs % n_items + 100,
            "rating": rng.integers(1, 6, n),
            "timestamp": rng.integers(1, 30, n),
        }
    )
    folds = {"a": np.arange(n) % 4 == 0, "b": np.arange(n) % 4 == 1}
    return Ratings.from_frame(frame, scale=Scale.regular(1, 5), folds=folds, name="invented")


class TestSplits(SplitContract):
    splits: ClassVar = ALL
    ratings_of = staticmethod(invented)


# ---- what each of them promises ----------------------------------------------------------


@given(seed=st.integers(0, 10**6), share=st.floats(0.1, 0.9), n=st.integers(10, 60))
def test_hold_out_takes_the_share(seed, share, n):
    [fold] = HoldOut(share, random_state=seed).split(invented(seed, n=n))
    assert fold.test.n_ratings == round(share * n)


def test_repeats_are_different_draws():
    first, second = HoldOut(0.5, repeats=2).split(invented(0))
    assert rows(first.test) != rows(second.test)
    assert (first.fold, second.fold) == ("1", "2")


@given(seed=st.integers(0, 10**6), n_folds=st.integers(2, 9))
def test_k_folds_cover_everything_once_and_evenly(seed, n_folds):
    ratings = invented(seed)
    tests = [fold.test for fold in KFold(n_folds, random_state=seed).split(ratings)]
    assert sum(test.n_ratings for test in tests) == ratings.n_ratings
    assert set().union(*map(rows, tests)) == rows(ratings)
    assert np.ptp([test.n_ratings for test in tests]) <= 1


@given(seed=st.integers(0, 10**6), share=st.floats(0.3, 0.95))
def test_user_hold_out_takes_the_share_of_each_and_leaves_one(seed, share):
    ratings = invented(seed)
    [fold] = UserHoldOut(share, random_state=seed).split(ratings)
    expected = np.minimum(np.rint(share * ratings.user_counts), ratings.user_counts - 1)
    np.testing.assert_array_equal(fold.test.user_counts, expected)
    assert fold.n_cold_users == 0


@given(seed=st.integers(0, 10**6), n=st.integers(1, 4))
def test_leave_out_takes_n_of_those_who_have_more(seed, n):
    ratings = invented(seed, n=48)
    [fold] = LeaveOut(n, random_state=seed).split(ratings)
    np.testing.assert_array_equal(fold.test.user_counts, np.where(ratings.user_counts > n, n, 0))


@pytest.mark.parametrize(("given_share", "shown"), [(0.01, 1), (0.5, 2), (0.99, 4)])
def test_a_held_out_user_shows_at_least_one_rating_and_not_all(given_share, shown):
    frame = pd.DataFrame({"user": np.repeat(np.arange(6), 5), "item": np.tile(np.arange(5), 6)})
    ratings = Ratings.from_frame(frame.assign(rating=3), scale=Scale.regular(1, 5))
    [fold] = StrongGeneralisation(0.5, given=given_share).split(ratings)
    out = fold.test.user_counts > 0
    assert out.sum() == 3
    assert fold.given.user_counts[out].tolist() == [shown] * 3
    assert fold.test.user_counts[out].tolist() == [5 - shown] * 3


@given(seed=st.integers(0, 10**6))
def test_strong_generalisation_never_trains_on_test_users(seed):
    [fold] = StrongGeneralisation(0.3, given=0.6, random_state=seed).split(invented(seed))
    tested = set(fold.test.users.tolist())
    assert tested.isdisjoint(fold.train.users.tolist())
    assert tested == set(fold.given.users.tolist())
    assert fold.n_cold_users == len(tested)
    both = fold.train_and_given()
    assert rows(both) == rows(fold.train) | rows(fold.given)
    assert both.n_ratings == fold.train.n_ratings + fold.given.n_ratings


def test_without_given_ratings_the_training_part_is_all_there_is():
    [fold] = HoldOut(0.5).split(invented(0))
    assert fold.train_and_given() is fold.train


@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 0.95))
def test_nothing_in_training_is_later_than_the_global_cut(seed, share):
    ratings = invented(seed)
    [fold] = GlobalTime(share).split(ratings)
    assert fold.train.timestamps.max() < fold.test.timestamps.min()
    # No other cut comes nearer to the share.
    later = [np.sum(ratings.timestamps > t) for t in np.unique(ratings.timestamps)[:-1]]
    gap = np.abs(np.array(later) - share * ratings.n_ratings).min()
    assert abs(fold.test.n_ratings - share * ratings.n_ratings) == pytest.approx(gap)


@given(seed=st.integers(0, 10**6))
def test_no_user_has_training_ratings_later_than_test_ratings(seed):
    [fold] = UserTime(0.4, random_state=seed).split(invented(seed))
    for user in np.unique(fold.test.users):
        before = fold.train.timestamps[fold.train.users == user]
        after = fold.test.timestamps[fold.test.users == user]
        assert before.max() <= after.min()


def test_published_folds_are_taken_as_they_are():
    ratings = invented(0)
    first, second = PublishedFolds(("a", "b")).split(ratings)
    assert rows(first.test) == rows(ratings.select(ratings.folds["a"]))
    assert (first.fold, second.fold) == ("a", "b")
    assert PublishedFolds("a") == PublishedFolds(("a",))


# ---- tables ------------------------------------------------------------------------------

labels = st.lists(st.integers(1, 5), min_size=4, max_size=60).map(np.array)


@given(y=labels, share=st.floats(0.25, 0.75), seed=st.integers(0, 99))
def test_stratified_hold_out_keeps_the_share_of_each_label(y, share, seed):
    for fold in StratifiedHoldOut(share, repeats=2, random_state=seed).split(y):
        np.testing.assert_array_equal(
            np.sort(np.concatenate([fold.train, fold.test])), np.arange(y.size)
        )
        n_test = round(share * y.size)
        assert fold.test.size == n_test
        for label in np.unique(y):
            fair = np.sum(y == label) * n_test / y.size
            assert abs(np.sum(y[fold.test] == label) - fair) < 1 + 1e-9


@given(y=labels, n_folds=st.integers(2, 4), seed=st.integers(0, 99))
def test_stratified_folds_are_even_in_every_label(y, n_folds, seed):
    folds = list(StratifiedKFold(n_folds, random_state=seed).split(y))
    np.testing.assert_array_equal(
        np.sort(np.concatenate([f.test for f in folds])), np.arange(y.size)
    )
    for label in np.unique(y):
        assert np.ptp([np.sum(y[f.test] == label) for f in folds]) <= 1
    assert np.ptp([f.test.size for f in folds]) <= 1
    for fold in folds:
        assert np.intersect1d(fold.train, fold.test).size == 0


def test_stratified_draws_are_seeded_and_fair():
    y = np.repeat([1, 2], [30, 70])
    hits = np.zeros(100)
    for fold in StratifiedHoldOut(0.25, repeats=400, random_state=3).split(y):
        hits[fold.test] += 1
    assert hits.sum() == 400 * 25
    assert np.abs(hits / 400 - 0.25).max() < 0.1  # 4.6 standard deviations
    once, again = (list(StratifiedKFold(3, random_state=5).split(y)) for _ in range(2))
    np.testing.assert_array_equal(once[0].test, again[0].test)


def test_labels_must_be_one_column():
    with pytest.raises(ArgumentError, match="one column"):
        list(StratifiedKFold(2).split(np.zeros((3, 2))))
    with pytest.raises(DataError, match="leaves a part of the 2 rows empty"):
        list(StratifiedHoldOut(0.1).split([1, 2]))


# ---- errors ------------------------------------------------------------------------------


def test_unknown_times_are_refused_with_a_remedy():
    ratings = invented(0)
    times = np.array(ratings.timestamps)
    times[:3] = 0
    dated = Ratings.from_frame(ratings.to_frame().assign(timestamp=times), name="half dated")
    for splitter in (GlobalTime(0.2), UserTime(0.2)):
        with pytest.raises(DataError, match=r"3 of 40 ratings of half dated have timestamp 0.*or"):
            list(splitter.split(dated))
        with pytest.raises(DataError, match=r"no times: .* or use a split .*holdout:0\.2"):
            list(splitter.split(ratings.without_timestamps()))
    same = Ratings.from_frame(ratings.to_frame().assign(timestamp=5))
    with pytest.raises(DataError, match="all ratings have the same time 5"):
        list(GlobalTime(0.2).split(same))


def test_an_unknown_published_fold_lists_the_known_ones():
    with pytest.raises(DataError, match=r"no published fold 'u9' \(it has: a, b\)"):
        list(PublishedFolds(("u9",)).split(invented(0)))


def test_empty_parts_are_refused():
    with pytest.raises(DataError, match="leaves no test ratings"):
        list(HoldOut(0.001).split(invented(0)))
    with pytest.raises(DataError, match="leaves no test ratings"):
        list(LeaveOut(1000).split(invented(0)))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: HoldOut(1.5), "test_size must lie between 0 and 1, got 1.5"),
        (lambda: UserHoldOut(float("nan")), "test_size must lie between"),
        (lambda: StrongGeneralisation(0.2, given=1.0), "given must lie between"),
        (lambda: KFold(1), "n_folds must be a whole number of at least 2, got 1"),
        (lambda: KFold(2.5), "n_folds must be a whole number"),
        (lambda: LeaveOut(0), "n must be a whole number of at least 1"),
        (lambda: HoldOut(0.2, repeats=0), "repeats must be"),
        (lambda: PublishedFolds(()), "at least one name"),
        (lambda: split_from_name("hold-out:0.2"), "unknown split 'hold-out:0.2': choose one of"),
        (lambda: split_from_name("kfold:many"), "cannot read 'many'; write it like 'kfold:5'"),
        (lambda: split_from_name("time:0.2,3"), "cannot read '0.2,3'"),
        (lambda: split_from_name("kfold:1"), "split 'kfold:1': n_folds must be"),
        (lambda: split_from_name("fold:"), "name the fold, as in 'fold:u1'"),
    ],
)
def test_wrong_parameters_are_named(make, text):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert text in str(caught.value)


def test_names_without_a_number_have_defaults():
    assert split_from_name("holdout") == HoldOut(0.2)
    assert split_from_name("kfold") == KFold(5)
    assert split_from_name("strong:0.3,0.8", random_state=4) == StrongGeneralisation(0.3, 0.8, 4)


def test_a_split_prints_its_parameters():
    assert repr(UserHoldOut(0.25, random_state=9)) == "UserHoldOut(test_size=0.25, random_state=9)"


# ---- real data ---------------------------------------------------------------------------


@pytest.mark.realdata
def test_official_folds_of_movielens(real_data):
    from ordrec.datasets import load_movielens

    ratings = load_movielens(real_data / "ml-100k")
    names = ("u1", "u2", "u3", "u4", "u5")
    tests = list(PublishedFolds(names).split(ratings))
    assert [fold.test.n_ratings for fold in tests] == [20_000] * 5
    assert tests[0].train.n_ratings == 80_000
    assert (tests[0].n_cold_users, tests[0].n_cold_items, tests[0].n_cold_ratings) == (0, 32, 32)
    assert len(set().union(*(rows(fold.test) for fold in tests))) == 100_000


@pytest.mark.realdata
def test_a_global_time_split_of_movielens_is_mostly_about_new_users(real_data):
    from ordrec.datasets import load_movielens

    [fold] = GlobalTime(0.2).split(load_movielens(real_data / "ml-100k"))
    assert fold.test.n_ratings == pytest.approx(20_000, abs=50)
    cold = fold.train.user_counts[fold.test.users] == 0
    assert cold.mean() == pytest.approx(0.85, abs=0.02)
