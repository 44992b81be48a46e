"""A `ProcessPredictor` in a file: what comes back is the same to the last bit, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec import load, save
from ordrec.data import Ratings, Scale
from ordrec.errors import ModelFileError, OrdrecError
from ordrec.rating.process.model import ProcessPredictor
from ordrec.rating.process.preparation import Preparation, SideFeatures, memory_needed
from ordrec.storage.archive import load_arrays, save_arrays

SCALES = [Scale.regular(1, 5), Scale.regular(0.5, 5, 0.5), Scale([0, 1]), Scale([-1, 0, 7])]


def invented(
    seed: int, scale: Scale, *, texts: bool = False, dated: bool = False, side: bool = False
) -> Ratings:
    """Ratings of 12 users and 9 items, and side tables if wanted."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((12, 9)) < 0.6)
    taste = rng.normal(size=12)[users] * rng.normal(size=9)[items] + rng.normal(size=users.size)
    levels = np.clip(np.round((taste + 2) / 4 * (scale.n_ranks - 1)), 0, scale.n_ranks - 1)
    names = (
        (lambda kind, codes: np.array([f"{kind} {c}é" for c in codes], dtype=object))
        if texts
        else (lambda kind, codes: codes + 100)
    )
    frame = pd.DataFrame(
        {
            "user": names("u", users),
            "item": names("i", items),
            "rating": scale.values[levels.astype(int)],
        }
    )
    if dated:
        frame["timestamp"] = 10_000 + rng.integers(0, 9_000, users.size)
    tables = {}
    if side:
        tables["item_table"] = pd.DataFrame(
            {
                "title": [f"The {k}" if k else None for k in range(9)],
                "genres": rng.choice(["a|b", "b", "c|a"], 9),
                "year": rng.integers(1950, 2000, 9).astype(float),
            },
            index=names("i", np.arange(9)),
        )
        tables["user_table"] = pd.DataFrame(
            {"age": rng.integers(9, 90, 12), "gender": rng.choice(["f", "m"], 12)},
            index=names("u", np.arange(12)),
        )
    return Ratings.from_frame(frame, scale=scale, **tables)


def all_pairs(ratings: Ratings, *more_users) -> tuple[list, list]:
    stranger = "nobody" if isinstance(ratings.user_ids[0], str) else -1
    users = [*ratings.user_ids, stranger, *more_users]
    items = [*ratings.item_ids, stranger]
    return [u for u in users for _ in items], items * len(users)


def same_answers(one: ProcessPredictor, two: ProcessPredictor, ratings: Ratings, *users) -> None:
    pairs = all_pairs(ratings, *users)
    times = np.full(len(pairs[0]), 12_345)
    assert np.array_equal(one.predict_proba(*pairs), two.predict_proba(*pairs))
    assert np.array_equal(one.predict_proba(*pairs, times), two.predict_proba(*pairs, times))
    assert np.array_equal(one.predict(*pairs), two.predict(*pairs))
    for user in (ratings.user_ids[2], *users):
        a, b = (m.explain(user, ratings.item_ids[3], 12_345) for m in (one, two))
        pd.testing.assert_frame_equal(a.table, b.table)
        pd.testing.assert_series_equal(a.components, b.components)


