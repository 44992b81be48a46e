"""A `RatingPredictor` in a file: what comes back says the same, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.two_taste_ratings import two_taste_ratings

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.errors import ModelFileError, OrdrecError
from ordrec.recommend import RatingPredictor
from ordrec.storage.archive import load_arrays, save_arrays

PRESETS = ["full", "fast", "large"]


def titled() -> Ratings:
    ratings = two_taste_ratings(n_users=25, n_items=15, dated=True)
    titles = [f"Film №{k}" for k in range(ratings.n_items)]
    return ratings.with_side_tables(
        item_table=pd.DataFrame({"title": titles}, index=ratings.item_ids)
    )


RATINGS = titled()


def same_answers(one: RatingPredictor, two: RatingPredictor) -> None:
    users, items = [*one.user_ids_, -1], [*one.item_ids_, -1]
    pairs = [u for u in users for _ in items], items * len(users)
    times = np.full(len(pairs[0]), 12_345)
    assert np.array_equal(one.predict_proba(*pairs), two.predict_proba(*pairs))
    assert np.array_equal(one.predict_proba(*pairs, times), two.predict_proba(*pairs, times))
    for user in (103, users[-2], -1):
        pd.testing.assert_frame_equal(one.recommend(user, 4), two.recommend(user, 4))
        for item in (503, items[-2]):
            a, b = one.explain(user, item, 12_345), two.explain(user, item, 12_345)
            pd.testing.assert_frame_equal(a.table, b.table)
            assert str(a) == str(b)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One model of each preset, with a user and an item that came later."""
    path = tmp_path_factory.mktemp("models")
    for preset in PRESETS:
        model = RatingPredictor(preset=preset, learn="defaults").fit(RATINGS)  # type: ignore[arg-type]
        save(model, path / f"{preset}-plain")
        save(model.update([7, 7, 104], [501, 900, 900], [5.0, 1.0, 2.0]), path / preset)
    return path


@pytest.mark.parametrize("preset", ["full", "fast"])
def test_there_and_back(folder, tmp_path, preset: str) -> None:
    model = RatingPredictor(preset=preset, learn="defaults").fit(RATINGS)  # type: ignore[arg-type]
    model = model.update([7, 7, 104], [501, 900, 900], [5.0, 1.0, 2.0])
    again = load(folder / preset)
    assert repr(again) == repr(model)
    assert again.preset_ == model.preset_
    assert again.pool_weights_ == model.pool_weights_
    assert again.titles_ == model.titles_
    assert again.titles_[-1] == ""  # of the new item
    assert again.item_ids_[-1] == 900
    same_answers(model, again)
    more = [8, 8, 103], [502, 901, 900], [4.0, 3.0, 1.0]
    same_answers(model.update(*more), again.update(*more))
    save(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (folder / preset).read_bytes()


def test_a_loaded_model_can_be_fitted_anew(folder) -> None:
    again = load(folder / "fast-plain")
    pairs = list(RATINGS.user_ids[:9]), list(RATINGS.item_ids[:9])
    before = again.predict_proba(*pairs)
    assert np.array_equal(again.fit(RATINGS).predict_proba(*pairs), before)


def forged(folder: Path, tmp_path: Path, name: str, change) -> Path:
    """A file whose checksums are right and whose contents are changed."""
    arrays, metadata = load_arrays(folder / name)
    arrays = dict(arrays)
    change(arrays, metadata["state"])
    save_arrays(tmp_path / "forged", arrays, metadata)
    return tmp_path / "forged"


def put(*place_and_value):
    """A change of the metadata at a place."""
    *place, last, value = place_and_value

    def change(_, state) -> None:
        for key in place:
            state = state[key]
        assert last in state
        state[last] = value

    return change


def drop(*place):
    def change(_, state) -> None:
        for key in place[:-1]:
            state = state[key]
        del state[place[-1]]

    return change


def swapped(_, state) -> None:
    state["process_model"], state["factors"] = state["factors"], state["process_model"]


def fewer_titles(arrays, _) -> None:
    arrays["titles.ends"] = arrays["titles.ends"][:-1]


def no_drift(arrays, _) -> None:
    del arrays["factors.dated.0.drift.times"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fast", put("pool_weights", {"first": 0.5, "second": 0.5})),
        ("fast", put("pool_weights", [0.5])),
        ("fast", put("pool_weights", [0.5, 0.5, 0.5])),
        ("fast", put("pool_weights", [0.5, -0.1])),
        ("fast", put("pool_weights", [0.5, 99.0])),
        ("fast", put("pool_weights", ["a", "b"])),
        ("fast", put("pool_weights", None)),
        ("fast", put("preset", "large")),
        ("fast", put("preset", "auto")),
        ("fast", put("preset", 3)),
        ("large", put("preset", "fast")),
        ("fast", put("parameters", "preset", "huge")),
        ("fast", put("parameters", "max_iter", 0)),
        ("fast", put("parameters", "decision", "coin")),
        ("fast", put("factors", {})),
        ("fast", put("factors", None)),
        ("fast", put("process_model", None)),
        ("fast", put("has_process_model", False)),
        ("fast", put("process_model", "scale", [1.0, 2.0, 3.0, 4.0, 6.0])),
        ("fast", put("has_titles", 3)),
        ("fast", drop("factors")),
        ("fast", drop("process_model")),
        ("fast", drop("process_model", "fitted", "units")),
        ("fast", drop("pool_weights")),
        ("fast", drop("preset")),
        ("fast", swapped),
        ("fast", fewer_titles),
        ("fast", no_drift),
    ],
)
def test_what_does_not_fit_is_refused(folder, tmp_path, name: str, change) -> None:
    path = forged(folder, tmp_path, name, change)
    with pytest.raises(ModelFileError):
        load(path)


def test_ids_are_stored_once(folder) -> None:
    """The factors have the ids of the predictor; the process may lack those who came later."""
    arrays, _ = load_arrays(folder / "fast")
    assert {name for name in arrays if name.endswith("_ids")} == {
        "user_ids",
        "item_ids",
        "process_model.user_ids",
        "process_model.item_ids",
    }


def test_a_cut_or_changed_file_is_refused(folder, tmp_path) -> None:
    data, path = (folder / "large-plain").read_bytes(), tmp_path / "bad"
    model = load(folder / "large-plain")
    rng = np.random.default_rng(0)
    pairs = list(RATINGS.user_ids[:9]), list(RATINGS.item_ids[:9])
    for at in rng.integers(len(data), size=15).tolist():
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]):
            path.write_bytes(changed)
            try:
                found = load(path)
            except OrdrecError:
                continue
            # a few bytes of a zip archive say nothing (dates, attributes)
            assert np.array_equal(found.predict_proba(*pairs), model.predict_proba(*pairs))
