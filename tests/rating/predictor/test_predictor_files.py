"""A `RatingPredictor` in a file: what comes back says the same, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.tasteful_ratings import tasteful

from ordrec.data import Ratings
from ordrec.errors import ModelFileError, OrdrecError
from ordrec.recommend import RatingPredictor
from ordrec.storage import load, load_arrays, save, save_arrays

OLD = Path(__file__).parents[2] / "stored_models" / "0.1"
PRESETS = ["full", "fast", "large"]


def titled() -> Ratings:
    ratings = tasteful(n_users=25, n_items=15, dated=True)
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
    members = state["members"]
    members["process_model_"], members["factors_"] = members["factors_"], members["process_model_"]


def fewer_titles(arrays, _) -> None:
    arrays["titles.ends"] = arrays["titles.ends"][:-1]


def other_users(arrays, _) -> None:
    name = "factors_.user_ids"
    arrays[name] = arrays[name] + 1


def no_drift(arrays, _) -> None:
    del arrays["factors_.dated_0.drift.times"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fast", put("pool", {"first": 0.5, "second": 0.5})),
        ("fast", put("pool", [0.5])),
        ("fast", put("pool", [0.5, 0.5, 0.5])),
        ("fast", put("pool", [0.5, -0.1])),
        ("fast", put("pool", [0.5, 99.0])),
        ("fast", put("pool", ["a", "b"])),
        ("fast", put("pool", None)),
        ("fast", put("preset", "large")),
        ("fast", put("preset", "auto")),
        ("fast", put("preset", 3)),
        ("large", put("preset", "fast")),
        ("fast", put("parameters", "preset", "huge")),
        ("fast", put("parameters", "learn_iter", 0)),
        ("fast", put("parameters", "decision", "coin")),
        ("fast", put("members", {})),
        ("fast", put("members", None)),
        ("fast", put("members", "factors_", "kind", "BiasModel")),
        ("fast", put("members", "factors_", "kind", "os.system")),
        ("fast", put("members", "factors_", "state", "scale", [1.0, 2.0, 3.0, 4.0, 6.0])),
        ("fast", put("titles", 3)),
        ("fast", drop("members", "process_model_")),
        ("fast", drop("members", "process_model_", "state", "units")),
        ("fast", drop("pool")),
        ("fast", drop("preset")),
        ("fast", swapped),
        ("fast", fewer_titles),
        ("fast", other_users),
        ("fast", no_drift),
    ],
)
def test_what_does_not_fit_is_refused(folder, tmp_path, name: str, change) -> None:
    path = forged(folder, tmp_path, name, change)
    with pytest.raises(ModelFileError):
        load(path)


def test_a_process_alone_is_a_model_only_of_version_0_1(folder, tmp_path) -> None:
    """Without its factors, a file has a process that its preset allows."""
    path = forged(folder, tmp_path, "fast-plain", drop("members", "factors_"))
    alone = load(path)
    assert alone.factors_ is None
    assert np.allclose(alone.predict_proba([103], [503]).sum(), 1.0)


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


# ---- files of version 0.1 ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["predictor", "predictor-fast"])
def test_an_old_model_takes_in_users_and_explains(name: str, tmp_path) -> None:
    model = load(OLD / f"{name}.ordrec")
    assert isinstance(model, RatingPredictor)
    assert model.factors_ is None
    items, values = model.item_ids_[:4], model.scale_.values
    given = pd.DataFrame({"user": 77, "item": items[:3], "rating": values[[-1, 0, -1]]})
    folded = model.fold_in(Ratings.from_frame(given, scale=model.scale_))
    updated = model.update([77] * 3, items[:3], given["rating"])
    p = folded.predict_proba([77, -1, 77], [items[3], items[3], "nowhere"])
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.allclose(updated.predict_proba([77], items[3:]), p[:1], atol=1e-9)
    assert not np.allclose(p[0], p[1])
    for user, item in ((77, items[3]), (model.user_ids_[0], items[0]), (-1, items[0]), (77, "?")):
        explained = folded.explain(user, item)
        expected = float((folded.predict_proba([user], [item]) @ values)[0])
        assert explained.table["contribution"].sum() == pytest.approx(expected, abs=1e-9)
        assert explained.table["source"].tolist()[-1] == "taste"
    assert not set(items[:3]) & set(folded.recommend(77, 100)["item"])
    assert folded.predict_frame(given[["user", "item"]])["known_user"].all()
    save(folded, tmp_path / "new")
    again = load(tmp_path / "new")
    assert np.array_equal(again.predict_proba([77], items[3:]), p[:1])
    assert again.explain(77, items[3]).table.equals(folded.explain(77, items[3]).table)