@given(
    preset=st.sampled_from(["full", "full", "fast"]),
    refit=st.booleans(),
    scale=st.sampled_from(SCALES),
    texts=st.booleans(),
    dated=st.booleans(),
    side=st.booleans(),
    folded=st.booleans(),
    seed=st.integers(0, 20),
)
@settings(max_examples=14)
def test_there_and_back(
    tmp_path_factory, preset, refit, scale, texts, dated, side, folded, seed
) -> None:
    path = tmp_path_factory.mktemp("there") / "model.ordrec"
    ratings = invented(seed, scale, texts=texts, dated=dated, side=side)
    model = ProcessPredictor(preset=preset, refit=refit, learn="defaults").fit(ratings)
    newcomers = []
    if folded:
        newcomers = ["newcomer", "another"] if texts else [7, 8]
        top, low = scale.values[[-1, 0]]
        model = model.update(newcomers[0], ratings.item_ids[1], top)
        model = model.update(newcomers[0], ratings.item_ids[5], low, 11_000)
        model = model.update(newcomers[1], "no such item" if texts else -9, low)
        model = model.update(ratings.user_ids[4], ratings.item_ids[2], top)
    save(model, path)
    again = load(path)
    assert repr(again) == repr(model)
    assert again.weights_ == model.weights_
    same_answers(model, again, ratings, *newcomers)
    more = ratings.select(ratings.users == 3)
    same_answers(model.fold_in(more), again.fold_in(more), ratings)
    item = ratings.item_ids[6]
    user = ratings.user_ids[0]
    same_answers(
        model.update(user, item, scale.values[0]),
        again.update(user, item, scale.values[0]),
        ratings,
    )
    save(again, path.with_name("again"))
    assert path.read_bytes() == path.with_name("again").read_bytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model with everything in it, and its file."""
    ratings = invented(1, SCALES[0], dated=True, side=True)
    model = ProcessPredictor(max_iter=1, decision=1.0 - np.eye(5), components=None).fit(ratings)
    model = model.update(7, 101, 5.0).update(103, 105, 1.0)
    path = tmp_path_factory.mktemp("saved") / "model.ordrec"
    save(model, path)
    return model, path, ratings


def test_parameters_and_what_was_learnt_come_back(saved, tmp_path) -> None:
    model, path, ratings = saved
    again = load(path)
    assert np.array_equal(again.decision, model.decision)
    assert again.hold_out_rmse_ == model.hold_out_rmse_
    assert again.process_.n_iter == model.process_.n_iter
    chosen = ProcessPredictor(components={"item.constant", "user.lowrank"}, learn="defaults")
    save(chosen.fit(ratings), tmp_path / "chosen")
    assert load(tmp_path / "chosen").components == ["item.constant", "user.lowrank"]
    refitted = again.fit(ratings)  # a loaded model can be fitted anew
    assert refitted.weights_ == model.weights_


def test_explanations_add_up_after_loading_and_for_users_folded_in(saved) -> None:
    again = load(saved[1])
    for user in (104, 7, 103, -1):
        for item in (101, 105, -1):
            explained = again.explain(user, item, 12_000)
            pairs = again._resolve([user], [item], [12_000])
            score = again.units_.outward(again._scores(pairs))[0]
            assert explained.table["contribution"].sum() == pytest.approx(score, abs=1e-6)
            assert explained.components.sum() == pytest.approx(score, abs=1e-6)
            some = explained.largest(3)
            assert len(some) == 4
            assert some["contribution"].sum() == pytest.approx(score, abs=1e-6)


def test_a_full_model_for_which_memory_was_short(tmp_path) -> None:
    ratings = invented(3, SCALES[0])
    limit = memory_needed(ratings, SideFeatures.of(ratings), Preparation(two_sided=False))
    model = ProcessPredictor(learn="defaults", max_memory=limit)
    with pytest.warns(UserWarning, match="fast"):
        model.fit(ratings)
    assert not model.process_.data.two_sided
    save(model, tmp_path / "model")
    same_answers(model, load(tmp_path / "model"), ratings)


def test_the_file_holds_no_gram(saved) -> None:
    arrays, _ = load_arrays(saved[1])
    side = saved[0].process_.data.item_side
    square, pairs = (side.n_entries, side.n_entries), len(side.pairs.table)
    assert all(array.shape[:2] != square for array in arrays.values())
    assert all(array.shape[:1] != (pairs,) for array in arrays.values())


def test_a_cut_or_changed_file_is_refused(saved, tmp_path) -> None:
    data, path = saved[1].read_bytes(), tmp_path / "bad"
    rng = np.random.default_rng(0)
    for _ in range(60):
        at = int(rng.integers(len(data)))
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]):
            path.write_bytes(changed)
            try:
                model = load(path)
            except OrdrecError:
                continue
            # a few bytes of a zip archive say nothing (dates, attributes)
            same_answers(model, saved[0], saved[2])


FORGERIES = {
    "fitted.process.ratings.start": lambda a: a[::-1],
    "fitted.process.ratings.columns": lambda a: a + 100,
    "fitted.process.levels": lambda a: a - 1,
    "fitted.process.times": lambda a: a * np.nan,
    "fitted.process.item_side.fold": lambda a: a + 4,
    "fitted.process.user_side.fold": lambda a: a - 1,
    "fitted.process.item_side.loadings": lambda a: a[:, :-1],
    "fitted.process.user_side.loadings": lambda a: a[:0],
    "fitted.process.bias.user": lambda a: a.astype(np.int64),
    "fitted.process.psi": lambda a: a[:, 1:],
    "fitted.process.phi": lambda a: a[1:],
    "fitted.process.projection": lambda a: a[:, :-1],
    "fitted.process.popularity": lambda a: a * 0,
    "fitted.process.bias.item": lambda a: np.append(a, 1.0),
    "fitted.process.weights": lambda a: -a,
    "fitted.process.a": lambda a: a[:-1],
    "fitted.layer.shifts": lambda a: a[:-1],
    "fitted.layer.covariance": lambda a: -a,
    "fitted.likelihood.layer.thresholds": lambda a: a[1:],
    "folded.ratings.start": lambda a: a + 1,
    "folded.ratings.columns": lambda a: a + 9,
    "folded.levels": lambda a: a + 5,
    "folded.ratings.entries": lambda a: a / 0,
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("name", FORGERIES)
def test_arrays_that_do_not_fit_are_refused(saved, tmp_path, name: str) -> None:
    """The checksums of a forged file are right; what it holds is checked all the same."""
    arrays, metadata = load_arrays(saved[1])
    save_arrays(tmp_path / "forged", arrays | {name: FORGERIES[name](arrays[name])}, metadata)
    with pytest.raises(ModelFileError):
        load(tmp_path / "forged")
    del arrays[name]
    save_arrays(tmp_path / "forged", arrays, metadata)
    with pytest.raises(ModelFileError):
        load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("parameters", "preset"), "fast"),
        (("parameters", "n_jobs"), 10**9),
        (("parameters", "components"), [1]),
        (("parameters", "decision"), [[0.0]]),
        (("parameters", "decision"), "coin"),
        (("parameters", "max_iter"), 0),
        (("fitted", "process", "scales"), ["never"]),
        (("fitted", "process", "chosen"), ["item.magic"]),
        (("fitted", "process", "item_groups"), {"ones": -1}),
        (("fitted", "process", "item_kernels"), ["labels", "labels", "labels"]),
        (("fitted", "process", "has_user_side"), False),
        (("fitted", "process", "bias"), None),
        (("fitted", "units", "scale"), 0.0),
        (("fitted", "layer", "anchor"), 4),
        (("fitted", "likelihood", "typical"), "x"),
        (("hold_out_rmse",), 3),
        (("side_columns",), {"item": {"genres": 3}}),
        (("parameters", "side_kinds"), ["text"]),
    ],
)
def test_metadata_that_do_not_fit_are_refused(saved, tmp_path, place, value) -> None:
    arrays, metadata = load_arrays(saved[1])
    node = metadata["state"]
    for key in place[:-1]:
        node = node[key]
    assert place[-1] in node
    node[place[-1]] = value
    save_arrays(tmp_path / "forged", arrays, metadata)
    with pytest.raises(ModelFileError):
        load(tmp_path / "forged")
