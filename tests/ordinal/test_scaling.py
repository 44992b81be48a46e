"""Features in unlike units: which estimators standardise them, when, and what it changes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contracts.sklearn_contract import expected_failures
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec import ordinal
from ordrec.errors import ArgumentError
from ordrec.kernels import Gaussian, Linear, Pearson
from ordrec.ordinal import GPOR, NPSVOR, SVOREX, SVORIM, OrdinalLogistic, PRank, tune
from ordrec.ordinal.scaling import Standardisation, hidden_features

BASELINES = ("CSSVC", "OPBE", "REDSVM", "SVC1V1", "SVC1VA", "SVMOP", "SVRanks", "GPRanks")
KERNEL_ESTIMATORS = [
    SVORIM(),
    SVOREX(),
    NPSVOR(),
    GPOR(),
    OrdinalLogistic(),
    OrdinalLogistic(kernel="rbf"),
    PRank(random_state=0),
    *(getattr(ordinal, name)() for name in BASELINES),
]
UNITS = np.array([1e-3, 1.0, 50.0, 2e5])


def sample(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Standard features of which the first two, small in the user's units, decide."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=n), [-0.8, 0.8])


def quiet(estimator: Any, X: Any, y: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y, **options)


def error(model: Any, X: Any, y: np.ndarray) -> float:
    return float(np.abs(model.predict(X) - y).mean())


@parametrize_with_checks(
    [SVORIM(scaling="standard"), NPSVOR(scaling="standard")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_standardised_features(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", KERNEL_ESTIMATORS, ids=repr)
def test_units_do_not_decide(estimator: Any) -> None:
    X, y = sample()
    new, truth = sample(300, seed=1)
    scaled = quiet(clone(estimator), StandardScaler().fit_transform(X), y)
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    own_units = quiet(clone(estimator), X * UNITS + 7.0, y)
    assert own_units.scaling_ is not None
    predicted = own_units.predict(new * UNITS + 7.0)
    assert np.mean(predicted == scaled.predict((new - mean) / deviation)) > 0.99
    constant = np.abs(truth - 1).mean()
    assert error(own_units, new * UNITS + 7.0, truth) < 0.7 * constant


@pytest.mark.parametrize("estimator", KERNEL_ESTIMATORS, ids=repr)
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MinMaxScaler((-1, 1))])
def test_scaled_features_are_left_as_they_are(estimator: Any, scaler: Any) -> None:
    X, y = sample()
    X = scaler.fit_transform(X)[:70]  # as in a fold of cross-validation
    auto = quiet(clone(estimator), X, y[:70])
    plain = quiet(clone(estimator).set_params(scaling=None), X, y[:70])
    assert auto.scaling_ is None
    assert np.array_equal(auto.predict(X), plain.predict(X))


def test_texts_and_rare_columns_are_left_as_they_are() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.02 * 10 ** rng.uniform(0, 2, 40), size=(60, 40)).astype(float)
    texts = normalize(counts * 10 ** rng.uniform(-2, 2, 40))  # rare words weigh more
    assert not hidden_features(sparse.csr_array(texts), "linear", "scale")
    rare = np.zeros((60, 6))
    rare[rng.integers(60, size=6), np.arange(6)] = 1.0  # each column is 1 for one row
    mixed = np.hstack([rng.normal(size=(60, 3)), rare])
    assert not hidden_features(mixed, "rbf", "scale")


def test_kernel_objects_keep_the_features_they_were_chosen_for() -> None:
    X, y = sample()
    for kernel in (Linear(), Gaussian(1e-10), Pearson()):
        assert quiet(SVORIM(kernel=kernel), X * UNITS, y).scaling_ is None
    assert quiet(SVORIM(kernel=Linear(), scaling="standard"), X * UNITS, y).scaling_ is not None


def test_a_precomputed_kernel_is_untouched() -> None:
    X, y = sample()
    K = Linear()(X * UNITS)
    assert quiet(SVORIM(kernel="precomputed"), K, y).scaling_ is None
    with pytest.raises(ArgumentError, match="precomputed"):
        SVORIM(kernel="precomputed", scaling="standard").fit(K, y)


def test_the_default_width_must_fit_the_features() -> None:
    """The paper's width of GPOR is for features of unit variance, whatever they have in common."""
    X, _ = sample()
    assert hidden_features(100 * X, "rbf", None)
    assert not hidden_features(100 * X, "rbf", "scale")
    apart = X + 1000.0 * np.arange(4)  # "scale" takes the variance of all entries
    assert hidden_features(apart, "rbf", "scale")
    assert not hidden_features(apart, "rbf", 0.1)  # a width that was chosen


