"""Bins of fine scales: where they are cut, what they hold, and what travels with them."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings, Scale
from ordrec.data.scale_rules import LEAST_SHARE, MOST_BINS, bin_starts, cut_between
from ordrec.errors import ArgumentError, DataError

whole = st.integers(0, 100).map(float)
real = st.floats(-1e6, 1e6, allow_subnormal=False)
samples = st.one_of(
    st.lists(whole, min_size=2, max_size=200), st.lists(real, min_size=2, max_size=80)
).filter(lambda values: len(set(values)) > 1 and max(map(abs, values)) > 1e-40)


@given(samples, st.integers(2, 15))
def test_every_rating_is_in_one_bin_and_bins_are_in_order(values, most):
    values = np.array(values)
    scale = Scale.binned(values, most)
    levels = scale.levels_of(values)
    assert 2 <= scale.n_ranks <= most
    assert set(levels.tolist()) == set(range(scale.n_ranks))
    order = np.argsort(values, kind="stable")
    assert (np.diff(levels[order]) >= 0).all()
    assert (np.diff(scale.values) > 0).all()
    for level, mean in enumerate(scale.values):
        own = values[levels == level]
        assert own.min() <= mean <= own.max()
        assert mean == pytest.approx(own.mean(), rel=1e-9, abs=1e-9)


@given(samples, st.randoms(use_true_random=False))
def test_bins_do_not_depend_on_the_order(values, random):
    shuffled = random.sample(values, len(values))
    assert Scale.binned(values) == Scale.binned(shuffled) == Scale.binned(np.array(values))


@given(st.lists(st.integers(1, 60), min_size=2, max_size=9), st.integers(2, 5))
def test_numbers_of_ratings_are_as_equal_as_can_be(counts, most):
    counts = np.array(counts)
    least = LEAST_SHARE * counts.sum() / most

    def sizes(cuts):
        return np.array([part.sum() for part in np.split(counts, cuts)])

    every = itertools.chain.from_iterable(
        itertools.combinations(range(1, counts.size), n) for n in range(1, most)
    )
    allowed = [sizes(cuts) for cuts in every if sizes(cuts).min() >= least]
    if allowed:
        found = sizes(bin_starts(counts, most)[1:])
        assert (found**2).sum() == min((each**2).sum() for each in allowed)


def test_a_value_that_is_given_often_has_its_own_bin():
    rng = np.random.default_rng(0)
    spikes = np.repeat([0.0, 50.0, 100.0], 400)
    values = np.append(spikes, rng.integers(0, 101, 300))
    scale = Scale.binned(values)
    assert {0.0, 50.0, 100.0} <= set(scale.values.tolist())


def test_a_rare_value_has_no_bin():
    values = np.append(np.repeat(np.arange(10.0), 100), 70.0)
    assert bin_starts(np.unique(values, return_counts=True)[1]).tolist() == list(range(10))
    assert Scale.binned(values).n_ranks == 10


def test_two_bins_at_least():
    scale = Scale.binned(np.append(np.full(5000, 7.0), [80.0]))
    assert scale.values.tolist() == [7, 80]


def test_many_different_values_are_grouped_first():
    values = np.random.default_rng(0).normal(size=20_000)
    counts = np.bincount(Scale.binned(values).levels_of(values))
    assert counts.size == MOST_BINS
    assert np.ptp(counts) < 0.05 * counts.mean()


@given(real, real)
def test_cuts_are_between_also_of_neighbouring_numbers(a, b):
    for low, high in ((min(a, b), max(a, b)), (a, np.nextafter(a, np.inf))):
        if low < high:
            assert low <= cut_between(np.array([low]), np.array([high]))[0] < high


# ---- the scale -------------------------------------------------------------------------


def test_values_between_bins_have_a_bin_and_those_outside_have_none():
    scale = Scale.binned([10, 10, 20, 20, 90, 90], bins=3, low=0, high=100)
    assert scale.ranks_of([0, 12, 16, 55, 56, 100]).tolist() == [1, 1, 2, 2, 3, 3]
    assert scale.nearest([-50, 54.9, 500]).tolist() == [10, 20, 90]
    assert (scale.low, scale.high) == (0, 100)
    for outside in (-1, 101, np.nan):
        with pytest.raises(DataError, match=r"is not on the scale Scale\(3 bins of 0\.\.100"):
            scale.ranks_of([outside])


def test_own_cut_points():
    scale = Scale.binned([0, 10, 25, 50, 100], bins=[25, 60])
    assert scale.ranks_of([25, 25.5, 60, 61]).tolist() == [1, 2, 2, 3]
    np.testing.assert_allclose(scale.values, [35 / 3, 50, 100])
    everything = Scale.binned(np.arange(101), bins=np.arange(100) + 0.5)
    assert everything.values.tolist() == list(range(101))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 1],), "at least two distinct finite ratings"),
        (([1, np.nan],), "at least two distinct finite ratings"),
        ((["a", "b"],), "ratings must be numbers"),
        (([1, 2, 3], 1), r"bins must be 2\.\."),
        (([1, 2, 3], [1.5, 1.6]), "every bin must have a rating"),
        (([1, 2, 3], [9.0]), "every bin must have a rating"),
    ],
)
def test_senseless_bins(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Scale.binned(*arguments)


def test_senseless_ends_and_edges():
    with pytest.raises(ArgumentError, match="give ends that hold all of them"):
        Scale.binned([1, 50, 99], low=10)
    with pytest.raises(ArgumentError, match="give ends that hold all of them"):
        Scale.binned([1, 50, 99], high=60)
    for edges in (
        [0, 2], [0, 9], [0, 5, 2], [0, 3, 9, 9], [0, 3, 3.5, 9], [2, 3, 9], [0, np.nan, 9],
        [0, 3, 1e60], [-np.inf, 3, 9], [0, 2, 3, 9], [[0, 3, 9]], [],
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match="edges must be 3 ascending numbers"):
            Scale([1, 4], edges)


@given(samples)
def test_copies_files_and_equality(values):
    scale = Scale.binned(values)
    assert pickle.loads(pickle.dumps(scale)) == scale
    assert Scale.from_json(scale.to_json()) == scale
    assert hash(Scale.from_json(scale.to_json())) == hash(scale)
    assert scale != Scale(scale.values)
    plain = Scale(scale.values)
    assert Scale.from_json(plain.to_json()) == plain
    assert isinstance(plain.to_json(), list)  # as in earlier files


def test_means_of_other_ratings():
    scale = Scale.binned([0, 10, 20, 80, 100], bins=[15, 50])
    assert scale.values.tolist() == [5, 20, 90]
    values = np.array([10.0, 10.0, 90.0])
    assert scale.learnt_from(values).values.tolist() == [10, 20, 90]
    stars = Scale.regular(1, 5)
    assert stars.learnt_from(np.array([1.0])) is stars


# ---- ratings ---------------------------------------------------------------------------


def fine_frame(seed: int = 0) -> pd.DataFrame:
    """Ratings 0..100 with spikes at the tens."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((30, 20)) < 0.7)
    near = np.clip(50 + 30 * rng.standard_normal(users.size), 0, 100)
    rating = np.where(rng.random(users.size) < 0.6, np.round(near, -1), np.round(near))
    return pd.DataFrame({"user": users, "item": items, "rating": rating})


