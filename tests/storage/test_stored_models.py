"""`PersonalThresholds` and `PerUserPredictor` in files."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec import load, save
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.features.low_rank.model import LowRankEM
from ordrec.kernels import CoRating
from ordrec.ordinal import NPSVOR, SVOREX, SVORIM, OrdinalLogistic
from ordrec.recommend import (
    BiasModel,
    ItemKNN,
    OrdinalFactors,
    PersonalThresholds,
    PerUserPredictor,
    RatingPredictor,
)
from ordrec.storage.archive import load_arrays, save_arrays

RATINGS = synthetic_ratings(16, 25, n_ratings=240, seed=2)
USERS = [u for u in [*RATINGS.user_ids, -1] for _ in range(26)]
ITEMS = [*RATINGS.item_ids, -1] * 17
DISTANCE = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)

THRESHOLDS = {
    "biases": PersonalThresholds(BiasModel()),
    "neighbours": PersonalThresholds(ItemKNN(k=3), decision="mode", n_splits=3),
    "factors": PersonalThresholds(
        OrdinalFactors(n_factors=2, max_iter=2), decision=DISTANCE, n_splits=2
    ),
    "predictor": PersonalThresholds(RatingPredictor(preset="fast"), n_splits=2),
    "twice": PersonalThresholds(PersonalThresholds(BiasModel(), decision="mean"), n_splits=2),
}
PER_USER = {
    "usual": PerUserPredictor(),
    "explicit": PerUserPredictor(SVOREX(C=3.0, probability=True), min_ratings=15),
    "costs": PerUserPredictor(SVORIM(costs=DISTANCE)),
    "landmarks": PerUserPredictor(SVORIM(n_landmarks=4, random_state=0)),
    "logistic": PerUserPredictor(OrdinalLogistic("immediate", alpha=0.3), n_jobs=2),
}


@pytest.mark.parametrize(
    "model", [*THRESHOLDS.values(), *PER_USER.values()], ids=[*THRESHOLDS, *PER_USER]
)
def test_there_and_back(model, tmp_path) -> None:
    model.fit(RATINGS)
    save(model, tmp_path / "one")
    again = load(tmp_path / "one")
    assert np.array_equal(model.predict(USERS, ITEMS), again.predict(USERS, ITEMS))
    assert hasattr(model, "predict_proba") == hasattr(again, "predict_proba")
    if hasattr(model, "predict_proba"):
        assert np.array_equal(model.predict_proba(USERS, ITEMS), again.predict_proba(USERS, ITEMS))
    save(again, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    refitted = again.fit(RATINGS)  # a loaded model can be fitted anew
    assert np.array_equal(model.predict(USERS, ITEMS), refitted.predict(USERS, ITEMS))


def test_thresholds_over_a_column_of_scores(tmp_path) -> None:
    scores = RATINGS.values + np.random.default_rng(0).normal(size=RATINGS.n_ratings)
    model = PersonalThresholds().fit(RATINGS, scores)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    column = np.linspace(0, 6, len(USERS))
    assert np.array_equal(
        model.predict_proba(USERS, ITEMS, column), again.predict_proba(USERS, ITEMS, column)
    )
    with pytest.raises(ArgumentError, match="give scores"):
        again.predict(USERS, ITEMS)


class Foreign:
    """A model that ordrec does not know."""

    def fit(self, ratings):
        self.mean = ratings.values.mean()
        return self

    def predict(self, users, items):
        return np.full(len(users), self.mean)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (PersonalThresholds(Foreign()), r"a Foreign cannot be saved.*fit\(ratings, scores\)"),
        (PerUserPredictor(NPSVOR()), "NPSVOR models cannot be saved: use SVORIM"),
        (
            PerUserPredictor(kernel=CoRating()),
            'kernel=CoRating cannot be saved: use kernel="pooled',
        ),
        (PerUserPredictor(features=LowRankEM(2)), 'features=LowRankEM cannot .* features="mean"'),
    ],
)
def test_what_cannot_be_saved_says_what_to_do(model, says: str, tmp_path) -> None:
    with pytest.raises(ArgumentError, match=says):
        save(model.fit(RATINGS), tmp_path / "model")
    assert not list(tmp_path.iterdir())


ARRAYS = [
    ("per-user", "models.support", lambda a: a + 1000),
    ("per-user", "models.support", lambda a: a - 1),
    ("per-user", "models.start", lambda a: a[::-1]),
    ("per-user", "models.users", lambda a: a + 5),
    ("per-user", "models.users", lambda a: a * 0),
    ("per-user", "models.thresholds", lambda a: a[:, 1:]),
    ("per-user", "ratings.items", lambda a: a * 0),
    ("per-user", "ratings.levels", lambda a: a + 1),
    ("per-user", "models.link_scale", lambda a: -a),
    ("thresholds", "layer.shifts", lambda a: a[1:]),
    ("thresholds", "model.user_bias", lambda a: a[1:]),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    save(PerUserPredictor(SVORIM(probability=True)).fit(RATINGS), folder / "per-user")
    save(PersonalThresholds(BiasModel()).fit(RATINGS), folder / "thresholds")
    return folder


@pytest.mark.parametrize(("file", "name", "change"), ARRAYS)
def test_arrays_that_do_not_fit_are_refused(files, tmp_path, file, name, change) -> None:
    arrays, metadata = load_arrays(files / file)
    save_arrays(tmp_path / "forged", arrays | {name: change(arrays[name])}, metadata)
    with pytest.raises(ModelFileError):
        load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("file", "place", "value"),
    [
        ("per-user", ("chosen_estimator", "name"), "SVC"),
        ("per-user", ("chosen_estimator", "parameters", "C"), -1.0),
        ("per-user", ("chosen_estimator", "parameters", "extra"), 1),
        ("per-user", ("parameters", "n_jobs"), 10**9),
        ("per-user", ("parameters", "kernel"), "magic"),
        ("thresholds", ("model", "kind"), "os.system"),
        ("thresholds", ("model", "kind"), "ImplicitALS"),
        ("thresholds", ("parameters", "decision"), "coin"),
        ("thresholds", ("line",), [1.0]),
        ("thresholds", ("units", "scale"), -1.0),
    ],
)
def test_metadata_that_do_not_fit_are_refused(files, tmp_path, file, place, value) -> None:
    arrays, metadata = load_arrays(files / file)
    node = metadata["state"]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    save_arrays(tmp_path / "forged", arrays, metadata)
    with pytest.raises(ModelFileError):
        load(tmp_path / "forged")


def test_models_nested_without_end_are_refused(files, tmp_path) -> None:
    arrays, metadata = load_arrays(files / "thresholds")
    inner = {"kind": "PersonalThresholds", "state": metadata["state"]}
    for _ in range(300):
        inner = {"kind": "PersonalThresholds", "state": metadata["state"] | {"model": inner}}
    prefixed = {f"{'model.' * 8}{name}": array for name, array in arrays.items()}
    save_arrays(tmp_path / "deep", arrays | prefixed, inner)
    with pytest.raises(ModelFileError):
        load(tmp_path / "deep")
