"""Ordinal factors in files: the same answers afterwards, and files that cannot be right."""

from __future__ import annotations

import json
from types import MappingProxyType

import numpy as np
import pytest
from support.factor_ratings import everything

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.errors import ModelFileError
from ordrec.files import contents_of, model_of
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.storage.archive import load_arrays, save_arrays

WHEN = 1_000_000_100


@pytest.fixture(scope="session")
def described_model(described) -> OrdinalFactors:
    """With side data, one direction and parameters of every kind."""
    model = OrdinalFactors(
        n_factors=3, pattern=2, max_iter=3, symmetric=False, decision="mean",
        side_kinds={"genre": "categorical"}, n_jobs=1,
    )  # fmt: skip
    return model.fit(described.select((described.users > 3) & (described.items > 3)).compact())


@pytest.fixture(params=["plain", "dated", "described"])
def case(request, ratings, model, moody, dated_model, described, described_model):
    """A model, ratings to fold in, and all ratings."""
    return {
        "plain": (model, ratings.select(ratings.users == 4), ratings),
        "dated": (dated_model, moody.select(moody.users == 4), moody),
        "described": (described_model, described.select(described.users < 4), described),
    }[request.param]


def stored(model, tmp_path) -> OrdinalFactors:
    save(model, tmp_path / "factors.ordrec")
    return load(tmp_path / "factors.ordrec")


def same(one, other, ratings: Ratings) -> None:
    users, items = everything(ratings)
    for times in (None, np.full(len(users), WHEN)):
        np.testing.assert_array_equal(
            one.predict_proba(users, items, times), other.predict_proba(users, items, times)
        )


# ---- there and back ------------------------------------------------------------------------------


def test_a_saved_model_is_the_same_and_goes_on_the_same(tmp_path, case):
    model, part, ratings = case
    again = stored(model, tmp_path)
    assert again._parameters() == model._parameters()
    np.testing.assert_array_equal(again.loss_, model.loss_)
    same(again, model, ratings)
    same(again.fold_in(part), model.fold_in(part), ratings)
    same(again.update(7, 8, 1), model.update(7, 8, 1), ratings)
    same(again.without_users().fold_in(part), model.without_users().fold_in(part), ratings)


def test_models_with_newcomers_are_saved(tmp_path, case):
    model, part, ratings = case
    undated = part.without_timestamps()
    nobody = ratings.select(np.zeros(0, dtype=int))
    for more in (part, undated, nobody):
        for start in (model, model.without_users()):
            folded = start.fold_in(more)
            same(stored(folded, tmp_path), folded, ratings)
    later = model.update(10**6, 10**7, 1).update(10**6 + 1, 10**7, 5, WHEN)
    again = stored(later, tmp_path)
    same(again, later, ratings)
    pairs = [10**6, 10**6 + 1], [10**7, 10**7], [WHEN, WHEN]
    np.testing.assert_array_equal(again.predict_proba(*pairs), later.predict_proba(*pairs))


def test_side_columns_are_saved(tmp_path, described_model):
    again = stored(described_model, tmp_path)
    assert again.side_columns_ == described_model.side_columns_
    assert set(again.side_columns_) == {"user", "item"}


def test_kinds_may_be_any_mapping(tmp_path, described):
    kinds = MappingProxyType({"year": "ignore"})
    model = OrdinalFactors(n_factors=2, pattern=0, max_iter=1, side_kinds=kinds).fit(described)
    assert stored(model, tmp_path).side_kinds == {"year": "ignore"}


# ---- files that cannot be right ------------------------------------------------------------------


def refused(model, change) -> None:
    """What a file of the model says with other arrays or metadata is not taken for a model."""
    arrays, metadata = contents_of(model)
    metadata = json.loads(json.dumps(metadata))
    change(arrays, metadata["state"])
    with pytest.raises(ModelFileError):
        model_of(arrays, metadata)


def with_array(name, array):
    return lambda arrays, _: arrays.update({name: array})


def test_every_array_is_needed_and_checked(case):
    model = case[0]
    for name, array in contents_of(model)[0].items():
        refused(model, lambda arrays, _, name=name: arrays.pop(name))
        refused(model, with_array(name, array[None]))
        longer = np.zeros((len(array) + 1, *array.shape[1:]), array.dtype)
        refused(model, with_array(name, longer))
        if array.dtype.kind == "f" and array.size:
            for wrong in (np.nan, np.inf):
                bad = array.copy()
                bad.flat[-1] = wrong
                refused(model, with_array(name, bad))


def test_the_file_is_named(tmp_path, model):
    path = tmp_path / "factors.ordrec"
    save(model, path)
    arrays, metadata = load_arrays(path)
    arrays["directions.0.users.mean"][0, 0] = np.nan
    save_arrays(path, arrays, metadata)
    with pytest.raises(ModelFileError, match=r"factors\.ordrec: array 'directions.0.users.mean'"):
        load(path)


def test_axes_that_do_not_span_the_factors_are_refused(model):
    arrays, _ = contents_of(model)
    for name in ("directions.0.users.axes", "directions.0.items.axes"):
        flat = arrays[name].copy()
        flat[:, -1] = 0.0
        refused(model, with_array(name, flat))


def set_to(*path, value):
    """A change of a part of the metadata."""

    def change(metadata):
        for step in path[:-1]:
            metadata = metadata[step]
        metadata[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_to("loss", value=["little"]),
        set_to("directions", value=[]),
        set_to("directions", value=3),
        set_to("directions", value=True),
        set_to("dated", value=-1),
        set_to("dated", value=[{}]),
        set_to("side", value={"film": {}}),
        set_to("parameters", "n_factors", value=0),
        set_to("parameters", "n_factors", value=2.5),
        set_to("parameters", "use_time", value="never"),
        set_to("parameters", "symmetric", value="yes"),
        set_to("parameters", "decision", value="best"),
        set_to("parameters", "unheard", value=1),
        set_to("scale", value=[1, 2, 3]),
    ],
)
def test_metadata_are_checked(tmp_path, model, change):
    path = tmp_path / "factors.ordrec"
    arrays, metadata = contents_of(model)
    change(metadata["state"])
    save_arrays(path, arrays, metadata)
    with pytest.raises(ModelFileError, match=r"factors\.ordrec"):
        load(path)


def test_impossible_numbers_are_refused(dated_model):
    arrays = contents_of(dated_model)[0]
    for name in (
        "directions.0.user_prior.S",
        "dated.0.item_prior.S",
        "directions.1.items.variances",
        "dated.0.drift.weights",
        "directions.0.cold_users.variances",
    ):
        refused(dated_model, with_array(name, -arrays[name]))
    for name, wrong in (("history.items", 40), ("history.levels", 5), ("history.levels", -1)):
        bad = arrays[name].copy()
        bad[0] = wrong
        refused(dated_model, with_array(name, bad))
    for wrong in (-0.5, 1.5, np.nan):
        weights = np.full(arrays["history.items"].shape, wrong, np.float32)
        refused(dated_model, with_array("history.weights", weights))
    refused(dated_model, with_array("history.weights", np.ones(3, np.float32)))
    few = arrays["directions.0.users.mean"][:, :3]  # fewer columns than there are steps
    refused(dated_model, with_array("directions.0.users.mean", few))
