"""Every ordinal estimator on nasty problems: finite, ordered, in bounded time.

What may be said is a `ConvergenceWarning` with numbers in it; numpy's own warnings are errors.
"""

from __future__ import annotations

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import ordrec.ordinal
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
    SVORSLA,
    CumulativeLink,
    GPRanks,
    ORBoost,
    OrdinalLogistic,
    PRank,
    RankBoostAE,
    SVRanks,
    fit_many,
    tune,
)
from ordrec.ordinal.base import OrdinalClassifier, ThresholdModel


def ordered(n=30, n_ranks=4, n_features=3, seed=0):
    """Ranks that grow with the first feature, with noise; every rank occurs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    score = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_ranks) / n_ranks))


# ---- the problems ------------------------------------------------------------------------------

X, y = ordered()
many_X, many_y = ordered(90, 30)
few_X, few_y = ordered(6, 6)
PROBLEMS = {
    "constant features": (np.column_stack([X, np.ones(30), np.full(30, 1e6)]), y, None),
    "all rows equal": (np.full((30, 3), 2.0), y, None),
    "all rows zero": (np.zeros((30, 3)), y, None),
    "twins with other ranks": (np.vstack([X, X, X]), np.concatenate([y, 3 - y, y[::-1]]), None),
    "scale 1e-12": (X * 1e-12, y, None),
    "scale 1e12": (X * 1e12, y, None),
    "scales 1e-12 to 1e12": (X * np.array([1e-12, 1.0, 1e12]), y, None),
    "far from the origin": (X + 1e8, y, None),
    "float32": (X.astype(np.float32), y, None),
    "one outlier": (np.vstack([X, np.full((1, 3), 1e9)]), np.append(y, 0), None),
    "one sample a rank": (few_X, few_y, None),
    "two samples": (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1]), None),
    "two samples, equal": (np.ones((2, 2)), np.array([0, 1]), None),
    "thirty ranks": (many_X, many_y, None),
    "one of many": (X, (np.arange(30) == 17).astype(int), None),
    "separable": (np.linspace(-1, 1, 30)[:, None], np.arange(30) // 10, None),
    "against the order": (np.array([1.0, 0, 2, 0, 1] * 6)[:, None], np.arange(30) % 5, None),
    "more features than rows": (
        np.random.default_rng(3).normal(size=(8, 40)),
        np.arange(8) // 2,
        None,
    ),
    "weights 1e-12": (X, y, np.full(30, 1e-12)),
    "weights 1e12": (X, y, np.full(30, 1e12)),
    "weights of all sizes": (X, y, 10.0 ** np.linspace(-12, 12, 30)),
}
grid = np.linspace(0, 1, 30)[:, None]
GRAMS = {
    "zero": np.zeros((30, 30)),
    "ones": np.ones((30, 30)),
    "identity": np.eye(30),
    "rank one": np.outer(X[:, 0], X[:, 0]),
    "singular": X @ X.T,
    "nearly singular": Gaussian(1e-4)(X),
    "nearly singular, smooth": Gaussian(0.5)(grid),
    "slightly indefinite": X @ X.T - 1e-9 * np.eye(30),
    "scale 1e-12": 1e-12 * Gaussian(0.5)(X),
    "scale 1e12": 1e12 * Gaussian(0.5)(X),
}

# ---- the estimators ----------------------------------------------------------------------------

KERNELS = {
    "SVORIM": SVORIM, "SVOREX": SVOREX, "SVORSLA": SVORSLA, "NPSVOR": NPSVOR, "SVC1V1": SVC1V1,
    "SVC1VA": SVC1VA, "CSSVC": CSSVC, "SVMOP": SVMOP, "REDSVM": REDSVM, "OPBE": OPBE,
    "SVRanks": SVRanks, "PRank": PRank, "GPRanks": GPRanks, "GPOR": GPOR,
}  # fmt: skip
BOUNDED = {"max_iter": 20_000}  # LIBSVM would take the ten million steps it is allowed
LIBSVM = dict.fromkeys(("SVC1V1", "SVC1VA", "CSSVC", "SVMOP", "SVRanks"), BOUNDED)
ESTIMATORS = {
    **{f"{name} {kernel}": (cls, {"kernel": kernel} | LIBSVM.get(name, {}))
       for name, cls in KERNELS.items() for kernel in ("rbf", "linear")},
    "SVORIM with probabilities": (SVORIM, {"probability": True}),
    "SVOREX with probabilities": (SVOREX, {"probability": True, "kernel": "linear"}),
    "SVORIM, huge C": (SVORIM, {"C": 1e9}),
    "SVORIM, tiny C": (SVORIM, {"C": 1e-9}),
    "SVOREX, huge C": (SVOREX, {"C": 1e9}),
    "SVOREX, tiny C": (SVOREX, {"C": 1e-9}),
    "SVORSLA, huge C": (SVORSLA, {"C": 1e9}),
    "NPSVOR, huge C": (NPSVOR, {"C1": 1e9}),
    "NPSVOR, tiny C": (NPSVOR, {"C1": 1e-9}),
    "NPSVOR by ADMM": (NPSVOR, {"solver": "admm"}),
    "NPSVOR with landmarks": (NPSVOR, {"n_landmarks": 4, "random_state": 0}),
    "SVORIM with landmarks": (SVORIM, {"n_landmarks": 4, "random_state": 0}),
    "SVOREX with landmarks": (SVOREX, {"n_landmarks": 4, "random_state": 0}),
    "GPOR ep": (GPOR, {"inference": "ep"}),
    "GPOR ep linear": (GPOR, {"inference": "ep", "kernel": "linear"}),
    "GPOR unlearnt": (GPOR, {"optimizer": None}),
    "GPOR with landmarks": (GPOR, {"n_landmarks": 4}),
    "OrdinalLogistic with landmarks": (OrdinalLogistic, {"kernel": "rbf", "n_landmarks": 4,
                                                         "random_state": 0}),
    **{f"OrdinalLogistic {threshold} {loss}":
       (OrdinalLogistic, {"threshold": threshold, "loss": loss, "margin": margin})
       for threshold in ("all", "immediate")
       for loss, margin in (("logistic", 0.0), ("shifted", 1.0), ("generalised", 0.0))},
    "OrdinalLogistic, order left open": (OrdinalLogistic, {"threshold": "immediate",
                                                           "ordered": False}),
    "OrdinalLogistic rbf": (OrdinalLogistic, {"kernel": "rbf"}),
    "OrdinalLogistic unpenalised": (OrdinalLogistic, {"alpha": 0.0}),
    "OrdinalLogistic held": (OrdinalLogistic, {"alpha": 1e9}),
    **{f"CumulativeLink {link}, alpha {alpha}": (CumulativeLink, {"link": link, "alpha": alpha})
       for link in ("logit", "probit", "cloglog") for alpha in (0.0, 1.0)},
    **{f"ORBoost {threshold} {base}": (ORBoost, {"threshold": threshold, "base": base,
                                              "n_estimators": 20, "random_state": 0})
       for threshold in ("all", "immediate")
       for base in ("sigmoid", "perceptron", "stump", "tree")},
    "ORBoost with probabilities": (ORBoost, {"n_estimators": 20, "probability": True,
                                             "random_state": 0}),
    **{f"RankBoostAE {base}": (RankBoostAE, {"base": base, "n_estimators": 20, "random_state": 0})
       for base in ("sigmoid", "stump")},
}  # fmt: skip


def fitted(name, X, y, weight=None, **options):
    """The estimator after fit, where numpy said nothing and what was said has numbers."""
    cls, given = ESTIMATORS[name]
    model = cls(**given | options)
    if weight is not None and "sample_weight" not in inspect.signature(model.fit).parameters:
        pytest.skip("takes no weights")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ResourceWarning)  # files that earlier tests left open
        model.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    for warning in said:
        assert issubclass(warning.category, UserWarning), warning.message
        assert re.search(r"\d", str(warning.message)), warning.message
    return model


def check(model, X, y):
    """Sound answers on the training rows and on new ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranks = model.predict(X)
        assert ranks.shape == y.shape
        assert set(ranks.tolist()) <= set(model.classes_.tolist())
        if isinstance(model, ThresholdModel):
            assert np.isfinite(model.predict_latent(X)).all()
            assert np.isfinite(model.thresholds_).all()
            if getattr(model, "ordered", True) and not isinstance(model, SVORSLA):
                assert (np.diff(model.thresholds_) >= 0).all()
        if hasattr(model, "predict_distances"):
            assert not np.isnan(model.predict_distances(X)).any()
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(X)
            assert (probabilities >= 0).all()
            np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-8)


