"""Fits to ratings on disk: the same as in memory, whatever the blocks and the engine."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest

from ordrec import Ratings, load, save
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.rating.factors import on_disk
from ordrec.rating.factors.blocks import StoredBlock, write_blocks
from ordrec.rating.factors.pattern import RatingPattern, pattern_of_blocks
from ordrec.recommend import HeldOut, OrdinalFactors, fit_scan, predict_scan

SETTINGS = {"n_factors": 3, "max_iter": 6, "use_time": False}


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scan") / "ratings"
    synthetic_ratings(150, 60, n_ratings=4000, seed=3).to_partitions(folder, rows_per_part=900)
    return Ratings.scan(folder)


def rows_of(model):
    """Everything that was learnt of items, and of users in general."""
    for direction in model.directions_:
        yield from direction.items.arrays
        yield from (*direction.user_prior, *direction.item_prior)
        for cold in (direction.cold_users, direction.cold_items):
            yield from (cold.B, cold.average, cold.moments, cold.variances)


def test_same_as_in_memory(scan):
    """Without a pattern, whose random directions differ, all numbers agree up to rounding."""
    streamed = fit_scan(OrdinalFactors(pattern=0, **SETTINGS), scan, rows=500)
    whole = OrdinalFactors(pattern=0, **SETTINGS).fit(scan.collect())
    for own, theirs in zip(rows_of(streamed), rows_of(whole), strict=True):
        assert own == pytest.approx(theirs, abs=2e-3, rel=2e-3)
    assert streamed.loss_ == pytest.approx(whole.loss_, abs=1e-4)


def test_weights_count_as_in_memory(scan, tmp_path):
    frame = scan.collect().to_frame()
    frame["weight"] = np.random.default_rng(0).integers(1, 5, len(frame)) / 4
    ratings = Ratings.from_frame(frame, scale=scan.scale, weight="weight")
    ratings.to_partitions(tmp_path / "weighted", rows_per_part=900)
    streamed, unweighted = (
        fit_scan(OrdinalFactors(pattern=0, **SETTINGS), each, rows=500)
        for each in (Ratings.scan(tmp_path / "weighted"), scan)
    )
    whole = OrdinalFactors(pattern=0, **SETTINGS).fit(ratings)
    for own, theirs in zip(rows_of(streamed), rows_of(whole), strict=True):
        assert own == pytest.approx(theirs, abs=2e-3, rel=2e-3)
    means = [model.directions_[0].items.mean for model in (streamed, unweighted)]
    assert np.abs(means[0] - means[1]).max() > 0.1


def test_pattern_of_blocks_is_that_of_all_ratings(tmp_path):
    """Two groups of users with tastes of their own: the two leading directions are distinct."""
    rng = np.random.default_rng(0)
    chance = np.zeros((100, 60))
    chance[:60, :30], chance[60:, 30:] = 0.7, 0.4
    users, items = np.nonzero(rng.random(chance.shape) < chance)
    frame = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    Ratings.from_frame(frame).to_partitions(tmp_path / "ratings")
    scan = Ratings.scan(tmp_path / "ratings")
    ratings = scan.collect()
    whole = RatingPattern.of(ratings, 2)
    blocks = [block for block, _ in write_blocks(scan, tmp_path, 300)]
    assert len(blocks) > 3
    pattern, item_features = pattern_of_blocks(blocks, ratings.user_counts, scan.item_counts, 2)
    user_features = np.concatenate([block.load("features") for block in blocks])
    for own, theirs in (
        (user_features, whole.user_features(ratings.users, ratings.items, ratings.n_users)),
        (item_features, whole.item_features(ratings.items, ratings.users, ratings.n_items)),
    ):
        signs = np.sign((own * theirs).sum(axis=0))  # of singular vectors are arbitrary
        assert own * signs == pytest.approx(theirs, abs=1e-3)
    assert pattern.user_counts == pytest.approx(whole.user_counts)
    assert pattern.item_counts == pytest.approx(whole.item_counts)


def test_predictions_with_a_pattern_are_close(scan):
    ratings = scan.collect()
    streamed = fit_scan(OrdinalFactors(pattern=4, **SETTINGS), scan, rows=700).fold_in(ratings)
    whole = OrdinalFactors(pattern=4, **SETTINGS).fit(ratings)
    pairs = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items]
    apart = np.abs(streamed.predict_proba(*pairs) - whole.predict_proba(*pairs))
    assert apart.mean() < 2e-3
    assert apart.max() < 3e-2


@pytest.mark.parametrize("engine", ["threads", "processes", "dask"])
def test_any_engine_gives_the_same_digits(scan, engine):
    settings = SETTINGS | {"max_iter": 2, "pattern": 2}
    here = fit_scan(OrdinalFactors(**settings), scan, rows=500, n_jobs=1)
    there = fit_scan(OrdinalFactors(**settings), scan, rows=500, engine=engine, n_jobs=2)
    for own, theirs in zip(rows_of(here), rows_of(there), strict=True):
        assert np.array_equal(own, theirs)


def test_a_visit_that_is_repeated_gives_the_same_digits(scan, monkeypatch):
    """A worker dies when it has written some rows, or all of them, and its task is run again."""
    settings = SETTINGS | {"max_iter": 3, "pattern": 2}
    expected = fit_scan(OrdinalFactors(**settings), scan, rows=500)
    real, saved = on_disk.visit_lane, StoredBlock.save_rows
    visits = []

    def dies(*arguments):
        raise MemoryError

    def twice(blocks, *others):
        visits.append(len(blocks))
        if len(visits) % 2:
            real(blocks, *others)
        else:
            monkeypatch.setattr(StoredBlock, "save_rows", dies_after(saved, len(visits) % 3))
            with contextlib.suppress(MemoryError):
                real(blocks, *others)
            monkeypatch.setattr(StoredBlock, "save_rows", saved)
        return real(blocks, *others)

    def dies_after(save, n_blocks):
        done = []

        def save_rows(*arguments):
            done.append(1)
            return dies() if len(done) > n_blocks else save(*arguments)

        return save_rows

    monkeypatch.setattr(on_disk, "visit_lane", twice)
    found = fit_scan(OrdinalFactors(**settings), scan, rows=500)
    assert len(visits) > 12
    for own, theirs in zip(rows_of(found), rows_of(expected), strict=True):
        assert np.array_equal(own, theirs)


def test_one_block_is_the_fit_in_memory(scan):
    """Only the squares of the prior of users are summed in another order."""
    streamed = fit_scan(OrdinalFactors(pattern=0, **SETTINGS), scan)
    whole = OrdinalFactors(pattern=0, **SETTINGS).fit(scan.collect())
    assert len(streamed.loss_) == len(whole.loss_)
    for own, theirs in zip(rows_of(streamed), rows_of(whole), strict=True):
        assert own == pytest.approx(theirs, abs=1e-4, rel=1e-4)


def test_side_data_of_users_and_items(scan):
    ratings = scan.collect()
    rng = np.random.default_rng(0)
    tables = {
        "user_table": pd.DataFrame({"age": rng.normal(size=150)}, index=ratings.user_ids),
        "item_table": pd.DataFrame({"kind": rng.choice(list("abc"), 60)}, index=ratings.item_ids),
    }
    streamed = fit_scan(OrdinalFactors(pattern=0, **SETTINGS), scan, rows=900, **tables)
    described = ratings.with_side_tables(**tables)
    whole = OrdinalFactors(pattern=0, **SETTINGS).fit(described)
    assert streamed.side_columns_ == whole.side_columns_
    for own, theirs in zip(rows_of(streamed), rows_of(whole), strict=True):
        assert own == pytest.approx(theirs, abs=5e-3, rel=5e-3)


def test_the_model_takes_in_users_is_saved_and_predicts_a_scan(scan, tmp_path):
    model = fit_scan(OrdinalFactors(pattern=2, **SETTINGS), scan)
    assert len(model.user_ids_) == 0
    save(model, tmp_path / "model.ordrec")
    loaded = load(tmp_path / "model.ordrec")
    found = predict_scan(loaded, scan, HeldOut(0.2), tmp_path / "predictions")
    frame = pd.concat(found.frames())
    assert (
        np.abs(frame["expected"] - frame["actual"]).mean()
        < np.abs(frame["actual"].mean() - frame["actual"]).mean()
    )


def test_what_is_held_out_is_not_seen(scan, tmp_path):
    """A scan of the other ratings alone gives the same model."""
    held = HeldOut(0.3, random_state=1)
    rest = held.parted(scan.collect())[0]
    rest.to_partitions(tmp_path / "rest", rows_per_part=900)
    alone = fit_scan(OrdinalFactors(pattern=2, **SETTINGS), Ratings.scan(tmp_path / "rest"))
    without = fit_scan(OrdinalFactors(pattern=2, **SETTINGS), scan, held_out=held)
    pairs = ["nobody"] * 60, list(range(60))
    assert without.predict_proba(*pairs) == pytest.approx(alone.predict_proba(*pairs), abs=1e-3)


def test_blocks_are_removed_and_progress_is_reported(scan, tmp_path):
    steps = []
    model = OrdinalFactors(pattern=0, n_factors=2, max_iter=2, symmetric=False)
    fit_scan(model, scan, folder=tmp_path / "blocks", progress=lambda *step: steps.append(step))
    assert list((tmp_path / "blocks").iterdir()) == []
    assert steps[0] == (1, 6, "ratings read")
    assert steps[-1] == (6, 6, "users")


def test_times_are_refused_and_not_ignored(scan):
    with pytest.raises(ArgumentError, match="fit_scan does not use times"):
        fit_scan(OrdinalFactors(use_time=True), scan)


def test_times_that_are_not_used_are_said(tmp_path):
    dated = synthetic_ratings(30, 20, n_ratings=300, dated=True)
    dated.to_partitions(tmp_path / "ratings")
    model = OrdinalFactors(n_factors=2, pattern=0, max_iter=1)
    with pytest.warns(UserWarning, match="does not use the times") as said:
        fit_scan(model, Ratings.scan(tmp_path / "ratings"))
    assert said[0].filename == __file__
