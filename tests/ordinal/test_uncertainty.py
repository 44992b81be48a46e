"""Intervals and spreads of distributions, and conformal sets that keep their promise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.errors import ArgumentError, DataError
from ordrec.ordinal import GPOR, SVORIM, ConformalOrdinal, OrdinalLogistic
from ordrec.ordinal.conformal import Calibration, growth_scores
from ordrec.ordinal.uncertainty import SPREADS, shortest_interval, spread


def distributions(n: int, n_ranks: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n_ranks, 0.7), size=n)


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 2))
    return X, np.digitize(X[:, 0] + rng.logistic(size=n), [-2.0, -0.5, 0.5, 2.0])


# ---- intervals and spreads -----------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.9, 0.99])
def test_the_shortest_interval_is_the_best_of_all(coverage: float) -> None:
    for p, (low, high) in zip(
        distributions(200, 5), shortest_interval(distributions(200, 5), coverage), strict=True
    ):
        runs = [(a, b) for a in range(5) for b in range(a, 5) if p[a : b + 1].sum() >= coverage]
        length = min(b - a for a, b in runs)
        best = max(
            (r for r in runs if r[1] - r[0] == length), key=lambda r: p[r[0] : r[1] + 1].sum()
        )
        assert (low, high) == best


def test_exact_sums_and_ties_of_intervals() -> None:
    thirds = np.array([[1 / 3, 1 / 3, 1 / 3]])
    assert shortest_interval(thirds, 2 / 3).tolist() == [[0, 1]]  # the lower one
    assert shortest_interval(np.array([[0.1] * 10]), 0.3).tolist() == [[0, 2]]
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        shortest_interval(thirds, 90)


def test_spreads_are_their_definitions() -> None:
    p, values = distributions(50, 4), np.array([1.0, 2.0, 3.0, 5.0])
    for row in range(50):
        mean = p[row] @ values
        expected = {
            "deviation": np.sqrt(p[row] @ (values - mean) ** 2),
            "absolute": p[row] @ np.abs(values - mean),
            "entropy": -sum(q * np.log(q) for q in p[row] if q > 0),
            "doubt": 1 - max(p[row]),
        }
        for measure in SPREADS:
            assert spread(p, values, measure)[row] == pytest.approx(expected[measure])
    with pytest.raises(ArgumentError, match="deviation, absolute"):
        spread(p, values, "variance")  # type: ignore[arg-type]


# ---- conformal sets ------------------------------------------------------------------------------


def naive_scores(p: np.ndarray) -> np.ndarray:
    low = high = int(p.argmax())
    scores = np.zeros(p.size)
    scores[low] = p[low]
    while high - low + 1 < p.size:
        if low > 0 and (high == p.size - 1 or p[low - 1] >= p[high + 1]):
            low -= 1
            scores[low] = p[low : high + 1].sum()
        else:
            high += 1
            scores[high] = p[low : high + 1].sum()
    return scores


def test_scores_are_those_of_a_growing_run() -> None:
    p = distributions(300, 6)
    np.testing.assert_allclose(growth_scores(p), [naive_scores(row) for row in p])


def test_the_quantile_is_that_of_the_theorem() -> None:
    p = distributions(19, 4)
    ranks = np.random.default_rng(1).integers(0, 4, 19)
    own = np.sort(growth_scores(p)[np.arange(19), ranks])
    assert Calibration.of(p, ranks, 0.9).largest_score == own[17]  # the 18th of 19: 20 * 0.9
    with pytest.raises(DataError, match="must be 9 or more"):
        Calibration.of(p[:8], ranks[:8], 0.9)
    assert Calibration.of(p[:9], ranks[:9], 0.9).largest_score == own_largest(p[:9], ranks[:9])


def own_largest(p: np.ndarray, ranks: np.ndarray) -> float:
    return float(growth_scores(p)[np.arange(ranks.size), ranks].max())


@pytest.mark.parametrize("coverage", [0.7, 0.9])
def test_sets_hold_the_true_rank_as_often_as_promised(coverage: float) -> None:
    """Even with distributions that have nothing to do with the ranks.

    500 draws of 30 calibration samples and one new sample; fewer hits than the bound have a
    probability of one in a million.
    """
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(500):
        p = rng.dirichlet(np.full(5, 0.5), size=31)
        ranks = rng.choice(5, p=[0.4, 0.1, 0.1, 0.1, 0.3], size=31)
        low, high = Calibration.of(p[:30], ranks[:30], coverage).intervals(p[30:])[0]
        hits += low <= ranks[30] <= high
    assert hits >= binom.ppf(1e-6, 500, coverage)


@pytest.mark.parametrize(
    "estimator",
    [
        OrdinalLogistic(),
        GPOR(max_iter=10),
        SVORIM(probability=True),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["logistic", "gpor", "svorim", "pipeline"],
)
def test_estimators_keep_the_promise_on_new_samples(estimator) -> None:
    """Averaged over 8 fits, whose coverages vary with their 50 calibration samples."""
    rng = np.random.default_rng(0)
    inside = sizes = 0.0
    for seed in range(8):
        X, y = drawn(200, rng)
        model = ConformalOrdinal(estimator, coverage=0.8, random_state=seed).fit(X, y)
        new, truth = drawn(300, rng)
        held = model.predict_set(new)
        inside += held[np.arange(300), truth].mean() / 8
        sizes += held.sum(axis=1).mean() / 8
        assert (np.abs(np.diff(held.astype(int), axis=1)).sum(axis=1) <= 2).all()  # one run
        low, high = model.predict_interval(new).T
        assert np.array_equal(high - low + 1, held.sum(axis=1))
    # the coverage of one fit has deviation sqrt(.8 * .2 / 52), and of 300 samples sqrt(.16 / 300)
    assert inside > 0.8 - 4 * np.sqrt((0.16 / 52 + 0.16 / 300) / 8)
    assert sizes < 4.0  # the sets say something


def test_labels_of_any_kind() -> None:
    X, y = drawn(200, np.random.default_rng(0))
    names = ["awful", "bad", "fair", "good", "great"]
    labels = pd.Categorical(np.array(names)[y], names, ordered=True)
    model = ConformalOrdinal(OrdinalLogistic(), random_state=0).fit(X, labels)
    numbered = ConformalOrdinal(OrdinalLogistic(), random_state=0).fit(X, y)
    assert np.array_equal(model.predict_set(X), numbered.predict_set(X))
    assert model.predict_interval(X)[0, 0] in names
    assert model.score(X, np.array(names)[y]) == numbered.score(X, y)


def test_what_cannot_be_calibrated_says_why() -> None:
    X, y = drawn(60, np.random.default_rng(0))
    with pytest.raises(ArgumentError, match=r"SVORIM\(probability=True\)"):
        ConformalOrdinal(SVORIM()).fit(X, y)
    with pytest.raises(ArgumentError, match="calibration must lie"):
        ConformalOrdinal(OrdinalLogistic(), calibration=1.0).fit(X, y)
    with pytest.raises(DataError, match=r"too few for coverage 0\.99"):
        ConformalOrdinal(OrdinalLogistic(), coverage=0.99).fit(X, y)
