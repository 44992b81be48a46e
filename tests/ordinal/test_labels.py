"""Labels with an order of their own, and weights of classes."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from contracts.ordinal_contract import ordered_sample
from sklearn.base import clone

from ordrec import ordinal
from ordrec.errors import ArgumentError
from ordrec.ordinal import (
    GPOR,
    NPSVOR,
    SVORIM,
    ORBoost,
    OrdinalLogistic,
    RankBoostAE,
    SVRanks,
    tune,
)
from ordrec.ordinal.base import OrdinalClassifier
from ordrec.ordinal.labels import class_weighted

GRADES = ["poor", "fair", "good"]  # neither alphabetical nor reversed
WEIGHTED = [
    SVORIM(),
    NPSVOR(),
    OrdinalLogistic(),
    SVRanks(),
    ORBoost(base="stump", n_estimators=20),
]
RANKBOOST = RankBoostAE(base="stump", n_estimators=20)


def quiet(estimator: Any, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*args, **options)


def test_whoever_takes_sample_weights_takes_class_weights() -> None:
    found = [getattr(ordinal, name) for name in ordinal.__all__]
    estimators = [c for c in found if inspect.isclass(c) and issubclass(c, OrdinalClassifier)]
    assert len(estimators) > 10
    for kind in estimators:
        weighted = "sample_weight" in inspect.signature(kind.fit).parameters
        assert weighted == ("class_weight" in inspect.signature(kind).parameters), kind


@pytest.mark.parametrize("estimator", [*WEIGHTED, RANKBOOST], ids=repr)
def test_class_weights_multiply_sample_weights(estimator: Any) -> None:
    X, y = ordered_sample()
    own = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    by_class = clone(estimator).set_params(class_weight={0: 3.0, 2: 0.5})
    by_sample = quiet(clone(estimator), X, y, sample_weight=own * np.array([3.0, 1.0, 0.5])[y])
    assert np.array_equal(quiet(by_class, X, y, sample_weight=own).predict(X), by_sample.predict(X))


@pytest.mark.parametrize("estimator", WEIGHTED, ids=repr)
def test_balanced_classes_have_the_same_total_weight(estimator: Any) -> None:
    X, y = ordered_sample(90)
    keep = (y != 2) | (np.arange(y.size) % 6 == 0)  # the highest rank is rare
    X, y = X[keep], y[keep]
    new, truth = ordered_sample(300, seed=1)
    plain = quiet(clone(estimator), X, y).predict(new)
    balanced = quiet(clone(estimator).set_params(class_weight="balanced"), X, y).predict(new)
    assert (balanced == 2).sum() > (plain == 2).sum()
    assert np.abs(balanced - truth).mean() < np.abs(plain - truth).mean()


def test_class_weights_by_label_and_their_errors() -> None:
    X, y = ordered_sample()
    names = np.array(GRADES)[y]
    named = OrdinalLogistic(class_weight={"good": 5.0}, classes=GRADES).fit(X, names)
    numbered = OrdinalLogistic(class_weight={2: 5.0}).fit(X, y)
    np.testing.assert_array_equal(named.coef_, numbered.coef_)
    with pytest.raises(ArgumentError, match="names 'great', which is not a class"):
        OrdinalLogistic(class_weight={"great": 5.0}, classes=GRADES).fit(X, names)
    with pytest.raises(ArgumentError, match=r'None, "balanced" or a dict'):
        OrdinalLogistic(class_weight="equal").fit(X, y)
    with pytest.raises(ArgumentError, match="must not be negative"):
        OrdinalLogistic(class_weight={0: -1.0}).fit(X, y)


def test_calibration_counts_the_weights_of_classes_once() -> None:
    X, y = ordered_sample(60)
    by_class = SVORIM(probability=True, class_weight={0: 3.0}, gamma=0.5).fit(X, y)
    weight = np.where(y == 0, 3.0, 1.0)
    by_sample = SVORIM(probability=True, gamma=0.5).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(by_class.predict_proba(X), by_sample.predict_proba(X))


@pytest.mark.parametrize("estimator", [SVORIM(gamma=0.5), NPSVOR(gamma=0.5)], ids=repr)
def test_tune_weighs_classes(estimator: Any) -> None:
    X, y = ordered_sample(60)
    labels = np.array(GRADES)[y]
    cost = "C" if "C" in estimator.get_params() else "C1"
    blank = clone(estimator).set_params(classes=GRADES, class_weight={"good": 50.0, "poor": 0.02})
    weighted = tune(blank, X, labels, {cost: [0.1, 10.0]}, cv=3)
    plain = tune(blank.set_params(class_weight=None), X, labels, {cost: [0.1, 10.0]}, cv=3)
    assert (weighted.table["score"] > plain.table["score"]).all()  # they distort the ranks


@pytest.mark.parametrize("form", [pd.Series, pd.Categorical])
@pytest.mark.parametrize(
    "estimator",
    [SVORIM(), NPSVOR(), GPOR(max_iter=20), OrdinalLogistic(), ORBoost(n_estimators=20)],
    ids=repr,
)
def test_an_ordered_categorical_declares_the_order(estimator: Any, form: Any) -> None:
    X, y = ordered_sample()
    categories = ["awful", *GRADES]
    labels = pd.Categorical(np.array(GRADES)[y], categories=categories, ordered=True)
    estimator = clone(estimator)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    model = quiet(clone(estimator), X, form(labels))
    declared = quiet(clone(estimator).set_params(classes=categories), X, np.array(GRADES)[y])
    assert model.classes_.tolist() == categories  # "awful" keeps its rank
    assert np.array_equal(model.predict(X), declared.predict(X))
    assert model.score(X, form(labels)) == declared.score(X, np.array(GRADES)[y])


def test_numbers_in_an_order_of_their_own() -> None:
    X, y = ordered_sample()
    places = pd.Series(3 - y).astype(pd.CategoricalDtype([3, 2, 1], ordered=True))  # 1 is best
    model = OrdinalLogistic().fit(X, places)
    assert model.classes_.tolist() == [3, 2, 1]
    assert np.array_equal(model.predict(X), 3 - OrdinalLogistic().fit(X, y).predict(X))


def test_an_unordered_categorical_has_no_order() -> None:
    X, y = ordered_sample()
    with pytest.raises(ValueError, match="ordered pandas Categorical"):
        OrdinalLogistic().fit(X, pd.Categorical(np.array(GRADES)[y]))


def test_a_missing_category_is_refused() -> None:
    X, y = ordered_sample()
    labels = pd.Categorical(np.array(GRADES)[y], categories=["poor", "good"], ordered=True)
    with pytest.raises(ValueError, match="NaN"):
        OrdinalLogistic().fit(X, labels)


def test_tune_takes_a_categorical() -> None:
    X, y = ordered_sample(60)
    labels = pd.Categorical(np.array(GRADES)[y], categories=GRADES, ordered=True)
    found = tune(SVORIM(gamma=0.5), X, labels, {"C": [0.1, 10.0]}, cv=3)
    plain = tune(SVORIM(gamma=0.5), X, y, {"C": [0.1, 10.0]}, cv=3)
    assert found.best_score == plain.best_score
    assert found.estimator.classes_.tolist() == GRADES


def test_classes_that_do_not_occur_have_no_share_of_the_weight() -> None:
    ranks, weight = np.array([0, 0, 0, 3]), np.array([1.0, 2.0, 1.0, 0.5])
    balanced = class_weighted("balanced", ranks, weight, np.arange(5))
    assert balanced.sum() == pytest.approx(weight.sum())
    assert balanced[:3].sum() == pytest.approx(balanced[3])
    assert balanced[1] == 2 * balanced[0]


def test_half_stars_are_labels_if_they_are_declared() -> None:
    X = np.arange(20.0).reshape(-1, 1)
    y = np.repeat([0.5, 1.0, 1.5, 2.0], 5)
    with pytest.raises(ValueError, match=r"continuous.*half stars are declared with classes="):
        SVORIM().fit(X, y)
    stars = np.arange(0.5, 5.5, 0.5)
    model = SVORIM(C=10, classes=stars).fit(X, y)
    assert model.predict([[2.0], [12.0]]).tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match=r"y contains \[0\.7\]"):
        SVORIM(classes=stars).fit(X, np.where(y == 0.5, 0.7, y))
