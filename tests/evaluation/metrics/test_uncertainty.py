"""The metrics of uncertainty, on numbers small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import DEFAULT_METRICS, evaluate, measure_from_name
from ordrec.evaluation.metrics.measures import as_losses
from ordrec.evaluation.metrics.outcome import Outcome
from ordrec.evaluation.metrics.uncertainty import (
    interval_coverage,
    interval_size,
    large_error_auc,
    pearson_of_errors,
    quantile_rmse,
    reliability_index,
    rmse_spread,
    spearman_of_errors,
)
from ordrec.ordinal.uncertainty import spread
from ordrec.recommend import BiasModel, OrdinalFactors

NAMES = (
    "uncertainty_pearson", "uncertainty_spearman", "uncertainty_rpi", "uncertainty_auc",
    "uncertainty_rmse_most_certain", "uncertainty_rmse_least_certain",
    "uncertainty_rmse_difference", "interval_coverage", "interval_size",
)  # fmt: skip


def sample(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    u = rng.integers(1, 30, size=n) / 10.0  # with ties
    return np.abs(u * rng.normal(size=n)), u


def test_correlations_are_scipys() -> None:
    e, u = sample()
    assert pearson_of_errors(e, u) == pytest.approx(stats.pearsonr(e, u)[0])
    assert spearman_of_errors(e, u) == pytest.approx(stats.spearmanr(e, u)[0])
    assert np.isnan(pearson_of_errors([1.0, 2.0], [3.0, 3.0]))


def test_the_index_by_hand() -> None:
    # errors 0, 1, 5: mean 2, away -2 -1 3; spread 1 2 3: away -1 0 1
    # mean(e * away * unsure) = (0 + 0 + 15) / 3; mean |away| = 2, mean |unsure| = 2/3
    assert reliability_index([0.0, 1.0, 5.0], [1.0, 2.0, 3.0]) == pytest.approx(5 / (2 * 2 * 2 / 3))
    assert np.isnan(reliability_index([1.0, 1.0], [1.0, 2.0]))


def test_large_errors_are_recognised_as_scikit_learn_says() -> None:
    e, u = sample()
    for large in (0.5, 1.0, 2.0):
        assert large_error_auc(e, u, large) == pytest.approx(roc_auc_score(e > large, u))
    assert np.isnan(large_error_auc(e, u, 1e9))


def test_parts_by_hand() -> None:
    e, u = np.array([3.0, 1.0, 2.0, 5.0]), np.array([0.3, 0.1, 0.2, 0.4])
    np.testing.assert_allclose(quantile_rmse(e, u, 4), [1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(quantile_rmse(e, u, 2), np.sqrt([2.5, 17.0]))
    assert rmse_spread(e, u, 4) == 4.0
    with pytest.raises(ArgumentError, match="20 parts"):
        quantile_rmse(e, u)


def test_intervals_by_hand() -> None:
    assert interval_coverage([1.0, 2.0, 3.0, 4.0], [[1, 1], [1, 1], [3, 5], [1, 4]]) == 0.75
    assert interval_size([[0, 0], [0, 3]]) == 2.5
    with pytest.raises(ArgumentError, match="as many intervals"):
        interval_coverage([1.0], [[1, 2], [1, 2]])


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ArgumentError, match="pair up"):
        pearson_of_errors([1.0, 2.0], [1.0])
    with pytest.raises(DataError, match="absolute"):
        large_error_auc([-1.0, 2.0], [1.0, 2.0])


def test_the_measures_by_name_are_these_functions() -> None:
    test = synthetic_ratings(30, 20, n_ratings=200, seed=1)
    p = np.random.default_rng(0).dirichlet(np.ones(test.scale.n_ranks), size=200)
    values = np.asarray(test.scale.values, dtype=float)
    e, u = np.abs(test.values - p @ values), spread(p, values)
    large = (values[-1] - values[0]) / 4
    expected = {
        "uncertainty_pearson": pearson_of_errors(e, u),
        "uncertainty_spearman": spearman_of_errors(e, u),
        "uncertainty_rpi": reliability_index(e, u),
        "uncertainty_auc": large_error_auc(e, u, large),
        "uncertainty_rmse_most_certain": quantile_rmse(e, u)[0],
        "uncertainty_rmse_least_certain": quantile_rmse(e, u)[-1],
        "uncertainty_rmse_difference": rmse_spread(e, u),
    }
    outcome = Outcome(test, probabilities=p)
    for name, number in expected.items():
        assert measure_from_name(name).value(outcome, "micro", "mean") == (number, 200)
    few = outcome.select(np.arange(5))
    assert np.isnan(measure_from_name("uncertainty_rmse_difference").value(few, "micro", "mean")[0])
    assert not measure_from_name("uncertainty_auc").applies_to(Outcome(test, ratings=p @ values))


@pytest.mark.parametrize("name", NAMES[:7])
def test_the_better_end_is_where_doubts_are_justified(name: str) -> None:
    """Both models are wrong in the same places; one is unsure there, the other elsewhere."""
    test = synthetic_ratings(20, 30, n_ratings=300, seed=3)
    n_ranks = test.scale.n_ranks
    wrong = np.arange(300) % 3 == 0
    ends = np.where(test.levels < n_ranks / 2, n_ranks - 1, 0)
    levels = np.where(wrong, ends, test.levels)
    values = []
    for unsure in (wrong, ~wrong):
        weight = np.where(unsure, 0.6, 0.95)[:, None]
        p = weight * np.eye(n_ranks)[levels] + (1 - weight) / n_ranks
        values.append(
            measure_from_name(name).value(Outcome(test, probabilities=p), "micro", "mode")
        )
    (good, _), (bad, _) = values
    if name == "uncertainty_rmse_least_certain":
        assert good > bad  # its doubts are where the errors are; on its own, lower is better
    else:
        assert (good > bad) == measure_from_name(name).higher_is_better


def test_better_coverage_is_nearer_to_what_was_promised() -> None:
    assert as_losses("interval_coverage", 0.9) == 0.0
    assert as_losses("interval_coverage", 0.7) > as_losses("interval_coverage", 0.85)


def test_they_are_measured_where_asked_only() -> None:
    assert not set(NAMES) & set(DEFAULT_METRICS)
    ratings = synthetic_ratings(30, 20, n_ratings=300, seed=0)
    models = {"factors": OrdinalFactors(n_factors=2, pattern=2, max_iter=2), "bias": BiasModel()}
    result = evaluate(ratings, models, split="user-holdout:0.3", metrics=list(NAMES))
    table = result.summary()
    assert set(NAMES) <= set(table.columns)
    assert np.isfinite(table.loc["factors", list(NAMES)].astype(float)).all()
    assert table.loc["bias", list(NAMES)].isna().all()  # it has no distributions
    decisions = result.frame.groupby("metric")["decision"].unique()
    assert decisions["uncertainty_auc"].tolist() == ["mean"]
    assert decisions["interval_size"].tolist() == ["none"]
