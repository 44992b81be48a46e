"""Predictions for all users of a scan: equal to those in memory, on any engine, and resumable."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec import Ratings
from ordrec.datasets import latent_model, synthetic_ratings
from ordrec.errors import ArgumentError, StorageError
from ordrec.rating.on_disk import predictions
from ordrec.recommend import (
    BiasModel,
    HeldOut,
    OrdinalFactors,
    RatingPredictor,
    predict_scan,
)

HELD = HeldOut(0.2, random_state=1)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic_ratings(120, 40, n_ratings=2400, seed=3)


@pytest.fixture(scope="module")
def scan(ratings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("predictions") / "ratings"
    ratings.to_partitions(folder, rows_per_part=700)
    return Ratings.scan(folder)


@pytest.fixture(scope="module")
def model(scan) -> OrdinalFactors:
    sample, _ = HELD.parted(scan.sample_users(60, seed=2))
    return OrdinalFactors(n_factors=3, pattern=3, max_iter=6).fit(sample)


def frame_of(found) -> pd.DataFrame:
    return pd.concat(list(found.frames()), ignore_index=True)


# ---- held-out ratings --------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(share=st.floats(0.05, 0.95), seed=st.integers(-5, 5), rows=st.integers(1, 3000))
def test_held_out_ratings_do_not_depend_on_chunks(ratings, scan, share, seed, rows):
    held = HeldOut(share, seed)
    parts = [held.mask(chunk) for chunk in scan.chunks(rows)]
    mask = held.mask(ratings)
    assert (np.concatenate(parts) == mask).all()
    assert abs(mask.mean() - share) < 5 * np.sqrt(share * (1 - share) / mask.size)


def test_held_out_ratings_depend_on_seed_user_and_item(ratings):
    one, two = HeldOut(0.5, 0).mask(ratings), HeldOut(0.5, 1).mask(ratings)
    assert 0.4 < (one == two).mean() < 0.6
    of_user = np.bincount(ratings.users, one) / ratings.user_counts
    assert of_user.std() < 2 * np.sqrt(0.25 / ratings.user_counts).mean()
    of_item = np.bincount(ratings.items, one, 40) / np.maximum(ratings.item_counts, 1)
    assert of_item.std() < 2 * np.sqrt(0.25 / ratings.item_counts).mean()


def test_names_are_held_out_too(ratings):
    frame = ratings.to_frame()
    frame["user"] = "u" + frame["user"].astype(str)
    mask = HeldOut(0.3).mask(Ratings.from_frame(frame))
    assert 0.25 < mask.mean() < 0.35


# ---- the same predictions ----------------------------------------------------------------


def test_predictions_are_those_of_the_model_in_memory(ratings, scan, model, tmp_path):
    found = predict_scan(model, scan, HELD, tmp_path / "out", rows=150)
    frame = frame_of(found)
    history, wanted = HELD.parted(ratings)
    assert found.n_pairs == len(frame) == wanted.n_ratings
    assert frame[["user", "item"]].equals(wanted.to_frame()[["user", "item"]])
    assert (frame["actual"] == wanted.values).all()
    whole = model.fold_in(history)
    p = whole.predict_proba(frame["user"], frame["item"])
    columns = [f"p_{value}" for value in range(1, 6)]
    np.testing.assert_allclose(frame[columns], p, atol=1e-6)
    np.testing.assert_allclose(frame["expected"], p @ np.arange(1, 6), rtol=1e-9)
    np.testing.assert_allclose(frame["rating"], whole.predict(frame["user"], frame["item"]))


@settings(max_examples=6, deadline=None)
@given(rows=st.integers(1, 3000))
def test_chunks_do_not_matter(scan, model, tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("chunks")
    one = frame_of(predict_scan(model, scan, HELD, folder / "a", rows=rows))
    two = frame_of(predict_scan(model, scan, HELD, folder / "b"))
    pd.testing.assert_frame_equal(one, two, rtol=1e-6, atol=1e-6)


def test_items_that_the_model_does_not_know_are_strangers_in_every_chunk(scan, ratings, tmp_path):
    trained = ratings.select((ratings.users < 60) & (ratings.items > 3)).compact()
    model = OrdinalFactors(n_factors=3, pattern=3, max_iter=3).fit(trained)
    one = frame_of(predict_scan(model, scan, HELD, tmp_path / "a", rows=150))
    two = frame_of(predict_scan(model, scan, HELD, tmp_path / "b"))
    pd.testing.assert_frame_equal(one, two, rtol=1e-6, atol=1e-6)
    assert one["item"].isin(ratings.item_ids[:4]).any()


@pytest.mark.parametrize("engine", ["threads", "processes", "dask"])
def test_engines_do_not_matter(scan, model, tmp_path, engine, request):
    if engine == "dask":
        engine = f"dask:{request.getfixturevalue('cluster')}"
    serial = predict_scan(model, scan, HELD, tmp_path / "a", engine="serial")
    other = predict_scan(model, scan, HELD, tmp_path / "b", engine=engine, n_jobs=2)
    pd.testing.assert_frame_equal(frame_of(serial), frame_of(other), check_exact=True)


def test_a_predictor_folds_users_in_on_a_cluster(scan, ratings, tmp_path, cluster):
    trained = ratings.select(ratings.users < 80).compact()
    predictor = RatingPredictor(preset="fast", use_time=False).fit(trained)
    serial = predict_scan(predictor, scan, HELD, tmp_path / "a", engine="serial")
    other = predict_scan(predictor, scan, HELD, tmp_path / "b", engine=f"dask:{cluster}")
    pd.testing.assert_frame_equal(frame_of(serial), frame_of(other), check_exact=True)


def test_pairs_of_a_table(scan, ratings, model, tmp_path):
    pairs = pd.DataFrame({"user": [5, 119, 5, 0, 77], "item": [3, 3, 39, 0, 12345]})
    frame = frame_of(predict_scan(model, scan, pairs, tmp_path / "out", rows=100))
    assert "actual" not in frame
    assert set(zip(frame["user"], frame["item"], strict=True)) == set(
        zip(pairs["user"], pairs["item"], strict=True)
    )
    expected = model.fold_in(ratings).predict_proba(frame["user"], frame["item"])
    np.testing.assert_allclose(frame["expected"], expected @ np.arange(1, 6), rtol=1e-9)


def test_users_the_scan_does_not_have_are_reported(scan, model, tmp_path):
    pairs = pd.DataFrame({"user": [5, 1000, 1000], "item": [3, 3, 4]})
    with pytest.warns(UserWarning, match="2 of 3 pairs belong to users who are not in"):
        found = predict_scan(model, scan, pairs, tmp_path / "out")
    assert found.n_pairs == 1


@pytest.mark.parametrize(
    "other", [BiasModel(), RatingPredictor(preset="fast")], ids=["bias", "fast"]
)
def test_other_models_that_fold_in(scan, tmp_path, other):
    sample, _ = HELD.parted(scan.sample_users(30))
    few = HeldOut(0.05)
    found = predict_scan(other.fit(sample), scan, few, tmp_path / "out")
    frame = frame_of(found)
    assert frame["rating"].between(1, 5).all()
    assert ("expected" in frame) == hasattr(other, "predict_proba")
    error = np.abs(frame["rating"] - frame["actual"]).mean()
    assert error < np.abs(frame["actual"] - frame["actual"].median()).mean()


def test_a_sample_of_users_is_enough(tmp_path):
    """Predictions are near the model that drew the ratings, also for users not in the sample."""
    options = {"n_factors": 2, "seed": 7, "noise": 0.4}
    synthetic_ratings(2000, 60, n_ratings=60_000, **options).to_partitions(tmp_path / "x")
    scan = Ratings.scan(tmp_path / "x")
    held = HeldOut(0.1)
    sample, _ = held.parted(scan.sample_users(400))
    model = OrdinalFactors(n_factors=4, pattern=0, max_iter=12).fit(sample)
    frame = frame_of(predict_scan(model, scan, held, tmp_path / "out"))
    truth = latent_model(2000, 60, **options)
    best = truth.probabilities(frame["user"].to_numpy(), frame["item"].to_numpy())
    floor = np.sqrt(np.mean((best @ np.arange(1, 6) - frame["actual"]) ** 2))
    new = frame[~frame["user"].isin(sample.user_ids)]
    for part in (frame, new):
        assert np.sqrt(np.mean((part["expected"] - part["actual"]) ** 2)) < 1.2 * floor


# ---- interruptions -----------------------------------------------------------------------


def test_finished_parts_are_kept(scan, model, tmp_path, monkeypatch):
    done = predict_scan(model, scan, HELD, tmp_path / "whole")
    real, calls = predictions._predict_part, []

    def dying(number, *shared):
        calls.append(number)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(number, *shared)

    monkeypatch.setattr(predictions, "_predict_part", dying)
    with pytest.raises(KeyboardInterrupt):
        predict_scan(model, scan, HELD, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "_predictions.json").read_text())
    assert manifest["complete"] is False
    (tmp_path / "out" / ".0123.parquet").write_bytes(b"left by a killed process")
    kept = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("part-*")}
    assert len(kept) == 2
    found = predict_scan(model, scan, HELD, tmp_path / "out")
    assert calls == [0, 1, 2, *range(2, len(scan.parts))]
    assert all((tmp_path / "out" / name).stat().st_mtime_ns == when for name, when in kept.items())
    pd.testing.assert_frame_equal(frame_of(found), frame_of(done), check_exact=True)
    assert not list((tmp_path / "out").glob(".*"))
    manifest = json.loads((tmp_path / "out" / "_predictions.json").read_text())
    assert manifest["complete"] is True
    assert manifest["n_pairs"] == found.n_pairs
    again = predict_scan(model, scan, HELD, tmp_path / "out")
    assert again == found
    assert len(calls) == 3 + len(scan.parts) - 2


def test_a_folder_of_another_call_is_refused(scan, model, tmp_path):
    out = tmp_path / "out"
    predict_scan(model, scan, HELD, out)
    with pytest.raises(ArgumentError, match="predictions of other pairs"):
        predict_scan(model, scan, HeldOut(0.3), out)
    with pytest.raises(ArgumentError, match="predictions of other pairs"):
        predict_scan(model, scan, pd.DataFrame({"user": [1], "item": [2]}), out)
    another = OrdinalFactors(n_factors=2, pattern=0, max_iter=2).fit(scan.collect())
    with pytest.raises(ArgumentError, match="predictions of other model"):
        predict_scan(another, scan, HELD, out)
    synthetic_ratings(20, 40, n_ratings=200).to_partitions(tmp_path / "few")
    with pytest.raises(ArgumentError, match="predictions of other ratings"):
        predict_scan(model, Ratings.scan(tmp_path / "few"), HELD, out)


def test_predictions_of_changed_ratings_are_not_kept(ratings, model, tmp_path):
    """One rating changes, and neither the numbers of ratings nor the sizes of the files do."""
    changed = ratings.levels.copy()
    at = int(np.argmax(changed == 1))
    changed[at], changed[at + 1] = changed[at + 1], changed[at]
    for name, levels in (("one", ratings.levels), ("two", changed)):
        ratings._replaced(levels=levels).to_partitions(tmp_path / name, rows_per_part=700)
    one, two = Ratings.scan(tmp_path / "one"), Ratings.scan(tmp_path / "two")
    assert [part.n_ratings for part in one.parts] == [part.n_ratings for part in two.parts]
    predict_scan(model, one, HELD, tmp_path / "out")
    with pytest.raises(ArgumentError, match="predictions of other ratings"):
        predict_scan(model, replace(two, parts=one.parts), HELD, tmp_path / "out")


def test_predictions_of_a_model_with_other_users_are_not_kept(scan, ratings, tmp_path):
    """What a model says of a user without ratings does not identify it."""
    model = BiasModel().fit(ratings)
    predict_scan(model, scan, HELD, tmp_path / "out")
    model.item_damping += 1.0
    with pytest.raises(ArgumentError, match="predictions of other model"):
        predict_scan(model, scan, HELD, tmp_path / "out")


def test_folders_that_are_not_ours(scan, model, tmp_path):
    (tmp_path / "thesis.txt").write_text("42")
    with pytest.raises(ArgumentError, match="not empty"):
        predict_scan(model, scan, HELD, tmp_path)
    with pytest.raises(ArgumentError, match="is a file"):
        predict_scan(model, scan, HELD, tmp_path / "thesis.txt")


def test_a_full_disk_keeps_what_is_finished(scan, model, tmp_path, monkeypatch):
    real = Path.touch

    def full(path, *arguments, **options):
        if len(list(path.parent.glob("part-*.parquet"))) == 1:
            raise OSError(28, "No space left on device")
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(StorageError, match=r"make room.*Finished parts are kept: call again"):
        predict_scan(model, scan, HELD, tmp_path / "out")
    monkeypatch.undo()
    assert len(list((tmp_path / "out").glob("part-*"))) == 1
    found = predict_scan(model, scan, HELD, tmp_path / "out")
    assert found.n_pairs == HELD.mask(scan.collect()).sum()


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_shares_outside_0_to_1_are_refused(share):
    with pytest.raises(ArgumentError):
        HeldOut(share)


def test_wrong_arguments_are_refused(scan, model, tmp_path):
    with pytest.raises(ArgumentError, match="no fold_in"):
        predict_scan(object(), scan, HELD, tmp_path / "a")
    with pytest.raises(ArgumentError, match="no column 'item'"):
        predict_scan(model, scan, pd.DataFrame({"user": [1]}), tmp_path / "b")
    with pytest.raises(ArgumentError, match="empty"):
        predict_scan(model, scan, pd.DataFrame({"user": [], "item": []}), tmp_path / "c")


def test_a_model_without_users_folds_in_the_same(scan, model):
    bare = model.without_users()
    assert len(bare.user_ids_) == 0
    history = scan.collect()
    users, items = np.arange(120), np.arange(120) % 40
    expected = model.fold_in(history).predict_proba(users, items)
    assert (bare.fold_in(history).predict_proba(users, items) == expected).all()
    unknown = bare.predict_proba(["nobody"], [0])
    assert (unknown == model.predict_proba(["nobody"], [0])).all()
