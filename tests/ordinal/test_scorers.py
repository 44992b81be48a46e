"""Ordered labels in scikit-learn's cross-validation: the right order, or a refusal."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from contracts.ordinal_contract import ordered_sample
from sklearn.ensemble import StackingClassifier
from sklearn.metrics import cohen_kappa_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.errors import ArgumentError, DataError
from ordrec.ordinal import GPOR, NPSVOR, SVORIM, OrdinalLogistic, scorers

GRADES = ["poor", "fair", "good"]  # neither alphabetical nor reversed
X, RANKS = ordered_sample(90)
NAMES = np.array(GRADES)[RANKS]
CATEGORIES = pd.Series(pd.Categorical(NAMES, GRADES, ordered=True))
MODELS = {
    "logistic": OrdinalLogistic(),
    "svorim": SVORIM(probability=True),
    "pipeline": make_pipeline(StandardScaler(), OrdinalLogistic()),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr"])
def test_scorers_that_would_mistake_the_columns_are_refused(model: Any, scoring: str) -> None:
    with pytest.raises(ArgumentError, match=r"ordrec\.ordinal\.scorers"):
        cross_val_score(model, X, CATEGORIES, scoring=scoring, cv=3, error_score="raise")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        scores = cross_val_score(model, X, CATEGORIES, scoring=scoring, cv=3)
    assert np.isnan(scores).all()
    assert any("ordrec.ordinal.scorers" in str(each.message) for each in told)


def test_declared_classes_and_surfaces_are_refused_too() -> None:
    for model, scoring in (
        (OrdinalLogistic(classes=GRADES), "neg_log_loss"),
        (NPSVOR(classes=GRADES), "top_k_accuracy"),
    ):
        with pytest.raises(ArgumentError, match=r"ordrec\.ordinal\.scorers"):
            cross_val_score(model, X, NAMES, scoring=scoring, cv=3, error_score="raise")


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (scorers.neg_log_loss, "neg_log_loss"),
        (scorers.roc_auc, "roc_auc_ovr"),
        (scorers.neg_mean_absolute_error, "neg_mean_absolute_error"),
        (scorers.quadratic_kappa, make_scorer(cohen_kappa_score, weights="quadratic")),
    ],
    ids=["log_loss", "auc", "mae", "kappa"],
)
def test_our_scorers_say_of_names_what_theirs_say_of_numbers(
    model: Any, ours: Any, theirs: Any
) -> None:
    expected = cross_val_score(model, X, RANKS, scoring=theirs, cv=3, error_score="raise")
    for y in (RANKS, CATEGORIES):
        found = cross_val_score(model, X, y, scoring=ours, cv=3, error_score="raise")
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_ranked_probability_score_by_hand() -> None:
    class Fixed:
        classes_ = np.array(GRADES)

        def predict_proba(self, X: Any) -> np.ndarray:
            return np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])

    found = scorers.neg_ranked_probability_score(Fixed(), None, ["fair", "good"])
    assert found == pytest.approx(-(0.5**2 + 0.2**2 + 0.1**2 + 0.2**2) / 2)


def test_a_search_takes_our_scorers() -> None:
    grid = {"alpha": [1e-4, 10.0]}
    search = GridSearchCV(OrdinalLogistic(), grid, scoring=scorers.neg_log_loss, cv=3)
    numbers = GridSearchCV(OrdinalLogistic(), grid, scoring="neg_log_loss", cv=3).fit(X, RANKS)
    search.fit(X, CATEGORIES)
    assert search.best_params_ == numbers.best_params_
    assert search.best_score_ == pytest.approx(numbers.best_score_)


def test_labels_that_scikit_learn_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"cross_val_predict.*alphabetical.*y as numbers"):
        cross_val_predict(OrdinalLogistic(), X, CATEGORIES, cv=3, method="predict_proba")
    with pytest.raises(DataError, match="numbers in the order of the ranks"):
        cross_val_predict(
            OrdinalLogistic(classes=GRADES), X, NAMES, cv=3, method="predict_proba", n_jobs=2
        )
    stacked = StackingClassifier([("ordinal", OrdinalLogistic())], cv=3)
    with pytest.raises(ArgumentError, match="alphabetical"):
        stacked.fit(X, CATEGORIES)
    p = cross_val_predict(OrdinalLogistic(), X, RANKS, cv=3, method="predict_proba")
    codes = cross_val_predict(
        OrdinalLogistic(), X, CATEGORIES.cat.codes, cv=3, method="predict_proba"
    )
    np.testing.assert_array_equal(p, codes)
    names = cross_val_predict(OrdinalLogistic(), X, CATEGORIES, cv=3)
    assert (names == NAMES).mean() > 0.5


def test_labels_in_alphabetical_order_need_no_care() -> None:
    letters = np.array(list("abc"))[RANKS]
    model = GPOR(classes=list("abc"))
    found = cross_val_score(model, X, letters, scoring="neg_log_loss", cv=3, error_score="raise")
    expected = cross_val_score(GPOR(), X, RANKS, scoring="neg_log_loss", cv=3)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
