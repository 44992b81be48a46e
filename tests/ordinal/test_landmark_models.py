"""Every kernel method with landmarks, against the same method with the exact kernel."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
from contracts.sklearn_contract import expected_failures
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.errors import ArgumentError
from ordrec.kernels import Gaussian
from ordrec.ordinal import (
    CSSVC,
    GPOR,
    NPSVOR,
    OPBE,
    REDSVM,
    SVC1V1,
    SVC1VA,
    SVMOP,
    SVOREX,
    SVORIM,
    GPRanks,
    OrdinalLogistic,
    PRank,
    SVRanks,
    kernel_model,
    tune,
)
from ordrec.ordinal.baselines import gpr

MODELS = [
    SVORIM(C=2.0, gamma=0.3, tol=1e-5),
    SVORIM(C=2.0, gamma=0.3, tol=1e-5, solver="smo"),
    SVOREX(C=2.0, gamma=0.3, tol=1e-5),
    OrdinalLogistic(kernel="rbf", gamma=0.3, alpha=0.5),
    NPSVOR(C1=2.0, gamma=0.3, tol=1e-5),
    NPSVOR(C1=2.0, gamma=0.3, solver="admm", tol=1e-6, max_iter=50_000),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=repr)


RIVALS = [
    SVC1V1(C=2.0, gamma=0.3),
    SVC1VA(C=2.0, gamma=0.3),
    CSSVC(C=2.0, gamma=0.3),
    SVMOP(C=2.0, gamma=0.3),
    SVMOP(C=2.0, gamma=0.3, published=True),
    OPBE(C=2.0, gamma=0.3),
    OPBE(C=2.0, gamma=0.3, published=True),
    REDSVM(C=2.0, gamma=0.3),
    SVRanks(C=2.0, gamma=0.3),
    GPRanks(gamma=0.3),
]
each_rival = pytest.mark.parametrize("model", RIVALS, ids=repr)


def sample(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, [-0.8, 0.0, 0.8])


def scores(model, X):
    return model.predict_distances(X) if isinstance(model, NPSVOR) else model.predict_latent(X)


def with_landmarks(model, m, **others):
    return clone(model).set_params(n_landmarks=m, random_state=0, **others)


@each_model
def test_enough_landmarks_give_the_exact_solution(model):
    X, y = sample(40)
    X, y = np.tile(X, (2, 1)), np.concatenate([y, y[::-1]])  # 40 distinct rows
    exact, near = clone(model).fit(X, y), with_landmarks(model, 40).fit(X, y)
    assert near.left_out_ == pytest.approx(0.0, abs=1e-9)
    assert near.support_.size == 40
    assert near.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    new, _ = sample(50, seed=1)
    np.testing.assert_allclose(scores(near, new), scores(exact, new), atol=0.01)


@each_model
def test_more_landmarks_come_closer(model):
    X, y = sample()
    exact = clone(model).fit(X, y)
    objectives = [with_landmarks(model, m).fit(X, y).objective_ for m in (2, 8, 30, 89)]
    assert all(after <= before for before, after in pairwise(objectives))
    assert objectives[0] > 1.05 * exact.objective_
    assert objectives[-1] >= exact.objective_ * (1 - 1e-4)
    assert objectives[-1] == pytest.approx(exact.objective_, rel=0.01)


@each_model
def test_a_precomputed_kernel_uses_its_columns(model):
    X, y = sample()
    weight = np.ones(90)
    weight[::7] = 0.0
    named = with_landmarks(model, 15).fit(X, y, sample_weight=weight)
    K = Gaussian(0.3)(X)
    given = with_landmarks(model, 15, kernel="precomputed").fit(K, y, sample_weight=weight)
    assert given.support_.tolist() == named.support_.tolist()
    assert not np.isin(given.support_, np.flatnonzero(weight == 0)).any()
    np.testing.assert_allclose(scores(given, K), scores(named, X), atol=1e-3)


@each_model
def test_the_random_state_and_named_rows_decide(model):
    X, y = sample()
    first, again = (with_landmarks(model, 10).fit(X, y) for _ in range(2))
    assert np.array_equal(scores(first, X), scores(again, X))
    named = clone(model).set_params(n_landmarks=np.array([3, 1, 7])).fit(X, y)
    assert sorted(named.support_.tolist()) == [1, 3, 7]


@each_model
@pytest.mark.parametrize(("kernel", "value"), [("rbf", 1.0), ("linear", 1.0), ("linear", 0.0)])
def test_rows_that_are_all_equal(model, kernel, value):
    X, y = np.full((12, 2), value), np.repeat([0, 1, 2], 4)
    fitted = with_landmarks(model, 5, kernel=kernel).fit(X, y)
    assert fitted.support_.size == 1
    assert np.isfinite(scores(fitted, X)).all()


@pytest.mark.parametrize("model", [SVORIM(), SVOREX(), NPSVOR()], ids=repr)
def test_the_gap_of_the_approximated_problem_is_measured(model):
    fitted = with_landmarks(model, 12).fit(*sample())
    assert fitted.converged_
    assert 0.0 <= fitted.dual_gap_ + 1e-9 <= 1e-4 * fitted.objective_


def test_probabilities_go_through_landmarks_too():
    X, y = sample()
    fitted = with_landmarks(SVORIM(probability=True), 20).fit(X, y)
    assert fitted.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(90))


@each_model
def test_predictions_are_made_in_blocks(model, monkeypatch):
    X, y = sample()
    fitted = with_landmarks(model, 10).fit(X, y)
    many = np.tile(X, (2000, 1))
    expected = scores(fitted, X)
    monkeypatch.setattr(kernel_model, "BLOCK_ENTRIES", 2**14)
    tracemalloc.start()
    found = scores(fitted, many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found[:90], expected, atol=1e-10)
    assert peak < 5 * found.nbytes + 10 * 2**17 + 3 * many.nbytes  # the kernel has 14 MB


def test_tune_takes_landmarks():
    X, y = sample()
    grid = {"C": [0.1, 10.0], "gamma": [0.01, 0.3]}
    model = SVORIM(n_landmarks=15, random_state=0)
    found = tune(model, X, y, grid, cv=3)
    assert found.estimator.support_.size == 15
    counts = tune(SVORIM(gamma=0.3, random_state=0), X, y, {"n_landmarks": [2, 30]}, cv=3)
    assert counts.best_params == {"n_landmarks": 30}


@each_rival
def test_rivals_with_enough_landmarks_are_as_the_exact_ones(model):
    X, y = sample(40)
    X, y = np.tile(X, (2, 1)), np.concatenate([y, y[::-1]])  # 40 distinct rows
    exact, near = clone(model).fit(X, y), with_landmarks(model, 40).fit(X, y)
    assert near.left_out_ == pytest.approx(0.0, abs=1e-9)
    assert exact.left_out_ == 0.0
    assert near.dual_coef_.shape[0] == 40
    new, _ = sample(200, seed=1)
    assert np.mean(near.predict(new) != exact.predict(new)) <= 0.02


@each_rival
def test_rivals_with_a_few_landmarks_have_learnt_most(model):
    X, y = sample(300)
    new, truth = sample(300, seed=1)
    exact, few = clone(model).fit(X, y), with_landmarks(model, 25).fit(X, y)
    assert few.dual_coef_.shape[0] == 25
    assert 0.0 < few.left_out_ < 0.2
    errors = [np.abs(fitted.predict(new) - truth).mean() for fitted in (few, exact)]
    assert errors[0] < errors[1] + 0.15  # by chance 1.1


@each_rival
def test_rivals_take_columns_of_a_precomputed_kernel(model):
    X, y = sample()
    given = np.arange(0, 90, 6)
    named = clone(model).set_params(n_landmarks=given).fit(X, y)
    K = Gaussian(0.3)(X)
    if isinstance(model, GPRanks):  # whose kernel's width is fitted too
        K = named.kernel_.kernel(X)
    columns = clone(model).set_params(n_landmarks=given, kernel="precomputed").fit(K, y)
    assert np.mean(columns.predict(K) != named.predict(X)) <= 0.02


def test_the_evidence_is_that_of_a_sample_and_all_rows_are_conditioned_on(monkeypatch):
    X, y = sample(300)
    monkeypatch.setattr(gpr, "EVIDENCE_ROWS", 100)
    fitted = GPRanks(gamma=0.3, n_landmarks=300, random_state=0).fit(X, y)
    drawn = np.sort(np.random.RandomState(0).choice(300, 100, replace=False))
    reference = GPRanks(gamma=0.3).fit(X[drawn], y[drawn])
    assert fitted.log_marginal_likelihood_ == pytest.approx(reference.log_marginal_likelihood_)
    assert fitted.kernel_ == reference.kernel_
    new, truth = sample(300, seed=1)
    known, sampled = (np.mean((m.predict_latent(new) - truth) ** 2) for m in (fitted, reference))
    assert known < 0.9 * sampled  # three times the rows


def test_a_linear_form_has_no_kernel_to_approximate():
    with pytest.raises(ArgumentError, match="n_landmarks approximates a kernel"):
        OrdinalLogistic(n_landmarks=5).fit(*sample())


def test_the_perceptron_walks_in_features_as_with_the_kernel():
    X, y = sample()
    features = PRank(random_state=0).fit(X, y)
    kernel = PRank("precomputed", random_state=0).fit(X @ X.T, y)
    np.testing.assert_allclose(features.dual_coef_, kernel.dual_coef_)
    np.testing.assert_allclose(features.thresholds_, kernel.thresholds_)
    exact = PRank("rbf", gamma=0.3, random_state=0).fit(X, y)
    near = PRank("rbf", gamma=0.3, random_state=0, n_landmarks=np.arange(90)).fit(X, y)
    np.testing.assert_allclose(near.predict_latent(X), exact.predict_latent(X), atol=1e-6)
    few = PRank("rbf", gamma=0.3, random_state=0, n_landmarks=20).fit(X, y)
    assert few.dual_coef_.shape == (20,)
    assert 0.0 < few.left_out_ < 0.5


@pytest.mark.parametrize(
    "model", [*MODELS[::2], GPOR(), PRank("rbf", gamma=0.3), *RIVALS], ids=repr
)
def test_too_many_rows_are_refused_before_memory_runs_out(model, monkeypatch):
    monkeypatch.setattr(kernel_model, "memory_limit", lambda: 50_000.0)
    with pytest.raises(ArgumentError, match=r"on 90 rows needs .* n_landmarks"):
        clone(model).fit(*sample())


def test_many_rows_are_warned_of(monkeypatch):
    monkeypatch.setattr(kernel_model, "MANY", 80)
    with pytest.warns(UserWarning, match=r"90 x 90 entries.*set n_landmarks"):
        SVORIM().fit(*sample())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVORIM(n_landmarks=10).fit(*sample())
        SVORIM(kernel="linear").fit(*sample())


def test_the_memory_limit_is_that_of_the_container(monkeypatch, tmp_path):
    file = tmp_path / "memory.max"
    file.write_text("4096\n")
    monkeypatch.setattr(kernel_model, "CONTAINER_LIMITS", (str(file), str(tmp_path / "none")))
    assert kernel_model.memory_limit() == 4096.0
    file.write_text("max\n")
    assert kernel_model.memory_limit() > 2**20


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        SVORIM(n_landmarks=30, random_state=0),
        SVOREX(n_landmarks=30, random_state=0),
        OrdinalLogistic("immediate", kernel="rbf", n_landmarks=30, random_state=0),
        NPSVOR(n_landmarks=30, random_state=0),
        SVC1VA(n_landmarks=30, random_state=0),
        GPRanks(n_landmarks=30, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_them(estimator, check):
    check(estimator)
