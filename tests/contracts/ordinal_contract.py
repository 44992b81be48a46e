"""Tests that every ordinal estimator must pass.

The estimators of a family are tested by a subclass, in a module of its own:

    class TestNPSVORContract(OrdinalContract):
        estimators = [NPSVOR(), NPSVOR(kernel="linear")]

Estimators must be cheap to fit to some fifty rows. Class attributes switch off tests that do not
apply to an estimator.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.kernels import Gaussian

SCALE = ["awful", "bad", "fair", "good", "great"]


def ordered_sample(n: int = 45, n_ranks: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two features and ranks that grow with their noisy sum; every rank occurs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    score = X.sum(axis=1) + 0.3 * rng.normal(size=n)
    cuts = np.quantile(score, np.arange(1, n_ranks) / n_ranks)
    return X, np.digitize(score, cuts)


def quiet_fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(*args, **kwargs)


def pytest_generate_tests(metafunc: Any) -> None:
    """Run each contract test once for each of the class's estimators."""
    estimators = getattr(metafunc.cls, "estimators", None)
    if estimators is not None and "estimator" in metafunc.fixturenames:
        metafunc.parametrize("estimator", estimators, ids=repr)


class OrdinalContract:
    """Tests for the ``estimators`` of a subclass."""

    estimators: ClassVar[list[BaseEstimator]]
    order_of_samples_matters: ClassVar[bool] = False  # online learners
    absent_ranks_may_win: ClassVar[bool] = True  # not for proximity and nominal models
    tolerance: ClassVar[float] = 0.02  # share of predictions that rounding may change

    @pytest.fixture
    def model(self, estimator: Any) -> Any:
        return clone(estimator)

    def same(self, first: np.ndarray, second: np.ndarray) -> bool:
        return bool(np.mean(np.asarray(first) != np.asarray(second)) <= self.tolerance)

    def test_learns_an_ordered_rule(self, model: Any) -> None:
        X, y = ordered_sample(120)
        fitted = quiet_fit(model, X, y)
        new, truth = ordered_sample(300, seed=1)
        predicted = fitted.predict(new)
        guess = np.abs(1 - truth).mean()  # always the middle rank
        assert np.abs(predicted - truth).mean() < 0.5 * guess

    def test_predicts_labels_in_classes(self, model: Any) -> None:
        X, y = ordered_sample()
        predicted = quiet_fit(model, X, y * 10 + 3).predict(X)
        assert predicted.shape == y.shape
        assert set(predicted.tolist()) <= {3, 13, 23}
        assert model.classes_.tolist() == [3, 13, 23]

    def test_labels_of_any_type_follow_the_declared_order(self, model: Any) -> None:
        X, y = ordered_sample()
        names = np.array(["poor", "fair", "good"])
        named = quiet_fit(clone(model).set_params(classes=list(names)), X, names[y])
        numbered = quiet_fit(clone(model), X, y)
        assert named.classes_.tolist() == list(names)
        assert self.same(named.predict(X), names[numbered.predict(X)])

    def test_unordered_labels_are_refused(self, model: Any) -> None:
        X, y = ordered_sample()
        with pytest.raises(ValueError, match="classes="):
            model.fit(X, np.array(["poor", "fair", "good"])[y])

    def test_undeclared_labels_are_refused(self, model: Any) -> None:
        X, y = ordered_sample()
        with pytest.raises(ValueError, match="declared"):
            clone(model).set_params(classes=[0, 1]).fit(X, y)

    @pytest.mark.parametrize("present", [(1, 2, 3), (0, 2, 4)], ids=["ends", "inner"])
    def test_a_declared_rank_may_be_absent(self, model: Any, present: tuple[int, ...]) -> None:
        X, y = ordered_sample()
        labels = np.array(SCALE)[np.array(present)[y]]
        fitted = quiet_fit(clone(model).set_params(classes=SCALE), X, labels)
        predicted = fitted.predict(X)
        assert fitted.classes_.tolist() == SCALE
        assert set(predicted.tolist()) <= set(SCALE)
        allowed = {SCALE[k] for k in present}
        assert np.mean([label in allowed for label in predicted]) >= 0.5
        if not self.absent_ranks_may_win:
            assert set(predicted.tolist()) <= allowed

    def test_two_ranks(self, model: Any) -> None:
        X, y = ordered_sample(60, n_ranks=2)
        predicted = quiet_fit(model, X, y).predict(X)
        assert np.mean(predicted == y) > 0.75

    def test_order_of_samples_does_not_matter(self, model: Any) -> None:
        if self.order_of_samples_matters:
            pytest.skip("an online learner")
        X, y = ordered_sample()
        shuffled = np.random.default_rng(3).permutation(y.size)
        new, _ = ordered_sample(200, seed=1)
        one = quiet_fit(clone(model), X, y).predict(new)
        two = quiet_fit(clone(model), X[shuffled], y[shuffled]).predict(new)
        assert self.same(one, two)

    def test_weight_two_is_a_duplicate_and_zero_an_absence(self, model: Any) -> None:
        if "sample_weight" not in inspect.signature(model.fit).parameters:
            pytest.skip("takes no weights")
        X, y = ordered_sample()
        weight = np.random.default_rng(5).integers(0, 3, size=y.size).astype(float)
        if "gamma" in model.get_params() and model.get_params()["gamma"] == "scale":
            model.set_params(gamma=0.5)  # "scale" depends on which rows are given
        new, _ = ordered_sample(200, seed=1)
        repeats = np.repeat(np.arange(y.size), weight.astype(int))
        weighted = quiet_fit(clone(model), X, y, sample_weight=weight)
        repeated = quiet_fit(clone(model), X[repeats], y[repeats])
        assert self.same(weighted.predict(new), repeated.predict(new))

    def test_weights_in_other_units_are_a_regularization_in_other_units(self, model: Any) -> None:
        """Three times the weights are a third of C, or three times the penalty, or nothing."""
        if "sample_weight" not in inspect.signature(model.fit).parameters:
            pytest.skip("takes no weights")
        X, y = ordered_sample()
        weight = np.random.default_rng(5).uniform(0.2, 2.0, y.size)
        new, _ = ordered_sample(200, seed=1)
        changes = {"C": 1 / 3, "C1": 1 / 3, "C2": 1 / 3, "alpha": 3.0}
        given = {name: model.get_params()[name] for name in changes if hasattr(model, name)}
        other = clone(model).set_params(
            **{name: changes[name] * value for name, value in given.items() if value is not None}
        )
        said = [
            quiet_fit(each, X, y, sample_weight=units * weight).predict(new)
            for each, units in ((clone(model), 1), (other, 3))
        ]
        assert self.same(*said)

    def test_negative_weights_are_refused(self, model: Any) -> None:
        if "sample_weight" not in inspect.signature(model.fit).parameters:
            pytest.skip("takes no weights")
        X, y = ordered_sample()
        with pytest.raises(ValueError, match=r"[Nn]egative"):
            model.fit(X, y, sample_weight=np.full(y.size, -1.0))

    def test_clone_refits_alike_and_pickle_keeps_the_fit(self, model: Any) -> None:
        X, y = ordered_sample()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        fitted = quiet_fit(model, X, y)
        again = quiet_fit(clone(fitted), X, y)
        loaded = pickle.loads(pickle.dumps(fitted))
        assert np.array_equal(fitted.predict(X), again.predict(X))
        assert np.array_equal(fitted.predict(X), loaded.predict(X))

    def test_works_in_a_pipeline_and_a_grid_search(self, model: Any) -> None:
        X, y = ordered_sample(60)
        name = type(model).__name__.lower()
        pipeline = make_pipeline(StandardScaler(), model)
        search = GridSearchCV(pipeline, {f"{name}__classes": [None, [0, 1, 2]]}, cv=2)
        search = quiet_fit(search, X, y)
        assert search.score(X, y) > 0.5
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_a_kernel_by_name_by_object_and_as_a_matrix_agree(self, model: Any) -> None:
        if "kernel" not in model.get_params():
            pytest.skip("has no kernel")
        X, y = ordered_sample()
        new, _ = ordered_sample(200, seed=1)
        kernel = Gaussian(0.3, bounds="fixed")  # fixed for estimators that learn parameters
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        by_object = quiet_fit(clone(model).set_params(kernel=kernel), X, y).predict(new)
        matrix = quiet_fit(clone(model).set_params(kernel="precomputed"), kernel(X), y)
        assert self.same(by_object, matrix.predict(kernel(new, X)))
        if "noise" not in model.get_params() and not hasattr(model, "optimise"):
            by_name = quiet_fit(clone(model).set_params(kernel="rbf", gamma=0.3), X, y)
            assert self.same(by_object, by_name.predict(new))

    @pytest.mark.parametrize("bad", ["oblong", "lopsided"])
    def test_a_bad_kernel_matrix_is_refused(self, model: Any, bad: str) -> None:
        if "kernel" not in model.get_params():
            pytest.skip("has no kernel")
        X, y = ordered_sample()
        K = Gaussian(0.3)(X)
        K = K[:, :-1] if bad == "oblong" else K + np.triu(np.ones_like(K), 1)
        with pytest.raises(ValueError, match=r"square|symmetric"):
            model.set_params(kernel="precomputed").fit(K, y)

    def test_sparse_rows_give_the_same_as_dense_ones(self, model: Any) -> None:
        if not model.__sklearn_tags__().input_tags.sparse:
            pytest.skip("takes no sparse rows")
        X, y = ordered_sample()
        X[np.abs(X) < 0.4] = 0.0
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        dense = quiet_fit(clone(model), X, y).predict(X)
        assert self.same(dense, quiet_fit(clone(model), sparse.csr_array(X), y).predict(X))

    @pytest.mark.parametrize("hole", [np.nan, np.inf])
    def test_holes_in_the_features_are_refused(self, model: Any, hole: float) -> None:
        X, y = ordered_sample()
        X[3, 1] = hole
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.fit(X, y)

    def test_one_class_or_one_sample_is_refused(self, model: Any) -> None:
        X, y = ordered_sample()
        with pytest.raises(ValueError, match=r"[Cc]lass"):
            clone(model).fit(X, np.zeros_like(y))
        with pytest.raises(ValueError, match=r"[Cc]lass|sample"):
            clone(model).fit(X[:1], y[:1])

    def test_predicting_before_fit_is_refused(self, model: Any) -> None:
        with pytest.raises(NotFittedError):
            model.predict(np.zeros((2, 2)))
