"""Every ordinal estimator as a file: it predicts the same, and forged files are refused."""

from __future__ import annotations

import copy
import inspect
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from contracts.ordinal_contract import ordered_sample
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from ordrec import load, ordinal, save
from ordrec.cli.chosen_models import loaded
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.files import ESTIMATORS
from ordrec.kernels import ARDGaussian, Gaussian, Linear, Polynomial
from ordrec.ordinal import (
    GPOR,
    NPSVOR,
    OPBE,
    SVC1V1,
    SVMOP,
    SVORIM,
    SVORSLA,
    CumulativeLink,
    GPRanks,
    ORBoost,
    OrdinalLogistic,
)
from ordrec.ordinal.base import OrdinalClassifier
from ordrec.storage.archive import load_arrays, save_arrays

SMALL: dict[str, Any] = {
    "ORBoost": {"base": "stump", "n_estimators": 10, "random_state": 0},
    "RankBoostAE": {"n_estimators": 10, "random_state": 0},
    "PRank": {"random_state": 0},
    "GPOR": {"max_iter": 20},
}
DEFAULTS = [getattr(ordinal, name)(**SMALL.get(name, {})) for name in ESTIMATORS]
SPECIAL = [
    SVORIM(probability=True, class_weight={2: 2.0}),
    SVORIM(costs=np.array([[0, 1, 3], [1, 0, 1], [3, 1, 0]])),
    SVORIM(n_landmarks=8, random_state=0, kernel="poly"),
    SVORSLA(kernel=0.5 * Gaussian(0.3) + Linear()),
    NPSVOR(classes=[0, 1, 2, 3]),
    GPOR("ard", max_iter=10, inference="ep", decision="median"),
    GPOR(n_landmarks=10, random_state=0, max_iter=10),
    OrdinalLogistic(kernel="rbf", scaling="standard"),
    OrdinalLogistic(threshold="immediate", classes=[-1, 0, 1, 2, 3]),
    CumulativeLink("cloglog", classes=[-1, 0, 1, 2, 3]),
    SVMOP(published=True),
    OPBE(published=True, n_landmarks=8, random_state=0),
    SVC1V1(n_landmarks=8, random_state=0),
    GPRanks(n_landmarks=8, random_state=0),
    NPSVOR(solver="published"),
    ORBoost(base="tree", max_depth=3, n_estimators=10, random_state=0),
    ORBoost(base="tree", n_estimators=10, random_state=0),
    ORBoost(base="perceptron", n_estimators=10, probability=True, random_state=0),
]


def quiet(estimator: Any, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*args, **options)


def through_a_file(model: Any, folder: Path) -> Any:
    save(model, folder / "model.ordrec")
    return load(folder / "model.ordrec")


def test_every_estimator_can_be_saved() -> None:
    found = [getattr(ordinal, name) for name in ordinal.__all__]
    kinds = [c for c in found if inspect.isclass(c) and issubclass(c, OrdinalClassifier)]
    assert sorted(kind.__name__ for kind in kinds) == sorted(ESTIMATORS)


