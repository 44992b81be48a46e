"""The GPOR estimator."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from ordrec.kernels import ARDGaussian, Gaussian, Linear
from ordrec.ordinal.gpor import GPOR
from ordrec.ordinal.gpor.parameters import GapPrior, paper_start


def problem(n=80, n_ranks=4, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = np.sin(2 * X[:, 0]) + X[:, -1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_ranks) / n_ranks))


# ---- learning --------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_fitting_ends_where_the_gradient_vanishes(inference):
    X, y = problem()
    model = GPOR(inference=inference, tol=1e-12).fit(X, y)
    value, gradient = model.log_evidence()
    assert value == pytest.approx(model.log_evidence_, abs=1e-6)
    assert np.abs(gradient).max() < 0.02
    assert model.log_evidence(gradient=False) == pytest.approx(value, abs=1e-8)
    start = GPOR(inference=inference, optimizer=None).fit(X, y)
    assert start.log_evidence_ < value
    assert model.log_evidence(start.theta_)[0] == pytest.approx(start.log_evidence_, abs=1e-6)


def test_the_start_is_that_of_the_paper():
    X, y = problem(d=2)
    model = GPOR(optimizer=None).fit(X, y)
    assert model.kernel_ == Gaussian(0.25)  # kappa = 2 gamma = 1 / d
    assert model.noise_ == 1.0
    assert model.thresholds_ == pytest.approx([-1.0, -0.5, 0.0])
    assert model.theta_.size == 1 + 1 + 3
    assert model.theta_names_[:3] == ["log gamma", "log noise", "first threshold"]


def test_the_start_is_in_units_of_the_prior_deviation():
    X, y = problem()
    model = GPOR("linear", optimizer=None).fit(10 * X, y)
    unit = np.sqrt(np.mean(np.sum((10 * X) ** 2, axis=1)))
    assert model.noise_ == pytest.approx(unit)
    assert model.thresholds_[0] == pytest.approx(-unit)


def test_parameters_can_be_fixed_and_bounded():
    X, y = problem()
    kernel = Gaussian(0.4, bounds="fixed")
    model = GPOR(
        kernel, noise=0.5, noise_bounds="fixed", thresholds=[-1, 0, 1], gap_bounds=(0.9, 1.1)
    ).fit(X, y)
    assert model.kernel_.gamma == 0.4
    assert model.noise_ == pytest.approx(0.5)
    gaps = np.diff(model.thresholds_)
    assert np.all((gaps >= 0.9 - 1e-9) & (gaps <= 1.1 + 1e-9))
    pinned = GPOR(
        kernel,
        thresholds=[-1, 0, 1],
        noise_bounds="fixed",
        offset_bounds="fixed",
        gap_bounds="fixed",
    ).fit(X, y)
    assert pinned.theta_.size == 0
    assert pinned.thresholds_ == pytest.approx([-1, 0, 1])
    assert pinned.log_evidence()[1].size == 0


def test_restarts_never_lower_the_evidence():
    X, y = problem(40)
    one = GPOR(random_state=0).fit(X, y)
    more = GPOR(random_state=0, n_restarts=2).fit(X, y)
    assert more.log_evidence_ >= one.log_evidence_ - 1e-6


def test_samples_may_come_in_any_order_and_the_scale_may_be_turned():
    X, y = problem()
    new, _ = problem(30, seed=1)
    model = GPOR(tol=1e-12).fit(X, y)
    order = np.random.default_rng(0).permutation(80)
    shuffled = GPOR(tol=1e-12).fit(X[order], y[order])
    assert shuffled.predict_proba(new) == pytest.approx(model.predict_proba(new), abs=1e-3)
    turned = GPOR(tol=1e-12).fit(X, 3 - y)
    assert turned.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-3)
    assert turned.predict_proba(new)[:, ::-1] == pytest.approx(model.predict_proba(new), abs=5e-3)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_two_ranks_are_a_binary_classifier(inference):
    """The logistic link is a probit of noise 1.702 to within 0.01, so the two Laplace
    approximations agree to within 0.04; EP is bolder than Laplace."""
    X, y = problem(60, n_ranks=2)
    new, _ = problem(100, seed=1)
    theirs = GaussianProcessClassifier(ConstantKernel(9.0) * RBF(1.0), optimizer=None).fit(X, y)
    kernel = Gaussian(0.5) * 9.0
    ours = GPOR(kernel, inference=inference, optimizer=None, noise=1.702, thresholds=[0.0]).fit(
        X, y
    )
    band = 0.04 if inference == "laplace" else 0.1
    assert ours.predict_proba(new) == pytest.approx(theirs.predict_proba(new), abs=band)
    if inference == "laplace":
        assert ours.log_evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=0.5)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_probabilities_are_calibrated_on_data_from_the_model(inference):
    rng = np.random.default_rng(0)
    cuts = np.array([-1.0, 0.2, 0.9])
    observed, expected, counts = np.zeros(10), np.zeros(10), np.zeros(10)
    for _ in range(12):
        X = rng.uniform(-3, 3, size=(240, 2))
        f = np.linalg.cholesky(2.0 * Gaussian(0.3)(X) + 1e-9 * np.eye(240)) @ rng.normal(size=240)
        y = np.digitize(f + 0.4 * rng.normal(size=240), cuts)
        model = GPOR(
            Gaussian(0.3) * 2.0,
            inference=inference,
            optimizer=None,
            noise=0.4,
            thresholds=cuts,
            classes=range(4),
        ).fit(X[:120], y[:120])
        p = model.predict_proba(X[120:])
        assert p.sum(axis=1) == pytest.approx(np.ones(120))
        hit = y[120:, None] == np.arange(4)
        bins = np.minimum((p * 10).astype(int), 9)
        np.add.at(observed, bins, hit)
        np.add.at(expected, bins, p)
        np.add.at(counts, bins, 1)
    # each bin holds hundreds of forecasts: three standard errors, and a little for the
    # approximation (Laplace is known to be underconfident)
    error = 3 * np.sqrt(expected / counts * (1 - expected / counts) / counts)
    slack = 0.02 if inference == "ep" else 0.06
    assert np.all(np.abs(observed - expected) / counts < error + slack)


def test_permuted_targets_predict_nothing():
    X, y = problem(150, n_ranks=3)
    new, truth = problem(300, n_ranks=3, seed=1)
    y = np.random.default_rng(0).permutation(y)
    p = GPOR().fit(X, y).predict_proba(new)
    loss = -np.log(p[np.arange(300), truth]).mean()
    assert loss > np.log(3) - 0.05


# ---- predicting ------------------------------------------------------------------------------


def test_decisions_follow_the_parameter():
    X, y = problem(60, n_ranks=5)
    new, _ = problem(50, seed=1)
    model = GPOR(noise=2.0, optimizer=None).fit(X, y)
    p = model.predict_proba(new)
    assert model.predict(new).tolist() == p.argmax(axis=1).tolist()
    median = clone(model).set_params(decision="median").fit(X, y).predict(new)
    assert median.tolist() == ((np.cumsum(p, axis=1) < 0.5).sum(axis=1)).tolist()
    costs = np.ones((5, 5)) - np.eye(5)
    assert clone(model).set_params(decision=costs).fit(X, y).predict(new).tolist() == (
        model.predict(new).tolist()
    )


def test_the_latent_function_has_an_error_bar():
    X, y = problem()
    model = GPOR().fit(X, y)
    mean, std = model.predict_latent(X, return_std=True)
    assert model.predict_latent(X) == pytest.approx(mean)
    far_mean, far_std = model.predict_latent(np.full((1, 2), 1e3), return_std=True)
    assert far_mean == pytest.approx([0.0])
    assert far_std == pytest.approx([1.0])  # the prior
    assert std.max() < 1.0


def test_many_rows_are_predicted_in_pieces(monkeypatch):
    X, y = problem()
    new, _ = problem(50, seed=1)
    model = GPOR(max_iter=5, tol=1e-2).fit(X, y)
    whole = model.predict_proba(new)
    monkeypatch.setattr("ordrec.ordinal.gpor.model.CHUNK", 7)
    assert model.predict_proba(new) == pytest.approx(whole)
    assert np.vstack([model.predict_proba(row[None]) for row in new]) == pytest.approx(whole)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_a_precomputed_kernel_gives_the_same(inference):
    X, y = problem()
    new, _ = problem(20, seed=1)
    kernel = Gaussian(0.25, bounds="fixed") * 1.0 + Linear()
    kernel = Gaussian(0.25, bounds="fixed")
    direct = GPOR(kernel, inference=inference).fit(X, y)
    given = GPOR("precomputed", inference=inference).fit(kernel(X), y)
    assert given.log_evidence_ == pytest.approx(direct.log_evidence_)
    assert given.predict_proba(kernel(new, X)) == pytest.approx(direct.predict_proba(new))


def test_a_precomputed_kernel_takes_the_own_variance_of_new_samples():
    X, y = problem()
    new, _ = problem(20, seed=1)
    direct = GPOR(Linear()).fit(X, y)
    given = GPOR("precomputed").fit(Linear()(X), y)
    rows, diag = Linear()(new, X), Linear().diag(new)
    assert given.predict_proba(rows, diag=diag) == pytest.approx(
        direct.predict_proba(new), abs=1e-6
    )
    with pytest.raises(ValueError, match="one entry per row"):
        given.predict_proba(rows, diag=diag[:3])


def test_it_survives_pickling():
    X, y = problem()
    for model in (GPOR(), GPOR(n_landmarks=10, random_state=0)):
        model.fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        assert again.predict_proba(X) == pytest.approx(model.predict_proba(X))
        assert again.log_evidence()[0] == pytest.approx(model.log_evidence_, abs=1e-6)


# ---- ranks without samples -------------------------------------------------------------------


@pytest.mark.parametrize("absent", [0, 1, 2, 4])
def test_a_declared_rank_may_be_absent(absent):
    X, y = problem(120, n_ranks=5)
    keep = y != absent
    model = GPOR(classes=[1, 2, 3, 4, 5]).fit(X[keep], 1 + y[keep])
    p = model.predict_proba(X)
    assert p.shape == (120, 5)
    assert model.classes_.tolist() == [1, 2, 3, 4, 5]
    assert np.all(np.diff(model.thresholds_) > 1e-3)
    assert np.abs(model.thresholds_).max() < 50
    assert 0 < p[:, absent].mean() < 0.25


def test_absent_ranks_at_both_ends_and_two_in_a_row():
    X, y = problem(60, n_ranks=2)
    model = GPOR(classes=range(6)).fit(X, np.where(y == 0, 2, 3))
    assert np.isfinite(model.thresholds_).all()
    assert model.predict_proba(X)[:, 2:4].sum(axis=1).min() > 0.2


def test_the_gap_prior_counts_only_where_the_data_leave_a_gap_open():
    start = paper_start(5)
    value, gradient = GapPrior(np.array([3, 1, 4, 1, 5]), start)(start + 0.3)
    assert value == 0
    assert not gradient.any()
    prior = GapPrior(np.array([3, 1, 0, 1, 5]), start)
    assert prior.open.tolist() == [False, True, False]
    assert GapPrior(np.array([3, 1, 2, 4, 0]), start).open.tolist() == [False, False, True]
    assert GapPrior(np.array([0, 1, 2, 4, 1]), start).open.tolist() == [True, False, False]
    assert GapPrior(np.array([0, 0, 2, 4, 1]), start).open.tolist() == [True, True, False]
    rho = start + np.random.default_rng(0).normal(size=5)
    _, gradient = prior(rho)
    for i in range(5):
        move = 1e-6 * (np.arange(5) == i)
        slope = (prior(rho + move)[0] - prior(rho - move)[0]) / 2e-6
        assert gradient[i] == pytest.approx(slope, abs=1e-8)


# ---- relevance -------------------------------------------------------------------------------


def expression(seed):
    """50 samples of 500 genes, of which 10 follow the grade."""
    rng = np.random.default_rng(seed)
    X, grade = rng.normal(size=(50, 500)), rng.normal(size=50)
    genes = rng.permutation(500)[:10]
    X[:, genes] = 0.9 * grade[:, None] + np.sqrt(1 - 0.9**2) * X[:, genes]
    return X, np.digitize(grade + 0.3 * rng.normal(size=50), [-0.5, 0.7]), genes


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_genes_that_matter_come_first(inference, seed):
    X, y, genes = expression(seed)
    with pytest.warns(ConvergenceWarning):  # stopped early on purpose: d is ten times n
        model = GPOR("ard-linear", inference=inference, max_iter=5).fit(X, y)
    assert set(model.select_features(10)) == set(genes)


def test_relevance_is_a_labelled_table():
    X, y = problem(100, d=4)
    frame = pd.DataFrame(X, columns=["wave", "noise", "other noise", "slope"])
    model = GPOR("ard").fit(frame, y)
    table = model.relevance_
    assert set(table.index[:2]) == {"wave", "slope"}
    assert table["gamma"].is_monotonic_decreasing
    assert set(model.select_features(2).tolist()) == {0, 3}
    unnamed = GPOR(ARDGaussian(np.full(4, 0.1)) * 1.0).fit(X, y)
    assert set(unnamed.relevance_.index[:2]) == {"x0", "x3"}
    with pytest.raises(ValueError, match="between 1 and 4"):
        model.select_features(5)
    with pytest.raises(AttributeError, match="ard"):
        _ = GPOR().fit(X, y).relevance_


# ---- warnings and errors ---------------------------------------------------------------------


def test_a_stopped_optimiser_gives_numbers():
    X, y = problem()
    with pytest.warns(
        ConvergenceWarning, match=r"after 1 iterations at log-evidence -\d+.*gradient"
    ):
        GPOR(max_iter=1).fit(X, y)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_a_stopped_inference_gives_numbers(inference, monkeypatch):
    from ordrec.ordinal.gpor import evidence

    patient = evidence.INFERENCES[inference]

    def hasty(*args):
        return patient(*args, max_iter=1)

    monkeypatch.setitem(evidence.INFERENCES, inference, hasty)
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match=r"violation of \d.*1 of 1 evaluations"):
        GPOR(inference=inference, noise=0.01, optimizer=None).fit(X, y)


def test_laplace_warns_where_its_evidence_is_far_too_large():
    """Ten ranks of pure noise in many dimensions: little noise and K = I fit perfectly."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 40)), rng.integers(0, 8, 60)
    doubtful = {"noise": 0.02, "noise_bounds": (0.01, 0.03), "gamma": 1.0}
    with pytest.warns(UserWarning, match=r"exceeds that of expectation propagation.*by \d"):
        GPOR(inference="laplace", **doubtful).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        GPOR().fit(*problem())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inference": "vb"}, "inference"),
        ({"optimizer": "adam"}, "optimizer"),
        ({"n_restarts": -1}, "n_restarts"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"noise": 0.0}, "noise"),
        ({"noise": np.nan}, "noise"),
        ({"thresholds": [0.0, 1.0]}, "4 classes need 3 thresholds"),
        ({"thresholds": [0.0, 1.0, 0.5]}, "ascending"),
        ({"noise_bounds": (2.0, 1.0)}, "noise_bounds"),
        ({"gap_bounds": (-1.0, 1.0)}, "gap_bounds"),
        ({"offset_bounds": "free"}, "offset_bounds"),
        ({"kernel": "sigmoid"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma"),
        ({"classes": [0, 1]}, "not among the declared classes"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        GPOR(**parameters).fit(X, y)


def test_an_unknown_decision_is_refused():
    X, y = problem()
    with pytest.raises(ValueError, match="decision"):
        GPOR(decision="worst", optimizer=None).fit(X, y).predict(X)


def test_bad_data_are_refused():
    X, y = problem()
    with pytest.raises(ValueError, match="one class"):
        GPOR().fit(X, np.zeros(80))
    with pytest.raises(ValueError, match="NaN"):
        GPOR().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="no order of their own"):
        GPOR().fit(X, np.array(["low", "mid", "high", "top"])[y])
    with pytest.raises(ValueError, match="square"):
        GPOR("precomputed").fit(X, y)
    with pytest.raises(ValueError, match="symmetric"):
        GPOR("precomputed").fit(np.triu(Gaussian()(X)), y)
    with pytest.raises(NotFittedError):
        GPOR().log_evidence()
    with pytest.raises(ValueError, match="theta must have"):
        GPOR(optimizer=None).fit(X, y).log_evidence(np.zeros(2))
