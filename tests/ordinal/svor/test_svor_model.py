"""SVORIM, SVOREX and SVORSLA as scikit-learn estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from contracts.ordinal_contract import ordered_sample
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.kernels import ARDLinear, Gaussian
from ordrec.ordinal.svor.model import SVOREX, SVORIM, SVORSLA

ALL = (SVORIM, SVOREX, SVORSLA)
NO_ORDER = "labels of text have no order of their own: more than two need classes="


def _expected_failures(estimator):
    return {"check_classifiers_classes": NO_ORDER}


@parametrize_with_checks([model() for model in ALL], expected_failed_checks=_expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = 1 + np.digitize(X[:, 0] + 0.5 * rng.normal(size=80), [-1.0, 0.0, 1.0])
    return X, y


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_two_ranks_are_a_support_vector_classifier(data, model, kernel, solver):
    X, y = data
    y = y > 2
    svc = SVC(C=3.0, kernel=kernel, gamma=0.3, tol=1e-8).fit(X, y)
    mine = model(C=3.0, kernel=kernel, gamma=0.3, tol=1e-6, solver=solver).fit(X, y)
    score = mine.predict_latent(X) - mine.thresholds_[0]
    assert score == pytest.approx(svc.decision_function(X), abs=1e-4)
    assert np.array_equal(mine.predict(X), svc.predict(X))


@pytest.mark.parametrize("model", ALL)
def test_fitted_attributes_describe_the_solution(data, model):
    X, y = data
    fitted = model(C=2.0, gamma=0.5).fit(X, y)
    assert fitted.converged_
    assert fitted.violation_ <= 1e-3
    assert 0 <= fitted.dual_gap_ <= 1e-4 * fitted.objective_
    assert fitted.thresholds_.shape == (3,)
    assert fitted.dual_coef_.shape == fitted.support_.shape
    assert np.all(fitted.dual_coef_ != 0)
    scores = np.exp(-0.5 * ((X[:, None] - X[fitted.support_]) ** 2).sum(axis=2))
    assert fitted.predict_latent(X) == pytest.approx(scores @ fitted.dual_coef_)
    assert fitted.n_iter_ > 0


@pytest.mark.parametrize("model", ALL)
def test_weights_zero_and_two(data, model):
    X, y = data
    weight = np.ones(80)
    weight[:10], weight[10:15] = 0.0, 2.0
    rows = np.concatenate([np.arange(10, 80), np.arange(10, 15)])
    weighted = model(tol=1e-6, gamma=0.3).fit(X, y, sample_weight=weight)
    repeated = model(tol=1e-6, gamma=0.3).fit(X[rows], y[rows])
    assert weighted.predict_latent(X) == pytest.approx(repeated.predict_latent(X), abs=1e-3)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    assert np.all(weighted.support_ >= 10)
    # "scale" is the scale of the samples that count
    removed = model().fit(X[10:], y[10:])
    assert model().fit(X, y, sample_weight=(weight > 0)).kernel_ == removed.kernel_


def test_kernels_by_all_routes_agree(data):
    X, y = data
    reference = SVORIM(gamma=0.4).fit(X, y).predict_latent(X)
    K = Gaussian(0.4)(X)
    assert SVORIM(kernel=Gaussian(0.4)).fit(X, y).predict_latent(X) == pytest.approx(reference)
    assert SVORIM(kernel="precomputed").fit(K, y).predict_latent(K) == pytest.approx(reference)
    thin = sparse.csr_matrix(X)
    assert SVORIM(gamma=0.4).fit(thin, y).predict_latent(thin) == pytest.approx(reference, abs=5e-3)
    flat = SVORIM(kernel="linear", tol=1e-6).fit(X, y).predict_latent(X)
    thin_flat = SVORIM(kernel="linear", tol=1e-6).fit(thin, y).predict_latent(thin)
    assert thin_flat == pytest.approx(flat, abs=1e-3)


@pytest.mark.parametrize("model", [SVORIM, SVOREX, SVORSLA])
@pytest.mark.parametrize("weight", [None, np.array([0.5, 2.0, 1.0])])
def test_linear_kernels_of_many_rows_are_solved_by_their_features(model, weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.digitize(X[:, 0] + X[:, 1] + rng.normal(size=400), [-1.0, 0.0, 1.0])
    counted = rng.integers(0, 3, size=400).astype(float)
    scaled = X if weight is None else X * np.sqrt(weight)
    kernel = "linear" if weight is None else ARDLinear(weight)
    whole = model(kernel="precomputed", tol=1e-5).fit(scaled @ scaled.T, y, counted)
    narrow = model(kernel=kernel, tol=1e-5).fit(X, y, counted)
    thin = model(kernel=kernel, tol=1e-5).fit(sparse.csr_matrix(X), y, counted)
    assert narrow.converged_
    assert counted[narrow.support_].min() > 0.0
    assert narrow.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    assert thin.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    scores = whole.predict_latent(scaled @ scaled.T)
    assert narrow.predict_latent(X) == pytest.approx(scores, abs=1e-3)
    assert thin.predict_latent(sparse.csr_matrix(X)) == pytest.approx(scores, abs=1e-3)
    assert thin.predict_latent(X) == pytest.approx(narrow.predict_latent(X), abs=1e-3)


def test_precomputed_with_zero_weights(data):
    X, y = data
    K = Gaussian(0.4)(X)
    weight = (np.arange(80) >= 10).astype(float)
    part = SVORIM(kernel="precomputed").fit(K[10:, 10:], y[10:])
    whole = SVORIM(kernel="precomputed").fit(K, y, sample_weight=weight)
    assert whole.predict_latent(K) == pytest.approx(part.predict_latent(K[:, 10:]))


def test_labels_of_text_need_their_order(data):
    X, y = data
    names = np.array(["bad", "so-so", "good", "great"])
    with pytest.raises(ValueError, match="classes="):
        SVORIM().fit(X, names[y - 1])
    model = SVORIM(classes=names).fit(X, names[y - 1])
    assert np.array_equal(model.predict(X), names[SVORIM().fit(X, y).predict(X) - 1])


@pytest.mark.parametrize("model", ALL)
def test_declared_ranks_that_do_not_occur(data, model):
    X, y = data
    fitted = model(classes=[0, 1, 2, 2.5, 3, 4, 5, 6]).fit(X, y)
    assert fitted.thresholds_.shape == (7,)
    assert np.all(np.isfinite(fitted.thresholds_))
    assert set(fitted.predict(X)) <= {1, 2, 3, 4}
    assert fitted.thresholds_[1:5:1][[0, 3]] == pytest.approx(fitted.thresholds_[[1, 4]])
    if model is not SVORSLA:
        assert np.all(np.diff(fitted.thresholds_) >= 0)


def test_probabilities_come_from_held_out_scores(data):
    X, y = data
    model = SVORIM(probability=True, classes=[1, 2, 3, 4, 5]).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (80, 5)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert np.all(p > 0)
    order = np.argsort(model.predict_latent(X))
    assert np.all(np.diff((p @ np.arange(5))[order]) >= -1e-12)
    with pytest.raises(AttributeError, match="predict_proba of SVORIM needs probability=True"):
        SVORIM().fit(X, y).predict_proba(X)


def test_works_in_pipelines_searches_clones_and_pickles(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), SVOREX())
    search = GridSearchCV(
        pipeline, {"svorex__C": [0.1, 1.0]}, cv=3, scoring="neg_mean_absolute_error"
    ).fit(X, y)
    assert search.best_score_ > -1.0
    model = SVORIM(C=3.0, costs=np.abs(np.subtract.outer(range(4), range(4))))
    copy = clone(model)
    assert np.array_equal(copy.costs, model.costs)
    fitted = model.fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_latent(X), fitted.predict_latent(X))
    gram = GridSearchCV(SVORIM(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3)
    gram.fit(Gaussian(0.3)(X), y)


def test_large_samples_use_single_precision_and_still_meet_the_conditions():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1200, 4))
    y = np.digitize(X.sum(axis=1) + rng.normal(size=1200), [-2.0, 0.0, 2.0])
    model = SVORIM(C=1.0).fit(X, y)
    assert model.converged_
    tight = SVORIM(C=1.0, tol=5e-5).fit(X, y)  # too tight for single precision
    assert model.objective_ == pytest.approx(tight.objective_, rel=2e-4)
    assert np.mean(model.predict(X) == tight.predict(X)) > 0.995


def test_too_few_iterations_warn_with_numbers(data):
    X, y = data
    with pytest.warns(ConvergenceWarning, match=r"violation .* \(tol 0.001\) and duality gap"):
        model = SVORIM(max_iter=1).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning):
        SVOREX(solver="smo", max_iter=5).fit(X, y)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be"),
        ({"C": -1.0}, "C must be"),
        ({"C": "1"}, "C must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"solver": "simplex"}, "solver must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"kernel": "cosine"}, "kernel must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"classes": [1, 2]}, "not among the declared classes"),
    ],
)
def test_bad_parameters(data, model, parameters, message):
    with pytest.raises(ValueError, match=message):
        model(**parameters).fit(*data)


@pytest.mark.parametrize("model", ALL)
def test_bad_data(data, model):
    X, y = data
    with pytest.raises(ValueError, match="one class"):
        model().fit(X, np.ones(80))
    with pytest.raises(ValueError, match=r"one class|minimum of|1 sample"):
        model().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="NaN"):
        model().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="Negative"):
        model().fit(X, y, sample_weight=np.linspace(-1, 1, 80))
    with pytest.raises(ValueError, match="one class"):
        model().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="square"):
        model(kernel="precomputed").fit(X, y)
    K = X @ X.T
    K[0, 1] += 1.0
    with pytest.raises(ValueError, match="symmetric"):
        model(kernel="precomputed").fit(K, y)
    with pytest.raises(NotFittedError):
        model().predict(X)
    with pytest.raises(ValueError, match="features"):
        model().fit(X, y).predict(X[:, :2])


@pytest.mark.realdata
def test_grades_turn_the_thresholds_of_sla(real_data):
    # section 4.1: students of grades B, C and D, kappa = 0.5 (gamma = 0.25), C = 1
    table = np.loadtxt(real_data / "student-grades" / "grades.csv", delimiter=",", skiprows=1)
    table = table[(table[:, 2] > 1) & (table[:, 2] < 5)]
    assert len(table) == 24
    X = StandardScaler().fit_transform(table[:, :2])
    fit = {model: model(C=1.0, gamma=0.25, tol=1e-6).fit(X, table[:, 2]) for model in ALL}
    low, high = fit[SVORSLA].thresholds_
    assert high < low - 0.01
    assert fit[SVOREX].thresholds_[0] == fit[SVOREX].thresholds_[1]
    low, high = fit[SVORIM].thresholds_
    assert low < high


def overlapping(n=400):
    """Ranks of which the outer two are the same cloud: no line orders them."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [n, n // 8, n])
    X = rng.normal(size=(y.size, 2)) + np.where(y == 1, 3.0, 0.0)[:, None]
    X[y == 2] = X[y == 0][rng.permutation(n)]
    return X, y


def test_where_no_cost_helps_the_warning_says_so():
    X, y = overlapping()
    for C in (0.1, 100.0):
        with pytest.warns(UserWarning, match="no C helps"):
            model = SVORIM(C=C, kernel="linear", scaling=None).fit(X, y)
        assert np.ptp(model.predict_latent(X)) < 0.01
    X, y = ordered_sample(60)
    with pytest.warns(UserWarning, match="raise C"):
        SVORIM(C=1e-9, kernel="linear").fit(X, y)
