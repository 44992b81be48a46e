"""The shared-Gram search against the plain loop of scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from contracts.ordinal_contract import ordered_sample
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.errors import ArgumentError
from ordrec.kernels import Gaussian
from ordrec.ordinal import NPSVOR
from ordrec.ordinal.baselines import SVRanks
from ordrec.ordinal.logistic.model import OrdinalLogistic
from ordrec.ordinal.svor.model import SVOREX, SVORIM
from ordrec.ordinal.tuning import tune

METRICS = ("mze", "mae")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = 1 + np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.4 * rng.normal(size=90), [0.0, 1.0, 2.0])
    return X, y


def _plain(model, grid, X, y, cv=5, metric="mae"):
    scoring = "neg_mean_absolute_error" if metric == "mae" else "accuracy"
    search = GridSearchCV(model, grid, cv=cv, scoring=scoring).fit(X, y)
    score = -search.best_score_ if metric == "mae" else 1.0 - search.best_score_
    means = search.cv_results_["mean_test_score"]
    return search, score, -means if metric == "mae" else 1.0 - means


@pytest.mark.parametrize("model", [SVORIM(), SVOREX(), SVORIM(kernel="poly", degree=2)])
@pytest.mark.parametrize("metric", ["mae", "mze"])
def test_same_scores_and_winner_as_the_plain_loop(data, model, metric):
    X, y = data
    model.set_params(tol=1e-5)
    grid = {"C": [0.1, 1.0, 1.6, 10.0, 1e4], "gamma": [0.01, 0.1, 1.0]}
    found = tune(model, X, y, grid, metric=metric)
    search, score, means = _plain(model, grid, X, y, metric=metric)
    assert found.best_params == search.best_params_
    assert found.best_score == pytest.approx(score)
    assert found.table["score"].to_numpy() == pytest.approx(means)
    assert np.array_equal(found.estimator.predict(X), search.predict(X))


def test_a_pipeline_is_searched_as_by_the_plain_loop(data):
    """Once an AttributeError: 'Pipeline' object has no attribute '_validate_fit'."""
    X, y = data
    X = X * [1.0, 100.0, 1e-3, 10.0]
    model = make_pipeline(StandardScaler(), PCA(3, random_state=0), SVORIM(tol=1e-5))
    grid = {"svorim__C": [0.1, 10.0], "svorim__gamma": [0.01, 1.0]}
    found = tune(model, pd.DataFrame(X), y, grid, cv=3, n_jobs=1)
    search, _, means = _plain(model, grid, X, y, cv=3)
    assert found.best_params == search.best_params_
    assert found.table["score"].to_numpy() == pytest.approx(means)
    assert {"svorim__C", "svorim__gamma"} <= set(found.table)
    assert np.array_equal(found.estimator.predict(pd.DataFrame(X)), search.predict(X))
    alone = tune(make_pipeline(SVORIM()), X, y, {"svorim__C": [0.1, 10.0]}, cv=3)
    assert list(alone.best_params) == ["svorim__C"]


def test_what_cannot_be_searched_is_said(data):
    X, y = data
    with pytest.raises(
        ArgumentError, match="got Ridge: for others use scikit-learn's GridSearchCV"
    ):
        tune(make_pipeline(StandardScaler(), Ridge()), X, y)
    with pytest.raises(ArgumentError, match="'C' is no parameter of the last step"):
        tune(make_pipeline(StandardScaler(), SVORIM()), X, y, {"C": [1.0]})


def test_the_paper_searches_twice(data):
    X, y = data
    found = tune(SVORIM(), X, y)
    coarse, fine = (found.table[found.table["stage"] == stage] for stage in (0, 1))
    assert (len(coarse), len(fine)) == (49, 81)
    assert sorted(set(np.log10(coarse["C"]).round(6))) == list(range(-3, 4))
    assert sorted(set(np.log10(2 * coarse["gamma"]).round(6))) == list(range(-3, 4))
    best = coarse.iloc[coarse["score"].to_numpy().argmin()]
    for name in ("C", "gamma"):
        steps = np.log10(np.unique(fine[name])) - np.log10(best[name])
        assert steps == pytest.approx(0.2 * np.arange(-4, 5))
    assert found.best_score <= coarse["score"].min() + 1e-12
    assert found.best_score == fine["score"].min()


def test_the_other_paper_searches_once(data):
    X, y = data
    found = tune(SVOREX(), X, y, "npsvor-paper", cv=3)
    assert len(found.table) == 49
    assert sorted(set(np.log10(found.table["gamma"]).round(6))) == list(range(-3, 4))


def test_kernels_without_a_width_are_searched_along_the_cost(data):
    X, y = data
    assert len(tune(SVORIM(kernel="linear"), X, y, cv=3).table) == 7 + 9
    K = Gaussian(0.3)(X)
    given = tune(SVORIM(kernel="precomputed"), K, y, {"C": [0.1, 1.0, 10.0]})
    named = tune(SVORIM(kernel=Gaussian(0.3)), X, y, {"C": [0.1, 1.0, 10.0]})
    assert given.table["score"].to_numpy() == pytest.approx(named.table["score"].to_numpy())


def test_a_width_that_follows_from_the_data_follows_from_the_training_part(data):
    X, y = data
    grid = {"C": [0.1, 1.0, 10.0]}
    found = tune(SVORIM(tol=1e-5), X, y, grid, cv=KFold(4))
    _, _, means = _plain(SVORIM(tol=1e-5), grid, X, y, cv=KFold(4))
    assert found.table["score"].to_numpy() == pytest.approx(means)


def test_any_kernel_estimator_will_do(data):
    X, y = data
    grid = {"alpha": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
    model = OrdinalLogistic(kernel="rbf")
    found = tune(model, X, y, grid, cv=3)
    search, _, means = _plain(model, grid, X, y, cv=3)
    assert found.best_params == search.best_params_
    assert found.table["score"].to_numpy() == pytest.approx(means)


@pytest.mark.parametrize(
    "model", [SVORIM(), SVRanks(), NPSVOR(), make_pipeline(StandardScaler(), SVRanks())]
)
def test_a_fold_whose_training_part_has_one_class_predicts_it(model):
    X = np.random.default_rng(1).normal(size=(20, 2))
    y = np.ones(20, dtype=int)
    y[7] = 3  # held out by one of the folds
    cost = {"SVORIM": "C", "SVRanks": "C", "NPSVOR": "C1", "Pipeline": "svranks__C"}
    found = tune(model, X, y, {cost[type(model).__name__]: [0.1, 1.0]}, cv=KFold(5), metric="mze")
    assert found.table["fold 1"].tolist() == [0.25, 0.25]


def test_threads_change_nothing(data):
    X, y = data
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    one, two = (tune(SVORIM(), X, y, grid, n_jobs=n) for n in (1, 2))
    assert one.best_params == two.best_params
    assert np.array_equal(one.table["score"], two.table["score"])


def test_several_metrics_are_tuned_by_the_same_fits(data, monkeypatch):
    X, y = data
    rank_path, fits = SVORIM.rank_path, []

    def counted(self, K, ranks, n_ranks, held, settings):
        fits.append(len(settings))
        return rank_path(self, K, ranks, n_ranks, held, settings)

    monkeypatch.setattr(SVORIM, "rank_path", counted)
    alone = {metric: tune(SVORIM(), X, y, cv=3, metric=metric, n_jobs=1) for metric in METRICS}
    separately = sum(fits)
    fits.clear()
    found = tune(SVORIM(), X, y, cv=3, metric=METRICS, n_jobs=1)
    assert list(found) == list(METRICS)
    for metric in METRICS:
        assert found[metric].best_params == alone[metric].best_params
        assert found[metric].best_score == alone[metric].best_score
        assert found[metric].table.equals(alone[metric].table)
    assert alone["mze"].best_params != alone["mae"].best_params  # else this test shows little
    assert sum(fits) == separately // 2  # here both coarse searches end at the same centre


def test_progress_counts_kernels_and_folds(data):
    X, y = data
    reports = []
    tune(SVORIM(), X, y, cv=3, n_jobs=1, progress=lambda *report: reports.append(report))
    assert [done for done, _, _ in reports] == list(range(1, 3 * (7 + 9) + 1))
    assert {total for _, total, _ in reports} == {3 * 7, 3 * (7 + 9)}
    assert reports[0][2].startswith("fold 0 of {'gamma'")


def test_mistakes(data):
    X, y = data
    for metric in ((), ("mae", "rmse")):
        with pytest.raises(ValueError, match="metric must be"):
            tune(SVORIM(), X, y, metric=metric)
    with pytest.raises(ValueError, match="metric must be"):
        tune(SVORIM(), X, y, metric="rmse")
    with pytest.raises(ValueError, match="scaling cannot be searched"):
        tune(SVORIM(), X, y, {"C": [1.0], "scaling": ["auto", None]})
    with pytest.raises(ValueError, match="grid must be"):
        tune(SVORIM(), X, y, "paper")
    with pytest.raises(ValueError, match="C must be"):
        tune(SVORIM(), X, y, {"C": [-1.0]})


def test_the_wide_grid_goes_on_from_the_best_of_the_papers():
    X, y = ordered_sample(40)
    narrow = tune(NPSVOR(), X, y, "npsvor-paper", cv=2)
    wide = tune(NPSVOR(), X, y, "npsvor-wide", cv=2)
    assert len(wide.table) == 49 + 30
    assert wide.best_score <= narrow.best_score
    chosen = {name: wide.best_params[name] for name in ("C1", "gamma")}
    assert chosen == narrow.best_params
    assert {"C2", "epsilon"} <= set(wide.best_params)
    with pytest.raises(ValueError, match='"npsvor-wide" is for NPSVOR'):
        tune(SVORIM(), X, y, "npsvor-wide")
