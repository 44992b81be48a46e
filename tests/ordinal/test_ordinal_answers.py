"""What every ordinal estimator answers, with each of its parameters changed, is as recorded."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.recorded_answers import compare_with_record, recorded_names
from support.small_pieces import make_pieces_small

from ordrec import ordinal
from ordrec.kernels import Gaussian

RECORD = Path(__file__).with_suffix(".json")
NAMES = [
    name
    for name in dir(ordinal)
    if hasattr(getattr(ordinal, name), "fit") and name != "ConformalOrdinal"
]
ALIKE = {"classes", "verbose", "n_jobs", "max_memory", "max_iter", "tol"}  # the same answers
OTHERS: dict[str, list[Any]] = {  # values of parameters that are not numbers or flags
    "kernel": ["linear", "poly"],
    "gamma": [0.3],
    "scaling": ["standard", None],
    "threshold": ["immediate"],
    "class_weight": ["balanced"],
    "base": ["perceptron", "tree"],
    "criterion": ["mistakes"],
    "link": ["probit", "cloglog"],
    "margin": [],  # of other losses, below
    "sharpness": [],
    "decision": ["median", "mean"],
    "inference": ["ep", "laplace"],
    "optimizer": [None],
    "n_landmarks": [12],
    "n_iter_no_change": [4],
    "max_depth": [2],
    "C2": [0.3],
    "costs": [[[0, 1, 3, 9], [2, 0, 1, 3], [3, 1, 0, 2], [9, 3, 1, 0]]],
    "noise": [0.4],
    "thresholds": [[-0.9, 0.1, 0.8]],
    "random_state": [1],
    "n_estimators": [20],
    "n_iter": [3],
    "n_restarts": [1],
}
TOGETHER: list[tuple[str, dict[str, Any]]] = [
    ("OrdinalLogistic", {"loss": "shifted", "margin": 0.5}),
    ("OrdinalLogistic", {"loss": "generalised", "sharpness": 2.0, "threshold": "immediate"}),
    ("OrdinalLogistic", {"kernel": "rbf", "n_landmarks": 12}),
    ("OrdinalLogistic", {"alpha": 0.01, "ordered": False}),
    ("CumulativeLink", {"link": "probit", "alpha": 0.0}),
    ("NPSVOR", {"solver": "admm"}),
    ("NPSVOR", {"solver": "algorithm-2"}),
    ("NPSVOR", {"solver": "published"}),
    ("NPSVOR", {"C1": 50.0, "C2": 20.0, "kernel": "linear"}),
    ("NPSVOR", {"C1": 50.0, "kernel": "linear", "n_landmarks": 12}),
    ("SVORIM", {"solver": "smo"}),
    ("SVORIM", {"solver": "smo", "class_weight": "balanced", "kernel": "linear"}),
    ("SVORIM", {"C": 100.0, "probability": True}),
    ("SVOREX", {"solver": "smo"}),
    ("SVOREX", {"C": 100.0, "kernel": "linear"}),
    ("SVORSLA", {"solver": "smo"}),
    ("GPOR", {"inference": "ep", "objective": "variational"}),
    ("GPOR", {"kernel": Gaussian(0.5, bounds="fixed"), "decision": "median"}),
    ("GPOR", {"optimizer": None, "noise": 0.3, "inference": "ep"}),
    ("ORBoost", {"base": "tree", "threshold": "immediate", "n_estimators": 15}),
    ("ORBoost", {"base": "tree", "n_iter_no_change": 3, "validation_fraction": 0.3}),
    ("RankBoostAE", {"base": "perceptron", "criterion": "mistakes"}),
    ("RankBoostAE", {"base": "tree", "n_iter_no_change": 3}),
]
ALWAYS = {"random_state": 0, "n_estimators": 60}


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features in unlike units, some of them zero, and four ranks of unequal size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.1]
    X[:, 1] = np.where(X[:, 1] > 0, np.round(X[:, 1]), 0.0)
    score = X[:, 0] + 0.04 * X[:, 1] + 0.5 * rng.normal(size=n)
    return X, np.digitize(score, [-0.8, 0.5, 1.2])


def variants() -> dict[str, tuple[str, dict[str, Any]]]:
    """Each estimator as it is, and with one parameter changed."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in NAMES:
        parameters = inspect.signature(getattr(ordinal, name)).parameters
        found[name] = (name, {})
        for key in sorted(parameters.keys() - ALIKE):
            default = parameters[key].default
            values = (
                OTHERS.get(key, []) if (name, key) != ("OrdinalLogistic", "n_landmarks") else []
            )
            if key not in OTHERS and isinstance(default, bool):
                values = [not default]
            elif key not in OTHERS and isinstance(default, int | float):
                values = [default / 2 if default else 0.5]
            found |= {f"{name} {key}={value}": (name, {key: value}) for value in values}
    return found | {f"{name} {changes}": (name, changes) for name, changes in TOGETHER}


