"""CumulativeLink against statsmodels, finite differences and plain formulas."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import sparse, stats
from scipy.special import expit
from statsmodels.miscmodels.ordinal_model import OrderedModel

from ordrec.ordinal import CumulativeLink
from ordrec.ordinal.cumulative.links import LINKS, interval_derivatives
from ordrec.ordinal.cumulative.objective import EXPLICIT, CumulativeObjective

OF_STATSMODELS = {"logit": "logit", "probit": "probit", "cloglog": stats.gumbel_l}
CDF = {"logit": expit, "probit": stats.norm.cdf, "cloglog": lambda z: -np.expm1(-np.exp(z))}


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 1.0, -3.0]
    y = np.digitize(X @ [1.0, -0.4, 0.0] + rng.logistic(size=n), [-1.5, 0.0, 1.0])
    return X, y


def of_statsmodels(X, y, link):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it failed where it cannot get any further
        model = OrderedModel(y, X, distr=OF_STATSMODELS[link])
        return model.fit(method="bfgs", disp=0, maxiter=2000, gtol=1e-10)


@pytest.mark.parametrize("link", LINKS)
def test_likelihood_coefficients_and_errors_are_those_of_statsmodels(link):
    X, y = sample()
    mine, reference = CumulativeLink(link, alpha=0.0).fit(X, y), of_statsmodels(X, y, link)
    assert mine.log_likelihood_ == pytest.approx(reference.llf, abs=1e-8)
    np.testing.assert_allclose(mine.coef_, reference.params[:3], atol=1e-5)
    np.testing.assert_allclose(mine.summary()["std_err"].iloc[:3], reference.bse[:3], rtol=1e-3)
    np.testing.assert_allclose(mine.predict_proba(X), reference.predict(), atol=1e-5)
    assert mine.converged_


@pytest.mark.parametrize("link", LINKS)
def test_derivatives_by_finite_differences(link):
    X, y = sample(40)
    J = CumulativeObjective(X, y, np.linspace(0.5, 2, 40), 4, link, 0.7)
    x = np.array([0.3, -0.2, 0.1, -1.0, -0.2, 0.9])
    _, gradient, H = J.at(x)
    step = 1e-5 * np.eye(6)
    slopes = [(J.at(x + e)[0] - J.at(x - e)[0]) / 2e-5 for e in step]
    curves = [(J.at(x + e)[1] - J.at(x - e)[1]) / 2e-5 for e in step]
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    np.testing.assert_allclose(H, curves, atol=1e-4)


@pytest.mark.parametrize("link", LINKS)
def test_many_features_and_sparse_rows_give_the_same_hessian(link):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, EXPLICIT + 5)), rng.integers(0, 3, 60)
    x = np.concatenate([0.05 * rng.normal(size=X.shape[1]), [-0.5, 0.5]])
    J = CumulativeObjective(X, y, np.ones(60), 3, link, 0.1)
    H = J.at(x)[2]
    whole = H.matrix()
    np.testing.assert_allclose(np.array([H @ e for e in np.eye(x.size)]).T, whole, atol=1e-8)
    np.testing.assert_allclose(H.diagonal(), np.diag(whole), atol=1e-8)
    thin = CumulativeObjective(sparse.csr_matrix(X), y, np.ones(60), 3, link, 0.1).at(x)[2]
    np.testing.assert_allclose(thin.matrix(), whole, atol=1e-8)


@pytest.mark.parametrize("link", LINKS)
def test_far_ends_are_finite(link):
    lower = np.array([-np.inf, -40.0, 3.0, -50.0])
    upper = np.array([-40.0, -39.0, np.inf, 5.0])
    log_p, slopes, curves = interval_derivatives(lower, upper, link)
    assert np.isfinite(log_p).all()
    assert all(np.isfinite(each).all() for each in (*slopes, *curves))
    near = np.array([-1.0]), np.array([0.5])
    expected = np.log(CDF[link](near[1]) - CDF[link](near[0]))
    np.testing.assert_allclose(interval_derivatives(*near, link)[0], expected)


def test_a_weight_is_so_many_samples_and_a_penalty_shrinks():
    X, y = sample(80)
    weight = np.random.default_rng(2).integers(0, 4, 80)
    weighted = CumulativeLink(alpha=0.0).fit(X, y, sample_weight=weight)
    repeated = CumulativeLink(alpha=0.0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_, atol=1e-6)
    sizes = [np.linalg.norm(CumulativeLink(alpha=a).fit(X, y).coef_) for a in (0.0, 1.0, 100.0)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_errors_do_not_depend_on_the_scaling():
    X, y = sample()
    plain = CumulativeLink(alpha=0.0, scaling=None).fit(X, y)
    scaled = CumulativeLink(alpha=0.0, scaling="standard").fit(X, y)
    np.testing.assert_allclose(plain.thresholds_, scaled.thresholds_, atol=1e-6)
    np.testing.assert_allclose(plain.covariance_, scaled.covariance_, atol=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_marginal_effects_by_finite_differences(link):
    X, y = sample(120)
    model = CumulativeLink(link, alpha=0.0).fit(X, y)

    def effects(coef, thresholds):
        def p(rows):
            ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
            return np.diff(CDF[link](ends - (rows @ coef)[:, None]), axis=1)

        moves = 1e-5 * np.eye(3)
        return np.array([(p(X + e) - p(X - e)).mean(axis=0) / 2e-5 for e in moves]).ravel()

    table = model.marginal_effects(X)
    np.testing.assert_allclose(table["effect"], effects(model.coef_, model.thresholds_), atol=1e-6)
    x, jacobian = np.concatenate([model.coef_, model.thresholds_]), []
    for e in 1e-4 * np.eye(6):
        up, down = x + e, x - e
        jacobian.append((effects(up[:3], up[3:]) - effects(down[:3], down[3:])) / 2e-4)
    J = np.array(jacobian).T
    errors = np.sqrt(np.diag(J @ model.covariance_ @ J.T))
    np.testing.assert_allclose(table["std_err"], errors, rtol=1e-3)
    np.testing.assert_allclose(table["effect"].groupby("feature").sum(), 0.0, atol=1e-12)


def brant_by_the_book(X, y):
    """All differences at once, with coefficients from statsmodels."""
    Z, cuts = sm.add_constant(X), [0, 1, 2]
    fits = [sm.Logit((y > k).astype(float), Z).fit(disp=0, tol=1e-12) for k in cuts]
    p = [fit.predict(Z) for fit in fits]
    root = [np.linalg.inv(Z.T @ np.diag(q * (1 - q)) @ Z) for q in p]
    d = X.shape[1]
    V = np.zeros((3 * d, 3 * d))
    for k in cuts:
        for m in cuts:
            first, last = min(k, m), max(k, m)
            middle = Z.T @ np.diag(p[last] * (1 - p[first])) @ Z
            V[k * d : k * d + d, m * d : m * d + d] = (root[k] @ middle @ root[m])[1:, 1:]
    beta = np.concatenate([fit.params[1:] for fit in fits])
    D = np.kron([[1, -1, 0], [1, 0, -1]], np.eye(d))
    away = D @ beta
    chi2 = away @ np.linalg.solve(D @ V @ D.T, away)
    return chi2, stats.chi2.sf(chi2, 2 * d)


def test_the_test_of_parallel_lines():
    X, y = sample(400)
    table = CumulativeLink().fit(X, y).brant(X, y)
    chi2, p = brant_by_the_book(X, y)
    assert table.loc["omnibus", "chi2"] == pytest.approx(chi2, rel=1e-5)
    assert table.loc["omnibus", "p"] == pytest.approx(p, rel=1e-4)
    assert table["df"].tolist() == [6, 2, 2, 2]
    # a feature that moves one threshold only
    X[:, 2] = np.where(y == 3, 1.0, 0.0) + np.random.default_rng(3).normal(size=400)
    table = CumulativeLink().fit(X, y).brant(X, y)
    assert table.loc["x2", "p"] < 1e-3 < table.loc["x0", "p"]


def test_separated_labels_have_finite_coefficients_with_a_penalty():
    X = np.arange(12.0).reshape(-1, 1)
    model = CumulativeLink().fit(X, np.repeat([1, 2, 3], 4))
    assert model.converged_
    assert model.predict([[0.0], [5.5], [11.0]]).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="separate"):
        model.brant(X, np.repeat([1, 2, 3], 4))
    with pytest.warns(UserWarning, match="p mean nothing"):
        assert model.summary()["p"].isna().all()


def test_separated_labels_without_a_penalty_are_told():
    X = np.arange(12.0).reshape(-1, 1)
    with pytest.warns(UserWarning, match="separate the labels.*pass alpha above 0"):
        model = CumulativeLink(alpha=0.0).fit(X, np.repeat([1, 2, 3], 4))
    with pytest.warns(UserWarning, match="p mean nothing"):
        assert model.summary()[["std_err", "z", "p"]].isna().all(axis=None)
    X[5] = 9.5  # one exception
    assert not CumulativeLink(alpha=0.0).fit(X, np.repeat([1, 2, 3], 4)).separated_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"link": "cauchit"}, "link must be"), ({"alpha": -1.0}, "alpha must be")],
)
def test_bad_parameters_are_refused(parameters, message):
    X, y = sample(30)
    with pytest.raises(ValueError, match=message):
        CumulativeLink(**parameters).fit(X, y)


def test_inference_says_what_it_needs():
    X, y = sample()
    with pytest.warns(UserWarning, match=r"alpha=0\.0"):
        CumulativeLink().fit(X, y).summary()
    with pytest.raises(ValueError, match='link must be "logit"'):
        CumulativeLink("probit").fit(X, y).brant(X, y)
