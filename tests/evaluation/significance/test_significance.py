"""Significance: checked against the libraries called directly, worked examples, properties."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ordrec.errors import ArgumentError
from ordrec.evaluation import significance as sig
from ordrec.evaluation.significance.bootstrap import resampled_ratios

VALUES = arrays(float, st.integers(5, 8), elements=st.floats(-5, 5).map(lambda x: round(x, 3)))

# Demsar (2006), table 6: AUC of four forms of C4.5 on 14 data sets.
DEMSAR = pd.DataFrame(
    {
        "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940,
                 0.619, 0.972, 0.957],
        "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962,
                   0.666, 0.981, 0.978],
        "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965,
                    0.614, 0.9751, 0.946],
        "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962,
                      0.669, 0.975, 0.970],
    }
)  # fmt: skip


def test_demsars_example_of_friedmans_test() -> None:
    found = sig.friedman(DEMSAR, higher_is_better=True)
    assert found.ranks.round(3).tolist() == [3.143, 2.000, 2.893, 1.964]
    # He has 9.28 without a correction for ties; scipy corrects for them.
    uncorrected = 12 * 14 / 20 * ((found.ranks**2).sum() - 4 * 25 / 4)
    assert uncorrected == pytest.approx(9.28, abs=0.01)
    ranks = DEMSAR.rank(axis=1)
    tied = sum((n**3 - n).sum() for n in (row.value_counts() for _, row in ranks.iterrows()))
    assert found.chi2 == pytest.approx(uncorrected / (1 - tied / (14 * (4**3 - 4))))
    assert found.f == pytest.approx(13 * found.chi2 / (14 * 3 - found.chi2))
    assert found.f_p < found.p < 0.05


@pytest.mark.parametrize(
    ("models", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)]
)  # Demsar, table 5
def test_critical_difference_has_the_published_quantiles(models: int, q: float) -> None:
    expected = q * np.sqrt(models * (models + 1) / (6 * 20))
    assert sig.critical_difference(models, 20) == pytest.approx(expected, abs=1e-3)


def test_nemenyi_agrees_with_the_critical_difference() -> None:
    table = sig.nemenyi(DEMSAR)
    ranks = sig.average_ranks(DEMSAR, higher_is_better=True)
    apart = sig.critical_difference(4, 14)
    for one in DEMSAR:
        for other in DEMSAR:
            if one != other:
                far = abs(ranks[one] - ranks[other]) > apart
                assert (table.loc[one, other] < 0.05) == far


@settings(max_examples=15)
@given(VALUES)
def test_signed_rank_is_scipys_and_symmetric(d: np.ndarray) -> None:
    a = np.arange(d.size, dtype=float)
    ours = sig.signed_rank(a + d, a)
    assert ours.p == pytest.approx(sig.signed_rank(a, a + d).p)
    if not np.array_equal(a + d, a):
        assert ours.p == stats.wilcoxon(a + d, a, zero_method="zsplit").pvalue
    assert sig.signed_rank(a, a).p == 1.0


@given(VALUES, VALUES)
def test_rank_sum_and_cliffs_delta(a: np.ndarray, b: np.ndarray) -> None:
    assert sig.rank_sum(a, b).p == pytest.approx(stats.mannwhitneyu(a, b).pvalue)
    pairs = np.sign(a[:, None] - b[None, :])
    assert sig.cliffs_delta(a, b) == pytest.approx(pairs.mean(), abs=1e-12)


def test_corrected_t_becomes_the_paired_t_without_overlap() -> None:
    a, b = np.random.default_rng(8).random((2, 12))
    plain = stats.ttest_rel(a, b)
    nearly = sig.corrected_t(a, b, n_train=10**12, n_test=1)
    assert nearly.statistic == pytest.approx(plain.statistic, rel=1e-6)
    assert nearly.p == pytest.approx(plain.pvalue, rel=1e-6)
    overlapping = sig.corrected_t(a, b, n_train=75, n_test=25)
    shrunk = np.sqrt((1 / 12) / (1 / 12 + 1 / 3))
    assert overlapping.statistic == pytest.approx(plain.statistic * shrunk)
    assert overlapping.p > plain.pvalue


def test_corrected_t_keeps_its_level_under_overlapping_splits() -> None:
    """Splits of one sample, no true difference: the plain test is wrong far too often."""
    plain = corrected = 0
    for trial in range(200):
        rng = np.random.default_rng(trial)
        errors = rng.standard_normal(100)  # of one model minus the other, row by row
        folds = [errors[rng.permutation(100)[:25]].mean() for _ in range(30)]
        plain += stats.ttest_1samp(folds, 0).pvalue < 0.05
        corrected += sig.corrected_t(folds, np.zeros(30), n_train=75, n_test=25).p < 0.05
    assert plain > 60
    assert corrected < 20


def test_bootstrap_is_wider_where_users_are_unlike() -> None:
    rng = np.random.default_rng(8)
    users = np.repeat(np.arange(40), 25)
    values = rng.standard_normal(40)[users] + 0.1 * rng.standard_normal(1000)
    alone = sig.bootstrap_interval(values)
    clustered = sig.bootstrap_interval(values, users)
    assert clustered.high - clustered.low > 3 * (alone.high - alone.low)
    assert clustered.low < clustered.estimate < clustered.high
    assert clustered.estimate == pytest.approx(values.mean())
    assert clustered == sig.bootstrap_interval(values, users)


def test_bootstrap_covers_the_true_mean_about_as_often_as_it_says() -> None:
    covered = 0
    for trial in range(60):
        rng = np.random.default_rng(trial)
        users = np.repeat(np.arange(50), rng.integers(1, 20, 50))
        values = rng.standard_normal(50)[users] + rng.standard_normal(users.size)
        low, _, high = sig.bootstrap_interval(values, users, n_resamples=300, seed=trial)
        covered += low <= 0 <= high
    assert 51 <= covered <= 60


def test_the_level_is_the_coverage_of_the_interval() -> None:
    """Of two values, draws have the mean 0, 0.5 or 1, with chances of 1/4, 1/2 and 1/4."""
    wide = sig.bootstrap_interval([0.0, 1.0], level=0.95)
    narrow = sig.bootstrap_interval([0.0, 1.0], level=0.4)
    assert (wide.low, wide.high) == (0.0, 1.0)
    assert (narrow.low, narrow.high) == (0.5, 0.5)


def test_holm_against_the_best() -> None:
    table = sig.holm_against(DEMSAR, "C4.5")
    p = [stats.wilcoxon(DEMSAR[m], DEMSAR["C4.5"], zero_method="zsplit").pvalue for m in DEMSAR][1:]
    assert table["p"].tolist() == pytest.approx(p)
    order = np.argsort(p)
    adjusted = np.maximum.accumulate(np.array(p)[order] * [3, 2, 1]).clip(max=1)
    assert table["adjusted_p"].to_numpy()[order] == pytest.approx(adjusted)


@pytest.mark.parametrize("p", [[0.04], [0.01, 0.04, 0.03], [0.3, 0.0, 0.02, 0.02, 1.0, 0.6]])
def test_holm_is_that_of_statsmodels(p: list[float]) -> None:
    np.testing.assert_allclose(sig.holm(p), multipletests(p, method="holm")[1], atol=1e-12)


def test_win_draw_loss_counts_each_data_set_once() -> None:
    index = pd.MultiIndex.from_product([["w", "l", "d"], range(10)], names=["data", "fold"])
    rng = np.random.default_rng(2)
    noise = rng.random(30) / 100
    a = pd.Series(noise, index=index)
    b = a + np.repeat([0.5, -0.5, 0.0], 10) + rng.permutation(noise) * np.repeat([1, 1, 0], 10)
    frame = pd.DataFrame({"a": a, "b": b})
    assert sig.win_draw_loss(frame, "a", "b") == (1, 1, 1)
    assert sig.win_draw_loss(frame, "b", "a", paired=False) == (1, 1, 1)
    only = frame.loc[["w"]]
    assert sig.win_draw_loss(only, "a", "b") == (1, 0, 0)
    assert sig.win_draw_loss(only, "a", "b", higher_is_better=True) == (0, 0, 1)


def test_folds_are_paired_only_if_they_are() -> None:
    """Always a little better: clear if the folds are the same, nothing if they are not."""
    index = pd.MultiIndex.from_product([["d"], range(10)], names=["data", "fold"])
    a = 10.0 * np.arange(10)
    frame = pd.DataFrame({"a": a, "b": a + 1 + np.arange(10) / 100}, index=index)
    assert sig.win_draw_loss(frame, "a", "b", paired=True) == (1, 0, 0)
    assert sig.win_draw_loss(frame, "a", "b", paired=False) == (0, 1, 0)


def test_equal_models_do_not_differ() -> None:
    same = pd.DataFrame({name: np.arange(5.0) for name in "abc"})
    assert sig.friedman(same).p == 1.0
    assert sig.corrected_t([1, 2], [1, 2], n_train=3, n_test=1).p == 1.0
    assert sig.paired_effect([1.0, 2.0], [1.0, 2.0]) == 0.0
    assert sig.paired_effect([2.0, 3.0], [1.0, 2.0]) == np.inf
    assert sig.corrected_t([2, 3], [1, 2], n_train=3, n_test=1).p == 0.0


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="equal in number"):
        sig.signed_rank([1, 2], [1, 2, 3])
    with pytest.raises(ArgumentError, match="two finite"):
        sig.rank_sum([1], [2, 3])
    with pytest.raises(ArgumentError, match="missing"):
        sig.friedman(DEMSAR.mask(DEMSAR == 1.0))
    with pytest.raises(ArgumentError, match="3 models"):
        sig.friedman(DEMSAR[["C4.5", "C4.5+m"]])
    with pytest.raises(ArgumentError, match="no model is called"):
        sig.holm_against(DEMSAR, "ID3")
    with pytest.raises(ArgumentError, match="nothing to compare"):
        sig.holm_against(DEMSAR[["C4.5"]], "C4.5")
    with pytest.raises(ArgumentError, match="two clusters"):
        sig.bootstrap_interval([1.0, 2.0], ["a", "a"])
    with pytest.raises(ArgumentError, match="one for each"):
        sig.bootstrap_interval([1.0, 2.0], ["a"])
    with pytest.raises(ArgumentError, match="level"):
        sig.bootstrap_interval([1.0, 2.0], level=1.5)
    with pytest.raises(ArgumentError, match="both parts"):
        sig.corrected_t([1, 2], [1, 3], n_train=0, n_test=1)
    with pytest.raises(ArgumentError, match="2 models"):
        sig.critical_difference(1, 5)


# ---- many columns at once ----------------------------------------------------------------


def test_resampled_ratios_have_the_spread_of_the_bootstrap() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 9, 80)
    users = np.repeat(np.arange(80), counts)
    values = rng.normal(size=80)[users] + rng.normal(size=users.size)
    sums = np.bincount(users, values)
    drawn = resampled_ratios(sums[:, None], counts[:, None] * 1.0, n_resamples=6000, seed=3)[:, 0]
    expected = sig.bootstrap_interval(values, users, n_resamples=6000)
    low, high = np.quantile(drawn, [0.025, 0.975])
    width = expected.high - expected.low
    assert low == pytest.approx(expected.low, abs=0.06 * width)
    assert high == pytest.approx(expected.high, abs=0.06 * width)


def test_columns_are_drawn_together_in_batches_of_any_size(monkeypatch) -> None:
    rng = np.random.default_rng(2)
    sums, counts = rng.random((30, 1)), np.ones((30, 1))
    both = np.hstack([sums, sums + 1.0]), np.hstack([counts, counts])
    drawn = resampled_ratios(*both, n_resamples=50)
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 1.0)
    monkeypatch.setattr("ordrec.evaluation.significance.bootstrap.WEIGHTS_AT_ONCE", 100)
    np.testing.assert_allclose(resampled_ratios(*both, n_resamples=50), drawn)
    counts[1:] = 0.0  # most draws have this cluster not at all
    assert np.isnan(resampled_ratios(sums, counts, n_resamples=50)).any()


def test_errors_that_differ_by_rounding_alone_share_a_rank():
    third = 1 / 3
    scores = pd.DataFrame({"a": [third, 0.2], "b": [1 - 2 * third, 0.3], "c": [0.5, 0.1 + 0.2]})
    assert scores["a"][0] != scores["b"][0]
    assert sig.average_ranks(scores).tolist() == [1.25, 2.0, 2.75]
    assert sig.friedman(scores).ranks.tolist() == [1.25, 2.0, 2.75]
