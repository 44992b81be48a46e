"""Mean and low-rank imputation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import naive_features as naive
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.features.low_rank.em import annealing_ranks, project_rows, weighted_low_rank
from ordrec.features.low_rank.model import LowRankEM
from ordrec.features.mean import MeanImputer


# The blobs of these checks have no missing entry: out-of-fold or not, each is returned as it is.
@parametrize_with_checks([MeanImputer(), LowRankEM(n_factors=1, max_iter=2000)])
def test_scikit_learn_contract(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


def ratings(seed: int = 0, shape: tuple[int, int] = (40, 25), n_factors: int = 3) -> np.ndarray:
    """A noisy low-rank matrix, a third of it missing."""
    random = np.random.default_rng(seed)
    dense = random.standard_normal((shape[0], n_factors)) @ random.standard_normal(
        (n_factors, shape[1])
    )
    dense += 3 + 0.1 * random.standard_normal(shape)
    dense[random.random(shape) < 0.35] = np.nan
    return dense


def stored(dense: np.ndarray) -> sparse.csr_array:
    rows, columns = np.nonzero(~np.isnan(dense))
    return sparse.csr_array((dense[rows, columns], (rows, columns)), shape=dense.shape)


# ---- means ---------------------------------------------------------------------------------


def test_means_of_rows_and_columns() -> None:
    X = ratings()
    by_row = MeanImputer().fit_transform(X)
    by_column = MeanImputer(by="column").fit_transform(X)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(by_row[seen], X[seen])
    rows, columns = np.nonzero(~seen)
    np.testing.assert_allclose(by_row[rows, columns], np.nanmean(X, axis=1)[rows])
    np.testing.assert_allclose(by_column[rows, columns], np.nanmean(X, axis=0)[columns])


def test_mean_of_everything_where_nothing_is_known() -> None:
    X = np.array([[1.0, np.nan, 5.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(MeanImputer().fit_transform(X)[1], [3, 3, 3])
    np.testing.assert_array_equal(MeanImputer(by="column").fit_transform(X), [[1, 3, 5], [1, 3, 5]])


def test_target_column_never_enters_a_mean() -> None:
    X = ratings()
    other = X.copy()
    other[:, 4] = 100.0
    for by in ("row", "column"):
        imputer = MeanImputer(by=by, target=4)
        features = imputer.fit_transform(X)
        assert features.shape == (40, 24)
        np.testing.assert_array_equal(features, imputer.fit_transform(other))
        assert "x4" not in imputer.get_feature_names_out()


# ---- the EM ----------------------------------------------------------------------------------


def test_transform_of_the_fitted_matrix_counts_the_weights_of_the_fit() -> None:
    X = ratings()
    W = np.random.default_rng(1).choice([0.5, 1.0], X.shape)
    em = LowRankEM(n_factors=3, weights=W, random_state=0).fit(X)
    filled = em.transform(X)
    assert not np.allclose(filled, em.transform(X, weights=np.ones(X.shape)))
    np.testing.assert_array_equal(filled, em.transform(X, weights=sparse.csr_array(W)))
    np.testing.assert_array_equal(filled, em.transform(stored(X)))
    half = np.isfinite(X) & (W == 0.5)
    assert (np.abs(filled - X)[half] > 1e-12).all()  # w a + (1 - w) x is not a
    np.testing.assert_allclose(filled[np.isfinite(X) & (W == 1.0)], X[np.isfinite(X) & (W == 1.0)])
    other = X + 1.0
    np.testing.assert_array_equal(
        em.transform(other), em.transform(other, weights=np.ones(X.shape))
    )
    with pytest.raises(ValueError, match="weights have the shape"):
        em.transform(X, weights=np.ones((2, 2)))


@pytest.mark.parametrize("init", ["mean", "zero"])
@pytest.mark.parametrize("weighted", [False, True])
def test_reaches_a_fixed_point_of_the_dense_em(init: str, weighted: bool) -> None:
    X = ratings()
    seen = ~np.isnan(X)
    W = np.where(seen, np.random.default_rng(5).random(X.shape) if weighted else 1.0, 0.0)
    em = LowRankEM(n_factors=3, weights=W, init=init, tol=1e-15, max_iter=20_000, random_state=0)
    em.fit(X)
    entries = stored(X)
    rows = np.repeat(np.arange(40), np.diff(entries.indptr))
    mean = np.average(X[seen], weights=W[seen])
    start = np.array([np.average(x[s], weights=w[s]) if s.any() else mean
                      for x, w, s in zip(X, W, seen, strict=True)])  # fmt: skip
    fit = weighted_low_rank(
        entries,
        W[rows, entries.indices],
        annealing_ranks(3, 25),
        start=start if init == "mean" else None,
        tol=1e-15,
        max_iter=20_000,
        seed=np.random.RandomState(0),
    )
    estimate = (fit.left * fit.singular) @ fit.right.T
    # a fixed point of the dense EM, to the accuracy of the stopping rule
    np.testing.assert_allclose(naive.em_step(X, W, estimate, 3), estimate, atol=1e-6)
    assert naive.weighted_error(X, W, estimate) == pytest.approx(em.errors_[-1], rel=1e-9)
    # and the one that the dense EM goes to from the same start
    cold = np.outer(start, np.ones(25)) if init == "mean" else np.zeros(X.shape)
    reference = naive.low_rank(X, W, cold, 3, steps=4000, tol=1e-10)
    assert em.errors_[-1] <= naive.weighted_error(X, W, reference) * (1 + 1e-6)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(2, 12), st.integers(2, 12)),
    n_factors=st.integers(1, 4),
    anneal=st.booleans(),
    init=st.sampled_from(["mean", "zero"]),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weighted_error_never_rises(seed, shape, n_factors, anneal, init) -> None:  # type: ignore[no-untyped-def]
    random = np.random.default_rng(seed)
    X = random.integers(1, 6, shape).astype(float)
    X[random.random(shape) < 0.4] = np.nan
    X[0, 0] = 3.0
    em = LowRankEM(n_factors=min(n_factors, *shape), weights=0.05 + 0.95 * random.random(shape),
                   init=init, anneal=anneal, tol=0.0, max_iter=60, random_state=seed)  # fmt: skip
    em.fit(X)
    assert len(em.errors_) == len(em.ranks_) == em.n_iter_ + 1
    assert (np.diff(em.ranks_) <= 0).all()
    assert em.ranks_[-1] == em.n_factors
    same_rank = np.diff(em.ranks_) == 0
    rise = np.diff(em.errors_)[same_rank]
    assert (rise <= 1e-12 * np.nansum(X**2)).all()


def test_full_rank_and_no_missing_entry_is_the_svd_of_scipy() -> None:
    X = np.random.default_rng(0).standard_normal((12, 7))
    em = LowRankEM(n_factors=7, random_state=0).fit(X)
    np.testing.assert_allclose(em.singular_values_, scipy.linalg.svdvals(X), atol=1e-10)
    np.testing.assert_allclose(em.errors_[-1], 0, atol=1e-20)
    cut = LowRankEM(n_factors=3, tol=1e-15, max_iter=5000, random_state=0).fit(X)
    np.testing.assert_allclose(cut.singular_values_, scipy.linalg.svdvals(X)[:3], rtol=1e-6)


def test_rank_annealing_comes_down_by_halves() -> None:
    assert annealing_ranks(20, 500) == [80, 40, 20]
    assert annealing_ranks(3, 5) == [5, 3]
    assert annealing_ranks(4, 4) == [4]


def test_recovers_a_low_rank_matrix() -> None:
    random = np.random.default_rng(3)
    truth = random.standard_normal((60, 2)) @ random.standard_normal((2, 40))
    X = truth.copy()
    X[random.random(X.shape) < 0.4] = np.nan
    em = LowRankEM(n_factors=2, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    np.testing.assert_allclose(em.transform(X), truth, atol=1e-3)


def test_sparse_and_dense_input_agree_and_zeros_are_ratings() -> None:
    X = np.round(ratings())
    X[0, :3] = 0.0
    assert (stored(X).data == 0).any()
    for output in ("filled", "factors"):
        em = LowRankEM(n_factors=2, target=[1, 5], output=output, random_state=0, max_iter=2000)
        np.testing.assert_allclose(em.fit_transform(stored(X)), em.fit_transform(X))
        np.testing.assert_allclose(em.transform(stored(X)), em.transform(X))


def test_new_rows_get_the_em_steps_of_the_fit() -> None:
    X, steps = ratings(), 17
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((25, 4)))[0]
    entries = stored(X)
    means = np.nanmean(X, axis=1)
    found = project_rows(entries, np.ones(entries.nnz), V, means, steps) @ V.T
    for i in range(len(X)):
        w = (~np.isnan(X[i])).astype(float)
        expected = naive.em_on_row(X[i], w, V, np.full(25, means[i]), steps)
        np.testing.assert_allclose(found[i], expected, atol=1e-9)


def test_inner_products_of_factors_are_those_of_the_estimate() -> None:
    X = ratings()
    common = {"n_factors": 3, "random_state": 0, "max_iter": 2000}
    factors = LowRankEM(output="factors", **common).fit(X)
    filled = LowRankEM(**common).fit(X)
    Q = factors.transform(X)
    assert Q.shape == (40, 3)
    estimate = Q @ factors.components_
    missing = np.isnan(X)
    np.testing.assert_allclose(estimate[missing], filled.transform(X)[missing], atol=1e-9)


# ---- out of fold -------------------------------------------------------------------------------


def test_factors_of_all_folds_are_coordinates_of_one_basis() -> None:
    """Every fold finds the same subspace of an exact matrix, turned as it likes."""
    random = np.random.default_rng(3)
    truth = random.standard_normal((60, 2)) @ random.standard_normal((2, 40))
    X = truth.copy()
    X[random.random(X.shape) < 0.4] = np.nan
    em = LowRankEM(2, output="factors", tol=1e-12, max_iter=5000, n_splits=3, random_state=0)
    np.testing.assert_allclose(em.fit_transform(X) @ em.components_, truth, atol=0.02)


def predictability(features: np.ndarray, y: np.ndarray) -> float:
    """Fraction of the variance that a ridge regression explains on held-out rows."""
    centred = features - features.mean(axis=0)
    folds = np.arange(len(y)) % 5
    predicted = np.empty(len(y))
    for f in range(5):
        fit, test = folds != f, folds == f
        A = centred[fit]
        coef = np.linalg.solve(A.T @ A + 10 * np.eye(A.shape[1]), A.T @ (y[fit] - y[fit].mean()))
        predicted[test] = centred[test] @ coef + y[fit].mean()
    return 1 - np.mean((predicted - y) ** 2) / np.var(y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_shuffled_targets_cannot_be_predicted() -> None:
    X = ratings(1, (200, 30))
    X[np.isnan(X[:, 7]), 7] = 3.0
    true = predictability(LowRankEM(3, target=7, random_state=0).fit_transform(X), X[:, 7])
    assert true > 0.3  # there is something to be learnt from the honest features
    leaky, honest = [], []
    for seed in range(5):
        shuffled = X.copy()
        y = shuffled[:, 7] = np.random.default_rng(seed).permutation(X[:, 7])
        em = LowRankEM(5, random_state=seed, max_iter=50)
        leaky.append(predictability(em.fit(shuffled).transform(shuffled), y))
        em.set_params(target=7)
        honest.append(predictability(em.fit_transform(shuffled), y))
    assert max(honest) < 0.05
    assert min(leaky) > 0.5  # with the target left in, anything can be "predicted"


def test_a_row_is_not_in_the_fit_that_makes_its_features() -> None:
    X = ratings()
    em = LowRankEM(n_factors=2, n_splits=4, random_state=0, max_iter=3000)
    before = em.fit_transform(X)
    changed = X.copy()
    changed[11] = 50.0
    after = em.fit_transform(changed)
    # rows of the same fold do not notice; those of the other folds do
    untouched = np.isclose(before, after, atol=1e-9).all(axis=1)
    assert 5 <= untouched.sum() <= 10
    assert not untouched[11]


# ---- bad input ---------------------------------------------------------------------------------


def test_all_missing_rows_and_columns_are_neutral() -> None:
    X = ratings()
    X[3], X[:, 4] = np.nan, np.nan
    filled = LowRankEM(n_factors=2, random_state=0, max_iter=3000).fit(X).transform(X)
    assert np.isfinite(filled).all()
    assert abs(filled[3].mean() - np.nanmean(X)) < 1
    zero = LowRankEM(n_factors=2, init="zero", random_state=0, max_iter=3000).fit(X).transform(X)
    np.testing.assert_array_equal(zero[3], 0)
    np.testing.assert_allclose(zero[:, 4], 0, atol=1e-9)


def test_one_user_or_one_item() -> None:
    column = np.array([[1.0], [2.0], [np.nan]])
    assert np.isfinite(LowRankEM(n_factors=1, random_state=0).fit_transform(column)).all()
    row = np.array([[1.0, np.nan, 3.0]])
    em = LowRankEM(n_factors=1, random_state=0, max_iter=5000)
    assert np.isfinite(em.fit(row).transform(row)).all()
    with pytest.raises(ValueError, match="got 1 sample"):
        em.fit_transform(row)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_factors": 26}, r"n_factors must be a whole number in 1\.\.25"),
        ({"n_factors": 0}, "n_factors must be"),
        ({"n_factors": 2.5}, "n_factors must be"),
        ({"weights": np.full((40, 25), 1.5)}, r"weights must lie in \[0, 1\], got 1\.5"),
        ({"weights": np.full((40, 25), np.nan)}, r"weights must lie in \[0, 1\]"),
        ({"weights": np.ones((3, 3))}, r"weights have the shape \(3, 3\)"),
        ({"weights": np.zeros((40, 25))}, "positive weight"),
        ({"init": "random"}, "init must be"),
        ({"output": "both"}, "output must be"),
        ({"n_splits": 1}, "n_splits must be"),
        ({"target": 25}, r"column numbers in 0\.\.24"),
        ({"target": 1.5}, "column numbers"),
        ({"target": range(25)}, "no feature is left"),
    ],
)
def test_bad_parameters_are_named(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LowRankEM(**{"n_factors": 2, "random_state": 0, **change}).fit(ratings())


def test_bad_matrices_are_named() -> None:
    X = ratings()
    X[0, 0] = np.inf
    for estimator in (MeanImputer(), LowRankEM(n_factors=2)):
        with pytest.raises(ValueError, match="infinity"):
            estimator.fit(X)
        with pytest.raises(NotFittedError):
            estimator.transform(ratings())
        with pytest.raises(ValueError, match="must not store NaN"):
            estimator.fit(sparse.csr_array([[np.nan, 1.0], [1.0, 2.0]]))
        with pytest.raises(ValueError, match=r"no (observed )?entry"):
            estimator.fit(np.full((4, 4), np.nan))
    with pytest.raises(ValueError, match='by must be "row" or "column"'):
        MeanImputer(by="user").fit(ratings())


def test_stopping_early_warns_with_the_numbers() -> None:
    with pytest.warns(ConvergenceWarning, match=r"by the fraction \S+ in step 3 \(tol=1e-09\)"):
        LowRankEM(n_factors=2, max_iter=3, tol=1e-9, anneal=False, random_state=0).fit(ratings())


def test_names_of_what_comes_out() -> None:
    X = ratings()
    names = [f"film {k}" for k in range(X.shape[1])]
    filled = LowRankEM(n_factors=2, target=4, random_state=0).fit(X)
    assert filled.get_feature_names_out(names).tolist() == names[:4] + names[5:]
    factors = LowRankEM(n_factors=2, output="factors", random_state=0).fit(X)
    assert factors.get_feature_names_out().tolist() == ["lowrankem0", "lowrankem1"]
    assert factors.transform(X).shape[1] == 2
    named = MeanImputer(target=4).fit(pd.DataFrame(X, columns=names))
    assert named.get_feature_names_out().tolist() == names[:4] + names[5:]
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        named.get_feature_names_out(names[::-1])
    with pytest.raises(ValueError, match="should have length 25, got 24"):
        filled.get_feature_names_out(names[1:])