def test_coefficients_are_in_the_units_of_the_user() -> None:
    X, y = sample()
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    standard = OrdinalLogistic(scaling=None).fit((X - mean) / deviation, y)
    model = OrdinalLogistic().fit(X * UNITS + 7.0, y)
    np.testing.assert_allclose(model.coef_ * UNITS * deviation, standard.coef_, rtol=1e-6)
    latent = (X * UNITS + 7.0) @ model.coef_
    np.testing.assert_allclose(model.predict_latent(X * UNITS + 7.0), latent)
    np.testing.assert_allclose(
        latent[:, None] - model.thresholds_,
        standard.predict_latent((X - mean) / deviation)[:, None] - standard.thresholds_,
        rtol=1e-6,
        atol=1e-8,
    )


@pytest.mark.parametrize("estimator", [SVORIM(), NPSVOR(), OrdinalLogistic()], ids=repr)
def test_sparse_features_stay_sparse_and_give_the_same(estimator: Any) -> None:
    X, y = sample()
    X[np.abs(X) < 0.3] = 0.0
    dense = quiet(clone(estimator), X * UNITS, y)
    thin = quiet(clone(estimator), sparse.csr_array(X * UNITS), y)
    assert not thin.scaling_.mean.any()
    assert sparse.issparse(thin.scaling_(sparse.csr_array(X)))
    assert np.mean(dense.predict(X * UNITS) == thin.predict(sparse.csr_array(X * UNITS))) > 0.98
    mixed = dense.predict(sparse.csr_array(X * UNITS))
    assert np.array_equal(mixed, dense.predict(X * UNITS))


def test_samples_of_weight_zero_have_no_units() -> None:
    X, y = sample(40)
    X[20:] *= UNITS
    weight = np.repeat([1.0, 0.0], 20)
    assert quiet(SVORIM(), X, y, sample_weight=weight).scaling_ is None
    standard = quiet(SVORIM(scaling="standard"), X, y, sample_weight=weight).scaling_
    np.testing.assert_array_equal(standard.deviation, X[:20].std(axis=0))


def test_constant_features_are_only_moved() -> None:
    X = np.column_stack([np.full(9, 0.1), np.arange(9.0)])
    for form in (np.asarray, sparse.csr_array):
        assert Standardisation.of(form(X)).deviation[0] == 1.0


def test_tune_scales_as_the_estimator_does() -> None:
    X, y = sample()
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 0.5]}
    own_units = tune(SVORIM(), X * UNITS, y, grid, cv=3)
    Z = StandardScaler().fit_transform(X)
    standard = tune(SVORIM(), Z, y, grid, cv=3)
    assert own_units.best_params == standard.best_params
    np.testing.assert_allclose(own_units.table["score"], standard.table["score"])
    assert own_units.estimator.scaling_ is not None


def test_an_unknown_scaling_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r'"auto", "standard" or None'):
        SVORIM(scaling="minmax").fit(*sample())


def test_a_constant_prediction_is_said_with_the_remedy() -> None:
    X, y = sample(700)  # more than are looked at first
    y = np.digitize(X[:, 0], [1.0, 1.3])
    with pytest.warns(
        UserWarning, match=r'for all 700 .*scaling="standard".* or raise C$'
    ) as caught:
        SVORIM(kernel="linear", C=1e-3, scaling=None).fit(1e-3 * X, y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"features: lower alpha$"):
        OrdinalLogistic(alpha=1e6, scaling="standard").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVORIM(kernel="linear").fit(X, y)


def test_a_warning_of_convergence_names_who_called_fit() -> None:
    X, y = sample()
    for model in (NPSVOR(max_iter=1, solver="admm"), SVORIM(max_iter=1), GPOR(max_iter=1)):
        with pytest.warns(ConvergenceWarning) as caught:
            model.fit(X, y)
        assert caught[0].filename == __file__, model


@pytest.mark.realdata
@pytest.mark.parametrize("estimator", [SVORIM(), SVOREX(), NPSVOR(), GPOR()], ids=repr)
@pytest.mark.parametrize("name", ["automobile", "eucalyptus"])
def test_defaults_beat_a_constant_on_tables_in_their_own_units(
    real_data: Path, estimator: Any, name: str
) -> None:
    from ordrec.datasets import load_table

    table = load_table(real_data / f"ordinal-survey/{name}.csv")
    train, test = table.split(0)
    model = quiet(clone(estimator), table.X[train], table.y[train])
    constant = np.abs(table.y[test] - np.median(table.y[train])).mean()
    assert error(model, table.X[test], table.y[test]) < 0.75 * constant


def test_sparse_rows_are_centred_where_any_feature_was() -> None:
    X = np.array([[-1.0, 0.0, 2.0], [1.0, 3.0, 0.0]])
    for mean in ([0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, 3.0]):
        scaling = Standardisation(np.array(mean), np.array([1.0, 2.0, 4.0]))
        found = scaling(sparse.csr_array(X))
        expected = (X - mean) / scaling.deviation
        assert sparse.issparse(found) == (not any(mean))
        assert (found.toarray() if sparse.issparse(found) else found).tolist() == expected.tolist()