VARIANTS = variants()


def fitted(name: str, changes: dict[str, Any], X: Any, y: np.ndarray, **more: Any) -> Any:
    kind = getattr(ordinal, name)
    known = inspect.signature(kind).parameters
    always = {key: value for key, value in ALWAYS.items() if key in known}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**{**always, **changes}).fit(X, y, **more)


def answers(model: Any, X: Any) -> dict[str, Any]:
    """What a model says of a few rows, and the numbers that it shows."""
    said: dict[str, Any] = {"predict": model.predict(X)}
    for method in ("predict_latent", "decision_function", "predict_proba"):
        if hasattr(model, method):
            said[method] = getattr(model, method)(X)
    for name, value in sorted(vars(model).items()):
        public = name.endswith("_") and not name.startswith("_") and name not in UNSTEADY
        if public and isinstance(value, int | float | np.number):
            said[name] = float(value)
        elif public and isinstance(value, np.ndarray) and value.dtype == float and value.size < 9:
            said[name] = value
    return said


UNSTEADY = {"n_iter_", "gap_", "violation_", "objective_gap_"}  # that rounding decides
NEW = sample(6, 9)[0]


@pytest.mark.parametrize("name", VARIANTS)
def test_recorded_answers_of_ordinal_estimators(name: str) -> None:
    kind, changes = VARIANTS[name]
    model = fitted(kind, changes, *sample(48, 7))
    close = 1e-3 if changes.get("solver") == "smo" else 1e-4  # which ends at its tolerance
    compare_with_record(RECORD, name, answers(model, NEW), rtol=close, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["weighted", "sparse"])
def test_recorded_answers_of_other_samples(name: str, how: str) -> None:
    X, y = sample(48, 8)
    rows, more = (sparse.csr_array(X), {}) if how == "sparse" else (X, {})
    if how == "weighted":
        if "sample_weight" not in inspect.signature(getattr(ordinal, name).fit).parameters:
            pytest.skip("takes no weights")
        more = {"sample_weight": 0.5 + np.arange(48) % 4}
    model = fitted(name, {}, rows, y, **more)
    compare_with_record(RECORD, f"{name}, {how}", answers(model, NEW), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [*NAMES, *(f"{kind} {change}" for kind, change in TOGETHER)])
def test_recorded_answers_do_not_depend_on_the_size_of_pieces(monkeypatch, name: str) -> None:
    make_pieces_small(monkeypatch)
    test_recorded_answers_of_ordinal_estimators(name)


@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_recorded_answers_of_conformal_sets(coverage: float) -> None:
    model = ordinal.ConformalOrdinal(
        ordinal.OrdinalLogistic(), coverage=coverage, calibration=0.4, random_state=0
    ).fit(*sample(60, 3))
    said = answers(model, NEW) | {"sets": model.predict_set(NEW)}
    compare_with_record(RECORD, f"conformal {coverage}", said)


def test_every_record_has_a_test() -> None:
    ways = {f"{name}, {how}" for name in NAMES for how in ("weighted", "sparse")}
    conformal = {"conformal 0.6", "conformal 0.9"}
    assert recorded_names(RECORD) - ways - conformal == set(VARIANTS)