@pytest.mark.parametrize("estimator", [*DEFAULTS, *SPECIAL], ids=repr)
def test_a_loaded_estimator_predicts_the_same(estimator: Any, tmp_path: Path) -> None:
    X, y = ordered_sample()
    units = np.array([1.0, 1e4])  # so that it is scaled
    model = quiet(clone(estimator), X * units, y)
    again = through_a_file(model, tmp_path)
    new = ordered_sample(100, seed=1)[0] * units
    assert type(again) is type(model)
    assert np.array_equal(again.predict(new), model.predict(new))
    tolerance = 1e-5 if isinstance(model, GPOR) else 0.0  # its posterior is found again
    for method in ("predict_proba", "predict_latent", "predict_distances"):
        if hasattr(model, method):
            expected = getattr(model, method)(new)
            np.testing.assert_allclose(getattr(again, method)(new), expected, tolerance, tolerance)
    assert repr(again) == repr(model)
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert fitted == {n for n in vars(again) if n.endswith("_") and not n.startswith("_")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(clone(again).fit(X * units, y).predict(new), model.predict(new))


@pytest.mark.parametrize("estimator", [SVORIM(), GPOR(max_iter=10), GPRanks()], ids=repr)
def test_sparse_rows_and_matrices_are_kept(estimator: Any, tmp_path: Path) -> None:
    X, y = ordered_sample()
    X[np.abs(X) < 0.4] = 0.0
    model = quiet(clone(estimator), sparse.csr_array(X), y)
    assert np.array_equal(through_a_file(model, tmp_path).predict(X), model.predict(X))
    K = Gaussian(0.5)(X)
    model = quiet(clone(estimator).set_params(kernel="precomputed"), K, y)
    assert np.array_equal(through_a_file(model, tmp_path).predict(K), model.predict(K))


def test_labels_names_and_summaries_are_kept(tmp_path: Path) -> None:
    X, y = ordered_sample()
    frame = pd.DataFrame(X, columns=["size", "colour"])
    labels = pd.Categorical(
        np.array(["poor", "fair", "good"])[y], ["poor", "fair", "good", "top"], ordered=True
    )
    model = OrdinalLogistic().fit(frame, labels)
    again = through_a_file(model, tmp_path)
    assert again.classes_.tolist() == ["poor", "fair", "good", "top"]
    pd.testing.assert_frame_equal(again.summary(), model.summary())
    assert np.array_equal(again.predict(frame), model.predict(frame))


def test_a_process_still_has_its_evidence(tmp_path: Path) -> None:
    X, y = ordered_sample()
    model = quiet(GPOR("ard", max_iter=20), X, y)
    again = through_a_file(model, tmp_path)
    assert again.log_evidence(gradient=False) == pytest.approx(model.log_evidence_)
    pd.testing.assert_frame_equal(again.relevance_, model.relevance_)
    assert again.theta_names_ == model.theta_names_


def test_what_cannot_be_saved_says_why(tmp_path: Path) -> None:
    X, y = ordered_sample()

    class Own(Linear):
        pass

    for model, message in (
        (SVORIM(kernel=Own()), "kernel.* cannot be saved"),
        (ORBoost(base=DecisionTreeClassifier(max_depth=1), n_estimators=3), "cannot be saved"),
    ):
        with pytest.raises(ArgumentError, match=message):
            save(quiet(model, X, y), tmp_path / "model.ordrec")


@pytest.mark.parametrize("estimator", DEFAULTS, ids=lambda e: type(e).__name__)
def test_altered_files_are_refused_or_predict(estimator: Any, tmp_path: Path) -> None:
    """Each array cut, widened, or filled with extreme numbers, with the right checksums."""
    X, y = ordered_sample(30)
    path = tmp_path / "model.ordrec"
    save(quiet(clone(estimator), X, y), path)
    arrays, metadata = load_arrays(path)
    for name, array in arrays.items():
        changes = [array[:-1] if array.ndim else array, np.concatenate([array, array])]
        changes += [np.zeros_like(array), np.full_like(array, 100)]
        if array.dtype.kind == "f":
            changes += [np.full_like(array, value) for value in (1e99, -1e30, np.nan, np.inf)]
        for change in changes:
            save_arrays(path, arrays | {name: change}, metadata)
            check(path, X)
        save_arrays(path, {key: value for key, value in arrays.items() if key != name}, metadata)
        check(path, X)
    for change in altered(metadata):
        save_arrays(path, arrays, change)
        check(path, X)


def altered(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Metadata without one of its entries, or with another value in its place."""
    found = []
    for key in metadata["state"]:
        without = copy.deepcopy(metadata)
        del without["state"][key]
        found.append(without)
    wrong = ("odd", -1, [], {"object": "Gaussian", "values": {}}, {"x": 1}, None)
    for key in metadata["state"]:
        found += [changed(metadata, value, key) for value in wrong]
    for key in metadata["state"]["parameters"]:
        found += [changed(metadata, value, "parameters", key) for value in wrong]
    return found


def changed(metadata: dict[str, Any], value: Any, *place: str) -> dict[str, Any]:
    """Metadata with another value in one place."""
    other = copy.deepcopy(metadata)
    node = other["state"]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    return other


def check(path: Path, X: np.ndarray) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except ModelFileError:
            return
        assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())


def test_a_file_of_another_version_lacks_no_parameter(tmp_path: Path) -> None:
    """Parameters that are added later have their defaults."""
    X, y = ordered_sample()
    path = tmp_path / "model.ordrec"
    save(SVORIM(C=3.0).fit(X, y), path)
    arrays, metadata = load_arrays(path)
    del metadata["state"]["parameters"]["class_weight"]
    save_arrays(path, arrays, metadata)
    assert load(path).class_weight is None
    assert load(path).C == 3.0


def test_files_contain_numbers_and_texts_only(tmp_path: Path) -> None:
    X, y = ordered_sample()
    save(OPBE().fit(X, y), tmp_path / "model.ordrec")
    with zipfile.ZipFile(tmp_path / "model.ordrec") as archive:
        assert all(name.endswith((".npy", ".json")) for name in archive.namelist())
        json.loads(archive.read("ordrec.json"))


KERNELS = [ARDGaussian([0.1, 0.2], bounds=(1e-2, 1e2)), Polynomial(2, 0.3, 1.0).normalised(0.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_are_kept(kernel: Any, tmp_path: Path) -> None:
    X, y = ordered_sample()
    model = SVORIM(kernel=kernel).fit(X, y)
    again = through_a_file(model, tmp_path)
    assert again.kernel == kernel
    assert again.kernel_ == kernel


def test_the_command_line_says_where_it_can_be_used(tmp_path: Path) -> None:
    save(SVORIM().fit(*ordered_sample()), tmp_path / "model.ordrec")
    with pytest.raises(ArgumentError, match=r"a SVORIM predicts from features.*from Python"):
        loaded(tmp_path / "model.ordrec", None)