@pytest.fixture(scope="module")
def fine() -> Ratings:
    with pytest.warns(UserWarning, match="were put into"):
        return Ratings.from_frame(fine_frame())


def test_ratings_keep_their_values_and_say_so(fine):
    frame = fine_frame()
    n_values = frame["rating"].nunique()
    with pytest.warns(UserWarning, match="were put into") as said:
        ratings = Ratings.from_frame(frame)
    (note,) = said
    assert f"{n_values} different ratings between 0 and 100 were put into 10 bins" in str(
        note.message
    )
    assert "Scale.binned" in str(note.message)
    assert note.filename == __file__
    assert ratings.values.tolist() == frame["rating"].tolist()
    assert ratings.to_frame()["rating"].tolist() == frame["rating"].tolist()
    assert ratings.scale.n_ranks == MOST_BINS
    assert (ratings.levels == ratings.scale.levels_of(ratings.values)).all()
    assert ratings.scale == fine.scale


def test_a_declared_fine_scale_is_put_into_bins_too():
    frame = fine_frame().query("5 <= rating <= 95")
    with pytest.warns(UserWarning, match="different ratings between 0 and 100 were put into"):
        ratings = Ratings.from_frame(frame, scale=range(101))
    assert (ratings.scale.low, ratings.scale.high) == (0, 100)
    with pytest.raises(DataError, match=r"row 0: rating 3.5 is not on the declared scale"):
        Ratings.from_frame(frame.assign(rating=3.5), scale=range(101))


