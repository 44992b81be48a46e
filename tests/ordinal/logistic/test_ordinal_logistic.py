"""OrdinalLogistic as an estimator."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.kernels import Gaussian, Linear
from ordrec.ordinal.decisions import decide
from ordrec.ordinal.logistic import OrdinalLogistic
from ordrec.ordinal.losses import Loss, gradient, objective
from ordrec.ordinal.svor.model import SVOREX, SVORIM

CASES = [
    OrdinalLogistic(),
    OrdinalLogistic("immediate"),
    OrdinalLogistic("immediate", ordered=False),
    OrdinalLogistic(loss="shifted", margin=2.0),
    OrdinalLogistic("immediate", loss="generalised", sharpness=5.0),
    OrdinalLogistic(kernel="rbf", gamma=0.5),
    OrdinalLogistic("immediate", kernel="rbf", gamma=0.5),
]
UNORDERED = "labels that are strings have no order unless classes= declares one"
BLOBS = "the three blobs of the check do not lie along one direction"
MEDIAN = "predict is the median of predict_proba, the check wants the mode"


def expected_failures(model):
    failures = {"check_classifiers_classes": UNORDERED}
    if model.kernel is None:
        failures["check_classifiers_train"] = BLOBS
    elif model.threshold == "all":
        failures["check_classifiers_train"] = MEDIAN
    return failures


@parametrize_with_checks([CASES[i] for i in (0, 1, 5, 6)], expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    f = X @ [1.0, -2.0, 0.5] + rng.logistic(size=400)
    return X, np.searchsorted([-3.0, -1.0, 0.5, 2.5], f) + 1


@pytest.mark.parametrize("model", CASES, ids=str)
def test_rank_probabilities_agree_with_predict(model, ratings):
    X, y = ratings
    model = clone(model).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p >= 0).all()
    how = "median" if model.threshold == "all" else "mode"
    assert (model.classes_[decide(p, how)] == model.predict(X)).all()


def test_probabilities_of_a_cumulative_model_are_calibrated():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20000, 2))
    cuts = np.array([-2.0, 0.0, 1.5])
    y = np.searchsorted(cuts, X @ [1.5, -1.0] + rng.logistic(size=20000))
    model = OrdinalLogistic(alpha=1e-3).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.5, -1.0], atol=0.06)
    np.testing.assert_allclose(model.thresholds_, cuts, atol=0.06)
    np.testing.assert_allclose(
        model.predict_proba(X).mean(axis=0), np.bincount(y) / 20000, atol=0.01
    )


def test_probabilities_of_an_adjacent_category_model_are_recovered():
    rng = np.random.default_rng(2)
    x = rng.normal(size=20000)
    odds = np.cumsum(np.column_stack([np.zeros_like(x), x + 0.5, x - 0.2, x - 1.0]), axis=1)
    p = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    y = (rng.random(20000)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    model = OrdinalLogistic("immediate", alpha=1e-3).fit(x[:, None], y)
    np.testing.assert_allclose(model.coef_, [1.0], atol=0.05)
    np.testing.assert_allclose(model.predict_proba(x[:, None]), p, atol=0.02)


def test_far_scores_have_certain_and_finite_probabilities(ratings):
    X, y = ratings
    for model in CASES[:5]:
        p = clone(model).fit(X, y).predict_proba(1e4 * X)
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("threshold", ["all", "immediate"])
def test_two_ranks_are_logistic_regression(threshold, ratings):
    X, y = ratings
    y = np.where(y > 3, "late", "early")
    ours = OrdinalLogistic(threshold, alpha=0.5).fit(X, y)
    theirs = LogisticRegression(C=2.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-5)
    np.testing.assert_allclose(-ours.thresholds_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("threshold", ["all", "immediate"])
def test_linear_kernel_is_the_linear_form(threshold, ratings):
    X, y = ratings
    linear = OrdinalLogistic(threshold).fit(X, y)
    for kernel in ("linear", Linear()):
        form = OrdinalLogistic(threshold, kernel=kernel).fit(X, y)
        assert form.support_.size == 3  # the rank of the Gram matrix
        np.testing.assert_allclose(form.predict_latent(X), linear.predict_latent(X), atol=1e-6)
        np.testing.assert_allclose(form.thresholds_, linear.thresholds_, atol=1e-6)
        assert form.objective_ == pytest.approx(linear.objective_, rel=1e-9)


def test_kernel_by_name_by_object_and_precomputed_are_one(ratings):
    X, y = ratings
    named = OrdinalLogistic(kernel="rbf", gamma=0.3).fit(X, y)
    made = OrdinalLogistic(kernel=Gaussian(0.3)).fit(X, y)
    given = OrdinalLogistic(kernel="precomputed").fit(Gaussian(0.3)(X), y)
    new = X[:7] + 0.1
    np.testing.assert_allclose(made.predict_latent(new), named.predict_latent(new))
    np.testing.assert_allclose(
        given.predict_latent(Gaussian(0.3)(new, X)), named.predict_latent(new), atol=1e-7
    )


def test_kernel_objective_is_that_of_the_representer_theorem(ratings):
    X, y = ratings
    model = OrdinalLogistic(kernel="rbf", gamma=0.3, alpha=0.2).fit(X, y)
    dual = np.zeros(400)
    dual[model.support_] = model.dual_coef_
    K = Gaussian(0.3)(X)
    value = objective(
        K @ dual, model.thresholds_, y - 1, Loss("logistic"), "all", 1.0, 0.1 * dual @ K @ dual
    )
    assert model.objective_ == pytest.approx(value, rel=1e-7)
    # stationary in the function: alpha dual = -dloss/df, up to the null space of K
    pull, _ = gradient(K @ dual, model.thresholds_, y - 1, Loss("logistic"), "all")
    np.testing.assert_allclose(K @ (0.2 * dual + pull), 0.0, atol=1e-4)


def test_sparse_and_dense_input_agree(ratings):
    X, y = ratings
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    for model in CASES[:3]:
        dense = clone(model).fit(X, y)
        thin = clone(model).fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6)
        assert (thin.predict(sparse.csr_matrix(X)) == dense.predict(X)).all()


def test_many_sparse_features_go_by_products():
    rng = np.random.default_rng(0)
    X = sparse.random(500, 2000, density=0.01, format="csr", random_state=0)
    f = X @ rng.normal(size=2000)
    y = np.searchsorted(np.quantile(f, [0.3, 0.7]), f)
    model = OrdinalLogistic(alpha=0.01).fit(X, y)
    value = objective(
        X @ model.coef_,
        model.thresholds_,
        y,
        Loss("logistic"),
        "all",
        1.0,
        0.005 * model.coef_ @ model.coef_,
    )
    assert model.objective_ == pytest.approx(value)
    assert (model.predict(X) == y).mean() > 0.95


@pytest.mark.parametrize("model", CASES, ids=str)
def test_a_weight_is_a_number_of_copies(model, ratings):
    X, y = ratings[0][:80], ratings[1][:80]
    copies = np.arange(80) % 3
    weighted = clone(model).fit(X, y, sample_weight=copies)
    repeated = clone(model).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(weighted.predict_latent(X), repeated.predict_latent(X), atol=1e-5)
    np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, atol=1e-5)


@pytest.mark.parametrize("model", CASES, ids=str)
def test_turning_the_scale_around_turns_the_score(model, ratings):
    X, y = ratings
    there, back = clone(model).fit(X, y), clone(model).fit(X, 6 - y)
    np.testing.assert_allclose(back.predict_latent(X), -there.predict_latent(X), atol=1e-5)
    np.testing.assert_allclose(back.thresholds_, -there.thresholds_[::-1], atol=1e-5)


@pytest.mark.parametrize("threshold", ["all", "immediate"])
@pytest.mark.parametrize("absent", [1, 3, 5, (1, 2), (4, 5), (2, 3)])
def test_declared_classes_without_samples_keep_their_rank(threshold, absent, ratings):
    X, y = ratings
    keep = ~np.isin(y, absent)
    model = OrdinalLogistic(threshold, classes=[1, 2, 3, 4, 5]).fit(X[keep], y[keep])
    assert model.classes_.tolist() == [1, 2, 3, 4, 5]
    assert np.isfinite(model.thresholds_).all()
    assert (np.diff(model.thresholds_) >= 0).all()
    p = model.predict_proba(X)
    assert p.shape == (400, 5)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.isin(model.predict(X[keep]), absent).mean() < 0.05


def test_labels_in_declared_order(ratings):
    X, y = ratings
    names = np.array(["awful", "poor", "fair", "good", "superb"])
    model = OrdinalLogistic(classes=names).fit(X, names[y - 1])
    plain = OrdinalLogistic().fit(X, y)
    assert (model.predict(X) == names[plain.predict(X) - 1]).all()


def test_separable_data_with_hardly_any_penalty_stays_finite():
    X = np.linspace(-1, 1, 60)[:, None]
    y = np.repeat([0, 1, 2], 20)
    for threshold in ("all", "immediate"):
        model = OrdinalLogistic(threshold, alpha=1e-8).fit(X, y)
        assert (model.predict(X) == y).all()
        assert np.isfinite(model.coef_).all()


def test_bad_input_is_explained(ratings):
    X, y = ratings
    for options, message in [
        ({"threshold": "both"}, 'threshold must be "all" or "immediate"'),
        ({"loss": "hinge"}, "loss must be one of logistic, shifted, generalised"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"margin": 2.0}, "margin belongs to the shifted loss"),
        ({"sharpness": 2.0}, "sharpness belongs to the generalised loss"),
        ({"max_iter": 0}, "max_iter"),
        ({"kernel": "cubic"}, "kernel must be one of"),
        ({"classes": [1, 2]}, "not among the declared classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            OrdinalLogistic(**options).fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        OrdinalLogistic().fit(X, np.ones(400))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        OrdinalLogistic(kernel="precomputed").fit(np.array([[1.0, 2.0], [2.0, 1.0]]), [0, 1])


def test_a_kernel_that_is_zero_leaves_the_thresholds_alone():
    model = OrdinalLogistic(kernel="precomputed").fit(np.zeros((8, 8)), [0, 0, 0, 1, 1, 2, 2, 2])
    shares = model.predict_proba(np.zeros((1, 8)))[0]
    np.testing.assert_allclose(shares, [3 / 8, 2 / 8, 3 / 8], atol=1e-4)


def test_running_out_of_iterations_warns_with_numbers(ratings):
    X, y = ratings
    with pytest.warns(ConvergenceWarning, match="after 1 iterations with violation"):
        OrdinalLogistic(max_iter=1).fit(X, y)


def test_permuted_labels_predict_nothing():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 4, 2000)
    model = OrdinalLogistic().fit(X[:1000], y[:1000])
    assert abs(np.corrcoef(model.predict_latent(X[1000:]), y[1000:])[0, 1]) < 0.1


@pytest.mark.parametrize(("threshold", "solver"), [("all", SVORIM), ("immediate", SVOREX)])
@pytest.mark.parametrize("loss", ["generalised", "shifted"])
def test_the_sharp_limit_is_svor_with_the_same_kernel(threshold, solver, loss, ratings):
    X, y = ratings[0][:120], ratings[1][:120]
    C, sharp = 2.0, 3000.0
    hinge = solver(C=C, kernel="rbf", gamma=0.5, tol=1e-6).fit(X, y)
    if loss == "generalised":
        model = OrdinalLogistic(
            threshold, loss, sharpness=sharp, alpha=1 / C, kernel="rbf", gamma=0.5
        )
        unit = 1.0
    else:
        model = OrdinalLogistic(
            threshold, loss, margin=sharp, alpha=1 / (C * sharp), kernel="rbf", gamma=0.5
        )
        unit = sharp
    model.fit(X, y)
    np.testing.assert_allclose(model.predict_latent(X) / unit, hinge.predict_latent(X), atol=0.02)
    np.testing.assert_allclose(model.thresholds_ / unit, hinge.thresholds_, atol=0.02)
    # the objectives, in the terms of SVOR: C sum of hinges + 1/2 |w|^2
    assert C * model.objective_ / unit == pytest.approx(hinge.objective_, rel=2e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threshold", ["all", "immediate"])
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("weights", [(1e20, 1.0), (1e308, 1.0), (1e100, 1e-100), (1e300, 1e-300)])
def test_one_weight_may_be_larger_than_all_others(threshold, kernel, weights) -> None:
    """Its rank has nearly all of the weight, and the others still have finite thresholds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=40), [-0.5, 0.5])
    weight = np.r_[weights[0], np.full(39, weights[1])]
    model = OrdinalLogistic(threshold, kernel=kernel).fit(X, y, sample_weight=weight)
    assert np.isfinite(model.thresholds_).all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.predict(X[:1])[0] == y[0]
