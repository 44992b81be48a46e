from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import naive_metrics as naive

from ordrec import evaluation as ev
from ordrec.errors import ArgumentError, DataError

seeds = st.integers(0, 10**6)


def draw(seed: int, n: int = 40):
    """Relevance 0..3, distinct scores, queries."""
    rng = np.random.default_rng(seed)
    relevance = rng.choice([0, 0, 1, 2, 3], n)
    return relevance, rng.permutation(n) / 7.0, rng.integers(0, 6, n)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mean_average_precision", {}),
        ("mean_reciprocal_rank", {}),
        ("precision_at", {"k": 3}),
        ("recall_at", {"k": 3}),
        ("ndcg", {"k": 3}),
        ("ndcg", {"k": None}),
        ("ndcg", {"k": 5, "gain": "linear"}),
        ("ndcg", {"k": 5, "discount": "letor"}),
        ("fcp", {}),
    ],
)
@given(seed=seeds, n=st.integers(1, 40))
def test_equal_to_plain_loops(name, options, seed, n):
    relevance, scores, groups = draw(seed, n)
    metric, twin = getattr(ev, name), getattr(naive, name)
    expected = naive.macro(twin, relevance.tolist(), scores.tolist(), groups.tolist(), **options)
    ours = metric(relevance, scores, groups=groups, **options)
    assert ours == pytest.approx(expected, nan_ok=True)
    pooled = twin(relevance.tolist(), scores.tolist(), **options)
    assert metric(relevance, scores, **options) == pytest.approx(pooled, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        ("mean_average_precision", "AP", {}),
        ("mean_reciprocal_rank", "RR", {}),
        ("precision_at", "P@3", {"k": 3}),
        ("recall_at", "R@3", {"k": 3}),
    ],
)
@given(seed=seeds)
def test_equal_to_ir_measures(name, theirs, options, seed):
    relevance, scores, groups = draw(seed)
    expected = naive.by_ir_measures(theirs, relevance >= 2, scores, groups)
    ours = getattr(ev, name)(relevance, scores, groups=groups, relevant_from=2, **options)
    assert ours == pytest.approx(expected, nan_ok=True, abs=1e-12)


@given(seed=seeds, n=st.integers(2, 30), levels=st.integers(1, 6))
def test_concordant_pairs_with_ties_equal_all_pairs(seed, n, levels):
    rng = np.random.default_rng(seed)
    relevance, scores = rng.integers(0, levels, n), rng.integers(0, 4, n)
    groups = rng.integers(0, 3, n)
    assert ev.fcp(relevance, scores) == pytest.approx(
        naive.fcp(relevance.tolist(), scores.tolist()), nan_ok=True
    )
    counts = [
        naive.pair_counts(relevance[groups == g].tolist(), scores[groups == g].tolist())
        for g in range(3)
    ]
    right, pairs = np.sum(counts, axis=0)
    expected = right / pairs if pairs else np.nan
    assert ev.pooled_fcp(relevance, scores, groups) == pytest.approx(expected, nan_ok=True)


@given(seed=seeds)
def test_ndcg_agrees_with_scikit_learn(seed):
    from sklearn.metrics import ndcg_score

    relevance, scores, _ = draw(seed, 20)
    if relevance.any():
        theirs = ndcg_score([2.0**relevance - 1], [scores], k=7)
        assert ev.ndcg(relevance, scores, k=7) == pytest.approx(theirs)


def test_letor_discount_by_hand():
    # Relevance 1, 0, 2 in ranked order: (1 * 1 + 3 / log2(3)) / (3 * 1 + 1 * 1).
    value = ev.ndcg([1, 0, 2], [3, 2, 1], discount="letor")
    assert value == pytest.approx((1 + 3 / np.log2(3)) / 4)


def test_precision_divides_by_k_even_for_short_lists():
    assert ev.precision_at([1, 1], [2, 1], k=10) == pytest.approx(0.2)


def test_a_query_without_relevant_rows_is_left_out():
    relevance, scores, groups = [1, 0, 0, 0], [2, 1, 2, 1], [0, 0, 1, 1]
    for metric in (ev.ndcg, ev.mean_average_precision, ev.mean_reciprocal_rank, ev.recall_at):
        assert metric(relevance, scores, groups=groups) == 1.0
        assert np.isnan(metric.per_group(relevance, scores, groups)[1])
        assert metric(relevance, scores, groups=groups, undefined=0.0) == 0.5  # as LETOR counts


def test_equal_scores_gain_nothing_from_the_order_of_the_file():
    relevance = np.repeat(np.arange(5), 400)[::-1].astype(float)  # best first in the file
    groups = np.tile(np.arange(400), 5)
    constant = ev.ndcg(relevance, np.zeros(relevance.size), groups=groups)
    at_random = ev.ndcg(relevance, np.random.default_rng(5).random(relevance.size), groups=groups)
    assert constant == pytest.approx(at_random, abs=0.03)
    assert ev.fcp(relevance, np.zeros(relevance.size), groups=groups) == 0.5


def test_bad_options_are_named():
    with pytest.raises(ArgumentError, match="k must be at least 1"):
        ev.ndcg([1], [1], k=0)
    with pytest.raises(ArgumentError, match="k must be at least 1"):
        ev.recall_at([1], [1], k=0)
    with pytest.raises(ArgumentError, match='"log2" or "letor"'):
        ev.ndcg([1], [1], discount="ln")
    with pytest.raises(ArgumentError, match='"exponential" or "linear"'):
        ev.ndcg([1], [1], gain="square")
    with pytest.raises(ArgumentError, match="must not be negative"):
        ev.ndcg([-1], [1])
    with pytest.raises(DataError, match="fcp: nothing to measure"):
        ev.fcp([], [])