def test_chosen_bins_and_coarse_scales_are_not_mentioned(fine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Ratings.from_frame(fine_frame(), scale=Scale.binned(fine.values, 5))
        Ratings.from_frame(fine_frame().assign(rating=7), scale=range(101))
        Ratings.from_frame(fine_frame().assign(rating=lambda table: table["item"] % 5))


def test_real_numbers_have_bins():
    frame = fine_frame().assign(rating=lambda t: np.random.default_rng(1).uniform(-10, 10, len(t)))
    with pytest.warns(UserWarning, match="were put into 10 bins"):
        ratings = Ratings.from_frame(frame)
    assert ratings.values.tolist() == frame["rating"].tolist()


def test_values_travel_with_all_parts(fine):
    rows = np.flatnonzero(fine.users < 7)
    part = fine.select(rows)
    assert part.values.tolist() == fine.values[rows].tolist()
    assert part.compact().values.tolist() == part.values.tolist()
    assert fine.renamed("x").values.tolist() == fine.values.tolist()
    assert fine.core(3).scale == fine.scale
    assert fine.of_user(3)["rating"].tolist() == fine.values[fine.users == 3].tolist()
    assert fine.matrix().sum() == fine.values.sum()
    copy = pickle.loads(pickle.dumps(fine))
    assert copy.values.tolist() == fine.values.tolist()
    assert copy.scale == fine.scale


def test_duplicates_of_binned_ratings():
    frame = pd.DataFrame({"user": 1, "item": [1, 1, 2, 3], "rating": [10.0, 25.0, 50.0, 99.0]})
    scale = Scale.binned(frame["rating"], bins=[20, 60])
    means = Ratings.from_frame(frame, scale=scale, duplicates="mean")
    assert means.values.tolist() == [17.5, 50, 99]
    assert means.ranks.tolist() == [1, 2, 3]
    last = Ratings.from_frame(frame, scale=scale, duplicates="last")
    assert last.values.tolist() == [25, 50, 99]


def test_on_another_scale_by_value(fine):
    coarse = Scale.binned(fine.values, bins=[50], low=0, high=100)
    other = fine.on_scale(coarse)
    assert other.values.tolist() == fine.values.tolist()
    assert (other.levels == (fine.values > 50)).all()
    assert fine.on_scale(fine.scale) is fine
    few = pd.DataFrame({"user": 1, "item": [1, 2, 3], "rating": [3, 4, 5]})
    assert Ratings.from_frame(few).on_scale(Scale.regular(1, 5)).ranks.tolist() == [3, 4, 5]
    with pytest.raises(DataError, match="row 0: rating 3 is not on the declared scale"):
        Ratings.from_frame(few).on_scale(Scale.regular(4, 9))


def test_disk_and_back(fine, tmp_path):
    fine.to_partitions(tmp_path / "parts", rows_per_part=60)
    scan = Ratings.scan(tmp_path / "parts")
    assert scan.scale == fine.scale
    back = scan.collect()
    assert back.scale == fine.scale
    pd.testing.assert_frame_equal(back.to_frame(), fine.to_frame())
    assert back.levels.tolist() == fine.levels.tolist()
    some = scan.sample_users(5)
    both = some.to_frame().merge(fine.to_frame(), on=["user", "item"])
    assert len(both) == some.n_ratings
    assert both["rating_x"].tolist() == both["rating_y"].tolist()


def test_folders_of_other_programs(fine, tmp_path):
    for part in range(3):
        own = fine.to_frame().query(f"user % 3 == {part}")
        own.to_parquet(tmp_path / f"{part}.parquet", index=False, row_group_size=40)
    with pytest.warns(UserWarning, match="were put into 10 bins"):
        scan = Ratings.scan(tmp_path)
    assert scan.scale == fine.scale
    assert sorted(scan.collect().values) == sorted(fine.values)
    with pytest.warns(UserWarning, match="between -1 and 101"):
        declared = Ratings.scan(tmp_path, scale=range(-1, 102))
    assert (declared.scale.low, declared.scale.high) == (-1, 101)
