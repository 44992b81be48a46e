"""Standard errors of ordinal logistic regression."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ordrec import load, save
from ordrec.errors import ArgumentError
from ordrec.ordinal import OrdinalLogistic
from ordrec.ordinal.logistic.covariance import sandwich
from ordrec.ordinal.losses import Loss, checked_reach, objective

TRUE_COEF, TRUE_THRESHOLDS = np.array([1.0, -0.5, 0.0]), np.array([-1.0, 0.0, 1.5])
TRUTH = np.concatenate([TRUE_COEF, TRUE_THRESHOLDS])


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A sample of the cumulative logit model, which "all" thresholds estimate consistently."""
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X @ TRUE_COEF + rng.logistic(size=n), TRUE_THRESHOLDS)


@pytest.mark.parametrize("threshold", ["all", "immediate"])
@pytest.mark.parametrize("loss", [Loss("logistic"), Loss("generalised", sharpness=2.0)])
def test_the_hessian_and_the_gradients_are_finite_differences(threshold: str, loss: Loss) -> None:
    X, y = drawn(60, np.random.default_rng(0))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    reach, alpha, step = checked_reach(threshold), 0.3, 1e-4

    def value(x: np.ndarray, rows: slice = slice(None), alpha: float = alpha) -> float:
        w, b = x[:3], x[3:]
        penalty = 0.5 * alpha * float(w @ w)
        return objective(X[rows] @ w, b, y[rows], loss, reach, weight[rows], penalty)

    covariance, hessian = sandwich(X, y, weight, TRUE_COEF, TRUE_THRESHOLDS, loss, reach, alpha)
    moves = step * np.eye(6)
    numeric = np.array(
        [
            [
                value(TRUTH + a + b)
                - value(TRUTH + a - b)
                - value(TRUTH - a + b)
                + value(TRUTH - a - b)
                for a in moves
            ]
            for b in moves
        ]
    ) / (4 * step**2)
    np.testing.assert_allclose(hessian, numeric, atol=1e-5)
    gradients = np.array(
        [
            [
                (value(TRUTH + a, slice(i, i + 1), 0.0) - value(TRUTH - a, slice(i, i + 1), 0.0))
                / (2 * step)
                for a in moves
            ]
            for i in range(60)
        ]
    )
    spread = (gradients / weight[:, None]).T @ gradients  # a weight stands for repeated samples
    inverse = np.linalg.inv(hessian)
    np.testing.assert_allclose(covariance, inverse @ spread @ inverse, rtol=1e-5)


def test_intervals_cover_the_truth_as_often_as_they_should() -> None:
    """400 samples of the model: each estimate is within 1.96 errors in 95 of 100."""
    rng = np.random.default_rng(0)
    inside, naive = np.zeros(6), np.zeros(6)
    for _ in range(400):
        X, y = drawn(300, rng)
        model = OrdinalLogistic(alpha=1e-6).fit(X, y)
        table = model.summary()
        off = np.abs(table["estimate"].to_numpy() - TRUTH)
        inside += off < 1.96 * table["std_err"].to_numpy()
        hessian = sandwich(
            X, y, np.ones(300), model.coef_, model.thresholds_, Loss("logistic"), "all", 0.0
        )[1]
        naive += off < 1.96 * np.sqrt(np.diag(np.linalg.inv(hessian)))
    assert (np.abs(inside / 400 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)).all()
    assert naive[:2].max() / 400 < 0.9  # the information alone takes one sample for three


def test_two_ranks_are_logistic_regression() -> None:
    X, y = drawn(5000, np.random.default_rng(0))
    found, hessian = sandwich(
        X, (y > 1).astype(int), np.ones(5000), TRUE_COEF, np.zeros(1), Loss("logistic"), "all", 0.0
    )
    np.testing.assert_allclose(found, np.linalg.inv(hessian), rtol=0.1, atol=1e-4)


def test_units_weights_and_names() -> None:
    X, y = drawn(200, np.random.default_rng(0))
    weight = np.random.default_rng(1).integers(0, 3, 200)
    rows = np.repeat(np.arange(200), weight)
    names, units = ["size", "price", "age"], np.array([1e-4, 1.0, 1e4])
    frame = pd.DataFrame(X * units + 3.0, columns=names)
    own = OrdinalLogistic(alpha=1e-9).fit(frame, y, sample_weight=weight)
    plain = OrdinalLogistic(alpha=1e-9, scaling=None).fit(X[rows], y[rows])
    assert own.scaling_ is not None
    table, expected = own.summary(), plain.summary()
    assert table.index.tolist() == [*names, *(f"threshold {k}|{k + 1}" for k in range(3))]
    np.testing.assert_allclose(table["z"].iloc[:3], expected["z"].iloc[:3], rtol=1e-4)
    np.testing.assert_allclose(
        table["std_err"].iloc[:3] * units, expected["std_err"].iloc[:3], rtol=1e-4
    )
    # thresholds in the units of frame: b + 3 * sum of the coefficients
    change = np.eye(6)
    change[3:, :3] = 3.0 / units
    change[:3, :3] = np.diag(1.0 / units)
    np.testing.assert_allclose(
        own.covariance_, change @ plain.covariance_ @ change.T, rtol=1e-3, atol=1e-12
    )


def test_thresholds_that_no_sample_places_have_no_error() -> None:
    X, y = drawn(200, np.random.default_rng(0))
    table = OrdinalLogistic(classes=range(6)).fit(X, np.where(y == 1, 2, y)).summary()
    missing = table["std_err"].isna()
    assert missing.tolist() == [False] * 6 + [True, True]  # ranks 4 and 5 have no samples
    assert table["std_err"].iloc[3] == table["std_err"].iloc[4]  # rank 1 has no room


@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_separated_labels_are_told(alpha: float, tmp_path: Path) -> None:
    """Sixty rows whose labels the first feature gives away, and one feature of noise."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-3, 3, 60), rng.normal(size=60)])
    gap = np.abs(np.abs(X[:, 0]) - 1.0) < 0.2
    X, y = X[~gap], np.digitize(X[~gap, 0], [-1.0, 1.0])
    model = OrdinalLogistic(alpha=alpha).fit(X, y)
    save(model, tmp_path / "model.ordrec")
    for each in (model, load(tmp_path / "model.ordrec")):
        with pytest.warns(UserWarning, match="separate the labels.*p mean nothing"):
            table = each.summary()
        assert table["estimate"].notna().all()
        assert table[["std_err", "z", "p"]].isna().all(axis=None)
    y[np.argmin(X[:, 0])] = 2  # one exception
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert OrdinalLogistic(alpha=alpha).fit(X, y).summary()["p"].iloc[1] > 1e-3


def test_what_has_no_summary_says_so() -> None:
    X, y = drawn(60, np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="kernel=None"):
        OrdinalLogistic(kernel="rbf").fit(X, y).summary()
    wide = np.random.default_rng(0).normal(size=(60, 201))
    with pytest.raises(ArgumentError, match="up to 200 features"):
        OrdinalLogistic().fit(wide, y).summary()