# Gaussian processes raise an error if their noise vanishes beside a linear kernel of size 1e24;
# features of unlike scales are standardised.
REFUSED = {(f"{name} linear", "scale 1e12") for name in ("GPRanks", "GPOR", "GPOR ep")} | {
    ("GPRanks linear", "far from the origin")
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_nasty_features(name, problem):
    X, y, weight = PROBLEMS[problem]
    if (name, problem) in REFUSED:
        with pytest.raises(ValueError, match="scale the features"):
            fitted(name, X, y, weight)
        return
    model = fitted(name, X, y, weight)
    check(model, X, y)
    check(model, np.vstack([X[:1] * 0, X[:1] * 2 + 1, -X[-1:]]), np.zeros(3))


@pytest.mark.parametrize("gram", GRAMS)
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if " rbf" in name or "GPOR" in name])
def test_nasty_kernels(name, gram):
    check(fitted(name, GRAMS[gram], y, kernel="precomputed"), GRAMS[gram], y)


def test_every_estimator_takes_part():
    found = {cls for cls, _ in ESTIMATORS.values()}
    exported = {getattr(ordrec.ordinal, name) for name in ordrec.ordinal.__all__}
    assert found == {
        cls for cls in exported if inspect.isclass(cls) and issubclass(cls, OrdinalClassifier)
    }


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_number_of_iterations_has_a_bound(name):
    """By one of these names; the machines of scikit-learn have theirs, which ends in a warning."""
    parameters = set(inspect.signature(ESTIMATORS[name][0]).parameters)
    assert parameters & {"max_iter", "n_estimators", "n_iter"} or name.startswith("GPRanks")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SVORIM rbf", {"max_iter": 1, "solver": "smo", "C": 100.0}),
        ("NPSVOR rbf", {"max_iter": 1, "C1": 1000.0}),
        ("NPSVOR by ADMM", {"max_iter": 1}),
        ("OrdinalLogistic all logistic", {"max_iter": 1}),
        ("GPOR rbf", {"max_iter": 1}),
    ],
)
def test_stopping_early_is_reported_with_numbers(name, options):
    X, y, _ = PROBLEMS["twins with other ranks"]
    cls, given = ESTIMATORS[name]
    with pytest.warns(ConvergenceWarning, match=r"\d"):
        cls(**given | options).fit(X, y)


@pytest.mark.parametrize("gram", GRAMS)
def test_many_problems_at_once(gram):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fit_many([(GRAMS[gram], y), (GRAMS[gram][:9, :9], y[:9])], 4, max_iter=20, n_jobs=1)
    assert np.isfinite(found.thresholds).all()
    assert (np.diff(found.thresholds) > 0).all()
    assert np.isfinite(found.log_evidence)


@pytest.mark.parametrize("problem", ["all rows equal", "scale 1e12", "twins with other ranks"])
@pytest.mark.parametrize("cls", [SVORIM, SVOREX, NPSVOR, SVMOP])
def test_tuning(cls, problem):
    X, y, _ = PROBLEMS[problem]
    cost = "C1" if cls is NPSVOR else "C"
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = tune(cls(), X, y, {cost: [1e-3, 1e3], "gamma": [1e-3, 1e3]}, cv=2)
    assert np.isfinite(found.table["score"]).all()
    check(found.estimator, X, y)
